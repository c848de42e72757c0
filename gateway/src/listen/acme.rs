//! Certificates from an authority, by ACME and its TLS-ALPN-01 challenge: the authority connects to the very listener
//! that people use. The account and the certificates are kept in the data directory, so a restart asks for nothing.

use std::{os::unix::fs::DirBuilderExt as _, path::Path, sync::Arc};

use futures_util::StreamExt as _;
use rustls::ServerConfig;
use rustls_acme::{AcmeConfig, EventOk, ResolvesServerCertAcme, caches::DirCache};

use super::tls::{self, Current, TlsError, provider};
use crate::tasks::Tasks;

/// Orders, and renews in good time, for as long as the process runs.
pub(super) fn begin(
    domains: &[String],
    email: &str,
    directory: &str,
    folder: &Path,
    current: Arc<Current>,
    tasks: &Tasks,
) -> Result<(Arc<ResolvesServerCertAcme>, Arc<ServerConfig>), TlsError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|cause| TlsError::NotKept { path: folder.to_owned(), cause })?;
    let mut state = AcmeConfig::new_with_client_config(domains, Arc::new(tls::client()?))
        .contact_push(format!("mailto:{email}"))
        .directory(directory)
        .cache(DirCache::new(folder.to_owned()))
        .state();
    let resolver = state.resolver();
    let challenge = state.challenge_rustls_config_with_provider(provider());
    let stopping = tasks.stopping();
    tasks.spawn("acme", async move {
        loop {
            let event = tokio::select! {
                event = state.next() => event,
                () = stopping.cancelled() => return,
            };
            match event {
                None => return,
                Some(Ok(event @ (EventOk::DeployedCachedCert | EventOk::DeployedNewCert))) => {
                    tracing::info!(?event, "the certificate is in use");
                    current.note(None);
                }
                Some(Ok(event @ (EventOk::CertCacheStore | EventOk::AccountCacheStore))) => {
                    tracing::info!(?event, "kept what the authority gave");
                }
                // It tries again by itself, at growing intervals.
                Some(Err(error)) => {
                    tracing::warn!(%error, "the authority gave no certificate");
                    current.note(Some("the authority gave no certificate; see the gateway's log".to_owned()));
                }
            }
        }
    });
    Ok((resolver, challenge))
}
