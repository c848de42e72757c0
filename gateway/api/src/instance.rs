//! An instance: a machine of one's own. Users write its [`Goal`], nodes report its [`Status`].

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    id::{InstanceId, JobId},
    job::{EndCause, QueuePlace},
    name::{InstanceName, Slug, UserName},
    secret::UseSecret,
};

/// The smallest memory that an instance can be given.
pub const MEMORY_MIN_BYTES: u64 = 64 << 20;
/// The shared memory of an instance that asks for none in particular.
pub const SHM_DEFAULT_BYTES: u64 = 64 << 20;

/// The body of a create. What is left out takes the site's default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateInstance {
    /// Checked by the gateway, so that a wrong one gets a sentence of its own.
    #[schema(example = "train_1")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    pub cpus: f64,
    pub memory_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shm_bytes: Option<u64>,
    #[serde(default)]
    pub gpus: u32,
    /// The model of graphics processor, by its name or the part of it that people say, such as `3090`; any when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_model: Option<String>,
    /// Where it is to be; the site's first cluster when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The pool to take room from; any that takes instances when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What to run instead of nothing: the instance then ends when this ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// SSH starts it when it is stopped, without asking.
    #[serde(default)]
    pub auto_start: bool,
    /// Of the caller's secrets, those that it uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<UseSecret>,
}

/// An instance as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Instance {
    pub id: InstanceId,
    pub name: InstanceName,
    pub slug: Slug,
    pub user: UserName,
    pub image: String,
    pub cpus: f64,
    pub memory_bytes: u64,
    pub shm_bytes: u64,
    pub gpus: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_model: Option<String>,
    /// Where it is.
    #[serde(default)]
    pub cluster: String,
    /// The pool that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The graphics processors that it has, by UUID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub command: Vec<String>,
    /// The secrets that it uses, by name; only its owner sees them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<UseSecret>,
    /// SSH starts it when it is stopped, without asking.
    #[serde(default)]
    pub auto_start: bool,
    pub goal: Goal,
    pub status: Status,
    /// What can be done with it now, so that no client derives that again.
    pub actions: Vec<Action>,
    /// Its place in the line, while it waits for room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePlace>,
    /// The job that it is a task of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// When each step of its last start began.
    #[serde(default)]
    pub start_times: StartTimes,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// When each step of a start began; those that it did not need are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartTimes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub waiting: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub pulling: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub starting: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub running: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub failed: Option<Timestamp>,
}

/// What should be. Written by users only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    Running,
    Stopped,
    Deleted,
}

/// What is, as far as the gateway knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Status {
    Waiting {
        reason: WaitReason,
        message: String,
    },
    Pulling {
        done_bytes: u64,
        total_bytes: Option<u64>,
    },
    Starting,
    Running {
        #[schema(value_type = String, format = DateTime)]
        since: Timestamp,
    },
    Stopping {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_up: Option<HeldUp>,
    },
    Stopped {
        exit_code: Option<i32>,
    },
    /// Its command ended with exit code 0.
    Succeeded,
    Failed {
        /// For whoever finds no words for the cause.
        reason: String,
        exit_code: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<EndCause>,
    },
    Deleting {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_up: Option<HeldUp>,
    },
}

/// What keeps a stop or a deletion from going on. It goes on by itself once that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldUp {
    pub reason: HeldUpReason,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeldUpReason {
    /// envd does not answer.
    ClusterUnreachable,
    /// envd answers, the container engine does not.
    EngineUnreachable,
    /// A try failed, for the reason in the message; the next one comes by itself.
    Retrying,
}

/// Why an instance waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// It waits for room, or for its owner's quota; its place in the line says more.
    Queued,
    /// The cluster has been told and has not answered yet.
    StartingUp,
    /// envd does not answer.
    ClusterUnreachable,
    /// envd answers, the container engine does not.
    EngineUnreachable,
    /// A try failed, for the reason in the message; the next one comes by itself.
    Retrying,
}

/// Something that can be done with an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Start,
    Stop,
    Restart,
    Delete,
    Terminal,
    Exec,
    Logs,
    /// An app or a port of it, in a browser.
    Open,
    /// Its files, as an image.
    Save,
}

impl Action {
    pub const ALL: [Self; 9] = [
        Self::Start,
        Self::Stop,
        Self::Restart,
        Self::Delete,
        Self::Terminal,
        Self::Exec,
        Self::Logs,
        Self::Open,
        Self::Save,
    ];

    /// The word as it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Delete => "delete",
            Self::Terminal => "terminal",
            Self::Exec => "exec",
            Self::Logs => "logs",
            Self::Open => "open",
            Self::Save => "save",
        }
    }
}

impl Status {
    /// On its way to a stop, with nothing in the way.
    pub const STOPPING: Self = Self::Stopping { held_up: None };
    /// On its way out, with nothing in the way.
    pub const DELETING: Self = Self::Deleting { held_up: None };

    /// The word as it stands in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Waiting { .. } => "waiting",
            Self::Pulling { .. } => "pulling",
            Self::Starting => "starting",
            Self::Running { .. } => "running",
            Self::Stopping { .. } => "stopping",
            Self::Stopped { .. } => "stopped",
            Self::Succeeded => "succeeded",
            Self::Failed { .. } => "failed",
            Self::Deleting { .. } => "deleting",
        }
    }

    /// Whether the state changes by itself: something is being done.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Waiting { .. }
            | Self::Pulling { .. }
            | Self::Starting
            | Self::Stopping { .. }
            | Self::Deleting { .. } => true,
            Self::Running { .. } | Self::Stopped { .. } | Self::Succeeded | Self::Failed { .. } => false,
        }
    }

    /// Whether something is in its way: it goes on by itself, and nobody knows when.
    pub fn is_held_up(&self) -> bool {
        match self {
            Self::Waiting { reason, .. } => match reason {
                WaitReason::ClusterUnreachable | WaitReason::EngineUnreachable | WaitReason::Retrying => true,
                WaitReason::Queued | WaitReason::StartingUp => false,
            },
            Self::Stopping { held_up } | Self::Deleting { held_up } => held_up.is_some(),
            Self::Pulling { .. }
            | Self::Starting
            | Self::Running { .. }
            | Self::Stopped { .. }
            | Self::Succeeded
            | Self::Failed { .. } => false,
        }
    }

    /// Whether `action` makes sense in this state.
    pub fn allows(&self, action: Action) -> bool {
        match action {
            Action::Start => match self {
                Self::Stopped { .. } | Self::Succeeded | Self::Failed { .. } | Self::Stopping { .. } => true,
                Self::Waiting { .. }
                | Self::Pulling { .. }
                | Self::Starting
                | Self::Running { .. }
                | Self::Deleting { .. } => false,
            },
            Action::Stop => match self {
                Self::Waiting { .. } | Self::Pulling { .. } | Self::Starting | Self::Running { .. } => true,
                Self::Stopping { .. }
                | Self::Stopped { .. }
                | Self::Succeeded
                | Self::Failed { .. }
                | Self::Deleting { .. } => false,
            },
            Action::Restart | Action::Terminal | Action::Exec | Action::Open => match self {
                Self::Running { .. } => true,
                Self::Waiting { .. }
                | Self::Pulling { .. }
                | Self::Starting
                | Self::Stopping { .. }
                | Self::Stopped { .. }
                | Self::Succeeded
                | Self::Failed { .. }
                | Self::Deleting { .. } => false,
            },
            Action::Save => match self {
                Self::Running { .. } | Self::Stopped { .. } | Self::Succeeded | Self::Failed { .. } => true,
                Self::Waiting { .. }
                | Self::Pulling { .. }
                | Self::Starting
                | Self::Stopping { .. }
                | Self::Deleting { .. } => false,
            },
            Action::Logs => match self {
                Self::Waiting { .. } | Self::Pulling { .. } | Self::Deleting { .. } => false,
                Self::Starting
                | Self::Running { .. }
                | Self::Stopping { .. }
                | Self::Stopped { .. }
                | Self::Succeeded
                | Self::Failed { .. } => true,
            },
            // Deleting what is being deleted is already done, and so not an error.
            Action::Delete => true,
        }
    }

    /// All that [`Self::allows`].
    pub fn actions(&self) -> Vec<Action> {
        Action::ALL.into_iter().filter(|&action| self.allows(action)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What can be done in which state, as a table: a change here is a change for every user.
    #[test]
    fn actions_by_state() {
        let since = Timestamp::UNIX_EPOCH;
        let states = [
            Status::Waiting { reason: WaitReason::StartingUp, message: String::new() },
            Status::Pulling { done_bytes: 0, total_bytes: None },
            Status::Starting,
            Status::Running { since },
            Status::STOPPING,
            Status::Stopped { exit_code: None },
            Status::Succeeded,
            Status::Failed { reason: String::new(), exit_code: None, cause: None },
            Status::DELETING,
        ];
        let lines: Vec<_> = states
            .iter()
            .map(|state| {
                let words: Vec<_> = state.actions().into_iter().map(Action::word).collect();
                format!("{:<10} {}", state.word(), words.join(" "))
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        waiting    stop delete
        pulling    stop delete
        starting   stop delete logs
        running    stop restart delete terminal exec logs open save
        stopping   start delete logs
        stopped    start delete logs save
        succeeded  start delete logs save
        failed     start delete logs save
        deleting   delete
        ");
    }
}
