//! The control socket, the only place that knows axum: the calls of [`envd_api::control`] and nothing else.
//!
//! Who may speak is decided by the kernel's word on the peer's user, before a byte is read.

mod save;
mod sftp;
mod socket;

use std::{
    convert::Infallible,
    error::Error,
    net::{IpAddr, Ipv4Addr, UdpSocket},
    sync::Arc,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{
        DefaultBodyLimit, Path, Query, State,
        rejection::{JsonRejection, PathRejection, QueryRejection},
    },
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use envd_api::control::{
    Counted, EngineState, FindImage, Finding, HEARTBEAT, LOG_RECORD_MAX, LocalImage, LogHead, Mounted,
    NodeReport, PUT_MAX, PutInstance, Refused, Report, Stale, Syscalls, WatchEvent,
};
use futures_util::{Stream, StreamExt, stream};
use gateway_api::InstanceId;
use serde::Deserialize;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::timeout,
};
use tracing::{info, warn};

pub(crate) use self::socket::Socket;
use crate::{
    for_users::without_addresses,
    node::{Node, PutError},
    runtime::{LogRecord, Machine, Runtime, RuntimeError},
    storage::{Place, is_full},
};

/// Serves until the process is told to stop.
pub(crate) async fn serve<R: Runtime>(socket: Socket, node: Arc<Node<R>>) -> std::io::Result<()> {
    let stopping = node.world.tasks.stopping();
    let router = Router::new()
        .route("/v1/instances", get(report))
        .route("/v1/instances/{id}", put(put_instance))
        .route("/v1/instances/{id}/logs", get(logs))
        .route("/v1/instances/{id}/changes", post(save::changes))
        .route("/v1/watch", get(watch))
        .route("/v1/images", get(images))
        .route("/v1/images/find", post(find_image))
        .route("/v1/images/remove", post(save::remove))
        .route(
            "/v1/images/collect",
            post(save::collect).layer(DefaultBodyLimit::max(envd_api::save::COLLECT_MAX)),
        )
        .route("/v1/saves/{id}", get(save::state).put(save::put).delete(save::forget))
        .route("/v1/saves/{id}/rest", post(save::rest))
        .route("/v1/storage", get(storage))
        .route("/v1/storage/sftp", get(sftp::open))
        .route("/v1/counts", get(counts))
        .route("/v1/node", get(machine))
        .fallback(async || refusal(StatusCode::NOT_FOUND, "there is no such call"))
        .method_not_allowed_fallback(async || {
            refusal(StatusCode::METHOD_NOT_ALLOWED, "there is no such call")
        })
        .layer(DefaultBodyLimit::max(PUT_MAX))
        .with_state(node);
    axum::serve(socket, router).with_graceful_shutdown(stopping.cancelled_owned()).await
}

async fn put_instance<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    id: Result<Path<InstanceId>, PathRejection>,
    body: Result<Json<PutInstance>, JsonRejection>,
) -> Result<StatusCode, Answer> {
    let (Path(id), Json(body)) = (id?, body?);
    match node.put(id.clone(), body).await {
        Ok(()) => Ok(StatusCode::ACCEPTED),
        Err(error) => {
            let known = if let PutError::Stale { seen, .. } = &error { Some(*seen) } else { None };
            let stale = known.map(|known| Stale { known, running: node.is_running(&id) });
            Err(Answer { stale, ..error.into() })
        }
    }
}

#[derive(Debug, Deserialize)]
struct Which {
    /// Only the containers that nobody has asked for.
    #[serde(default)]
    orphans: bool,
}

async fn report<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    query: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Report>, Answer> {
    let Query(Which { orphans }) = query?;
    let mut report = node.world.board.report();
    report.instances.retain(|observed| !orphans || observed.generation.is_none());
    Ok(Json(report))
}

async fn watch<R: Runtime>(State(node): State<Arc<Node<R>>>) -> Response {
    let (report, changes) = node.world.board.watch();
    let stopping = node.world.tasks.stopping().cancelled_owned();
    let first = stream::once(async move { line(&WatchEvent::Report(report)) });
    let lines = first.chain(changed_lines(node, changes)).map(Ok::<_, Infallible>);
    let body = Body::from_stream(lines.take_until(stopping));
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

/// A line for each change, an empty one when there is none for a while.
fn changed_lines<R: Runtime>(
    node: Arc<Node<R>>,
    changes: Receiver<WatchEvent>,
) -> impl Stream<Item = Bytes> + Send {
    stream::unfold((node, changes), async |(node, mut changes)| {
        match timeout(HEARTBEAT, changes.recv()).await {
            Ok(Ok(event)) => Some((line(&event), (node, changes))),
            Ok(Err(RecvError::Lagged(_))) => {
                let (report, changes) = node.world.board.watch();
                Some((line(&WatchEvent::Report(report)), (node, changes)))
            }
            Ok(Err(RecvError::Closed)) => None,
            Err(_) => Some((Bytes::from_static(b"\n"), (node, changes))),
        }
    })
}

fn line(event: &WatchEvent) -> Bytes {
    let mut line = serde_json::to_vec(event).unwrap_or_else(|error| {
        warn!(%error, "a change that cannot be written");
        Vec::new()
    });
    line.push(b'\n');
    line.into()
}

#[derive(Debug, Deserialize)]
struct Logs {
    tail: Option<u64>,
    /// Seconds of Unix time.
    since: Option<i64>,
    #[serde(default)]
    follow: bool,
}

async fn logs<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    id: Result<Path<InstanceId>, PathRejection>,
    query: Result<Query<Logs>, QueryRejection>,
) -> Result<Response, Answer> {
    let (Path(id), Query(Logs { tail, since, follow })) = (id?, query?);
    let Ok(reader) = Arc::clone(&node.log_readers).try_acquire_owned() else {
        let message = "too many logs are being read at once".to_owned();
        return Err(Answer::new(StatusCode::TOO_MANY_REQUESTS, message));
    };
    let runtime = &node.world.runtime;
    let Some(container) = runtime.find(&id).await? else {
        return Err(Answer::new(StatusCode::NOT_FOUND, format!("`{id}` has no container")));
    };
    let records = runtime.logs(&container, tail, since, follow).await?;
    let stopping = node.world.tasks.stopping().cancelled_owned();
    let framed = move |record: Result<LogRecord, _>| {
        let _until_the_end = &reader;
        record.map(|record| framed(&record))
    };
    let body = records.map(framed).take_until(stopping);
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], Body::from_stream(body)).into_response())
}

/// A record of the engine's as one or more of ours.
fn framed(record: &LogRecord) -> Bytes {
    let mut framed = Vec::with_capacity(record.bytes.len() + LogHead::BYTES);
    for piece in record.bytes.chunks(LOG_RECORD_MAX) {
        let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        framed.extend_from_slice(&LogHead { stream: record.stream, length }.encode());
        framed.extend_from_slice(piece);
    }
    framed.into()
}

async fn images<R: Runtime>(State(node): State<Arc<Node<R>>>) -> Result<Json<Vec<LocalImage>>, Answer> {
    Ok(Json(node.world.runtime.images().await?))
}

async fn find_image<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    body: Result<Json<FindImage>, JsonRejection>,
) -> Result<Json<Finding>, Answer> {
    let Json(FindImage { reference, login }) = body?;
    let found = node.world.runtime.find_image(&reference, login.as_ref()).await;
    if let Err(error) = &found {
        info!(image = reference, %error, "an image is not to be had");
    }
    let told = |text: String| node.world.names.in_words(&text, &reference);
    Ok(Json(match found {
        Ok(Some(digest)) => Finding::Found { digest },
        Ok(None) => Finding::Ours,
        Err(RuntimeError::BadImage { why, .. }) => Finding::Bad { why },
        Err(RuntimeError::ImageNotFound { why, .. }) => Finding::NotFound { why: told(why) },
        Err(RuntimeError::Denied { registry, why, .. }) => {
            Finding::Denied { registry: told(registry), why: told(why) }
        }
        Err(RuntimeError::NoRegistry { registry, why, .. }) => {
            Finding::NoAnswer { registry: told(registry), why: told(why) }
        }
        Err(RuntimeError::RegistryNotAllowed { registry, allowed }) => {
            Finding::NotAllowed { registry, allowed }
        }
        Err(error) => return Err(error.into()),
    }))
}

#[derive(Debug, Deserialize)]
struct Whose {
    user: String,
    #[serde(default)]
    group: String,
}

async fn storage<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    query: Result<Query<Whose>, QueryRejection>,
) -> Result<Json<Vec<Mounted>>, Answer> {
    let Query(Whose { user, group }) = query?;
    let places = node.world.storages.places(&user, &group).map_err(PutError::from)?;
    Ok(Json(places.iter().map(Place::mounted).collect()))
}

async fn machine<R: Runtime>(State(node): State<Arc<Node<R>>>) -> Json<NodeReport> {
    // Also without an engine there is a machine.
    let engine = node.world.board.engine();
    let found = if engine == EngineState::Ready { node.world.runtime.machine().await.ok() } else { None };
    let Machine { name, cpus, memory_bytes, syscalls } = found.unwrap_or_else(kernel_machine);
    let (tenants, disk) = (node.world.runtime.tenants(), node.world.runtime.disk_limit());
    let cards = node.world.cards.known();
    let gpus = u32::try_from(cards.len()).unwrap_or(u32::MAX);
    let address = own_address();
    Json(NodeReport { name, address, cpus, memory_bytes, gpus, cards, engine, tenants, syscalls, disk })
}

async fn counts<R: Runtime>(State(node): State<Arc<Node<R>>>) -> Json<Vec<Counted>> {
    Json(node.counted().clone())
}

/// The address that this machine speaks to others from. Nothing is sent: that a way was chosen is enough.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address that is set aside for examples: the way to it is the way to everywhere.
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback())
}

#[expect(clippy::cast_precision_loss, reason = "no machine has that many processors")]
fn kernel_machine() -> Machine {
    let memory = rustix::system::sysinfo();
    Machine {
        name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from) as f64,
        memory_bytes: memory.totalram * u64::from(memory.mem_unit),
        syscalls: Syscalls::Unknown,
    }
}

/// An answer that is not a success.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    message: String,
    stale: Option<Stale>,
}

impl Answer {
    fn new(status: StatusCode, message: String) -> Self {
        Self { status, message, stale: None }
    }
}

fn refusal(status: StatusCode, message: &str) -> Response {
    Answer::new(status, message.to_owned()).into_response()
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.status, Json(Refused { message: self.message, stale: self.stale })).into_response()
    }
}

impl From<PutError> for Answer {
    fn from(error: PutError) -> Self {
        let status = match &error {
            PutError::Stale { .. } => StatusCode::CONFLICT,
            PutError::Storage(_) | PutError::BadHostname(_) => StatusCode::UNPROCESSABLE_ENTITY,
            PutError::Door(cause) if is_full(cause) => StatusCode::INSUFFICIENT_STORAGE,
            PutError::Full => StatusCode::INSUFFICIENT_STORAGE,
            PutError::Door(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Self::new(status, format!("{error}{cause}"))
    }
}

impl From<RuntimeError> for Answer {
    fn from(error: RuntimeError) -> Self {
        let status = match &error {
            RuntimeError::Unreachable { .. } | RuntimeError::NotApart { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            RuntimeError::Foreign { .. }
            | RuntimeError::ImageNotFound { .. }
            | RuntimeError::Denied { .. } => StatusCode::NOT_FOUND,
            RuntimeError::BadImage { .. }
            | RuntimeError::RegistryNotAllowed { .. }
            | RuntimeError::Refused { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            RuntimeError::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
            RuntimeError::Download { .. }
            | RuntimeError::NoRegistry { .. }
            | RuntimeError::Stuck { .. }
            | RuntimeError::Engine { .. } => StatusCode::BAD_GATEWAY,
        };
        warn!(%error, "a call is answered with an error");
        Self::new(status, without_addresses(&error.to_string(), ""))
    }
}

macro_rules! from_rejection {
    ($($rejection:ty),+) => {$(
        impl From<$rejection> for Answer {
            fn from(rejection: $rejection) -> Self {
                Self::new(rejection.status(), rejection.body_text())
            }
        }
    )+};
}
from_rejection!(PathRejection, JsonRejection, QueryRejection);
