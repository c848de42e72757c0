//! SSH over HTTP: where its door is, and users' keys.

use std::sync::Arc;

use axum::extract::{Path, State};
use gateway_api::{
    Page, Problem,
    ssh::{AddSshKey, MakeSshPair, NewSshPair, SshChallenge, SshDoor, SshKey},
};
use http::StatusCode;

use super::{body::Json, caller::Caller};
use crate::{app::App, error::Error};

#[utoipa::path(get, path = "/ssh", operation_id = "ssh_door", responses(
    (status = 200, body = SshDoor),
    (status = 401, body = Problem),
    (status = 404, body = Problem, description = "SSH is turned off"),
))]
pub(super) async fn door(State(app): State<Arc<App>>, _caller: Caller) -> Result<Json<SshDoor>, Error> {
    Ok(Json(app.ssh_door()?))
}

#[utoipa::path(get, path = "/me/ssh-keys", operation_id = "list_ssh_keys", responses(
    (status = 200, body = Page<SshKey>),
    (status = 401, body = Problem),
))]
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Page<SshKey>>, Error> {
    Ok(Json(Page { items: app.ssh_keys(&caller).await? }))
}

#[utoipa::path(post, path = "/me/ssh-keys", operation_id = "add_ssh_key", request_body = AddSshKey, responses(
    (status = 201, body = SshKey),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem, description = "`forbidden`: a token cannot add keys"),
    (status = 409, body = Problem, description = "`already_exists`"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<AddSshKey>,
) -> Result<(StatusCode, Json<SshKey>), Error> {
    Ok((StatusCode::CREATED, Json(app.add_ssh_key(&caller, wanted).await?)))
}

#[utoipa::path(post, path = "/me/ssh-keys/pair", operation_id = "make_ssh_pair", request_body = MakeSshPair, responses(
    (status = 201, body = NewSshPair, description = "the private half is shown this once and kept nowhere"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem, description = "`forbidden`: a token cannot add keys"),
    (status = 409, body = Problem, description = "`already_exists`"),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn make_pair(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<MakeSshPair>,
) -> Result<(StatusCode, Json<NewSshPair>), Error> {
    Ok((StatusCode::CREATED, Json(app.make_ssh_pair(&caller, wanted).await?)))
}

#[utoipa::path(post, path = "/me/ssh-keys/challenge", operation_id = "ssh_challenge", responses(
    (status = 200, body = SshChallenge, description = "what to sign with the key that is to be added"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
))]
pub(super) async fn challenge(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<SshChallenge>, Error> {
    Ok(Json(app.ssh_challenge(&caller)?))
}

#[utoipa::path(delete, path = "/me/ssh-keys/{id}", operation_id = "remove_ssh_key", params(
    ("id" = String, Path),
), responses(
    (status = 204, description = "connections that it opened are closed within five seconds"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Error> {
    app.remove_ssh_key(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
