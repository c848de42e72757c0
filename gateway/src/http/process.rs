//! `exec`: a process of an instance at the other end of a WebSocket.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{
        Path, State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    response::Response,
};
use bytes::Bytes;
use envd_api::agent::{CHUNK_MAX, Chunk, ChunkReader, ChunkWriter, Exec, ProtocolError, Refusal};
use gateway_api::{
    Action, Problem,
    error::Reason,
    stream::{ExecStart, FromClient, FromServer, STDERR, STDOUT},
};

use super::{
    body,
    caller::Caller,
    logs::prefixed,
    relay::{self, Pace, Piece, refuse, relay},
};
use crate::{
    agents::{AgentError, Process},
    app::App,
    auth::{live::Kind, policy::Grant},
    error::Error,
};

/// How long the first message of `exec` may take.
const FIRST_MESSAGE: Duration = Duration::from_secs(10);

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
    (status = 429, body = Problem, description = "`too_many_open`"),
))]
pub(super) async fn exec(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Error> {
    let grant = app.grant(&caller, &name, Action::Exec).await?;
    let owned = (Arc::clone(&app), caller.clone());
    relay::accept(&app, &caller, Kind::Process, upgrade, async move |mut socket| {
        let (app, caller) = owned;
        match start(&app, &grant, &mut socket).await {
            Ok(process) => attach(&app, socket, process, Streams::Apart, Pace::AsItReads).await,
            Err(error) => refuse(socket, &caller, &error).await,
        }
    })
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
    if start.argv.first().is_none_or(String::is_empty) {
        return Err(Error::unfit("argv", Reason::CommandFirstWordEmpty));
    }
    if start.argv.iter().any(holds_nul) {
        return Err(Error::unfit("argv", Reason::CommandHasNul));
    }
    for (key, value) in &start.env {
        let wrong = match (key.as_str(), value) {
            ("", _) => Reason::VariableNameEmpty,
            (key, _) if key.contains('=') => Reason::VariableNameHasEquals,
            (key, _) if key.contains('\0') => Reason::VariableNameHasNul,
            (_, value) if holds_nul(value) => Reason::VariableValueHasNul,
            _ => continue,
        };
        return Err(Error::unfit("env", wrong));
    }
    let exec = Exec { argv: start.argv, env: start.env, cwd: start.cwd, tty: start.tty };
    app.agents.exec(grant.id(), exec).await.map_err(|error| told(grant, error))
}

/// Whether output says which stream it belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Streams {
    Apart,
    One,
}

/// Joins a process to a WebSocket until one of the two ends.
pub(super) async fn attach(app: &App, socket: WebSocket, process: Process, streams: Streams, pace: Pace) {
    let (source, sink) = (Output { from: process.output, streams }, Input(process.input));
    relay(app.tasks.stopping(), socket, pace, source, sink).await;
}

struct Output {
    from: ChunkReader,
    streams: Streams,
}

impl relay::Source for Output {
    async fn next(&mut self) -> Piece {
        match self.from.next().await {
            Ok(Some(Chunk::Stdout(bytes))) => self.piece(STDOUT, bytes),
            Ok(Some(Chunk::Stderr(bytes))) => self.piece(STDERR, bytes),
            Ok(Some(Chunk::Exit(exit))) => Piece::Last(FromServer::Exit(exit)),
            // An agent has no business sending these; whoever does is not worth listening to.
            Ok(Some(Chunk::Stdin(_) | Chunk::Resize(_) | Chunk::Signal(_) | Chunk::CloseStdin) | None)
            | Err(_) => Piece::Broken,
        }
    }
}

impl Output {
    fn piece(&self, stream: u8, bytes: Vec<u8>) -> Piece {
        Piece::Bytes(match self.streams {
            Streams::Apart => prefixed(stream, &bytes),
            Streams::One => bytes.into(),
        })
    }
}

struct Input(ChunkWriter);

impl relay::Sink for Input {
    async fn bytes(&mut self, bytes: Bytes) -> bool {
        for piece in bytes.chunks(CHUNK_MAX) {
            if self.0.stdin(piece).await.is_err() {
                return false;
            }
        }
        true
    }

    async fn word(&mut self, word: FromClient) -> bool {
        let chunk = match word {
            FromClient::Resize(size) => Chunk::Resize(size),
            FromClient::Signal(name) => Chunk::Signal(name),
            FromClient::CloseStdin {} => Chunk::CloseStdin,
            FromClient::Ack(_) => return true,
        };
        self.0.send(&chunk).await.is_ok()
    }
}

/// What an agent's refusal means to the user.
pub(super) fn told(grant: &Grant, error: AgentError) -> Error {
    match error {
        AgentError::Refused { refusal: Refusal::CannotRun, message } => {
            Error::BadValue { field: "argv", why: message }
        }
        AgentError::Refused { refusal: Refusal::NothingListens, .. } => {
            Error::unfit("port", Reason::NothingListens)
        }
        AgentError::Protocol(ProtocolError::TooLong(_)) => Error::unfit("argv", Reason::ExecTooLong),
        AgentError::Refused { .. }
        | AgentError::NotLinked
        | AgentError::TimedOut
        | AgentError::Protocol(_) => {
            Error::AgentUnreachable { name: grant.instance().name.to_string(), why: error.to_string() }
        }
    }
}
