//! The life of one connection: handshake, sign-in, and then for as long as the key that opened it is good.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use http::StatusCode;
use russh::{Disconnect, server};
use tokio::{net::TcpStream, sync::oneshot, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    client::Client,
    gate::Place,
    pressure::{Backlogs, Pressure},
    wire::Wire,
};
use crate::{
    app::{App, Nonsense},
    auth::{Caller, Key, Origin, live::Kind},
    error::{Error, chain},
};

/// How long a client may take to say that it speaks SSH, and to sign in.
const HELLO_LIMIT: Duration = Duration::from_secs(15);
const SIGN_IN_LIMIT: Duration = Duration::from_mins(2);
/// How long a goodbye may take.
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);
/// Channels of one connection at once: sessions, forwards and what comes in through listeners.
pub(super) const CHANNELS_MAX: usize = 512;

/// What all channels of one connection share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) app: Arc<App>,
    pub(super) peer: SocketAddr,
    pub(super) local: Option<SocketAddr>,
    pub(super) origin: Origin,
    pub(super) pressure: Pressure,
    backlogs: Arc<Backlogs>,
    pub(super) channels: Arc<tokio::sync::Semaphore>,
    /// The connection is over.
    pub(super) over: CancellationToken,
    signed: OnceLock<Signed>,
    /// The last key that was shown and did not let anybody in so far: who it was said to be of, and its fingerprint.
    shown: Mutex<Option<(String, String)>>,
}

/// Who has signed in, and where they want to go.
#[derive(Debug, Clone)]
pub(super) struct Signed {
    pub(super) caller: Caller,
    pub(super) target: Option<String>,
}

impl Shared {
    fn new(app: Arc<App>, peer: SocketAddr, local: Option<SocketAddr>, backlogs: Arc<Backlogs>) -> Self {
        Self {
            app,
            peer,
            local,
            origin: origin(peer),
            pressure: Pressure::default(),
            backlogs,
            channels: Arc::new(tokio::sync::Semaphore::new(CHANNELS_MAX)),
            over: CancellationToken::new(),
            signed: OnceLock::new(),
            shown: Mutex::default(),
        }
    }

    pub(super) fn key_was_shown(&self, account: &str, fingerprint: String) {
        let shown = Some((account.to_owned(), fingerprint));
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// Writes down that what came was nonsense, if that has not been done of late.
    async fn note_nonsense(&self, what: Nonsense) {
        if self.app.is_nonsense_due(self.origin.source, what) {
            self.app.note_nonsense(&self.origin, what).await;
        }
    }

    /// Nobody signed in: if a key was tried, that is written down.
    async fn note_refused_key(&self) {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((account, fingerprint)) = shown {
            self.app.note_refused_key(&account, &fingerprint, &self.origin).await;
        }
    }

    /// Writes down that somebody was refused what is not theirs.
    pub(super) async fn note_refusal(&self, error: &Error) {
        let status = error.status();
        let refused =
            matches!(error, Error::Hidden { .. } | Error::NotFound { .. } | Error::Forbidden { .. });
        if refused {
            self.note("", status).await;
        }
    }

    /// Writes down that somebody was refused something; `what` says what of the instance, from a space on.
    pub(super) async fn note(&self, what: &str, status: StatusCode) {
        if let Some(signed) = self.signed() {
            let what = format!("ssh {}{what}", signed.target.as_deref().unwrap_or_default());
            let Origin { source, request_id } = &self.origin;
            let user = &signed.caller.user.name;
            self.app.note_refusal(user, Some(*source), request_id, what, status.as_u16()).await;
        }
    }

    /// Nothing but a sign-in opens a channel, so somebody is there.
    pub(super) fn signed(&self) -> Option<&Signed> {
        self.signed.get()
    }

    pub(super) fn sign(&self, signed: Signed) -> bool {
        // Before a channel can be opened.
        self.pressure.is_of(self.backlogs.of(&signed.caller.user.home));
        self.signed.set(signed).is_ok()
    }

    /// Who it is, once they may do things: a password that somebody else has seen opens nothing but its own change.
    pub(super) fn admitted(&self) -> Result<&Signed, Error> {
        let signed = self.signed().ok_or(Error::Unauthenticated)?;
        if signed.caller.user.must_change_password {
            return Err(Error::PasswordChangeRequired);
        }
        Ok(signed)
    }

    /// The instance that was named at sign-in.
    pub(super) fn target(&self) -> Result<&str, Error> {
        self.admitted()?.target.as_deref().ok_or_else(|| Error::not_found("instance", ""))
    }
}

/// Carries a connection from its first byte to its last.
pub(super) async fn run(
    app: Arc<App>,
    config: Arc<server::Config>,
    stream: TcpStream,
    peer: SocketAddr,
    mut place: Place,
    backlogs: Arc<Backlogs>,
) {
    let shared = Arc::new(Shared::new(Arc::clone(&app), peer, stream.local_addr().ok(), backlogs));
    let _over = shared.over.clone().drop_guard();
    let (tell, signed_in) = oneshot::channel();
    let wire = Wire::new(stream, &shared.over);
    let client = Client::new(Arc::clone(&shared), tell);
    let mut session = match timeout(HELLO_LIMIT, server::run_stream(config, wire, client)).await {
        Ok(Ok(session)) => session,
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "this was not SSH");
            if is_nonsense(&error) {
                shared.note_nonsense(Nonsense::NotSsh).await;
            }
            return;
        }
        Err(_) => {
            tracing::debug!(%peer, "a client said nothing");
            return shared.note_nonsense(Nonsense::NotSsh).await;
        }
    };
    let stopping = app.tasks.stopping();
    // Who was to tell may be gone a moment before the session itself has ended, which knows why.
    let signed_in = async {
        if signed_in.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let goes_on = tokio::select! {
        ended = &mut session => {
            if let Err(error) = ended {
                tracing::debug!(%peer, %error, "a client left before it had signed in");
                if is_nonsense(&error) {
                    shared.note_nonsense(Nonsense::Broken).await;
                }
            }
            false
        }
        signed = timeout(SIGN_IN_LIMIT, signed_in) => signed.is_ok(),
        () = stopping.cancelled() => false,
    };
    // Somebody may have signed in and left at the same moment.
    let Some(signed) = shared.signed() else {
        return shared.note_refused_key().await;
    };
    if !goes_on {
        return sign_out(&app, &signed.caller).await;
    }
    place.known();
    let handle = session.handle();
    let open = match app.live.open(&signed.caller, Kind::Ssh) {
        Ok(open) => open,
        Err(error) => {
            say_goodbye(&handle, &error.to_string()).await;
            return sign_out(&app, &signed.caller).await;
        }
    };
    tokio::select! {
        ended = &mut session => if let Err(error) = ended {
            tracing::debug!(%peer, %error, "an SSH connection broke");
            if is_nonsense(&error) {
                shared.note(" with broken packets", StatusCode::BAD_REQUEST).await;
            }
        },
        () = open.ended() => {
            tracing::info!(%peer, user = %signed.caller.user.name, "an SSH connection was closed: its key has ended");
            say_goodbye(&handle, "what you signed in with has been revoked").await;
        }
        () = stopping.cancelled() => say_goodbye(&handle, "the server is restarting").await,
    }
    sign_out(&app, &signed.caller).await;
}

/// Writes down that somebody came too often, if that has not been done of late. Whoever accepts waits for nobody.
pub(super) fn note_flood(app: &Arc<App>, peer: SocketAddr) {
    let origin = origin(peer);
    if app.is_nonsense_due(origin.source, Nonsense::Flood) {
        let noting = Arc::clone(app);
        app.tasks.spawn("ssh flood", async move { noting.note_nonsense(&origin, Nonsense::Flood).await });
    }
}

fn origin(peer: SocketAddr) -> Origin {
    let request_id = format!("ssh_{:016x}", rand::random::<u64>());
    Origin { source: peer.ip().to_canonical(), request_id }
}

/// Whether a connection ended because of what came, and not because nothing came any more.
fn is_nonsense(error: &russh::Error) -> bool {
    !matches!(
        error,
        russh::Error::IO(_)
            | russh::Error::Disconnect
            | russh::Error::HUP
            | russh::Error::ConnectionTimeout
            | russh::Error::InactivityTimeout
            | russh::Error::KeepaliveTimeout
            | russh::Error::SendError
            | russh::Error::RecvError
            | russh::Error::NoCommonAlgo { .. }
    )
}

async fn say_goodbye(handle: &server::Handle, why: &str) {
    let goodbye = handle.disconnect(Disconnect::ByApplication, why.to_owned(), String::new());
    let _too_late = timeout(GOODBYE_LIMIT, goodbye).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// A password opened a session of its own, which nobody else can have.
async fn sign_out(app: &App, caller: &Caller) {
    if let Key::Session { hash } = &caller.key {
        let line = caller.line("sign_out", caller.user.name.as_str());
        if let Err(error) = app.store.end_session(hash, &line).await {
            tracing::warn!(error = chain(&error), "a session cannot be ended");
        }
    }
}
