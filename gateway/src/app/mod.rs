//! What the product does, free of transport: nothing here names axum or a wire format.

mod accounts;
mod images;
mod instances;

use std::sync::Arc;

use tokio::sync::Notify;

use crate::{
    agents::Agents,
    auth::{limits::SignInLimits, password::Passwords},
    clusters::{Cluster, Health},
    config::Config,
    error::Error,
    events::Events,
    store::Store,
    tasks::Tasks,
};

pub(crate) use accounts::{NewAdmin, SESSION_LASTS};

/// All parts of the gateway. One per process.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) cluster: Cluster,
    pub(crate) agents: Agents,
    pub(crate) events: Events,
    pub(crate) tasks: Tasks,
    /// Wakes the loop that tells the cluster what should be.
    pub(crate) wake: Notify,
    passwords: Passwords,
    limits: SignInLimits,
}

/// One part of the gateway and whether it is well.
#[derive(Debug)]
pub(crate) struct PartHealth {
    pub(crate) name: &'static str,
    pub(crate) trouble: Option<String>,
}

impl App {
    pub(crate) fn build(config: Config, store: Store, tasks: Tasks) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self {
            cluster: Cluster::new(&config.data),
            agents: Agents::new(&config.data, tasks.clone()),
            events: Events::new(),
            wake: Notify::new(),
            passwords: Passwords::new()?,
            limits: SignInLimits::new(),
            config,
            store,
            tasks,
        }))
    }

    /// How each part is.
    pub(crate) async fn health(&self) -> [PartHealth; 3] {
        let store = self.store.ping().await.err().map(|error| crate::error::chain(&error));
        let (cluster, engine) = match self.cluster.health() {
            Health::Ready => (None, None),
            Health::New => (Some("envd has not answered yet".to_owned()), None),
            Health::ClusterUnreachable { message } => (Some(message), None),
            Health::EngineUnreachable { message } => (None, Some(message)),
        };
        [
            PartHealth { name: "store", trouble: store },
            PartHealth { name: "cluster", trouble: cluster },
            PartHealth { name: "engine", trouble: engine },
        ]
    }
}
