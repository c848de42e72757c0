//! The halves of a connection: what comes is always watched for, room to send only while there is none.
//!
//! Whoever reads from a unix socket tells its other end each time that there is room again. An end that is watched for it
//! all the time is woken for nothing by every piece that it sends: once for each key that is typed.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd},
    net::UnixStream,
};

use super::passed::poll_read;

/// The reading half.
#[derive(Debug)]
pub struct ReadHalf {
    socket: AsyncFd<Arc<OwnedFd>>,
}

/// The writing half. The other end sees the end when it is dropped.
#[derive(Debug)]
pub struct WriteHalf {
    socket: Arc<OwnedFd>,
    room: Room,
}

/// The watch for room to write, while there is none.
#[derive(Debug, Default)]
struct Room(Option<AsyncFd<OwnedFd>>);

/// Both halves of a connection.
pub fn halves(stream: UnixStream) -> io::Result<(ReadHalf, WriteHalf)> {
    let socket = Arc::new(OwnedFd::from(stream.into_std()?));
    let read = ReadHalf { socket: watch(Arc::clone(&socket), Interest::READABLE)? };
    Ok((read, WriteHalf { socket, room: Room::default() }))
}

/// Does `write` to a descriptor that does not block, again when there is room if there is none.
pub async fn when_room<T>(to: BorrowedFd<'_>, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut room = Room::default();
    std::future::poll_fn(|context| room.poll(context, to, &mut write)).await
}

fn watch<T: AsFd + std::os::fd::AsRawFd>(descriptor: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    #[expect(deprecated, reason = "its replacement is unsafe; the descriptor that is given away is its own")]
    AsyncFd::with_interest(descriptor, interest)
}

// === impl Room ===

impl Room {
    fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        to: BorrowedFd<'_>,
        mut write: impl FnMut() -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            let Some(room) = &self.0 else {
                match write() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        // A copy: one descriptor can be watched once.
                        self.0 = Some(watch(to.try_clone_to_owned()?, Interest::WRITABLE)?);
                        continue;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    written => return Poll::Ready(written),
                }
            };
            match ready!(room.poll_write_ready(context))?.try_io(|_| write()) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(written) => {
                    self.0 = None;
                    return Poll::Ready(written);
                }
                Err(_would_block) => {}
            }
        }
    }
}

// === impl ReadHalf ===

impl ReadHalf {
    /// Waits until something has come, or the end.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await.map(|mut ready| ready.retain_ready())
    }

    /// Does `read`; when it would block, [`Self::readable`] waits again.
    pub fn try_io<T>(&self, read: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.socket.try_io(Interest::READABLE, |_| read())
    }
}

impl AsFd for ReadHalf {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        poll_read(&self.socket, |socket| socket, context, buffer)
    }
}

// === impl WriteHalf ===

impl AsyncWrite for WriteHalf {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { socket, room } = &mut *self;
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        room.poll(context, socket.as_fd(), || {
            Ok(rustix::net::sendmsg(&*socket, pieces, &mut SendAncillaryBuffer::default(), flags)?)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match rustix::net::shutdown(&self.socket, Shutdown::Write) {
            Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
            Err(error) => Err(error.into()),
        })
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        let _closed_before = rustix::net::shutdown(&self.socket, Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_waits_for_room_and_arrives() {
        let (near, far) = UnixStream::pair().unwrap();
        let ((_, mut write), (mut read, _kept)) = (halves(near).unwrap(), halves(far).unwrap());
        let data: Vec<u8> = (0..4_u32 << 20).map(|at| (at % 251).to_le_bytes()[0]).collect();
        let send = async {
            write.write_all(&data).await.unwrap();
            let socket = write.socket.as_fd();
            let sent = when_room(socket, || Ok(rustix::io::write(socket, b"end")?)).await.unwrap();
            assert_eq!(sent, 3);
            assert!(write.room.0.is_none());
            drop(write);
        };
        let mut came = Vec::new();
        let ((), length) = tokio::join!(send, read.read_to_end(&mut came));
        assert_eq!(length.unwrap(), data.len() + 3);
        assert!(came.strip_suffix(b"end").unwrap() == data);
    }
}
