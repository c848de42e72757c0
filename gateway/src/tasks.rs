//! The only place that spawns: every task has an owner who can stop it and wait for it.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
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
    stop: Bell,
    tracker: TaskTracker,
}

/// Rung once, and heard by many who have something else to do. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bell {
    token: CancellationToken,
    /// Set just before `token`, for those who look often: the token is behind a lock that all share.
    is_rung: Arc<AtomicBool>,
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

    /// Cancelled when the process stops. To be waited for: whoever wants it to stop calls [`Self::tell`].
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.stop.token.clone()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_rung()
    }

    /// Does `work` until the process stops; `None` when that came first.
    pub(crate) async fn unless_stopping<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.stop.unless_rung(work).await
    }

    /// Waits until the process stops and every task has ended.
    pub(crate) async fn ended(&self) {
        self.tracker.wait().await;
    }

    /// Tells all tasks to stop.
    pub(crate) fn tell(&self) {
        self.stop.ring();
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

impl Bell {
    pub(crate) fn ring(&self) {
        self.is_rung.store(true, Ordering::Release);
        self.token.cancel();
    }

    pub(crate) fn is_rung(&self) -> bool {
        self.is_rung.load(Ordering::Acquire)
    }

    pub(crate) async fn rung(&self) {
        self.token.cancelled().await;
    }

    /// Does `work`; `None` when the bell rang first. For work that wakes up thousands of times a second: the bell is
    /// listened to once, and looked at from then on.
    pub(crate) async fn unless_rung<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut rung) = (pin!(work), pin!(self.token.cancelled()));
        let mut listens: Option<Waker> = None;
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            let will_be_woken = listens.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
            if will_be_woken && !self.is_rung() {
                return Poll::Pending;
            }
            listens = Some(context.waker().clone());
            rung.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_bell_ends_what_waits_whenever_it_rings() {
        let bell = Bell::default();
        assert_eq!(bell.unless_rung(async { 1 }).await, Some(1));
        let (began, has_begun) = tokio::sync::oneshot::channel();
        let work = async {
            began.send(()).unwrap();
            // Wakes up again and again, as a relay does.
            loop {
                tokio::task::yield_now().await;
            }
        };
        let ring = async {
            has_begun.await.unwrap();
            bell.ring();
        };
        let (ended, ()) = tokio::join!(bell.unless_rung::<()>(work), ring);
        assert_eq!(ended, None);
        assert_eq!(bell.unless_rung(std::future::pending::<()>()).await, None, "it has rung before");
    }
}
