//! The site's registry, the only place that names `oci_client`.
//!
//! Every answer that is not a success becomes one of a few errors with what the registry said in it. What may help is
//! tried again a few times; a blob is then sent from its beginning, since registries forget half of one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use oci_client::{
    Client, Reference,
    client::{ClientConfig, ClientProtocol},
    errors::OciDistributionError,
    secrets::RegistryAuth,
};
use tokio::{sync::watch, time::timeout};
use tokio_util::io::ReaderStream;

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

const CONNECT: Duration = Duration::from_secs(5);
/// The longest silence of a registry that is still believed to be at work.
const SILENCE: Duration = Duration::from_mins(1);
const TRIES: u32 = 3;
const REST: Duration = Duration::from_millis(500);
const PIECE: usize = 1 << 20;
/// The most that is kept of what a registry says.
const TEXT_MAX: usize = 500;

/// A registry, and how to speak to it.
#[derive(Clone)]
pub(crate) struct Registry {
    client: Client,
    /// The same without a limit on silence: whoever takes a large blob says nothing until it has all of it.
    pusher: Client,
    http: reqwest::Client,
    settings: Arc<Settings>,
}

/// Where the registry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Host and port.
    pub(crate) address: String,
    /// A name and the file with the password.
    pub(crate) login: Option<(String, PathBuf)>,
}

impl Settings {
    /// The name and the password, where the registry asks for them. The file is read each time: passwords change.
    pub(crate) async fn login(&self) -> Result<Option<(String, String)>, String> {
        let Some((user, file)) = &self.login else { return Ok(None) };
        let password = tokio::fs::read_to_string(file).await.map_err(|error| {
            tracing::error!(file = %file.display(), %error, "the registry's password cannot be read");
            "the password that the site has for it cannot be read".to_owned()
        })?;
        Ok(Some((user.clone(), password.trim_end().to_owned())))
    }
}

/// What a registry said, or did not say.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistryError {
    #[error("the registry `{address}` does not answer: {why}")]
    Unreachable { address: String, why: String },
    #[error("the registry `{address}` refuses: {why}")]
    Refused { address: String, why: String },
    #[error("the registry `{address}` has no room left: {why}")]
    Full { address: String, why: String },
    #[error("the registry `{address}` does not have it: {why}")]
    Missing { address: String, why: String },
    #[error("the registry `{address}` failed: {why}")]
    Failed { address: String, why: String },
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Registry").field("address", &self.settings.address).finish_non_exhaustive()
    }
}

/// Whether an address is of this machine itself: these, and no others, are spoken to without TLS.
pub(crate) fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Registry {
    pub(crate) fn new(settings: Settings) -> Result<Self, RegistryError> {
        let plain = is_loopback(&settings.address);
        let config = |read_timeout| ClientConfig {
            protocol: if plain { ClientProtocol::Http } else { ClientProtocol::Https },
            use_monolithic_push: true,
            connect_timeout: Some(CONNECT),
            read_timeout,
            user_agent: concat!("berth/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        let failed = |why: String| RegistryError::Failed { address: settings.address.clone(), why };
        let client = Client::try_from(config(Some(SILENCE))).map_err(|error| failed(error.to_string()))?;
        let pusher = Client::try_from(config(None)).map_err(|error| failed(error.to_string()))?;
        let http = reqwest::Client::builder().connect_timeout(CONNECT).read_timeout(SILENCE).no_proxy();
        let http = http.build().map_err(|error| failed(error.to_string()))?;
        Ok(Self { client, pusher, http, settings: Arc::new(settings) })
    }

    pub(crate) fn address(&self) -> &str {
        &self.settings.address
    }

    fn named(&self, repository: &str, tag: &str) -> Reference {
        Reference::with_tag(self.settings.address.clone(), repository.to_owned(), tag.to_owned())
    }

    fn by_digest(&self, repository: &str, digest: &str) -> Reference {
        Reference::with_digest(self.settings.address.clone(), repository.to_owned(), digest.to_owned())
    }

    /// Says who we are, where the registry asks for it.
    async fn sign_in(&self) -> Result<RegistryAuth, RegistryError> {
        let login = self.settings.login().await.map_err(|why| self.refused(why))?;
        let auth =
            login.map_or(RegistryAuth::Anonymous, |(user, password)| RegistryAuth::Basic(user, password));
        self.client.store_auth_if_needed(&self.settings.address, &auth).await;
        self.pusher.store_auth_if_needed(&self.settings.address, &auth).await;
        Ok(auth)
    }

    pub(crate) async fn has_blob(&self, repository: &str, digest: &str) -> Result<bool, RegistryError> {
        self.sign_in().await?;
        let reference = self.by_digest(repository, digest);
        self.again(|| self.client.blob_exists(&reference, digest)).await
    }

    /// Takes a blob over from another repository; `false` if it is not there, or the registry does not do that.
    pub(crate) async fn mount(
        &self,
        repository: &str,
        from: &str,
        digest: &str,
    ) -> Result<bool, RegistryError> {
        self.sign_in().await?;
        let (to, from) = (self.by_digest(repository, digest), self.by_digest(from, digest));
        match self.client.mount_blob(&to, &from, digest).await {
            Ok(()) => self.has_blob(repository, digest).await,
            // It was begun as an upload instead.
            Err(OciDistributionError::SpecViolationError(_) | OciDistributionError::ServerError { .. }) => {
                Ok(false)
            }
            Err(error) => {
                let error = self.error(&error);
                if matches!(error, RegistryError::Missing { .. }) { Ok(false) } else { Err(error) }
            }
        }
    }

    /// Sends a file as a blob, telling `progress` what is sent with each piece.
    pub(crate) async fn push_file(
        &self,
        repository: &str,
        file: &Path,
        digest: &str,
        size_bytes: u64,
        progress: impl Fn(u64) + Clone + Send + Sync + 'static,
    ) -> Result<(), RegistryError> {
        self.sign_in().await?;
        let reference = self.by_digest(repository, digest);
        self.again(|| {
            let (progress, reference) = (progress.clone(), &reference);
            async move {
                let opened = tokio::fs::File::open(file).await?;
                progress(0);
                let mut sent = 0;
                let (taken, moved) = watch::channel(());
                let pieces = ReaderStream::with_capacity(opened, PIECE)
                    .inspect_ok(move |piece| {
                        sent += piece.len() as u64;
                        progress(sent);
                        taken.send_replace(());
                    })
                    .map_err(OciDistributionError::from)
                    .boxed();
                tokio::select! {
                    pushed = self.pusher.push_blob_stream(reference, pieces, digest, Some(size_bytes)) => pushed,
                    () = silence(moved) => {
                        Err(OciDistributionError::GenericError(Some("it takes nothing any more".to_owned())))
                    }
                }
            }
        })
        .await
        .map(drop)
    }

    pub(crate) async fn push_bytes(
        &self,
        repository: &str,
        bytes: Bytes,
        digest: &str,
    ) -> Result<(), RegistryError> {
        self.sign_in().await?;
        let reference = self.by_digest(repository, digest);
        self.again(|| self.client.push_blob(&reference, bytes.clone(), digest)).await.map(drop)
    }

    pub(crate) async fn push_manifest(
        &self,
        repository: &str,
        tag: &str,
        manifest: Bytes,
    ) -> Result<(), RegistryError> {
        self.sign_in().await?;
        let reference = self.named(repository, tag);
        let kind = reqwest::header::HeaderValue::from_static(MANIFEST);
        self.again(|| self.client.push_manifest_raw(&reference, manifest.clone(), kind.clone()))
            .await
            .map(drop)
    }

    /// A manifest as the registry has it.
    pub(crate) async fn manifest(&self, repository: &str, digest: &str) -> Result<Bytes, RegistryError> {
        let auth = self.sign_in().await?;
        let reference = self.by_digest(repository, digest);
        let pulled = self.again(|| self.client.pull_manifest_raw(&reference, &auth, &[MANIFEST])).await?;
        Ok(pulled.0)
    }

    /// What a tag means now; `None` if there is no such tag.
    pub(crate) async fn digest(&self, repository: &str, tag: &str) -> Result<Option<String>, RegistryError> {
        let auth = self.sign_in().await?;
        let reference = self.named(repository, tag);
        match self.again(|| self.client.fetch_manifest_digest(&reference, &auth)).await {
            Ok(digest) => Ok(Some(digest)),
            Err(RegistryError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a manifest with all its tags; of one that is gone too.
    pub(crate) async fn remove(&self, repository: &str, digest: &str) -> Result<(), RegistryError> {
        let scheme = if is_loopback(self.address()) { "http" } else { "https" };
        let url = format!("{scheme}://{}/v2/{repository}/manifests/{digest}", self.address());
        let mut request = self.http.delete(url);
        if let RegistryAuth::Basic(user, password) = self.sign_in().await? {
            request = request.basic_auth(user, Some(password));
        }
        let answer = request.send().await.map_err(|error| self.error(&error.into()))?;
        let status = answer.status();
        if status.is_success() || status == reqwest::StatusCode::NOT_FOUND {
            return Ok(());
        }
        if status == reqwest::StatusCode::METHOD_NOT_ALLOWED {
            // Some are set up so. Nobody reaches what no row names; only its room is not given back.
            tracing::warn!(repository, digest, "the registry deletes nothing: it keeps the image");
            return Ok(());
        }
        let said = answer.text().await.unwrap_or_default();
        Err(self.status(status.as_u16(), format!("{status}: {}", bounded(&said))))
    }

    async fn again<T, F>(&self, ask: impl Fn() -> F) -> Result<T, RegistryError>
    where
        F: Future<Output = Result<T, OciDistributionError>>,
    {
        let mut tries = 1;
        loop {
            match ask().await.map_err(|error| self.error(&error)) {
                Err(error @ (RegistryError::Unreachable { .. } | RegistryError::Failed { .. }))
                    if tries < TRIES =>
                {
                    tracing::warn!(%error, tries, "asking the registry again");
                    tokio::time::sleep(REST * tries).await;
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    fn refused(&self, why: String) -> RegistryError {
        RegistryError::Refused { address: self.settings.address.clone(), why }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest are words about what a registry did wrong")]
    fn error(&self, error: &OciDistributionError) -> RegistryError {
        let address = self.settings.address.clone();
        match error {
            OciDistributionError::UnauthorizedError { .. }
            | OciDistributionError::AuthenticationFailure(_) => {
                self.refused("it does not accept this site's login".to_owned())
            }
            OciDistributionError::ServerError { code, message, .. } => {
                self.status(*code, format!("{code}: {}", bounded(message)))
            }
            OciDistributionError::RegistryError { envelope, .. } => {
                let said: Vec<_> = envelope.errors.iter().map(|error| error.message.as_str()).collect();
                let why = bounded(&said.join(", "));
                if why.contains("no space") || why.contains("quota") {
                    RegistryError::Full { address, why }
                } else if why.contains("denied") || why.contains("authentication") {
                    RegistryError::Refused { address, why }
                } else if why.contains("unknown") {
                    RegistryError::Missing { address, why }
                } else {
                    RegistryError::Failed { address, why }
                }
            }
            OciDistributionError::ImageManifestNotFoundError(why) => {
                RegistryError::Missing { address, why: bounded(why) }
            }
            OciDistributionError::RequestError(cause) => match cause.status() {
                Some(status) => self.status(status.as_u16(), status.to_string()),
                None => RegistryError::Unreachable { address, why: chain(cause) },
            },
            OciDistributionError::IoError(cause) => RegistryError::Failed { address, why: chain(cause) },
            _ => RegistryError::Failed { address, why: bounded(&error.to_string()) },
        }
    }

    fn status(&self, code: u16, why: String) -> RegistryError {
        let address = self.settings.address.clone();
        match code {
            401 | 403 | 405 => RegistryError::Refused { address, why },
            404 => RegistryError::Missing { address, why },
            413 | 507 => RegistryError::Full { address, why },
            _ if why.contains("no space left") => RegistryError::Full { address, why },
            502..=504 => RegistryError::Unreachable { address, why },
            _ => RegistryError::Failed { address, why },
        }
    }
}

/// An error with its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    bounded(&text)
}

fn bounded(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(TEXT_MAX).collect()
}

/// Until nothing has moved for too long; once all was sent, the answer has as long again.
async fn silence(mut moved: watch::Receiver<()>) {
    while let Ok(Ok(())) = timeout(SILENCE, moved.changed()).await {}
    if moved.has_changed().is_err() {
        tokio::time::sleep(SILENCE).await;
    }
}
