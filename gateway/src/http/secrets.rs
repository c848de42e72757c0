//! Secrets over HTTP: one's own and the site's. No answer holds a value.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    Page, Problem,
    secret::{Secret, SetSecret},
};
use http::StatusCode;

use super::{body::Json, caller::Caller};
use crate::{
    app::{App, Keeper},
    error::Error,
};

#[utoipa::path(get, path = "/me/secrets", operation_id = "list_secrets", responses(
    (status = 200, body = Page<Secret>, description = "without their values"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
))]
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Page<Secret>>, Error> {
    Ok(Json(Page { items: app.secrets(&caller, Keeper::Oneself).await? }))
}

#[utoipa::path(put, path = "/me/secrets/{secret}", operation_id = "set_secret", params(("secret" = String, Path)),
    request_body = SetSecret, responses(
    (status = 200, body = Secret),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 409, body = Problem, description = "`already_exists`: there is a login for this registry"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn set(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Json(wanted): Json<SetSecret>,
) -> Result<Json<Secret>, Error> {
    Ok(Json(app.set_secret(&caller, Keeper::Oneself, &name, wanted).await?))
}

#[utoipa::path(delete, path = "/me/secrets/{secret}", operation_id = "remove_secret",
    params(("secret" = String, Path)), responses(
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
    app.remove_secret(&caller, Keeper::Oneself, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(get, path = "/site/secrets", operation_id = "list_site_secrets", responses(
    (status = 200, body = Page<Secret>, description = "logins of registries for everyone's images, without passwords"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
))]
pub(super) async fn list_site(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Page<Secret>>, Error> {
    Ok(Json(Page { items: app.secrets(&caller, Keeper::Site).await? }))
}

#[utoipa::path(put, path = "/site/secrets/{secret}", operation_id = "set_site_secret",
    params(("secret" = String, Path)), request_body = SetSecret, responses(
    (status = 200, body = Secret),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 409, body = Problem, description = "`already_exists`: there is a login for this registry"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn set_site(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Json(wanted): Json<SetSecret>,
) -> Result<Json<Secret>, Error> {
    Ok(Json(app.set_secret(&caller, Keeper::Site, &name, wanted).await?))
}

#[utoipa::path(delete, path = "/site/secrets/{secret}", operation_id = "remove_site_secret",
    params(("secret" = String, Path)), responses(
    (status = 204),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn remove_site(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Error> {
    app.remove_secret(&caller, Keeper::Site, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
