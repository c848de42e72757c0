//! A process on the other side of a WebSocket: `exec`, a persistent terminal, followed logs.
//!
//! The two directions are apart, so that one task may read while another writes; neither hides the end of the
//! connection from the other.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use reqwest::Url;
use serde::Serialize;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config,
    tungstenite::{self, Message, client::IntoClientRequest as _, protocol::WebSocketConfig},
};

use super::{Client, ClientError, http::CONNECT_LIMIT};
use crate::{
    error::Problem,
    stream::{ExecStart, Exit, FromClient, FromServer, STDERR, STDOUT, Size},
};

/// The largest message taken: a terminal's whole scrollback comes as one.
const MESSAGE_LIMIT: usize = 8 << 20;
/// The largest message sent. More is cut into several.
const SEND_LIMIT: usize = 32 << 10;
/// How much may wait to be sent before writing waits too.
const UNSENT_LIMIT: usize = 1 << 20;
/// How long the other side may take to end a connection that is over.
const GOODBYE_LIMIT: Duration = Duration::from_secs(2);
/// The most that [`Process::finish`] keeps of each stream.
const OUTPUT_LIMIT: usize = 64 << 20;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A process and both of its directions.
#[derive(Debug)]
pub struct Process {
    pub input: ProcessInput,
    pub output: ProcessOutput,
}

/// What one tells a process.
#[derive(Debug)]
pub struct ProcessInput {
    sink: SplitSink<Socket, Message>,
    url: Url,
}

/// What one hears from it.
#[derive(Debug)]
pub struct ProcessOutput {
    stream: SplitStream<Socket>,
    framing: Framing,
    url: Url,
    over: bool,
}

/// One thing heard from a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEvent {
    Output {
        stream: StandardStream,
        bytes: Bytes,
    },
    /// It ended. Nothing follows.
    Exit(Exit),
    /// The gateway cannot go on. Nothing follows.
    Problem(Box<Problem>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardStream {
    Stdout,
    Stderr,
}

/// A process that has ended, with all that it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub exit: Exit,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Whether a binary message begins with the number of its stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Framing {
    Prefixed,
    Plain,
}

// === impl Client ===

impl Client {
    /// Runs `argv` to its end with `stdin`, and keeps what it writes.
    pub async fn run(&self, name: &str, argv: &[&str], stdin: &[u8]) -> Result<Finished, ClientError> {
        let argv = argv.iter().map(|&part| part.to_owned()).collect();
        let start = ExecStart { argv, env: [].into(), cwd: None, tty: None };
        self.exec(name, &start).await?.finish(stdin).await
    }
}

// === impl Process ===

impl Process {
    pub(super) async fn connect(client: &Client, url: Url, framing: Framing) -> Result<Self, ClientError> {
        let mut address = url.clone();
        if address.set_scheme(if url.scheme() == "https" { "wss" } else { "ws" }).is_err() {
            return Err(ClientError::protocol(&url, "it takes no WebSockets"));
        }
        let mut request = address
            .as_str()
            .into_client_request()
            .map_err(|cause| ClientError::protocol(&url, cause.to_string()))?;
        if let Some(value) = client.authorization() {
            request.headers_mut().insert("authorization", value);
        }
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_LIMIT))
            .max_frame_size(Some(MESSAGE_LIMIT))
            .write_buffer_size(0)
            .max_write_buffer_size(UNSENT_LIMIT);
        let connecting =
            connect_async_tls_with_config(request, Some(limits), true, Some(Connector::Rustls(client.tls())));
        let (socket, _) = timeout(CONNECT_LIMIT, connecting)
            .await
            .map_err(|late| ClientError::unreachable(&url, late))?
            .map_err(|cause| refused(&url, cause))?;
        let (sink, stream) = socket.split();
        Ok(Self {
            input: ProcessInput { sink, url: url.clone() },
            output: ProcessOutput { stream, framing, url, over: false },
        })
    }

    /// Gives it `stdin`, closes that, and hears it out.
    pub async fn finish(mut self, stdin: &[u8]) -> Result<Finished, ClientError> {
        let feed = async {
            self.input.write(stdin).await?;
            self.input.close_stdin().await
        };
        let hear = self.output.collect();
        tokio::pin!(feed, hear);
        tokio::select! {
            finished = &mut hear => finished,
            // A process may end before it has read everything; then how it ended says more.
            _ = &mut feed => hear.await,
        }
    }
}

// === impl ProcessInput ===

impl ProcessInput {
    /// Bytes for its standard input, or keys for a terminal.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        for chunk in bytes.chunks(SEND_LIMIT) {
            self.send(Message::Binary(Bytes::copy_from_slice(chunk))).await?;
        }
        Ok(())
    }

    pub async fn resize(&mut self, size: Size) -> Result<(), ClientError> {
        self.say(&FromClient::Resize(size)).await
    }

    /// Sends a signal by its name without `SIG`, such as `INT`.
    pub async fn signal(&mut self, name: &str) -> Result<(), ClientError> {
        self.say(&FromClient::Signal(name.to_owned())).await
    }

    /// Its standard input ends here.
    pub async fn close_stdin(&mut self) -> Result<(), ClientError> {
        self.say(&FromClient::CloseStdin {}).await
    }

    /// Keeps a silent connection from being taken for a dead one.
    pub async fn ping(&mut self) -> Result<(), ClientError> {
        self.send(Message::Ping(Bytes::new())).await
    }

    /// Ends the connection. A terminal stays, a process is told to hang up.
    pub async fn leave(&mut self) {
        // It may be gone already, and waiting for it helps nobody.
        let _ = timeout(GOODBYE_LIMIT, self.sink.close()).await;
    }

    pub(super) async fn say(&mut self, message: &impl Serialize) -> Result<(), ClientError> {
        let text = serde_json::to_string(message)
            .map_err(|cause| ClientError::protocol(&self.url, cause.to_string()))?;
        self.send(Message::text(text)).await
    }

    async fn send(&mut self, message: Message) -> Result<(), ClientError> {
        self.sink.send(message).await.map_err(|cause| ClientError::unreachable(&self.url, cause))
    }
}

// === impl ProcessOutput ===

impl ProcessOutput {
    /// The next thing heard; `None` when the connection ended in order. Cancel safe.
    pub async fn next(&mut self) -> Option<Result<ProcessEvent, ClientError>> {
        if self.over {
            return None;
        }
        loop {
            let event = match self.stream.next().await? {
                Ok(Message::Binary(bytes)) => self.bytes(bytes),
                Ok(Message::Text(text)) => self.text(text.as_str()),
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed) => return None,
                Err(cause) => Err(ClientError::unreachable(&self.url, cause)),
            };
            self.over = !matches!(event, Ok(ProcessEvent::Output { .. }));
            return Some(event);
        }
    }

    /// Everything to the end. A connection that ends without an exit is an error.
    pub async fn collect(&mut self) -> Result<Finished, ClientError> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        while let Some(event) = self.next().await {
            match event? {
                ProcessEvent::Output { stream, bytes } => {
                    let kept = match stream {
                        StandardStream::Stdout => &mut stdout,
                        StandardStream::Stderr => &mut stderr,
                    };
                    if kept.len() + bytes.len() > OUTPUT_LIMIT {
                        let what = format!("the process wrote more than {OUTPUT_LIMIT} bytes");
                        return Err(ClientError::protocol(&self.url, what));
                    }
                    kept.extend_from_slice(&bytes);
                }
                ProcessEvent::Exit(exit) => return Ok(Finished { exit, stdout, stderr }),
                ProcessEvent::Problem(problem) => return Err(ClientError::Problem(problem)),
            }
        }
        Err(self.cut_off())
    }

    /// The error of a process whose end was never heard.
    pub fn cut_off(&self) -> ClientError {
        ClientError::unreachable(&self.url, "the connection ended before the process did")
    }

    fn bytes(&self, mut bytes: Bytes) -> Result<ProcessEvent, ClientError> {
        let stream = match self.framing {
            Framing::Plain => StandardStream::Stdout,
            Framing::Prefixed => match bytes.first().copied() {
                Some(STDOUT) => StandardStream::Stdout,
                Some(STDERR) => StandardStream::Stderr,
                Some(_) | None => return Err(ClientError::protocol(&self.url, "bytes of an unknown stream")),
            },
        };
        if matches!(self.framing, Framing::Prefixed) {
            bytes = bytes.slice(1..);
        }
        Ok(ProcessEvent::Output { stream, bytes })
    }

    fn text(&self, text: &str) -> Result<ProcessEvent, ClientError> {
        match serde_json::from_str(text) {
            Ok(FromServer::Exit(exit)) => Ok(ProcessEvent::Exit(exit)),
            Ok(FromServer::Error(problem)) => Ok(ProcessEvent::Problem(Box::new(problem))),
            Err(cause) => {
                Err(ClientError::protocol(&self.url, format!("a message is not understood: {cause}")))
            }
        }
    }
}

/// Why there is no WebSocket: the gateway's own words where it said some.
fn refused(url: &Url, cause: tungstenite::Error) -> ClientError {
    if let tungstenite::Error::Http(answer) = cause {
        let problem = answer.body().as_deref().and_then(|body| serde_json::from_slice::<Problem>(body).ok());
        return match problem {
            Some(problem) => problem.into(),
            None => ClientError::protocol(url, format!("status {}", answer.status())),
        };
    }
    ClientError::unreachable(url, cause)
}
