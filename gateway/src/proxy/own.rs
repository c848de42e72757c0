//! What is ours at an app's address: below `/.berth/`, and nowhere else.

use bytes::Bytes;
use gateway_api::{AppName, Status, app::AppAct};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};

use super::{
    Answer, Proxy, Visit,
    address::{Addresses, AppAddress},
    answer, escaped_for_query,
    page::View,
    session::{Visitor, set_cookie},
};
use crate::{
    auth::{Caller, Key, Origin, policy},
    error::Error,
    listen::RequestBody,
};

/// The body of an act: one word.
const BODY_MAX: usize = 1024;

impl Proxy {
    /// Exchanges a ticket for a cookie, and goes on to a page whose address has no ticket in it.
    pub(super) async fn enter(
        &self,
        visit: &mut Visit,
        addresses: &Addresses,
        request: &Request<RequestBody>,
    ) -> Result<Answer, Error> {
        // A browser that only gets ready for a click must not use the ticket up.
        let is_guess =
            request.headers().get("sec-purpose").is_some_and(|why| why.as_bytes().starts_with(b"prefetch"));
        if request.method() != Method::GET || is_guess {
            return Ok(self.say(visit, &View::malformed(visit.language)));
        }
        let query = visit.uri.query().unwrap_or_default();
        let ticket = query.split('&').find_map(|pair| pair.strip_prefix("ticket=")).unwrap_or_default();
        let origin = Origin { source: visit.from.ip(), request_id: String::new() };
        if let Some(entered) = self.app.enter_app(ticket, &visit.address, &origin).await? {
            visit.speak(entered.language);
            let mut path = entered.path;
            if let (AppName::Ide, "/", Some(folder)) = (visit.address.app, path.as_str(), &entered.folder) {
                path = format!("/?folder={}", escaped_for_query(folder));
            }
            let to = format!("{}{path}", visit.prefix.trim_end_matches('/'));
            let mut response = if is_framed_elsewhere(request.headers()) {
                let link = entrance(addresses, &visit.address, &path);
                self.say(visit, &View::framed(visit.language, to, link))
            } else {
                answer::redirect(StatusCode::SEE_OTHER, &to)
            };
            let cookie = set_cookie(&self.app, addresses, &visit.address, &entered.token);
            let cookie = HeaderValue::from_str(&cookie).map_err(|error| Error::Internal(error.into()))?;
            response.headers_mut().insert(header::SET_COOKIE, cookie);
            return Ok(response);
        }
        // Somebody who reloads the page that brought them here is in already.
        if self.sessions.visitor(&self.app, &visit.address, request.headers()).await?.is_some() {
            return Ok(answer::redirect(StatusCode::SEE_OTHER, &visit.prefix));
        }
        let link = entrance(addresses, &visit.address, "/");
        Ok(self.say(visit, &View::used_ticket(visit.language, link)))
    }

    /// What the page says now, for the page itself.
    pub(super) async fn status(&self, visit: &Visit, visitor: &Visitor) -> Result<Answer, Error> {
        // That there is something to say is not a failure of the question.
        let view = self.view(visit.language, visitor).await?;
        Ok(json(&View { code: StatusCode::OK, ..view }))
    }

    /// The button of a page.
    pub(super) async fn act(
        &self,
        visit: &Visit,
        visitor: &Visitor,
        request: Request<RequestBody>,
    ) -> Result<Answer, Error> {
        let is_visit =
            request.headers().get("sec-fetch-mode").is_some_and(|mode| mode.as_bytes() == b"navigate");
        if request.method() != Method::POST {
            return Ok(self.say(visit, &View::malformed(visit.language)));
        }
        let body = Limited::new(request.into_body(), BODY_MAX).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let act = match body.strip_prefix(b"act=") {
            Some(b"start") => AppAct::Start,
            Some(b"install") => AppAct::Install,
            Some(b"stop") => AppAct::Stop,
            Some(_) | None => return Ok(self.say(visit, &View::malformed(visit.language))),
        };
        let session = &visitor.session;
        if matches!(session.instance.status, Status::Running { .. }) {
            if session.app.is_started() {
                let grant = policy::grant_by_app_session(session);
                self.known.forget(&(session.instance.id.clone(), session.app));
                let done = self.app.do_with_app(&grant, session.app, act, session.folder.clone()).await;
                if let Err(error) = done {
                    tracing::info!(%error, "an app could not be changed");
                }
            }
        } else if act == AppAct::Start
            && let Err(error) = self.start_instance(visit, visitor).await
        {
            let view = View::not_started(visit.language, &error, visit.prefix.to_string());
            if view.code.is_server_error() {
                tracing::error!(error = crate::error::chain(&error), "an instance could not be started");
            }
            return Ok(if is_visit { self.page(visit, &view) } else { json(&view) });
        }
        self.sessions.forget(&visitor.key);
        Ok(if is_visit {
            answer::redirect(StatusCode::SEE_OTHER, &visit.prefix)
        } else {
            let mut response = answer::text(Response::new(Bytes::new()));
            *response.status_mut() = StatusCode::ACCEPTED;
            response
        })
    }

    /// Starts the visitor's own instance, as its page in the console would.
    async fn start_instance(&self, visit: &Visit, visitor: &Visitor) -> Result<(), Error> {
        let instance = &visitor.session.instance;
        let Some(user) = self.app.store.user_by_name(&instance.user).await? else { return Ok(()) };
        let origin = Origin { source: visit.from.ip(), request_id: String::new() };
        let caller = Caller { user, key: Key::Session { hash: visitor.key }, origin };
        match self.app.start_instance(&caller, instance.id.as_str(), None).await {
            // It has been started meanwhile, by this button or by another; or it never starts again. The page says which.
            Ok(_) | Err(Error::WrongState { .. } | Error::Forbidden { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Where the console signs a browser in to a page of an app.
pub(super) fn entrance(addresses: &Addresses, address: &AppAddress, next: &str) -> String {
    let (console, label) = (&addresses.console, address.label());
    format!("{console}/enter?host={label}&next={}", escaped_for_query(next))
}

/// In a frame of a page that browsers hold for another site's.
fn is_framed_elsewhere(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|said| said == value);
    is("sec-fetch-dest", "iframe") && is("sec-fetch-site", "cross-site")
}

fn json(view: &View) -> Answer {
    let text = serde_json::to_vec(view).unwrap_or_default();
    let mut response = answer::text(Response::new(Bytes::from(text)));
    *response.status_mut() = view.code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
