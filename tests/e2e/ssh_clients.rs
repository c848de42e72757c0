//! Clients that nobody here wrote, into images of every kind.

use std::process::Command;

use tests::{
    IMAGE, LIMIT, Laptop, OrFail as _, Port, World,
    engine::{LocalImage, put_busybox},
    old_glibc, scripts, wait_until,
};

use crate::{ssh_others, ssh_regress::Suite, ssh_ways};

/// An image, and what clients find there.
struct Kind {
    reference: String,
    /// Whether there is a shell.
    shell: bool,
    /// The shell that the image's accounts name for its user, where that is no other's.
    login_shell: Option<&'static str>,
    /// Kept until the test has ended.
    _image: Option<LocalImage>,
}

impl Kind {
    fn ours(image: LocalImage, shell: bool) -> Self {
        Self { reference: image.reference().to_owned(), shell, login_shell: None, _image: Some(image) }
    }

    /// As small as Alpine: a busybox and its names, and no C library that anybody else brings.
    fn busybox(name: &str, changes: &[&str], login_shell: &'static str) -> Self {
        let root = tempfile::tempdir().or_fail("make a directory");
        put_busybox(
            root.path(),
            "bin/busybox",
            &["sh", "ash", "cat", "echo", "head", "ln", "ls", "mkdir", "rm", "sleep", "test", "true"],
        );
        std::fs::create_dir_all(root.path().join("etc")).or_fail("make a directory");
        std::fs::create_dir_all(root.path().join("tmp")).or_fail("make a directory");
        std::fs::set_permissions(
            root.path().join("tmp"),
            std::os::unix::fs::PermissionsExt::from_mode(0o1777),
        )
        .or_fail("open a directory");
        let passwd = "root:x:0:0:root:/userhome:/bin/ash\nana:x:1000:1000::/userhome:/bin/sh\n";
        std::fs::write(root.path().join("etc/passwd"), passwd).or_fail("write the accounts");
        let image = LocalImage::of_directory(name, root.path(), changes);
        Self { login_shell: Some(login_shell), ..Self::ours(image, true) }
    }

    /// One file that no name leads to, and no shell.
    fn scratch() -> Self {
        let root = tempfile::tempdir().or_fail("make a directory");
        put_busybox(root.path(), "busybox", &[]);
        Self::ours(LocalImage::of_directory("ssh-scratch", root.path(), &[]), false)
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
    let prefix = if kind.shell { "" } else { "/busybox " };
    ssh_ways::walk(&laptop, prefix, &content).await;
    rsync(&laptop, &content).await;
    ssh_others::walk(&world, &laptop, prefix, &content).await;
    let shell = if kind.shell { "shell" } else { "none" };
    laptop.python("paramiko_walk.py", &["train", shell]).await.succeeded();
    laptop.python("asyncssh_walk.py", &["train", shell]).await.succeeded();
    if let Some(suite) = Suite::ready(&world, &laptop).await {
        suite.in_any_image(kind.shell).await;
    }
}

async fn openssh(kind: &Kind, laptop: &Laptop<'_>, content: &[u8]) {
    let ran = laptop.ssh("train", &["echo $SSH_CONNECTION"]).await;
    if kind.shell {
        assert!(ran.succeeded().starts_with("127.0.0.1 "));
        if let Some(shell) = kind.login_shell {
            assert_eq!(
                laptop.ssh("train", &["echo $0 $SHELL"]).await.succeeded(),
                format!("{shell} {shell}\n")
            );
        }
    } else {
        let (_, said) = ran.ended(255);
        assert!(said.contains("this image has no shell"), "{said}");
        // What needs none runs without one.
        assert_eq!(laptop.ssh("train", &["/busybox", "echo", "in"]).await.succeeded(), "in\n");
    }
    // By SFTP, then as it used to be, with a `scp` on the other side.
    for option in ["-s", "-O"] {
        let there = format!("{}:/userhome/scp", laptop.address("train"));
        let mut put = laptop.client("scp");
        put.args(["-q", option, "up", &there]);
        laptop.run(put, b"").await.succeeded();
        let mut get = laptop.client("scp");
        get.args(["-q", option, &there, "down"]);
        laptop.run(get, b"").await.succeeded();
        assert!(std::fs::read(laptop.path("down")).or_fail("read a file") == content, "scp {option}");
        folders(kind, laptop, option).await;
    }
}

/// Folders with times, modes and names that shells would change; what is not there is told.
async fn folders(kind: &Kind, laptop: &Laptop<'_>, option: &str) {
    let folder = laptop.path("folder");
    let _from_before = std::fs::remove_dir_all(&folder);
    let _from_before = std::fs::remove_dir_all(laptop.path("came"));
    std::fs::create_dir_all(folder.join("deep/er")).or_fail("make a directory");
    for (name, text) in [("one.txt", "1"), ("two.txt", ""), ("deep/er/it's", "quoted")] {
        std::fs::write(folder.join(name), text).or_fail("write a file");
    }
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    std::fs::set_permissions(folder.join("one.txt"), private).or_fail("close a file");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    let file = std::fs::File::options().write(true).open(folder.join("one.txt")).or_fail("open a file");
    file.set_modified(old).or_fail("make a file older");
    let there = format!("{}:/userhome/folder{option}", laptop.address("train"));
    for (from, to) in [("folder", there.as_str()), (there.as_str(), "came")] {
        let mut scp = laptop.client("scp");
        scp.args(["-q", "-r", "-p", option, from, to]);
        laptop.run(scp, b"").await.succeeded();
    }
    let came = laptop.path("came");
    let about = std::fs::metadata(came.join("one.txt")).or_fail("look at a file");
    assert_eq!(about.modified().or_fail("look at a file"), old, "scp {option}");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777, 0o640, "scp {option}");
    assert_eq!(std::fs::read_to_string(came.join("deep/er/it's")).or_fail("read a file"), "quoted");
    if kind.shell || option == "-s" {
        let mut several = laptop.client("scp");
        std::fs::create_dir_all(laptop.path("several")).or_fail("make a directory");
        several.args(["-q", option, &format!("{there}/*.txt"), "several"]);
        laptop.run(several, b"").await.succeeded();
        assert!(laptop.path("several/two.txt").exists(), "scp {option}");
        std::fs::remove_dir_all(laptop.path("several")).or_fail("remove a directory");
    }
    let mut missing = laptop.client("scp");
    missing.args(["-q", option, &format!("{there}/nothing"), "nothing"]);
    let (_, said) = laptop.run(missing, b"").await.ended(1);
    assert!(said.contains("No such file"), "scp {option}: {said}");
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

#[tokio::test]
async fn into_the_default_image() {
    walk(&Kind { reference: IMAGE.to_owned(), shell: true, login_shell: None, _image: None }).await;
}

#[tokio::test]
async fn into_an_image_like_alpine() {
    walk(&Kind::busybox("ssh-busybox", &[], "/bin/ash")).await;
}

#[tokio::test]
async fn into_an_image_whose_user_is_not_root() {
    walk(&Kind::busybox("ssh-not-root", &["USER 1000:1000"], "/bin/sh")).await;
}

#[tokio::test]
async fn into_an_image_that_is_one_file() {
    walk(&Kind::scratch()).await;
}

#[tokio::test]
async fn into_an_image_with_a_c_library_of_2016() {
    if let Some(archive) = old_glibc() {
        walk(&Kind::ours(LocalImage::of_archive("ssh-old-glibc", &archive, &[]), true)).await;
    }
}

#[tokio::test]
async fn asyncssh_changes_terminals_and_listeners() {
    let world = World::start().await;
    world.berth(&["create", "train", "--image", IMAGE, "--wait"]).await.succeeded();
    let laptop = Laptop::with_key(&world).await;
    laptop.python("asyncssh_walk.py", &["train", "all"]).await.succeeded();
}

/// What ssh-audit warns of, and why that stays.
const WARNINGS: &[(&str, &str)] = &[
    ("(kex) mlkem768x25519-sha256 -- [warn] unknown algorithm", "newer than the ssh-audit of Debian 12"),
    (
        "(kex) kex-strict-s-v00@openssh.com -- [warn] unknown algorithm",
        "no algorithm, but the word for strict key exchange",
    ),
];

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
    audit.args(["--batch", "--no-colors", "--port", &laptop.port(), "127.0.0.1"]);
    let told = laptop.run(audit, b"").await.stdout;
    assert!(told.contains("(kex) curve25519-sha256 -- [info]"), "it is read in the right way: {told}");
    let found = told.lines().filter(|line| line.contains("[warn]") || line.contains("[fail]"));
    let new: Vec<_> =
        found.filter(|line| !WARNINGS.iter().any(|(known, _why)| line.trim() == *known)).collect();
    assert_eq!(new, Vec::<&str>::new());
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
        let socks = Port::reserve();
        let options = ["-T", "-D", &socks.to_string()];
        let said = laptop.ssh_with("train", &options, &["bash"], &script).await.succeeded();
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

    let socks = Port::reserve();
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

/// As the guides for editors say it: the program waits in the instance, and a port of this machine leads there.
#[tokio::test]
async fn a_program_is_debugged_step_by_step() {
    let program = "def double(number):\n    result = number * 2\n    return result\n\n\n\
                   total = 0\nfor one in [21]:\n    text = str(one)\n    total += double(one)\nprint('total', total)\n";
    let world = World::start().await;
    let size = ["--cpus", "1", "--memory", "1G"];
    world
        .berth(&[&["create", "train", "--image", "localhost/berth/lab", "--wait"][..], &size].concat())
        .await
        .succeeded();
    let laptop = Laptop::with_key(&world).await;
    laptop.ssh_with("train", &[], &["cat > /userhome/train.py"], program.as_bytes()).await.succeeded();
    let start = "cd /userhome; nohup python3 -m debugpy --listen 127.0.0.1:5678 --wait-for-client train.py > log 2>&1 < /dev/null &";
    laptop.ssh("train", &[start]).await.succeeded();
    // The debugger takes one visitor; who only looks whether it is there would be that one.
    wait_until("the debugger listens", LIMIT, async || {
        let listens = laptop.ssh("train", &["grep -qi ':162E .* 0A ' /proc/net/tcp"]).await;
        (listens.code == Some(0)).then_some(())
    })
    .await;
    let socket = laptop.path("debugger");
    let forward = format!("{}:127.0.0.1:5678", socket.display());
    let _forward = tests::Talk::start(laptop.ssh_as("admin+train", &["-N", "-L", &forward]));
    wait_until("the forward listens", LIMIT, async || socket.exists().then_some(())).await;
    let socket = socket.display().to_string();
    laptop.python("debug_walk.py", &[&socket, "/userhome/train.py", "8"]).await.succeeded();
    wait_until("the program goes on to its end", LIMIT, async || {
        let said = laptop.ssh("train", &["cat /userhome/log"]).await.succeeded();
        said.contains("total 42").then_some(())
    })
    .await;
}
