//! Waiting for an instance to come to rest.
//!
//! Events make it quick, a clock makes it sure: whether or not events come through (a proxy may hold them back), the
//! instance is asked for again every few seconds.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Client, ClientError, Event, Events};
use crate::{Code, Goal, Instance, InstanceId, Status};

/// How often to ask while events come.
pub(super) const ASK_WITH_EVENTS: Duration = Duration::from_secs(5);
/// How often to ask while they do not.
pub(super) const ASK_WITHOUT_EVENTS: Duration = Duration::from_secs(1);

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Waited {
    Rests(Box<Instance>),
    Gone,
}

impl Instance {
    /// Whether nothing more happens by itself: the state is no passing one, and it is one that the goal leads to.
    pub fn is_at_rest(&self) -> bool {
        match (self.goal, &self.status) {
            (Goal::Deleted, _)
            | (Goal::Running, Status::Stopped { .. })
            | (Goal::Stopped, Status::Running { .. }) => false,
            (Goal::Running | Goal::Stopped, status) => !status.is_passing(),
        }
    }
}

impl Client {
    /// Waits until the instance is at rest or gone, telling `on_change` of every state on the way.
    pub async fn wait_at_rest(
        &self,
        id: &InstanceId,
        limit: Duration,
        on_change: impl FnMut(&Instance),
    ) -> Result<Waited, ClientError> {
        self.wait_until(id, limit, Instance::is_at_rest, on_change).await
    }

    /// Waits until the instance is as `done` wants it, or gone.
    ///
    /// A gateway that goes away for a while (an upgrade, say) is waited for too, up to `limit`.
    pub async fn wait_until(
        &self,
        id: &InstanceId,
        limit: Duration,
        mut done: impl FnMut(&Instance) -> bool,
        mut on_change: impl FnMut(&Instance),
    ) -> Result<Waited, ClientError> {
        let deadline = deadline(limit);
        let mut events: Option<Events> = None;
        let mut last: Option<Instance> = None;
        loop {
            let asked = timeout_at(deadline, self.ask(id, &mut events)).await.map_err(|_| late(id, limit))?;
            let Some(asked) = asked? else { return Ok(Waited::Gone) };
            let mut now = asked;
            let every = if events.is_some() { ASK_WITH_EVENTS } else { ASK_WITHOUT_EVENTS };
            let ask_again = (Instant::now() + every).min(deadline);
            loop {
                if let Some(instance) = now.take() {
                    if last.as_ref() != Some(&instance) {
                        on_change(&instance);
                    }
                    if done(&instance) {
                        return Ok(Waited::Rests(Box::new(instance)));
                    }
                    last = Some(instance);
                }
                tokio::select! {
                    () = sleep_until(ask_again) => break,
                    event = next(&mut events) => match event {
                        Some(Event::Instance(instance)) if instance.id == *id => now = Some(*instance),
                        Some(Event::InstanceDeleted(gone)) if gone == *id => return Ok(Waited::Gone),
                        Some(_) => {}
                        None => events = None,
                    },
                }
            }
            if Instant::now() >= deadline {
                return Err(late(id, limit));
            }
        }
    }

    /// Asks for the instance, after connecting to the events so that no change falls between the two. `None` when it
    /// is gone, `Some(None)` when nobody answers.
    async fn ask(
        &self,
        id: &InstanceId,
        events: &mut Option<Events>,
    ) -> Result<Option<Option<Instance>>, ClientError> {
        if events.is_none() {
            *events = self.events().await.ok();
        }
        match self.instance(id.as_str()).await {
            Ok(instance) => Ok(Some(Some(instance))),
            Err(ClientError::Unreachable { .. }) => Ok(Some(None)),
            Err(error) if error.code() == Some(Code::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The next event; `None` when there will be no more; never when there are none at all.
pub(super) async fn next(events: &mut Option<Events>) -> Option<Event> {
    match events {
        Some(events) => events.next().await?.ok(),
        None => std::future::pending().await,
    }
}

fn late(id: &InstanceId, limit: Duration) -> ClientError {
    ClientError::TooLate { what: format!("waiting for {id}"), limit }
}

/// When `limit` is over. Longer than anybody waits is as good as never.
pub(super) fn deadline(limit: Duration) -> Instant {
    const NEVER: Duration = Duration::from_hours(24 * 365);
    Instant::now() + limit.min(NEVER)
}
