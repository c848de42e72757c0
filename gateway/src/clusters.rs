//! The clusters behind this gateway: of each, envd's client and what is known of its health.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use envd_api::{
    client::EnvdClient,
    control::{EngineState, LocalImage, NodeReport, Syscalls, Takes, Tenants},
};
use gateway_api::{
    InstanceId,
    instance::{HeldUp, HeldUpReason, Status, WaitReason},
};
use jiff::Timestamp;
use tokio::{sync::Notify, time::timeout};

use crate::{
    config::ClusterSetting,
    error::{Error, chain},
};

/// The cluster of a site that lists none, and of what was there before a site had several.
pub(crate) const DEFAULT: &str = "default";
/// How long people wait for a list of the engine's images. An engine that hangs would hold them up for much longer.
const IMAGES_ANSWER: Duration = Duration::from_secs(2);

/// All clusters of the site, in the order of its settings. What names none goes to the first.
#[derive(Debug)]
pub(crate) struct Clusters {
    all: Vec<Arc<Cluster>>,
    /// Stands in for those that the settings do not list any more.
    gone: Cluster,
}

/// One cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) name: String,
    pub(crate) envd: EnvdClient,
    /// Wakes the loop that tells it what should be.
    pub(crate) wake: Notify,
    known: RwLock<Known>,
}

/// What the last answer said.
#[derive(Debug, Clone)]
struct Known {
    health: Health,
    node: Option<NodeReport>,
    /// Instances of which it has a container and the store has no row.
    unknown: BTreeMap<InstanceId, Unknown>,
    /// The platform's images that it had when it last said so.
    images: Vec<LocalImage>,
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

impl Clusters {
    pub(crate) fn new(all: &[ClusterSetting]) -> Self {
        let gone = Cluster::new("", Path::new("/nonexistent"));
        let message = "its cluster is not in berth.toml any more".to_owned();
        gone.known.write().unwrap_or_else(PoisonError::into_inner).health =
            Health::ClusterUnreachable { message };
        let cluster = |one: &ClusterSetting| Arc::new(Cluster::new(&one.name, &one.data));
        Self { all: all.iter().map(cluster).collect(), gone }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Cluster>> {
        self.all.iter()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.all.iter().map(|cluster| cluster.name.clone()).collect()
    }

    /// Where goes what names none.
    pub(crate) fn first(&self) -> &Cluster {
        self.all.first().map_or(&self.gone, |first| first)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Cluster> {
        self.all.iter().find(|cluster| cluster.name == name).map(|cluster| &**cluster)
    }

    /// The one that a request names, or the first.
    pub(crate) fn asked(&self, name: Option<&str>) -> Result<&Cluster, Error> {
        let Some(name) = name else { return Ok(self.first()) };
        self.get(name).ok_or_else(|| Error::NotHere {
            kind: "cluster",
            name: name.to_owned(),
            known: self.names().join(", "),
        })
    }

    /// The one that a row names. One that is not there any more never answers, and says why.
    pub(crate) fn of(&self, name: &str) -> &Cluster {
        self.get(name).unwrap_or(&self.gone)
    }

    /// Something is to be told to one of them.
    pub(crate) fn wake(&self) {
        self.all.iter().for_each(|cluster| cluster.wake.notify_one());
    }
}

impl Cluster {
    fn new(name: &str, data: &Path) -> Self {
        Self {
            name: name.to_owned(),
            envd: EnvdClient::new(data.join("envd.sock")),
            wake: Notify::new(),
            known: RwLock::new(Known {
                health: Health::New,
                node: None,
                unknown: BTreeMap::new(),
                images: Vec::new(),
            }),
        }
    }

    /// Notes the health; answers whether it is news.
    pub(crate) fn note(&self, health: Health) -> bool {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let news = known.health != health;
        if news {
            tracing::info!(cluster = self.name, ?health, "the cluster's health changed");
        }
        known.health = health;
        news
    }

    pub(crate) fn note_node(&self, node: NodeReport) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).node = Some(node);
    }

    /// Notes a container that the store does not know, or that there is none; answers whether that is news.
    pub(crate) fn note_unknown(&self, instance: &InstanceId, unknown: Option<&Unknown>) -> bool {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
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
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.unknown.retain(|id, _| there(id));
    }

    /// The platform's images on it, unless nobody answers that at once.
    pub(crate) async fn images(&self) -> Option<Vec<LocalImage>> {
        match self.health() {
            Health::ClusterUnreachable { .. } | Health::EngineUnreachable { .. } => return None,
            Health::New | Health::Ready => {}
        }
        let failed = match timeout(IMAGES_ANSWER, self.envd.images()).await {
            Ok(Ok(images)) => {
                self.known.write().unwrap_or_else(PoisonError::into_inner).images.clone_from(&images);
                return Some(images);
            }
            Ok(Err(error)) => chain(&error),
            Err(_) => format!("no answer within {} s", IMAGES_ANSWER.as_secs()),
        };
        tracing::warn!(cluster = self.name, error = failed, "the images of the engine are not listed");
        None
    }

    /// The platform's images on it, as it last said.
    pub(crate) fn last_images(&self) -> Vec<LocalImage> {
        self.known().images
    }

    pub(crate) fn health(&self) -> Health {
        self.known().health
    }

    /// The machine as last reported.
    pub(crate) fn node(&self) -> Option<NodeReport> {
        self.known().node
    }

    /// Why envd cannot be asked, if it cannot.
    pub(crate) fn cluster_trouble(&self) -> Option<String> {
        match self.health() {
            Health::New => Some("envd has not answered yet".to_owned()),
            Health::ClusterUnreachable { message } => Some(message),
            Health::Ready | Health::EngineUnreachable { .. } => None,
        }
    }

    /// Why its engine cannot be asked, if it cannot.
    pub(crate) fn engine_trouble(&self) -> Option<String> {
        match self.health() {
            Health::EngineUnreachable { message } => Some(message),
            Health::New | Health::Ready | Health::ClusterUnreachable { .. } => None,
        }
    }

    /// Why users are not kept apart on the cluster's network, if they are not.
    pub(crate) fn tenants_trouble(&self) -> Option<String> {
        match self.known().node?.tenants {
            Tenants::NotApart { message } => Some(message),
            Tenants::Apart | Tenants::Unknown => None,
        }
    }

    /// Why instances can reach more of the kernel than they need, if they can.
    pub(crate) fn syscalls_trouble(&self) -> Option<String> {
        match self.known().node?.syscalls {
            Syscalls::Unfiltered => Some("the engine does not filter system calls (seccomp)".to_owned()),
            Syscalls::Filtered | Syscalls::Unknown => None,
        }
    }

    /// What a user sees while the cluster cannot act: what should be on its way waits or is held up, and by what.
    pub(crate) fn seen(&self, status: Status) -> Status {
        let (waits, reason, message) = match self.health() {
            Health::Ready | Health::New => return status,
            Health::ClusterUnreachable { message } => {
                (WaitReason::ClusterUnreachable, HeldUpReason::ClusterUnreachable, message)
            }
            Health::EngineUnreachable { message } => {
                (WaitReason::EngineUnreachable, HeldUpReason::EngineUnreachable, message)
            }
        };
        match status {
            Status::Waiting { .. } | Status::Pulling { .. } | Status::Starting => {
                Status::Waiting { reason: waits, message }
            }
            Status::Stopping { .. } => Status::Stopping { held_up: Some(HeldUp { reason, message }) },
            Status::Deleting { .. } => Status::Deleting { held_up: Some(HeldUp { reason, message }) },
            Status::Running { .. } | Status::Stopped { .. } | Status::Succeeded | Status::Failed { .. } => {
                status
            }
        }
    }

    fn known(&self) -> Known {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
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
