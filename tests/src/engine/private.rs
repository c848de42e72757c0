//! A container engine of a test's own, which may be killed.
//!
//! It lives in namespaces of its own: for networks, so that it does not take the bridge of the machine's engine; for
//! mounts and processes, so that all that it ever made is gone when the first process in there is. What it shares with
//! the machine is the file system, hence the doors of instances.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Listed, command, listed_by, local_image, output_of};
use crate::{LIMIT, OrFail as _, Program, SmallDisk, wait_until};

/// The first process in there. It does nothing but reap.
const INIT: &str = "while :; do sleep 1000 & wait; done";

#[derive(Debug)]
pub struct PrivateEngine {
    /// `unshare`, whose only child is the first process in there.
    holder: Child,
    first: Pid,
    /// `nsenter`, whose only child is dockerd.
    daemon: Option<Program>,
    disk: Option<SmallDisk>,
    directory: TempDir,
    arguments: &'static [&'static str],
}

impl PrivateEngine {
    /// Starts an engine that has no images.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With more arguments for dockerd.
    pub async fn start_with(arguments: &'static [&'static str]) -> Self {
        Self::start_in(directory(), None, arguments).await
    }

    /// The same, with all that it has on a disk of its own, this large.
    pub async fn start_on_disk(bytes: u64) -> Self {
        let directory = directory();
        let disk = SmallDisk::mount(directory.path().join("data"), bytes);
        Self::start_in(directory, Some(disk), &[]).await
    }

    async fn start_in(
        directory: TempDir,
        disk: Option<SmallDisk>,
        arguments: &'static [&'static str],
    ) -> Self {
        // Whatever becomes of this process, its engine does not outlive it.
        let mut holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"])
            .args(["--mount-proc", "sh", "-c", INIT])
            .stdin(Stdio::null())
            .spawn()
            .or_fail("make namespaces");
        let first = wait_until("there are namespaces", LIMIT, async || {
            assert!(holder.try_wait().or_fail("look at unshare").is_none(), "unshare ended");
            // As soon as the shell runs, the namespaces are as they shall be.
            only_child(holder.id()).filter(|pid| runs(*pid, "sh"))
        })
        .await;
        let mut engine = Self { holder, first, daemon: None, disk, directory, arguments };
        engine.start_daemon().await;
        engine
    }

    /// Starts dockerd, on what an earlier one left.
    pub async fn start_daemon(&mut self) {
        assert!(self.daemon.is_none(), "dockerd runs already");
        let within = self.directory.path();
        // A killed one leaves it behind, and its number may be another's now.
        let _ = std::fs::remove_file(within.join("pid"));
        let mut nsenter = self.inside("dockerd");
        nsenter.arg("--data-root").arg(within.join("data")).arg("--exec-root").arg(within.join("exec"));
        nsenter.arg("--pidfile").arg(within.join("pid")).arg("--host").arg(self.host());
        // Should the machine have a containerd of its own, then not among what others keep there.
        nsenter.args(["--containerd-namespace", &self.namespace()]);
        nsenter.args(self.arguments);
        let daemon = self.daemon.insert(Program::start("dockerd", nsenter, within));
        let host = format!("unix://{}", within.join("docker.sock").display());
        wait_until("dockerd answers", LIMIT, async || {
            daemon.assert_alive();
            let answer = command().args(["--host", &host, "version"]).output().or_fail("run docker");
            answer.status.success().then_some(())
        })
        .await;
    }

    /// SIGKILL to dockerd alone: the processes in its containers go on.
    pub fn kill_daemon(&mut self) {
        let daemon = self.daemon.take().or_fail("kill dockerd");
        let dockerd = only_child(daemon.id()).or_fail("find dockerd");
        kill_process(dockerd, Signal::KILL).or_fail("kill dockerd");
        // And `nsenter`, which waits for it.
        daemon.kill();
    }

    /// The disk that it has to itself.
    #[track_caller]
    pub fn disk(&self) -> &SmallDisk {
        self.disk.as_ref().or_fail("have an engine with a disk of its own")
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("docker.sock")
    }

    /// Makes `localhost/berth/NAME:latest`: busybox, and `sh` among its names.
    #[track_caller]
    pub fn import_busybox(&self, name: &str) -> String {
        let root = tempfile::tempdir().or_fail("make a directory");
        local_image::put_busybox(root.path(), "bin/busybox", &["sh", "cat", "echo", "sleep"]);
        let reference = format!("localhost/berth/{name}:latest");
        local_image::import(self.docker(), root.path(), &[], &reference);
        reference
    }

    /// What `docker` prints, with this engine.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        output_of(self.docker().args(arguments))
    }

    /// The containers of a cluster, running or not.
    #[track_caller]
    pub fn listed(&self, cluster: &str) -> Vec<Listed> {
        listed_by(&mut self.docker(), cluster)
    }

    fn docker(&self) -> Command {
        let mut docker = command();
        docker.args(["--host", &self.host()]);
        docker
    }

    fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn namespace(&self) -> String {
        let name = self.directory.path().file_name().unwrap_or_default();
        name.to_string_lossy().replace('.', "-")
    }

    fn inside(&self, program: &str) -> Command {
        let mut nsenter = Command::new("nsenter");
        nsenter.args(["--target", &self.first.to_string(), "--net", "--mount", "--pid", program]);
        nsenter
    }

    fn remove_containers(&self) {
        let found = output_of(self.docker().args(["ps", "--all", "--quiet"]));
        if !found.is_empty() {
            let _ = self.docker().args(["rm", "--force"]).args(found.lines()).output();
        }
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        if self.daemon.is_some() {
            // Their control groups are the machine's, and nothing else would remove them.
            self.remove_containers();
        }
        // The kernel kills all others in there before this one is gone, and only then `unshare` ends.
        let _ = kill_process(self.first, Signal::KILL);
        let _ = self.holder.wait();
    }
}

fn directory() -> TempDir {
    let made = tempfile::Builder::new().prefix("berth-engine-").tempdir_in("/tmp");
    made.or_fail("make a directory for an engine")
}

fn only_child(parent: u32) -> Option<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
}

fn runs(pid: Pid, program: &str) -> bool {
    let name = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("comm"));
    name.is_ok_and(|name| name.trim() == program)
}
