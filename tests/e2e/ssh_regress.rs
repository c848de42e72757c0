//! OpenSSH's own tests, as far as they ask something of a server from outside.
//!
//! They expect client and server on one machine. So they get the same files on both sides (the user's own storage, by the
//! name that it has here), and the client of those that forward ports is in the instance's network, where a forward of
//! another client stands for the door.

use std::{collections::BTreeSet, path::PathBuf, process::Command};

use tests::{IMAGE, LIMIT, Laptop, OrFail as _, Talk, World, engine, prepared, scripts, wait_until};

/// In every image; of files, and of commands where there is a shell.
const OF_FILES: &[&str] = &["sftp-cmds", "sftp-badcmds", "sftp-batch", "sftp-glob"];
const OF_COMMANDS: &[&str] =
    &["transfer", "stderr-after-eof", "broken-pipe", "yes-head", "exit-status-signal"];

/// Once: nothing of the image has a part in them.
const OF_FILES_ONCE: &[&str] = &["sftp", "sftp-uri", "scp", "scp3", "scp-uri"];
const OF_CONNECTIONS: &[&str] = &[
    "connect",
    "connect-uri",
    "exit-status",
    "host-expand",
    "keyscan",
    "knownhosts",
    "knownhosts-command",
    "localcommand",
    "portnum",
    "proto-version",
    "putty-transfer",
    "stderr-data",
];
const OF_ALGORITHMS: &[&str] =
    &["cipher-speed", "integrity", "kextype", "putty-ciphers", "putty-kex", "rekey", "try-ciphers"];
const OF_FORWARDS: &[&str] = &["dynamic-forward", "forwarding", "multiplex"];

/// The rest, by why they say nothing of a server that they did not set up.
const ELSEWHERE: &[(&str, &[&str])] = &[
    (
        "set up an sshd of their own by settings that this server does not have",
        &[
            "addrmatch",
            "allow-deny-users",
            "authinfo",
            "banner",
            "cfgmatch",
            "cfgmatchlisten",
            "cfgparse",
            "channel-timeout",
            "connect-privsep",
            "connection-timeout",
            "forcecommand",
            "forward-control",
            "hostkey-agent",
            "hostkey-rotate",
            "login-timeout",
            "reconfigure",
            "reexec",
            "servcfginclude",
            "sftp-chroot",
            "sftp-perm",
        ],
    ),
    ("choose the variables that are let through; ours are fixed and tried by asyncssh", &["envpass"]),
    ("read the exit code of an sshd; what is not SSH-2 is tried with our own words", &["proto-mismatch"]),
    ("expect `UNKNOWN` addresses, as of an sshd without a network", &["proxy-connect"]),
    (
        "write authorized_keys; here keys are registered, and every kind of key is tried with that",
        &[
            "agent",
            "agent-restrict",
            "brokenkeys",
            "key-options",
            "keys-command",
            "keytype",
            "limit-keytype",
            "multipubkey",
        ],
    ),
    (
        "certificates, which are not offered",
        &["cert-file", "cert-hostkey", "cert-userkey", "krl", "principals-command"],
    ),
    ("trust between hosts, which is not offered", &["hostbased"]),
    ("group exchange, which is not offered", &["dhgex"]),
    ("records in the DNS, which the door has none of", &["sshfp-connect"]),
    (
        "programs that no distribution has any more",
        &["conch-ciphers", "ssh-com", "ssh-com-client", "ssh-com-keygen", "ssh-com-sftp"],
    ),
    (
        "ask no server anything",
        &[
            "agent-getpeereid",
            "agent-pkcs11",
            "agent-ptrace",
            "agent-subprocess",
            "agent-timeout",
            "cfginclude",
            "keygen-change",
            "keygen-comment",
            "keygen-convert",
            "keygen-knownhosts",
            "keygen-moduli",
            "keygen-sshfp",
            "percent",
            "sshcfgparse",
            "sshsig",
        ],
    ),
    (
        "no tests, but their tools",
        &["scp-ssh-wrapper", "ssh2putty", "sshd-log-wrapper", "test-exec", "valgrind-unit"],
    ),
];

/// The suite, and the place that both sides have.
pub(crate) struct Suite<'a> {
    world: &'a World,
    laptop: &'a Laptop<'a>,
    folder: PathBuf,
    obj: PathBuf,
}

impl<'a> Suite<'a> {
    /// Gets it ready for instance `train`; nothing when it cannot be had, and whoever runs this has said so.
    pub(crate) async fn ready(world: &'a World, laptop: &'a Laptop<'a>) -> Option<Self> {
        let folder = prepared(&scripts().join("openssh-tests.sh"), "openssh-tests")?;
        let storage = world.data().join("home/admin");
        let obj = storage.join("obj");
        let parents: Vec<_> =
            storage.ancestors().skip(1).map(|parent| format!("-mkdir {}\n", parent.display())).collect();
        let make: String = parents.into_iter().rev().skip(1).collect();
        let script = format!("{make}symlink /userhome {}\n-mkdir {}\n", storage.display(), obj.display());
        let mut sftp = laptop.client("sftp");
        sftp.args(["-q", "-b", "-"]).arg(laptop.address("train"));
        laptop.run(sftp, script.as_bytes()).await.succeeded();
        std::fs::set_permissions(&obj, std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .or_fail("open a directory, which is the user's storage on this side");
        Some(Self { world, laptop, folder, obj })
    }

    /// What every image is asked.
    pub(crate) async fn in_any_image(&self, shell: bool) {
        let of_commands = OF_COMMANDS.iter().filter(|_| shell);
        for test in OF_FILES.iter().chain(of_commands) {
            self.run(Command::new(scripts().join("regress.sh")), test).await;
        }
    }

    async fn run(&self, mut command: Command, test: &str) {
        command.arg(&self.folder).arg(&self.obj).arg(test).arg(self.laptop.folder());
        command.args([&self.laptop.address("train"), &self.laptop.port()]);
        self.laptop.run(command, b"").await.succeeded();
    }

    /// Where client and server are on one machine, as far as networks go.
    async fn run_inside(&self, test: &str) {
        let id = self.world.client().instance("train").await.or_fail("show an instance").id;
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &engine::first_process(id.as_str()).to_string()]);
        command.arg(scripts().join("regress.sh"));
        self.run(command, test).await;
    }
}

async fn world() -> World {
    let world = World::start().await;
    world.berth(&["create", "train", "--image", IMAGE, "--memory", "256M", "--wait"]).await.succeeded();
    world
}

#[tokio::test]
async fn every_test_of_theirs_is_run_or_has_a_reason() {
    let Some(folder) = prepared(&scripts().join("openssh-tests.sh"), "openssh-tests") else { return };
    let files = std::fs::read_dir(folder.join("usr/lib/openssh/regress")).or_fail("read a directory");
    let names = files.map(|file| file.or_fail("read a directory").file_name().to_string_lossy().into_owned());
    let theirs: BTreeSet<_> = names.filter_map(|name| name.strip_suffix(".sh").map(str::to_owned)).collect();
    let ran = [OF_FILES, OF_COMMANDS, OF_FILES_ONCE, OF_CONNECTIONS, OF_ALGORITHMS, OF_FORWARDS].concat();
    let elsewhere = ELSEWHERE.iter().flat_map(|(_, tests)| tests.iter().copied());
    let known: Vec<_> = ran.into_iter().chain(elsewhere).map(str::to_owned).collect();
    assert_eq!(known.iter().cloned().collect::<BTreeSet<_>>(), theirs);
    assert_eq!(known.len(), theirs.len(), "one is named twice");
}

async fn all_pass(tests: &[&str]) {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let Some(suite) = Suite::ready(&world, &laptop).await else { return };
    for test in tests {
        suite.run(Command::new(scripts().join("regress.sh")), test).await;
    }
}

#[tokio::test]
async fn their_tests_of_files_pass() {
    all_pass(OF_FILES_ONCE).await;
}

#[tokio::test]
async fn their_tests_of_connections_pass() {
    all_pass(OF_CONNECTIONS).await;
}

#[tokio::test]
async fn their_tests_of_algorithms_pass() {
    all_pass(OF_ALGORITHMS).await;
}

#[tokio::test]
async fn their_tests_of_forwards_pass() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let Some(suite) = Suite::ready(&world, &laptop).await else { return };
    let door = format!("{0}:127.0.0.1:{0}", laptop.port());
    let control = laptop.path("door");
    let options =
        ["-N", "-M", "-S", &control.display().to_string(), "-o", "ExitOnForwardFailure=yes", "-R", &door];
    let _door = Talk::start(laptop.ssh_as("admin+train", &options));
    wait_until("the door is in the instance's network", LIMIT, async || control.exists().then_some(())).await;
    for test in OF_FORWARDS {
        suite.run_inside(test).await;
    }
}
