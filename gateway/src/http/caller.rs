//! Who sent a request. The same check stands before HTTP and WebSocket handlers alike.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use axum::{
    extract::{ConnectInfo, FromRequestParts},
    http::{HeaderMap, Method, header, request::Parts},
};
use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};
use gateway_api::UserName;

pub(super) use crate::auth::Caller;
use crate::{
    app::{App, SESSION_LASTS},
    auth::{Origin, policy, token::Token},
    error::Error,
};

/// What the layer around everything knows of a request, and learns from whoever finds out who sent it.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) actor: Arc<OnceLock<UserName>>,
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Error> {
        let token = if let Some(token) = bearer(&parts.headers) {
            token?
        } else {
            let jar = CookieJar::from_headers(&parts.headers);
            let cookie = jar.get(cookie_name(app)).ok_or(Error::Unauthenticated)?;
            // A cookie comes along whoever made the browser ask: only our own pages may.
            let upgrade = parts.headers.contains_key(header::UPGRADE);
            if upgrade || !parts.method.is_safe() {
                same_origin(&parts.headers, has_tls(app), upgrade)?;
            }
            let token = Token::from_client(cookie.value()).ok_or(Error::Unauthenticated)?;
            // What is for scripts is not for browsers.
            Some(token).filter(|token| !token.is_for_api()).ok_or(Error::Unauthenticated)?
        };
        let origin = Origin::from_request_parts(parts, app).await?;
        let caller = app.caller(&token, origin).await?;
        if let Some(request) = parts.extensions.get::<Request>() {
            let _ = request.actor.set(caller.user.name.clone());
        }
        if caller.user.must_change_password && !is_about_oneself(parts) {
            return Err(Error::PasswordChangeRequired);
        }
        if !parts.method.is_safe() {
            policy::change_anything(&caller)?;
        }
        Ok(caller)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Origin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let info = ConnectInfo::<SocketAddr>::from_request_parts(parts, state).await;
        let ConnectInfo(address) = info.map_err(|error| Error::Internal(error.into()))?;
        let request_id = parts.extensions.get::<Request>().map(|request| request.id.clone());
        Ok(Self { source: address.ip(), request_id: request_id.unwrap_or_default() })
    }
}

/// What works also with a password that somebody else has seen: to see who one is, to change it, and to leave.
fn is_about_oneself(parts: &Parts) -> bool {
    // Handlers below the prefix do not see it.
    let path = parts.uri.path();
    let path = path.strip_prefix("/api/v1").unwrap_or(path);
    matches!((parts.method.as_str(), path), ("GET", "/me") | ("PUT", "/me/password") | ("DELETE", "/session"))
}

/// Proof that a request without a session does not come from somebody else's page.
#[derive(Debug, Clone, Copy)]
pub(super) struct SameOrigin;

impl FromRequestParts<Arc<App>> for SameOrigin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Error> {
        debug_assert!(parts.method != Method::GET);
        same_origin(&parts.headers, has_tls(app), false).map(|()| Self)
    }
}

/// The cookie that carries `token` in a browser; `None` takes it away.
pub(super) fn session_cookie(app: &App, token: Option<&Token>) -> Cookie<'static> {
    let cookie =
        Cookie::build((cookie_name(app), token.map(|token| token.reveal().to_owned()).unwrap_or_default()))
            .path("/")
            .http_only(true)
            .same_site(SameSite::Lax)
            .secure(!app.config.dangerous_plain_http);
    match token {
        Some(_) => cookie.max_age(SESSION_LASTS.try_into().unwrap_or_default()).build(),
        None => cookie.removal().build(),
    }
}

fn cookie_name(app: &App) -> &'static str {
    if app.config.dangerous_plain_http { "berth" } else { "__Host-berth" }
}

/// The bearer token, where the header is there at all.
fn bearer(headers: &HeaderMap) -> Option<Result<Token, Error>> {
    let value = headers.get(header::AUTHORIZATION)?;
    let token =
        value.to_str().ok().and_then(|value| value.strip_prefix("Bearer ")).and_then(Token::from_client);
    Some(token.ok_or(Error::Unauthenticated))
}

/// Whether browsers reach the console by TLS, be it ours or a proxy's.
fn has_tls(app: &App) -> bool {
    app.addresses.get().is_some_and(|addresses| addresses.console.starts_with("https://"))
}

/// Whether the page that asks is our own: its origin is the host that it asks. Where there is TLS a page that came
/// without is not: anyone on the way can have written it. But for one of the browser's own machine, such as through a
/// tunnel.
fn same_origin(headers: &HeaderMap, tls: bool, required: bool) -> Result<(), Error> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(origin) = text(header::ORIGIN) {
        let is_same = origin.split_once("://").is_some_and(|(scheme, authority)| {
            let is_safe = match scheme {
                "https" => true,
                "http" => !tls || is_own_machine(authority),
                _ => false,
            };
            is_safe && Some(authority) == text(header::HOST)
        });
        return if is_same { Ok(()) } else { Err(Error::CrossSite) };
    }
    match headers.get("sec-fetch-site").map(http::HeaderValue::as_bytes) {
        Some(b"same-origin" | b"none") | None if !required => Ok(()),
        Some(_) | None => Err(Error::CrossSite),
    }
}

fn is_own_machine(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<http::uri::Authority>() else { return false };
    let host = authority.host().trim_matches(['[', ']']);
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&'static str, &'static str)], required: bool) -> bool {
        check_with(false, pairs, required)
    }

    fn check_with(tls: bool, pairs: &[(&'static str, &'static str)], required: bool) -> bool {
        let headers = pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect::<HeaderMap>();
        same_origin(&headers, tls, required).is_ok()
    }

    #[test]
    fn where_there_is_tls_a_page_without_is_not_ours() {
        let host = ("host", "berth.example.org");
        assert!(check_with(true, &[host, ("origin", "https://berth.example.org")], true));
        assert!(!check_with(true, &[host, ("origin", "http://berth.example.org")], true));
        assert!(!check_with(true, &[host, ("origin", "ftp://berth.example.org")], true));
        assert!(check(&[host, ("origin", "http://berth.example.org")], true), "a site without TLS");
        assert!(
            check(&[host, ("origin", "https://berth.example.org")], true),
            "a proxy that we do not know of"
        );
        for own in ["localhost:8080", "berth.localhost", "127.0.0.1:8080", "[::1]:8080"] {
            let origin: &'static str = Box::leak(format!("http://{own}").into_boxed_str());
            assert!(check_with(true, &[("host", own), ("origin", origin)], true), "{own}");
        }
        assert!(!check_with(
            true,
            &[("host", "localhost.example.org"), ("origin", "http://localhost.example.org")],
            true
        ));
    }

    #[test]
    fn only_our_own_pages_may_use_the_cookie() {
        let host = ("host", "localhost:8080");
        assert!(check(&[host, ("origin", "http://localhost:8080")], true));
        assert!(check(&[host, ("sec-fetch-site", "same-origin")], false));
        assert!(check(&[host], false), "a client that is no browser");
        assert!(!check(&[host], true), "a WebSocket of a browser always says its origin");
        assert!(!check(&[host, ("origin", "null")], false));
        assert!(!check(&[host, ("origin", "http://localhost:8081")], false));
        assert!(!check(&[host, ("origin", "http://lab--a--b.localhost:8080")], false));
        assert!(!check(&[host, ("sec-fetch-site", "same-site")], false));
        assert!(!check(&[host, ("sec-fetch-site", "cross-site")], false));
        assert!(!check(&[("origin", "http://")], false));
    }
}
