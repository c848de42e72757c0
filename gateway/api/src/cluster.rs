//! The machines as everyone may see them before asking for a part of one: what is there and what is taken.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::node::NodeState;

/// What is there, what is taken, and how many wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cluster {
    pub nodes: Vec<ClusterNode>,
    /// Jobs and instances in the line.
    pub waiting: u32,
}

/// One machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClusterNode {
    pub name: String,
    /// The cluster that it is.
    #[serde(default)]
    pub cluster: String,
    /// The pools that it, or a part of its cards, is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    pub state: NodeState,
    /// So many are given out: more than there are where the site shares them.
    pub cpus: f64,
    pub cpus_held: f64,
    pub memory_bytes: u64,
    pub memory_held_bytes: u64,
    pub cards: Vec<ClusterCard>,
}

/// One graphics processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClusterCard {
    pub id: String,
    pub model: String,
    pub healthy: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<CardHolder>,
}

/// Who has a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CardHolder {
    /// Absent for those who need not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
}
