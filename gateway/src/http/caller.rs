//! Who sent a request. The same check stands before HTTP and WebSocket handlers alike.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, FromRequestParts},
    http::{HeaderMap, Method, header, request::Parts},
};
use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};

use crate::{
    app::{App, SESSION_LASTS},
    auth::token::Token,
    error::Error,
    store::User,
};

/// A signed-in caller.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) user: User,
    pub(super) session: Token,
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Error> {
        let session = if let Some(token) = bearer(&parts.headers) {
            token?
        } else {
            let jar = CookieJar::from_headers(&parts.headers);
            let cookie = jar.get(cookie_name(app)).ok_or(Error::Unauthenticated)?;
            // A cookie comes along whoever made the browser ask: only our own pages may.
            let upgrade = parts.headers.contains_key(header::UPGRADE);
            if upgrade || !parts.method.is_safe() {
                same_origin(&parts.headers, upgrade)?;
            }
            Token::from_client(cookie.value()).ok_or(Error::Unauthenticated)?
        };
        let user = app.caller(&session).await?;
        Ok(Self { user, session })
    }
}

/// Where a request came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source(pub(super) std::net::IpAddr);

impl<S: Send + Sync> FromRequestParts<S> for Source {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let info = ConnectInfo::<SocketAddr>::from_request_parts(parts, state).await;
        info.map(|ConnectInfo(address)| Self(address.ip())).map_err(|error| Error::Internal(error.into()))
    }
}

/// Proof that a request without a session does not come from somebody else's page.
#[derive(Debug, Clone, Copy)]
pub(super) struct SameOrigin;

impl<S: Send + Sync> FromRequestParts<S> for SameOrigin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        debug_assert!(parts.method != Method::GET);
        same_origin(&parts.headers, false).map(|()| Self)
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

/// Whether the page that asks is our own: its origin is the host that it asks.
fn same_origin(headers: &HeaderMap, required: bool) -> Result<(), Error> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(origin) = text(header::ORIGIN) {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        return if authority.is_some() && authority == text(header::HOST) {
            Ok(())
        } else {
            Err(Error::CrossSite)
        };
    }
    match headers.get("sec-fetch-site").map(http::HeaderValue::as_bytes) {
        Some(b"same-origin" | b"none") | None if !required => Ok(()),
        Some(_) | None => Err(Error::CrossSite),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&'static str, &'static str)], required: bool) -> bool {
        let headers = pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect::<HeaderMap>();
        same_origin(&headers, required).is_ok()
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
