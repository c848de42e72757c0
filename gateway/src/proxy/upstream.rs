//! Connections to apps: dialled by the instance's own agent, kept for the next request, never shared between users.
//!
//! Each thread has its own, because a connection is driven on the thread that made it.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use envd_api::agent::Refusal;
use futures_util::FutureExt as _;
use gateway_api::InstanceId;
use http::{Request, Response};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;

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
const LANES: usize = 64;

/// Whose connection to what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) user: UserId,
    pub(super) instance: InstanceId,
    pub(super) port: u16,
}

/// The idle connections of all threads.
#[derive(Debug)]
pub(super) struct Upstreams {
    lanes: Vec<Mutex<Lane>>,
}

type Lane = HashMap<Target, Vec<Idle>>;
type Sender = SendRequest<RequestBody>;

#[derive(Debug)]
struct Idle {
    sender: Sender,
    since: Instant,
}

/// Why an app has not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
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

impl Default for Upstreams {
    fn default() -> Self {
        Self { lanes: std::iter::repeat_with(Mutex::default).take(LANES).collect() }
    }
}

impl Upstreams {
    /// Sends a request over a connection that is free, or a new one. What was not sent is put back into `unsent`.
    pub(super) async fn send(
        self: &Arc<Self>,
        agents: &Agents,
        tasks: &Tasks,
        target: Target,
        mut request: Request<RequestBody>,
        unsent: &mut Option<Request<RequestBody>>,
    ) -> Result<Response<AppBody>, NoAnswer> {
        let reusable = super::headers::upgrade_of(request.headers()).is_none();
        while reusable && let Some(mut sender) = self.free(&target) {
            match sender.try_send_request(request).await {
                Ok(response) => {
                    agents.note_use(&target.instance);
                    return Ok(self.answered(target, sender, response));
                }
                // It was closed before anything was sent: nothing has happened yet.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(NoAnswer::Broken(error.into_error())),
                },
            }
        }
        let mut sender = match Box::pin(connect(agents, tasks, &target)).await {
            Ok(sender) => sender,
            Err(no_answer) => {
                *unsent = Some(request);
                return Err(no_answer);
            }
        };
        let response = sender.send_request(request).await.map_err(NoAnswer::Broken)?;
        Ok(self.answered(target, sender, response))
    }

    fn answered(
        self: &Arc<Self>,
        target: Target,
        sender: Sender,
        response: Response<Incoming>,
    ) -> Response<AppBody> {
        response.map(|body| {
            let mut body = AppBody { body, connection: Some((Arc::clone(self), target, sender)) };
            if body.body.is_end_stream() {
                body.give_back();
            }
            body
        })
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

    fn keep(&self, target: Target, sender: Sender) {
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
            for lane in &self.lanes {
                lane.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, idle| {
                    idle.retain(|idle| idle.since.elapsed() < IDLE_LIMIT && !idle.sender.is_closed());
                    !idle.is_empty()
                });
            }
        }
    }

    /// This thread's.
    fn lane(&self) -> MutexGuard<'_, Lane> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static LANE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        let lane = LANE.with(|lane| lane % self.lanes.len());
        self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner)
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

/// An app's answer. Its connection is free again once all of it has been read.
#[derive(Debug)]
pub(super) struct AppBody {
    body: Incoming,
    connection: Option<(Arc<Upstreams>, Target, Sender)>,
}

impl AppBody {
    fn give_back(&mut self) {
        if let Some((upstreams, target, sender)) = self.connection.take() {
            upstreams.keep(target, sender);
        }
    }
}

impl Body for AppBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // Whoever sends it on does not ask again after trailers.
        let trailers = matches!(&frame, Some(Ok(frame)) if frame.is_trailers());
        if frame.is_none() || trailers || self.body.is_end_stream() {
            self.give_back();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
