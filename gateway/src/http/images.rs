//! Images and nodes over HTTP.

use std::sync::Arc;

use axum::extract::State;
use gateway_api::{Page, Problem, image::Image, node::Node};

use super::{body::Json, caller::Caller};
use crate::{app::App, error::Error};

#[utoipa::path(get, path = "/images", operation_id = "list_images", responses(
    (status = 200, body = Page<Image>),
    (status = 401, body = Problem),
    (status = 503, body = Problem, description = "`cluster_unreachable`"),
))]
pub(super) async fn images(State(app): State<Arc<App>>, _: Caller) -> Result<Json<Page<Image>>, Error> {
    Ok(Json(Page { items: app.images().await? }))
}

#[utoipa::path(get, path = "/nodes", operation_id = "list_nodes", responses(
    (status = 200, body = Page<Node>),
    (status = 401, body = Problem),
))]
pub(super) async fn nodes(State(app): State<Arc<App>>, caller: Caller) -> Json<Page<Node>> {
    Json(Page { items: app.nodes(&caller) })
}
