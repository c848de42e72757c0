//! A connection that is given over to a room: SFTP on a user's storages, with nothing in between.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Query, Request, State, rejection::QueryRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use hyper::upgrade::OnUpgrade;
use hyper_util::{rt::TokioIo, server::conn::auto::upgrade};
use tracing::warn;

use super::{Answer, Whose, socket::Connection};
use crate::{
    node::{Node, PutError},
    room::{Guest, RoomError},
    runtime::Runtime,
    storage::Place,
};

pub(super) async fn open<R: Runtime>(
    State(node): State<Arc<Node<R>>>,
    query: Result<Query<Whose>, QueryRejection>,
    mut request: Request,
) -> Result<Response, Answer> {
    let Query(Whose { user, group }) = query?;
    let places = node.world.storages.places(&user, &group).map_err(PutError::from)?;
    let guest = node.rooms.admit(&user).ok_or_else(|| {
        let message = "too many of your connections read and write files at once".to_owned();
        Answer::new(StatusCode::TOO_MANY_REQUESTS, message)
    })?;
    let made = {
        let places = places.clone();
        node.world.tasks.blocking(move || places.iter().try_for_each(Place::make)).await
    };
    made.unwrap_or(Ok(())).map_err(PutError::from)?;
    let given = hyper::upgrade::on(&mut request);
    let work = serve(Arc::clone(&node), places, given, guest);
    node.world.tasks.spawn(async move {
        if let Err(error) = work.await {
            warn!(user, %error, "a conversation on storages could not be held");
        }
    });
    let switch = [(header::CONNECTION, "upgrade"), (header::UPGRADE, "sftp")];
    Ok((StatusCode::SWITCHING_PROTOCOLS, switch, Body::empty()).into_response())
}

async fn serve<R: Runtime>(
    node: Arc<Node<R>>,
    places: Vec<Place>,
    given: OnUpgrade,
    _guest: Guest,
) -> Result<(), RoomError> {
    let given = given.await.map_err(|_| RoomError::NotGiven)?;
    let parts = upgrade::downcast::<TokioIo<Connection>>(given).map_err(|_| RoomError::NotGiven)?;
    if !parts.read_buf.is_empty() {
        // Nobody has said yet that they may speak.
        return Err(RoomError::NotGiven);
    }
    let (stream, _place) = parts.io.into_inner().into_parts();
    crate::room::serve(&node.world.agent, &places, stream).await
}
