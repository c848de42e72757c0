//! Apps over HTTP: looking, starting, opening.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    AppName, Instance, Problem,
    app::{self, ActOnApp, CreateTensorboard, OpenApp, Opened},
    error::Reason,
};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use super::{
    body::{Ask, Json},
    caller::Caller,
};
use crate::{app::App, error::Error};

#[derive(Debug, Deserialize)]
pub(super) struct In {
    folder: Option<String>,
}

#[utoipa::path(get, path = "/instances/{name}/apps/{app}", operation_id = "show_app", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("app" = String, Path, description = "`lab`, `ide`, `tensorboard`, `desktop`, or a port"),
    ("folder" = Option<String>, Query, description = "what TensorBoard shows, or where the others begin"),
), responses(
    (status = 200, body = app::App),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
    (status = 422, body = Problem),
    (status = 502, body = Problem, description = "`agent_unreachable`"),
))]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((name, which)): Path<(String, String)>,
    Ask(wanted): Ask<In>,
) -> Result<Json<app::App>, Error> {
    Ok(Json(app.app(&caller, &name, named(&which)?, wanted.folder).await?))
}

#[utoipa::path(post, path = "/instances/{name}/apps/{app}", operation_id = "act_on_app", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("app" = String, Path, description = "`lab`, `ide`, `tensorboard` or `desktop`"),
), request_body = ActOnApp, responses(
    (status = 202, body = app::App),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 409, body = Problem, description = "`wrong_state`"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
    (status = 502, body = Problem, description = "`agent_unreachable`"),
))]
pub(super) async fn act(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((name, which)): Path<(String, String)>,
    Json(body): Json<ActOnApp>,
) -> Result<(StatusCode, Json<app::App>), Error> {
    let done = app.act_on_app(&caller, &name, named(&which)?, body.act, body.folder).await?;
    Ok((StatusCode::ACCEPTED, Json(done)))
}

#[utoipa::path(post, path = "/instances/{name}/apps/{app}/open", operation_id = "open_app", params(
    ("name" = String, Path, description = "name, slug or id"),
    ("app" = String, Path, description = "`lab`, `ide`, `tensorboard`, `desktop`, `terminal`, or a port"),
), request_body = OpenApp, responses(
    (status = 200, body = Opened, description = "an address that signs one browser in, once, for less than a minute"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
    (status = 503, body = Problem, description = "`apps_unavailable`"),
))]
pub(super) async fn open(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((name, which)): Path<(String, String)>,
    headers: HeaderMap,
    Json(body): Json<OpenApp>,
) -> Result<Json<Opened>, Error> {
    let asked_at = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    Ok(Json(app.open_app(&caller, &name, named(&which)?, body, asked_at).await?))
}

#[utoipa::path(post, path = "/tensorboards", operation_id = "create_tensorboard", request_body = CreateTensorboard, responses(
    (status = 201, body = Instance, description = "an instance of its own whose app `tensorboard` shows the folder"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 409, body = Problem, description = "`name_taken`"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn create_tensorboard(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(body): Json<CreateTensorboard>,
) -> Result<(StatusCode, Json<Instance>), Error> {
    Ok((StatusCode::CREATED, Json(app.create_tensorboard(&caller, body).await?)))
}

fn named(text: &str) -> Result<AppName, Error> {
    text.parse().map_err(|_| {
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            Error::unfit("app", Reason::PortOutOfRange)
        } else {
            Error::not_found("app", text)
        }
    })
}
