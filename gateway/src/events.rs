//! News for open consoles and waiting commands: what changed, for whoever may see it.
//!
//! News is a convenience, the store is the truth: a listener that falls behind is cut off, connects again and reads
//! the lists anew.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use gateway_api::{ImageId, Instance, InstanceId, Job, JobId, image::Image};
use tokio::sync::broadcast;

use crate::{
    app::App,
    error::chain,
    store::{Topic, UserId},
};

/// How far a listener may fall behind.
const BEHIND_MAX: usize = 256;
/// The least time between two pieces of news for everyone: consoles read again what they show of it.
const PAUSE: Duration = Duration::from_millis(500);

/// One piece of news.
#[derive(Debug, Clone)]
pub(crate) struct News {
    /// Whose instance or image it is about; everyone's without one.
    pub(crate) owner: Option<UserId>,
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
    /// Something of these kinds changed: neither what nor whose.
    Anything(BTreeSet<Topic>),
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
        let _ = self.0.send(News { owner: Some(owner), what });
    }

    /// What waits is in another order now, or something else waits.
    pub(crate) fn line_moved(&self) {
        self.tell_everyone(What::Anything([Topic::Work].into()));
    }

    fn tell_everyone(&self, what: What) {
        let _ = self.0.send(News { owner: None, what });
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<News> {
        self.0.subscribe()
    }
}

/// Tells everyone which kinds of things have changed, until the process stops.
pub(crate) async fn run(app: Arc<App>) {
    let stopping = app.tasks.stopping();
    let watching = async {
        loop {
            match app.store.changed().await {
                Ok(topics) => app.events.tell_everyone(What::Anything(topics)),
                Err(error) => tracing::warn!(error = chain(&error), "cannot tell what has changed"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = watching => {}
    }
}
