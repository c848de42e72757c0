//! The SSH door with OpenSSH's own clients: signing in, running things, files, forwards.

use std::process::Command;

use tests::{IMAGE, LIMIT, Laptop, OrFail as _, Setup, Talk, World, prepared, scripts, wait_until};
use tokio::net::{TcpListener, TcpStream};

/// A world with instance `train` that runs.
async fn world() -> World {
    let world = World::start().await;
    world.berth(&["create", "train", "--image", IMAGE, "--wait"]).await.succeeded();
    world
}

#[tokio::test]
async fn a_command_runs_as_on_a_real_machine() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let (out, err) = laptop.ssh("train", &["echo out; echo err >&2; exit 7"]).await.ended(7);
    assert_eq!((out.as_str(), err.as_str()), ("out\n", "err\n"));

    // Standard input, both ways at once and to the end.
    let input = "line of text\n".repeat(400_000);
    let piped = laptop.ssh_with("train", &[], &["cat"], input.as_bytes()).await.succeeded();
    assert!(piped == input, "{} of {} bytes came back", piped.len(), input.len());
    // One that does not read what it is sent.
    let first = laptop.ssh_with("train", &[], &["head -n 1; exit 3"], input.as_bytes()).await.ended(3).0;
    assert_eq!(first, "line of text\n");
    // A shell that reads commands.
    let said = laptop.ssh_with("train", &["-T"], &[], b"echo $0; exit 4\n").await.ended(4).0;
    assert!(said.starts_with('-'), "a login shell: {said}");

    let said = laptop.ssh("train", &["echo $SSH_CONNECTION; pwd; echo $HOME $SHELL; tty"]).await.ended(1).0;
    let lines: Vec<_> = said.lines().collect();
    assert!(
        lines[0].starts_with("127.0.0.1 ") && lines[0].ends_with(&world.ssh_port().to_string()),
        "{said}"
    );
    assert!(lines[2].starts_with(lines[1]), "it begins at home: {said}");
    assert_eq!(lines[3], "not a tty");

    // A signal ends it as a signal, which `ssh` tells by 255.
    laptop.ssh("train", &["kill -TERM $$"]).await.ended(255);
    // Output that comes after the shell has ended is not lost.
    let late = "(while grep -qs 'State:.[^Z]' /proc/$$/status; do sleep 0.1; done; echo late) & echo early";
    let late = laptop.ssh("train", &[late]).await.succeeded();
    assert_eq!(late, "early\nlate\n");
}

#[tokio::test]
async fn a_terminal_is_one() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let said = laptop.ssh_with("train", &["-tt"], &["tty; echo $SSH_TTY; echo $TERM; stty -a"], b"").await;
    let said = said.succeeded();
    let lines: Vec<_> = said.lines().map(str::trim_end).collect();
    assert!(lines[0].starts_with("/dev/pts/") && lines[0] == lines[1], "{said}");
    assert!(said.contains("\r\n"), "the terminal makes lines end like this");
    assert!(said.contains("isig icanon"), "{said}");
}

#[tokio::test]
async fn passwords_and_keys_open_it_and_nothing_else() {
    let world = world().await;
    let laptop = Laptop::new(&world).await;
    let right = world.password().to_owned();
    for method in ["password", "keyboard-interactive"] {
        let option = format!("PreferredAuthentications={method}");
        let said =
            laptop.ssh_password("admin+train", &right, &["-o", &option], &["echo in"]).await.succeeded();
        assert_eq!(said, "in\n", "{method}");
    }
    for (login, password) in [
        ("admin+train", "wrong"),
        ("nobody+train", right.as_str()),
        ("admin+../train", right.as_str()),
        ("train", right.as_str()),
    ] {
        let (_, said) = laptop.ssh_password(login, password, &[], &["echo in"]).await.ended(255);
        assert!(said.contains("Permission denied"), "{login}: {said}");
    }
    // A key that nobody knows.
    let (_, said) = laptop.ssh("train", &["echo in"]).await.ended(255);
    assert!(said.contains("Permission denied"), "{said}");
    // One that was added without a proof opens what names its user, and from then on everything.
    world.client().add_ssh_key(&laptop.add("key", None)).await.or_fail("add a key");
    let short = async || {
        let mut ssh = Command::new("ssh");
        ssh.args(laptop.key_options()).args([
            "-p",
            &world.ssh_port().to_string(),
            "train@127.0.0.1",
            "echo in",
        ]);
        laptop.run(ssh, b"").await
    };
    short().await.ended(255);
    assert_eq!(laptop.ssh("train", &["echo in"]).await.succeeded(), "in\n");
    assert_eq!(short().await.succeeded(), "in\n");
    let (_, said) = laptop.ssh("no-such", &["echo in"]).await.ended(255);
    assert!(said.contains("no instance named `no-such`"), "{said}");
}

#[tokio::test]
async fn files_travel_by_every_program() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    std::fs::write(laptop.path("up"), &content).or_fail("write a file");
    let there = format!("{}:", laptop.address("train"));

    // scp by SFTP, then as it used to be.
    for (option, name) in [("-s", "new"), ("-O", "old")] {
        let mut put = laptop.client("scp");
        put.args(["-q", option, "up"]).arg(format!("{there}{name}"));
        laptop.run(put, b"").await.succeeded();
        let mut get = laptop.client("scp");
        get.args(["-q", option, &format!("{there}{name}"), &format!("down-{name}")]);
        laptop.run(get, b"").await.succeeded();
        assert!(std::fs::read(laptop.path(&format!("down-{name}"))).or_fail("read a file") == content);
    }

    let script = "mkdir d\nput up d/a\nrename d/a d/b\nln -s b d/l\nchmod 600 d/b\nls -l d\ndf .\nget d/l got\nrm d/l\n\
                  rm d/b\nrmdir d\n-ls d\nbye\n";
    let mut sftp = laptop.client("sftp");
    sftp.args(["-q", "-b", "-"]).arg(laptop.address("train"));
    let said = laptop.run(sftp, script.as_bytes()).await.succeeded();
    assert!(said.contains("-rw-------"), "{said}");
    assert!(std::fs::read(laptop.path("got")).or_fail("read a file") == content);
}

/// What OpenSSH's own client does only where the server says that it can.
#[tokio::test]
async fn sftp_has_the_extensions_that_clients_use() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    std::fs::write(laptop.path("up"), "of the laptop").or_fail("write a file");
    let script = "put -f up one\ncp one two\nln one hard\nrename two one\nmkdir /tmp/d\nlmkdir d\ndf .\n\
                  get one one\nget hard hard\n-cp nothing two\n";
    let mut sftp = Command::new("sftp");
    sftp.arg("-vv").args(laptop.key_options()).args(["-P", &laptop.port(), "-b", "-"]);
    sftp.arg(laptop.address("train")).current_dir(laptop.folder());
    let ran = laptop.run(sftp, script.as_bytes()).await;
    let said = ran.stderr.clone();
    ran.succeeded();
    for extension in [
        "posix-rename@openssh.com",
        "statvfs@openssh.com",
        "hardlink@openssh.com",
        "fsync@openssh.com",
        "limits@openssh.com",
        "copy-data",
    ] {
        assert!(said.contains(&format!("\"{extension}\"")), "{extension} is not offered:\n{said}");
    }
    for name in ["one", "hard"] {
        assert_eq!(std::fs::read_to_string(laptop.path(name)).or_fail("read a file"), "of the laptop");
    }
}

#[tokio::test]
async fn what_runs_in_the_background_outlives_the_connection() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let start = "nohup sh -c 'while :; do date +%s%N > /tmp/alive; sleep 0.1; done' >/dev/null 2>&1 </dev/null & echo $!";
    let pid = laptop.ssh("train", &[start]).await.succeeded();
    let read = async || laptop.ssh("train", &["cat /tmp/alive"]).await.stdout;
    let first = wait_until("it runs", LIMIT, async || Some(read().await).filter(|at| !at.is_empty())).await;
    wait_until("it goes on", LIMIT, async || Some(read().await).filter(|at| *at != first)).await;
    laptop.ssh("train", &[&format!("kill {}", pid.trim())]).await.succeeded();
}

/// As with `sshd`: without a terminal nothing is hung up.
#[tokio::test]
async fn a_command_outlives_a_client_that_is_cut_off() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let mut ssh = laptop.ssh_as("admin+train", &["-T"]);
    ssh.arg("echo $$ > /tmp/pid; echo ready; cat; echo cut > /tmp/cut; exec sleep 300");
    let mut talk = Talk::start(ssh);
    talk.shows("ready").await;
    // Killed, so that it says no goodbye.
    drop(talk);
    wait_until("its input has ended", LIMIT, async || {
        (laptop.ssh("train", &["cat /tmp/cut"]).await.stdout == "cut\n").then_some(())
    })
    .await;
    laptop.ssh("train", &["kill -0 $(cat /tmp/pid) && kill $(cat /tmp/pid)"]).await.succeeded();
}

#[tokio::test]
async fn keys_of_every_kind_open_it() {
    let world = world().await;
    let laptop = Laptop::new(&world).await;
    let kinds: [(&str, &[&str], &[&str]); 5] = [
        ("ed25519", &["-t", "ed25519"], &["ssh-ed25519"]),
        ("rsa", &["-t", "rsa", "-b", "3072"], &["rsa-sha2-256", "rsa-sha2-512"]),
        ("ecdsa256", &["-t", "ecdsa", "-b", "256"], &["ecdsa-sha2-nistp256"]),
        ("ecdsa384", &["-t", "ecdsa", "-b", "384"], &["ecdsa-sha2-nistp384"]),
        ("ecdsa521", &["-t", "ecdsa", "-b", "521"], &["ecdsa-sha2-nistp521"]),
    ];
    for (name, kind, algorithms) in kinds {
        laptop.make_key(name, kind);
        laptop.register(name).await;
        for algorithm in algorithms {
            let mut ssh =
                laptop.ssh_by("admin+train", name, &[&format!("PubkeyAcceptedAlgorithms={algorithm}")]);
            ssh.arg("echo in");
            assert_eq!(laptop.run(ssh, b"").await.succeeded(), "in\n", "{algorithm}");
        }
    }
    // RSA with SHA-1 is refused, whoever's key it is.
    let mut ssh = laptop.ssh_by("admin+train", "rsa", &["PubkeyAcceptedAlgorithms=ssh-rsa"]);
    ssh.arg("echo in");
    laptop.run(ssh, b"").await.ended(255);
    // And so are keys that are too weak, with a word on why.
    laptop.make_key("weak", &["-t", "rsa", "-b", "1024"]);
    let refused = world.client().add_ssh_key(&laptop.add("weak", None)).await;
    let said = refused.map(|key| key.id).map_err(|error| error.to_string());
    assert!(said.as_ref().is_err_and(|said| said.contains("2048 bits")), "{said:?}");
}

/// Keys that live in a device. The device is a program of OpenSSH's own tests.
#[tokio::test]
async fn keys_in_a_device_open_it() {
    let Some(suite) = prepared(&scripts().join("openssh-tests.sh"), "openssh-tests") else { return };
    let world = world().await;
    let laptop = Laptop::new(&world).await;
    let device = suite.join("usr/lib/openssh/regress/misc/sk-dummy/sk-dummy.so");
    let device = format!("{}", device.display());
    for kind in ["ed25519-sk", "ecdsa-sk"] {
        laptop.make_key(kind, &["-t", kind, "-w", &device]);
        world.client().add_ssh_key(&laptop.add(kind, None)).await.or_fail("add a key");
        let mut ssh = laptop.ssh_by("admin+train", kind, &[&format!("SecurityKeyProvider={device}")]);
        ssh.arg("echo in");
        assert_eq!(laptop.run(ssh, b"").await.succeeded(), "in\n", "{kind}");
    }
}

#[tokio::test]
async fn forwards_lead_into_the_instance_and_back() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let serve = "cd /tmp; echo there > page; nohup python3 -u -m http.server --bind 127.0.0.1 7000 >/tmp/log 2>&1 </dev/null &";
    laptop.ssh("train", &[serve]).await.succeeded();
    // One client, all kinds at once; many sessions then go over its connection.
    let local = laptop.path("local");
    let back = laptop.path("back");
    let listener = std::os::unix::net::UnixListener::bind(&back).or_fail("listen");
    let control = laptop.path("control");
    let options = [
        "-N".to_owned(),
        "-M".to_owned(),
        "-S".to_owned(),
        control.display().to_string(),
        "-A".to_owned(),
        "-L".to_owned(),
        format!("{}:127.0.0.1:7000", local.display()),
        "-R".to_owned(),
        format!("/tmp/there.sock:{}", back.display()),
        "-o".to_owned(),
        "ServerAliveInterval=1".to_owned(),
        "-o".to_owned(),
        "ServerAliveCountMax=60".to_owned(),
        "-o".to_owned(),
        "ExitOnForwardFailure=yes".to_owned(),
    ];
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let _master = Talk::start(laptop.ssh_as("admin+train", &options));
    wait_until("the forwards listen", LIMIT, async || (control.exists() && local.exists()).then_some(()))
        .await;

    let page = wait_until("the page comes", LIMIT, async || {
        let mut curl = Command::new("curl");
        curl.args(["-s", "--unix-socket"]).arg(&local).arg("http://x/page");
        Some(laptop.run(curl, b"").await.stdout).filter(|page| !page.is_empty())
    })
    .await;
    assert_eq!(page, "there\n");

    let answer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().or_fail("accept");
        std::io::Write::write_all(&mut stream, b"from here\n").or_fail("answer");
    });
    let ask = "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"/tmp/there.sock\"); print(s.recv(99).decode(), end=\"\")'";
    let by_master = ["-S", &control.display().to_string()].map(str::to_owned);
    let by_master: Vec<_> = by_master.iter().map(String::as_str).collect();
    let said = laptop.ssh_with("train", &by_master, &[ask], b"").await.succeeded();
    assert_eq!(said, "from here\n");
    assert!(answer.join().is_ok(), "nobody came");

    // Twelve sessions at once on the one connection.
    let sessions = (0..12).map(|number| {
        let (by_master, laptop) = (&by_master, &laptop);
        async move {
            let said = laptop.ssh_with("train", by_master, &[&format!("echo {number}; sleep 1")], b"").await;
            assert_eq!(said.succeeded(), format!("{number}\n"));
        }
    });
    futures_util::future::join_all(sessions).await;

    // -W.
    let mut through = laptop.ssh_as("admin+train", &["-W", "127.0.0.1:7000"]);
    through.stdin(std::process::Stdio::null());
    let said = laptop.run(through, b"GET /page HTTP/1.0\r\n\r\n").await.succeeded();
    assert!(said.ends_with("there\n"), "{said}");
}

#[tokio::test]
async fn a_key_agent_goes_along() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let socket = laptop.path("agent");
    let mut agent = Command::new("ssh-agent");
    agent.args(["-D", "-a"]).arg(&socket);
    let _agent = Talk::start(agent);
    wait_until("the agent listens", LIMIT, async || socket.exists().then_some(())).await;
    let mut add = Command::new("ssh-add");
    add.arg("-q").arg(laptop.path("key")).env("SSH_AUTH_SOCK", &socket);
    laptop.run(add, b"").await.succeeded();
    let asks = "python3 -c 'import os, socket, stat; p = os.environ[\"SSH_AUTH_SOCK\"]; print(oct(stat.S_IMODE(os.stat(p).st_mode))); \
                s = socket.socket(socket.AF_UNIX); s.connect(p); s.sendall(b\"\\0\\0\\0\\1\\x0b\"); print(s.recv(9)[4])'; echo $SSH_AUTH_SOCK";
    let identity = format!("IdentityAgent={}", socket.display());
    let mut ssh = laptop.ssh_as("admin+train", &["-A"]);
    let mut with_agent = Command::new("ssh");
    // The first value of an option counts.
    with_agent.args(["-o", &identity]).args(ssh.get_args()).arg(asks);
    ssh = with_agent;
    ssh.env("SSH_AUTH_SOCK", &socket);
    let said = laptop.run(ssh, b"").await.succeeded();
    let lines: Vec<_> = said.lines().collect();
    // 12: here are the keys.
    assert_eq!(lines[..2], ["0o600", "12"], "{said}");
    // It is gone with the session.
    let is_gone = format!("test ! -e {}", lines[2]);
    wait_until("the socket is gone", LIMIT, async || {
        (laptop.ssh("train", &[&is_gone]).await.code == Some(0)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_berth_command_needs_no_configuration() {
    let world = world().await;
    let (out, err) = world.berth(&["ssh", "train", "--", "echo out; echo err >&2; exit 7"]).await.ended(7);
    assert_eq!((out.as_str(), err.as_str()), ("out\n", "err\n"));
    let (_, said) = world.berth(&["ssh", "trian"]).await.ended(1);
    assert!(said.contains("train"), "the nearest name: {said}");

    let folder = tempfile::tempdir().or_fail("make a folder");
    let file = folder.path().join("notes");
    std::fs::write(&file, "mine").or_fail("write a file");
    world.berth(&["cp", &file.display().to_string(), "train:/userhome/notes"]).await.succeeded();
    assert_eq!(world.berth(&["ssh", "train", "--", "cat /userhome/notes"]).await.succeeded(), "mine");
    // And back, with a folder around it.
    world
        .berth(&["ssh", "train", "--", "mkdir -p /userhome/f && mv /userhome/notes /userhome/f"])
        .await
        .succeeded();
    let back = folder.path().join("back").display().to_string();
    world.berth(&["cp", "-r", "train:/userhome/f", &back]).await.succeeded();
    assert_eq!(std::fs::read_to_string(format!("{back}/notes")).or_fail("read a file"), "mine");
    let (_, said) = world.berth(&["cp", "trian:/userhome/f", &back]).await.ended(1);
    assert!(said.contains("train"), "the nearest name: {said}");

    let door = world.client().ssh_door().await.or_fail("ask for the SSH door");
    let told = world.berth(&["ssh", "--info", "train"]).await.succeeded();
    for part in [format!("admin+train@localhost -p {}", door.port), door.fingerprint] {
        assert!(told.contains(&part), "{told}");
    }
    // What it writes for other clients is enough for them, with nothing else of whoever runs this.
    let config = world.berth(&["config-ssh", "--print"]).await.succeeded();
    let file = folder.path().join("config");
    std::fs::write(&file, config).or_fail("write a configuration");
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(&file).args(["-o", "BatchMode=yes", "train.berth", "echo in"]);
    let laptop = Laptop::new(&world).await;
    assert_eq!(laptop.run(ssh, b"").await.succeeded(), "in\n");
    // And what it writes is found by what it adds to the configuration that is there.
    let home = folder.path().join("home");
    std::fs::create_dir_all(home.join(".ssh")).or_fail("make a folder");
    std::fs::write(home.join(".ssh/config"), "Host other\n  Port 1\n").or_fail("write a configuration");
    let (_, said) = world.berth_at_home(&home, &["config-ssh"]).await.ended(0);
    assert!(said.contains("ssh train.berth"), "{said}");
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(home.join(".ssh/config")).args(["-o", "BatchMode=yes", "train.berth", "echo in"]);
    assert_eq!(laptop.run(ssh, b"").await.succeeded(), "in\n");
}

#[tokio::test]
async fn clients_go_to_the_public_address() {
    let public = TcpListener::bind("127.0.0.1:0").await.or_fail("find a free port");
    let address = public.local_addr().or_fail("find a free port");
    let config = format!("[gateway]\nssh_public = '{address}'\n");
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    assert_ne!(world.ssh_port(), address.port());
    world.berth(&["create", "train", "--image", IMAGE, "--wait"]).await.succeeded();
    let told = world.berth(&["ssh", "--info", "train"]).await.succeeded();
    assert!(told.contains(&format!("admin+train@127.0.0.1 -p {}", address.port())), "{told}");
    let config = world.berth(&["config-ssh", "--print"]).await.succeeded();
    assert!(config.contains(&format!("HostName 127.0.0.1\n  Port {}\n", address.port())), "{config}");

    // As a router does it.
    let passed_on = async {
        let (mut client, _) = public.accept().await.or_fail("be asked for SSH");
        let door = TcpStream::connect(("127.0.0.1", world.ssh_port())).await;
        let _ = tokio::io::copy_bidirectional(&mut client, &mut door.or_fail("reach SSH")).await;
    };
    let (said, ()) = tokio::join!(world.berth(&["ssh", "train", "--", "echo in"]), passed_on);
    assert_eq!(said.succeeded(), "in\n");
}

#[tokio::test]
async fn keys_are_made_added_listed_and_removed_by_command() {
    let world = world().await;
    let laptop = Laptop::new(&world).await;
    let out = laptop.path("work").display().to_string();
    let (id, said) = world.berth(&["ssh-key", "new", "work", "--out", &out]).await.ended(0);
    assert!(said.contains(&out) && said.contains("nowhere else"), "{said}");
    let mode = std::fs::metadata(&out).or_fail("look at the key").permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    let enter = async |name: &str| {
        let mut ssh = laptop.ssh_by("train", name, &[]);
        ssh.arg("echo in");
        laptop.run(ssh, b"").await
    };
    // It was proved when it was made: it says who somebody is.
    assert_eq!(enter("work").await.succeeded(), "in\n");
    let list = world.berth(&["ssh-key", "ls"]).await.succeeded();
    assert!(list.contains("work") && list.contains("SHA256:") && list.contains(id.trim()), "{list}");
    // A pair is never written over.
    let (_, said) = world.berth(&["ssh-key", "new", "again", "--out", &out]).await.ended(1);
    assert!(said.contains(&out), "{said}");

    // One that there is already, by either of its files; and one without a proof.
    let public = laptop.path("key.pub").display().to_string();
    world.berth(&["ssh-key", "add", &public, "--name", "laptop"]).await.succeeded();
    assert_eq!(enter("key").await.succeeded(), "in\n");
    let (_, said) = world.berth(&["ssh-key", "add", &public]).await.ended(1);
    assert!(!said.is_empty(), "a key that is there is told");
    laptop.make_key("later", &["-t", "ed25519"]);
    let later = laptop.path("later").display().to_string();
    world.berth(&["ssh-key", "add", &later, "--unproved"]).await.succeeded();
    enter("later").await.ended(255);
    let (_, said) =
        world.berth(&["ssh-key", "add", &laptop.path("nothing").display().to_string()]).await.ended(1);
    assert!(said.contains("nothing.pub"), "{said}");

    // By name and by id.
    world.berth(&["ssh-key", "rm", "laptop", id.trim()]).await.succeeded();
    for name in ["work", "key"] {
        enter(name).await.ended(255);
    }
    let list = world.berth(&["ssh-key", "ls", "--json"]).await.succeeded();
    assert!(list.contains("later") && !list.contains("laptop"), "{list}");
    world.berth(&["ssh-key", "rm", "laptop"]).await.ended(1);
}

#[tokio::test]
async fn a_file_of_determined_becomes_a_shell() {
    let config = "[gateway.aliases.paths]\n\"/old-nas\" = \"home/sets\"\n".to_owned();
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    let folder = tempfile::tempdir().or_fail("make a folder");
    let file = folder.path().join("shell.yaml");
    let text = format!(
        "description: a shell\nresources:\n  slots: 0\n  shm_size: 64M\nenvironment:\n  image: {IMAGE}\n  \
         environment_variables:\n    - FRUIT=two words\nbind_mounts:\n  - host_path: /old-nas\n    \
         container_path: sets\n"
    );
    let sets = world.data().join("home/admin/sets");
    std::fs::create_dir_all(&sets).or_fail("make a folder");
    std::fs::write(sets.join("digits"), "seven\n").or_fail("write a file");
    std::fs::write(&file, text).or_fail("write a file");
    let file = file.display().to_string();
    let script = "echo $FRUIT; cat /run/determined/workdir/sets/digits";
    let small = ["--cpus", "0.5", "--memory", "128M", "--", script];
    let line = [&["shell", "--config-file", &file][..], &small[..]].concat();
    for name in ["shell", "shell-2"] {
        let (out, _) = world.berth(&line).await.ended(0);
        assert_eq!(out, "two words\nseven\n");
        let stays = world.client().job(name).await.or_fail("find the job that stays");
        assert!(matches!(stays.status, gateway_api::Status::Running { .. }), "{:?}", stays.status);
        assert_eq!((stays.roles[0].cpus, stays.roles[0].memory_bytes), (0.5, 128 << 20));
    }
    let shown = world.berth(&["show", "shell"]).await.succeeded();
    assert!(shown.contains("a shell"), "{shown}");
    std::fs::write(&file, "description: x\nentrypoint: [python, train.py]\n").or_fail("write a file");
    let (_, said) = world.berth(&line).await.ended(1);
    assert!(said.contains("has a command of its own"), "{said}");
}
