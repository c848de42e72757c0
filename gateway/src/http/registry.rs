//! `/v2/`: the site's registry for `docker`, `skopeo` and their like, by the rules of the OCI distribution specification.
//!
//! A client without a token is sent to `/v2/token`, where a name and a password, or an API token in its place, become a
//! token for ten minutes. With it, every request is checked here and only then sent on to the registry, under an address
//! that is made anew from what was understood.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    BoxError,
    body::Body,
    extract::{FromRequestParts as _, Query, Request, State},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts};
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::caller::{self, Caller};
use crate::{
    app::{App, REGISTRY_SESSION_LASTS, Refused},
    auth::{Origin, token::Token},
    error::{Error, chain},
    registry::{
        Answer, Ask, MANIFEST_MAX, NoAnswer,
        path::{self, Place, Reference, What},
    },
};

const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");
/// The most names that a listing gives at once.
const PAGE_MAX: usize = 1000;

/// Whether there is a registry here, and whether the client is signed in.
pub(super) async fn version(State(app): State<Arc<App>>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let answer = match signed_in(&app, &mut parts).await {
        Ok(_) => axum::Json(json!({})).into_response(),
        Err(refused) => refuse(&app, &parts, &refused),
    };
    with_version(answer)
}

/// Whatever is asked of one repository.
pub(super) async fn serve(State(app): State<Arc<App>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let answer = match answer(&app, &mut parts, body).await {
        Ok(answer) => answer,
        Err(refused) => {
            note(&app, &parts, &refused).await;
            refuse(&app, &parts, &refused)
        }
    };
    with_version(answer)
}

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    n: Option<usize>,
    last: Option<String>,
}

/// The repositories of which the caller may use something.
pub(super) async fn catalog(
    State(app): State<Arc<App>>,
    Query(page): Query<PageQuery>,
    request: Request,
) -> Response {
    let (mut parts, _) = request.into_parts();
    let names = async {
        let caller = signed_in(&app, &mut parts).await?;
        Ok::<_, Refused>(app.repositories(&caller).await?)
    };
    let answer = match names.await {
        Ok(names) => {
            let (names, next) = page.cut(names);
            listing(json!({ "repositories": names }), "/v2/_catalog", next)
        }
        Err(refused) => refuse(&app, &parts, &refused),
    };
    with_version(answer)
}

/// A token for who says a name and a password, or an API token instead of the password.
pub(super) async fn token(State(app): State<Arc<App>>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    match new_token(&app, &mut parts).await {
        Ok(token) => {
            let body = json!({
                "token": token.reveal(),
                "access_token": token.reveal(),
                "expires_in": REGISTRY_SESSION_LASTS.as_secs(),
                "issued_at": jiff::Timestamp::now(),
            });
            axum::Json(body).into_response()
        }
        Err(error) => refuse(&app, &parts, &error.into()),
    }
}

async fn new_token(app: &Arc<App>, parts: &mut Parts) -> Result<Token, Error> {
    app.site_registry()?;
    let origin = Origin::from_request_parts(parts, app).await?;
    let (user, secret) = basic(&parts.headers).ok_or(Error::Unauthenticated)?;
    let token = Token::from_client(&secret).filter(Token::is_for_api);
    if let Some(token) = token {
        let caller = app.caller(&token, origin).await;
        let caller = caller.map_err(|error| {
            if matches!(error, Error::Unauthenticated) { Error::BadCredentials } else { error }
        })?;
        // Whose it is must be who it is used for: a client shows the name.
        return if caller.user.name.as_str() == user { Ok(token) } else { Err(Error::BadCredentials) };
    }
    let (_, token) = app.sign_in_for(&user, secret, &origin, REGISTRY_SESSION_LASTS).await?;
    Ok(token)
}

fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let text = String::from_utf8(STANDARD.decode(value.strip_prefix("Basic ")?).ok()?).ok()?;
    let (user, secret) = text.split_once(':')?;
    Some((user.to_owned(), secret.to_owned()))
}

/// Browsers' cookies do not count here: only what a client says by itself.
async fn signed_in(app: &Arc<App>, parts: &mut Parts) -> Result<Caller, Refused> {
    app.site_registry()?;
    if !parts.headers.contains_key(header::AUTHORIZATION) {
        return Err(Error::Unauthenticated.into());
    }
    Ok(Caller::from_request_parts(parts, app).await?)
}

async fn answer(app: &Arc<App>, parts: &mut Parts, body: Body) -> Result<Response, Refused> {
    let caller = signed_in(app, parts).await?;
    let path = parts.uri.path().to_owned();
    let place = path.strip_prefix("/v2/").and_then(Place::read).ok_or(Refused::Nothing)?;
    let Place { repository, what } = place;
    let query = parts.uri.query().unwrap_or_default();
    match (what, &parts.method) {
        (What::Tags, &Method::GET) => {
            let page = page_of(query);
            let (tags, next) = page.cut(app.tags(&caller, repository).await?);
            Ok(listing(json!({ "name": repository, "tags": tags }), parts.uri.path(), next))
        }
        (What::Manifest(reference), &Method::GET | &Method::HEAD) => {
            let digest = app.may_pull_manifest(&caller, repository, reference).await?;
            let ask = Ask::new(parts.method.clone(), format!("{repository}/manifests/{digest}"));
            Ok(pass_on(app.site_registry()?.ask(ask.with_headers_of(&parts.headers)).await?))
        }
        (What::Manifest(reference), &Method::PUT) => {
            put_manifest(app, &caller, repository, reference, &parts.headers, body).await
        }
        (What::Manifest(reference), &Method::DELETE) => {
            app.delete_manifest(&caller, repository, reference).await?;
            Ok(StatusCode::ACCEPTED.into_response())
        }
        (What::Blob(digest), &Method::GET | &Method::HEAD) => {
            app.may_pull_blob(&caller, repository, digest).await?;
            let ask = Ask::new(parts.method.clone(), format!("{repository}/blobs/{digest}"));
            Ok(pass_on(app.site_registry()?.ask(ask.with_headers_of(&parts.headers)).await?))
        }
        (What::Uploads, &Method::POST) => {
            app.may_push(&caller, repository)?;
            let mut ask = Ask::new(Method::POST, format!("{repository}/blobs/uploads/"));
            ask.query = begin_upload(app, &caller, query).await?;
            let ask = ask.with_headers_of(&parts.headers);
            upload(app, &caller, repository, ask, body).await
        }
        (What::Upload(id), &Method::GET | &Method::PATCH | &Method::PUT | &Method::DELETE) => {
            app.may_push(&caller, repository)?;
            let mut ask = Ask::new(parts.method.clone(), format!("{repository}/blobs/uploads/{id}"));
            // The registry's own: it was in the address that it gave.
            ask.query = Some(query.to_owned()).filter(|query| !query.is_empty());
            let ask = ask.with_headers_of(&parts.headers);
            match parts.method {
                Method::PATCH | Method::PUT => upload(app, &caller, repository, ask, body).await,
                _ => Ok(pass_on(app.site_registry()?.ask(ask).await?)),
            }
        }
        (What::Tags | What::Manifest(_) | What::Blob(_) | What::Uploads | What::Upload(_), _) => {
            Err(Error::NoSuchMethod.into())
        }
    }
}

/// Sends a blob, or a part of one, or takes one over: no more than there is room for, and what is whole is counted.
async fn upload(
    app: &App,
    caller: &Caller,
    repository: &str,
    ask: Ask,
    body: Body,
) -> Result<Response, Refused> {
    let digest =
        ask.query.as_deref().and_then(|query| value_of(query, "digest").or_else(|| value_of(query, "mount")));
    let (most, refused) =
        app.upload_room(caller).await?.map_or((u64::MAX, None), |(most, refused)| (most, Some(refused)));
    let is_over = Arc::new(AtomicBool::new(false));
    let (note, mut sent) = (Arc::clone(&is_over), 0_u64);
    let body = body.into_data_stream().map(move |piece| {
        let piece = piece.map_err(BoxError::from)?;
        sent = sent.saturating_add(piece.len() as u64);
        if sent > most {
            note.store(true, Ordering::Relaxed);
            return Err(BoxError::from("there is no room for more"));
        }
        Ok(piece)
    });
    let answer = app.site_registry()?.send(ask, body).await;
    if let Some(refused) = refused.filter(|_| is_over.load(Ordering::Relaxed)) {
        return Err(refused.into());
    }
    let answer = answer?;
    if let Some(digest) =
        digest.filter(|digest| answer.status == StatusCode::CREATED && path::is_digest(digest))
    {
        app.uploaded(caller, repository, &digest).await?;
    }
    Ok(pass_on(answer))
}

/// A part of a query, with what may be written otherwise in digests and names of repositories.
fn value_of(query: &str, name: &str) -> Option<String> {
    let found = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)?.1;
    Some(found.replace("%3A", ":").replace("%3a", ":").replace("%2F", "/").replace("%2f", "/"))
}

/// An upload may take over a blob from another repository, if the caller could pull it there. If not, it begins as if
/// nobody had named one.
async fn begin_upload(app: &App, caller: &Caller, query: &str) -> Result<Option<String>, Refused> {
    let value = |name: &str| value_of(query, name);
    if let Some(digest) = value("digest").filter(|digest| path::is_digest(digest)) {
        return Ok(Some(format!("digest={digest}")));
    }
    let (Some(digest), Some(from)) = (value("mount"), value("from")) else { return Ok(None) };
    if !path::is_digest(&digest) || !path::is_repository(&from) {
        return Ok(None);
    }
    match app.may_pull_blob(caller, &from, &digest).await {
        Ok(()) => Ok(Some(format!("mount={digest}&from={from}"))),
        Err(Refused::Nothing) => Ok(None),
        Err(other) => Err(other),
    }
}

async fn put_manifest(
    app: &App,
    caller: &Caller,
    repository: &str,
    reference: Reference<'_>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    app.may_push(caller, repository)?;
    let bytes = Limited::new(body, MANIFEST_MAX).collect().await;
    let bytes = bytes.map_err(|error| Refused::BadManifest(error.to_string()))?.to_bytes();
    let put = async |place: &str| {
        let ask = Ask::new(Method::PUT, format!("{repository}/manifests/{place}")).with_headers_of(headers);
        let piece = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(bytes.clone())]);
        app.site_registry()?.send(ask, piece).await.map_err(Refused::from)
    };
    let tag = match reference {
        Reference::Digest(digest) => return Ok(pass_on(put(digest).await?)),
        Reference::Tag(tag) => tag,
    };
    let size = app.check_manifest(caller, repository, tag, &bytes).await?;
    let _listing = app.listing.read().await;
    let answer = put(tag).await?;
    if !answer.status.is_success() {
        return Ok(pass_on(answer));
    }
    let digest = Sha256::digest(&bytes);
    let digest = digest.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"));
    if answer.digest().is_some_and(|said| said != digest) {
        return Err(NoAnswer::Odd("it has another manifest than it was given").into());
    }
    app.pushed(caller, repository, tag, &digest, size).await?;
    Ok(pass_on(answer))
}

fn pass_on(answer: Answer) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers.clone();
    *response.body_mut() = Body::from_stream(answer.into_body());
    response
}

// === listings ===

impl PageQuery {
    /// The names after `last`, at most `n` of them, and the last of these if there are more.
    fn cut(&self, names: Vec<String>) -> (Vec<String>, Option<String>) {
        let most = self.n.unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let after = |name: &String| self.last.as_ref().is_none_or(|last| name > last);
        let mut names: Vec<_> = names.into_iter().filter(after).collect();
        let more = names.len() > most;
        names.truncate(most);
        let next = names.last().filter(|_| more).map(|last| format!("n={most}&last={last}"));
        (names, next)
    }
}

fn page_of(query: &str) -> PageQuery {
    let value = |name| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    PageQuery { n: value("n").and_then(|n| n.parse().ok()), last: value("last").map(str::to_owned) }
}

fn listing(body: serde_json::Value, path: &str, next: Option<String>) -> Response {
    let mut response = axum::Json(body).into_response();
    let link = next.and_then(|next| format!("<{path}?{next}>; rel=\"next\"").parse().ok());
    if let Some(link) = link {
        response.headers_mut().insert(header::LINK, link);
    }
    response
}

// === refusals ===

/// Who was refused what is written down, as for every other door.
async fn note(app: &App, parts: &Parts, refused: &Refused) {
    let is_about_rights = matches!(
        refused,
        Refused::Nothing
            | Refused::NotYours { .. }
            | Refused::Error(Error::Forbidden { .. } | Error::Hidden { .. })
    );
    let request = parts.extensions.get::<caller::Request>();
    if let Some(request) = request.filter(|_| is_about_rights)
        && let Some(actor) = request.actor.get()
    {
        let source = parts.extensions.get::<axum::extract::ConnectInfo<std::net::SocketAddr>>();
        let source = source.map(|info| info.0.ip());
        let what = format!("{} {}", parts.method, parts.uri.path());
        app.note_refusal(actor, source, &request.id, what, shape(refused).0.as_u16()).await;
    }
}

/// The status and the word of the specification.
fn shape(refused: &Refused) -> (StatusCode, &'static str) {
    match refused {
        Refused::Nothing => (StatusCode::NOT_FOUND, "NAME_UNKNOWN"),
        Refused::NotYours { .. } | Refused::Error(Error::ImageQuota { .. }) => {
            (StatusCode::FORBIDDEN, "DENIED")
        }
        Refused::Busy => (StatusCode::CONFLICT, "DENIED"),
        Refused::BadManifest(_) => (StatusCode::BAD_REQUEST, "MANIFEST_INVALID"),
        Refused::NoAnswer(NoAnswer::Silent) => (StatusCode::REQUEST_TIMEOUT, "UNKNOWN"),
        Refused::NoAnswer(
            NoAnswer::Unreachable(_) | NoAnswer::Login | NoAnswer::Password(_) | NoAnswer::Odd(_),
        ) => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
        Refused::Error(error) => {
            let status = error.status();
            let word = match status {
                StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
                StatusCode::NOT_FOUND => "NAME_UNKNOWN",
                StatusCode::UNPROCESSABLE_ENTITY => "NAME_INVALID",
                StatusCode::TOO_MANY_REQUESTS => "TOOMANYREQUESTS",
                StatusCode::METHOD_NOT_ALLOWED => "UNSUPPORTED",
                StatusCode::FORBIDDEN | StatusCode::CONFLICT => "DENIED",
                _ => "UNKNOWN",
            };
            // Clients know no other status for a name that cannot be.
            let status =
                if status == StatusCode::UNPROCESSABLE_ENTITY { StatusCode::BAD_REQUEST } else { status };
            (status, word)
        }
    }
}

fn refuse(app: &App, parts: &Parts, refused: &Refused) -> Response {
    let (status, code) = shape(refused);
    if status.is_server_error() {
        tracing::error!(error = %chain(refused), "the registry did not do it");
    }
    let mut message = refused.to_string();
    if let Refused::Error(error) = refused
        && let Some(hint) = error.problem().hint
    {
        message = format!("{message}; {hint}");
    }
    let body = json!({ "errors": [{ "code": code, "message": message }] });
    let mut response = (status, axum::Json(body)).into_response();
    if let Refused::Error(Error::TooManyAttempts { seconds }) = refused {
        response.headers_mut().insert(header::RETRY_AFTER, (*seconds).into());
    }
    if status == StatusCode::UNAUTHORIZED
        && let Some(challenge) = challenge(app, parts)
    {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Where to get a token: at this gateway, by the name that the client knows it by.
fn challenge(app: &App, parts: &Parts) -> Option<HeaderValue> {
    let console = app.addresses.get().map(|addresses| addresses.console.as_str())?;
    let (scheme, own) = console.split_once("://")?;
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str)).unwrap_or(own);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    let host = if host.bytes().all(plain) { host } else { own };
    format!("Bearer realm=\"{scheme}://{host}/v2/token\",service=\"{host}\"").parse().ok()
}

fn with_version(mut response: Response) -> Response {
    response.headers_mut().insert(API_VERSION, HeaderValue::from_static("registry/2.0"));
    response
}
