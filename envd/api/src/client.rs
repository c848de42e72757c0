//! The client of envd's control socket.
//!
//! One connection per call: calls are few, a unix socket costs nothing, and so a broken connection never fails the
//! next call. Each future and stream drives its own connection, hence dropping it is all that it takes to stop.
//! What envd says is believed only within bounds: every answer, line and record has a largest size.

use std::{
    future::poll_fn,
    io,
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, stream};
use gateway_api::{ImageId, InstanceId, image::Changes};
use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper::{
    body::{Body, Incoming},
    client::conn::http1,
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
    time::{error::Elapsed, timeout},
};

use crate::agent::{Reply, read_message};
use crate::control::{
    Counted, FindImage, Finding, HEARTBEAT, LOG_RECORD_MAX, LocalImage, LogHead, Mounted, NodeReport,
    PUT_MAX, PutInstance, Refused, Report, Stale, WatchEvent,
};
use crate::save::{AskChanges, Collect, Collected, PutSave, RemoveImage, SaveState};

/// The most that connecting to the socket may take.
const CONNECT: Duration = Duration::from_secs(2);
/// The most that an answer from envd's memory may take.
const ANSWER: Duration = Duration::from_secs(10);
/// The most that an answer may take for which envd asks the engine.
const ENGINE_ANSWER: Duration = Duration::from_secs(30);
/// The most that a registry may take, and the engine before it.
const REGISTRY_ANSWER: Duration = Duration::from_secs(30);
/// The most that a look through all changed files may take.
const CHANGES_ANSWER: Duration = Duration::from_mins(1);
/// The most that looking through all blobs of a registry may take.
const COLLECTION: Duration = Duration::from_mins(10);
/// A watch that was silent for this long is dead.
const WATCH_SILENCE: Duration = HEARTBEAT.saturating_mul(3);
/// The longest answer, and the longest line of a watch.
const ANSWER_MAX: usize = 64 << 20;
/// The longest message of a refusal.
const REFUSED_MAX: usize = 64 << 10;

/// Speaks to one envd.
#[derive(Debug, Clone)]
pub struct EnvdClient {
    socket: PathBuf,
}

/// Why a call to envd failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("envd does not answer")]
    Unreachable {
        #[source]
        cause: io::Error,
    },
    /// envd answered and said no; `message` is its reason.
    #[error("{message}")]
    Refused {
        status: StatusCode,
        message: String,
        /// With 409 to a put.
        stale: Option<Stale>,
    },
    #[error("envd gave an answer that is not understood: {0}")]
    Protocol(String),
}

type Connection = http1::Connection<TokioIo<UnixStream>, Full<Bytes>>;

/// An answer whose body is still to be read, with the connection that it comes over.
struct Answer {
    /// Gone once it has ended.
    connection: Option<Pin<Box<Connection>>>,
    status: StatusCode,
    body: Incoming,
    /// Read and not yet used.
    pending: BytesMut,
}

// === impl EnvdClient ===

impl EnvdClient {
    pub fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Sets the goal for one instance. A success says that envd knows, not that it is done.
    pub async fn put(&self, id: &InstanceId, put: &PutInstance) -> Result<(), ClientError> {
        let body = encode(put)?;
        if body.len() > PUT_MAX {
            // envd would say the same, but close before all is sent.
            let message = format!("the instance takes more than {PUT_MAX} bytes to describe");
            return Err(ClientError::Refused { status: StatusCode::PAYLOAD_TOO_LARGE, message, stale: None });
        }
        self.call(ANSWER, Method::PUT, &format!("/v1/instances/{id}"), Some(body)).await.map(drop)
    }

    /// Everything that envd knows now, from its memory.
    pub async fn report(&self) -> Result<Report, ClientError> {
        decode(&self.call(ANSWER, Method::GET, "/v1/instances", None).await?)
    }

    /// The containers of this cluster that nobody has asked for since envd started.
    pub async fn orphans(&self) -> Result<Report, ClientError> {
        decode(&self.call(ANSWER, Method::GET, "/v1/instances?orphans=true", None).await?)
    }

    /// The storages that an instance of `user` in `group` gets. Both are keys, see
    /// [`InstanceSpec`](crate::control::InstanceSpec).
    pub async fn storage(&self, user: &str, group: &str) -> Result<Vec<Mounted>, ClientError> {
        let path = format!("/v1/storage?{}", whose(user, group)?);
        decode(&self.call(ANSWER, Method::GET, &path, None).await?)
    }

    /// A conversation by SFTP on the same storages, with no instance.
    pub async fn storage_sftp(
        &self,
        user: &str,
        group: &str,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, ClientError> {
        let path = format!("/v1/storage/sftp?{}", whose(user, group)?);
        let open = async {
            let mut stream = TokioIo::new(self.upgrade(&path).await?);
            match read_message(&mut stream).await {
                Ok(Reply::Stream) => Ok(stream),
                Ok(Reply::Refused { message, .. }) => Err(ClientError::Refused {
                    status: StatusCode::INTERNAL_SERVER_ERROR,
                    message,
                    stale: None,
                }),
                Ok(Reply::Descriptor | Reply::Listening { .. }) => {
                    Err(ClientError::Protocol("not a stream".to_owned()))
                }
                Err(error) => Err(ClientError::Protocol(error.to_string())),
            }
        };
        timeout(ANSWER, open).await.map_err(timed_out)?
    }

    /// The images that need no download.
    pub async fn images(&self) -> Result<Vec<LocalImage>, ClientError> {
        decode(&self.call(ENGINE_ANSWER, Method::GET, "/v1/images", None).await?)
    }

    /// What a registry says of an image.
    pub async fn find_image(&self, find: &FindImage) -> Result<Finding, ClientError> {
        decode(&self.call(REGISTRY_ANSWER, Method::POST, "/v1/images/find", Some(encode(find)?)).await?)
    }

    /// Begins to save an instance, or goes on with it.
    pub async fn put_save(&self, image: &ImageId, save: &PutSave) -> Result<SaveState, ClientError> {
        let path = format!("/v1/saves/{image}");
        decode(&self.call(ENGINE_ANSWER, Method::PUT, &path, Some(encode(save)?)).await?)
    }

    /// How far a save is: in a moment, or when it is over.
    pub async fn save(&self, image: &ImageId) -> Result<SaveState, ClientError> {
        decode(&self.call(ANSWER, Method::GET, &format!("/v1/saves/{image}"), None).await?)
    }

    /// Gives a save up, or forgets a finished one.
    pub async fn forget_save(&self, image: &ImageId) -> Result<(), ClientError> {
        self.call(ENGINE_ANSWER, Method::DELETE, &format!("/v1/saves/{image}"), None).await.map(drop)
    }

    /// Lets a save that failed be tried again.
    pub async fn rest_save(&self, image: &ImageId) -> Result<(), ClientError> {
        self.call(ENGINE_ANSWER, Method::POST, &format!("/v1/saves/{image}/rest"), None).await.map(drop)
    }

    /// Takes an image out of the registry.
    pub async fn remove_image(&self, image: &RemoveImage) -> Result<(), ClientError> {
        let path = "/v1/images/remove";
        self.call(ENGINE_ANSWER, Method::POST, path, Some(encode(image)?)).await.map(drop)
    }

    /// Removes what no image needs.
    pub async fn collect(&self, collect: &Collect) -> Result<Collected, ClientError> {
        decode(&self.call(COLLECTION, Method::POST, "/v1/images/collect", Some(encode(collect)?)).await?)
    }

    /// What a save would put into an image.
    pub async fn changes(&self, id: &InstanceId, ask: &AskChanges) -> Result<Changes, ClientError> {
        let path = format!("/v1/instances/{id}/changes");
        decode(&self.call(CHANGES_ANSWER, Method::POST, &path, Some(encode(ask)?)).await?)
    }

    /// The machine behind this cluster.
    pub async fn node(&self) -> Result<NodeReport, ClientError> {
        decode(&self.call(ENGINE_ANSWER, Method::GET, "/v1/node", None).await?)
    }

    /// What each running instance has used.
    pub async fn counts(&self) -> Result<Vec<Counted>, ClientError> {
        decode(&self.call(ANSWER, Method::GET, "/v1/counts", None).await?)
    }

    /// A report, then each change, until envd ends or is silent for too long. After an error the stream ends.
    pub fn watch(&self) -> impl Stream<Item = Result<WatchEvent, ClientError>> + Send + use<> {
        let client = self.clone();
        stream::try_unfold(None, move |answer: Option<Answer>| {
            let client = client.clone();
            async move {
                let mut answer = match answer {
                    Some(answer) => answer,
                    None => client.open(ANSWER, "/v1/watch").await?,
                };
                loop {
                    let line = timeout(WATCH_SILENCE, answer.line()).await.map_err(timed_out)??;
                    match line {
                        None => return Ok(None),
                        Some(line) if line.is_empty() => {}
                        Some(line) => return Ok(Some((decode(&line)?, Some(answer)))),
                    }
                }
            }
        })
    }

    /// The output of an instance's container as `(stream, bytes)`: the last `tail` lines (all when `None`) of those that
    /// came after so many seconds of Unix time, and with `follow` what comes after, until the container ends. After an error the stream ends.
    pub fn logs(
        &self,
        id: &InstanceId,
        tail: Option<u64>,
        since: Option<i64>,
        follow: bool,
    ) -> impl Stream<Item = Result<(u8, Bytes), ClientError>> + Send + use<> {
        let client = self.clone();
        let tail = tail.map(|lines| format!("&tail={lines}")).unwrap_or_default();
        let since = since.map(|second| format!("&since={second}")).unwrap_or_default();
        let path = format!("/v1/instances/{id}/logs?follow={follow}{tail}{since}");
        stream::try_unfold(None, move |answer: Option<Answer>| {
            let (client, path) = (client.clone(), path.clone());
            async move {
                let mut answer = match answer {
                    Some(answer) => answer,
                    None => client.open(ENGINE_ANSWER, &path).await?,
                };
                Ok(answer.log_record().await?.map(|record| (record, Some(answer))))
            }
        })
    }

    /// Sends a request and reads the whole answer within `limit`.
    async fn call(
        &self,
        limit: Duration,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<Bytes, ClientError> {
        let whole = async { self.send(method, path, body).await?.accepted().await?.whole(ANSWER_MAX).await };
        timeout(limit, whole).await.map_err(timed_out)?
    }

    /// Sends a request and reads the head of the answer within `limit`.
    async fn open(&self, limit: Duration, path: &str) -> Result<Answer, ClientError> {
        let head = async { self.send(Method::GET, path, None).await?.accepted().await };
        timeout(limit, head).await.map_err(timed_out)?
    }

    /// Sends a request after whose answer the connection is something else.
    async fn upgrade(&self, path: &str) -> Result<Upgraded, ClientError> {
        let (mut sender, connection) = self.connect().await?;
        let request = request(Method::GET, path)
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "sftp")
            .body(Full::default())
            .map_err(|error| ClientError::Protocol(error.to_string()))?;
        let ask = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                return hyper::upgrade::on(response).await.map_err(broken);
            }
            let (status, body) = (response.status(), response.into_body());
            let answer = Answer { connection: None, status, body, pending: BytesMut::new() };
            answer.accepted().await?;
            Err(ClientError::Protocol("the connection was not given over".to_owned()))
        };
        // It ends as soon as it is given over, which is not the end of the question.
        let drive = async {
            let _ended = connection.with_upgrades().await;
            std::future::pending().await
        };
        tokio::select! { answer = ask => answer, never = drive => never }
    }

    async fn connect(&self) -> Result<(http1::SendRequest<Full<Bytes>>, Connection), ClientError> {
        let socket = timeout(CONNECT, UnixStream::connect(&self.socket))
            .await
            .map_err(timed_out)?
            .map_err(|cause| ClientError::Unreachable { cause })?;
        http1::Builder::new().handshake(TokioIo::new(socket)).await.map_err(broken)
    }

    async fn send(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<Answer, ClientError> {
        let (mut sender, connection) = self.connect().await?;
        let mut connection = Box::pin(connection);
        let request = request(method, path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.unwrap_or_default()))
            .map_err(|error| ClientError::Protocol(error.to_string()))?;
        let response = sender.send_request(request);
        let mut response = std::pin::pin!(response);
        let mut ended = false;
        let head = poll_fn(|context| {
            if !ended && connection.as_mut().poll(context).is_ready() {
                ended = true;
            }
            response.as_mut().poll(context)
        })
        .await
        .map_err(broken)?;
        let status = head.status();
        let connection = (!ended).then_some(connection);
        Ok(Answer { connection, status, body: head.into_body(), pending: BytesMut::new() })
    }
}

// === impl Answer ===

impl Answer {
    /// This answer if it is a success, else the refusal that it carries.
    async fn accepted(mut self) -> Result<Self, ClientError> {
        if self.status.is_success() {
            return Ok(self);
        }
        let status = self.status;
        let body = self.whole(REFUSED_MAX).await?;
        let Refused { message, stale } = serde_json::from_slice(&body)
            .unwrap_or_else(|_| Refused { message: format!("envd answered {status}"), stale: None });
        Err(ClientError::Refused { status, message, stale })
    }

    /// Reads more into `pending`; `false` at the end.
    async fn more(&mut self) -> Result<bool, ClientError> {
        loop {
            match poll_fn(|context| self.poll_frame(context)).await {
                None => return Ok(false),
                Some(Err(error)) => return Err(broken(error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.pending.extend_from_slice(&data);
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        // The body gets its bytes from the connection, which nobody else drives. An error of the connection reaches
        // the body too.
        if let Some(connection) = &mut self.connection
            && connection.as_mut().poll(context).is_ready()
        {
            self.connection = None;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    async fn whole(&mut self, most: usize) -> Result<Bytes, ClientError> {
        while self.more().await? {
            if self.pending.len() > most {
                return Err(ClientError::Protocol(format!("more than {most} bytes")));
            }
        }
        Ok(self.pending.split().freeze())
    }

    /// The next line without its end; `None` at the end.
    async fn line(&mut self) -> Result<Option<Bytes>, ClientError> {
        let mut searched = 0;
        loop {
            let end = self.pending.iter().skip(searched).position(|&byte| byte == b'\n');
            if let Some(end) = end.map(|end| end + searched) {
                let line = self.pending.split_to(end).freeze();
                self.pending.advance(1);
                return Ok(Some(line));
            }
            searched = self.pending.len();
            if searched > ANSWER_MAX {
                return Err(ClientError::Protocol(format!("a line of more than {ANSWER_MAX} bytes")));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// The next log record; `None` at the end.
    async fn log_record(&mut self) -> Result<Option<(u8, Bytes)>, ClientError> {
        loop {
            if let Some((head, _)) = self.pending.split_first_chunk::<{ LogHead::BYTES }>() {
                let LogHead { stream, length } = LogHead::decode(*head);
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > LOG_RECORD_MAX {
                    return Err(ClientError::Protocol(format!("a log record of {length} bytes")));
                }
                if self.pending.len() >= LogHead::BYTES + length {
                    self.pending.advance(LogHead::BYTES);
                    return Ok(Some((stream, self.pending.split_to(length).freeze())));
                }
            }
            if !self.more().await? {
                return if self.pending.is_empty() {
                    Ok(None)
                } else {
                    Err(ClientError::Protocol("the log ends inside a record".to_owned()))
                };
            }
        }
    }
}

fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(path).header(header::HOST, "envd")
}

/// The query that names storages. Keys need no escaping; what is no key is refused here.
fn whose(user: &str, group: &str) -> Result<String, ClientError> {
    let is_plain = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if is_plain(user) && is_plain(group) {
        return Ok(format!("user={user}&group={group}"));
    }
    let message = "a user or group that is not a key".to_owned();
    Err(ClientError::Refused { status: StatusCode::UNPROCESSABLE_ENTITY, message, stale: None })
}

fn encode(value: &impl Serialize) -> Result<Bytes, ClientError> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| ClientError::Protocol(error.to_string()))
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Protocol(error.to_string()))
}

fn timed_out(_: Elapsed) -> ClientError {
    ClientError::Unreachable { cause: io::ErrorKind::TimedOut.into() }
}

fn broken(error: hyper::Error) -> ClientError {
    ClientError::Unreachable { cause: io::Error::other(error) }
}
