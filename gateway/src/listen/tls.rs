//! Certificates: read from files and again when they change, made by ourselves, or fetched ([`super::acme`]).
//!
//! A certificate is looked up at each handshake, so a new one takes effect without a connection being dropped. One that
//! cannot be used never takes the place of one that can; `/healthz` says so instead.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use rustls::{
    ClientConfig, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{Acceptor, ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::{LazyConfigAcceptor, server::TlsStream};

use super::acme;
use crate::{
    config::{Certificate, Tls},
    proxy::address::NEAR,
    tasks::Tasks,
};

pub(super) const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";
/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(5);
/// How long before its end a certificate is unwell.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How long one of our own lasts, and how long before its end the next start makes another. Some browsers refuse any
/// that last longer.
const OWN_LASTS: SignedDuration = SignedDuration::from_hours(820 * 24);
const OWN_RENEWED: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The certificates of this gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Certificates {
    site: Arc<ServerConfig>,
    /// For the authority that checks whether the domain is ours.
    challenge: Option<Arc<ServerConfig>>,
    current: Arc<Current>,
}

/// What handshakes are answered with, and what is known about it.
#[derive(Debug, Default)]
pub(super) struct Current {
    key: RwLock<Option<Arc<CertifiedKey>>>,
    trouble: RwLock<Option<String>>,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("cannot read `{}`: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: String },
    #[error("`{}` and `{}` do not make a certificate: {cause}", cert.display(), key.display())]
    Unusable { cert: PathBuf, key: PathBuf, cause: rustls::Error },
    #[error("cannot make a certificate: {0}")]
    NotMade(#[from] rcgen::Error),
    #[error("cannot keep the certificate in `{}`: {cause}", path.display())]
    NotKept { path: PathBuf, cause: io::Error },
    #[error("TLS cannot be set up: {0}")]
    SetUp(#[from] rustls::Error),
}

// === impl Certificates ===

impl Certificates {
    /// Gets the certificate and keeps it fresh for as long as the process runs.
    pub(crate) fn build(tls: &Tls, data: &Path, tasks: &Tasks) -> Result<Self, TlsError> {
        match &tls.certificate {
            Certificate::Files { cert, key } => Self::from_files(cert.clone(), key.clone(), LOOK, tasks),
            Certificate::SelfSigned { names } => {
                let (cert, key) = self_signed(&data.join("keys"), names)?;
                Self::from_files(cert, key, LOOK, tasks)
            }
            Certificate::Acme { domains, email, directory } => {
                let current = Arc::new(Current::default());
                current.note(Some("there is no certificate yet".to_owned()));
                let (resolver, challenge) = acme::begin(
                    domains,
                    email,
                    directory,
                    &data.join("keys/acme"),
                    Arc::clone(&current),
                    tasks,
                )?;
                let seen = Arc::new(Seen { resolver, current: Arc::clone(&current) });
                Ok(Self { site: site(seen)?, challenge: Some(challenge), current })
            }
        }
    }

    pub(super) fn from_files(
        cert: PathBuf,
        key: PathBuf,
        look: Duration,
        tasks: &Tasks,
    ) -> Result<Self, TlsError> {
        let current = Arc::new(Current::default());
        let mut seen = (stamp(&cert), stamp(&key));
        current.set(read_files(&cert, &key)?);
        let (stopping, kept) = (tasks.stopping(), Arc::clone(&current));
        tasks.spawn("certificate", async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(look) => {}
                    () = stopping.cancelled() => return,
                }
                let now = (stamp(&cert), stamp(&key));
                if now == seen {
                    continue;
                }
                seen = now;
                match read_files(&cert, &key) {
                    Ok(certified) => {
                        kept.set(certified);
                        tracing::info!(cert = %cert.display(), "took the new certificate");
                    }
                    // Half of a pair may be replaced yet: the next change is looked at again.
                    Err(error) => {
                        tracing::warn!(%error, "the new certificate cannot be used; the old one stays");
                        kept.note(Some(
                            "the new certificate cannot be used; the old one is still served".to_owned(),
                        ));
                    }
                }
            }
        });
        let resolver: Arc<dyn ResolvesServerCert> = current.clone();
        Ok(Self { site: site(resolver)?, challenge: None, current })
    }

    /// The handshake. `None` when it was all that the client wanted.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<Option<TlsStream<TcpStream>>> {
        let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        match &self.challenge {
            Some(challenge) if rustls_acme::is_tls_alpn_challenge(&begun.client_hello()) => {
                use tokio::io::AsyncWriteExt as _;
                begun.into_stream(Arc::clone(challenge)).await?.shutdown().await?;
                Ok(None)
            }
            Some(_) | None => begun.into_stream(Arc::clone(&self.site)).await.map(Some),
        }
    }

    /// What is wrong with the certificate, if anything.
    pub(crate) fn trouble(&self) -> Option<String> {
        let noted = self.current.trouble.read().unwrap_or_else(PoisonError::into_inner).clone();
        noted.or_else(|| {
            let left = self.ends()?.duration_since(Timestamp::now());
            if left.is_negative() {
                Some("the certificate has expired".to_owned())
            } else {
                (left < SOON).then(|| format!("the certificate expires in {} h", left.as_hours()))
            }
        })
    }

    /// When the certificate ends, as far as is known.
    pub(crate) fn ends(&self) -> Option<Timestamp> {
        self.current.key().and_then(|key| ends(key.cert.first()?))
    }
}

fn site(resolver: Arc<dyn ResolvesServerCert>) -> Result<Arc<ServerConfig>, TlsError> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
    Ok(Arc::new(config))
}

/// What the gateway itself asks others with: it trusts whom this machine trusts.
pub(crate) fn client() -> Result<ClientConfig, TlsError> {
    let client = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    Ok(client)
}

/// The one provider of cryptography in this workspace.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default().cloned().unwrap_or_else(|| {
        // Two threads may come here at once: the first one's stays, and they are the same.
        let _ = aws_lc_rs::default_provider().install_default();
        Arc::new(aws_lc_rs::default_provider())
    })
}

// === impl Current ===

impl Current {
    fn key(&self) -> Option<Arc<CertifiedKey>> {
        self.key.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, key: CertifiedKey) {
        *self.key.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(key));
        self.note(None);
    }

    pub(super) fn note(&self, trouble: Option<String>) {
        *self.trouble.write().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.key()
    }
}

/// Notes what another resolver gives out, so that its end is known.
#[derive(Debug)]
struct Seen<R> {
    resolver: Arc<R>,
    current: Arc<Current>,
}

impl<R: ResolvesServerCert> ResolvesServerCert for Seen<R> {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let key = self.resolver.resolve(hello)?;
        if self.current.key().is_none_or(|known| !Arc::ptr_eq(&known, &key)) {
            *self.current.key.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&key));
        }
        Some(key)
    }
}

// === files ===

/// A chain and its key, checked against each other.
pub(crate) fn read_files(cert: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let unreadable = |path: &Path, cause: String| TlsError::Unreadable { path: path.to_owned(), cause };
    let read = |path: &Path| fs::read(path).map_err(|error| unreadable(path, error.to_string()));
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&read(cert)?)
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(unreadable(cert, "it holds no certificate in PEM".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| unreadable(key, "it holds no private key in PEM".to_owned()))?;
    CertifiedKey::from_der(chain, private, &provider()).map_err(|cause| TlsError::Unusable {
        cert: cert.to_owned(),
        key: key.to_owned(),
        cause,
    })
}

/// What changes when a file does.
fn stamp(path: &Path) -> Option<(u64, i64, i64, u64)> {
    // Follows links: certbot's are links to the newest.
    fs::metadata(path).ok().map(|found| (found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

fn ends(leaf: &CertificateDer<'_>) -> Option<Timestamp> {
    let (_, parsed) = x509_parser::parse_x509_certificate(leaf).ok()?;
    Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()
}

// === our own ===

/// The certificate that we made, or a new one if there is none that will do.
fn self_signed(folder: &Path, names: &[String]) -> Result<(PathBuf, PathBuf), TlsError> {
    let (cert, key) = (folder.join("self-signed.pem"), folder.join("self-signed.key"));
    let names = all_names(names);
    if !is_good(&cert, &key, &names) {
        let (cert_text, key_text) = make(names)?;
        // The key first: a pair that does not fit is made again at the next start.
        keep(&key, key_text.as_bytes(), 0o600)
            .and_then(|()| keep(&cert, cert_text.as_bytes(), 0o644))
            .map_err(|cause| TlsError::NotKept { path: folder.to_owned(), cause })?;
        tracing::info!(cert = %cert.display(), "made a certificate");
    }
    Ok((cert, key))
}

fn all_names(names: &[String]) -> Vec<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    // Nobody takes a certificate for every name right below `localhost`.
    let ours = ["localhost", NEAR, "*.berth.localhost", "127.0.0.1", "::1", &host].map(str::to_owned);
    let mut all: Vec<_> =
        ours.into_iter().chain(names.iter().cloned()).filter(|name| !name.is_empty()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn is_good(cert: &Path, key: &Path, names: &[String]) -> bool {
    let Ok(certified) = read_files(cert, key) else { return false };
    let Some(leaf) = certified.cert.first() else { return false };
    let lasts = ends(leaf).is_some_and(|end| end.duration_since(Timestamp::now()) > OWN_RENEWED);
    let Ok(parsed) = rustls::server::ParsedCertificate::try_from(leaf) else { return false };
    let covers = |name: &String| {
        let one = name.replacen('*', "lab--train--alice", 1);
        rustls::pki_types::ServerName::try_from(one.as_str())
            .is_ok_and(|name| rustls::client::verify_server_name(&parsed, &name).is_ok())
    };
    lasts && names.iter().all(covers)
}

fn make(names: Vec<String>) -> Result<(String, String), TlsError> {
    let key = rcgen::KeyPair::generate()?;
    let mut certificate = rcgen::CertificateParams::new(names)?;
    certificate.distinguished_name = rcgen::DistinguishedName::new();
    certificate.distinguished_name.push(rcgen::DnType::CommonName, "Berth");
    certificate.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let now = std::time::SystemTime::now();
    let lasts = Duration::try_from(OWN_LASTS).unwrap_or_default();
    // A clock that is a little behind ours should not refuse it.
    certificate.not_before = (now - Duration::from_hours(1)).into();
    certificate.not_after = (now + lasts).into();
    Ok((certificate.self_signed(&key)?.pem(), key.serialize_pem()))
}

/// Writes a file whole or not at all, in a folder for our eyes only.
pub(super) fn keep(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    use io::Write as _;
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let draft = path.with_extension("new");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    fs::File::open(folder)?.sync_all()
}
