//! The machines as a whole over HTTP.

use std::sync::Arc;

use axum::extract::State;
use gateway_api::{Problem, cluster::Cluster};

use super::{body::Json, caller::Caller};
use crate::{app::App, error::Error};

#[utoipa::path(get, path = "/cluster", operation_id = "show_cluster", responses(
    (status = 200, body = Cluster, description = "what is there, what is taken, and how many wait"),
    (status = 401, body = Problem),
))]
pub(super) async fn show(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Cluster>, Error> {
    Ok(Json(app.cluster_view(&caller).await?))
}
