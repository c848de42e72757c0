//! A port inside an instance as a WebSocket: binary messages are its bytes.
//!
//! The agent dials inside the instance's own network and hands over the connected socket, so what is reached is always
//! that instance's loopback and never the host's.

use std::sync::Arc;

use axum::{
    extract::{
        Path, State,
        ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code},
    },
    response::Response,
};
use bytes::Bytes;
use envd_api::agent::Passed;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use gateway_api::{Action, Problem};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};

use super::{
    caller::Caller,
    process::{MESSAGE_MAX, linger, refuse, told},
};
use crate::{app::App, error::Error};

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
        .ok_or_else(|| Error::BadValue { field: "port", why: "use a number from 1 to 65535".to_owned() })?;
    let grant = app.grant(&caller, &name, Action::Exec).await?;
    let open = app.live.open(&caller);
    Ok(upgrade.max_message_size(MESSAGE_MAX).on_upgrade(async move |socket| {
        let work = async {
            match app.agents.dial(grant.id(), port).await {
                Ok(stream) => relay(&app, socket, stream).await,
                Err(error) => refuse(socket, &told(&grant, error)).await,
            }
        };
        open.during(work).await;
    }))
}

async fn relay(app: &App, socket: WebSocket, stream: Passed) {
    let (sender, mut receiver) = socket.split();
    let (from, to) = tokio::io::split(stream);
    let stopping = app.tasks.stopping();
    tokio::select! {
        () = outwards(sender, from) => {}
        () = inwards(&mut receiver, to) => {}
        () = stopping.cancelled() => {}
    }
    linger(receiver).await;
}

async fn outwards(mut sender: SplitSink<WebSocket, Message>, mut from: ReadHalf<Passed>) {
    let mut piece = vec![0; PIECE];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        if sender.send(Message::Binary(Bytes::copy_from_slice(&piece[..count]))).await.is_err() {
            return;
        }
    }
    let close = CloseFrame { code: close_code::NORMAL, reason: "".into() };
    let _ = sender.send(Message::Close(Some(close))).await;
}

async fn inwards(receiver: &mut SplitStream<WebSocket>, mut to: WriteHalf<Passed>) {
    while let Some(Ok(message)) = receiver.next().await {
        match message {
            Message::Binary(bytes) => {
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Message::Text(_) | Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => return,
        }
    }
}
