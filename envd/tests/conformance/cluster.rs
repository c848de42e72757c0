//! A cluster for one test: an envd process, its client, and what Docker says about its containers.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use envd_api::{
    client::EnvdClient,
    control::{EngineState, InstanceSpec, Observation, Observed, PutInstance, WatchEvent},
};
use futures_util::{Stream, StreamExt};
use gateway_api::{Goal, InstanceId};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// The most that any one thing may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(20);

pub(crate) struct Cluster {
    pub(crate) data: TempDir,
    pub(crate) client: EnvdClient,
    envd: Option<Child>,
}

impl Cluster {
    /// A new cluster whose envd is up and has seen the engine.
    pub(crate) async fn new() -> Self {
        let cluster = Self::down(None);
        cluster.up().await
    }

    /// A new cluster whose envd has not been started, with a `berth.toml` if need be.
    pub(crate) fn down(config: Option<&str>) -> Self {
        let data = tempfile::Builder::new().prefix("berth-").tempdir().unwrap();
        if let Some(config) = config {
            fs::write(data.path().join("berth.toml"), config).unwrap();
        }
        let client = EnvdClient::new(data.path().join("envd.sock"));
        Self { data, client, envd: None }
    }

    pub(crate) async fn up(mut self) -> Self {
        self.start().await;
        wait_until("the engine has been seen", async || {
            let report = self.client.report().await.unwrap();
            report.engine == EngineState::Ready
        })
        .await;
        self
    }

    /// Starts envd and waits until it answers.
    pub(crate) async fn start(&mut self) {
        let command = self.command();
        self.start_as(command).await;
    }

    /// The same through another program that becomes envd.
    pub(crate) async fn start_under(&mut self, program: &str, arguments: &[&str]) {
        let command = self.configured(Command::new(program), arguments);
        self.start_as(command).await;
    }

    async fn start_as(&mut self, mut command: Command) {
        assert!(self.envd.is_none(), "it runs already");
        let mut envd = command.spawn().unwrap();
        wait_until("envd answers", async || {
            assert!(envd.try_wait().unwrap().is_none(), "envd ended\n{}", self.log());
            self.client.report().await.is_ok()
        })
        .await;
        self.envd = Some(envd);
    }

    pub(crate) fn command(&self) -> Command {
        self.configured(Command::new(env!("CARGO_BIN_EXE_envd")), &[])
    }

    fn configured(&self, mut command: Command, arguments: &[&str]) -> Command {
        if !arguments.is_empty() {
            command.args(arguments).arg(env!("CARGO_BIN_EXE_envd"));
        }
        let log =
            fs::OpenOptions::new().create(true).append(true).open(self.data.path().join("envd.log")).unwrap();
        command.env("BERTH_DATA", self.data.path()).env("BERTH_AGENT", agent());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let mut envd = self.envd.take().unwrap();
        envd.kill().unwrap();
        envd.wait().unwrap();
    }

    pub(crate) async fn kill_and_start(&mut self) {
        self.kill();
        self.start().await;
    }

    pub(crate) async fn put(&self, id: &InstanceId, generation: u64, goal: Goal, spec: &InstanceSpec) {
        let put = PutInstance { generation, goal, spec: spec.clone(), login: None };
        self.client.put(id, &put).await.unwrap();
    }

    /// Waits until what is reported of an instance is `wanted`, and answers with it.
    pub(crate) async fn wait_for(
        &self,
        id: &InstanceId,
        what: &str,
        wanted: impl Fn(&Observed) -> bool,
    ) -> Observed {
        let mut last = None;
        let found = timeout(LIMIT, async {
            let mut events = std::pin::pin!(self.client.watch());
            while let Some(event) = events.next().await {
                let observed = match event.unwrap() {
                    WatchEvent::Report(report) => report.instances,
                    WatchEvent::Observed(observed) => vec![observed],
                };
                for observed in observed.into_iter().filter(|observed| observed.id == *id) {
                    if wanted(&observed) {
                        return observed;
                    }
                    last = Some(observed);
                }
            }
            panic!("the watch ended");
        })
        .await;
        found.unwrap_or_else(|_| panic!("not {what}; last seen {last:?}\n{}", self.log()))
    }

    pub(crate) async fn wait_for_running(&self, id: &InstanceId, generation: u64) -> Observed {
        self.wait_for(id, "running", |observed| {
            observed.generation == Some(generation)
                && matches!(observed.observation, Observation::Running { .. })
        })
        .await
    }

    pub(crate) async fn wait_for_exit(&self, id: &InstanceId, generation: u64) -> Observed {
        self.wait_for(id, "exited", |observed| {
            observed.generation == Some(generation)
                && matches!(observed.observation, Observation::Exited { .. })
        })
        .await
    }

    pub(crate) async fn wait_for_absent(&self, id: &InstanceId, generation: u64) {
        self.wait_for(id, "absent", |observed| {
            observed.generation == Some(generation) && observed.observation == Observation::Absent
        })
        .await;
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.data.path().join("envd.log")).unwrap_or_default()
    }

    /// The label that all containers of this cluster carry.
    pub(crate) fn label(&self) -> String {
        let cluster = fs::read_to_string(self.data.path().join("cluster")).unwrap();
        format!("berth.cluster={cluster}")
    }

    /// The ids of all containers of this cluster.
    pub(crate) fn containers(&self) -> Vec<String> {
        let ids = docker(&["ps", "-aq", "--no-trunc", "--filter", &format!("label={}", self.label())]);
        ids.lines().map(str::to_owned).collect()
    }

    /// The ids of all networks of this cluster.
    pub(crate) fn networks(&self) -> Vec<String> {
        let ids =
            docker(&["network", "ls", "-q", "--no-trunc", "--filter", &format!("label={}", self.label())]);
        ids.lines().map(str::to_owned).collect()
    }

    pub(crate) fn door(&self, id: &InstanceId) -> PathBuf {
        envd_api::agent::door(self.data.path(), id)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut envd) = self.envd.take() {
            let _ = envd.kill();
            let _ = envd.wait();
        }
        if self.data.path().join("cluster").exists() {
            for container in self.containers() {
                docker(&["rm", "-fv", &container]);
            }
            // Networks and rules of the firewall; if that fails there is nobody to tell but the next reader of a list.
            let _ = self.command().arg("purge").status();
        }
    }
}

/// An instance of the default image that stays until it is stopped.
pub(crate) fn spec() -> InstanceSpec {
    InstanceSpec {
        user: "alice".to_owned(),
        group: "lab".to_owned(),
        hostname: "box".to_owned(),
        image: "localhost/berth/base:latest".to_owned(),
        cpus: 0.5,
        memory_bytes: 256 << 20,
        shm_bytes: 64 << 20,
        disk_bytes: None,
        gpus: 0,
        gpu_model: None,
        cards: Vec::new(),
        env: [("COLOUR".to_owned(), "blue".to_owned())].into(),
        command: Vec::new(),
        links: [].into(),
        aliases: [].into(),
        code_dir: None,
        work_dir: None,
        task: false,
        secrets: Vec::new(),
    }
}

/// An instance that runs a line of shell and ends with it.
pub(crate) fn spec_with_command(line: &str) -> InstanceSpec {
    InstanceSpec { command: ["sh", "-c", line].map(str::to_owned).to_vec(), ..spec() }
}

pub(crate) fn name(id: &InstanceId) -> String {
    format!("berth-{id}")
}

/// When a container was last started, and which one it is.
pub(crate) fn start_of(id: &InstanceId) -> String {
    inspect(id, "{{.Id}} {{.State.StartedAt}}")
}

pub(crate) fn inspect(id: &InstanceId, format: &str) -> String {
    docker(&["inspect", "-f", format, &name(id)]).trim().to_owned()
}

pub(crate) fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "docker {arguments:?}: {err}");
    out.into_owned()
}

pub(crate) async fn wait_until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waited = timeout(LIMIT, async {
        while !is_so().await {
            sleep(POLL).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("not after {LIMIT:?}: {what}"));
}

/// All of a stream, within the limit.
pub(crate) async fn all<T>(stream: impl Stream<Item = T>) -> Vec<T> {
    timeout(LIMIT, stream.collect()).await.expect("the stream does not end")
}

/// The static agent: from `BERTH_BIN`, else from `bin/` of this workspace, which `make build` fills.
fn agent() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("bin");
    let agent = env::var_os("BERTH_BIN").map_or(built, PathBuf::from).join("envd-agent");
    assert!(agent.is_file(), "no agent at `{}`; run `make build` first", agent.display());
    agent
}
