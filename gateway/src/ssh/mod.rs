//! The SSH door: stock clients, any image, one port. The only place that knows russh.
//!
//! SSH is spoken here and nowhere else: no image needs an sshd. A connection is authenticated ([`login`], `client`), and
//! each of its channels then becomes one task with a `Grant` of its own: a session (`session`), a forward (`forward`).
//! All that a channel does happens inside the instance, through its agent; nothing here ever dials by an address that a
//! client gave.
//!
//! Before authentication a connection costs little and is one of few: places are limited in all and for each source
//! ([`gate`]), outside russh, and the accept loop waits for nobody. Afterwards it lives as long as the key that opened
//! it (`auth/live.rs`).

mod client;
mod connection;
mod forward;
mod gate;
mod host_key;
mod inbox;
mod login;
mod menu;
mod pressure;
mod relay;
mod session;
mod waiting;
mod wire;
mod words;

use std::{borrow::Cow, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use gateway_api::ssh::SshDoor;
use russh::{
    MethodKind, MethodSet, Preferred, SshId, cipher, compression, kex,
    keys::{Algorithm, EcdsaCurve, HashAlg},
    mac, server,
};
use tokio::net::{TcpListener, TcpStream};

use self::gate::Gate;
use crate::{app::App, config::Config, listen};

/// What a client may send on one channel before it is told that some of it was taken.
const WINDOW_BYTES: u32 = 8 << 20;
/// The longest packet of a channel: russh takes no more than a TCP packet.
const PACKET_BYTES: u32 = 65_535;
/// Messages that wait to be written to one client, and messages of one channel that wait to be taken.
const QUEUE: usize = 64;
/// Wrong tries on one connection, offered keys included.
const TRIES_MAX: usize = 20;
/// The pause after the system refused to accept a connection, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What is offered: nothing that `ssh-audit` finds fault with, and what clients of Debian 12 have. The client's order
/// decides. Ours matters only to clients that send a guess along, as Dropbear does: russh takes what follows a wrong one
/// for a violation of strict key exchange, so what Dropbear of Debian 12 guesses comes first.
const KEX: &[kex::Name] = &[
    kex::CURVE25519,
    kex::MLKEM768X25519_SHA256,
    kex::CURVE25519_PRE_RFC_8731,
    kex::EXTENSION_SUPPORT_AS_SERVER,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_SERVER,
];
const CIPHERS: &[cipher::Name] = &[
    cipher::CHACHA20_POLY1305,
    cipher::AES_128_GCM,
    cipher::AES_256_GCM,
    cipher::AES_256_CTR,
    cipher::AES_192_CTR,
    cipher::AES_128_CTR,
];
const MACS: &[mac::Name] = &[mac::HMAC_SHA256_ETM, mac::HMAC_SHA512_ETM];
const COMPRESSION: &[compression::Name] = &[compression::NONE, compression::ZLIB_LEGACY];
/// The kinds of users' keys; of the host's own there is only the first.
const KEYS: &[Algorithm] = &[
    Algorithm::Ed25519,
    Algorithm::SkEd25519,
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
    Algorithm::SkEcdsaSha2NistP256,
    Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
    Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
];

/// The listener and what it speaks with.
#[derive(Debug)]
pub(crate) struct Ssh {
    listener: TcpListener,
    config: Arc<server::Config>,
    /// Where it listens.
    pub(crate) port: u16,
    /// What users are told of it.
    pub(crate) door: SshDoor,
}

impl Ssh {
    /// Listens, and makes the host key if there is none yet.
    pub(crate) async fn bind(config: &Config) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(config.ssh)
            .await
            .with_context(|| format!("cannot listen on {}", config.ssh))?;
        listen::prepare(&listener)?;
        let key = host_key::load_or_make(&config.data.join("keys"))?;
        let public = key.public_key();
        let port = listener.local_addr()?.port();
        let (host, public_port) = match &config.ssh_public {
            Some((host, port)) => (Some(host.clone()), *port),
            None => (config.url.as_deref().and_then(host_of), port),
        };
        let door = SshDoor {
            host,
            port: public_port,
            host_key: public.to_openssh().context("the SSH host key cannot be written down")?,
            fingerprint: public.fingerprint(HashAlg::Sha256).to_string(),
        };
        let config = server::Config {
            server_id: SshId::Standard(Cow::Borrowed("SSH-2.0-Berth")),
            methods: methods(),
            // Right and wrong ones cost the same here (`app/accounts.rs`); offered keys that are not known should not
            // make those wait who have several.
            auth_rejection_time: Duration::ZERO,
            auth_rejection_time_initial: None,
            keys: vec![key],
            window_size: WINDOW_BYTES,
            maximum_packet_size: PACKET_BYTES,
            channel_buffer_size: QUEUE,
            event_buffer_size: QUEUE,
            preferred: Preferred {
                kex: Cow::Borrowed(KEX),
                key: Cow::Borrowed(KEYS),
                cipher: Cow::Borrowed(CIPHERS),
                mac: Cow::Borrowed(MACS),
                compression: Cow::Borrowed(COMPRESSION),
                ..Preferred::default()
            },
            max_auth_attempts: TRIES_MAX,
            inactivity_timeout: None,
            // The kernel asks silent clients whether they are there. russh's own question would go out as it is to a
            // client that wants what it gets compressed and has not said anything since it signed in.
            keepalive_interval: None,
            nodelay: true,
            ..server::Config::default()
        };
        Ok(Self { listener, config: Arc::new(config), port, door })
    }

    /// Takes connections until the process stops. Those that are open are tasks, and end with them. Each stays on the
    /// thread that accepted it: a key that is typed is not handed from core to core on its way.
    pub(crate) fn serve(self, app: &Arc<App>) -> std::io::Result<()> {
        let door = Arc::new(Door {
            gate: Gate::new(app.config.limits.connections_max),
            config: self.config,
            backlogs: Arc::default(),
            app: Arc::clone(app),
        });
        listen::on_every_core("ssh", self.listener, &app.tasks, move |listener| {
            Arc::clone(&door).accept(listener)
        })
    }
}

/// What all threads of the door share.
struct Door {
    gate: Gate,
    config: Arc<server::Config>,
    backlogs: Arc<pressure::Backlogs>,
    app: Arc<App>,
}

impl Door {
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        let stopping = self.app.tasks.stopping();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stopping.cancelled() => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    self.open(stream, peer);
                    // The next of a burst is for another thread, if one has nothing to do.
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    tracing::warn!(%error, "an SSH connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Past a limit a connection is closed at once, before it has cost anything.
    fn open(&self, stream: TcpStream, peer: SocketAddr) {
        let Some(place) = self.gate.enter(peer.ip()) else {
            tracing::debug!(%peer, "too many SSH connections");
            return connection::note_flood(&self.app, peer);
        };
        let (app, config) = (Arc::clone(&self.app), Arc::clone(&self.config));
        let backlogs = Arc::clone(&self.backlogs);
        self.app.tasks.spawn("ssh", connection::run(app, config, stream, peer, place, backlogs));
    }
}

/// The ways to sign in.
fn methods() -> MethodSet {
    let methods = [MethodKind::PublicKey, MethodKind::Password, MethodKind::KeyboardInteractive];
    MethodSet::from(&methods[..])
}

fn host_of(url: &str) -> Option<String> {
    url.parse::<http::Uri>().ok()?.host().map(str::to_owned)
}
