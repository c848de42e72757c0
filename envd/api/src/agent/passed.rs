//! A connected socket that an agent passed over: the app's own connection, with nothing in between.
//!
//! The sender keeps a copy if it likes, and flags such as `O_NONBLOCK` belong to the description that both share. So
//! nothing here relies on such a flag: every read and write says `MSG_DONTWAIT` itself, and a lingering close, which
//! would hold a thread of ours, is turned off before the descriptor is dropped.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use rustix::net::{AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketType, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd};

use super::ProtocolError;

/// Threads that may be stuck closing descriptors that turned out not to be sockets.
const CLOSERS_MAX: usize = 8;
/// Descriptors that may wait for such a thread.
const WAITING_MAX: usize = 64;

/// A connected stream socket that came from elsewhere. It is an ordinary byte stream, whatever its sender does.
#[derive(Debug)]
pub struct Passed {
    socket: AsyncFd<Socket>,
}

/// A descriptor known to be a socket, which never lingers when it is closed.
#[derive(Debug)]
struct Socket(OwnedFd);

// === impl Passed ===

impl Passed {
    /// Takes a descriptor that an agent sent, if it is a connected stream socket.
    pub(super) fn receive(fd: OwnedFd) -> Result<Self, ProtocolError> {
        // Asked first: on anything but a socket this answers at once, while `fstat` on a file of a file system that
        // the sender runs would wait for the sender.
        let Ok(kind) = sockopt::socket_type(&fd) else {
            discard(fd);
            return Err(ProtocolError::Descriptor("a descriptor that is not a socket"));
        };
        let socket = Socket(fd);
        let family = sockopt::socket_domain(&socket.0).map_err(io::Error::from)?;
        let known = [AddressFamily::INET, AddressFamily::INET6, AddressFamily::UNIX].contains(&family);
        if kind != SocketType::STREAM || !known {
            return Err(ProtocolError::Descriptor("a socket that is not a stream"));
        }
        if rustix::net::getpeername(&socket.0).is_err() {
            return Err(ProtocolError::Descriptor("a socket that is not connected"));
        }
        #[expect(
            deprecated,
            reason = "its replacement is unsafe; the descriptor that `Socket` names is its own"
        )]
        let socket = AsyncFd::with_interest(socket, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self { socket })
    }

    /// Wraps a connection of our own, for an agent that relays the bytes instead of passing a descriptor.
    pub fn relayed(stream: tokio::net::UnixStream) -> Result<Self, ProtocolError> {
        Self::receive(stream.into_std()?.into())
    }

    /// The address of the other end, where it has one.
    pub fn peer(&self) -> Option<std::net::SocketAddr> {
        rustix::net::getpeername(&self.socket.get_ref().0).ok()??.try_into().ok()
    }
}

impl AsyncRead for Passed {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        poll_read(&self.socket, |inner| &inner.0, context, buffer)
    }
}

/// Reads from the socket in what is watched, once there is something or the end.
pub(super) fn poll_read<T: AsRawFd>(
    watched: &AsyncFd<T>,
    socket: impl Fn(&T) -> &OwnedFd,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    loop {
        let mut guard = ready!(watched.poll_read_ready(context))?;
        match guard.try_io(|watched| read_into(socket(watched.get_ref()), buffer)) {
            Ok(Ok(read)) => {
                // Less than there was room for is all there was: the next to ask waits without asking in vain.
                if read > 0 && buffer.remaining() > 0 {
                    guard.clear_ready();
                }
                return Poll::Ready(Ok(()));
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => return Poll::Ready(Err(error)),
            Err(_would_block) => {}
        }
    }
}

impl AsyncWrite for Passed {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.socket.poll_write_ready(context))?;
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match guard.try_io(|socket| Ok(rustix::net::send(&socket.get_ref().0, bytes, flags)?)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(result) => return Poll::Ready(result),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.socket.poll_write_ready(context))?;
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let mut nothing = SendAncillaryBuffer::default();
            let sent = guard
                .try_io(|socket| Ok(rustix::net::sendmsg(&socket.get_ref().0, pieces, &mut nothing, flags)?));
            match sent {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(result) => return Poll::Ready(result),
                Err(_would_block) => {}
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match rustix::net::shutdown(&self.socket.get_ref().0, Shutdown::Write) {
            Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
            Err(error) => Err(error.into()),
        })
    }
}

/// Reads what is there, without filling the room for it with zeros before: that would cost as much as the reading.
#[expect(unsafe_code, reason = "ReadBuf has no safe way to be filled by the system")]
fn read_into(socket: &OwnedFd, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
    // SAFETY: nothing but `recv` gets the slice, and that only ever writes to it.
    let room = unsafe { buffer.unfilled_mut() };
    let ((filled, _), _) = rustix::net::recv(socket, room, RecvFlags::DONTWAIT)?;
    let read = filled.len();
    // SAFETY: these bytes are the ones that `recv` says it has written.
    unsafe { buffer.assume_init(read) };
    buffer.advance(read);
    Ok(read)
}

// === impl Socket ===

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _best_effort = sockopt::set_socket_linger(&self.0, None);
    }
}

/// Descriptors of unknown kind that wait to be closed, and the threads that close them.
static DISCARDED: Mutex<Discarded> = Mutex::new(Discarded { waiting: Vec::new(), threads: 0 });

struct Discarded {
    waiting: Vec<OwnedFd>,
    threads: usize,
}

/// Closes a descriptor of unknown kind without waiting for it: closing a file of a file system that the sender runs
/// waits for the sender. No more than [`CLOSERS_MAX`] threads wait so; what comes then waits for one of them.
pub(super) fn discard(fd: OwnedFd) {
    let mut discarded = DISCARDED.lock().unwrap_or_else(PoisonError::into_inner);
    discarded.waiting.push(fd);
    if discarded.threads < CLOSERS_MAX
        && std::thread::Builder::new().name("discard".to_owned()).spawn(close_discarded).is_ok()
    {
        discarded.threads += 1;
    }
}

/// Whether so many wait to be closed that no more must be taken.
pub(super) fn takes_no_more() -> bool {
    DISCARDED.lock().unwrap_or_else(PoisonError::into_inner).waiting.len() >= WAITING_MAX
}

fn close_discarded() {
    loop {
        let mut discarded = DISCARDED.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(fd) = discarded.waiting.pop() else {
            discarded.threads -= 1;
            return;
        };
        drop(discarded);
        drop(fd);
    }
}
