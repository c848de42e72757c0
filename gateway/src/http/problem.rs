//! Every request gets a number, which stands in the log, in the answer's head, and in the body of an error.

use std::time::Instant;

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use gateway_api::{Problem, error::PROBLEM_JSON};
use http::{HeaderName, HeaderValue, header};
use tracing::Instrument as _;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The layer around everything.
pub(super) async fn number(request: Request, next: Next) -> Response {
    let id = format!("req_{:016x}", rand::random::<u64>());
    let method = request.method().clone();
    let path: String = request.uri().path().chars().take(256).collect();
    let span = tracing::info_span!("request", id, %method, path);
    let begun = Instant::now();
    let mut response = async {
        let response = next.run(request).await;
        tracing::info!(status = response.status().as_u16(), micros = begun.elapsed().as_micros(), "answered");
        response
    }
    .instrument(span)
    .await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let mut with_body = (
            [(header::CONTENT_TYPE, PROBLEM_JSON)],
            serde_json::to_vec(&Problem { request_id: id.clone(), ..problem }).unwrap_or_default(),
        )
            .into_response();
        *with_body.status_mut() = response.status();
        if let Some(wait) = response.headers_mut().remove(header::RETRY_AFTER) {
            with_body.headers_mut().insert(header::RETRY_AFTER, wait);
        }
        response = with_body;
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
