//! What is so when a decision is made.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub const PRIORITY_MIN: u8 = 1;
pub const PRIORITY_MAX: u8 = 9;

/// Everything that a decision depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Situation {
    pub now: Timestamp,
    pub rules: Rules,
    pub nodes: Vec<Node>,
    pub pools: Vec<Pool>,
    /// Everything that holds room, also what is starting or ending.
    pub running: Vec<Running>,
    pub waiting: Vec<Work>,
    pub allowances: BTreeMap<Owner, Allowance>,
}

/// What a site sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// How long one waits for the next higher priority; `None` for ever.
    pub ageing: Option<Duration>,
}

/// A machine and all that it has, taken or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub cluster: String,
    /// Whether it can start something now.
    pub ready: bool,
    pub cpus_milli: u64,
    pub memory_mib: u64,
    pub cards: Vec<Card>,
}

/// A part of what there is, for some kinds of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub name: String,
    /// `None` is every one.
    pub cluster: Option<String>,
    /// The cards of these models; empty is whole machines.
    pub models: BTreeSet<String>,
    pub kinds: BTreeSet<Kind>,
}

/// A graphics processor. One that is not healthy is given to nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Unique on its machine.
    pub id: String,
    pub model: String,
    pub healthy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Instance,
    Job,
    /// A failed task that is looked at.
    Debug,
}

/// Something that waits for its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub id: String,
    pub kind: Kind,
    /// What it is to pools: a job to work in goes where instances do.
    pub pool_kind: Kind,
    pub user: String,
    pub group: String,
    pub share: Option<String>,
    pub cluster: String,
    /// 1 to 9, 9 first.
    pub priority: u8,
    pub submitted: Timestamp,
    /// One for each size of task.
    pub tasks: Vec<Need>,
    /// The model of card, `None` for any.
    pub model: Option<String>,
    /// `None` is what is open to all of its kind.
    pub pool: Option<String>,
    /// Its time limit.
    pub longest: Option<Duration>,
}

/// So many tasks that need so much each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Need {
    pub count: u32,
    pub cpus_milli: u64,
    pub memory_mib: u64,
    pub gpus: u32,
}

/// Something that holds room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub id: String,
    pub kind: Kind,
    pub user: String,
    pub group: String,
    pub share: Option<String>,
    pub started: Timestamp,
    /// The order of starts: larger than that of everything before it, works of one decision in its order.
    pub sequence: u64,
    /// When its time limit ends it.
    pub ends_by: Option<Timestamp>,
    pub tasks: Vec<Placed>,
}

/// A task and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    pub node: String,
    pub cpus_milli: u64,
    pub memory_mib: u64,
    pub cards: Vec<String>,
}

/// Who is allowed so much.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    User(String),
    Group(String),
    Share(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Allowance {
    pub limits: Limits,
    pub raise: Option<Raise>,
}

impl Allowance {
    /// The limits at `now`: what is raised, and the rest as it always is.
    pub fn in_force(&self, now: Timestamp) -> Limits {
        let always = self.limits.clone();
        let Some(raised) = self.raise.as_ref().filter(|raise| now < raise.until).map(|raise| &raise.limits)
        else {
            return always;
        };
        let mut gpus_by_model = always.gpus_by_model;
        gpus_by_model.extend(raised.gpus_by_model.clone());
        Limits {
            cpus_milli: raised.cpus_milli.or(always.cpus_milli),
            memory_mib: raised.memory_mib.or(always.memory_mib),
            gpus: raised.gpus.or(always.gpus),
            gpus_by_model,
            instances: raised.instances.or(always.instances),
            jobs: raised.jobs.or(always.jobs),
            tasks: raised.tasks.or(always.tasks),
            image_bytes: raised.image_bytes.or(always.image_bytes),
        }
    }
}

/// Other limits for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raise {
    pub until: Timestamp,
    /// What is `None` here is as it always is.
    pub limits: Limits,
}

/// The most that may be held at a time; `None` is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    pub cpus_milli: Option<u64>,
    pub memory_mib: Option<u64>,
    pub gpus: Option<u64>,
    /// By model, besides the sum.
    pub gpus_by_model: BTreeMap<String, u64>,
    pub instances: Option<u64>,
    pub jobs: Option<u64>,
    /// Tasks of all that runs; an instance is one.
    #[serde(default)]
    pub tasks: Option<u64>,
    /// What images may take. Nothing in the line waits for it: it is kept here with the rest.
    #[serde(default)]
    pub image_bytes: Option<u64>,
}

impl Work {
    /// Its place in the line: the smaller is the earlier.
    pub(crate) fn effective_priority(&self, now: Timestamp, rules: Rules) -> u8 {
        let base = self.priority.clamp(PRIORITY_MIN, PRIORITY_MAX);
        let Some(step) = rules.ageing.map(|ageing| ageing.as_secs()).filter(|step| *step > 0) else {
            return base;
        };
        let waited = now.duration_since(self.submitted).as_secs().max(0);
        let steps = u64::try_from(waited).unwrap_or(0) / step;
        base.saturating_add(u8::try_from(steps).unwrap_or(PRIORITY_MAX)).min(PRIORITY_MAX)
    }

    pub(crate) fn gpus(&self) -> u64 {
        self.tasks.iter().map(|need| u64::from(need.count) * u64::from(need.gpus)).sum()
    }
}
