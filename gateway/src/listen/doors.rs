//! Every address that the gateway listens at, bound before anything is served: all of them, or no start.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::net::TcpListener;

use super::{Door, Front, redirect::Target, tls::Certificates};
use crate::{
    config::{AppsMode, Config, Limits},
    tasks::Tasks,
};

/// Connections at once of an address that only leads elsewhere.
const REDIRECT_CONNECTIONS_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Doors {
    /// The console and the API.
    pub(crate) site: Door,
    /// Apps, where they do not have hosts of their own.
    pub(crate) apps: Option<Door>,
    /// Addresses that lead to it.
    pub(crate) redirects: Vec<(Door, Target)>,
    pub(crate) metrics: Option<TcpListener>,
    pub(crate) certificates: Option<Certificates>,
}

impl Doors {
    pub(crate) async fn bind(config: &Config, tasks: &Tasks) -> anyhow::Result<Self> {
        let listener = listen(config.http).await?;
        let metrics = match config.metrics {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let apps = match config.apps.mode {
            AppsMode::Path => Some(listen(config.apps.http).await?),
            AppsMode::Host => None,
        };
        let few = Limits { connections_max: REDIRECT_CONNECTIONS_MAX, ..config.limits };
        let certificates = match &config.tls {
            Some(tls) => Some(Certificates::build(tls, &config.data, tasks)?),
            None => None,
        };
        let mut redirects = Vec::new();
        if let Some(address) = config.tls.as_ref().and_then(|tls| tls.redirect_http) {
            let port = listener.local_addr()?.port();
            let target = config.url.clone().map_or(Target::SameHost(port), Target::Url);
            redirects
                .push((Door { listener: listen(address).await?, front: Front::Plain, limits: few }, target));
        }
        if let Some(url) = &config.url {
            for address in &config.old_addresses {
                let front = certificates.clone().map_or(Front::Plain, Front::Either);
                let door = Door { listener: listen(*address).await?, front, limits: few };
                redirects.push((door, Target::Url(url.clone())));
            }
        }
        let front = certificates.clone().map_or(Front::Plain, Front::Tls);
        let apps = apps.map(|listener| Door { listener, front: front.clone(), limits: config.limits });
        let site = Door { listener, front, limits: config.limits };
        Ok(Self { site, apps, redirects, metrics, certificates })
    }
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}
