//! The conversion of job files over HTTP.

use std::sync::Arc;

use axum::extract::State;
use gateway_api::{
    Problem,
    convert::{ConvertJob, Converted},
};

use super::{
    body::{JOB_LIMIT, Json},
    caller::Caller,
};
use crate::{app::App, error::Error};

#[utoipa::path(post, path = "/jobs:convert", operation_id = "convert_job", request_body = ConvertJob, responses(
    (status = 200, body = Converted, description = "the job in our own words, with what is to be said about its file; \
        nothing is queued"),
    (status = 400, body = Problem),
    (status = 401, body = Problem),
    (status = 413, body = Problem),
))]
pub(super) async fn convert(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(wanted): Json<ConvertJob, JOB_LIMIT>,
) -> Result<Json<Converted>, Error> {
    Ok(Json(app.convert_job(&caller, &wanted).await))
}
