//! Saves over the control socket: the calls of [`envd_api::save`].

use std::sync::Arc;

use axum::{
    Json,
    extract::{
        Path, State,
        rejection::{JsonRejection, PathRejection},
    },
    http::StatusCode,
};
use envd_api::save::{AskChanges, Collect, Collected, PutSave, RemoveImage, SaveState};
use gateway_api::{
    ImageId, InstanceId,
    image::{Changes, SaveFailure},
};

use tracing::warn;

use super::Answer;
use crate::{for_users::without_addresses, node::Node, runtime::Runtime, save::SaveError};

pub(super) async fn put<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    id: Result<Path<ImageId>, PathRejection>,
    body: Result<Json<PutSave>, JsonRejection>,
) -> Result<(StatusCode, Json<SaveState>), Answer> {
    let (Path(id), Json(body)) = (id?, body?);
    let state = match node.world.saves.put(&node.world, &id, body) {
        // The same again would fail the same way: whoever waits for the image is to hear of it.
        Err(error @ SaveError::Io(_)) => error.into_state(&node.world.names),
        other => other?,
    };
    Ok((StatusCode::ACCEPTED, Json(state)))
}

pub(super) async fn state<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    id: Result<Path<ImageId>, PathRejection>,
) -> Result<Json<SaveState>, Answer> {
    let Path(id) = id?;
    let unknown = || Answer::new(StatusCode::NOT_FOUND, format!("nobody has asked for `{id}`"));
    node.world.saves.state(&id).await.map(Json).ok_or_else(unknown)
}

pub(super) async fn forget<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    id: Result<Path<ImageId>, PathRejection>,
) -> Result<StatusCode, Answer> {
    let Path(id) = id?;
    node.world.saves.forget(&node.world, &id).await.map_err(SaveError::from)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn rest<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    id: Result<Path<ImageId>, PathRejection>,
) -> Result<StatusCode, Answer> {
    let Path(id) = id?;
    node.world.saves.rest(&node.world, &id).await.map_err(SaveError::from)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn changes<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    id: Result<Path<InstanceId>, PathRejection>,
    body: Result<Json<AskChanges>, JsonRejection>,
) -> Result<Json<Changes>, Answer> {
    let (Path(id), Json(AskChanges { exclude })) = (id?, body?);
    Ok(Json(node.world.saves.changes(&node.world, &id, &exclude).await?))
}

pub(super) async fn remove<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    body: Result<Json<RemoveImage>, JsonRejection>,
) -> Result<StatusCode, Answer> {
    let Json(body) = body?;
    node.world.saves.remove(&node.world, &body).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn collect<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    body: Result<Json<Collect>, JsonRejection>,
) -> Result<Json<Collected>, Answer> {
    let Json(body) = body?;
    Ok(Json(node.world.saves.collect(&node.world, body).await?))
}

impl From<SaveError> for Answer {
    fn from(error: SaveError) -> Self {
        let status = match (&error, error.failure()) {
            (SaveError::BadName(_) | SaveError::BadPath(_), _) | (_, SaveFailure::NoRegistry) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            (SaveError::Busy(_) | SaveError::Loading, _) => StatusCode::CONFLICT,
            (_, SaveFailure::InstanceGone) => StatusCode::NOT_FOUND,
            (_, SaveFailure::DiskFull | SaveFailure::RegistryFull) => StatusCode::INSUFFICIENT_STORAGE,
            (_, SaveFailure::EngineUnreachable | SaveFailure::RegistryUnreachable) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            (_, SaveFailure::RegistryRefused | SaveFailure::Cancelled | SaveFailure::Other) => {
                StatusCode::BAD_GATEWAY
            }
        };
        warn!(%error, "a call about a save is answered with an error");
        Self::new(status, without_addresses(&error.to_string(), ""))
    }
}
