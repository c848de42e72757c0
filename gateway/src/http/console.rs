//! The console: files that were built into this binary.

use axum::response::{IntoResponse, Response};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::error::Error;

#[derive(RustEmbed)]
#[folder = "../web/dist"]
struct Files;

/// Nothing but our own files runs in the console, and nobody frames it.
const CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'",
);

/// A file of the console; every address that is not a file is a page of it.
pub(super) async fn serve(method: Method, uri: Uri, headers: HeaderMap) -> Result<Response, Error> {
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
    Ok(answer(file, hashed, &headers))
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
    headers.insert(header::CONTENT_SECURITY_POLICY, CSP);
    response
}

fn etag(hash: &[u8]) -> String {
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash))
}
