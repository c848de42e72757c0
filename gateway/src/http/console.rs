//! The console: files that were built into this binary.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use console::{EmbeddedFile, Files};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use crate::{app::App, error::Error, proxy::address::Addresses};

/// Nothing but our own files runs in the console, and nobody frames it. It frames the apps of instances.
const CSP: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
    frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'; frame-src ";

/// Leads a browser to the console's better address, if the browser can find it.
const BETTER: &str = include_str!("better.html");
/// The cookie of a browser that cannot.
const STAYS: &str = "berth-stays=1";

/// How a file can be sent, the smallest first: the ending of the copy that the console's build made, and its name.
const CODINGS: [(&str, &str); 2] = [("br", "br"), ("gz", "gzip")];

/// A file of the console; every address that is not a file is a page of it.
pub(super) async fn serve(
    State(app): State<Arc<App>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Error> {
    if method == Method::GET
        && let Some(console) = app.addresses.get().and_then(|addresses| better(addresses, &headers))
    {
        return lead_to(&console);
    }
    let mut response = file(&method, &uri, &headers)?;
    let frames = app.addresses.get().map_or_else(|| "'none'".to_owned(), Addresses::frames);
    let policy =
        HeaderValue::try_from(format!("{CSP}{frames}")).map_err(|cause| Error::Internal(cause.into()))?;
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// Where somebody who opens a page of the console does better.
fn better(addresses: &Addresses, headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_page = text("sec-fetch-mode") == "navigate" && text("sec-fetch-dest") == "document";
    let stays = text(header::COOKIE.as_str()).split(';').any(|pair| pair.trim() == STAYS);
    addresses.better_console(text(header::HOST.as_str())).filter(|_| is_page && !stays)
}

fn lead_to(console: &str) -> Result<Response, Error> {
    let nonce = format!("{:032x}", rand::random::<u128>());
    let page =
        BETTER.replace("{{nonce}}", &nonce).replace("{{console}}", console).replace("{{stays}}", STAYS);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; connect-src {console}; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy).map_err(|cause| Error::Internal(cause.into()))?;
    let mut response = axum::response::Html(page).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn file(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Response, Error> {
    if *method != Method::GET && *method != Method::HEAD {
        return Err(Error::NoSuchRoute);
    }
    let path = uri.path().trim_start_matches('/');
    // Built files have a hash in their name, so whoever has one never needs to ask again.
    let hashed = path.starts_with("assets/");
    let is_copy = CODINGS.iter().any(|(ending, _)| path.rsplit('.').next() == Some(ending));
    let (path, file) = match Files::get(path).filter(|_| !path.is_empty() && !is_copy) {
        Some(file) => (path, file),
        None if hashed => return Err(Error::NoSuchRoute),
        None => ("index.html", Files::get("index.html").ok_or(Error::NoSuchRoute)?),
    };
    Ok(answer(path, file, hashed, headers))
}

fn answer(path: &str, file: EmbeddedFile, hashed: bool, request: &HeaderMap) -> Response {
    let kind = file.metadata.mimetype().to_owned();
    let copy = CODINGS
        .into_iter()
        .filter(|(_, coding)| takes(request, coding))
        .find_map(|(ending, coding)| Some((Files::get(&format!("{path}.{ending}"))?, coding)));
    let (file, coding) = copy.map_or((file, None), |(file, coding)| (file, Some(coding)));
    let tag = etag(&file.metadata.sha256_hash());
    let unchanged = request
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|known| known.to_str().ok())
        .flat_map(|known| known.split(','))
        .any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = if unchanged {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, kind)], file.data).into_response()
    };
    let headers = response.headers_mut();
    if let Some(coding) = coding.filter(|_| !unchanged) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    let caching = if hashed { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response
}

/// Whether the client takes that coding: it says so by name, and not with a weight of nothing.
fn takes(request: &HeaderMap, coding: &str) -> bool {
    let said = request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    said.flat_map(|value| value.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case(coding) && weight.is_none_or(|weight| weight > 0.0)
    })
}

fn etag(hash: &[u8]) -> String {
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coding_is_for_those_who_take_it() {
        let check = |accepts: &'static str, coding| {
            takes(
                &[(header::ACCEPT_ENCODING, HeaderValue::from_static(accepts))].into_iter().collect(),
                coding,
            )
        };
        assert!(check("gzip, deflate, br, zstd", "br") && check("gzip, deflate, br, zstd", "gzip"));
        assert!(check("BR;q=0.5", "br") && !check("br;q=0, gzip", "br") && !check("br; q=0.000", "br"));
        assert!(!check("", "br") && !check("broken", "br") && !check("deflate", "gzip"));
        assert!(!takes(&HeaderMap::new(), "gzip"));
    }

    #[test]
    fn files_are_sent_small_and_asked_for_once() {
        let ask = |path: &str, headers: &[(http::HeaderName, &str)]| {
            let headers = headers
                .iter()
                .map(|(name, value)| (name.clone(), value.parse().unwrap()))
                .collect::<HeaderMap>();
            file(&Method::GET, &path.parse().unwrap(), &headers).unwrap()
        };
        let script = Files::iter().find(|path| path.starts_with("assets/") && path.ends_with(".js")).unwrap();
        let whole = ask(&format!("/{script}"), &[]);
        assert!(!whole.headers().contains_key(header::CONTENT_ENCODING));
        assert!(whole.headers()[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));

        let page = ask("/instances/train", &[]);
        assert_eq!(page.headers()[header::CACHE_CONTROL], "no-cache");
        let tag = page.headers()[header::ETAG].to_str().unwrap();
        let again = ask("/", &[(header::IF_NONE_MATCH, &format!("\"x\", W/{tag}"))]);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);

        for (ending, coding) in CODINGS {
            // Without the console's own build there are no copies, and nothing is lost by it.
            if Files::get(&format!("{script}.{ending}")).is_none() {
                continue;
            }
            let small = ask(&format!("/{script}"), &[(header::ACCEPT_ENCODING, coding)]);
            assert_eq!(small.headers()[header::CONTENT_ENCODING], coding);
            assert_eq!(small.headers()[header::CONTENT_TYPE], whole.headers()[header::CONTENT_TYPE]);
            assert_ne!(small.headers()[header::ETAG], whole.headers()[header::ETAG]);
            let copy = file(&Method::GET, &format!("/{script}.{ending}").parse().unwrap(), &HeaderMap::new());
            assert!(copy.is_err(), "a copy has no address of its own");
        }
    }
}
