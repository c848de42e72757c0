//! The cluster behind this gateway: envd's client, and what is known of its health.

use std::{collections::BTreeMap, path::Path, sync::RwLock};

use envd_api::{
    client::EnvdClient,
    control::{EngineState, NodeReport, Takes, Tenants},
};
use gateway_api::{
    InstanceId,
    instance::{Status, WaitReason},
};
use jiff::Timestamp;

/// One cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) envd: EnvdClient,
    known: RwLock<Known>,
}

/// What the last answer said.
#[derive(Debug, Clone)]
struct Known {
    health: Health,
    node: Option<NodeReport>,
    /// Instances of which it has a container and the store has no row.
    unknown: BTreeMap<InstanceId, Unknown>,
}

/// A container that the store does not know. Nobody touches it, so what it takes is not there for others.
#[derive(Debug, Clone)]
pub(crate) struct Unknown {
    /// Since when it runs, if it does, and what it takes as long.
    pub(crate) running: Option<(Timestamp, Takes)>,
}

/// Whether the cluster can act now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    /// Nothing is known yet.
    New,
    Ready,
    ClusterUnreachable {
        message: String,
    },
    EngineUnreachable {
        message: String,
    },
}

impl Cluster {
    pub(crate) fn new(data: &Path) -> Self {
        Self {
            envd: EnvdClient::new(data.join("envd.sock")),
            known: RwLock::new(Known { health: Health::New, node: None, unknown: BTreeMap::new() }),
        }
    }

    /// Notes the health; answers whether it is news.
    pub(crate) fn note(&self, health: Health) -> bool {
        let mut known = self.known.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let news = known.health != health;
        if news {
            tracing::info!(?health, "the cluster's health changed");
        }
        known.health = health;
        news
    }

    pub(crate) fn note_node(&self, node: NodeReport) {
        self.known.write().unwrap_or_else(std::sync::PoisonError::into_inner).node = Some(node);
    }

    /// Notes a container that the store does not know, or that there is none; answers whether that is news.
    pub(crate) fn note_unknown(&self, instance: &InstanceId, unknown: Option<&Unknown>) -> bool {
        let mut known = self.known.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = match unknown {
            Some(unknown) => known.unknown.insert(instance.clone(), unknown.clone()),
            None => known.unknown.remove(instance),
        };
        before.is_some() != unknown.is_some()
    }

    /// The containers that the store does not know, by instance.
    pub(crate) fn unknown(&self) -> BTreeMap<InstanceId, Unknown> {
        self.known().unknown
    }

    /// A whole report has come: what it does not name is not there.
    pub(crate) fn forget_unknown_but(&self, there: impl Fn(&InstanceId) -> bool) {
        let mut known = self.known.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.unknown.retain(|id, _| there(id));
    }

    pub(crate) fn health(&self) -> Health {
        self.known().health
    }

    /// The machine as last reported.
    pub(crate) fn node(&self) -> Option<NodeReport> {
        self.known().node
    }

    /// Why users are not kept apart on the cluster's network, if they are not.
    pub(crate) fn tenants_trouble(&self) -> Option<String> {
        match self.known().node?.tenants {
            Tenants::NotApart { message } => Some(message),
            Tenants::Apart | Tenants::Unknown => None,
        }
    }

    /// What a user sees while the cluster cannot act: an instance that should be on its way waits, and for what.
    pub(crate) fn seen(&self, status: Status) -> Status {
        match status {
            Status::Waiting { .. } | Status::Pulling { .. } | Status::Starting => match self.health() {
                Health::Ready | Health::New => status,
                Health::ClusterUnreachable { message } => {
                    Status::Waiting { reason: WaitReason::ClusterUnreachable, message }
                }
                Health::EngineUnreachable { message } => {
                    Status::Waiting { reason: WaitReason::EngineUnreachable, message }
                }
            },
            Status::Running { .. }
            | Status::Stopping
            | Status::Stopped { .. }
            | Status::Succeeded
            | Status::Failed { .. }
            | Status::Deleting => status,
        }
    }

    fn known(&self) -> Known {
        self.known.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

impl From<EngineState> for Health {
    fn from(engine: EngineState) -> Self {
        match engine {
            EngineState::Ready => Self::Ready,
            EngineState::Unreachable { message } => Self::EngineUnreachable { message },
        }
    }
}
