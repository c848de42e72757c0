//! The listening socket: bounded in connections, closed to users that are not the gateway's, envd's own or root.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{UnixListener, UnixStream, unix::SocketAddr},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};
use tracing::warn;

/// Connections at once: each follower of a log holds one.
const CONNECTIONS_MAX: usize = 2048;
/// After an accept that failed, such as for want of descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);

/// The control socket.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    allowed: Vec<u32>,
    places: Arc<Semaphore>,
}

/// One connection, with its place among all.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    place: OwnedSemaphorePermit,
}

impl Connection {
    /// Gives the connection over whole, with its place.
    pub(crate) fn into_parts(self) -> (UnixStream, OwnedSemaphorePermit) {
        (self.stream, self.place)
    }
}

impl Socket {
    /// Listens at `path` in place of whatever an earlier envd left there: the caller holds the data directory.
    pub(crate) fn bind(path: &Path, gateway_user: Option<u32>) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o660))?;
        if let Some(uid) = gateway_user {
            chown(path, Some(uid), None)?;
        }
        let own = rustix::process::geteuid().as_raw();
        let allowed = [0, own].into_iter().chain(gateway_user).collect();
        Ok(Self { listener, allowed, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)) })
    }
}

impl Listener for Socket {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                // Nobody closes it.
                sleep(ACCEPT_AGAIN).await;
                continue;
            };
            let (stream, address) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "cannot accept");
                    sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            };
            match stream.peer_cred() {
                Ok(peer) if self.allowed.contains(&peer.uid()) => {
                    return (Connection { stream, place }, address);
                }
                Ok(peer) => warn!(user = peer.uid(), "turned away a user who is not the gateway's"),
                Err(error) => warn!(%error, "turned away somebody unknown"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
