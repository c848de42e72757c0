//! Quotas over HTTP.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    Problem,
    quota::{OwnQuota, Quota},
};

use super::{body::Json, caller::Caller};
use crate::{app::App, error::Error};

#[utoipa::path(get, path = "/users/{name}/quota", operation_id = "show_user_quota", params(
    ("name" = String, Path, description = "the user's name"),
), responses(
    (status = 200, body = Quota),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn user(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Quota>, Error> {
    Ok(Json(app.user_quota(&caller, &name).await?))
}

#[utoipa::path(put, path = "/users/{name}/quota", operation_id = "set_user_quota", params(
    ("name" = String, Path, description = "the user's name"),
), request_body = Quota, responses(
    (status = 200, body = Quota),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn set_user(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Json(quota): Json<Quota>,
) -> Result<Json<Quota>, Error> {
    Ok(Json(app.set_user_quota(&caller, &name, quota).await?))
}

#[utoipa::path(get, path = "/groups/{name}/quota", operation_id = "show_group_quota", params(
    ("name" = String, Path, description = "the group's name"),
), responses(
    (status = 200, body = Quota),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn group(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Quota>, Error> {
    Ok(Json(app.group_quota(&caller, &name).await?))
}

#[utoipa::path(put, path = "/groups/{name}/quota", operation_id = "set_group_quota", params(
    ("name" = String, Path, description = "the group's name"),
), request_body = Quota, responses(
    (status = 200, body = Quota),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn set_group(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Json(quota): Json<Quota>,
) -> Result<Json<Quota>, Error> {
    Ok(Json(app.set_group_quota(&caller, &name, quota).await?))
}

#[utoipa::path(get, path = "/me/quota", operation_id = "show_own_quota", responses(
    (status = 200, body = OwnQuota, description = "what the caller and their group may hold, hold and wait for"),
    (status = 401, body = Problem),
))]
pub(super) async fn own(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<OwnQuota>, Error> {
    Ok(Json(app.own_quota(&caller).await?))
}
