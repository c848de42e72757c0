//! Connections to apps: dialled by the instance's own agent, kept for the next request, never shared between users.
//!
//! Each thread has its own, because a connection is driven on the thread that made it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use envd_api::agent::Refusal;
use futures_util::FutureExt as _;
use gateway_api::InstanceId;
use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;

use super::lanes::Lanes;
use crate::{
    agents::{AgentError, Agents},
    listen::RequestBody,
    store::UserId,
    tasks::Tasks,
};

/// How long a connection waits for another request. Less than the five seconds after which many servers close one.
const IDLE_LIMIT: Duration = Duration::from_secs(4);
/// Idle connections to one app, for each thread: as many as a burst of visitors has under way there, since each that
/// is closed has to be dialled by the agent again.
const IDLE_MAX: usize = 256;
/// The head of an app's answer.
const HEAD_MAX: usize = 256 << 10;

/// Whose connection to what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) user: UserId,
    pub(super) instance: InstanceId,
    pub(super) port: u16,
}

/// The idle connections of all threads.
#[derive(Debug, Default)]
pub(super) struct Upstreams {
    lanes: Lanes<Mutex<Lane>>,
}

type Lane = HashMap<Target, Vec<Idle>>;
type Sender = SendRequest<RequestBody>;

/// A connection that is at work for one request.
#[derive(Debug)]
pub(super) struct Lent {
    target: Target,
    sender: Sender,
}

#[derive(Debug)]
struct Idle {
    sender: Sender,
    since: Instant,
}

/// Why an app has not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// Nothing was sent: the request is still where it was.
    #[error("nothing listens on that port")]
    NothingListens,
    #[error(transparent)]
    Agent(AgentError),
    #[error("it does not speak HTTP as it should: {0}")]
    Broken(#[source] hyper::Error),
    #[error("the visitor's session has ended")]
    Ended,
    #[error("it took too long")]
    TooSlow,
}

impl Upstreams {
    /// Sends a request over a connection that is free, or a new one. It is taken when it is sent, and stays otherwise.
    pub(super) async fn send(
        &self,
        agents: &Agents,
        tasks: &Tasks,
        target: Target,
        request: &mut Request<RequestBody>,
    ) -> Result<(Response<Incoming>, Lent), NoAnswer> {
        let reusable = super::headers::upgrade_of(request.headers()).is_none();
        while reusable && let Some(mut sender) = self.free(&target) {
            match sender.try_send_request(std::mem::take(request)).await {
                Ok(response) => {
                    agents.note_use(&target.instance);
                    return Ok((response, Lent { target, sender }));
                }
                // It was closed before anything was sent: nothing has happened yet.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => *request = unsent,
                    None => return Err(NoAnswer::Broken(error.into_error())),
                },
            }
        }
        let mut sender = Box::pin(connect(agents, tasks, &target)).await?;
        let sent = Box::pin(sender.send_request(std::mem::take(request))).await;
        Ok((sent.map_err(NoAnswer::Broken)?, Lent { target, sender }))
    }

    fn free(&self, target: &Target) -> Option<Sender> {
        let mut lane = self.lane();
        let idle = lane.get_mut(target)?;
        while let Some(Idle { mut sender, since }) = idle.pop() {
            let fresh = since.elapsed() < IDLE_LIMIT;
            if fresh && matches!(sender.ready().now_or_never(), Some(Ok(()))) {
                return Some(sender);
            }
        }
        None
    }

    /// Takes a connection back, of which all has been read.
    pub(super) fn keep(&self, Lent { target, sender }: Lent) {
        if sender.is_closed() {
            return;
        }
        let mut lane = self.lane();
        let idle = lane.entry(target).or_default();
        if idle.len() < IDLE_MAX {
            idle.push(Idle { sender, since: Instant::now() });
        }
    }

    /// Closes what has been idle for too long, round after round.
    pub(super) async fn tidy(&self, tasks: &Tasks) {
        let stopping = tasks.stopping();
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(IDLE_LIMIT) => {}
            }
            for lane in self.lanes.iter() {
                lane.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, idle| {
                    idle.retain(|idle| idle.since.elapsed() < IDLE_LIMIT && !idle.sender.is_closed());
                    !idle.is_empty()
                });
            }
        }
    }

    /// This thread's.
    fn lane(&self) -> MutexGuard<'_, Lane> {
        self.lanes.own().lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn connect(agents: &Agents, tasks: &Tasks, target: &Target) -> Result<Sender, NoAnswer> {
    let stream = agents.dial(&target.instance, target.port).await.map_err(|error| match error {
        AgentError::Refused { refusal: Refusal::NothingListens, .. } => NoAnswer::NothingListens,
        AgentError::NotLinked
        | AgentError::TimedOut
        | AgentError::Refused { .. }
        | AgentError::Protocol(_) => NoAnswer::Agent(error),
    })?;
    let (sender, connection) = http1::Builder::new()
        .max_header_size(HEAD_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(NoAnswer::Broken)?;
    tasks.spawn_many(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to an app broke");
        }
    });
    Ok(sender)
}
