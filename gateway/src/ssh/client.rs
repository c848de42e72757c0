//! What a client asks, as russh calls it: signing in, and requests that are answered on the spot. All work is done by
//! the tasks of the channels, so that nothing here waits for an instance but a listener that is to be opened.
//!
//! Identity is what the last successful method proved: every new try forgets what an earlier one found, an offered key
//! is only looked up, and nothing counts before russh has told the client that it is in.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use envd_api::agent::Listen;
use http::StatusCode;
use russh::{
    Channel, ChannelId, ChannelOpenFailure, Pty, Sig,
    keys::{Algorithm, HashAlg, PublicKey},
    server::{
        Auth, ChannelOpenHandle, Handle, Handler, Msg, PublicKeyOffer, Response, Session, VerifiedPublicKey,
    },
};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    connection::{Shared, Signed},
    forward,
    login::Login,
    methods, session,
};
use crate::{
    auth::{Caller, Key},
    error::{Error, chain},
    store::KnownKey,
};

/// Listeners of one connection.
const LISTENERS_MAX: usize = 64;

type Result<T> = std::result::Result<T, russh::Error>;

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    shared: Arc<Shared>,
    /// Who the last try proved somebody to be.
    proved: Option<Signed>,
    tell: Option<oneshot::Sender<()>>,
    /// Channels on which something runs already.
    started: HashSet<ChannelId>,
    listeners: HashMap<forward::At, CancellationToken>,
    /// It has asked for more channels than there are.
    crowded: bool,
}

impl Client {
    pub(super) fn new(shared: Arc<Shared>, tell: oneshot::Sender<()>) -> Self {
        let (started, listeners) = (HashSet::new(), HashMap::new());
        Self { shared, proved: None, tell: Some(tell), started, listeners, crowded: false }
    }

    async fn password(&mut self, user: &str, password: String) -> Auth {
        self.proved = None;
        let login = Login::parse(user);
        let origin = self.shared.origin.clone();
        match self.shared.app.sign_in(login.account(), password, &origin).await {
            Ok((user, token)) => {
                let target = login.target(&user.name);
                let key = Key::Session { hash: token.hash() };
                self.proved = Some(Signed { caller: Caller { user, key, origin }, target });
                Auth::Accept
            }
            Err(error) => {
                note(&error);
                refuse()
            }
        }
    }

    /// Whose key it is, if it opens anything for this login.
    async fn look_up(&self, login: &Login, key: &PublicKey) -> Option<KnownKey> {
        let app = &self.shared.app;
        let word = match login {
            Login::Word(word) => word.parse().ok(),
            Login::Instance { .. } | Login::Nonsense => None,
        };
        // The same questions whoever is named: first as the user of that name, then as whoever the key belongs to.
        let named = app.known_key(login.named().or(word.as_ref()), key).await;
        let any = app.known_key(None, key).await;
        let found = match (named, any, login) {
            (Ok(Some(found)), _, Login::Instance { .. } | Login::Word(_)) => Ok(Some(found)),
            (Ok(None), any, Login::Word(_)) => any,
            (Ok(_), _, Login::Instance { .. } | Login::Nonsense) => Ok(None),
            (Err(error), _, _) => Err(error),
        };
        found.unwrap_or_else(|error| {
            note(&error);
            None
        })
    }

    /// A place for one more channel. That there is none is written down once for a connection.
    async fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.shared.channels).try_acquire_owned().ok();
        let place = place.filter(|_| !self.shared.pressure.is_full());
        if place.is_none() && !std::mem::replace(&mut self.crowded, true) {
            self.shared.note(" with too many channels", StatusCode::TOO_MANY_REQUESTS).await;
        }
        place
    }

    /// Something may run on a channel once.
    fn start(&mut self, channel: ChannelId, session: &mut Session) -> Result<()> {
        if self.started.insert(channel) {
            session.channel_success(channel)
        } else {
            session.channel_failure(channel)
        }
    }

    async fn listen(&mut self, at: forward::At, wanted: Listen, handle: Handle) -> Option<u16> {
        if self.listeners.len() >= LISTENERS_MAX || self.listeners.contains_key(&at) {
            return None;
        }
        let stop = self.shared.over.child_token();
        let (at, port) = forward::listen(&self.shared, handle, at, wanted, stop.clone()).await?;
        self.listeners.insert(at, stop);
        Some(port)
    }

    fn unlisten(&mut self, at: &forward::At) -> bool {
        self.listeners.remove(at).map(|stop| stop.cancel()).is_some()
    }
}

/// Refused, and everything may be tried again.
fn refuse() -> Auth {
    Auth::Reject { proceed_with_methods: Some(methods()), partial_success: false }
}

fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

/// What went wrong on our side is for the operator; that somebody is not known is no news.
fn note(error: &Error) {
    if error.status().is_server_error() {
        tracing::error!(error = chain(error), "signing in over SSH failed");
    }
}

impl Handler for Client {
    type Error = russh::Error;

    // === signing in ===

    async fn auth_none(&mut self, _user: &str) -> Result<Auth> {
        self.proved = None;
        Ok(refuse())
    }

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth> {
        Ok(self.password(user, password.to_owned()).await)
    }

    async fn auth_keyboard_interactive<'a>(
        &'a mut self,
        user: &str,
        _submethods: &str,
        response: Option<Response<'a>>,
    ) -> Result<Auth> {
        self.proved = None;
        let answer = response.map(|mut answers| answers.next());
        Ok(match answer {
            None => Auth::Partial {
                name: "".into(),
                instructions: "".into(),
                prompts: vec![("Password: ".into(), false)].into(),
            },
            Some(Some(answer)) => match String::from_utf8(answer.to_vec()) {
                Ok(password) => self.password(user, password).await,
                Err(_) => self.password(user, String::new()).await,
            },
            Some(None) => refuse(),
        })
    }

    async fn auth_publickey_offered(&mut self, user: &str, offer: PublicKeyOffer<'_>) -> Result<Auth> {
        self.proved = None;
        // RSA with SHA-1.
        if matches!(offer.algorithm, Algorithm::Rsa { hash: None }) {
            return Ok(refuse());
        }
        let login = Login::parse(user);
        self.shared.key_was_shown(login.account(), fingerprint(offer.public_key));
        let known = self.look_up(&login, offer.public_key).await;
        Ok(if known.is_some() { Auth::Accept } else { refuse() })
    }

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth> {
        self.proved = None;
        let login = Login::parse(user);
        self.shared.key_was_shown(login.account(), fingerprint(key.public_key));
        let Some(known) = self.look_up(&login, key.public_key).await else { return Ok(refuse()) };
        let target = login.target(&known.user.name);
        match self.shared.app.sign_in_with_key(known, self.shared.origin.clone()).await {
            Ok(caller) => {
                self.proved = Some(Signed { caller, target });
                Ok(Auth::Accept)
            }
            Err(error) => {
                note(&error);
                Ok(refuse())
            }
        }
    }

    async fn auth_succeeded(&mut self, _session: &mut Session) -> Result<()> {
        let signed = self.proved.take().filter(|signed| self.shared.sign(signed.clone()));
        match (signed, self.tell.take()) {
            (Some(_), Some(tell)) => {
                let _gone = tell.send(());
                Ok(())
            }
            (Some(_) | None, _) => Err(russh::Error::Disconnect),
        }
    }

    // === channels ===

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        session: &mut Session,
    ) -> Result<()> {
        let Some(place) = self.place().await else {
            reply.reject(ChannelOpenFailure::ResourceShortage).await;
            return Ok(());
        };
        reply.accept().await;
        let work = session::run(Arc::clone(&self.shared), channel, session.handle(), place);
        self.shared.app.tasks.spawn("ssh session", work);
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _originator: &str,
        _originator_port: u32,
        reply: ChannelOpenHandle,
        session: &mut Session,
    ) -> Result<()> {
        match (self.place().await, forward::tcp(host, port)) {
            (Some(place), Some(to)) => {
                let work =
                    forward::connect(Arc::clone(&self.shared), session.handle(), channel, to, reply, place);
                self.shared.app.tasks.spawn("ssh forward", work);
            }
            (None, _) => reply.reject(ChannelOpenFailure::ResourceShortage).await,
            (Some(_), None) => reply.reject(ChannelOpenFailure::ConnectFailed).await,
        }
        Ok(())
    }

    async fn channel_open_direct_streamlocal(
        &mut self,
        channel: Channel<Msg>,
        path: &str,
        reply: ChannelOpenHandle,
        session: &mut Session,
    ) -> Result<()> {
        match (self.place().await, forward::unix(path)) {
            (Some(place), Some(to)) => {
                let work =
                    forward::connect(Arc::clone(&self.shared), session.handle(), channel, to, reply, place);
                self.shared.app.tasks.spawn("ssh forward", work);
            }
            (None, _) => reply.reject(ChannelOpenFailure::ResourceShortage).await,
            (Some(_), None) => reply.reject(ChannelOpenFailure::ConnectFailed).await,
        }
        Ok(())
    }

    async fn channel_close(&mut self, channel: ChannelId, _session: &mut Session) -> Result<()> {
        self.started.remove(&channel);
        Ok(())
    }

    async fn data(&mut self, channel: ChannelId, data: &[u8], _session: &mut Session) -> Result<()> {
        self.shared.pressure.arrived(channel.number(), data.len()).await
    }

    async fn extended_data(
        &mut self,
        channel: ChannelId,
        _kind: u32,
        data: &[u8],
        _session: &mut Session,
    ) -> Result<()> {
        self.shared.pressure.arrived(channel.number(), data.len()).await
    }

    fn adjust_window(&mut self, channel: ChannelId, given: u32) -> u32 {
        self.shared.pressure.window(channel.number(), given)
    }

    // === requests of a session: answered here in their order, done by the channel's task ===

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _term: &str,
        _cols: u32,
        _rows: u32,
        _width: u32,
        _height: u32,
        _modes: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<()> {
        session.channel_success(channel)
    }

    async fn x11_request(
        &mut self,
        channel: ChannelId,
        _single: bool,
        _protocol: &str,
        _cookie: &str,
        _screen: u32,
        session: &mut Session,
    ) -> Result<()> {
        session.channel_failure(channel)
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        name: &str,
        _value: &str,
        session: &mut Session,
    ) -> Result<()> {
        if session::may_set(name) {
            session.channel_success(channel)
        } else {
            session.channel_failure(channel)
        }
    }

    async fn shell_request(&mut self, channel: ChannelId, session: &mut Session) -> Result<()> {
        self.start(channel, session)
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        _command: &[u8],
        session: &mut Session,
    ) -> Result<()> {
        self.start(channel, session)
    }

    async fn subsystem_request(
        &mut self,
        channel: ChannelId,
        name: &str,
        session: &mut Session,
    ) -> Result<()> {
        if name == session::SFTP { self.start(channel, session) } else { session.channel_failure(channel) }
    }

    async fn window_change_request(
        &mut self,
        _channel: ChannelId,
        _cols: u32,
        _rows: u32,
        _width: u32,
        _height: u32,
        _session: &mut Session,
    ) -> Result<()> {
        Ok(())
    }

    async fn agent_request(&mut self, _channel: ChannelId, _session: &mut Session) -> Result<bool> {
        Ok(self.shared.signed().is_some_and(|signed| signed.target.is_some()))
    }

    async fn signal(&mut self, _channel: ChannelId, _signal: Sig, _session: &mut Session) -> Result<()> {
        Ok(())
    }

    // === listeners ===

    async fn tcpip_forward(&mut self, host: &str, port: &mut u32, session: &mut Session) -> Result<bool> {
        let Ok(wanted) = u16::try_from(*port) else { return Ok(false) };
        let at = forward::At::Tcp { host: host.to_owned(), port: *port };
        let listen = Listen::Tcp { host: host.to_owned(), port: wanted };
        let opened = self.listen(at, listen, session.handle()).await;
        if let Some(opened) = opened {
            *port = opened.into();
        }
        Ok(opened.is_some())
    }

    async fn cancel_tcpip_forward(&mut self, host: &str, port: u32, _session: &mut Session) -> Result<bool> {
        Ok(self.unlisten(&forward::At::Tcp { host: host.to_owned(), port }))
    }

    async fn streamlocal_forward(&mut self, path: &str, session: &mut Session) -> Result<bool> {
        let at = forward::At::Unix { path: path.to_owned() };
        let listen = Listen::Unix { path: path.to_owned() };
        Ok(forward::unix(path).is_some() && self.listen(at, listen, session.handle()).await.is_some())
    }

    async fn cancel_streamlocal_forward(&mut self, path: &str, _session: &mut Session) -> Result<bool> {
        Ok(self.unlisten(&forward::At::Unix { path: path.to_owned() }))
    }
}
