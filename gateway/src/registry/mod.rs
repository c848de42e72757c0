//! The site's registry, as the gateway asks it on behalf of people. Who asks, and whether they may, is not known here:
//! `app/registry.rs` decides before anything is sent.
//!
//! Bodies pass through in pieces, both ways, at the pace of their receiver. What the registry answers is passed on as
//! it is, but for where it says that it is, and what it says about this site's own login.

pub(crate) mod manifest;
pub(crate) mod path;

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderMap, HeaderName, Method, StatusCode, header};

use self::manifest::Manifest;
use crate::{config::Config, listen::tls};

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The longest silence of a registry, or of whoever sends to it, that is still believed to be at work.
const SILENCE_LIMIT: Duration = Duration::from_mins(2);
/// How long the registry may take to say that it is there.
const CHECK_LIMIT: Duration = Duration::from_secs(3);
/// How often it is looked whether an upload moves.
const LOOK: Duration = Duration::from_secs(5);
/// The largest manifest: what registries and clients have agreed on.
pub(crate) const MANIFEST_MAX: usize = 4 << 20;

const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
const UPLOAD: HeaderName = HeaderName::from_static("docker-upload-uuid");
/// What of a request the registry has to know, and of an answer the client.
const THERE: [HeaderName; 6] = [
    header::ACCEPT,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::IF_NONE_MATCH,
    header::RANGE,
];
const BACK: [HeaderName; 8] = [
    header::ACCEPT_RANGES,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::ETAG,
    header::RANGE,
    DIGEST,
    UPLOAD,
];

/// The way to the site's registry.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Scheme, host and port.
    base: String,
    /// A name and the file with the password, which is read each time: passwords change.
    login: Option<(String, PathBuf)>,
    clients: OnceLock<Clients>,
    /// What was wrong with it when it was last looked at.
    trouble: RwLock<Option<String>>,
}

#[derive(Debug)]
struct Clients {
    asking: reqwest::Client,
    /// An upload may take as long as it takes, as long as it moves.
    sending: reqwest::Client,
}

/// What is asked of a registry.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Below `/v2/`.
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
}

/// What it answers, as it is to be passed on.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: reqwest::Response,
}

/// Why it has not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("this site's registry does not answer")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("this site's registry does not accept the gateway's login")]
    Login,
    #[error("the gateway cannot read the password of this site's registry")]
    Password(#[source] std::io::Error),
    #[error("nothing came for {} s", SILENCE_LIMIT.as_secs())]
    Silent,
    #[error("this site's registry does not answer as a registry does: {0}")]
    Odd(&'static str),
}

impl Ask {
    pub(crate) fn new(method: Method, path: String) -> Self {
        Self { method, path, query: None, headers: HeaderMap::new() }
    }

    /// With those of a client's headers that matter.
    pub(crate) fn with_headers_of(mut self, headers: &HeaderMap) -> Self {
        copy(&THERE, headers, &mut self.headers);
        self
    }
}

impl Answer {
    pub(crate) fn into_body(self) -> impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static {
        self.body.bytes_stream()
    }

    /// The digest that the registry gives to what was pushed.
    pub(crate) fn digest(&self) -> Option<&str> {
        self.headers.get(DIGEST)?.to_str().ok()
    }

    async fn into_bytes(self, limit: usize) -> Result<Bytes, NoAnswer> {
        let mut pieces = std::pin::pin!(self.into_body());
        let mut all = Vec::new();
        while let Some(piece) = pieces.next().await {
            all.extend_from_slice(&piece.map_err(|error| NoAnswer::Unreachable(error.into()))?);
            if all.len() > limit {
                return Err(NoAnswer::Odd("a manifest is too long"));
            }
        }
        Ok(all.into())
    }
}

impl Registry {
    pub(crate) fn new(config: &Config) -> Option<Self> {
        let address = config.registry.as_deref()?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_matches(['[', ']']);
        let is_here = host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let scheme = if is_here { "http" } else { "https" };
        let login = config.registry_login.clone();
        let base = format!("{scheme}://{address}");
        Some(Self { base, login, clients: OnceLock::new(), trouble: RwLock::default() })
    }

    /// Whether it is there and lets the gateway in.
    pub(crate) async fn check(&self) -> Result<(), NoAnswer> {
        let asked = self.ask(Ask::new(Method::GET, String::new()));
        let asked = tokio::time::timeout(CHECK_LIMIT, asked).await;
        let answer = asked.map_err(|late| NoAnswer::Unreachable(late.into()))??;
        if answer.status.is_success() {
            Ok(())
        } else {
            Err(NoAnswer::Odd("it refuses to say that it is one"))
        }
    }

    /// Looks how it is, for [`Self::trouble`].
    pub(crate) async fn look(&self) {
        let found = self.check().await.err();
        let trouble = found.as_ref().map(ToString::to_string);
        let mut known = self.trouble.write().unwrap_or_else(PoisonError::into_inner);
        if *known != trouble {
            if let Some(error) = &found {
                tracing::warn!(error = crate::error::chain(error), "the registry is unwell");
            } else {
                tracing::info!("the registry is well again");
            }
            *known = trouble;
        }
    }

    /// What is wrong with it, as far as is known: nobody waits for it.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks without sending anything.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Answer, NoAnswer> {
        let request = self.request(|clients| &clients.asking, ask).await?;
        self.answer(request.send().await)
    }

    /// Asks with a body that comes in pieces.
    pub(crate) async fn send<S, E>(&self, ask: Ask, body: S) -> Result<Answer, NoAnswer>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let begun = Instant::now();
        let moved = Arc::new(AtomicU64::new(0));
        let note = Arc::clone(&moved);
        let body = body.inspect(move |_| note.store(millis(begun), Ordering::Relaxed));
        let request = self.request(|clients| &clients.sending, ask).await?;
        let sending = request.body(reqwest::Body::wrap_stream(body)).send();
        let silent = async {
            let limit = u64::try_from(SILENCE_LIMIT.as_millis()).unwrap_or(u64::MAX);
            while millis(begun).saturating_sub(moved.load(Ordering::Relaxed)) < limit {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            answer = sending => self.answer(answer),
            () = silent => Err(NoAnswer::Silent),
        }
    }

    /// A manifest by its digest; `None` if it is not there.
    pub(crate) async fn manifest(
        &self,
        repository: &str,
        digest: &str,
    ) -> Result<Option<Manifest>, NoAnswer> {
        let answer = self.ask_manifest(repository, digest).await?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            _ => return Err(NoAnswer::Odd("it does not give a manifest")),
        }
        let bytes = answer.into_bytes(MANIFEST_MAX).await?;
        Manifest::read(&bytes).map(Some).map_err(|_| NoAnswer::Odd("a manifest cannot be read"))
    }

    /// How large a blob is.
    pub(crate) async fn blob_bytes(&self, repository: &str, digest: &str) -> Result<u64, NoAnswer> {
        let answer = self.ask(Ask::new(Method::HEAD, format!("{repository}/blobs/{digest}"))).await?;
        let length = answer.headers.get(header::CONTENT_LENGTH).filter(|_| answer.status.is_success());
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        length.ok_or(NoAnswer::Odd("it does not say how large a blob is"))
    }

    /// Takes a blob out of a repository; of one that is gone, or from a registry that deletes nothing, too.
    pub(crate) async fn forget_blob(&self, repository: &str, digest: &str) -> Result<(), NoAnswer> {
        self.ask(Ask::new(Method::DELETE, format!("{repository}/blobs/{digest}"))).await.map(drop)
    }

    /// Gives a repository what another has: a manifest by its digest, under that tag there. No byte of a blob is moved.
    pub(crate) async fn copy(&self, from: &str, to: &str, digest: &str, tag: &str) -> Result<(), NoAnswer> {
        let (kind, bytes) = self.whole_manifest(from, digest).await?;
        match Manifest::read(&bytes).map_err(|_| NoAnswer::Odd("a manifest cannot be read"))? {
            Manifest::Image { blobs } => self.take_over(from, to, blobs).await?,
            Manifest::Index { manifests } => {
                for child in manifests {
                    let (kind, bytes) = self.whole_manifest(from, &child).await?;
                    if let Ok(Manifest::Image { blobs }) = Manifest::read(&bytes) {
                        self.take_over(from, to, blobs).await?;
                    }
                    self.put_manifest(to, &child, kind, bytes).await?;
                }
            }
        }
        self.put_manifest(to, tag, kind, bytes).await
    }

    async fn take_over(&self, from: &str, to: &str, blobs: Vec<manifest::Blob>) -> Result<(), NoAnswer> {
        for blob in blobs {
            let mut ask = Ask::new(Method::POST, format!("{to}/blobs/uploads/"));
            ask.query = Some(format!("mount={}&from={from}", blob.digest));
            ask.headers.insert(header::CONTENT_LENGTH, 0.into());
            if self.ask(ask).await?.status != StatusCode::CREATED {
                return Err(NoAnswer::Odd("it does not let one repository take over a blob from another"));
            }
        }
        Ok(())
    }

    async fn put_manifest(
        &self,
        repository: &str,
        place: &str,
        kind: http::HeaderValue,
        bytes: Bytes,
    ) -> Result<(), NoAnswer> {
        let mut ask = Ask::new(Method::PUT, format!("{repository}/manifests/{place}"));
        ask.headers.insert(header::CONTENT_TYPE, kind);
        let piece = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(bytes)]);
        let answer = self.send(ask, piece).await?;
        if answer.status.is_success() { Ok(()) } else { Err(NoAnswer::Odd("it does not take a manifest")) }
    }

    async fn whole_manifest(
        &self,
        repository: &str,
        digest: &str,
    ) -> Result<(http::HeaderValue, Bytes), NoAnswer> {
        let answer = self.ask_manifest(repository, digest).await?;
        let kind = answer.headers.get(header::CONTENT_TYPE).cloned();
        let kind = kind.filter(|_| answer.status == StatusCode::OK);
        let kind = kind.ok_or(NoAnswer::Odd("it does not give a manifest"))?;
        Ok((kind, answer.into_bytes(MANIFEST_MAX).await?))
    }

    async fn ask_manifest(&self, repository: &str, digest: &str) -> Result<Answer, NoAnswer> {
        let mut ask = Ask::new(Method::GET, format!("{repository}/manifests/{digest}"));
        for kind in manifest::KINDS {
            ask.headers.append(header::ACCEPT, http::HeaderValue::from_static(kind));
        }
        self.ask(ask).await
    }

    async fn request(
        &self,
        which: impl Fn(&Clients) -> &reqwest::Client,
        ask: Ask,
    ) -> Result<reqwest::RequestBuilder, NoAnswer> {
        let query = ask.query.map(|query| format!("?{query}")).unwrap_or_default();
        let url = format!("{}/v2/{}{query}", self.base, ask.path);
        let request = which(self.clients()?).request(ask.method, url).headers(ask.headers);
        let Some((user, file)) = &self.login else { return Ok(request) };
        let password = tokio::fs::read_to_string(file).await.map_err(NoAnswer::Password)?;
        Ok(request.basic_auth(user, Some(password.trim_end())))
    }

    fn answer(&self, answer: reqwest::Result<reqwest::Response>) -> Result<Answer, NoAnswer> {
        let body = answer.map_err(|error| NoAnswer::Unreachable(error.into()))?;
        let status = body.status();
        if status == StatusCode::UNAUTHORIZED {
            return Err(NoAnswer::Login);
        }
        let mut headers = HeaderMap::new();
        copy(&BACK, body.headers(), &mut headers);
        if let Some(location) = body.headers().get(header::LOCATION) {
            let here = location.to_str().ok().and_then(|location| self.below(location));
            let here = here.ok_or(NoAnswer::Odd("it leads elsewhere"))?;
            headers.insert(header::LOCATION, here);
        }
        Ok(Answer { status, headers, body })
    }

    /// A place of the registry as it is called behind the gateway.
    fn below(&self, location: &str) -> Option<http::HeaderValue> {
        let path = location.strip_prefix(&self.base).unwrap_or(location);
        (path.starts_with("/v2/")).then(|| path.parse().ok()).flatten()
    }

    fn clients(&self) -> Result<&Clients, NoAnswer> {
        if let Some(clients) = self.clients.get() {
            return Ok(clients);
        }
        let unreachable = |error: reqwest::Error| NoAnswer::Unreachable(error.into());
        let tls = tls::client().map_err(|error| NoAnswer::Unreachable(error.into()))?;
        let builder = || {
            reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .connect_timeout(CONNECT_LIMIT)
                .user_agent(concat!("berth/", env!("CARGO_PKG_VERSION")))
                .no_proxy()
        };
        // Registries that keep blobs elsewhere send who asks for one there; the gateway follows for its clients.
        let asking = builder().read_timeout(SILENCE_LIMIT).build().map_err(unreachable)?;
        let sending = builder().redirect(reqwest::redirect::Policy::none()).build().map_err(unreachable)?;
        Ok(self.clients.get_or_init(|| Clients { asking, sending }))
    }
}

fn copy(names: &[HeaderName], from: &HeaderMap, to: &mut HeaderMap) {
    for name in names {
        for value in from.get_all(name) {
            to.append(name, value.clone());
        }
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
