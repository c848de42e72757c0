//! `/healthz`: names the part that is unwell. Open to everyone, and so without details that help an attacker.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::body::Json;
use crate::app::App;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    parts: Vec<Part>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Part {
    name: &'static str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[utoipa::path(get, path = "/healthz", operation_id = "healthz", responses(
    (status = 200, body = Health),
    (status = 503, body = Health),
))]
pub(super) async fn healthz(State(app): State<Arc<App>>) -> (StatusCode, Json<Health>) {
    let parts: Vec<_> = app
        .health()
        .await
        .into_iter()
        .map(|part| Part {
            name: part.name,
            ok: part.trouble.is_none(),
            message: part.trouble.or(part.note.map(ToOwned::to_owned)),
        })
        .collect();
    let well = parts.iter().all(|part| part.ok);
    (if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, Json(Health { parts }))
}
