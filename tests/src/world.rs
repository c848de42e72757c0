//! A Berth of one's own, from start to clean-up.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use gateway_api::{client::Client, people::AddUser, session::ChangePassword};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    LIMIT, OrFail as _, Port, Program,
    engine::{self, EngineView},
    http_client,
    secured::{Secured, Stream},
    small_disk::SmallDisk,
    wait_until, wait_until_agreed,
};

/// The account that a new gateway makes.
const USER: &str = "admin";
/// The number of attempts to clear away.
const CLEAR_TRIES: u32 = 3;
/// How long one `berth` may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(90);

/// An envd and a gateway that nobody else uses, and a signed-in user.
#[derive(Debug)]
pub struct World {
    /// Before the directory that it is in: it must go first.
    disk: Option<SmallDisk>,
    directory: TempDir,
    data: PathBuf,
    engine: PathBuf,
    agent: PathBuf,
    nvml: Option<PathBuf>,
    programs: PathBuf,
    envd: Option<Program>,
    /// The envds of further clusters, by name: each in a directory of that name below `data`.
    others: BTreeMap<String, Option<Program>>,
    gateway: Option<Program>,
    console: String,
    secured: Option<Secured>,
    /// The ports of the site and of SSH. A restart keeps them.
    ports: [Port; 2],
    ssh_port: u16,
    password: String,
    token: Option<String>,
}

/// What is unlike an ordinary world.
#[derive(Debug, Default)]
pub struct Setup {
    /// What stands in `berth.toml`.
    pub config: String,
    /// The engine to use, by its socket, unless it is the machine's own.
    pub engine: Option<PathBuf>,
    /// The agent that instances get, unless it is today's.
    pub agent: Option<PathBuf>,
    /// NVIDIA's library, on a machine that has none: see [`crate::nvml`].
    pub nvml: Option<PathBuf>,
    /// The data directory is a disk of its own, this large.
    pub disk_bytes: Option<u64>,
    /// Clusters beside the first one, which the configuration has to name too.
    pub clusters: Vec<&'static str>,
    /// The site has a domain and TLS, as when it is deployed.
    pub secured: bool,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    line: String,
}

// === start and end ===

impl World {
    /// Starts both programs and signs in, as library and as command line.
    pub async fn start() -> Self {
        Self::start_with(Setup::default()).await
    }

    pub async fn start_with(setup: Setup) -> Self {
        // Short: the path of a unix socket in it has at most 107 bytes.
        let directory = tempfile::Builder::new().prefix("berth-").tempdir_in("/tmp");
        let directory = directory.or_fail("make a data directory");
        let (data, disk) = match setup.disk_bytes {
            None => (directory.path().to_owned(), None),
            Some(bytes) => {
                let data = directory.path().join("data");
                (data.clone(), Some(SmallDisk::mount(data, bytes)))
            }
        };
        let mut config = setup.config;
        let secured = if setup.secured {
            let secured = Secured::open(data.join("keys/self-signed.pem")).await;
            config.push_str(&secured.config());
            Some(secured)
        } else {
            None
        };
        if let Some(socket) = &setup.engine {
            let docker = format!("[envd]\ndocker = \"{}\"\n", socket.display());
            // A table stands there once.
            config = if config.contains("[envd]\n") {
                config.replacen("[envd]\n", &docker, 1)
            } else {
                format!("{config}{docker}")
            };
        }
        if !config.is_empty() {
            std::fs::write(data.join("berth.toml"), config).or_fail("write the configuration");
        }
        let mut world = Self {
            disk,
            directory,
            data,
            engine: setup.engine.unwrap_or_else(|| engine::SOCKET.into()),
            agent: setup.agent.unwrap_or_else(|| programs().join("envd-agent")),
            nvml: setup.nvml,
            programs: programs(),
            envd: None,
            others: BTreeMap::new(),
            gateway: None,
            console: String::new(),
            secured,
            ports: [Port::reserve(), Port::reserve()],
            ssh_port: 0,
            password: String::new(),
            token: None,
        };
        world.start_envd().await;
        for name in setup.clusters {
            world.start_cluster(name).await;
        }
        world.start_gateway().await;
        let client = Client::new(&world.console, None).or_fail("make a client");
        let signed_in = client.sign_in(USER, &world.password).await.or_fail("sign in");
        world.token = signed_in.token;
        let new = format!("{}-of-my-own", world.password);
        let change = ChangePassword { old: std::mem::replace(&mut world.password, new.clone()), new };
        world.client().change_password(&change).await.or_fail("change the password");
        let password = format!("{}\n", world.password);
        let login = ["login", &world.console, "--user", USER, "--password-stdin"];
        world.berth_with(&login, password.as_bytes()).await.succeeded();
        world.wait_for_cluster().await;
        world
    }

    pub async fn start_envd(&mut self) {
        assert!(self.envd.is_none(), "envd runs already");
        let mut command = self.program("envd");
        command.env("BERTH_AGENT", &self.agent);
        if let Some(library) = &self.nvml {
            command.env("BERTH_NVML", library);
        }
        let envd = self.envd.insert(Program::start("envd", command, self.directory.path()));
        until_it_listens(envd, &self.data).await;
    }

    /// Starts the envd of a further cluster, with a data directory of its own.
    pub async fn start_cluster(&mut self, name: &str) {
        let data = self.data.join(name);
        std::fs::create_dir_all(&data).or_fail("make a data directory");
        let mut command = self.program("envd");
        command.env("BERTH_AGENT", &self.agent).env("BERTH_DATA", &data);
        let mut envd = Program::start("envd", command, &data);
        until_it_listens(&mut envd, &data).await;
        self.others.insert(name.to_owned(), Some(envd));
    }

    /// SIGTERM to the envd of a further cluster.
    pub async fn stop_cluster(&mut self, name: &str) -> ExitStatus {
        let envd = self.others.get_mut(name).and_then(Option::take);
        envd.or_fail("stop envd").terminate(LIMIT).await
    }

    /// From its next start on, envd has today's agent.
    pub fn upgrade_agent(&mut self) {
        self.agent = self.programs.join("envd-agent");
    }

    /// Starts the gateway, on the same port as before if there was one.
    pub async fn start_gateway(&mut self) {
        assert!(self.gateway.is_none(), "the gateway runs already");
        let first = self.console.is_empty();
        let [site, ssh] = &self.ports;
        let site = self.secured.as_ref().map_or(site.number, |secured| secured.port.number);
        let mut command = self.program("gateway");
        command.env("BERTH_HTTP", format!("127.0.0.1:{site}"));
        command.env("BERTH_SSH", format!("127.0.0.1:{ssh}"));
        let gateway = self.gateway.insert(Program::start("gateway", command, self.directory.path()));
        let last = if first { "Password" } else { "User" };
        let printed = wait_until("the gateway says where it listens", LIMIT, async || {
            gateway.assert_alive();
            let printed = gateway.printed();
            value(&printed, last).is_some().then_some(printed)
        })
        .await;
        let console = value(&printed, "Console").or_fail("find the console's address");
        self.console = self.secured.as_ref().map_or(console, |secured| secured.plain.clone());
        let ssh = value(&printed, "SSH").or_fail("find the port of SSH");
        self.ssh_port = ssh.trim_start_matches("port ").parse().or_fail("read the port of SSH");
        if first {
            self.password = value(&printed, "Password").or_fail("find the password");
        } else {
            assert_eq!(value(&printed, "Password"), None, "the password is shown once");
        }
    }

    /// SIGKILL.
    pub fn kill_envd(&mut self) {
        self.envd.take().or_fail("kill envd").kill();
    }

    /// SIGKILL.
    pub fn kill_gateway(&mut self) {
        self.gateway.take().or_fail("kill the gateway").kill();
    }

    /// SIGTERM.
    pub async fn stop_envd(&mut self) -> ExitStatus {
        self.envd.take().or_fail("stop envd").terminate(LIMIT).await
    }

    /// SIGTERM.
    pub async fn stop_gateway(&mut self) -> ExitStatus {
        self.gateway.take().or_fail("stop the gateway").terminate(LIMIT).await
    }

    /// Waits until the gateway and the cluster speak with each other.
    pub async fn wait_for_cluster(&self) {
        wait_until_agreed("all parts are well", LIMIT, async || {
            let unwell = self.unwell().await?;
            // One that is small on purpose is nearly full from the beginning; a registry may be down on purpose.
            let matters = |part: &String| part != "registry" && (self.disk.is_none() || part != "disk");
            let unwell: Vec<_> = unwell.into_iter().filter(matters).collect();
            if unwell.is_empty() { Ok(()) } else { Err(format!("{unwell:?}")) }
        })
        .await;
    }

    /// The parts that are unwell, as `/healthz` names them.
    pub async fn unwell(&self) -> Result<Vec<String>, String> {
        let parts = self.parts().await?;
        let unwell = parts.iter().filter(|part| part["ok"] != true);
        Ok(unwell.map(|part| part["name"].as_str().unwrap_or_default().to_owned()).collect())
    }

    /// All parts, as `/healthz` has them.
    pub async fn parts(&self) -> Result<Vec<serde_json::Value>, String> {
        let answer = http_client().get(format!("{}/healthz", self.console)).send().await;
        let body = answer.map_err(|error| error.to_string())?.bytes().await;
        let body = body.map_err(|error| error.to_string())?;
        let health: serde_json::Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        Ok(health["parts"].as_array().ok_or("there are no parts")?.clone())
    }

    /// A program of this world that the test runs to its end itself.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        for inherited in [
            "BERTH_HTTP",
            "BERTH_APPS",
            "BERTH_SSH",
            "BERTH_AGENT",
            "BERTH_URL",
            "BERTH_TOKEN",
            "BERTH_REGISTRY",
        ] {
            command.env_remove(inherited);
        }
        command.env("BERTH_DATA", &self.data);
        command
    }
}

/// Ends both programs, removes what they made, and says what they logged if the test failed.
impl Drop for World {
    fn drop(&mut self) {
        let failed = std::thread::panicking();
        let others: Vec<_> = std::mem::take(&mut self.others).into_iter().collect();
        let data = others.iter().map(|(name, _)| self.data.join(name)).chain([self.data.clone()]);
        let data: Vec<PathBuf> = data.collect();
        let programs: Vec<Option<Program>> = [self.gateway.take(), self.envd.take()]
            .into_iter()
            .chain(others.into_iter().map(|(_, envd)| envd))
            .collect();
        if failed {
            let mut out = std::io::stderr().lock();
            for program in programs.iter().flatten() {
                let _ = writeln!(out, "{}", program.last_words());
            }
        }
        drop(programs);
        for data in data {
            let Ok(cluster) = std::fs::read_to_string(data.join("cluster")) else { continue };
            // What a killed envd had asked the engine for may come to be after it was looked for.
            let mut cleared = self.clear(&data, cluster.trim());
            for _ in 1..CLEAR_TRIES {
                if cleared.is_err() {
                    cleared = self.clear(&data, cluster.trim());
                }
            }
            assert!(failed || cleared.is_ok(), "not all can be cleared away: {cleared:?}");
        }
    }
}

impl World {
    /// Removes the containers, networks and firewall rules of a cluster whose programs have ended.
    fn clear(&self, data: &Path, cluster: &str) -> Result<(), String> {
        let left = engine::remove_all(&self.engine, cluster);
        if !left.is_empty() {
            return Err(format!("these containers stay: {left:?}"));
        }
        let purged = self.program("envd").arg("purge").env("BERTH_DATA", data).output();
        let purged = purged.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&purged.stderr);
        // The engine's own mistake, which nobody but the engine can mend.
        let miscounted = said.contains("that nothing uses");
        if purged.status.success() || miscounted { Ok(()) } else { Err(said.into_owned()) }
    }
}

// === what a test asks it ===

impl World {
    /// A client that is signed in.
    pub fn client(&self) -> Client {
        Client::new(&self.console, self.token.clone()).or_fail("make a client")
    }

    /// A client of somebody new, who is an ordinary user.
    pub async fn person(&self, name: &str) -> Client {
        self.person_and_password(name).await.0
    }

    /// A client of somebody new, and the password that they chose.
    pub async fn person_and_password(&self, name: &str) -> (Client, String) {
        let user = AddUser { name: name.to_owned(), role: None, group: None };
        let old = self.client().add_user(&user).await.or_fail("add a user").password;
        let client = Client::new(&self.console, None).or_fail("make a client");
        let signed_in = client.sign_in(name, &old).await.or_fail("sign in");
        let client = Client::new(&self.console, signed_in.token).or_fail("make a client");
        let change = ChangePassword { new: format!("{old}-of-my-own"), old };
        client.change_password(&change).await.or_fail("change the password");
        (client, change.new)
    }

    /// Fails the test if anything in the gateway has panicked.
    #[track_caller]
    pub fn gateway_has_not_panicked(&self) {
        assert_eq!(self.gateway.as_ref().or_fail("find the gateway").panics(), Vec::<String>::new());
    }

    /// Where the console and the API are, such as `http://localhost:40123`.
    pub fn console(&self) -> &str {
        &self.console
    }

    /// The address that a person types into a browser.
    pub fn url(&self) -> String {
        // On one's own machine: the name that browsers are led to.
        let local = || self.console.replacen("localhost", "berth.localhost", 1);
        self.secured.as_ref().map_or_else(local, Secured::url)
    }

    /// The ports by which browsers and programs come to the site.
    pub fn doors(&self) -> Vec<u16> {
        let plain = self.console.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        self.secured.iter().map(|secured| secured.port.number).chain(plain).collect()
    }

    /// A connection to the site as a browser's, with TLS where it has TLS.
    pub async fn connect(&self) -> Box<dyn Stream> {
        if let Some(secured) = &self.secured {
            return Box::new(secured.connect().await.or_fail("connect to the gateway by TLS"));
        }
        let address = self.console.replace("http://localhost", "127.0.0.1");
        Box::new(TcpStream::connect(address).await.or_fail("connect to the gateway"))
    }

    /// Where SSH listens on 127.0.0.1.
    pub fn ssh_port(&self) -> u16 {
        self.ssh_port
    }

    pub fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    pub fn password(&self) -> &str {
        &self.password
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The logs of its programs, each with the program's name. A program that starts again appends to its own.
    pub fn logs(&self) -> Vec<(String, PathBuf)> {
        let own = ["gateway", "envd"].map(|name| (name.to_owned(), self.directory.path().to_owned(), name));
        let others = self.others.keys().map(|name| (format!("envd-{name}"), self.data.join(name), "envd"));
        own.into_iter()
            .chain(others)
            .map(|(name, folder, program)| (name, folder.join(format!("{program}.log"))))
            .collect()
    }

    /// The disk that was asked for in [`Setup`].
    #[track_caller]
    pub fn disk(&self) -> &SmallDisk {
        self.disk.as_ref().or_fail("find the disk")
    }

    /// The programs that envd has started and that have not ended: each with its number and what it was started with.
    #[track_caller]
    pub fn children_of_envd(&self) -> Vec<(i32, Vec<String>)> {
        let id = self.envd.as_ref().or_fail("find envd").id();
        let threads = std::fs::read_dir(format!("/proc/{id}/task")).or_fail("look at envd").flatten();
        let children =
            threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        let numbers: Vec<i32> = children
            .flat_map(|text| text.split_whitespace().flat_map(str::parse).collect::<Vec<_>>())
            .collect();
        let line = |id| {
            let line = std::fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
            Some((id, line.split_terminator('\0').skip(1).map(str::to_owned).collect()))
        };
        numbers.into_iter().filter_map(line).collect()
    }

    /// The memory that the gateway holds now.
    #[track_caller]
    pub fn gateway_memory_bytes(&self) -> u64 {
        let id = self.gateway.as_ref().or_fail("find the gateway").id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).or_fail("look at the gateway");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).or_fail("find its memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().or_fail("read its memory") << 10
    }

    /// Its containers, running or not, by name.
    pub fn containers(&self) -> Vec<String> {
        engine::containers(&self.cluster())
    }

    /// The one container that there is to be.
    #[track_caller]
    pub fn only_container(&self) -> String {
        let mut containers = self.containers();
        assert_eq!(containers.len(), 1, "{containers:?}");
        containers.remove(0)
    }

    /// Its engine, as that engine's own command shows it.
    pub fn engine(&self) -> EngineView {
        EngineView { socket: self.engine.clone(), cluster: self.cluster() }
    }

    /// What its containers are labelled with.
    pub fn cluster(&self) -> String {
        self.cluster_in("")
    }

    /// What those of a further cluster are labelled with.
    pub fn cluster_in(&self, name: &str) -> String {
        let path = self.data.join(name).join("cluster");
        std::fs::read_to_string(path).or_fail("read the cluster's id").trim().to_owned()
    }

    /// Runs `berth` as the signed-in user, without anything on its standard input.
    pub async fn berth(&self, arguments: &[&str]) -> Ran {
        self.berth_with(arguments, b"").await
    }

    /// Runs `berth` with `input` on its standard input.
    pub async fn berth_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let line = format!("berth {}", arguments.join(" "));
        Ran::to_its_end(self.berth_command(arguments), line, input).await
    }

    /// Runs `berth` for somebody who reads Chinese.
    pub async fn berth_in_chinese(&self, arguments: &[&str]) -> Ran {
        let line = format!("berth {}", arguments.join(" "));
        let mut command = self.berth_command(arguments);
        command.env("BERTH_LANG", "zh");
        Ran::to_its_end(command, line, b"").await
    }

    /// Runs `berth` for somebody whose home is there.
    pub async fn berth_at_home(&self, home: &Path, arguments: &[&str]) -> Ran {
        let line = format!("berth {}", arguments.join(" "));
        let mut command = self.berth_command(arguments);
        command.env("HOME", home);
        Ran::to_its_end(command, line, b"").await
    }

    fn berth_command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = self.program("berth");
        command.args(arguments).env("BERTH_CONFIG", self.directory.path().join("berth-config.toml"));
        command.env("BERTH_LANG", "en").env("NO_COLOR", "1");
        command
    }
}

impl Ran {
    /// Runs `command` with `input` on its standard input; `line` is what it is called when it fails.
    pub(crate) async fn to_its_end(command: Command, line: String, input: &[u8]) -> Self {
        Self::to_its_end_within(COMMAND_LIMIT, command, line, input).await
    }

    /// The same for what may take longer than usual.
    pub(crate) async fn to_its_end_within(
        limit: Duration,
        command: Command,
        line: String,
        input: &[u8],
    ) -> Self {
        let mut child = tokio::process::Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .or_fail(&line);
        let stdin = child.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin {
                // It may end before it has read everything.
                let _ = stdin.write_all(input).await;
            }
        };
        let both = async { tokio::join!(feed, child.wait_with_output()).1 };
        let output = tokio::time::timeout(limit, both).await.or_fail(&line).or_fail(&line);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr), line }
    }

    /// Fails the test unless it succeeded; what it printed.
    #[track_caller]
    pub fn succeeded(self) -> String {
        self.ended(0).0
    }

    /// Fails the test unless it ended with that exit code; what it wrote to standard output and to standard error.
    #[track_caller]
    pub fn ended(self, code: i32) -> (String, String) {
        let Self { line, stdout, stderr, .. } = &self;
        assert!(
            self.code == Some(code),
            "`{line}` ended with {:?}, not {code}\nstdout: {stdout}\nstderr: {stderr}",
            self.code
        );
        (self.stdout, self.stderr)
    }
}

async fn until_it_listens(envd: &mut Program, data: &Path) {
    let socket = data.join("envd.sock");
    wait_until("envd listens", LIMIT, async || {
        envd.assert_alive();
        // A socket that a killed envd left behind refuses.
        std::os::unix::net::UnixStream::connect(&socket).ok()
    })
    .await;
}

/// The value of a line such as `Console  http://localhost:8080`, once the line is whole.
fn value(printed: &str, name: &str) -> Option<String> {
    let (whole, _) = printed.rsplit_once('\n')?;
    whole.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

/// Where the programs under test are: `BERTH_BIN`, else `bin/` of this workspace, which `make build` fills.
#[track_caller]
pub fn programs() -> PathBuf {
    let given = std::env::var_os("BERTH_BIN").map(PathBuf::from);
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("bin");
    let programs = std::path::absolute(given.unwrap_or(built)).or_fail("find the programs");
    for name in ["gateway", "envd", "envd-agent", "berth"] {
        let path = programs.join(name);
        assert!(path.is_file(), "there is no `{}`: run `make build`, or set BERTH_BIN", path.display());
    }
    programs
}
