//! The machines that run instances.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::InstanceId;

/// One machine and the most that an instance can ask of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub name: String,
    pub state: NodeState,
    pub cpus: f64,
    pub memory_bytes: u64,
    pub gpus: u32,
    #[serde(default)]
    pub disk_limit: DiskLimit,
    /// For admins: what runs or rests on it for instances that the store does not know, as after a backup of the store
    /// was restored. Nothing ever touches it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub unknown: Vec<InstanceId>,
}

/// Whether a node can start instances now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NodeState {
    Ready,
    Unwell { message: String },
}

/// How the limit on the files that an instance makes outside its storage is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiskLimit {
    /// Measured by the clock; an instance over its limit is stopped.
    #[default]
    Polled,
    /// The file system refuses to write more.
    Hard,
}
