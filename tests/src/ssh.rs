//! The system's own `ssh` and its relatives, at the door of a [`World`].

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use gateway_api::{
    client::Client,
    ssh::{AddSshKey, SshKey},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, ChildStdout},
};

use crate::{LIMIT, OrFail as _, Ran, World};

/// Far longer than any client takes, the long tests included.
const CLIENT_LIMIT: Duration = Duration::from_mins(30);

/// Where the scripts are that speak SSH.
pub fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ssh")
}

/// A user's laptop: a key, the host key that it trusts, and the clients that are installed here.
#[derive(Debug)]
pub struct Laptop<'a> {
    world: &'a World,
    folder: tempfile::TempDir,
    pub user: String,
}

impl<'a> Laptop<'a> {
    /// A laptop without a registered key.
    pub async fn new(world: &'a World) -> Self {
        let folder = tempfile::Builder::new().prefix("laptop-").tempdir_in("/tmp").or_fail("make a folder");
        let door = world.client().ssh_door().await.or_fail("ask for the SSH door");
        assert_eq!(door.port, world.ssh_port());
        let laptop = Self { world, folder, user: "admin".to_owned() };
        let line = format!("[127.0.0.1]:{} {}\n", door.port, door.host_key);
        std::fs::write(laptop.path("known_hosts"), line).or_fail("write known_hosts");
        laptop.make_key("key", &["-t", "ed25519"]);
        laptop
    }

    /// A laptop whose key is the signed-in user's.
    pub async fn with_key(world: &'a World) -> Self {
        let laptop = Self::new(world).await;
        laptop.register("key").await;
        laptop
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a pair of keys.
    pub fn make_key(&self, name: &str, kind: &[&str]) {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-N", "", "-C", name, "-f"]).arg(self.path(name)).args(kind);
        assert!(command.status().or_fail("run ssh-keygen").success());
    }

    /// Adds a key to the user's with a proof.
    pub async fn register(&self, name: &str) -> SshKey {
        self.register_with(&self.world.client(), name).await
    }

    /// Adds a key to somebody's with a proof.
    pub async fn register_with(&self, client: &Client, name: &str) -> SshKey {
        let challenge = client.ssh_challenge().await.or_fail("ask for a challenge").challenge;
        let signed = self.path("challenge");
        std::fs::write(&signed, challenge).or_fail("write a challenge");
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-Y", "sign", "-n", "berth", "-f"]).arg(self.path(name)).arg(&signed);
        assert!(command.stderr(Stdio::null()).status().or_fail("run ssh-keygen").success());
        let signature = std::fs::read_to_string(self.path("challenge.sig")).or_fail("read a signature");
        let _ = std::fs::remove_file(self.path("challenge.sig"));
        client.add_ssh_key(&self.add(name, Some(signature))).await.or_fail("add a key")
    }

    pub fn add(&self, name: &str, signature: Option<String>) -> AddSshKey {
        let key = std::fs::read_to_string(self.path(&format!("{name}.pub"))).or_fail("read a key");
        AddSshKey { name: Some(name.to_owned()), key, signature }
    }

    /// Options that every OpenSSH client here gets: nothing of whoever runs the tests counts.
    pub fn options(&self) -> Vec<String> {
        let known = self.path("known_hosts");
        let mut options = vec!["-F".to_owned(), "/dev/null".to_owned()];
        for option in [
            format!("UserKnownHostsFile={}", known.display()),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
            "LogLevel=ERROR".to_owned(),
        ] {
            options.extend(["-o".to_owned(), option]);
        }
        options
    }

    /// Options of one who signs in by key.
    pub fn key_options(&self) -> Vec<String> {
        let mut options = self.options();
        let key = format!("IdentityFile={}", self.path("key").display());
        for option in [key, "IdentitiesOnly=yes".to_owned(), "BatchMode=yes".to_owned()] {
            options.extend(["-o".to_owned(), option]);
        }
        options
    }

    /// The port of the door, as clients are told it.
    pub fn port(&self) -> String {
        self.world.ssh_port().to_string()
    }

    /// `user+instance@127.0.0.1`
    pub fn address(&self, instance: &str) -> String {
        format!("{}+{instance}@127.0.0.1", self.user)
    }

    /// Runs `ssh` to an instance by key.
    pub async fn ssh(&self, instance: &str, arguments: &[&str]) -> Ran {
        self.ssh_with(instance, &[], arguments, b"").await
    }

    /// Runs `ssh` with more options and with `input`.
    pub async fn ssh_with(&self, instance: &str, options: &[&str], command: &[&str], input: &[u8]) -> Ran {
        let mut ssh = Command::new("ssh");
        ssh.args(self.key_options()).args(options).args(["-p", &self.world.ssh_port().to_string()]);
        ssh.arg(self.address(instance)).args(command);
        self.run(ssh, input).await
    }

    /// `ssh` by key as any login, such as `alice` or `train`, not run yet.
    pub fn ssh_as(&self, login: &str, options: &[&str]) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(self.key_options()).args(options).args(["-p", &self.world.ssh_port().to_string()]);
        ssh.arg(format!("{login}@127.0.0.1")).current_dir(self.folder());
        // What the machine that runs the tests speaks is not what the user does.
        ssh.env("LANG", "C.UTF-8").env_remove("LC_ALL").env_remove("LC_MESSAGES");
        ssh
    }

    /// `ssh` by one key and with more settings, not run yet.
    pub fn ssh_by(&self, login: &str, key: &str, settings: &[&str]) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(self.options()).args(["-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-i"]);
        ssh.arg(self.path(key)).args(settings.iter().flat_map(|setting| ["-o", setting]));
        ssh.args(["-p", &self.world.ssh_port().to_string(), &format!("{login}@127.0.0.1")]);
        ssh
    }

    /// Runs one of the scripts in `tests/ssh` that speak SSH by a library: it is told where, who and by which key.
    pub async fn python(&self, script: &str, arguments: &[&str]) -> Ran {
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-W", "ignore"]).arg(scripts().join(script)).args(arguments);
        python.env("BERTH_PORT", self.world.ssh_port().to_string()).env("BERTH_KEY", self.path("key"));
        python.env("BERTH_KNOWN", self.path("known_hosts")).env("BERTH_USER", &self.user);
        python.env("BERTH_PASSWORD", self.world.password()).current_dir(self.folder());
        self.run(python, b"").await
    }

    /// Runs `ssh` as `login` with a password.
    pub async fn ssh_password(&self, login: &str, password: &str, options: &[&str], command: &[&str]) -> Ran {
        let mut ssh = Command::new("ssh");
        ssh.args(self.options()).args(["-o", "PubkeyAuthentication=no", "-o", "NumberOfPasswordPrompts=1"]);
        ssh.args(options).args(["-p", &self.world.ssh_port().to_string()]);
        ssh.arg(format!("{login}@127.0.0.1")).args(command);
        let ask = self.path("ask");
        std::fs::write(&ask, format!("#!/bin/sh\necho '{password}'\n")).or_fail("write a program");
        std::fs::set_permissions(&ask, std::fs::Permissions::from_mode(0o700)).or_fail("make it run");
        ssh.env("SSH_ASKPASS", ask).env("SSH_ASKPASS_REQUIRE", "force").env("DISPLAY", ":");
        self.run(ssh, b"").await
    }

    /// A client that speaks SFTP or `scp`, with the options that they share.
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(self.key_options()).args(["-P", &self.world.ssh_port().to_string()]);
        command.current_dir(self.folder());
        command
    }

    /// `ssh` as one line, for programs that start it themselves.
    pub fn ssh_line(&self) -> String {
        format!("ssh {} -p {}", self.key_options().join(" "), self.world.ssh_port())
    }

    /// Runs any client to its end.
    pub async fn run(&self, command: Command, input: &[u8]) -> Ran {
        let line = format!("{command:?}");
        Ran::to_its_end_within(CLIENT_LIMIT, command, line, input).await
    }
}

/// Somebody who types into a program and reads what it shows.
#[derive(Debug)]
pub struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    shown: String,
}

impl Talk {
    /// Starts `command`; what it says on standard error goes to the test's own.
    #[track_caller]
    pub fn start(command: Command) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().or_fail("start a program");
        let input = child.stdin.take();
        let output = child.stdout.take().or_fail("read from a program");
        Self { child, input, output, shown: String::new() }
    }

    pub async fn types(&mut self, keys: &str) {
        let input = self.input.as_mut().or_fail("type into a program whose input has ended");
        input.write_all(keys.as_bytes()).await.or_fail("type");
        input.flush().await.or_fail("type");
    }

    /// Nothing more will be typed.
    pub fn hangs_up(&mut self) {
        self.input = None;
    }

    /// Reads until `text` has been shown.
    pub async fn shows(&mut self, text: &str) {
        let mut piece = [0; 4096];
        let read = async {
            while !self.shown.contains(text) {
                match self.output.read(&mut piece).await {
                    Ok(read) if read > 0 => self.shown += &String::from_utf8_lossy(&piece[..read]),
                    Ok(_) | Err(_) => return false,
                }
            }
            true
        };
        let found = tokio::time::timeout(LIMIT, read).await;
        assert!(found == Ok(true), "`{text}` is not shown, but:\n{}", self.shown);
    }

    /// All that was shown so far.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Waits until it ends; its exit code.
    pub async fn ends(&mut self) -> Option<i32> {
        let rest = async {
            let mut rest = Vec::new();
            let _closed = self.output.read_to_end(&mut rest).await;
            self.shown += &String::from_utf8_lossy(&rest);
            self.child.wait().await
        };
        let ended = tokio::time::timeout(LIMIT, rest).await.or_fail("wait for a program");
        ended.or_fail("wait for a program").code()
    }
}
