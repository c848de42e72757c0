//! A port inside an instance as a WebSocket: binary messages are its bytes, and `close_stdin` ends those to it.
//!
//! The agent dials inside the instance's own network and hands over the connected socket, so what is reached is always
//! that instance's loopback and never the host's.

use std::sync::Arc;

use axum::{
    extract::{Path, State, ws::WebSocketUpgrade},
    response::Response,
};
use bytes::Bytes;
use envd_api::agent::Passed;
use gateway_api::{Action, Problem, error::Reason, stream::FromClient};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};

use super::{
    caller::Caller,
    process::told,
    relay::{self, Pace, Piece, refuse, relay},
};
use crate::{app::App, auth::live::Kind, error::Error};

/// How much is read from the instance at once.
const PIECE: usize = 64 << 10;

#[utoipa::path(get, path = "/instances/{name}/ports/{port}", operation_id = "port", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("port" = u16, Path, description = "a port on the instance's loopback"),
), responses(
    (status = 101, description = "a WebSocket to that port: binary messages are its bytes"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
    (status = 422, body = Problem),
    (status = 429, body = Problem, description = "`too_many_open`"),
))]
pub(super) async fn port(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((name, port)): Path<(String, String)>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Error> {
    let port = port
        .parse()
        .ok()
        .filter(|&port: &u16| port != 0)
        .ok_or_else(|| Error::unfit("port", Reason::PortOutOfRange))?;
    let grant = app.grant(&caller, &name, Action::Exec).await?;
    let owned = (Arc::clone(&app), caller.clone());
    relay::accept(&app, &caller, Kind::Process, upgrade, async move |socket| {
        let (app, caller) = owned;
        match app.agents.dial(grant.id(), port).await {
            Ok(stream) => {
                let (from, to) = tokio::io::split(stream);
                let source = Answers { from, piece: vec![0; PIECE] };
                relay(app.tasks.stopping(), socket, Pace::AsItReads, source, Asks(to)).await;
            }
            Err(error) => refuse(socket, &caller, &told(&grant, error)).await,
        }
    })
}

struct Answers {
    from: ReadHalf<Passed>,
    piece: Vec<u8>,
}

impl relay::Source for Answers {
    async fn next(&mut self) -> Piece {
        match self.from.read(&mut self.piece).await {
            Ok(count @ 1..) => Piece::Bytes(Bytes::copy_from_slice(&self.piece[..count])),
            Ok(0) | Err(_) => Piece::End,
        }
    }
}

struct Asks(WriteHalf<Passed>);

impl relay::Sink for Asks {
    async fn bytes(&mut self, bytes: Bytes) -> bool {
        self.0.write_all(&bytes).await.is_ok()
    }

    async fn word(&mut self, word: FromClient) -> bool {
        match word {
            // The client has said all, and waits for the answer.
            FromClient::CloseStdin {} => self.0.shutdown().await.is_ok(),
            FromClient::Resize(_) | FromClient::Signal(_) | FromClient::Ack(_) => true,
        }
    }
}
