//! Who a request to an app comes from: the cookie of that app's address, and whether the page that asks may.
//!
//! A page makes many requests, so what a cookie opens is remembered for a moment. It is looked up again when that is
//! over, and at once after anybody may have lost a right.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gateway_api::Status;
use http::{HeaderMap, HeaderName, Method, header};

use super::{
    SEC_FETCH_MODE, SEC_FETCH_SITE,
    address::{Addresses, AppAddress},
    headers::{self, COOKIE, PLAIN_COOKIE},
};
use crate::{
    app::{APP_SESSION_LASTS, App},
    auth::token::{Token, TokenHash},
    error::Error,
    store::AppSession,
};

/// How long what was looked up is believed.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// Sessions that are remembered; past this all are forgotten.
const REMEMBERED_MAX: usize = 20_000;

/// What was looked up a moment ago.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    remembered: Mutex<HashMap<TokenHash, Remembered>>,
}

#[derive(Debug, Clone)]
struct Remembered {
    session: Arc<AppSession>,
    at: Instant,
    losses: u64,
}

/// A visitor who has shown a cookie for this address.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    pub(super) session: Arc<AppSession>,
    pub(super) key: TokenHash,
}

impl Sessions {
    /// Who sent these headers, if their cookie opens the app at `address`.
    pub(super) async fn visitor(
        &self,
        app: &App,
        address: &AppAddress,
        headers: &HeaderMap,
    ) -> Result<Option<Visitor>, Error> {
        let name = cookie_name(app.addresses()?, app.config.dangerous_plain_http);
        // Another page below the same domain may have put one before ours.
        for value in headers::cookies(headers, name).take(4) {
            let Some(token) = Token::from_client(value).filter(|token| !token.is_for_api()) else { continue };
            let key = token.hash();
            let Some(session) = self.session(app, key).await? else { continue };
            if address.is_of(session.app, &session.instance) && opens_still(&session) {
                return Ok(Some(Visitor { session, key }));
            }
        }
        Ok(None)
    }

    async fn session(&self, app: &App, key: TokenHash) -> Result<Option<Arc<AppSession>>, Error> {
        let losses = app.live.losses();
        {
            let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = remembered.get(&key)
                && known.losses == losses
                && known.at.elapsed() < BELIEVED_FOR
            {
                return Ok(Some(Arc::clone(&known.session)));
            }
        }
        let at = Instant::now();
        let found = Box::pin(app.store.app_session(&key)).await?.map(Arc::new);
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        match &found {
            Some(session) => {
                remembered.insert(key, Remembered { session: Arc::clone(session), at, losses });
            }
            None => {
                remembered.remove(&key);
            }
        }
        Ok(found)
    }

    /// Something about an instance was changed here: the next request sees it.
    pub(super) fn forget(&self, key: &TokenHash) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// An instance that is going has no visitors any more.
fn opens_still(session: &AppSession) -> bool {
    !matches!(session.instance.status, Status::Deleting { .. })
}

/// The cookie that signs a browser in at `address`.
pub(super) fn set_cookie(app: &App, addresses: &Addresses, address: &AppAddress, token: &Token) -> String {
    let plain = app.config.dangerous_plain_http;
    let name = cookie_name(addresses, plain);
    let path = addresses.prefix(address);
    let lasts = APP_SESSION_LASTS.as_secs();
    // The console shows apps in frames, and is another site: only a partitioned cookie comes along there.
    let rest = if plain { "SameSite=Lax" } else { "Secure; SameSite=None; Partitioned" };
    format!("{name}={}; Path={path}; Max-Age={lasts}; HttpOnly; {rest}", token.reveal())
}

fn cookie_name(addresses: &Addresses, plain: bool) -> &'static str {
    if plain || addresses.by_path() { PLAIN_COOKIE } else { COOKIE }
}

/// Whether a request that carries the cookie was made by a page of the app itself, or is a mere visit.
///
/// Apps of one site are below one domain, so the cookie comes along when a page of one asks another.
pub(super) fn may_ask(method: &Method, headers: &HeaderMap, is_upgrade: bool, secure: bool) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let own = text(header::ORIGIN).map(|origin| {
        let authority = origin.strip_prefix(if secure { "https://" } else { "http://" });
        authority.is_some() && authority == text(header::HOST)
    });
    if is_upgrade {
        return own == Some(true);
    }
    let site = text(SEC_FETCH_SITE);
    if method.is_safe() {
        // One from elsewhere without the app's own page at the top has no cookie: it is partitioned.
        let visit = text(SEC_FETCH_MODE) == Some("navigate");
        return visit || own == Some(true) || site != Some("same-site");
    }
    own.unwrap_or(matches!(site, None | Some("same-origin" | "none")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &Method, pairs: &[(&'static str, &'static str)], is_upgrade: bool) -> bool {
        let mut headers: HeaderMap =
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        headers.insert(header::HOST, "lab--a--b.localhost:8080".parse().unwrap());
        may_ask(method, &headers, is_upgrade, false)
    }

    #[test]
    fn only_the_apps_own_pages_act_on_it() {
        let own = ("origin", "http://lab--a--b.localhost:8080");
        let others = [
            "http://lab--x--y.localhost:8080",
            "http://localhost:8080",
            "http://lab--a--b.localhost",
            "https://lab--a--b.localhost:8080",
            "null",
            "",
            "http://lab--a--b.localhost:8080.evil.example",
            "http://evil.example/lab--a--b.localhost:8080",
            "HTTP://LAB--A--B.LOCALHOST:8080",
            "file://lab--a--b.localhost:8080",
        ];
        assert!(check(&Method::GET, &[own], true));
        assert!(!check(&Method::GET, &[], true), "a browser always says its origin");
        assert!(check(&Method::POST, &[own], false));
        assert!(check(&Method::POST, &[], false), "a program");
        assert!(check(&Method::POST, &[("sec-fetch-site", "same-origin")], false));
        for site in ["same-site", "cross-site"] {
            assert!(!check(&Method::POST, &[("sec-fetch-site", site)], false));
        }
        for other in others {
            assert!(!check(&Method::GET, &[("origin", other)], true), "{other}");
            assert!(!check(&Method::POST, &[("origin", other)], false), "{other}");
        }
        assert!(check(
            &Method::GET,
            &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "navigate")],
            false
        ));
        assert!(!check(
            &Method::GET,
            &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")],
            false
        ));
        assert!(check(&Method::GET, &[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")], false));
    }
}
