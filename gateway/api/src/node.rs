//! The machines that run instances.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{InstanceId, name::UserName};

/// One machine and the most that an instance can ask of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub name: String,
    /// Where other machines find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// The cluster that it is.
    #[serde(default)]
    pub cluster: String,
    /// The pools that it, or a part of its cards, is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
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
    /// For admins: what makes it less safe than it should be, although it runs instances.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<NodeWarning>,
}

/// What is to be mended about a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeWarning {
    /// Instances of one user can reach those of others over the network.
    TenantsNotApart,
    /// The engine's default is no seccomp profile.
    SyscallsNotFiltered,
}

/// A graphics processor, and who has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gpu {
    pub node: String,
    #[serde(default)]
    pub cluster: String,
    /// The pools that it is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// Its number on the node; the UUID is the same also after somebody has moved it.
    pub index: u32,
    pub uuid: String,
    pub model: String,
    pub memory_bytes: u64,
    pub memory_used_bytes: u64,
    /// How much of the time it computed, in percent.
    pub busy: u32,
    /// In degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<u32>,
    /// Programs that use it.
    pub processes: u32,
    /// One that does not answer is given to nobody.
    pub healthy: bool,
    /// Whether somebody has it.
    pub held: bool,
    /// Who has it, where the site lets everyone see that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<GpuHolder>,
}

/// Who has a graphics processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuHolder {
    pub user: UserName,
    /// The instance, or the task of a job as `job/role/index`.
    pub name: String,
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
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
