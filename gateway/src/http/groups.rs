//! Groups over HTTP.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    Page, Problem,
    people::{AddNamed, Group},
};
use http::StatusCode;

use super::{body::Json, caller::Caller};
use crate::{app::App, error::Error};

#[utoipa::path(get, path = "/groups", operation_id = "list_groups", responses(
    (status = 200, body = Page<Group>, description = "all for an admin, the own one for its leader"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
))]
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Page<Group>>, Error> {
    Ok(Json(Page { items: app.groups(&caller).await? }))
}

#[utoipa::path(post, path = "/groups", operation_id = "add_group", request_body = AddNamed, responses(
    (status = 201, body = Group),
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
) -> Result<(StatusCode, Json<Group>), Error> {
    Ok((StatusCode::CREATED, Json(app.add_group(&caller, &wanted.name).await?)))
}

#[utoipa::path(get, path = "/groups/{name}", operation_id = "show_group", params(("name" = String, Path)), responses(
    (status = 200, body = Group),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Group>, Error> {
    Ok(Json(app.group(&caller, &name).await?))
}

#[utoipa::path(delete, path = "/groups/{name}", operation_id = "remove_group", params(
    ("name" = String, Path),
), responses(
    (status = 204),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`in_use`: it has members"),
))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Error> {
    app.remove_group(&caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
