//! Instances over HTTP.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{CreateInstance, Instance, InstanceId, Page, Problem, job::DryRun};
use http::StatusCode;
use serde::Deserialize;

use super::{
    body::{Ask, Json},
    caller::Caller,
};
use crate::{
    app::{App, InstancePage},
    error::Error,
};

type Accepted = Result<(StatusCode, Json<Instance>), Error>;

#[derive(Debug, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    all: bool,
    after: Option<InstanceId>,
    limit: Option<u32>,
}

#[utoipa::path(get, path = "/instances", operation_id = "list_instances", params(
    ("all" = Option<bool>, Query, description = "not only the own ones, but all that one may see"),
    ("limit" = Option<u32>, Query, description = "how many, at most 1000; all of them when absent"),
    ("after" = Option<String>, Query, description = "the id of the last of the page before; the newest when absent"),
), responses(
    (status = 200, body = Page<Instance>, description = "newest first; fewer than `limit` are the last"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ask(which): Ask<Which>,
) -> Result<Json<Page<Instance>>, Error> {
    let page = InstancePage { after: which.after, limit: which.limit };
    Ok(Json(Page { items: app.instances(&caller, which.all, &page).await? }))
}

#[utoipa::path(post, path = "/instances", operation_id = "create_instance", request_body = CreateInstance, responses(
    (status = 201, body = Instance),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 409, body = Problem, description = "`name_taken`"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<CreateInstance>,
) -> Accepted {
    Ok((StatusCode::CREATED, Json(app.create_instance(&caller, wanted).await?)))
}

#[utoipa::path(post, path = "/instances:dryRun", operation_id = "dry_run_instance", request_body = CreateInstance, responses(
    (status = 200, body = DryRun, description = "what would become of it; nothing is made"),
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
    Json(wanted): Json<CreateInstance>,
) -> Result<Json<DryRun>, Error> {
    Ok(Json(app.dry_run_instance(&caller, wanted).await?))
}

#[utoipa::path(get, path = "/instances/{name}", operation_id = "show_instance", params(
    ("name" = String, Path, description = "name, slug or id"),
), responses(
    (status = 200, body = Instance),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Instance>, Error> {
    Ok(Json(app.instance(&caller, &name).await?))
}

#[utoipa::path(delete, path = "/instances/{name}", operation_id = "delete_instance", params(
    ("name" = String, Path, description = "name, slug or id"),
), responses(
    (status = 202, body = Instance, description = "it will be gone soon; the user's storage stays"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Accepted {
    Ok((StatusCode::ACCEPTED, Json(app.delete_instance(&caller, &name).await?)))
}

#[derive(Debug, Deserialize)]
pub(super) struct StartWith {
    gpus: Option<u32>,
}

#[utoipa::path(post, path = "/instances/{name}/start", operation_id = "start_instance", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("gpus" = Option<u32>, Query, description = "for what a failed task left: so many graphics processors of the kind that it \
        had; none when absent"),
), responses(
    (status = 202, body = Instance),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
    (status = 422, body = Problem, description = "more than any machine has, or for what is no task"),
))]
pub(super) async fn start(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Ask(with): Ask<StartWith>,
) -> Accepted {
    Ok((StatusCode::ACCEPTED, Json(app.start_instance(&caller, &name, with.gpus).await?)))
}

#[utoipa::path(post, path = "/instances/{name}/stop", operation_id = "stop_instance", params(
    ("name" = String, Path, description = "name, slug or id"),
), responses(
    (status = 202, body = Instance, description = "all its files stay"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
))]
pub(super) async fn stop(State(app): State<Arc<App>>, caller: Caller, Path(name): Path<String>) -> Accepted {
    Ok((StatusCode::ACCEPTED, Json(app.stop_instance(&caller, &name).await?)))
}

#[utoipa::path(post, path = "/instances/{name}/restart", operation_id = "restart_instance", params(
    ("name" = String, Path, description = "name, slug or id"),
), responses(
    (status = 202, body = Instance),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
))]
pub(super) async fn restart(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Accepted {
    Ok((StatusCode::ACCEPTED, Json(app.restart_instance(&caller, &name).await?)))
}
