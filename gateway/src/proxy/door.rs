//! A request on its way to an app, and the app's answer on its way back.

use std::{
    io,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use envd_api::agent::Passed;
use gateway_api::AppName;
use http::{Request, Response, StatusCode, Uri, Version, header};
use hyper::{
    body::Incoming,
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;

use super::{
    Answer, Proxy, Visit,
    address::Addresses,
    answer::{self, AnswerBody, Watched},
    headers::{self, Bounds, Facts, sanitize_upstream_request, sanitize_upstream_response},
    page::View,
    relay::Relay,
    session::Visitor,
    upstream::{Lent, NoAnswer, Target},
};
use crate::{
    auth::{live::Kind, token::Token},
    error::Error,
    listen::{Raw, RequestBody},
};

/// How long an app may take over its answer.
const ANSWER_LIMIT: Duration = Duration::from_hours(1);
/// How long a visitor's program may pause within what it sends.
const PAUSE_LIMIT: Duration = Duration::from_mins(10);
/// What may be tokens in one value; one with more is none that any program would send, and goes no further.
const TOKENS_MAX: usize = 8;

impl Proxy {
    /// Sends a request on and gives the answer back.
    pub(super) async fn forward(
        self: &Arc<Self>,
        visit: &Visit,
        visitor: &Visitor,
        addresses: &Addresses,
        port: u16,
        request: &mut Request<RequestBody>,
    ) -> Result<Result<Answer, NoAnswer>, Error> {
        let is_upgrade =
            headers::upgrade_of(request.headers()).is_some() && request.version() == Version::HTTP_11;
        let agreement = headers::agreement(request.headers()).filter(|_| is_upgrade);
        if is_upgrade && agreement.is_none() {
            return Ok(Ok(self.say(visit, &View::malformed(visit.language))));
        }
        let from_browser = is_upgrade.then(|| hyper::upgrade::on(&mut *request));
        request.body_mut().may_pause_for(PAUSE_LIMIT);
        request.body_mut().tame_trailers(headers::sanitize_request_trailers);
        let stripped = (addresses.by_path() && strips_prefix(visit.address.app))
            .then(|| visit.prefix.trim_end_matches('/'));
        let facts = Facts {
            from: visit.from.ip(),
            secure: addresses.is_secure(),
            prefix: stripped,
            keys: &self.values_with_keys(request.headers()).await?,
        };
        if from_browser.is_none() {
            request.headers_mut().remove(header::UPGRADE);
        }
        if is_another(request.uri(), stripped) {
            let Some(uri) = target(request.uri(), stripped) else {
                return Ok(Ok(self.say(visit, &View::malformed(visit.language))));
            };
            *request.uri_mut() = uri;
        }
        if sanitize_upstream_request(request.headers_mut(), &facts).is_err() {
            return Ok(Ok(self.say(visit, &View::malformed(visit.language))));
        }
        *request.version_mut() = Version::HTTP_11;
        request.extensions_mut().clear();
        let (mut response, connection) = match self.send_after(visit, visitor, port, request).await? {
            Ok(answered) => answered,
            Err(no_answer) => return Ok(Err(no_answer)),
        };
        let switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let agrees = agreement.is_some_and(|right| headers::agrees(response.headers(), &right));
        if switched && !agrees {
            let why = if from_browser.is_some() {
                "it did not answer the handshake of the WebSocket"
            } else {
                "it changed the protocol unasked"
            };
            return Ok(Ok(answer::text(View::broken(visit.language, visit.address.app, why).line())));
        }
        let from_app = switched.then(|| hyper::upgrade::on(&mut response));
        sanitize_upstream_response(
            response.headers_mut(),
            &Bounds {
                frame_ancestors: &self.frame_ancestors,
                below: addresses.by_path().then_some(&*visit.prefix),
                plain: self.app.config.dangerous_plain_http,
                is_upgrade: switched,
            },
        );
        if let (Some(from_browser), Some(from_app)) = (from_browser, from_app) {
            self.relay(visitor, from_browser, from_app)?;
            let (mut head, _) = response.into_parts();
            head.extensions.clear();
            return Ok(Ok(Response::from_parts(head, AnswerBody::Text(None))));
        }
        response.extensions_mut().clear();
        Ok(Ok(response
            .map(|body| AnswerBody::App(Watched::new(body, connection, Arc::clone(self), visitor.clone())))))
    }

    /// Sends a request, once more where the app has moved to another port since it was looked at.
    async fn send_after(
        &self,
        visit: &Visit,
        visitor: &Visitor,
        port: u16,
        request: &mut Request<RequestBody>,
    ) -> Result<Result<(Response<Incoming>, Lent), NoAnswer>, Error> {
        let sent = self.send(visitor, port, request).await;
        if let Err(NoAnswer::NothingListens) = &sent
            && let Some(port) = Box::pin(self.moved_from(port, visit.language, visitor)).await?
        {
            return Ok(Box::pin(self.send(visitor, port, request)).await);
        }
        Ok(sent)
    }

    /// Waits for the answer, for as long as the visitor may see it.
    async fn send(
        &self,
        visitor: &Visitor,
        port: u16,
        request: &mut Request<RequestBody>,
    ) -> Result<(Response<Incoming>, Lent), NoAnswer> {
        let (agents, tasks) = (&self.app.agents, &self.app.tasks);
        let instance = &visitor.session.instance;
        let target = Target { user: instance.user_id, instance: instance.id.clone(), port };
        let mut sending = pin!(self.upstreams.send(agents, tasks, target, request));
        tokio::select! {
            biased;
            answered = &mut sending => return answered,
            () = self.moments.own().notified() => {}
        }
        let later = async {
            let open = self.app.live.watch(visitor.key);
            let _used = agents.note_open(instance.id.clone());
            tokio::select! {
                answered = &mut sending => answered,
                () = open.ended() => Err(NoAnswer::Ended),
                () = tokio::time::sleep(ANSWER_LIMIT) => Err(NoAnswer::TooSlow),
            }
        };
        Box::pin(later).await
    }

    /// Copies bytes between browser and app from here on, until one of them or the visitor's key ends.
    fn relay(&self, visitor: &Visitor, from_browser: OnUpgrade, from_app: OnUpgrade) -> Result<(), Error> {
        let open = self.app.live.open_by(visitor.key, visitor.session.instance.user_id, Kind::App)?;
        let used = self.app.agents.note_open(visitor.session.instance.id.clone());
        let tasks = self.app.tasks.clone();
        self.app.tasks.spawn_many(async move {
            // What is there once is not held for as long as the connection is idle.
            let both = Box::pin(async { tokio::try_join!(from_browser, from_app) });
            let Ok((browser, app)) = both.await else { return };
            tasks.unless_stopping(open.during(carry(browser, app))).await;
            drop(used);
        });
        Ok(())
    }

    /// Returns the positions of the `Authorization` values that carry a key of ours. Apps have tokens of their own, of any
    /// shape.
    async fn values_with_keys(&self, headers: &http::HeaderMap) -> Result<Vec<usize>, Error> {
        let mut found = Vec::new();
        for (nth, value) in headers.get_all(header::AUTHORIZATION).iter().enumerate() {
            if Box::pin(self.has_key(value.as_bytes())).await? {
                found.push(nth);
            }
        }
        Ok(found)
    }

    async fn has_key(&self, value: &[u8]) -> Result<bool, Error> {
        let tokens = Token::all_in(value);
        if tokens.len() > TOKENS_MAX || tokens.iter().any(Token::is_for_api) {
            return Ok(true);
        }
        for token in tokens {
            if self.app.store.still_opens(&token.hash()).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Not itself `async`: what is only needed to begin is gone before the long time in which nothing happens.
fn carry(browser: Upgraded, app: Upgraded) -> impl Future<Output = ()> + Send {
    let (browser, from_browser) = Raw::take_back(browser);
    let relayed: Pin<Box<dyn Future<Output = io::Result<()>> + Send>> =
        match app.downcast::<TokioIo<Passed>>() {
            Ok(parts) => Box::pin(Relay::new(browser, parts.io.into_inner(), from_browser, parts.read_buf)),
            Err(app) => Box::pin(Relay::new(browser, TokioIo::new(app), from_browser, bytes::Bytes::new())),
        };
    async move {
        if let Err(error) = relayed.await {
            tracing::debug!(%error, "an upgraded connection broke");
        }
    }
}

/// Whether an app is told its pages without the path that all of them share. The others know it.
fn strips_prefix(app: AppName) -> bool {
    match app {
        AppName::Ide | AppName::Port(_) => true,
        AppName::Lab | AppName::Tensorboard | AppName::Desktop | AppName::Terminal => false,
    }
}

/// Whether an app is asked for something else than what stands in a request.
fn is_another(uri: &Uri, stripped: Option<&str>) -> bool {
    stripped.is_some() || uri.authority().is_some() || uri.path_and_query().is_none()
}

/// The path and query of a request as they came, but for what is stripped.
fn target(uri: &Uri, stripped: Option<&str>) -> Option<Uri> {
    let all = uri.path_and_query()?.as_str();
    all.get(stripped.map_or(0, str::len)..)?.parse::<http::uri::PathAndQuery>().ok().map(Uri::from)
}
