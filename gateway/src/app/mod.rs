//! What the product does, free of transport: nothing here names axum or a wire format.

mod accounts;
mod apps;
mod chores;
mod cluster_view;
mod collect;
mod convert;
mod foreign;
mod gpus;
mod groups;
mod images;
mod instances;
mod jobs;
mod line;
mod notices;
mod people;
mod preparing;
mod queue_view;
mod quota_use;
mod quotas;
mod recipe;
mod registry;
mod renamed;
mod saved;
mod secrets;
mod site;
mod ssh_keys;
mod storage;
mod strangers;
mod usage;

use std::{
    net::IpAddr,
    num::NonZeroU32,
    path::Path,
    sync::{Arc, OnceLock},
};

use gateway_api::{InstanceId, UserName, node::DiskLimit, ssh::SshDoor};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::{Notify, RwLock};

use crate::{
    agents::Agents,
    auth::{limits::SignInLimits, live::Live, password::Passwords, ticket::Tickets, vault::Vault},
    clusters::{Cluster, Clusters},
    config::Config,
    error::Error,
    events::Events,
    listen::tls::Certificates,
    proxy::address::Addresses,
    reconcile::{deliver::Delivering, idle::Idle, jobs::Beginning},
    registry::Registry,
    samples::Samples,
    store::{Store, StoreError},
    task_logs::TaskLogs,
    tasks::Tasks,
};

use self::{line::Places, preparing::PreparingFile, registry::Contents, ssh_keys::Challenges};

pub(crate) use accounts::{NewAdmin, REGISTRY_SESSION_LASTS, SESSION_LASTS};
pub(crate) use apps::APP_SESSION_LASTS;
pub(crate) use instances::InstancePage;
pub(crate) use jobs::{JobPage, in_line, kept_for, stopped_by, task_status};
pub(crate) use line::Outlook;
pub(crate) use registry::Refused;
pub(crate) use secrets::Keeper;
pub(crate) use strangers::Nonsense;
pub(crate) use usage::Stretch;

/// All parts of the gateway. One per process.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) clusters: Clusters,
    pub(crate) agents: Agents,
    pub(crate) events: Events,
    pub(crate) tasks: Tasks,
    /// Set once the gateway listens, if it does so with TLS.
    pub(crate) certificates: OnceLock<Certificates>,
    /// Set once the gateway listens.
    pub(crate) addresses: OnceLock<Addresses>,
    /// Wakes the loop that looks after saves.
    pub(crate) wake_images: Notify,
    /// Wakes the loop that decides what starts.
    pub(crate) line_moves: Notify,
    /// Wakes the loop that looks after jobs.
    pub(crate) jobs_move: Notify,
    /// Wakes the loop that copies the output of tasks.
    pub(crate) logs_move: Notify,
    pub(crate) places: Places,
    pub(crate) beginning: Beginning,
    pub(crate) idle: Idle,
    pub(crate) delivering: Delivering,
    pub(crate) logs: TaskLogs,
    pub(crate) samples: Arc<Samples>,
    /// The connections that end with their session or token.
    pub(crate) live: Live,
    tickets: Tickets,
    /// Set once SSH listens.
    pub(crate) ssh: OnceLock<SshDoor>,
    /// What users are to sign with keys that they want to add.
    challenges: Challenges,
    passwords: Passwords,
    /// Opens secrets.
    vault: Vault,
    limits: SignInLimits,
    /// The site's registry, if it has one.
    pub(crate) registry: Option<Registry>,
    /// What the manifests that people share are made of.
    contents: Contents,
    /// The steps that `make up` still runs.
    preparing_file: PreparingFile,
    /// Held by those who list an image while they do, and alone by whoever takes one out of the registry.
    pub(crate) listing: RwLock<()>,
    refusals: DefaultKeyedRateLimiter<UserName>,
    /// How often refused keys of one source are written down, and nonsense.
    strangers: DefaultKeyedRateLimiter<IpAddr>,
    nonsense: DefaultKeyedRateLimiter<(IpAddr, Nonsense)>,
}

/// One part of the gateway and whether it is well.
#[derive(Debug)]
pub(crate) struct PartHealth {
    pub(crate) name: &'static str,
    pub(crate) trouble: Option<String>,
    /// What is worth knowing while it is well.
    pub(crate) note: Option<&'static str>,
}

impl PartHealth {
    fn new(name: &'static str, trouble: Option<String>) -> Self {
        Self { name, trouble, note: None }
    }
}

impl App {
    pub(crate) fn build(config: Config, store: Store, tasks: Tasks) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self {
            clusters: Clusters::new(&config.clusters),
            agents: Agents::new(
                config.clusters.iter().map(|cluster| cluster.data.clone()).collect(),
                tasks.clone(),
            ),
            events: Events::new(),
            wake_images: Notify::new(),
            line_moves: Notify::new(),
            jobs_move: Notify::new(),
            logs_move: Notify::new(),
            places: Places::default(),
            beginning: Beginning::default(),
            idle: Idle::default(),
            delivering: Delivering::default(),
            logs: TaskLogs::new(&config.data),
            samples: Arc::new(Samples::new(&config.data)),
            certificates: OnceLock::new(),
            addresses: OnceLock::new(),
            tickets: Tickets::default(),
            ssh: OnceLock::new(),
            challenges: Challenges::default(),
            passwords: Passwords::new()?,
            vault: Vault::open(&config.data.join("keys")).map_err(|error| Error::Internal(error.into()))?,
            limits: SignInLimits::default(),
            live: Live::new(config.limits.connections_max),
            registry: Registry::new(&config),
            contents: Contents::default(),
            preparing_file: PreparingFile::new(&config.data),
            listing: RwLock::default(),
            refusals: RateLimiter::keyed(Quota::per_minute(chores::REFUSALS_PER_MINUTE)),
            strangers: RateLimiter::keyed(Quota::per_minute(chores::REFUSALS_PER_MINUTE)),
            nonsense: RateLimiter::keyed(Quota::per_minute(NonZeroU32::MIN)),
            config,
            store,
            tasks,
        }))
    }

    /// How each part is.
    pub(crate) async fn health(&self) -> Vec<PartHealth> {
        let store = self.store.ping().await.err().map(|error| {
            tracing::error!(error = crate::error::chain(&error), "the store is unwell");
            // Everyone can ask: what the cause is stands in the log.
            error.to_string()
        });
        let trouble = |of: fn(&Cluster) -> Option<String>| self.trouble_of_clusters(of);
        let mut parts = vec![
            PartHealth::new("store", store),
            PartHealth::new("cluster", trouble(Cluster::cluster_trouble)),
            PartHealth::new("engine", trouble(Cluster::engine_trouble)),
            PartHealth::new("tenants", trouble(Cluster::tenants_trouble)),
            PartHealth::new("syscalls", trouble(Cluster::syscalls_trouble)),
            PartHealth::new("disk", disk(&self.config.data)),
        ];
        let limits: Vec<_> = self.clusters.iter().filter_map(|one| Some(one.node()?.disk)).collect();
        if let Some(note) = disk_limit(&limits) {
            parts.push(PartHealth { name: "disk_limit", trouble: None, note: Some(note) });
        }
        parts.push(match &self.registry {
            Some(registry) => PartHealth::new("registry", registry.trouble()),
            None => PartHealth { name: "registry", trouble: None, note: Some(NO_REGISTRY) },
        });
        if let Some(certificates) = self.certificates.get() {
            parts.push(PartHealth::new("tls", certificates.trouble()));
        }
        parts
    }

    /// The cluster of an instance.
    pub(crate) async fn cluster_of(&self, instance: &InstanceId) -> Result<&Cluster, StoreError> {
        let name = self.store.cluster_of(instance).await?;
        Ok(name.map_or_else(|| self.clusters.first(), |name| self.clusters.of(&name)))
    }

    /// What troubles any of the clusters; each is named where there are several.
    fn trouble_of_clusters(&self, of: fn(&Cluster) -> Option<String>) -> Option<String> {
        let several = self.clusters.iter().count() > 1;
        let all: Vec<String> = self
            .clusters
            .iter()
            .filter_map(|cluster| {
                of(cluster).map(|what| if several { format!("{}: {what}", cluster.name) } else { what })
            })
            .collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// What becomes of instances over their limit, by what each cluster says.
fn disk_limit(clusters: &[DiskLimit]) -> Option<&'static str> {
    let is_hard = |limit: &DiskLimit| matches!(limit, DiskLimit::Hard);
    match (clusters.iter().any(is_hard), clusters.iter().all(is_hard)) {
        _ if clusters.is_empty() => None,
        (_, true) => Some("hard: the file system refuses what is over an instance's limit"),
        (false, false) => Some("polled: an instance found over its limit is stopped"),
        (true, false) => Some("mixed: hard on some clusters, polled on others; `berth nodes` says which"),
    }
}

/// A site can be without.
const NO_REGISTRY: &str = "none: instances cannot be saved as images; set `registry` in `[gateway]` and `[envd]` of \
                           berth.toml to one, or run deploy/install.sh again, which says how Berth runs its own";

/// Whether the data directory has room: below this the store may soon take no more writes.
fn disk(data: &Path) -> Option<String> {
    const LEAST_BYTES: u64 = 1 << 30;
    const LEAST_PERCENT: u64 = 5;
    let Ok(found) = rustix::fs::statvfs(data) else {
        return Some("the data directory does not answer".to_owned());
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free < LEAST_BYTES {
        return Some("less than 1 GiB is free in the data directory".to_owned());
    }
    let few = found.f_bavail.saturating_mul(100) < found.f_blocks.saturating_mul(LEAST_PERCENT);
    few.then(|| format!("less than {LEAST_PERCENT} % is free in the data directory"))
}
