//! A site with a domain and TLS, as they are deployed, on a machine without that domain.
//!
//! Browsers are told where the domain is. Programs know no such names and no such authority: they have a plain door to
//! the same site, of which the gateway sees nothing but TLS.

use std::{io, path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsConnector;

use crate::{OrFail as _, Port, aside::hand_through};

/// What the console and the apps are below: one site to browsers, as it is advised.
const CONSOLE: &str = "berth.example.org";
const APPS: &str = "apps.example.org";

/// A connection, whatever is below it.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

#[derive(Debug)]
pub(crate) struct Secured {
    /// Where the gateway listens on 127.0.0.1.
    pub(crate) port: Port,
    /// The plain door, which is there as long as this is.
    pub(crate) plain: String,
    certificate: PathBuf,
    _work: JoinSet<()>,
}

impl Secured {
    /// `certificate` is where the gateway will keep its own.
    pub(crate) async fn open(certificate: PathBuf) -> Self {
        // Its address has the port in it, so the port is chosen before the gateway starts.
        let port = Port::reserve();
        let number = port.number;
        let listener = TcpListener::bind("127.0.0.1:0").await.or_fail("listen");
        let plain =
            format!("http://localhost:{}", listener.local_addr().or_fail("look at an address").port());
        let mut work = JoinSet::new();
        let known = certificate.clone();
        work.spawn(hand_through(listener, move || connect(known.clone(), number)));
        Self { port, plain, certificate, _work: work }
    }

    /// The address that people type.
    pub(crate) fn url(&self) -> String {
        format!("https://{CONSOLE}:{}", self.port)
    }

    pub(crate) fn config(&self) -> String {
        format!(
            "[gateway]\nurl = \"{}\"\n[gateway.apps]\ndomain = \"{APPS}\"\n[gateway.tls]\nself_signed = true\n",
            self.url()
        )
    }

    pub(crate) async fn connect(&self) -> io::Result<impl Stream + use<>> {
        connect(self.certificate.clone(), self.port.number).await
    }
}

/// A connection that trusts the gateway's own certificate and nobody else's.
async fn connect(certificate: PathBuf, port: u16) -> io::Result<impl Stream + use<>> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(certificate).map_err(io::Error::other)?;
    roots.add(certificate).map_err(io::Error::other)?;
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(CONSOLE).map_err(io::Error::other)?;
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}
