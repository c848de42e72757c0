//! The console: files that were built into this binary.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::{app::App, error::Error, proxy::address::Addresses};

#[derive(RustEmbed)]
#[folder = "../web/dist"]
struct Files;

/// Nothing but our own files runs in the console, and nobody frames it. It frames the apps of instances.
const CSP: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
    frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'; frame-src ";

/// A file of the console; every address that is not a file is a page of it.
pub(super) async fn serve(
    State(app): State<Arc<App>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Error> {
    if method != Method::GET && method != Method::HEAD {
        return Err(Error::NoSuchRoute);
    }
    let path = uri.path().trim_start_matches('/');
    // Built files have a hash in their name, so whoever has one never needs to ask again.
    let hashed = path.starts_with("assets/");
    let file = match Files::get(path).filter(|_| !path.is_empty()) {
        Some(file) => file,
        None if hashed => return Err(Error::NoSuchRoute),
        None => Files::get("index.html").ok_or(Error::NoSuchRoute)?,
    };
    let frames = app.addresses.get().map_or_else(|| "'none'".to_owned(), Addresses::frames);
    let policy =
        HeaderValue::try_from(format!("{CSP}{frames}")).map_err(|cause| Error::Internal(cause.into()))?;
    let mut response = answer(file, hashed, &headers);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

fn answer(file: EmbeddedFile, hashed: bool, request: &HeaderMap) -> Response {
    let tag = etag(&file.metadata.sha256_hash());
    let unchanged =
        request.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let kind = file.metadata.mimetype().to_owned();
    let mut response = if unchanged {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, kind)], file.data).into_response()
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    let caching = if hashed { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}

fn etag(hash: &[u8]) -> String {
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash))
}
