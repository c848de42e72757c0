//! The way of a browser into an instance: pages and WebSockets of its apps, each at an address of its own.
//!
//! A request is found by its raw host or path (`address`), its cookie is looked up (`session`), what is ours is taken
//! out of it (`headers`), and it goes to the app over a connection that the instance's agent dialled (`upstream`).
//! After an upgrade both connections are bytes (`relay`). Where there is no app to ask, a page says why (`page`).
//!
//! What few requests need is in a box of its own, and what all need is in one place and lent: the future of every request
//! is as large as the largest of what it may wait for, and each that has an argument of its own has room for it twice.
//!
//! Nothing here knows axum, decides who may open what, or asks an app anything that its visitor did not ask.

pub(crate) mod address;
mod answer;
mod door;
mod headers;
#[cfg(test)]
mod headers_tests;
mod lanes;
mod own;
mod page;
mod relay;
mod session;
mod standing;
mod upstream;

use std::{
    borrow::Cow,
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gateway_api::words::Language;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use self::answer::AnswerBody;
use self::{
    address::{Addresses, AppAddress, Host},
    lanes::Lanes,
    page::{Place, View, language_of},
    session::{Sessions, Visitor},
    standing::Known,
    upstream::{NoAnswer, Upstreams},
};
use crate::{app::App, error::Error, listen::RequestBody, metrics};

const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// An answer that takes longer is worth watching for whether its visitor may still see it.
const SOON: Duration = Duration::from_secs(2);
/// Hosts that a thread remembers; past this it forgets them all.
const HOSTS_MAX: usize = 1000;
/// The longest of them, in bytes: as long as a host name can be, with a port.
const HOST_MAX: usize = 260;

/// All that is needed to answer for apps. One per process.
#[derive(Debug)]
pub(crate) struct Proxy {
    app: Arc<App>,
    sessions: Sessions,
    upstreams: Arc<Upstreams>,
    known: Known,
    /// The hosts that requests were for, as they were written.
    hosts: Lanes<Mutex<HashMap<Box<str>, Arc<AppAddress>>>>,
    /// Told every [`SOON`]. A timer for each request would be set and taken back again for nothing.
    moments: Arc<Lanes<Notify>>,
    /// Who may show an app in a frame: the app itself and the console.
    frame_ancestors: HeaderValue,
}

/// A request on its way, with what was found out about it.
#[derive(Debug)]
struct Visit {
    address: Arc<AppAddress>,
    /// The path that all pages of the app share; begins and ends with `/`.
    prefix: Cow<'static, str>,
    uri: Uri,
    /// How much of the path only says which app it is.
    skip: usize,
    language: Language,
    /// A person looks at the answer.
    wants_page: bool,
    from: SocketAddr,
}

type Answer = Response<AnswerBody>;

impl Proxy {
    pub(crate) fn new(app: &Arc<App>) -> Arc<Self> {
        let consoles = app.addresses().map(Addresses::consoles).unwrap_or_default();
        let policy = HeaderValue::from_str(&format!("frame-ancestors 'self' {consoles}"));
        let upstreams = Arc::new(Upstreams::default());
        let (tidied, tasks) = (Arc::clone(&upstreams), app.tasks.clone());
        app.tasks.spawn("app connections", async move { tidied.tidy(&tasks).await });
        let moments = Arc::new(Lanes::default());
        app.tasks.spawn("moments of apps", tell_moments(Arc::clone(&moments), app.tasks.stopping()));
        Arc::new(Self {
            app: Arc::clone(app),
            sessions: Sessions::default(),
            upstreams,
            known: Known::default(),
            hosts: Lanes::default(),
            moments,
            frame_ancestors: policy.unwrap_or(HeaderValue::from_static("frame-ancestors 'self'")),
        })
    }

    /// What the listener of the console was asked for.
    pub(crate) fn host<B>(&self, request: &Request<B>) -> Host {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let (Ok(addresses), Some(host)) = (self.app.addresses(), host) else { return Host::Console };
        let mut hosts = self.hosts.own().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = hosts.get(host) {
            return Host::App(Arc::clone(address));
        }
        let found = addresses.host(host);
        if let Host::App(address) = &found
            && host.len() <= HOST_MAX
        {
            if hosts.len() >= HOSTS_MAX {
                hosts.clear();
            }
            hosts.insert(host.into(), Arc::clone(address));
        }
        found
    }

    /// Answers for an app that has a host of its own; `None` is a host without an app.
    pub(crate) fn by_host(
        self: Arc<Self>,
        address: Option<Arc<AppAddress>>,
        request: Request<RequestBody>,
        from: SocketAddr,
    ) -> impl Future<Output = Answer> + Send {
        self.logged(address.map(|address| (address, 0)), request, from)
    }

    /// Answers at the listener that all apps share.
    pub(crate) fn by_path(
        self: Arc<Self>,
        request: Request<RequestBody>,
        from: SocketAddr,
    ) -> impl Future<Output = Answer> + Send {
        let found = Addresses::path(request.uri().path());
        self.logged(found.map(|(address, skip)| (Arc::new(address), skip)), request, from)
    }

    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    fn logged(
        self: Arc<Self>,
        found: Option<(Arc<AppAddress>, usize)>,
        mut request: Request<RequestBody>,
        from: SocketAddr,
    ) -> impl Future<Output = Answer> + Send {
        async move {
            let begun = Instant::now();
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let answer = self.visit(found.as_ref(), &mut request, from).await;
            let took = begun.elapsed();
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            // Never the query: programs put secrets into it.
            let (status, path) = (answer.status(), uri.path());
            let label = found.as_ref().map(|(address, _)| tracing::field::display(address));
            let name = method.as_str();
            tracing::info!(target: "access", app = label, method = name, path, status = status.as_u16(), micros, from = text_of(from.ip()));
            metrics::answered(&method, Some("app"), status, took);
            answer
        }
    }

    async fn visit(
        self: &Arc<Self>,
        found: Option<&(Arc<AppAddress>, usize)>,
        request: &mut Request<RequestBody>,
        from: SocketAddr,
    ) -> Answer {
        let language = language_of(request.uri().query(), request.headers());
        let wants_page = wants_page(request.method(), request.headers());
        let Ok(addresses) = self.app.addresses() else { return answer::text(View::trouble(language).line()) };
        let Some((address, skip)) = found else {
            let view = View::no_app(language, &addresses.console);
            let place = Place { called: "Berth", prefix: "/", consoles: &addresses.consoles() };
            return answer::text(if wants_page { view.page(language, &place) } else { view.line() });
        };
        let (address, skip, uri) = (Arc::clone(address), *skip, request.uri().clone());
        let mut visit =
            Visit { prefix: addresses.prefix(&address), address, uri, skip, language, wants_page, from };
        match self.answer(&mut visit, addresses, request).await {
            Ok(answer) => answer,
            Err(Error::TooManyOpen { limit, .. }) => self.say(&visit, &View::too_many(visit.language, limit)),
            Err(error) => {
                tracing::error!(error = crate::error::chain(&error), "a request to an app failed");
                self.say(&visit, &View::trouble(visit.language))
            }
        }
    }

    async fn answer(
        self: &Arc<Self>,
        visit: &mut Visit,
        addresses: &Addresses,
        request: &mut Request<RequestBody>,
    ) -> Result<Answer, Error> {
        let path = visit.uri.path();
        if !path.starts_with('/') || request.method() == Method::TRACE {
            return Ok(self.say(visit, &View::malformed(visit.language)));
        }
        let rest = &path[visit.skip..];
        if rest.is_empty() {
            return Ok(answer::redirect(
                StatusCode::PERMANENT_REDIRECT,
                &with_query(&visit.prefix, &visit.uri),
            ));
        }
        if rest == "/.berth/enter" {
            return Box::pin(self.enter(visit, addresses, request)).await;
        }
        let Some(visitor) = self.sessions.visitor(&self.app, &visit.address, request.headers()).await? else {
            return Ok(self.stranger(visit, addresses, request.headers()));
        };
        visit.speak(visitor.session.language);
        let is_upgrade =
            request.version() == Version::HTTP_11 && headers::upgrade_of(request.headers()).is_some();
        if !session::may_ask(request.method(), request.headers(), is_upgrade, addresses.is_secure()) {
            return Ok(self.say(visit, &View::cross_site(visit.language)));
        }
        match &visit.uri.path()[visit.skip..] {
            "/.berth/status" => Box::pin(self.status(visit, &visitor)).await,
            "/.berth/act" => Box::pin(self.act(visit, &visitor, std::mem::take(request))).await,
            rest if rest == "/.berth" || rest.starts_with("/.berth/") => {
                Ok(self.say(visit, &View::no_app(visit.language, &addresses.console)))
            }
            _ => self.open(visit, &visitor, addresses, request).await,
        }
    }

    /// Shows the app, or why it cannot be shown.
    async fn open(
        self: &Arc<Self>,
        visit: &Visit,
        visitor: &Visitor,
        addresses: &Addresses,
        request: &mut Request<RequestBody>,
    ) -> Result<Answer, Error> {
        let port = match self.port(visit, visitor).await? {
            Ok(port) => port,
            Err(view) => return Ok(self.say(visit, &view)),
        };
        match self.forward(visit, visitor, addresses, port, request).await? {
            Ok(answer) => Ok(answer),
            Err(NoAnswer::Ended) => {
                Ok(self.say(visit, &View::sign_in(visit.language, visit.entrance(addresses))))
            }
            Err(no_answer) => {
                let view = Box::pin(self.why_not(visit.language, visitor, &no_answer)).await?;
                Ok(self.say(visit, &view))
            }
        }
    }

    /// One who is not signed in here. The same whether there is such an app or not.
    fn stranger(&self, visit: &Visit, addresses: &Addresses, headers: &HeaderMap) -> Answer {
        let link = visit.entrance(addresses);
        let is_frame = headers.get(SEC_FETCH_DEST).is_some_and(|to| to == "iframe" || to == "frame");
        if visit.wants_page && !is_frame {
            return answer::redirect(StatusCode::SEE_OTHER, &link);
        }
        self.say(visit, &View::sign_in(visit.language, link))
    }

    /// A page of ours, or a line for a program.
    fn say(&self, visit: &Visit, view: &View) -> Answer {
        if visit.wants_page { self.page(visit, view) } else { answer::text(view.line()) }
    }

    fn page(&self, visit: &Visit, view: &View) -> Answer {
        let consoles = self.app.addresses().map(Addresses::consoles).unwrap_or_default();
        let called = visit.address.label();
        let place = Place { called: &called, prefix: &visit.prefix, consoles: &consoles };
        answer::text(view.page(visit.language, &place))
    }
}

impl Visit {
    /// What a user has chosen is stronger than what the browser prefers.
    fn speak(&mut self, chosen: Option<Language>) {
        self.language = chosen.unwrap_or(self.language);
    }

    /// Where the console signs a browser in to this very page.
    fn entrance(&self, addresses: &Addresses) -> String {
        const NEXT_MAX: usize = 2048;
        let next = self.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let next = next.get(self.skip..).filter(|next| next.starts_with('/') && next.len() <= NEXT_MAX);
        own::entrance(addresses, &self.address, next.unwrap_or("/"))
    }
}

async fn tell_moments(moments: Arc<Lanes<Notify>>, stopping: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SOON) => moments.iter().for_each(Notify::notify_waiters),
            () = stopping.cancelled() => return,
        }
    }
}

/// An address as it is written. Each request says it twice, and what the library does with room and signs is most of what
/// it takes there.
fn text_of(address: IpAddr) -> String {
    let IpAddr::V4(address) = address else { return address.to_string() };
    let mut text = String::with_capacity("255.255.255.255".len());
    for (nth, octet) in address.octets().into_iter().enumerate() {
        if nth > 0 {
            text.push('.');
        }
        for (from, unit) in [(100, 100), (10, 10), (0, 1)] {
            if octet >= from {
                text.push(char::from(b'0' + octet / unit % 10));
            }
        }
    }
    text
}

fn wants_page(method: &Method, headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let reads = method == Method::GET || method == Method::HEAD;
    reads
        && text(SEC_FETCH_MODE).map_or_else(
            || text(header::ACCEPT).is_some_and(|accept| accept.contains("text/html")),
            |mode| mode == "navigate",
        )
}

fn with_query(path: &str, uri: &Uri) -> String {
    uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
}

fn escaped_for_query(text: &str) -> String {
    use std::fmt::Write as _;
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_everywhere() {
        for text in
            ["0.0.0.0", "127.0.0.1", "10.20.30.40", "255.100.99.9", "::1", "2001:db8::7", "::ffff:10.0.0.1"]
        {
            assert_eq!(text_of(text.parse().unwrap()), text);
        }
    }
}
