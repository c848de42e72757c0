//! Workspaces over HTTP.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    Page, Problem,
    people::{AddNamed, Workspace},
};
use http::StatusCode;

use super::{body::Json, caller::Caller};
use crate::{app::App, error::Error};

#[utoipa::path(get, path = "/workspaces", operation_id = "list_workspaces", responses(
    (status = 200, body = Page<Workspace>, description = "the own ones; all for an admin"),
    (status = 401, body = Problem),
))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Page<Workspace>>, Error> {
    Ok(Json(Page { items: app.workspaces(&caller).await? }))
}

#[utoipa::path(post, path = "/workspaces", operation_id = "add_workspace", request_body = AddNamed, responses(
    (status = 201, body = Workspace),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 409, body = Problem, description = "`already_exists`"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<AddNamed>,
) -> Result<(StatusCode, Json<Workspace>), Error> {
    Ok((StatusCode::CREATED, Json(app.add_workspace(&caller, &wanted.name).await?)))
}

#[utoipa::path(get, path = "/workspaces/{name}", operation_id = "show_workspace", params(
    ("name" = String, Path),
), responses(
    (status = 200, body = Workspace),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Workspace>, Error> {
    Ok(Json(app.workspace(&caller, &name).await?))
}

#[utoipa::path(delete, path = "/workspaces/{name}", operation_id = "remove_workspace", params(
    ("name" = String, Path),
), responses(
    (status = 204),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Error> {
    app.remove_workspace(&caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(put, path = "/workspaces/{name}/members/{user}", operation_id = "add_member", params(
    ("name" = String, Path),
    ("user" = String, Path),
), responses(
    (status = 200, body = Workspace),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn add_member(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((name, user)): Path<(String, String)>,
) -> Result<Json<Workspace>, Error> {
    Ok(Json(app.set_member(&caller, &name, &user, true).await?))
}

#[utoipa::path(delete, path = "/workspaces/{name}/members/{user}", operation_id = "remove_member", params(
    ("name" = String, Path),
    ("user" = String, Path),
), responses(
    (status = 200, body = Workspace),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn remove_member(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((name, user)): Path<(String, String)>,
) -> Result<Json<Workspace>, Error> {
    Ok(Json(app.set_member(&caller, &name, &user, false).await?))
}
