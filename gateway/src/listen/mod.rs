//! Connections: accepting them, TLS, HTTP/1.1 and HTTP/2, limits, and a gentle end. What is answered is not known here.
//!
//! The accept loop never waits for a client: handshakes and heads of requests are read in the connection's own task and
//! under a limit. A connection keeps its place among `connections_max` until its last byte, also as a WebSocket.

mod acme;
pub(crate) mod client;
mod connection;
mod doors;
mod ending;
mod framing;
pub(crate) mod redirect;
#[cfg(test)]
mod tests;
pub(crate) mod tls;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use envd_api::log;
use http::{Request, Response, header};
use hyper::{
    body::{Body, Incoming},
    server::conn::{http1, http2},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Notify, Semaphore},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use self::{
    connection::{Activity, Held, Leftover, Owned, Place},
    ending::{Idle, until_the_end},
    tls::Certificates,
};
pub(crate) use self::{
    connection::{Raw, RequestBody, discard},
    doors::Doors,
};
use crate::{config::Limits, tasks::Tasks};

/// The pause after the system refused to accept a connection, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// How long an HTTP/2 connection may be without a request. HTTP/1 has the time that its next head may take.
const IDLE_LIMIT: Duration = Duration::from_mins(2);
/// How often a silent HTTP/2 client is asked whether it is there, and how long it may take to say so.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_LIMIT: Duration = Duration::from_secs(20);
/// After how long a silence the kernel asks whether a client is there, how often then, and how many times in vain.
const KEEPALIVE_AFTER: Duration = Duration::from_mins(1);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVES_MAX: u32 = 4;
/// Requests at once on one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;
/// Streams of one HTTP/2 connection that were reset before anyone looked at them; past this it is closed.
const RESET_STREAMS_MAX: usize = 32;
/// The first byte of a TLS connection; no HTTP request begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What stands before HTTP.
#[derive(Debug, Clone)]
pub(crate) enum Front {
    Plain,
    Tls(Certificates),
    /// Whichever the client begins with.
    Either(Certificates),
}

/// A listener and how its connections are to be treated.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) listener: TcpListener,
    pub(crate) front: Front,
    pub(crate) limits: Limits,
}

/// What all connections of a door share.
struct Shared<A> {
    front: Front,
    limits: Limits,
    tasks: Tasks,
    places: Arc<Semaphore>,
    answer: A,
}

impl Door {
    /// Answers every request with `answer` until the process stops. Returns at once then; connections that are still
    /// open are tasks and end with them.
    pub(crate) async fn serve<A, F, B>(self, tasks: Tasks, answer: A)
    where
        A: Fn(Request<RequestBody>, SocketAddr) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
    {
        let (listener, shared) = self.share(tasks, answer);
        shared.accept(listener).await;
    }

    /// The same on a thread for each core. A connection stays on the thread that accepted it, with all that it needs
    /// to be answered, so that none waits for another core.
    pub(crate) async fn serve_on_every_core<A, F, B>(self, tasks: Tasks, answer: A) -> std::io::Result<()>
    where
        A: Fn(Request<RequestBody>, SocketAddr) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
    {
        let (listener, shared) = self.share(tasks.clone(), answer);
        on_every_core("serve", listener, &tasks, move |listener| Arc::clone(&shared).accept(listener))?;
        tasks.stopping().cancelled().await;
        Ok(())
    }

    fn share<A>(self, tasks: Tasks, answer: A) -> (TcpListener, Arc<Shared<A>>) {
        if let Err(error) = prepare(&self.listener) {
            tracing::warn!(%error, "connections of clients that vanish may stay open");
        }
        let places = Arc::new(Semaphore::new(self.limits.connections_max));
        (self.listener, Arc::new(Shared { front: self.front, limits: self.limits, tasks, places, answer }))
    }
}

/// Accepts connections with `accept` on a thread for each core. What one of them spawns stays on its thread, so that
/// nothing of a connection waits for another core. The threads end with the tasks of the process.
pub(crate) fn on_every_core<F: Future<Output = ()>>(
    name: &str,
    listener: TcpListener,
    tasks: &Tasks,
    accept: impl Fn(TcpListener) -> F + Clone + Send + 'static,
) -> std::io::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // One socket for all: with one for each thread, a second gateway on the same port would go unnoticed.
    let listener = listener.into_std()?;
    for core in 0..cores {
        let (listener, accept, tasks) = (listener.try_clone()?, accept.clone(), tasks.clone());
        let lines_wait = Arc::new(Notify::new());
        let waiting = Arc::clone(&lines_wait);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || {
                if log::write_gathered_at_leisure() {
                    waiting.notify_one();
                }
            })
            .build()?;
        let serve = move || {
            log::gather();
            runtime.block_on(async {
                tasks.spawn_many(write_lines(lines_wait, tasks.stopping()));
                match TcpListener::from_std(listener) {
                    Ok(listener) => accept(listener).await,
                    Err(error) => tracing::error!(%error, "a thread cannot accept connections"),
                }
                // What was begun here can only end here.
                tasks.ended().await;
            });
            log::write_gathered();
        };
        std::thread::Builder::new().name(format!("{name} {core}")).spawn(serve)?;
    }
    Ok(())
}

/// Writes the lines of the log that its thread had no leisure for.
async fn write_lines(wait: Arc<Notify>, stopping: CancellationToken) {
    loop {
        tokio::select! {
            () = wait.notified() => {}
            () = stopping.cancelled() => return,
        }
        tokio::time::sleep(log::GATHERED_FOR).await;
        log::write_gathered();
    }
}

/// Sets what the connections of a listener begin with: they inherit it, and none of them is asked for it again. Whoever
/// has vanished without a word is noticed also where nobody speaks, as on a WebSocket of a silent app.
pub(crate) fn prepare(listener: &TcpListener) -> std::io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_tcp_nodelay(listener, true)?;
    sockopt::set_socket_keepalive(listener, true)?;
    sockopt::set_tcp_keepidle(listener, KEEPALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(listener, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(listener, KEEPALIVES_MAX)?;
    Ok(())
}

impl<A, F, B> Shared<A>
where
    A: Fn(Request<RequestBody>, SocketAddr) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
{
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        let stopping = self.tasks.stopping();
        loop {
            let accepted = async {
                let place = Arc::clone(&self.places).acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                accepted = accepted => accepted,
                () = stopping.cancelled() => return,
            };
            match (place, accepted) {
                (Ok(place), Ok((stream, peer))) => {
                    let serve = Arc::clone(&self).connection(stream, peer, Place::new(place));
                    self.tasks.spawn_many(serve);
                    // Whoever comes first would take a whole burst, and leave the other threads without work.
                    tokio::task::yield_now().await;
                }
                (_, Err(error)) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                (Err(_), Ok(_)) => return, // nobody closes it
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, place: Place) {
        let greeting = timeout(self.limits.handshake_limit, async {
            let certificates = match &self.front {
                Front::Plain => return Ok(Greeted::Plain(stream)),
                Front::Tls(certificates) => certificates,
                Front::Either(certificates) => {
                    let mut first = [0];
                    if stream.peek(&mut first).await? == 0 || first[0] != TLS_HANDSHAKE {
                        return Ok(Greeted::Plain(stream));
                    }
                    certificates
                }
            };
            Ok::<_, std::io::Error>(match certificates.accept(stream).await? {
                Some(stream) => Greeted::Tls(Box::new(stream)),
                None => Greeted::Done,
            })
        });
        match greeting.await {
            Ok(Ok(Greeted::Plain(stream))) => self.http(stream, peer, place, false).await,
            Ok(Ok(Greeted::Tls(stream))) => {
                let http2 = stream.get_ref().1.alpn_protocol() == Some(tls::HTTP_2);
                self.http(*stream, peer, place, http2).await;
            }
            Ok(Ok(Greeted::Done)) => {}
            Ok(Err(error)) => tracing::debug!(%peer, %error, "a handshake failed"),
            Err(_) => tracing::debug!(%peer, "a handshake took too long"),
        }
    }

    async fn http<IO>(self: Arc<Self>, stream: IO, peer: SocketAddr, place: Place, http2: bool)
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let activity = Activity::default();
        let service = hyper::service::service_fn({
            let (shared, activity, place) = (Arc::clone(&self), activity.clone(), place.clone());
            move |request| {
                let (busy, place) = (activity.busy(), place.clone());
                let ambiguous = is_ambiguous(&request);
                let (request, leftover) = shared.tidied(request, http2);
                let answer = (!ambiguous).then(|| (shared.answer)(request, peer));
                // Only where it is needed: the tasks are behind a lock that all connections share.
                let leftover = leftover.map(|leftover| (leftover, shared.tasks.clone()));
                async move {
                    let Some(answer) = answer else { return Ok(refusal(busy, http2)) };
                    let response = answer.await;
                    if let Some((leftover, tasks)) = leftover
                        && let Some(discard) = leftover.discard()
                    {
                        tasks.spawn("discard", discard);
                    }
                    if response.status() == http::StatusCode::SWITCHING_PROTOCOLS {
                        place.is_websocket();
                    }
                    Ok::<_, std::convert::Infallible>(response.map(|body| Held::new(body, busy)))
                }
            }
        });
        let io = TokioIo::new(Owned::new(stream, place, http2));
        let ended = if http2 {
            let serving = std::pin::pin!(self.http2().serve_connection(io, service));
            let (end_gently, idle) = (http2::Connection::graceful_shutdown, Idle::IsTold(IDLE_LIMIT));
            until_the_end(&self.tasks, serving, end_gently, &activity, idle).await
        } else {
            let serving = std::pin::pin!(self.http1().serve_connection(io, service).with_upgrades());
            let end_gently = http1::UpgradeableConnection::graceful_shutdown;
            let idle = Idle::Closes(self.limits.headers_limit);
            until_the_end(&self.tasks, serving, end_gently, &activity, idle).await
        };
        if let Err(error) = ended {
            tracing::debug!(%peer, %error, "a connection broke");
        }
    }

    /// The same request whatever the protocol: a body that cannot stall for ever, and the host in its header.
    fn tidied(&self, request: Request<Incoming>, http2: bool) -> (Request<RequestBody>, Option<Leftover>) {
        let (head, body) = request.into_parts();
        let leftover = http2.then(Leftover::default);
        let body = RequestBody::new(body, self.limits.headers_limit, leftover.clone());
        let mut request = Request::from_parts(head, body);
        // HTTP/2 says it beside the headers, and one that also says it in them may not say another.
        let authority = request.uri().authority().and_then(|authority| authority.as_str().parse().ok());
        if let Some(host) = authority {
            request.headers_mut().insert(header::HOST, host);
        }
        (request, leftover)
    }

    // Never a builder for both protocols: that one waits for the first bytes without a limit.

    fn http1(&self) -> http1::Builder {
        let mut builder = http1::Builder::new();
        builder
            // Its own limit on heads would be a timer for each request; see `until_the_end`.
            .header_read_timeout(None)
            .max_header_size(self.limits.headers_max_bytes as usize);
        builder
    }

    fn http2(&self) -> http2::Builder<Tasks> {
        let mut builder = http2::Builder::new(self.tasks.clone());
        builder
            .timer(TokioTimer::new())
            .max_header_list_size(self.limits.headers_max_bytes)
            .max_concurrent_streams(STREAMS_MAX)
            .max_pending_accept_reset_streams(RESET_STREAMS_MAX)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_LIMIT);
        builder
    }
}

/// Whether a request leaves a doubt about which host it is for, or asks for a tunnel to one.
fn is_ambiguous(request: &Request<Incoming>) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    let named = request.uri().authority().map(http::uri::Authority::as_str);
    let differ = match (named, host) {
        (Some(named), Some(host)) => !host.as_bytes().eq_ignore_ascii_case(named.as_bytes()),
        (None, None) => request.version() >= http::Version::HTTP_11,
        (Some(_), None) | (None, Some(_)) => false,
    };
    second.is_some() || differ || request.method() == http::Method::CONNECT
}

fn refusal<B>(busy: connection::Busy, http2: bool) -> Response<Held<B>> {
    let mut response = Response::new(Held::empty(busy));
    *response.status_mut() = http::StatusCode::BAD_REQUEST;
    if !http2 {
        response.headers_mut().insert(header::CONNECTION, http::HeaderValue::from_static("close"));
    }
    response
}

/// How a connection began.
enum Greeted {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
    /// It wanted nothing but the handshake.
    Done,
}

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.spawn("request", async move {
            future.await;
        });
    }
}
