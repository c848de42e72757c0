//! The SSH door with OpenSSH's own clients: signing in, running things, files, forwards.

use std::process::Command;

use tests::{IMAGE, LIMIT, Laptop, OrFail as _, World, wait_until};

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
    let late = laptop.ssh("train", &["(sleep 0.3; echo late) & echo early"]).await.succeeded();
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
