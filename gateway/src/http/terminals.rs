//! Terminals that outlive their viewers: attach to one over a WebSocket, list them, close one.

use std::sync::Arc;

use axum::{
    extract::{Path, State, ws::WebSocketUpgrade},
    response::Response,
};
use envd_api::agent::{self, TerminalsAct};
use gateway_api::{
    Action, Page, Problem,
    error::Reason,
    stream::{Size, Terminal},
};
use http::StatusCode;
use serde::Deserialize;

use super::{
    body::{Ask, Json},
    caller::Caller,
    process::{Streams, attach, told},
    relay::{self, Pace, refuse},
};
use crate::{app::App, auth::live::Kind, error::Error};

/// The longest name of a terminal.
const NAME_MAX: usize = 32;

/// The viewer's window, and whether it acknowledges.
#[derive(Debug, Deserialize)]
pub(super) struct Viewer {
    cols: Option<u16>,
    rows: Option<u16>,
    ack: Option<u8>,
}

#[utoipa::path(get, path = "/instances/{name}/terminals/{terminal}", operation_id = "terminal", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("terminal" = String, Path, description = "the terminal's name, `[a-z0-9-]{1,32}`; made on first use"),
    ("cols" = Option<u16>, Query),
    ("rows" = Option<u16>, Query),
    ("ack" = Option<u8>, Query, description = "1: no more than 256 KiB are sent before the client says `ack`, as text: \
        how many more bytes it has dealt with. For those who cannot stop reading, such as browsers"),
), responses(
    (status = 101, description = "a WebSocket to a terminal that outlives it. Binary messages are keys and output \
        (what was there before comes first), text messages are `FromClient` and, last, `FromServer`"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
    (status = 422, body = Problem),
    (status = 429, body = Problem, description = "`too_many_open`"),
))]
pub(super) async fn terminal(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((name, terminal)): Path<(String, String)>,
    Ask(viewer): Ask<Viewer>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Error> {
    check(&terminal)?;
    let size = Size { cols: viewer.cols.unwrap_or(80).max(1), rows: viewer.rows.unwrap_or(24).max(1) };
    let pace = if viewer.ack == Some(1) { Pace::Acknowledged } else { Pace::AsItReads };
    let grant = app.grant(&caller, &name, Action::Terminal).await?;
    let owned = (Arc::clone(&app), caller.clone());
    relay::accept(&app, &caller, Kind::Process, upgrade, async move |socket| {
        let (app, caller) = owned;
        match app.agents.terminal(grant.id(), agent::Terminal { name: terminal, size }).await {
            Ok(process) => attach(&app, socket, process, Streams::One, pace).await,
            Err(error) => refuse(socket, &caller, &told(&grant, error)).await,
        }
    })
}

#[utoipa::path(get, path = "/instances/{name}/terminals", operation_id = "list_terminals", params(
    ("name" = String, Path, description = "name, slug or id"),
), responses(
    (status = 200, body = Page<Terminal>, description = "oldest first"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
    (status = 502, body = Problem),
))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Page<Terminal>>, Error> {
    let grant = app.grant(&caller, &name, Action::Terminal).await?;
    let report = app.agents.terminals(grant.id(), TerminalsAct::List).await;
    let mut items = report.map_err(|error| told(&grant, error))?.items;
    // They come from inside the instance: what could not be opened here is not shown.
    items.retain(|terminal| check(&terminal.name).is_ok());
    Ok(Json(Page { items }))
}

#[utoipa::path(delete, path = "/instances/{name}/terminals/{terminal}", operation_id = "close_terminal", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("terminal" = String, Path),
), responses(
    (status = 204, description = "its shell is hung up; closing what is not there changes nothing"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
    (status = 422, body = Problem),
    (status = 502, body = Problem),
))]
pub(super) async fn close(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((name, terminal)): Path<(String, String)>,
) -> Result<StatusCode, Error> {
    check(&terminal)?;
    let grant = app.grant(&caller, &name, Action::Terminal).await?;
    let closed = app.agents.terminals(grant.id(), TerminalsAct::Close { name: terminal }).await;
    closed.map_err(|error| told(&grant, error))?;
    Ok(StatusCode::NO_CONTENT)
}

fn check(terminal: &str) -> Result<(), Error> {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if terminal.is_empty() || terminal.len() > NAME_MAX || !terminal.bytes().all(letter) {
        return Err(Error::unfit("terminal", Reason::TerminalNameUnfit));
    }
    Ok(())
}
