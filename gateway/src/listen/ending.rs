//! How a connection ends: by itself, gently when the process stops, and when nothing was asked of it for too long.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::connection::Activity;
use crate::tasks::Tasks;

/// What becomes of a connection on which nothing is under way.
#[derive(Debug, Clone, Copy)]
pub(super) enum Idle {
    /// It is closed. In HTTP/1 a head that does not come is nothing under way either.
    Closes(Duration),
    /// It is told to go, and closed if it does not.
    IsTold(Duration),
}

/// Serves until the client goes, or the process stops, or `activity` has been nothing for as long as `idle` says, and at
/// most twice as long. A timer for each request would be more exact, and would be set and taken back thousands of times
/// for every time that it goes off.
pub(super) async fn until_the_end<C>(
    tasks: &Tasks,
    mut serving: Pin<&mut C>,
    end_gently: impl Fn(Pin<&mut C>),
    activity: &Activity,
    idle: Idle,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    let (Idle::Closes(limit) | Idle::IsTold(limit)) = idle;
    let mut stopping = pin!(tasks.stopping().cancelled_owned());
    let mut look = pin!(sleep(limit));
    let (mut watches, mut was_told_to_stop, mut was_told_to_go) = (false, false, false);
    poll_fn(|context| {
        loop {
            if let Poll::Ready(ended) = serving.as_mut().poll(context) {
                return Poll::Ready(ended);
            }
            // Whether all stops is behind a lock that all connections share: asked once, and then when it is so.
            if !was_told_to_stop && (!watches || tasks.is_stopping()) {
                watches = true;
                if stopping.as_mut().poll(context).is_ready() {
                    was_told_to_stop = true;
                    end_gently(serving.as_mut());
                    continue;
                }
            }
            if look.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            look.as_mut().reset(Instant::now() + limit);
            if activity.is_busy_since_last() {
                continue;
            }
            if was_told_to_go || matches!(idle, Idle::Closes(_)) {
                return Poll::Ready(Ok(()));
            }
            was_told_to_go = true;
            end_gently(serving.as_mut());
        }
    })
    .await
}
