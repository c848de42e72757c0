//! What the gateway tells one cluster and what the cluster reports, as JSON over HTTP on envd's control socket.
//!
//! | call | what it does |
//! | --- | --- |
//! | `PUT /v1/instances/{id}` [`PutInstance`] | the goal for one instance; answers 202 at once, envd goes on by itself |
//! | `GET /v1/instances` | a [`Report`] of all that carries this cluster's label, and of all that was asked for; with `?orphans=true` only of the containers that nobody has asked for |
//! | `GET /v1/watch` | lines of [`WatchEvent`]: a report first, then each change, for as long as it is read |
//! | `GET /v1/instances/{id}/logs?tail=N&follow=true` | the container's output as log records, see [`LogHead`] |
//! | `GET /v1/images` | the [`LocalImage`]s that need no download |
//! | `POST /v1/images/find` [`FindImage`] | what a registry says of a reference to whoever signs in so: [`Finding`] |
//! | `GET /v1/storage?user=U&group=G` | the [`Mounted`] storages that an instance of that user gets |
//! | `GET /v1/storage/sftp?user=U&group=G` | with `Upgrade: sftp`: after 101 a [`Reply`](crate::agent::Reply), then SFTP on these storages |
//! | `GET /v1/node` | [`NodeReport`] |
//! | `GET /v1/counts` | what each running instance has used, as last [`Counted`] |
//!
//! An answer that is not a success carries a [`Refused`]. Every call is idempotent. envd keeps no database: after a
//! restart it knows what it finds by label, and acts only on what the gateway has put again.
//!
//! # A store that is older than the cluster
//!
//! Each start of a container is on record below the data directory with its generation. So envd knows, also after a
//! restart, when the gateway's store was restored from a backup: its goals have smaller generations than the record.
//! Such a put is refused with 409 and [`Stale`], and nothing is done: what the store lost may be the very act that
//! made the container what it is. The record wins over the store, by one rule (`gateway/src/reconcile/stale.rs`):
//!
//! - the instance takes over the generation on record, never one above it, which would be a restart;
//! - its goal becomes `running` if the container runs, and `stopped` if it does not, whatever the store says.
//!
//! So nothing is deleted, started or stopped because of a restored store, and the next act of the user counts again.
//! Containers that the store does not know at all are never touched: they are listed as orphans.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use gateway_api::{Goal, InstanceId, node::DiskLimit, secret::UseSecret};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The most bytes that a [`PutInstance`] has as JSON.
pub const PUT_MAX: usize = 1 << 20;

/// The goal for one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PutInstance {
    /// Grows with each act of the user. A put with a smaller one than envd has seen is refused as stale.
    ///
    /// With the goal `running` it also names the run: a container that was started for an earlier generation is
    /// stopped first (that is what a restart is), one that was started for this generation and whose command has
    /// ended stays ended.
    pub generation: u64,
    pub goal: Goal,
    pub spec: InstanceSpec,
    /// For the registry of its image, if one is known. It is kept nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<RegistryLogin>,
}

/// Who signs in to a registry. It is used for that host and for no other.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryLogin {
    /// As references of images name it.
    pub host: String,
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for RegistryLogin {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RegistryLogin").field("host", &self.host).finish_non_exhaustive()
    }
}

/// An image that somebody wants to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindImage {
    pub reference: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<RegistryLogin>,
}

/// What became of a [`FindImage`]. `why` is in the registry's own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// The registry has it for them: this content, whatever becomes of the name.
    Found {
        digest: String,
    },
    /// No registry is asked: it is this machine's own, or the site's.
    Ours,
    NotFound {
        why: String,
    },
    Denied {
        registry: String,
        why: String,
    },
    NoAnswer {
        registry: String,
        why: String,
    },
    NotAllowed {
        registry: String,
        allowed: String,
    },
    Bad {
        why: String,
    },
}

/// All that envd needs to make an instance's container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceSpec {
    /// Whose it is: the key of the user's storages and network. To envd it is a word like any other
    /// (`[a-z0-9._-]`, not a dot first); what it opens is in envd's own table.
    #[serde(default)]
    pub user: String,
    /// The key of the storages of the user's group; empty for a user without one.
    #[serde(default)]
    pub group: String,
    /// The host name inside the instance.
    pub hostname: String,
    pub image: String,
    pub cpus: f64,
    pub memory_bytes: u64,
    pub shm_bytes: u64,
    /// What the container's own files may take, the image and the storages apart; the cluster's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    pub gpus: u32,
    /// The model of graphics processor; any when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_model: Option<String>,
    /// The cards that it was given, by UUID: as many as `gpus`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<String>,
    /// The user's own variables. They reach processes through the agent, never through the container's environment,
    /// which would be saved into images.
    pub env: BTreeMap<String, String>,
    /// Empty: the instance runs until it is stopped. Else it ends when this ends.
    pub command: Vec<String>,
    /// Where files of its storages appear besides: a path inside the instance, and the path inside the instance that
    /// it leads to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
    /// The same for paths that nobody asked for: where the image has something of its own, that stays.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
    /// A folder of its storages, as a path inside the instance, that is copied for it before it starts: it sees the copy
    /// read-only, and nothing that becomes of the folder afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_dir: Option<String>,
    /// Where the command begins; the image's own directory when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_dir: Option<String>,
    /// A task of a job: its command waits until it is told to begin, when all its fellow tasks are there, and its
    /// output is kept whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub task: bool,
    /// The secrets that it uses, by name. Its agent waits until they are brought, and does so after each start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<UseSecret>,
}

/// A storage as an instance sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounted {
    /// The storage's name in envd's table.
    pub storage: String,
    /// Where it appears.
    pub at: String,
    pub read_only: bool,
}

/// Everything that one cluster knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub engine: EngineState,
    pub instances: Vec<Observed>,
}

/// Whether the container engine answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EngineState {
    Ready,
    Unreachable { message: String },
}

/// What is, for one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    pub id: InstanceId,
    /// The generation that envd last worked towards; `None` when nothing was put since envd started.
    pub generation: Option<u64>,
    pub observation: Observation,
    /// The content that its container was made from, whatever the image's name means by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Whose it is, by the container's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Where other instances of the same user reach it, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The group whose storages it may see, as envd was last told; `None` like `generation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What its container takes of the machine while it runs, as the engine knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Takes>,
}

/// What a container takes of its machine while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takes {
    pub cpus_milli: u64,
    pub memory_bytes: u64,
    pub cards: Vec<String>,
}

/// The state of an instance's container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Observation {
    /// No container and nothing under way. With the goal `deleted`: all is gone.
    Absent,
    Pulling {
        done_bytes: u64,
        total_bytes: Option<u64>,
    },
    Starting,
    Running {
        since: Timestamp,
    },
    Stopping,
    Exited {
        exit_code: i32,
        out_of_memory: bool,
    },
    /// envd tried and cannot, and will not before the next generation (or, where `retrying`, tries again by itself).
    Failed {
        failure: Failure,
        message: String,
        retrying: bool,
    },
    Deleting,
}

/// Why an instance cannot be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    BadImage,
    ImageNotFound,
    EngineUnreachable,
    DiskFull,
    /// The container's own files took more than they may. It was stopped; the files are kept.
    OverDiskLimit,
    /// Its container, in which its command was begun, is gone. Commands are never begun a second time by themselves.
    Lost,
    Refused,
    Engine,
}

/// A line of the watch. Between the lines empty ones come as heartbeats, at most [`HEARTBEAT`] apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchEvent {
    /// Everything, instead of all that was said before: the first line, and again whenever the engine comes or goes
    /// or the reader was too slow to be told each change.
    Report(Report),
    Observed(Observed),
}

/// The longest silence on a watch while envd is alive.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// Why envd does not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub message: String,
    /// Why a put was refused with 409.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Stale>,
}

/// What envd knows of an instance whose put had too small a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stale {
    /// The newest generation that was put or that a container was started for.
    pub known: u64,
    /// Whether its container runs; `None` as long as the engine has not been asked.
    pub running: Option<bool>,
}

/// An image on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalImage {
    pub reference: String,
    pub size_bytes: u64,
    pub created_at: Timestamp,
}

/// The machine behind this cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    pub name: String,
    /// Where other machines find it; none where it has no network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    pub cpus: f64,
    pub memory_bytes: u64,
    pub gpus: u32,
    /// Its graphics processors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<CardReport>,
    pub engine: EngineState,
    #[serde(default)]
    pub tenants: Tenants,
    #[serde(default)]
    pub syscalls: Syscalls,
    #[serde(default)]
    pub disk: DiskLimit,
}

/// A graphics processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardReport {
    pub uuid: String,
    pub index: u32,
    pub model: String,
    pub memory_bytes: u64,
    /// Whether it may be given to anybody.
    pub healthy: bool,
    pub memory_used_bytes: u64,
    /// In percent.
    pub busy: u32,
    /// In degrees Celsius.
    pub temperature: Option<u32>,
    /// Programs that use it.
    pub processes: u32,
}

/// What an instance has used of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub instance: InstanceId,
    #[serde(flatten)]
    pub counts: Counts,
}

/// What a container has used since it was started; memory is what it has now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub at: Timestamp,
    pub cpu_nanoseconds: u64,
    /// Without what the kernel only keeps because there is room.
    pub memory_bytes: u64,
    pub disk_read_bytes: u64,
    pub disk_written_bytes: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

/// Whether the users of this machine are kept apart on the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Tenants {
    /// Nothing is known yet.
    #[default]
    Unknown,
    Apart,
    /// `message` says so in a sentence, with the cause.
    NotApart {
        message: String,
    },
}

/// Whether the engine refuses containers the system calls that only an attack on the kernel needs (seccomp).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Syscalls {
    /// Nothing is known yet.
    #[default]
    Unknown,
    Filtered,
    Unfiltered,
}

/// The most bytes in one log record.
pub const LOG_RECORD_MAX: usize = 64 << 10;

/// The head of one log record: stream, then the length of the bytes that follow, big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogHead {
    /// [`gateway_api::stream::STDOUT`] or [`gateway_api::stream::STDERR`].
    pub stream: u8,
    pub length: u32,
}

impl LogHead {
    pub const BYTES: usize = 5;

    pub fn encode(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.length.to_be_bytes();
        [self.stream, a, b, c, d]
    }

    pub fn decode([stream, a, b, c, d]: [u8; Self::BYTES]) -> Self {
        Self { stream, length: u32::from_be_bytes([a, b, c, d]) }
    }
}
