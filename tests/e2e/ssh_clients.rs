//! Clients that nobody here wrote, into images of every kind.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tests::{
    IMAGE, LIMIT, Laptop, OrFail as _, World,
    engine::{LocalImage, put_busybox},
    old_glibc, scripts, wait_until,
};

/// An image, and what clients find there.
struct Kind {
    reference: String,
    /// Whether there is a shell.
    shell: bool,
    /// Whether its users have names, which the old `scp` insists on.
    accounts: bool,
    /// Kept until the test has ended.
    _image: Option<LocalImage>,
}

impl Kind {
    fn ours(image: LocalImage, shell: bool, accounts: bool) -> Self {
        Self { reference: image.reference().to_owned(), shell, accounts, _image: Some(image) }
    }

    /// As small as Alpine: a busybox and its names, and no C library that anybody else brings.
    fn busybox(name: &str, changes: &[&str]) -> Self {
        let root = tempfile::tempdir().or_fail("make a directory");
        put_busybox(root.path(), "bin/busybox", &["sh", "cat", "echo", "sleep", "ls", "mkdir", "rm", "true"]);
        std::fs::create_dir_all(root.path().join("etc")).or_fail("make a directory");
        std::fs::create_dir_all(root.path().join("tmp")).or_fail("make a directory");
        let passwd = "root:x:0:0:root:/userhome:/bin/sh\nana:x:1000:1000::/userhome:/bin/sh\n";
        std::fs::write(root.path().join("etc/passwd"), passwd).or_fail("write the accounts");
        Self::ours(LocalImage::of_directory(name, root.path(), changes), true, true)
    }

    /// One file that no name leads to, and no shell.
    fn scratch() -> Self {
        let root = tempfile::tempdir().or_fail("make a directory");
        put_busybox(root.path(), "busybox", &[]);
        Self::ours(LocalImage::of_directory("ssh-scratch", root.path(), &[]), false, false)
    }
}

/// Walks every client through an image.
async fn walk(kind: &Kind) {
    let world = World::start().await;
    world.berth(&["create", "train", "--image", &kind.reference, "--wait"]).await.succeeded();
    let laptop = Laptop::with_key(&world).await;
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    std::fs::write(laptop.path("up"), &content).or_fail("write a file");

    openssh(kind, &laptop, &content).await;
    rsync(&laptop, &content).await;
    putty(kind, &world, &laptop, &content).await;
    dropbear(kind, &world, &laptop).await;
    let shell = if kind.shell { "shell" } else { "none" };
    laptop.python("paramiko_walk.py", &["train", shell]).await.succeeded();
}

async fn openssh(kind: &Kind, laptop: &Laptop<'_>, content: &[u8]) {
    let ran = laptop.ssh("train", &["echo $SSH_CONNECTION"]).await;
    if kind.shell {
        assert!(ran.succeeded().starts_with("127.0.0.1 "));
    } else {
        let (_, said) = ran.ended(255);
        assert!(said.contains("this image has no shell"), "{said}");
        // What needs none runs without one.
        assert_eq!(laptop.ssh("train", &["/busybox", "echo", "in"]).await.succeeded(), "in\n");
    }
    // By SFTP, then as it used to be, with a `scp` on the other side.
    let modes: &[&str] = if kind.accounts { &["-s", "-O"] } else { &["-s"] };
    for option in modes {
        let there = format!("{}:/userhome/scp", laptop.address("train"));
        let mut put = laptop.client("scp");
        put.args(["-q", option, "up", &there]);
        laptop.run(put, b"").await.succeeded();
        let mut get = laptop.client("scp");
        get.args(["-q", option, &there, "down"]);
        laptop.run(get, b"").await.succeeded();
        assert!(std::fs::read(laptop.path("down")).or_fail("read a file") == content, "scp {option}");
    }
}

async fn rsync(laptop: &Laptop<'_>, content: &[u8]) {
    let folder = laptop.path("tree");
    std::fs::create_dir_all(folder.join("a b")).or_fail("make a directory");
    std::fs::write(folder.join("a b/file"), content).or_fail("write a file");
    let there = format!("{}:/userhome/rsync/", laptop.address("train"));
    for (from, to) in [("tree/", there.as_str()), (there.as_str(), "back/")] {
        let mut rsync = Command::new("rsync");
        rsync.args(["-a", "-e", &laptop.ssh_line(), from, to]).current_dir(laptop.folder());
        laptop.run(rsync, b"").await.succeeded();
    }
    assert!(std::fs::read(laptop.path("back/a b/file")).or_fail("read a file") == content, "rsync");
}

async fn putty(kind: &Kind, world: &World, laptop: &Laptop<'_>, content: &[u8]) {
    let mut fingerprint = Command::new("ssh-keygen");
    fingerprint.args(["-l", "-f"]).arg(laptop.path("known_hosts"));
    let told = laptop.run(fingerprint, b"").await.succeeded();
    let fingerprint = told.split(' ').nth(1).or_fail("find the fingerprint").to_owned();
    let putty = |program: &str| {
        let mut command = Command::new(program);
        command.args(["-batch", "-P", &world.ssh_port().to_string(), "-hostkey", &fingerprint]);
        command.args(["-pw", world.password()]).env("PUTTYDIR", laptop.folder());
        command.current_dir(laptop.folder());
        command
    };
    let mut plink = putty("plink");
    plink.args(["-no-antispoof", &laptop.address("train"), "echo out; exit 3"]);
    let ran = laptop.run(plink, b"").await;
    if kind.shell {
        assert_eq!(ran.ended(3).0, "out\n");
    } else {
        assert!(ran.ended(255).1.contains("no shell"));
    }
    let mut psftp = putty("psftp");
    let script = "cd /userhome\nput up psftp\nget psftp psftp-down\nrm psftp\nquit\n";
    std::fs::write(laptop.path("script"), script).or_fail("write a script");
    psftp.args(["-b", "script"]).arg(laptop.address("train"));
    laptop.run(psftp, b"").await.succeeded();
    assert!(std::fs::read(laptop.path("psftp-down")).or_fail("read a file") == content, "psftp");
}

async fn dropbear(kind: &Kind, world: &World, laptop: &Laptop<'_>) {
    let mut convert = Command::new("dropbearconvert");
    convert.args(["openssh", "dropbear"]).arg(laptop.path("key")).arg(laptop.path("dropbear"));
    laptop.run(convert, b"").await.succeeded();
    // It looks for known hosts in the home.
    let home = laptop.path("home");
    std::fs::create_dir_all(home.join(".ssh")).or_fail("make a directory");
    let known = std::fs::read_to_string(laptop.path("known_hosts")).or_fail("read known_hosts");
    // It takes a comment for a part of the key.
    let key: Vec<_> = known.split_whitespace().skip(1).take(2).collect();
    let line = format!("127.0.0.1 {}\n", key.join(" "));
    std::fs::write(home.join(".ssh/known_hosts"), line).or_fail("write known_hosts");
    let mut dbclient = Command::new("dbclient");
    dbclient.args(["-T", "-i"]).arg(laptop.path("dropbear")).args(["-p", &world.ssh_port().to_string()]);
    dbclient.args([&laptop.address("train"), "echo out; exit 3"]).env("HOME", home);
    let ran = laptop.run(dbclient, b"").await;
    if kind.shell {
        assert_eq!(ran.ended(3).0, "out\n");
    } else {
        assert!(ran.ended(255).1.contains("no shell"));
    }
}

#[tokio::test]
async fn into_the_default_image() {
    walk(&Kind { reference: IMAGE.to_owned(), shell: true, accounts: true, _image: None }).await;
}

#[tokio::test]
async fn into_an_image_like_alpine() {
    walk(&Kind::busybox("ssh-busybox", &[])).await;
}

#[tokio::test]
async fn into_an_image_whose_user_is_not_root() {
    walk(&Kind::busybox("ssh-not-root", &["USER 1000:1000"])).await;
}

#[tokio::test]
async fn into_an_image_that_is_one_file() {
    walk(&Kind::scratch()).await;
}

#[tokio::test]
async fn into_an_image_with_a_c_library_of_2016() {
    if let Some(archive) = old_glibc() {
        walk(&Kind::ours(LocalImage::of_archive("ssh-old-glibc", &archive, &[]), true, false)).await;
    }
}

#[tokio::test]
async fn asyncssh_asks_for_everything() {
    let world = World::start().await;
    world.berth(&["create", "train", "--image", IMAGE, "--wait"]).await.succeeded();
    let laptop = Laptop::with_key(&world).await;
    laptop.python("asyncssh_walk.py", &["train"]).await.succeeded();
}

#[tokio::test]
async fn ssh_audit_finds_no_fault() {
    let world = World::start().await;
    let laptop = Laptop::new(&world).await;
    let mut audit = Command::new("ssh-audit");
    audit.args(["--json", "--port", &world.ssh_port().to_string(), "127.0.0.1"]);
    let told = laptop.run(audit, b"").await.stdout;
    let told: serde_json::Value = serde_json::from_str(&told).or_fail(format!("read what it found: {told}"));
    let offered = |what: &str| -> Vec<String> {
        let list = told[what].as_array().or_fail(format!("find `{what}`"));
        list.iter().filter_map(|one| one["algorithm"].as_str().map(str::to_owned)).collect()
    };
    assert!(offered("kex").contains(&"kex-strict-s-v00@openssh.com".to_owned()), "{told}");
    assert_eq!(offered("key"), ["ssh-ed25519"]);
    let mut audit = Command::new("ssh-audit");
    audit.args(["--level", "fail", "--port", &world.ssh_port().to_string(), "127.0.0.1"]);
    let told = laptop.run(audit, b"").await.stdout;
    assert!(!told.contains("[fail]"), "{told}");
}

/// What OpenSSH's own tests ask of a server from outside.
#[tokio::test]
async fn tests_of_openssh_pass() {
    let Some(suite) = openssh_tests() else { return };
    let world = World::start().await;
    world.berth(&["create", "train", "--image", IMAGE, "--wait"]).await.succeeded();
    let laptop = Laptop::with_key(&world).await;
    // They look at the same files from both sides: the user's own storage, by the name that it has here.
    let id = laptop.ssh("train", &["touch /userhome/marker; hostname"]).await.succeeded();
    assert!(!id.is_empty());
    let storage = find_marker(&world.data().join("home")).or_fail("find the user's storage");
    let same = format!("mkdir -p {0}; rmdir {0}; ln -s /userhome {0}", storage.display());
    laptop.ssh("train", &[&same]).await.succeeded();
    let obj = storage.join("obj");
    std::fs::create_dir_all(&obj).or_fail("make a directory");
    std::fs::set_permissions(&obj, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .or_fail("open a directory");
    for test in ["transfer", "stderr-after-eof", "broken-pipe", "yes-head", "exit-status-signal", "sftp"]
        .into_iter()
        .chain(["sftp-cmds", "sftp-badcmds", "sftp-batch", "sftp-glob"])
    {
        let mut run = Command::new(scripts().join("regress.sh"));
        run.arg(&suite).arg(&obj).arg(test).arg(laptop.folder());
        run.args([&laptop.address("train"), &world.ssh_port().to_string()]);
        let ran = laptop.run(run, b"").await;
        ran.succeeded();
    }
}

/// Where the suite is; nothing when it cannot be had just now.
fn openssh_tests() -> Option<PathBuf> {
    tests::prepared(&scripts().join("openssh-tests.sh"), "openssh-tests")
}

fn find_marker(below: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(below).ok()?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.join("marker").is_file() {
            return Some(path);
        }
        if path.is_dir()
            && let Some(found) = find_marker(&path)
        {
            return Some(found);
        }
    }
    None
}

/// How VS Code comes in: a script over standard input without a terminal, which starts a server that outlives it and
/// says where it listens; then a connection of its own with a SOCKS proxy, through which all else goes.
#[tokio::test]
async fn vscode_finds_its_way() {
    let world = World::start().await;
    world.berth(&["create", "train", "--image", IMAGE, "--wait"]).await.succeeded();
    let laptop = Laptop::with_key(&world).await;
    let script = std::fs::read(scripts().join("vscode-server.sh")).or_fail("read a script");
    let begin = async || {
        let socks = free_port().to_string();
        let said = laptop.ssh_with("train", &["-T", "-D", &socks], &["bash"], &script).await.succeeded();
        let value = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("=="));
            line.or_fail(format!("find {name} in:\n{said}")).trim_end_matches("==").to_owned()
        };
        assert_eq!(value("exitCode"), "0", "{said}");
        (value("listeningOn"), value("connectionToken"), value("osReleaseId"))
    };
    let (port, token, system) = begin().await;
    assert_eq!(system, "debian");
    // The second time it finds the server that runs.
    assert_eq!(begin().await, (port.clone(), token.clone(), system));

    let socks = free_port();
    let mut master = tests::Talk::start(laptop.ssh_as("admin+train", &["-T", "-D", &socks.to_string()]));
    master.types("echo ready\n").await;
    master.shows("ready").await;
    let proxy = format!("socks5h://127.0.0.1:{socks}");
    let version = wait_until("the server answers through the proxy", LIMIT, async || {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "10", "-x", &proxy, &format!("http://127.0.0.1:{port}/version")]);
        Some(laptop.run(curl, b"").await.stdout).filter(|version| !version.is_empty())
    })
    .await;
    assert_eq!(version.trim(), token);
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").or_fail("find a port");
    listener.local_addr().or_fail("find a port").port()
}
