//! Jobs over HTTP.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State, ws::WebSocketUpgrade},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use gateway_api::{
    Job, JobId, Page, Problem,
    job::{ChangeJob, DryRun, JobEventAt, RerunJob, SubmitJob},
    stream::STDOUT,
};
use http::{StatusCode, header};
use jiff::Timestamp;
use serde::Deserialize;

use super::{
    body::{Ask, JOB_LIMIT, Json},
    caller::Caller,
    logs::{self, Nothing, prefixed},
    relay::{self, Pace, Piece, relay},
};
use crate::{
    app::{App, JobPage},
    auth::live::Kind,
    error::Error,
    task_logs::{Lines, Part, Reader},
};

#[derive(Debug, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    all: bool,
    after: Option<JobId>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WhichFile {
    #[serde(default)]
    converted: bool,
}

/// Which part of which task's output.
#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    /// `role/index`.
    task: Option<String>,
    attempt: Option<u32>,
    tail: Option<u64>,
    since: Option<Timestamp>,
    grep: Option<String>,
    from: Option<u64>,
    lines: Option<u64>,
}

#[utoipa::path(get, path = "/jobs", operation_id = "list_jobs", params(
    ("all" = Option<bool>, Query, description = "not only the own ones, but all that one may see"),
    ("limit" = Option<u32>, Query, description = "how many, at most 1000; 1000 when absent"),
    ("after" = Option<String>, Query, description = "the id of the last of the page before; the newest when absent"),
), responses(
    (status = 200, body = Page<Job>, description = "newest first; fewer than `limit` are the last"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ask(which): Ask<Which>,
) -> Result<Json<Page<Job>>, Error> {
    let page = JobPage { after: which.after, limit: which.limit };
    Ok(Json(Page { items: app.jobs(&caller, which.all, &page).await? }))
}

#[utoipa::path(post, path = "/jobs", operation_id = "submit_job", request_body = SubmitJob, responses(
    (status = 201, body = Job),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 409, body = Problem, description = "`already_exists`"),
    (status = 413, body = Problem),
    (status = 422, body = Problem, description = "`bad_job_file` with `notes`, or what no machine could take"),
))]
pub(super) async fn submit(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<SubmitJob, JOB_LIMIT>,
) -> Result<(StatusCode, Json<Job>), Error> {
    Ok((StatusCode::CREATED, Json(app.submit_job(&caller, wanted).await?)))
}

#[utoipa::path(post, path = "/jobs:dryRun", operation_id = "dry_run_job", request_body = SubmitJob, responses(
    (status = 200, body = DryRun, description = "what would become of it; nothing is queued"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
    (status = 503, body = Problem),
))]
pub(super) async fn dry_run(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<SubmitJob, JOB_LIMIT>,
) -> Result<Json<DryRun>, Error> {
    Ok(Json(app.dry_run_job(&caller, &wanted).await?))
}

#[utoipa::path(get, path = "/jobs/{name}", operation_id = "show_job", params(
    ("name" = String, Path, description = "name, slug or id"),
), responses(
    (status = 200, body = Job),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Job>, Error> {
    Ok(Json(app.job(&caller, &name).await?))
}

#[utoipa::path(patch, path = "/jobs/{name}", operation_id = "change_job", params(
    ("name" = String, Path, description = "name, slug or id"),
), request_body = ChangeJob, responses(
    (status = 200, body = Job),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
    (status = 422, body = Problem),
))]
pub(super) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Json(wanted): Json<ChangeJob>,
) -> Result<Json<Job>, Error> {
    Ok(Json(app.change_job(&caller, &name, wanted).await?))
}

#[utoipa::path(delete, path = "/jobs/{name}", operation_id = "delete_job", params(
    ("name" = String, Path, description = "name, slug or id"),
), responses(
    (status = 202, body = Job, description = "it ends if it runs, and will be gone soon with its logs"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<(StatusCode, Json<Job>), Error> {
    Ok((StatusCode::ACCEPTED, Json(app.delete_job(&caller, &name).await?)))
}

#[utoipa::path(post, path = "/jobs/{name}/stop", operation_id = "stop_job", params(
    ("name" = String, Path, description = "name, slug or id"),
), responses(
    (status = 202, body = Job),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
))]
pub(super) async fn stop(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<(StatusCode, Json<Job>), Error> {
    Ok((StatusCode::ACCEPTED, Json(app.stop_job(&caller, &name).await?)))
}

#[utoipa::path(post, path = "/jobs/{name}/rerun", operation_id = "rerun_job", params(
    ("name" = String, Path, description = "name, slug or id"),
), request_body = RerunJob, responses(
    (status = 201, body = Job, description = "a new job from the same file"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`already_exists`"),
    (status = 422, body = Problem),
))]
pub(super) async fn rerun(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Json(wanted): Json<RerunJob>,
) -> Result<(StatusCode, Json<Job>), Error> {
    Ok((StatusCode::CREATED, Json(app.rerun_job(&caller, &name, wanted).await?)))
}

#[utoipa::path(get, path = "/jobs/{name}/file", operation_id = "read_job_file", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("converted" = Option<bool>, Query, description = "what it became, in our own YAML and without its secrets"),
), responses(
    (status = 200, content_type = "text/plain", body = String, description = "as it was submitted"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn file(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Ask(which): Ask<WhichFile>,
) -> Result<Response, Error> {
    let file = if which.converted {
        app.job_spec(&caller, &name).await?.into_bytes()
    } else {
        app.job_file(&caller, &name).await?
    };
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], file).into_response())
}

#[utoipa::path(get, path = "/jobs/{name}/events", operation_id = "list_job_events", params(
    ("name" = String, Path, description = "name, slug or id"),
), responses(
    (status = 200, body = Page<JobEventAt>, description = "what happened to it, from its submission on"),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Page<JobEventAt>>, Error> {
    Ok(Json(Page { items: app.job_events(&caller, &name).await? }))
}

#[utoipa::path(get, path = "/jobs/{name}/logs", operation_id = "read_job_logs", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("task" = Option<String>, Query, description = "`role/index`; the first task when absent"),
    ("attempt" = Option<u32>, Query, description = "which try, from 1; the last when absent"),
    ("tail" = Option<u64>, Query, description = "only so many of the last lines; all when absent"),
    ("since" = Option<String>, Query, description = "only what came since that time, to the second"),
    ("grep" = Option<String>, Query, description = "only lines that hold this text"),
    ("from" = Option<u64>, Query, description = "only lines from this one on, counted from 1, whatever `tail` and \
        `since` say; the last ones where there are not as many"),
    ("lines" = Option<u64>, Query, description = "how many with `from`; 1000 when absent, 10000 at most"),
), responses(
    (status = 200, content_type = "text/plain", body = String, headers(
        ("berth-first-line" = u64, description = "with `from`: the number of the first line"),
    )),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn logs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Ask(wanted): Ask<Wanted>,
) -> Result<Response, Error> {
    let lines = logs::lines(wanted.from, wanted.lines);
    let reader = open(&app, &caller, &name, wanted, lines).await?;
    let first = reader.first_line().map(logs::numbered);
    let pieces = stream::try_unfold((app, reader), async |(app, mut reader)| {
        let piece = reader.next(&app).await?;
        Ok::<_, Error>(piece.map(|piece| (piece, (app, reader))))
    });
    let text = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((text, first, Body::from_stream(pieces)).into_response())
}

#[utoipa::path(get, path = "/jobs/{name}/logs/follow", operation_id = "follow_job_logs", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("task" = Option<String>, Query, description = "`role/index`; the first task when absent"),
    ("attempt" = Option<u32>, Query, description = "which try, from 1; the last when absent"),
    ("tail" = Option<u64>, Query, description = "so many of the last lines to begin with; all when absent"),
    ("since" = Option<String>, Query, description = "only what came since that time, to the second"),
    ("grep" = Option<String>, Query, description = "only lines that hold this text"),
), responses(
    (status = 101, description = "a WebSocket: binary messages whose first byte is 1. It closes with 1000 when the task \
        has ended and all of its output was sent"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 429, body = Problem, description = "`too_many_open`"),
))]
pub(super) async fn follow_logs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Ask(wanted): Ask<Wanted>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Error> {
    let reader = open(&app, &caller, &name, wanted, None).await?;
    let owned = (Arc::clone(&app), caller.clone());
    relay::accept(&app, &caller, Kind::Log, upgrade, async move |socket| {
        let (app, caller) = owned;
        let stopping = app.tasks.stopping();
        relay(stopping, socket, Pace::AsItReads, Kept { app, caller, reader }, Nothing).await;
    })
}

async fn open(
    app: &App,
    caller: &Caller,
    name: &str,
    wanted: Wanted,
    lines: Option<Lines>,
) -> Result<Reader, Error> {
    let task = app.task_of(caller, name, wanted.task.as_deref(), wanted.attempt).await?;
    let part = Part { tail: wanted.tail, since: wanted.since, grep: wanted.grep, lines };
    app.logs.reader(&task, part).await
}

struct Kept {
    app: Arc<App>,
    caller: Caller,
    reader: Reader,
}

impl relay::Source for Kept {
    async fn next(&mut self) -> Piece {
        match self.reader.follow(&self.app).await {
            Ok(Some(piece)) => Piece::Bytes(said(&piece)),
            Ok(None) => Piece::End,
            Err(error) => Piece::Failed(Box::new(relay::problem(&self.caller, &error))),
        }
    }
}

/// Which of the two streams it was is not kept.
fn said(piece: &Bytes) -> Bytes {
    prefixed(STDOUT, piece)
}
