//! `exec` and terminals: a WebSocket on one side, a process of an instance on the other.
//!
//! Bytes are copied both ways at once, each way at the pace of its receiver, so a flood of output never keeps a
//! Ctrl-C from getting through.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{
        Path, State,
        ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code},
    },
    response::Response,
};
use envd_api::agent::{CHUNK_MAX, Chunk, ChunkReader, ChunkWriter, Exec, Refusal, Terminal};
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use gateway_api::{
    Action, Problem,
    stream::{ExecStart, FromClient, FromServer, STDERR, STDOUT, Size},
};
use serde::Deserialize;

use super::{
    body::{self, Ask},
    caller::Caller,
    logs::prefixed,
};
use crate::{
    agents::{AgentError, Process},
    app::App,
    auth::policy::Grant,
    error::Error,
};

/// How long the first message of `exec` may take.
const FIRST_MESSAGE: Duration = Duration::from_secs(10);
/// How long a client may take to close its side.
const LINGER: Duration = Duration::from_secs(2);
/// The longest message from a client: pasted text, mostly.
pub(super) const MESSAGE_MAX: usize = 1 << 20;

#[utoipa::path(get, path = "/instances/{name}/exec", operation_id = "exec", params(
    ("name" = String, Path, description = "name, slug or id"),
), responses(
    (status = 101, description = "a WebSocket. The first message is an `ExecStart` as text; after it binary messages \
        are stdin and text messages are `FromClient`. Binary messages from the server begin with 1 for stdout or 2 \
        for stderr; the last message is a `FromServer` as text"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
))]
pub(super) async fn exec(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Error> {
    let grant = app.grant(&caller, &name, Action::Exec).await?;
    let open = app.live.open(&caller);
    Ok(upgrade.max_message_size(MESSAGE_MAX).on_upgrade(async move |mut socket| {
        let work = async {
            match start(&app, &grant, &mut socket).await {
                Ok(process) => relay(&app, socket, process, Streams::Apart).await,
                Err(error) => refuse(socket, &error).await,
            }
        };
        open.during(work).await;
    }))
}

/// The size of the viewer's window.
#[derive(Debug, Deserialize)]
pub(super) struct Window {
    cols: Option<u16>,
    rows: Option<u16>,
}

#[utoipa::path(get, path = "/instances/{name}/terminals/{terminal}", operation_id = "terminal", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("terminal" = String, Path, description = "the terminal's name, `[a-z0-9-]{1,32}`; made on first use"),
    ("cols" = Option<u16>, Query),
    ("rows" = Option<u16>, Query),
), responses(
    (status = 101, description = "a WebSocket to a terminal that outlives it. Binary messages are keys and output \
        (what was there before comes first), text messages are `FromClient` and, last, `FromServer`"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
    (status = 422, body = Problem),
))]
pub(super) async fn terminal(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((name, terminal)): Path<(String, String)>,
    Ask(window): Ask<Window>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Error> {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if terminal.is_empty() || terminal.len() > 32 || !terminal.bytes().all(letter) {
        return Err(Error::BadValue {
            field: "terminal",
            why: "use lower-case letters, digits and hyphens, at most 32 of them".to_owned(),
        });
    }
    let size = Size { cols: window.cols.unwrap_or(80).max(1), rows: window.rows.unwrap_or(24).max(1) };
    let grant = app.grant(&caller, &name, Action::Terminal).await?;
    let open = app.live.open(&caller);
    Ok(upgrade.max_message_size(MESSAGE_MAX).on_upgrade(async move |socket| {
        let work = async {
            match app.agents.terminal(grant.id(), Terminal { name: terminal, size }).await {
                Ok(process) => relay(&app, socket, process, Streams::One).await,
                Err(error) => refuse(socket, &told(&grant, error)).await,
            }
        };
        open.during(work).await;
    }))
}

async fn start(app: &App, grant: &Grant, socket: &mut WebSocket) -> Result<Process, Error> {
    let bad = |why: &str| Error::BadBody { why: why.to_owned(), pointer: None };
    let first = tokio::time::timeout(FIRST_MESSAGE, socket.recv())
        .await
        .map_err(|_| bad("the first message, which says what to run, did not come"))?;
    let Some(Ok(Message::Text(first))) = first else {
        return Err(bad("the first message must be text that says what to run"));
    };
    let start: ExecStart = body::parse(first.as_bytes())?;
    let holds_nul = |text: &String| text.contains('\0');
    if start.argv.first().is_none_or(String::is_empty) || start.argv.iter().any(holds_nul) {
        return Err(Error::BadValue { field: "argv", why: "it is empty, or holds a NUL".to_owned() });
    }
    if start.env.iter().any(|(key, value)| key.is_empty() || key.contains(['=', '\0']) || holds_nul(value)) {
        return Err(Error::BadValue {
            field: "env",
            why: "a name is empty or holds `=`, or a value holds a NUL".to_owned(),
        });
    }
    let exec = Exec { argv: start.argv, env: start.env, cwd: start.cwd, tty: start.tty };
    app.agents.exec(grant.id(), exec).await.map_err(|error| told(grant, error))
}

/// Whether output says which stream it belongs to.
#[derive(Clone, Copy)]
enum Streams {
    Apart,
    One,
}

async fn relay(app: &App, socket: WebSocket, process: Process, streams: Streams) {
    let (sender, mut receiver) = socket.split();
    let stopping = app.tasks.stopping();
    tokio::select! {
        () = outwards(sender, process.output, streams) => {}
        () = inwards(&mut receiver, process.input) => {}
        () = stopping.cancelled() => {}
    }
    linger(receiver).await;
}

/// Reads on until the client has closed too. A socket that is dropped while the client still sends is reset, and the
/// client may then never read what was said last.
pub(super) async fn linger(mut receiver: SplitStream<WebSocket>) {
    let closed = async { while let Some(Ok(_)) = receiver.next().await {} };
    let _ = tokio::time::timeout(LINGER, closed).await;
}

/// From the process to the client, until the process ends.
async fn outwards(mut sender: SplitSink<WebSocket, Message>, mut output: ChunkReader, streams: Streams) {
    loop {
        let message = match output.next().await {
            Ok(Some(Chunk::Stdout(bytes))) => bytes_message(STDOUT, bytes, streams),
            Ok(Some(Chunk::Stderr(bytes))) => bytes_message(STDERR, bytes, streams),
            Ok(Some(Chunk::Exit(exit))) => return end(&mut sender, &FromServer::Exit(exit)).await,
            // An agent has no business sending these; whoever does is not worth listening to.
            Ok(Some(Chunk::Stdin(_) | Chunk::Resize(_) | Chunk::Signal(_) | Chunk::CloseStdin) | None)
            | Err(_) => {
                let close =
                    CloseFrame { code: close_code::AWAY, reason: "the link to the instance broke".into() };
                let _ = sender.send(Message::Close(Some(close))).await;
                return;
            }
        };
        if sender.send(message).await.is_err() {
            return;
        }
    }
}

fn bytes_message(stream: u8, bytes: Vec<u8>, streams: Streams) -> Message {
    Message::Binary(match streams {
        Streams::Apart => prefixed(stream, &bytes),
        Streams::One => bytes.into(),
    })
}

/// From the client to the process, until the client is gone or talks nonsense.
///
/// A process that takes no more input may still have something to say, so the client is heard out even then.
async fn inwards(receiver: &mut SplitStream<WebSocket>, mut input: ChunkWriter) {
    let mut takes_input = true;
    while let Some(Ok(message)) = receiver.next().await {
        let sent = match message {
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) => true,
            Message::Binary(_) | Message::Text(_) if !takes_input => false,
            Message::Binary(keys) => send_keys(&mut input, &keys).await,
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(FromClient::Resize(size)) => input.send(&Chunk::Resize(size)).await.is_ok(),
                Ok(FromClient::Signal(name)) => input.send(&Chunk::Signal(name)).await.is_ok(),
                Ok(FromClient::CloseStdin {}) => input.send(&Chunk::CloseStdin).await.is_ok(),
                Err(_) => return,
            },
        };
        takes_input &= sent;
    }
}

async fn send_keys(input: &mut ChunkWriter, keys: &[u8]) -> bool {
    for piece in keys.chunks(CHUNK_MAX) {
        if input.stdin(piece).await.is_err() {
            return false;
        }
    }
    true
}

pub(super) async fn refuse(socket: WebSocket, error: &Error) {
    tracing::info!(%error, "a process was not started");
    let (mut sender, receiver) = socket.split();
    end(&mut sender, &FromServer::Error(error.problem())).await;
    linger(receiver).await;
}

/// The last message, then a clean close.
async fn end(sender: &mut SplitSink<WebSocket, Message>, last: &FromServer) {
    let text = serde_json::to_string(last).unwrap_or_default();
    let close = CloseFrame { code: close_code::NORMAL, reason: "".into() };
    if sender.send(Message::Text(text.into())).await.is_ok() {
        let _ = sender.send(Message::Close(Some(close))).await;
    }
}

/// What an agent's refusal means to the user.
pub(super) fn told(grant: &Grant, error: AgentError) -> Error {
    match error {
        AgentError::Refused { refusal: Refusal::CannotRun, message } => {
            Error::BadValue { field: "argv", why: message }
        }
        AgentError::Refused { refusal: Refusal::NothingListens, message } => {
            Error::BadValue { field: "port", why: message }
        }
        AgentError::Refused { .. }
        | AgentError::NotLinked
        | AgentError::TimedOut
        | AgentError::Protocol(_) => {
            Error::AgentUnreachable { name: grant.instance().name.to_string(), why: error.to_string() }
        }
    }
}
