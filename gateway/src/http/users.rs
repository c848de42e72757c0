//! Users over HTTP.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    Page, Problem,
    people::{AddUser, ChangeUser, NewPassword, User},
};
use http::StatusCode;

use super::{body::Json, caller::Caller};
use crate::{app::App, error::Error};

#[utoipa::path(get, path = "/users", operation_id = "list_users", responses(
    (status = 200, body = Page<User>, description = "everyone for an admin, the own group for its leader"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
))]
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Page<User>>, Error> {
    Ok(Json(Page { items: app.users(&caller).await? }))
}

#[utoipa::path(post, path = "/users", operation_id = "add_user", request_body = AddUser, responses(
    (status = 201, body = NewPassword),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 409, body = Problem, description = "`already_exists`, `user_removed`"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<AddUser>,
) -> Result<(StatusCode, Json<NewPassword>), Error> {
    Ok((StatusCode::CREATED, Json(app.add_user(&caller, wanted).await?)))
}

#[utoipa::path(get, path = "/users/{name}", operation_id = "show_user", params(("name" = String, Path)), responses(
    (status = 200, body = User),
    (status = 401, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<User>, Error> {
    Ok(Json(app.user(&caller, &name).await?))
}

#[utoipa::path(patch, path = "/users/{name}", operation_id = "change_user", params(("name" = String, Path)),
    request_body = ChangeUser, responses(
    (status = 200, body = User),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`last_admin`, `user_removed`"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Json(wanted): Json<ChangeUser>,
) -> Result<Json<User>, Error> {
    Ok(Json(app.change_user(&caller, &name, wanted).await?))
}

#[utoipa::path(delete, path = "/users/{name}", operation_id = "remove_user", params(("name" = String, Path)), responses(
    (status = 202, body = User, description = "sessions and tokens have ended, instances are stopping. The account can \
        be restored for some days; then the instances are deleted. The files stay"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`last_admin`"),
))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<(StatusCode, Json<User>), Error> {
    Ok((StatusCode::ACCEPTED, Json(app.remove_user(&caller, &name).await?)))
}

#[utoipa::path(post, path = "/users/{name}/restore", operation_id = "restore_user", params(
    ("name" = String, Path),
), responses(
    (status = 200, body = User, description = "sessions stay ended and instances stopped"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn restore(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<User>, Error> {
    Ok(Json(app.restore_user(&caller, &name).await?))
}

#[utoipa::path(post, path = "/users/{name}/password", operation_id = "reset_password", params(
    ("name" = String, Path),
), responses(
    (status = 200, body = NewPassword, description = "a random password, shown this once; sessions, tokens and SSH keys have ended"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`user_removed`"),
))]
pub(super) async fn reset_password(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<NewPassword>, Error> {
    Ok(Json(app.reset_users_password(&caller, &name).await?))
}
