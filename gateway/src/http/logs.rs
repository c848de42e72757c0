//! An instance's output: the last lines as text, or lines as they come over a WebSocket.

use std::{pin::Pin, sync::Arc};

use axum::{
    body::Body,
    extract::{Path, State, ws::WebSocketUpgrade},
    response::{IntoResponse, Response},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use envd_api::client::ClientError;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use gateway_api::{Action, Problem, stream::FromClient};
use http::{HeaderName, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use serde::Deserialize;

use super::{
    body::Ask,
    caller::Caller,
    relay::{self, Pace, Piece, relay},
};
use crate::{
    app::App,
    auth::{live::Kind, policy::Grant},
    error::Error,
    task_logs::{Lines, holds},
};

const TAIL_DEFAULT: u64 = 1000;
/// How many lines are given from a line on, if nothing is said, and at most.
const LINES_DEFAULT: u64 = 1000;
const LINES_MAX: u64 = 10_000;
/// Where the lines were asked for by number, what number the first of them has.
const FIRST_LINE: &str = "berth-first-line";

#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    tail: Option<u64>,
    since: Option<Timestamp>,
    grep: Option<String>,
    from: Option<u64>,
    lines: Option<u64>,
}

type Record = Result<(u8, Bytes), ClientError>;
type Output = Pin<Box<dyn Stream<Item = Record> + Send>>;

impl Wanted {
    /// The lines that are asked for, of an instance that one may read.
    fn lines(self, app: &App, grant: &Grant, follow: bool) -> Output {
        // Who names a time wants all since.
        let tail = self.tail.or_else(|| self.since.is_none().then_some(TAIL_DEFAULT));
        let since = self.since.map(Timestamp::as_second);
        let records = app.clusters.of(&grant.instance().cluster).envd.logs(grant.id(), tail, since, follow);
        self.search(records)
    }

    /// Those of them that hold what is looked for. The engine gives a line at a time.
    fn search(self, records: impl Stream<Item = Record> + Send + 'static) -> Output {
        let wanted = move |line: &[u8]| self.grep.as_ref().is_none_or(|what| holds(line, what.as_bytes()));
        Box::pin(records.try_filter(move |(_, line)| std::future::ready(wanted(line))))
    }
}

/// The lines that are asked for by number.
pub(super) fn lines(from: Option<u64>, count: Option<u64>) -> Option<Lines> {
    from.map(|from| Lines { from, count: count.unwrap_or(LINES_DEFAULT).clamp(1, LINES_MAX) })
}

/// Says what number the first line has.
pub(super) fn numbered(first: u64) -> [(HeaderName, HeaderValue); 1] {
    [(HeaderName::from_static(FIRST_LINE), HeaderValue::from(first))]
}

/// Lines of an instance by number, and that of the first. The engine has no index: all that is before them is read.
async fn by_number(app: &App, grant: &Grant, wanted: Lines) -> Result<(u64, Output), ClientError> {
    let Lines { mut from, count } = Lines { from: wanted.from.max(1), ..wanted };
    loop {
        let all = app.clusters.of(&grant.instance().cluster).envd.logs(grant.id(), None, None, false);
        let mut all = Box::pin(with_numbers(all));
        let mut last = 0;
        while let Some((number, record)) = all.try_next().await? {
            last = number;
            if number >= from {
                let end = from.saturating_add(count);
                let rest = stream::once(std::future::ready(Ok((number, record)))).chain(all);
                let rest = rest.try_take_while(move |(number, _)| std::future::ready(Ok(*number < end)));
                return Ok((from, Box::pin(rest.map_ok(|(_, record)| record))));
            }
        }
        if last == 0 {
            return Ok((1, Box::pin(stream::empty())));
        }
        // There are not as many: the last ones.
        from = (last + 1).saturating_sub(count).max(1);
    }
}

/// Records with the number of the line that each belongs to: a long line comes in pieces.
fn with_numbers(
    records: impl Stream<Item = Record> + Send,
) -> impl Stream<Item = Result<(u64, (u8, Bytes)), ClientError>> + Send {
    let mut number = 1;
    records.map_ok(move |record| {
        let this = number;
        number += u64::from(record.1.ends_with(b"\n"));
        (this, record)
    })
}

#[utoipa::path(get, path = "/instances/{name}/logs", operation_id = "read_logs", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("tail" = Option<u64>, Query, description = "how many of the last lines; 1000 when `since` is absent too"),
    ("since" = Option<String>, Query, description = "only what came since that time, to the second"),
    ("grep" = Option<String>, Query, description = "only those of these lines that hold this text"),
    ("from" = Option<u64>, Query, description = "only lines from this one on, counted from the first that is kept, \
        whatever `tail` and `since` say; the last ones where there are not as many"),
    ("lines" = Option<u64>, Query, description = "how many with `from`; 1000 when absent, 10000 at most"),
), responses(
    (status = 200, content_type = "text/plain", body = String, headers(
        ("berth-first-line" = u64, description = "with `from`: the number of the first line"),
    )),
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
    Ask(wanted): Ask<Wanted>,
) -> Result<Response, Error> {
    let grant = app.grant(&caller, &name, Action::Logs).await?;
    let open = app.live.open(&caller, Kind::Log)?;
    let (mut records, first) = match lines(wanted.from, wanted.lines) {
        Some(lines) => match by_number(&app, &grant, lines).await {
            Ok((first, records)) => (wanted.search(records), Some(numbered(first))),
            Err(error) => return no_logs(error).map(IntoResponse::into_response),
        },
        None => (wanted.lines(&app, &grant, false), None),
    };
    // What goes wrong shows itself before the first record: then there is still time for a proper error.
    let begin = match records.next().await {
        Some(Err(error)) => return no_logs(error).map(IntoResponse::into_response),
        Some(Ok(record)) => Some(Ok(record)),
        None => None,
    };
    let bytes = stream::iter(begin).chain(records).map_ok(|(_, bytes)| bytes);
    let bytes = bytes.take_until(async move { open.ended().await });
    let text = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((text, first, Body::from_stream(bytes)).into_response())
}

#[utoipa::path(get, path = "/instances/{name}/logs/follow", operation_id = "follow_logs", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("tail" = Option<u64>, Query, description = "how many of the last lines to begin with"),
    ("since" = Option<String>, Query, description = "only what came since that time, to the second"),
    ("grep" = Option<String>, Query, description = "only those of these lines that hold this text"),
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
    Ask(wanted): Ask<Wanted>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Error> {
    let grant = app.grant(&caller, &name, Action::Logs).await?;
    let owned = (Arc::clone(&app), caller.clone());
    relay::accept(&app, &caller, Kind::Log, upgrade, async move |socket| {
        let (app, caller) = owned;
        let records = wanted.lines(&app, &grant, true);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_in_pieces_has_one_number() {
        let pieces = ["one\n", "a long", " line\n", "three\n", "open"].map(|text| Ok((1, Bytes::from(text))));
        let numbers = with_numbers(stream::iter(pieces)).map_ok(|(number, _)| number).try_collect::<Vec<_>>();
        assert_eq!(numbers.await.unwrap(), [1, 2, 2, 3, 4]);
    }

    #[test]
    fn lines_by_number_are_bounded() {
        let of = |from, count| lines(from, count).map(|lines| (lines.from, lines.count));
        assert_eq!(of(None, Some(5)), None);
        assert_eq!(of(Some(7), None), Some((7, LINES_DEFAULT)));
        assert_eq!(of(Some(7), Some(0)), Some((7, 1)));
        assert_eq!(of(Some(7), Some(u64::MAX)), Some((7, LINES_MAX)));
    }
}
