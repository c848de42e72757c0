//! Images and the machines they run on, as users see them.

use envd_api::control::EngineState;
use gateway_api::{
    image::Image,
    node::{Node, NodeState},
};

use super::{App, instances::same_image};
use crate::{
    auth::{Caller, policy},
    clusters::Health,
    error::Error,
};

impl App {
    /// The platform's images, the default one first, then the saved ones that the caller may see, newest first.
    pub(crate) async fn images(&self, caller: &Caller) -> Result<Vec<Image>, Error> {
        let local =
            self.cluster.envd.images().await.map_err(|error| Error::ClusterUnreachable(error.into()))?;
        let mut images: Vec<_> = local
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

    /// The machines, as last reported.
    pub(crate) fn nodes(&self, caller: &Caller) -> Vec<Node> {
        let unwell = match self.cluster.health() {
            Health::Ready | Health::New => None,
            Health::ClusterUnreachable { message } | Health::EngineUnreachable { message } => Some(message),
        };
        let node = self.cluster.node().map(|node| {
            let engine = match node.engine {
                EngineState::Ready => None,
                EngineState::Unreachable { message } => Some(message),
            };
            Node {
                name: node.name,
                state: match unwell.or(engine) {
                    None => NodeState::Ready,
                    Some(message) => NodeState::Unwell { message },
                },
                cpus: node.cpus,
                memory_bytes: node.memory_bytes,
                gpus: node.gpus,
                disk_limit: node.disk,
                unknown: if policy::administer(caller).is_ok() {
                    self.cluster.unknown().into_keys().collect()
                } else {
                    Vec::new()
                },
            }
        });
        node.into_iter().collect()
    }
}
