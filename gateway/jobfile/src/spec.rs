//! A job as Berth runs it, whatever file it came from.
//!
//! Units are in the names: memory in MiB, as every dialect but one counts it. What the files leave out and a site
//! decides (image, shared memory, share of the cluster) is `None` here.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// The language a file was written in. It decides which variables its tasks see and what a retry means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    Berth,
    OpenpaiV1,
    OpenpaiV2,
    Dlc,
    Determined,
}

/// Whether a job runs to its end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    Batch,
    /// It is there to be worked in: idle rules apply, and an end by a signal is no failure.
    Interactive,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    pub dialect: Dialect,
    /// `None`: the gateway makes one up.
    pub name: Option<String>,
    pub description: String,
    pub purpose: Purpose,
    /// The share of the cluster that pays for it: OpenPAI's virtual cluster.
    pub share: Option<String>,
    /// DLC's workspace.
    pub workspace: Option<String>,
    /// The cluster that it is to run on, of those that a site has.
    #[serde(default)]
    pub cluster: Option<String>,
    /// The machines it may use.
    pub pool: Option<String>,
    /// The model of graphics processor, `None` for any.
    pub gpu_model: Option<String>,
    /// 1 to 9, 9 first; `None` is the site's.
    pub priority: Option<u8>,
    pub retries: Retries,
    pub time_limit: Option<Duration>,
    pub idle_timeout: Option<Duration>,
    /// Whether a failed task's files stay to be looked at.
    pub keep_on_failure: bool,
    /// DLC's frameworks set their own variables.
    pub framework: Option<Framework>,
    pub env: BTreeMap<String, String>,
    pub data_dir: Option<Source>,
    pub code_dir: Option<Source>,
    pub output_dir: Option<Source>,
    pub mounts: Vec<Mount>,
    pub roles: Vec<Role>,
    /// What the file says besides, by JSON pointer.
    pub kept: BTreeMap<String, serde_json::Value>,
    /// Values for `<% $secrets.NAME %>`, put in at the start only.
    #[serde(default, skip)]
    pub secrets: BTreeMap<String, Secret>,
    /// The registry account that the file brings along.
    #[serde(default, skip)]
    pub registry_login: Option<RegistryLogin>,
}

/// A role: so many like tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Role {
    /// Letters, digits and underscores: it stands in names of variables.
    pub name: String,
    pub tasks: u32,
    /// `None` is the site's own.
    pub image: Option<String>,
    pub command: Command,
    pub work_dir: Option<String>,
    pub resources: Resources,
    pub ports: Vec<Port>,
    pub completion: Completion,
    /// How often a single task is tried again.
    pub task_retries: Retries,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Nothing: an instance to work in.
    None,
    /// Lines for a shell.
    Shell(String),
    /// A program and its arguments.
    Program(Vec<String>),
}

/// What each task of a role gets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    pub cpus: f64,
    pub memory_mib: u64,
    /// `None` is the site's own.
    pub shm_mib: Option<u64>,
    pub gpus: u32,
}

/// Ports that a task listens at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    pub label: String,
    /// The first one; 0 takes any.
    pub begin_at: u16,
    pub count: u16,
}

/// When a role's tasks end the whole job. `None`: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    pub min_failed: Option<u32>,
    pub min_succeeded: Option<u32>,
}

/// How often something is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retries {
    UpTo(u32),
    /// After any failure, without end.
    AfterFailure,
    /// After success too: a service.
    Always,
}

/// DLC's kinds of job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framework {
    Pytorch,
    Tensorflow,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub from: Source,
    pub to: String,
    pub read_only: bool,
}

/// Where files are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Below the owner's `/userhome`; the path has no leading slash.
    Home(String),
    /// In a storage of the site; the path has no leading slash.
    Storage { name: String, path: String },
    /// A path that the site's table has not been asked about yet.
    Path(String),
}

/// Text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryLogin {
    pub server: Option<String>,
    pub user: String,
    pub password: Secret,
}

/// What a site says about job files. The default knows nothing: paths and shares are then checked on submission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Absolute paths and the storage that each stands for, also those that only old files know.
    pub storages: Option<Vec<StoragePath>>,
    /// Registries of old files, or what is below a path in one, and where their images are now.
    pub registries: BTreeMap<String, String>,
    /// The shares that may be named.
    pub shares: Option<Vec<String>>,
    /// The clusters that may be named.
    #[serde(default)]
    pub clusters: Option<Vec<String>>,
    /// What comes with a graphics processor where a file asks for nothing else; a task without one gets it once.
    pub with_each_gpu: Accompaniment,
    /// The most of it that a task gets, however many it has; `None` as long as no machine is known.
    #[serde(default)]
    pub with_gpus_most: Option<Accompaniment>,
}

/// Processors and memory that a dialect without such fields gets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Accompaniment {
    pub cpus: f64,
    pub memory_mib: u64,
}

/// `path` and what lies below it is in the storage `name`, below `below` there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoragePath {
    pub path: String,
    pub name: String,
    #[serde(default)]
    pub below: String,
}

// === impls ===

impl Dialect {
    pub const ALL: [Self; 5] = [Self::Berth, Self::OpenpaiV1, Self::OpenpaiV2, Self::Dlc, Self::Determined];

    /// The word as it stands in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Berth => "berth",
            Self::OpenpaiV1 => "openpai-v1",
            Self::OpenpaiV2 => "openpai-v2",
            Self::Dlc => "dlc",
            Self::Determined => "determined",
        }
    }
}

impl Framework {
    /// The word as it stands in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pytorch => "pytorch",
            Self::Tensorflow => "tensorflow",
        }
    }
}

impl Command {
    /// Whether it only waits to be worked with: `sleep infinity` and its like.
    pub fn only_waits(&self) -> bool {
        let words: Vec<&str> = match self {
            Self::None => return true,
            Self::Shell(text) => text.split_whitespace().collect(),
            Self::Program(words) => words.iter().map(String::as_str).collect(),
        };
        let words = words.strip_prefix(["exec"].as_slice()).unwrap_or(&words);
        let end = |word: &str| word.trim_end_matches(';').to_owned();
        match words {
            [program, time] => match program.rsplit('/').next() {
                Some("sleep") => ["infinity", "inf", "infinitely"].contains(&end(time).as_str()),
                _ => false,
            },
            ["tail", "-f", file] => end(file) == "/dev/null",
            _ => false,
        }
    }
}

impl Port {
    /// Those that the file fixes; none where any will do.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + use<> {
        let count = if self.begin_at == 0 { 0 } else { self.count };
        (self.begin_at..=u16::MAX).take(count.into())
    }
}

impl Resources {
    /// `None` counts as nothing, as OpenPAI's variables have it.
    pub(crate) fn shm_or_zero(&self) -> u64 {
        self.shm_mib.unwrap_or(0)
    }
}

impl JobSpec {
    pub fn task_count(&self) -> u64 {
        self.roles.iter().map(|role| u64::from(role.tasks)).sum()
    }

    pub fn gpu_count(&self) -> u64 {
        self.roles.iter().map(|role| u64::from(role.tasks) * u64::from(role.resources.gpus)).sum()
    }
}

impl Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Home(path) if path.is_empty() => out.write_str("/userhome"),
            Self::Home(path) => write!(out, "/userhome/{path}"),
            Self::Storage { name, path } if path.is_empty() => out.write_str(name),
            Self::Storage { name, path } => write!(out, "{name}/{path}"),
            Self::Path(path) => out.write_str(path),
        }
    }
}

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself; ask for it only where it is used.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<secret>")
    }
}

impl Default for Site {
    fn default() -> Self {
        Self {
            storages: None,
            registries: BTreeMap::new(),
            shares: None,
            clusters: None,
            with_each_gpu: Accompaniment { cpus: 4.0, memory_mib: 16 << 10 },
            with_gpus_most: None,
        }
    }
}

impl Site {
    /// `image` where it is now, by the longest that fits.
    pub(crate) fn image(&self, image: &str) -> String {
        let below = |old: &str| image.strip_prefix(old)?.strip_prefix('/');
        let fits = self.registries.iter().filter_map(|(old, now)| Some((old.len(), now, below(old)?)));
        let longest = fits.max_by_key(|(length, ..)| *length);
        longest.map_or_else(|| image.to_owned(), |(_, now, rest)| format!("{now}/{rest}"))
    }

    /// What comes with so many graphics processors; a task without one gets it once.
    pub(crate) fn with_gpus(&self, gpus: u32) -> Accompaniment {
        let (each, times) = (self.with_each_gpu, gpus.max(1));
        let all = Accompaniment {
            cpus: each.cpus * f64::from(times),
            memory_mib: each.memory_mib.saturating_mul(times.into()),
        };
        // Nobody asked for it, so nobody is refused for it on a small machine.
        self.with_gpus_most.map_or(all, |most| Accompaniment {
            cpus: all.cpus.min(most.cpus),
            memory_mib: all.memory_mib.min(most.memory_mib),
        })
    }

    /// What an absolute path stands for: the longest that fits.
    pub(crate) fn storage_of(&self, path: &str) -> Option<Source> {
        let below = |prefix: &str| {
            let rest = path.strip_prefix(prefix.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_matches('/').to_owned())
        };
        let fits = self.storages.iter().flatten().filter_map(|known| Some((known, below(&known.path)?)));
        fits.max_by_key(|(known, _)| known.path.len()).map(|(known, rest)| {
            let path = [known.below.trim_matches('/'), &rest].join("/");
            Source::Storage { name: known.name.clone(), path: path.trim_matches('/').to_owned() }
        })
    }
}
