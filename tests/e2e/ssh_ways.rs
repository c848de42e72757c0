//! Terminals, forwards both ways, key agents, shared connections, new keys and compression, whatever the image holds:
//! what listens inside is the forward of another client, so that no image needs a program for it.

use std::{
    io::Write as _,
    os::unix::net::UnixListener,
    process::{Command, Stdio},
};

use tests::{LIMIT, Laptop, OrFail as _, Port, Talk, wait_until};

use crate::ssh_others::{self, ANSWER};

/// Goes all ways into `train`. `prefix` is what stands before a command where there is no shell to find it.
pub(crate) async fn walk(laptop: &Laptop<'_>, prefix: &str, content: &[u8]) {
    let command = |command: &str| format!("{prefix}{command}");
    laptop.ssh_with("train", &["-tt"], &[&command("test -t 0")], b"").await.succeeded();
    laptop.ssh_with("train", &["-T"], &[&command("test -t 0")], b"").await.ended(1);
    agent(laptop, prefix).await;
    forwards(laptop, &command("true")).await;

    let mut sftp = Command::new("sftp");
    sftp.args(["-q", "-C", "-o", "RekeyLimit=256K"]).args(laptop.key_options()).current_dir(laptop.folder());
    sftp.args(["-b", "-", "-P", &laptop.port()]).arg(laptop.address("train"));
    laptop.run(sftp, b"put up /userhome/rekeyed\nget /userhome/rekeyed rekeyed\n").await.succeeded();
    assert!(std::fs::read(laptop.path("rekeyed")).or_fail("read a file") == content, "with new keys");
}

/// A key agent goes along where there is a place for its socket, and the session goes on where there is none.
async fn agent(laptop: &Laptop<'_>, prefix: &str) {
    let socket = laptop.path("keys");
    let mut agent = Command::new("ssh-agent");
    agent.args(["-D", "-a"]).arg(&socket);
    let _agent = Talk::start(agent);
    wait_until("the agent listens", LIMIT, async || socket.exists().then_some(())).await;
    let mut ssh = Command::new("ssh");
    // The first value of an option counts.
    let identity = format!("IdentityAgent={}", socket.display());
    ssh.args(["-o", &identity]).args(laptop.ssh_as("admin+train", &["-A"]).get_args());
    ssh.arg(if prefix.is_empty() {
        "test -S \"$SSH_AUTH_SOCK\"".to_owned()
    } else {
        format!("{prefix}true")
    });
    ssh.env("SSH_AUTH_SOCK", &socket);
    laptop.run(ssh, b"").await.succeeded();
}

/// From a port and a socket inside to the laptop, and from the laptop to that port and that socket.
async fn forwards(laptop: &Laptop<'_>, nothing: &str) {
    let (home, control) = (laptop.path("answers"), laptop.path("shared"));
    let listener = UnixListener::bind(&home).or_fail("listen");
    // It ends with the test.
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _or_gone = stream.write_all(ANSWER.as_bytes());
        }
    });
    let (control_text, home) = (control.display().to_string(), home.display().to_string());
    let options = [
        "-N",
        "-M",
        "-S",
        &control_text,
        "-R",
        &format!("7001:{home}"),
        "-R",
        &format!("/userhome/there.sock:{home}"),
        // The door itself, for whoever comes through the instance; and the laptop's network for whoever is in it.
        "-R",
        &format!("7002:127.0.0.1:{}", laptop.port()),
        "-R",
        "7003",
        "-o",
        "ExitOnForwardFailure=yes",
    ];
    let _master = Talk::start(laptop.ssh_as("admin+train", &options));
    wait_until("the connection is shared", LIMIT, async || control.exists().then_some(())).await;
    laptop.ssh_with("train", &["-S", &control_text], &[nothing], b"").await.succeeded();
    let answered = wait_until("the port inside answers", LIMIT, async || {
        let mut through = laptop.ssh_as("admin+train", &["-W", "127.0.0.1:7001"]);
        through.stdin(Stdio::null());
        Some(laptop.run(through, b"").await.stdout).filter(|answer| !answer.is_empty())
    })
    .await;
    assert_eq!(answered, ANSWER);
    through_the_laptop(laptop, nothing).await;
    let near = laptop.path("near");
    let local = format!("{}:/userhome/there.sock", near.display());
    let _local = Talk::start(laptop.ssh_as("admin+train", &["-N", "-L", &local]));
    let answered = wait_until("the socket inside answers", LIMIT, async || {
        let mut stream = std::os::unix::net::UnixStream::connect(&near).ok()?;
        stream.set_read_timeout(Some(LIMIT)).or_fail("set a limit");
        let mut answer = String::new();
        let _or_reset = std::io::Read::read_to_string(&mut stream, &mut answer);
        Some(answer).filter(|answer| !answer.is_empty())
    })
    .await;
    assert_eq!(answered, ANSWER);
}

/// Out of the instance by its SOCKS proxy, and through the instance to another door by `-J`.
async fn through_the_laptop(laptop: &Laptop<'_>, nothing: &str) {
    let (proxy, port) = (Port::reserve(), ssh_others::answers());
    let _proxy = Talk::start(laptop.ssh_as("admin+train", &["-N", "-L", &format!("{proxy}:127.0.0.1:7003")]));
    let answered = wait_until("the proxy inside answers", LIMIT, async || {
        ssh_others::through_socks(proxy.number, port).filter(|answer| !answer.is_empty())
    })
    .await;
    assert_eq!(answered, ANSWER);

    // Of what stands on the command line the first of the two gets nothing.
    let options: Vec<_> =
        laptop.key_options().chunks_exact(2).skip(1).map(|option| option[1].clone()).collect();
    let options = options.join("\n");
    let door =
        format!("  HostName 127.0.0.1\n  User admin+train\n  HostKeyAlias [127.0.0.1]:{}\n", laptop.port());
    let config =
        format!("Host first\n  Port {}\nHost second\n  Port 7002\nHost *\n{door}{options}", laptop.port());
    std::fs::write(laptop.path("config"), config).or_fail("write a configuration");
    let mut jump = Command::new("ssh");
    jump.arg("-F").arg(laptop.path("config")).args(["-J", "first", "second", nothing]);
    laptop.run(jump, b"").await.succeeded();
}
