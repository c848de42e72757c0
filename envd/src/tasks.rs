//! The only place that spawns: every task has an owner who can stop it and wait for it.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::warn;

/// All tasks of this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl Tasks {
    /// Runs `work` until it ends or the process stops. It may be dropped at any await.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tracker.spawn(async move { stop.run_until_cancelled(work).await });
    }

    /// Runs `work`, which waits for the disk, on a thread of its own; `None` if it panicked.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.tracker.spawn_blocking(work).await.ok()
    }

    /// Ends when the process is told to stop.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Stops all tasks and waits for them within `grace`.
    pub(crate) async fn drain(&self, grace: Duration) {
        self.stop.cancel();
        self.tracker.close();
        if timeout(grace, self.tracker.wait()).await.is_err() {
            warn!(late = self.tracker.len(), "some tasks did not end in time");
        }
    }
}
