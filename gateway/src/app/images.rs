//! Images and the machines they run on, as users see them.

use std::collections::HashSet;

use envd_api::control::{EngineState, LocalImage};
use futures_util::future::join_all;
use gateway_api::{
    image::Image,
    node::{Node, NodeState},
};

use super::{App, instances::same_image};
use crate::{
    auth::{Caller, policy},
    clusters::{Cluster, Health},
    error::Error,
};

impl App {
    /// The platform's images, the default one first, then the saved ones that the caller may see, newest first.
    pub(crate) async fn images(&self, caller: &Caller) -> Result<Vec<Image>, Error> {
        let mut images: Vec<_> = self
            .local_images()
            .await?
            .into_iter()
            .map(|image| Image {
                default: same_image(&image.reference, &self.config.default_image),
                reference: image.reference,
                size_bytes: image.size_bytes,
                created_at: image.created_at,
                saved: None,
            })
            .collect();
        images.sort_by(|a, b| b.default.cmp(&a.default).then_with(|| a.reference.cmp(&b.reference)));
        images.extend(self.saved_images(caller).await?);
        Ok(images)
    }

    /// What any of the clusters has, each image once; those that do not answer are left out as long as one does.
    async fn local_images(&self) -> Result<Vec<LocalImage>, Error> {
        let (mut all, mut answered, mut failed) = (Vec::<LocalImage>::new(), false, None);
        for found in join_all(self.clusters.iter().map(|cluster| cluster.envd.images())).await {
            match found {
                Ok(images) => {
                    answered = true;
                    let known: HashSet<_> = all.iter().map(|image| image.reference.clone()).collect();
                    all.extend(images.into_iter().filter(|image| !known.contains(&image.reference)));
                }
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if !answered => Err(Error::ClusterUnreachable(error.into())),
            Some(_) | None => Ok(all),
        }
    }

    /// The machines, as last reported.
    pub(crate) fn nodes(&self, caller: &Caller) -> Vec<Node> {
        self.clusters.iter().filter_map(|cluster| self.node(caller, cluster)).collect()
    }

    /// The machine of a cluster.
    pub(super) fn node(&self, caller: &Caller, cluster: &Cluster) -> Option<Node> {
        let node = cluster.node()?;
        let unwell = match cluster.health() {
            Health::Ready | Health::New => None,
            Health::ClusterUnreachable { message } | Health::EngineUnreachable { message } => Some(message),
        };
        let engine = match node.engine {
            EngineState::Ready => None,
            EngineState::Unreachable { message } => Some(message),
        };
        let unknown = policy::administer(caller).map(|()| cluster.unknown().into_keys().collect());
        Some(Node {
            name: node.name,
            cluster: cluster.name.clone(),
            pools: self.pools_of(&cluster.name, None),
            state: match unwell.or(engine) {
                None => NodeState::Ready,
                Some(message) => NodeState::Unwell { message },
            },
            cpus: node.cpus,
            memory_bytes: node.memory_bytes,
            gpus: node.gpus,
            disk_limit: node.disk,
            unknown: unknown.unwrap_or_default(),
        })
    }
}
