//! Every request gets a number, which stands in the log, in the answer's head, and in the body of an error.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Instant,
};

use axum::{
    extract::{ConnectInfo, MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use gateway_api::{Problem, error::PROBLEM_JSON};
use http::{HeaderName, HeaderValue, header};
use tracing::Instrument as _;

use super::caller;
use crate::{
    app::App,
    error::{Error, chain},
    metrics,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// For half a year browsers that have been here by TLS do not come without.
const STRICT: &str = "max-age=15552000";

/// Marks an answer that the audit log has to know of.
#[derive(Debug, Clone, Copy)]
struct Refusal;

/// The body is written by [`number`], which knows the request's id.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        if self.status().is_server_error() {
            tracing::error!(error = %chain(&self), "the request failed");
        }
        let mut response = self.status().into_response();
        if let Self::TooManyAttempts { seconds } = &self {
            response.headers_mut().insert(header::RETRY_AFTER, (*seconds).into());
        }
        if matches!(self, Self::Forbidden { .. } | Self::Hidden { .. }) {
            response.extensions_mut().insert(Refusal);
        }
        response.extensions_mut().insert(self.problem());
        response
    }
}

/// The layer around everything.
pub(super) async fn number(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let id = format!("req_{:016x}", rand::random::<u64>());
    let actor = Arc::new(OnceLock::new());
    request.extensions_mut().insert(caller::Request { id: id.clone(), actor: Arc::clone(&actor) });
    let source = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let method = request.method().clone();
    let counted = method.clone();
    let path = request.uri().path().to_owned(); // the log cuts it
    let route = request.extensions().get::<MatchedPath>().cloned();
    let span = tracing::info_span!("request", id, %method, path);
    let begun = Instant::now();
    let mut response = async {
        let response = next.run(request).await;
        if let (Some(_), Some(actor)) = (response.extensions().get::<Refusal>(), actor.get()) {
            let what = format!("{method} {path}");
            app.note_refusal(actor, source, &id, what, response.status().as_u16()).await;
        }
        tracing::info!(status = response.status().as_u16(), micros = begun.elapsed().as_micros(), "answered");
        response
    }
    .instrument(span)
    .await;
    metrics::answered(&counted, route.as_ref().map(MatchedPath::as_str), response.status(), begun.elapsed());
    // What axum refuses by itself, such as an address that is not UTF-8, has no sentence of ours yet.
    let unsaid = response.extensions().get::<Problem>().is_none() && response.status().is_client_error();
    if unsaid && route.as_ref().is_some_and(|route| route.as_str().starts_with("/api/")) {
        response.extensions_mut().insert(Error::Malformed.problem());
    }
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        metrics::refused(&problem);
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
    if app.config.keeps_to_tls() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(STRICT));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    // Apps of one's own site may be below the same domain, and the session's cookie goes along there.
    let unframed = HeaderValue::from_static("frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(unframed);
    response
}
