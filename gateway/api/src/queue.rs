//! The line: what waits for room, for everyone to see how long it is.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{job::QueuePlace, name::UserName};

/// Something that waits. Of what belongs to others one knows only what it takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Queued {
    /// From 1; 0 for what no machine could ever take.
    pub position: u32,
    pub kind: QueuedKind,
    /// 1 to 9, 9 first.
    pub priority: u8,
    /// All of its tasks together.
    pub gpus: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_model: Option<String>,
    pub cpus: f64,
    pub memory_bytes: u64,
    /// When it began to wait.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// What it is, for its owner and whoever oversees them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<QueuedWork>,
}

/// What waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueuedKind {
    Instance,
    Job,
}

/// Whose it is, and why it waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueuedWork {
    /// The id of the instance or the job.
    pub id: String,
    pub name: String,
    pub user: UserName,
    pub queue: QueuePlace,
}
