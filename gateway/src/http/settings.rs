//! The settings in effect over HTTP.

use std::sync::Arc;

use axum::extract::State;
use gateway_api::{Page, Problem, setting::EffectiveSetting};

use super::{body::Json, caller::Caller};
use crate::{app::App, auth::policy, error::Error};

#[utoipa::path(get, path = "/settings", operation_id = "effective_settings", responses(
    (status = 200, body = Page<EffectiveSetting>, description = "what `gateway check-config` prints; no secrets"),
    (status = 401, body = Problem),
    (status = 403, body = Problem),
))]
pub(super) async fn effective(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Page<EffectiveSetting>>, Error> {
    policy::administer(&caller)?;
    Ok(Json(Page { items: app.config.settings.iter().map(EffectiveSetting::from).collect() }))
}
