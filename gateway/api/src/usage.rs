//! What instances use of the machines while they run, and what everyone has held over time.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::name::UserName;

/// What an instance or a task used around a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sample {
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Processors: 1.5 is one and a half of them.
    pub cpus: f64,
    pub memory_bytes: u64,
    /// A second, as all that follow.
    pub disk_read_bytes: u64,
    pub disk_written_bytes: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// How much of the time its graphics processors computed, in percent; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_busy: Option<f64>,
    /// The memory of its graphics processors that is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory_bytes: Option<u64>,
}

/// What somebody has held, of one model of graphics processor or of none; and what their images take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    pub user: UserName,
    /// The group that the user was in at the time.
    pub group: String,
    /// Absent for what had no graphics processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_model: Option<String>,
    /// Each counts for as long as it was held, busy or not.
    pub gpu_hours: f64,
    pub cpu_hours: f64,
    /// How often something was started.
    pub starts: u64,
    /// What the user's images take in the registry now, saved and pushed ones alike; a layer that several have counts
    /// once. Only where `gpu_model` is absent, so that a sum over all counts it once.
    #[serde(default)]
    pub image_bytes: u64,
}
