//! Samples and usage over HTTP.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    Page, Problem,
    usage::{Sample, Usage},
};
use jiff::Timestamp;
use serde::Deserialize;

use super::{
    body::{Ask, Json},
    caller::Caller,
};
use crate::{
    app::{App, Stretch},
    error::Error,
};

#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    points: Option<usize>,
    /// `role/index`.
    task: Option<String>,
    attempt: Option<u32>,
    #[serde(default)]
    all: bool,
}

impl Wanted {
    fn stretch(&self) -> Stretch {
        Stretch { since: self.since, until: self.until, points: self.points }
    }
}

#[utoipa::path(get, path = "/instances/{name}/samples", operation_id = "list_instance_samples", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("since" = Option<String>, Query, description = "from when; an hour before `until` when absent. A week is kept"),
    ("until" = Option<String>, Query, description = "now when absent"),
    ("points" = Option<usize>, Query, description = "the most points, each a mean; 360 when absent"),
), responses(
    (status = 200, body = Page<Sample>, description = "every ten seconds, oldest first; what is missing stays missing"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn instance(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Ask(wanted): Ask<Wanted>,
) -> Result<Json<Page<Sample>>, Error> {
    Ok(Json(Page { items: app.instance_samples(&caller, &name, wanted.stretch()).await? }))
}

#[utoipa::path(get, path = "/jobs/{name}/samples", operation_id = "list_job_samples", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("task" = Option<String>, Query, description = "`role/index`; the first task when absent"),
    ("attempt" = Option<u32>, Query, description = "which try, from 1; the last when absent"),
    ("since" = Option<String>, Query, description = "from when; an hour before `until` when absent. A week is kept"),
    ("until" = Option<String>, Query, description = "now when absent"),
    ("points" = Option<usize>, Query, description = "the most points, each a mean; 360 when absent"),
), responses(
    (status = 200, body = Page<Sample>, description = "every ten seconds, oldest first; what is missing stays missing"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn job(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Ask(wanted): Ask<Wanted>,
) -> Result<Json<Page<Sample>>, Error> {
    let stretch = wanted.stretch();
    let items = app.job_samples(&caller, &name, wanted.task.as_deref(), wanted.attempt, stretch).await?;
    Ok(Json(Page { items }))
}

#[utoipa::path(get, path = "/usage", operation_id = "list_usage", params(
    ("all" = Option<bool>, Query, description = "not only the own: the group's for its leader, everyone's for an admin"),
    ("since" = Option<String>, Query, description = "from when; 30 days before `until` when absent"),
    ("until" = Option<String>, Query, description = "now when absent"),
), responses(
    (status = 200, body = Page<Usage>, description = "by user, group and model of graphics processor, the most first; then who has only images"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn usage(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ask(wanted): Ask<Wanted>,
) -> Result<Json<Page<Usage>>, Error> {
    Ok(Json(Page { items: app.usage(&caller, wanted.all, wanted.stretch()).await? }))
}
