//! API tokens over HTTP.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    Page, Problem,
    token::{AddToken, ApiToken, NewToken},
};
use http::StatusCode;
use serde::Deserialize;

use super::{
    body::{Ask, Json},
    caller::Caller,
};
use crate::{app::App, error::Error};

#[derive(Debug, Deserialize)]
pub(super) struct Whose {
    user: Option<String>,
}

#[utoipa::path(get, path = "/tokens", operation_id = "list_tokens", params(
    ("user" = Option<String>, Query, description = "whose, for admins; the own ones when absent"),
), responses(
    (status = 200, body = Page<ApiToken>),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ask(whose): Ask<Whose>,
) -> Result<Json<Page<ApiToken>>, Error> {
    Ok(Json(Page { items: app.tokens(&caller, whose.user.as_deref()).await? }))
}

#[utoipa::path(post, path = "/tokens", operation_id = "add_token", request_body = AddToken, responses(
    (status = 201, body = NewToken, description = "the secret is shown this once"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem, description = "`forbidden`: a token cannot make tokens"),
    (status = 409, body = Problem, description = "`already_exists`"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<AddToken>,
) -> Result<(StatusCode, Json<NewToken>), Error> {
    Ok((StatusCode::CREATED, Json(app.add_token(&caller, wanted).await?)))
}

#[utoipa::path(delete, path = "/tokens/{id}", operation_id = "remove_token", params(("id" = String, Path)), responses(
    (status = 204),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Error> {
    app.remove_token(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
