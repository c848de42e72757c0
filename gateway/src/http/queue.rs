//! The line over HTTP.

use std::sync::Arc;

use axum::extract::State;
use gateway_api::{Page, Problem, queue::Queued};

use super::{body::Json, caller::Caller};
use crate::{app::App, error::Error};

#[utoipa::path(get, path = "/queue", operation_id = "queue", responses(
    (status = 200, body = Page<Queued>, description =
        "all that waits, in its order; what belongs to others without its name, its user and its reason"),
    (status = 401, body = Problem),
))]
pub(super) async fn queue(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Page<Queued>>, Error> {
    Ok(Json(Page { items: app.queue(&caller).await? }))
}
