//! Images and the machines they run on, as users see them.

use std::collections::HashSet;

use envd_api::control::{EngineState, LocalImage};
use futures_util::future::join_all;
use gateway_api::{
    image::Image,
    node::{Node, NodeState, NodeWarning},
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
        let mut images: Vec<_> =
            self.local_images().await.into_iter().map(|image| self.view_local_image(image)).collect();
        images.sort_by(|a, b| b.default.cmp(&a.default).then_with(|| a.reference.cmp(&b.reference)));
        images.extend(self.saved_images(caller).await?);
        Ok(images)
    }

    /// One of the platform's or of the saved ones that the caller may see.
    pub(crate) async fn image(&self, caller: &Caller, name: &str) -> Result<Image, Error> {
        let missing = match self.saved_image(caller, name).await {
            Err(error @ (Error::NotFound { .. } | Error::Hidden { .. })) => error,
            found => return found,
        };
        let mut platform = self.local_images().await.into_iter();
        let found = platform.find(|image| same_image(&image.reference, name));
        found.map(|image| self.view_local_image(image)).ok_or(missing)
    }

    fn view_local_image(&self, image: LocalImage) -> Image {
        Image {
            default: same_image(&image.reference, &self.config.default_image),
            reference: image.reference,
            size_bytes: image.size_bytes,
            created_at: image.created_at,
            saved: None,
        }
    }

    /// What any of the clusters has, each image once; of those that do not answer, what they had when they last did.
    async fn local_images(&self) -> Vec<LocalImage> {
        let mut all = Vec::<LocalImage>::new();
        let asked = self.clusters.iter().map(async |cluster| match cluster.images().await {
            Some(images) => images,
            None => cluster.last_images(),
        });
        for images in join_all(asked).await {
            let known: HashSet<_> = all.iter().map(|image| image.reference.clone()).collect();
            all.extend(images.into_iter().filter(|image| !known.contains(&image.reference)));
        }
        all
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
        let admin = policy::administer(caller).is_ok();
        let warnings = [
            cluster.tenants_trouble().map(|_| NodeWarning::TenantsNotApart),
            cluster.syscalls_trouble().map(|_| NodeWarning::SyscallsNotFiltered),
        ];
        Some(Node {
            name: node.name,
            address: node.address,
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
            unknown: if admin { cluster.unknown().into_keys().collect() } else { Vec::new() },
            warnings: warnings.into_iter().flatten().filter(|_| admin).collect(),
        })
    }
}
