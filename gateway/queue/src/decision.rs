//! What is decided, and why: reasons are types, so that every language can say them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::situation::{Kind, Owner, Placed};

/// What becomes of a work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub id: String,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Each task with its machine and cards, in the order of the work's needs.
    Start { tasks: Vec<Placed> },
    Wait {
        /// From 1, among all that wait.
        position: usize,
        reason: Reason,
        /// When it starts at the latest, where time limits say so.
        starts_by: Option<Timestamp>,
        /// What would start at this moment.
        instead: Option<Less>,
    },
    /// It can never start as it is.
    Never { reason: Impossible },
}

/// Why something waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// The machines have not enough of it free: at most `free` for one task where `wanted` are.
    NoRoom { resource: Resource, wanted: u64, free: u64 },
    /// One task would fit, but not all of them at once.
    NotTogether { tasks: u64, fit: u64 },
    /// It would fit, but the room is kept for what is before it.
    Behind { id: String },
    /// Its owner holds so much already.
    Allowance { owner: Owner, resource: Resource, limit: u64, used: u64, wanted: u64 },
    /// What is left of its owner's allowance is kept for what is before it.
    AllowanceKept { owner: Owner, resource: Resource, by: String },
    /// It is more than its owner may ever hold.
    AllowanceTooSmall { owner: Owner, resource: Resource, limit: u64, wanted: u64 },
    /// Only machines that are not ready could take it.
    NotReady,
}

/// Why something can never start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Impossible {
    /// No machine has that much for one task.
    TooLarge {
        resource: Resource,
        wanted: u64,
        largest: u64,
    },
    /// One task fits, all of them do not, even on the empty cluster.
    NotTogether {
        tasks: u64,
        fit: u64,
    },
    NoSuchModel {
        model: String,
        known: Vec<String>,
    },
    /// The cluster has no such pool.
    NoSuchPool {
        pool: String,
        known: Vec<String>,
    },
    /// The pool is for other kinds of work.
    NotForKind {
        pool: String,
        kinds: Vec<Kind>,
    },
    /// There is no task in it.
    Nothing,
}

/// What allowances and machines have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// In thousandths.
    Cpus,
    /// In MiB.
    Memory,
    Gpus,
    GpusOf(String),
    Instances,
    Jobs,
    /// Containers.
    Tasks,
}

/// The same work with fewer cards for each task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Less {
    pub gpus_per_task: u32,
}
