//! News for open consoles and waiting commands: what changed, for whoever may see it.
//!
//! News is a convenience, the store is the truth: a listener that falls behind is cut off, connects again and reads
//! the lists anew.

use gateway_api::{ImageId, Instance, InstanceId, Job, JobId, image::Image};
use tokio::sync::broadcast;

use crate::store::UserId;

/// How far a listener may fall behind.
const BEHIND_MAX: usize = 256;

/// One piece of news.
#[derive(Debug, Clone)]
pub(crate) struct News {
    /// Whose instance or image it is about.
    pub(crate) owner: UserId,
    pub(crate) what: What,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    Changed(Box<Instance>),
    Deleted(InstanceId),
    Image(Box<Image>),
    ImageDeleted(ImageId),
    JobChanged(Box<Job>),
    JobDeleted(JobId),
}

/// The hub. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Events(broadcast::Sender<News>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(BEHIND_MAX))
    }

    /// Tells all who listen; nobody listening is fine.
    pub(crate) fn tell(&self, owner: UserId, what: What) {
        let _ = self.0.send(News { owner, what });
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<News> {
        self.0.subscribe()
    }
}
