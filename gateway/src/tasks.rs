//! The only place that spawns: every task has an owner who can stop it and wait for it.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TrackedFuture},
};
use tracing::Instrument as _;

/// All tasks of this process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    stop: CancellationToken,
    /// Set just before `stop`, for those who look often: it is no lock.
    is_stopping: Arc<AtomicBool>,
    tracker: TaskTracker,
}

impl Tasks {
    /// Runs `future` until it ends. Long-lived ones watch [`Self::stopping`].
    pub(crate) fn spawn(&self, name: &'static str, future: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(future.instrument(tracing::info_span!("task", name)));
    }

    /// The same for one of very many. Log lines do not name it: the name would take a kilobyte of each.
    pub(crate) fn spawn_many(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(future);
    }

    /// Work that blocks, off the threads that everyone shares; `None` if it panicked.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.tracker.spawn_blocking(work).await.ok()
    }

    /// Makes `future`, which somebody else runs, a task of this process: it is waited for as the others are.
    pub(crate) fn owned<F: Future>(&self, future: F) -> TrackedFuture<F> {
        self.tracker.track_future(future)
    }

    /// Cancelled when the process stops.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Waits until the process stops and every task has ended.
    pub(crate) async fn ended(&self) {
        self.tracker.wait().await;
    }

    /// Tells all tasks to stop.
    pub(crate) fn tell(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.stop.cancel();
    }

    /// Tells all tasks to stop and waits for them, but no longer than `grace`.
    pub(crate) async fn stop(&self, grace: Duration) {
        self.tell();
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            tracing::warn!(left = self.tracker.len(), "some tasks did not stop in time");
        }
    }
}
