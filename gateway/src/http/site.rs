//! The site as a whole over HTTP.

use std::sync::Arc;

use axum::extract::State;
use gateway_api::{
    Page, Problem,
    preparing::PreparingStep,
    site::{ChangeSite, Site},
};

use super::{body::Json, caller::Caller};
use crate::{app::App, error::Error};

#[utoipa::path(get, path = "/site", operation_id = "show_site", responses(
    (status = 200, body = Site),
    (status = 401, body = Problem),
))]
pub(super) async fn show(State(app): State<Arc<App>>, _: Caller) -> Result<Json<Site>, Error> {
    Ok(Json(app.site_itself().await?))
}

#[utoipa::path(get, path = "/site/preparing", operation_id = "list_preparing", responses(
    (status = 200, body = Page<PreparingStep>, description = "the steps that prepare the site, in order; empty once all are done"),
    (status = 401, body = Problem),
))]
pub(super) async fn preparing(State(app): State<Arc<App>>, _: Caller) -> Json<Page<PreparingStep>> {
    Json(Page { items: app.preparing() })
}

#[utoipa::path(patch, path = "/site", operation_id = "change_site", request_body = ChangeSite, responses(
    (status = 200, body = Site),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
    (status = 413, body = Problem),
    (status = 422, body = Problem),
))]
pub(super) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<ChangeSite>,
) -> Result<Json<Site>, Error> {
    Ok(Json(app.change_site(&caller, wanted).await?))
}
