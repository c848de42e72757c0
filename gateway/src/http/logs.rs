//! An instance's output: the last lines as text, or lines as they come over a WebSocket.

use std::{pin::pin, sync::Arc};

use axum::{
    body::Body,
    extract::{
        Path, State,
        ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code},
    },
    response::{IntoResponse, Response},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use envd_api::client::ClientError;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gateway_api::{Action, Problem};
use http::{StatusCode, header};
use serde::Deserialize;

use super::{body::Ask, caller::Caller};
use crate::{app::App, auth::policy::Grant, error::Error};

const TAIL_DEFAULT: u64 = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct Tail {
    tail: Option<u64>,
}

#[utoipa::path(get, path = "/instances/{name}/logs", operation_id = "read_logs", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("tail" = Option<u64>, Query, description = "how many of the last lines; 1000 when absent"),
), responses(
    (status = 200, content_type = "text/plain", body = String),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem),
    (status = 503, body = Problem),
))]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Ask(ask): Ask<Tail>,
) -> Result<Response, Error> {
    let grant = app.grant(&caller, &name, Action::Logs).await?;
    let tail = ask.tail.unwrap_or(TAIL_DEFAULT);
    let mut records = Box::pin(app.cluster.envd.logs(grant.id(), Some(tail), false));
    // What goes wrong shows itself before the first record: then there is still time for a proper error.
    let first = match records.next().await {
        Some(Err(error)) => return no_logs(error).map(IntoResponse::into_response),
        Some(Ok(record)) => Some(Ok(record)),
        None => None,
    };
    let bytes = stream::iter(first).chain(records).map_ok(|(_, bytes)| bytes);
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], Body::from_stream(bytes)).into_response())
}

#[utoipa::path(get, path = "/instances/{name}/logs/follow", operation_id = "follow_logs", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("tail" = Option<u64>, Query, description = "how many of the last lines to begin with"),
), responses(
    (status = 101, description = "a WebSocket: binary messages, first byte 1 for stdout or 2 for stderr"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem),
))]
pub(super) async fn follow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Ask(ask): Ask<Tail>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Error> {
    let grant = app.grant(&caller, &name, Action::Logs).await?;
    let tail = ask.tail.unwrap_or(TAIL_DEFAULT);
    let open = app.live.open(&caller);
    Ok(upgrade.on_upgrade(async move |socket| open.during(send_logs(app, grant, tail, socket)).await))
}

async fn send_logs(app: Arc<App>, grant: Grant, tail: u64, mut socket: WebSocket) {
    let stopping = app.tasks.stopping();
    let mut records = pin!(app.cluster.envd.logs(grant.id(), Some(tail), true));
    loop {
        tokio::select! {
            () = stopping.cancelled() => break,
            record = records.next() => {
                let Some(Ok((stream, bytes))) = record else { break };
                if socket.send(Message::Binary(prefixed(stream, &bytes))).await.is_err() {
                    return;
                }
            }
            // Nothing is expected from the client; its end is.
            message = socket.recv() => {
                let Some(Ok(Message::Text(_) | Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) = message else {
                    return;
                };
            }
        }
    }
    let end = CloseFrame { code: close_code::NORMAL, reason: "".into() };
    let _ = socket.send(Message::Close(Some(end))).await;
}

/// Bytes of a process with the byte before them that says which stream they belong to.
pub(super) fn prefixed(stream: u8, bytes: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(bytes.len() + 1);
    message.put_u8(stream);
    message.extend_from_slice(bytes);
    message.freeze()
}

/// An instance that has no container yet has no output yet.
fn no_logs(error: ClientError) -> Result<&'static str, Error> {
    match error {
        ClientError::Refused { status: StatusCode::NOT_FOUND, .. } => Ok(""),
        ClientError::Refused { .. } | ClientError::Unreachable { .. } | ClientError::Protocol(_) => {
            Err(Error::ClusterUnreachable(error.into()))
        }
    }
}
