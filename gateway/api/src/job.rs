//! A job: work that runs to its end, made of one or more tasks. Each task is an instance, so all ways into an instance
//! lead into a task as well.
//!
//! A job is in the states of an instance ([`Status`]); [`Job::ended`] says how it came to its end, [`QueuePlace`] why it
//! has not begun.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    id::{InstanceId, JobId},
    instance::{Goal, Status},
    name::{Slug, UserName},
};

/// The body of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitJob {
    /// A job file in any of the languages that are known: OpenPAI v1 and v2, DLC parameters, Determined, our own. It is
    /// kept as it is, byte for byte.
    pub file: String,
    /// A name instead of the file's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the files of a failed task stay to be looked at, instead of what the file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_on_failure: Option<bool>,
    /// Where it is to run; on the site's first cluster when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// A pool instead of the file's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

impl SubmitJob {
    /// The file as it is.
    pub fn new(file: impl Into<String>) -> Self {
        Self { file: file.into(), ..Self::default() }
    }
}

/// A job as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub id: JobId,
    pub name: String,
    pub slug: Slug,
    pub user: UserName,
    pub description: String,
    /// The language of its file: `berth`, `openpai-v1`, `openpai-v2`, `dlc` or `determined`.
    pub dialect: String,
    /// It is there to be worked in, and does not end by itself.
    pub interactive: bool,
    /// 1 to 9, 9 first.
    pub priority: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<String>,
    /// The workspace that it belongs to, as its file names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Where it runs.
    #[serde(default)]
    pub cluster: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// How long it may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<u64>,
    /// Whether the files of a failed task stay to be looked at.
    pub keep_on_failure: bool,
    pub goal: Goal,
    pub status: Status,
    /// Its place in the line, while it waits for room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePlace>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<JobEnd>,
    /// Which try this is, from 1.
    pub attempt: u32,
    pub roles: Vec<JobRole>,
    /// Those of this try, in the order of the roles; none before it has begun.
    pub tasks: Vec<JobTask>,
    /// What was said about its file and is no mistake.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<JobNote>,
    /// What can be done with it now.
    pub actions: Vec<JobAction>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When its first task ran for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// Until when the files of its tasks are kept, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub kept_until: Option<Timestamp>,
}

/// So many like tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobRole {
    pub name: String,
    pub tasks: u32,
    pub image: String,
    /// As it stands in the file; empty for one that is only there to be worked in.
    pub command: String,
    pub cpus: f64,
    pub memory_bytes: u64,
    pub shm_bytes: u64,
    pub gpus: u32,
}

/// One task of a try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobTask {
    pub role: String,
    /// From 0, among those of its role.
    pub index: u32,
    /// What it is called wherever an instance's name is asked for, and by its fellow tasks on the network.
    pub name: String,
    /// Its machine, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TaskEnd>,
    /// Where its fellow tasks reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its ports by label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<String, Vec<u16>>,
    /// The cards that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<String>,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskEnd {
    pub cause: EndCause,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What the machine said, in English; empty where the cause says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobEnd {
    pub cause: EndCause,
    /// Of the task that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The task that decided it, as `role/index`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Who stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The last that the task wrote which decided it, where it failed; only to its owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
}

/// Why something is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    Succeeded,
    /// Its command ended with an exit code other than 0.
    ExitCode,
    /// Its command was ended by a signal.
    Signal,
    OutOfMemory,
    /// Its files took more room than they may.
    OverDiskLimit,
    /// Its image cannot be had.
    Image,
    /// Its container is gone, as after the machine was set up anew.
    Lost,
    /// The machine cannot start it.
    CannotStart,
    TimeLimit,
    /// Nobody used it, and it did nothing, for as long as its file allows.
    Idle,
    Stopped,
    /// Its name was taken by something else while it waited.
    NameTaken,
}

/// Something that can be done with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobAction {
    Stop,
    Delete,
    /// The same file once more, as a new job.
    Rerun,
    /// Another time limit or priority.
    Change,
    Logs,
}

/// Other terms for a job. What is left out stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeJob {
    /// How long it may run from its start; 0 for as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<u64>,
    /// 1 to 9, 9 first. It counts while the job waits, also for another try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
}

/// The body of a rerun.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RerunJob {
    /// The new job's name; the old one's with a number when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Something said about a job file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobNote {
    /// `error` or `warning`.
    pub level: String,
    pub code: String,
    /// From 1; absent where it is about the file as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// A JSON pointer into the file.
    pub pointer: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
}

/// A place in the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueuePlace {
    /// From 1, among all that wait.
    pub position: u32,
    pub reason: QueueReason,
    /// The values in the reason's sentence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// When it starts at the latest, where the time limits of what runs say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub starts_by: Option<Timestamp>,
    /// With so many graphics processors for each task it would start at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_now_with_gpus: Option<u32>,
}

/// Why something waits in the line. The params of each are named beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueReason {
    /// Of `resource` at most `free` are free on one machine, where `wanted` are.
    NoRoom,
    /// Of its `tasks` only `fit` find room at once.
    NotTogether,
    /// The room is kept for what is before it.
    Behind,
    /// `owner` (a `user`, `group` or `share` named `name`) holds `used` of at most `limit` of `resource`; `wanted` more.
    Quota,
    /// What is left of the quota of `owner` is kept for what is before it.
    QuotaKept,
    /// `wanted` of `resource` is more than `owner` may ever hold: `limit`.
    QuotaTooSmall,
    /// The machine is not ready.
    NotReady,
    /// No machine has that much: of `resource` at most `largest`.
    Never,
}

/// What would become of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum DryRun {
    StartsNow,
    Waits { queue: QueuePlace },
    Never { reason: QueueReason, params: BTreeMap<String, String> },
}

impl JobEnd {
    /// An end of which no more is known.
    pub fn new(cause: EndCause) -> Self {
        Self { cause, exit_code: None, task: None, by: None, message: String::new(), last_lines: Vec::new() }
    }
}

impl JobAction {
    pub const ALL: [Self; 5] = [Self::Stop, Self::Delete, Self::Rerun, Self::Change, Self::Logs];

    /// Whether it makes sense for a job in that state.
    pub fn fits(self, status: &Status) -> bool {
        let over = matches!(status, Status::Succeeded | Status::Failed { .. } | Status::Stopped { .. });
        match self {
            Self::Stop | Self::Change => {
                !over && !matches!(status, Status::Stopping { .. } | Status::Deleting { .. })
            }
            Self::Rerun | Self::Logs => !matches!(status, Status::Deleting { .. }),
            Self::Delete => true,
        }
    }

    /// The word as it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Delete => "delete",
            Self::Rerun => "rerun",
            Self::Change => "change",
            Self::Logs => "logs",
        }
    }
}

/// Something that happened to a job, from its submission on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum JobEvent {
    Submitted {},
    /// Its tasks have got their room.
    Started {
        attempt: u32,
    },
    /// Its images are fetched. Like the next, it may be missing where that took no time.
    Pulling {},
    /// Its containers are made.
    Creating {},
    /// All its tasks are there, and were told to begin.
    Begun {},
    /// A try has ended and there is another one.
    Retried {
        end: JobEnd,
    },
    /// Somebody changed the time limit or the priority.
    Changed {
        by: String,
    },
    StopAsked {
        by: String,
    },
    Ended {
        end: JobEnd,
    },
}

/// A line of what happened to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobEventAt {
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: JobEvent,
}
