//! Forwards: connections that begin or end inside the instance, never on this machine.

use std::{net::IpAddr, sync::Arc, time::Duration};

use envd_api::agent::{Address, Listen, Passed, Refusal};
use http::StatusCode;
use russh::{
    Channel, ChannelOpenFailure,
    server::{ChannelOpenHandle, Handle, Msg},
};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    connection::Shared,
    inbox::Inbox,
    relay::{self, Outbox},
    waiting::{self, Entry},
    words::Words,
};
use crate::{
    agents::{AgentError, Listener},
    auth::policy::Grant,
};

/// A client shows this as `administratively prohibited`, and our sentence after it.
const PROHIBITED: u32 = 1;
/// The longest path that a unix socket can have.
const PATH_MAX: usize = 107;
/// The longest name of a machine.
const HOST_MAX: usize = 255;

/// How long an instance may take to listen. russh answers such requests in their order, and meanwhile nothing else of
/// the connection goes on.
const LISTEN_LIMIT: Duration = Duration::from_secs(3);
/// The same for one that has to start for it first.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Where a listener is, as the client asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum At {
    Tcp { host: String, port: u32 },
    Unix { path: String },
}

/// What `direct-tcpip` may ask for. What the address means is the instance's affair.
pub(super) fn tcp(host: &str, port: u32) -> Option<Address> {
    let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
    (host.len() <= HOST_MAX).then(|| Address::Tcp { host: host.to_owned(), port })
}

/// What a path of a unix socket can be.
pub(super) fn unix(path: &str) -> Option<Address> {
    let fits = !path.is_empty() && path.len() <= PATH_MAX && !path.contains('\0');
    fits.then(|| Address::Unix { path: path.to_owned() })
}

/// Connects inside the instance and carries the bytes.
pub(super) async fn connect(
    shared: Arc<Shared>,
    handle: Handle,
    channel: Channel<Msg>,
    to: Address,
    reply: ChannelOpenHandle,
    _place: OwnedSemaphorePermit,
) {
    let grant = match way_in(&shared).await {
        Ok(grant) => grant,
        Err(reason) => {
            return reply.reject(ChannelOpenFailure::Other { code: PROHIBITED, reason }).await;
        }
    };
    match shared.app.agents.connect(grant.id(), to.clone()).await {
        Ok(stream) => {
            reply.accept().await;
            carry(&shared, &handle, channel, stream).await;
        }
        Err(error) => {
            tracing::debug!(%error, "a forward found nothing");
            if leads_astray(&to, &error) {
                shared.note(&format!(" to {}", shown(&to)), StatusCode::FORBIDDEN).await;
            }
            reply.reject(ChannelOpenFailure::ConnectFailed).await;
        }
    }
}

/// The way into the instance that was named at sign-in, or the sentence that says why not: as for any program.
async fn way_in(shared: &Shared) -> Result<Box<Grant>, String> {
    let entered = match shared.target() {
        Ok(target) => waiting::enter_quietly(shared, target, Words::PLAIN).await,
        Err(error) => Err(error),
    };
    match entered {
        Ok(Entry::Open(grant)) => Ok(grant),
        Ok(Entry::Refused(sentence)) => Err(sentence),
        Ok(Entry::Declined) => Err(String::new()),
        Err(error) => {
            shared.note_refusal(&error).await;
            Err(Words::PLAIN.refusal(&error))
        }
    }
}

/// Whether a forward that failed was meant for something outside the instance, or for what is ours in it. Nothing that
/// listens inside is no more than a program that has not been started yet.
fn leads_astray(to: &Address, error: &AgentError) -> bool {
    match to {
        Address::Tcp { host, .. } => {
            let name = host.trim_end_matches('.').to_ascii_lowercase();
            let is_inside = |ip: IpAddr| ip.to_canonical().is_loopback() || ip.is_unspecified();
            host.parse().map_or(name != "localhost", |ip| !is_inside(ip))
        }
        Address::Unix { .. } => matches!(error, AgentError::Refused { refusal: Refusal::NotForUsers, .. }),
    }
}

fn shown(to: &Address) -> String {
    let text = match to {
        Address::Tcp { host, port } => format!("{host}:{port}"),
        Address::Unix { path } => path.clone(),
    };
    text.escape_debug().to_string()
}

/// Bytes between a channel and a connection of the instance, until both ways or the client have ended.
async fn carry(shared: &Shared, handle: &Handle, channel: Channel<Msg>, stream: Passed) {
    let number = channel.id().number();
    let (mut read, write) = channel.split();
    let inbox = Inbox::new(&shared.pressure, number);
    let outbox = Outbox { write, handle: handle.clone(), pressure: &shared.pressure };
    tokio::select! {
        () = inbox.fill(&mut read) => {}
        () = relay::stream(stream, &inbox, &outbox, None) => {}
        () = shared.over.cancelled() => {}
    }
}

/// Listens inside the instance until `stop`; every connection there becomes a channel to the client. One that starts when
/// it is needed is waited for.
pub(super) async fn listen(
    shared: &Arc<Shared>,
    handle: Handle,
    at: At,
    wanted: Listen,
    stop: CancellationToken,
) -> Option<(At, u16)> {
    let grant = timeout(START_LIMIT, way_in(shared)).await.ok()?.ok()?;
    let listener = match timeout(LISTEN_LIMIT, shared.app.agents.listen(grant.id(), wanted)).await.ok()? {
        Ok(listener) => listener,
        Err(error) => {
            tracing::debug!(%error, "a listener was refused");
            return None;
        }
    };
    let port = listener.port;
    let at = match at {
        At::Tcp { host, port: 0 } => At::Tcp { host, port: port.into() },
        at @ (At::Tcp { .. } | At::Unix { .. }) => at,
    };
    let (shared, opened) = (Arc::clone(shared), Opened::Listener(at.clone()));
    let tasks = shared.app.tasks.clone();
    tasks.spawn("ssh listener", accept(shared, handle, listener, opened, stop));
    Some((at, port))
}

/// What the client is told of a connection that came in.
#[derive(Debug, Clone)]
pub(super) enum Opened {
    Listener(At),
    /// The client's own key agent is asked.
    Agent,
}

/// Takes connections of a listener until `stop`, or until it or the client is gone.
pub(super) async fn accept(
    shared: Arc<Shared>,
    handle: Handle,
    mut listener: Listener,
    opened: Opened,
    stop: CancellationToken,
) {
    let work = async {
        while let Ok(stream) = listener.accept().await {
            // Past the bound a connection is closed at once.
            let Ok(place) = Arc::clone(&shared.channels).try_acquire_owned() else { continue };
            let work = offer(Arc::clone(&shared), handle.clone(), opened.clone(), stream, place);
            shared.app.tasks.spawn("ssh forward", work);
        }
    };
    tokio::select! {
        () = work => {}
        () = stop.cancelled() => {}
    }
}

/// Offers one connection to the client.
async fn offer(
    shared: Arc<Shared>,
    handle: Handle,
    opened: Opened,
    stream: Passed,
    _place: OwnedSemaphorePermit,
) {
    let open = async {
        match opened {
            Opened::Agent => handle.channel_open_agent().await,
            Opened::Listener(At::Unix { path }) => handle.channel_open_forwarded_streamlocal(path).await,
            Opened::Listener(At::Tcp { host, port }) => {
                let (from, from_port) = stream.peer().map_or_else(
                    || ("127.0.0.1".to_owned(), 0),
                    |peer| (peer.ip().to_canonical().to_string(), u32::from(peer.port())),
                );
                handle.channel_open_forwarded_tcpip(host, port, from, from_port).await
            }
        }
    };
    let channel = tokio::select! {
        channel = open => channel,
        () = shared.over.cancelled() => return,
    };
    match channel {
        Ok(channel) => carry(&shared, &handle, channel, stream).await,
        Err(error) => tracing::debug!(%error, "the client did not take a forwarded connection"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_inside_is_nobodys_business() {
        let nobody =
            || AgentError::Refused { refusal: Refusal::NothingListens, message: "nobody".to_owned() };
        for (host, astray) in [
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("0.0.0.0", false),
            ("LocalHost.", false),
            ("10.0.0.1", true),
            ("169.254.169.254", true),
            ("::ffff:10.0.0.1", true),
            ("gateway", true),
        ] {
            let to = Address::Tcp { host: host.to_owned(), port: 1 };
            assert_eq!(leads_astray(&to, &nobody()), astray, "{host}");
        }
        let to = Address::Unix { path: "/.berth/door/link/gateway.sock".to_owned() };
        let ours = AgentError::Refused { refusal: Refusal::NotForUsers, message: String::new() };
        assert!(leads_astray(&to, &ours) && !leads_astray(&to, &nobody()));
    }
}
