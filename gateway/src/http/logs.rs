//! An instance's output: the last lines as text, or lines as they come over a WebSocket.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State, ws::WebSocketUpgrade},
    response::{IntoResponse, Response},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use envd_api::client::ClientError;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use gateway_api::{Action, Problem, stream::FromClient};
use http::{StatusCode, header};
use serde::Deserialize;

use super::{
    body::Ask,
    caller::Caller,
    relay::{self, Pace, Piece, relay},
};
use crate::{app::App, auth::live::Kind, error::Error};

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
    let open = app.live.open(&caller, Kind::Log)?;
    let tail = ask.tail.unwrap_or(TAIL_DEFAULT);
    let mut records = Box::pin(app.cluster.envd.logs(grant.id(), Some(tail), false));
    // What goes wrong shows itself before the first record: then there is still time for a proper error.
    let first = match records.next().await {
        Some(Err(error)) => return no_logs(error).map(IntoResponse::into_response),
        Some(Ok(record)) => Some(Ok(record)),
        None => None,
    };
    let bytes = stream::iter(first).chain(records).map_ok(|(_, bytes)| bytes);
    let bytes = bytes.take_until(async move { open.ended().await });
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], Body::from_stream(bytes)).into_response())
}

#[utoipa::path(get, path = "/instances/{name}/logs/follow", operation_id = "follow_logs", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("tail" = Option<u64>, Query, description = "how many of the last lines to begin with"),
), responses(
    (status = 101, description = "a WebSocket: binary messages, first byte 1 for stdout or 2 for stderr. It closes \
        with 1000 at the end of the log; when the log cannot be read on, with 1011 after a `FromServer` as text"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem),
    (status = 429, body = Problem, description = "`too_many_open`"),
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
    let owned = (Arc::clone(&app), caller.clone());
    relay::accept(&app, &caller, Kind::Log, upgrade, async move |socket| {
        let (app, caller) = owned;
        let records = Box::pin(app.cluster.envd.logs(grant.id(), Some(tail), true));
        relay(app.tasks.stopping(), socket, Pace::AsItReads, Records { records, caller }, Nothing).await;
    })
}

struct Records<S> {
    records: S,
    caller: Caller,
}

impl<S> relay::Source for Records<S>
where
    S: Stream<Item = Result<(u8, Bytes), ClientError>> + Send + Unpin,
{
    async fn next(&mut self) -> Piece {
        match self.records.next().await {
            None => Piece::End,
            Some(Ok((stream, bytes))) => Piece::Bytes(prefixed(stream, &bytes)),
            Some(Err(error)) => match no_logs(error) {
                Ok(_) => Piece::End,
                Err(error) => Piece::Failed(Box::new(relay::problem(&self.caller, &error))),
            },
        }
    }
}

/// A log takes nothing from whoever reads it.
pub(super) struct Nothing;

impl relay::Sink for Nothing {
    async fn bytes(&mut self, _: Bytes) -> bool {
        true
    }

    async fn word(&mut self, _: FromClient) -> bool {
        true
    }
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
        ClientError::Refused { status: StatusCode::TOO_MANY_REQUESTS, .. } => Err(Error::TooManyReaders),
        ClientError::Refused { .. } | ClientError::Unreachable { .. } | ClientError::Protocol(_) => {
            Err(Error::ClusterUnreachable(error.into()))
        }
    }
}
