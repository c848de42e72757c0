//! A client's TCP connection with a string attached: cut, it reads and writes nothing more, whatever russh is doing.
//!
//! russh reads the length of each packet by itself. Here it comes with the packet before it, or with its own: a key that is
//! typed takes one call, and so does a packet of many.

use std::{
    io::{self, IoSliceMut},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// What is read beyond what is asked for.
const AHEAD: usize = 512;

#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    /// What has come and was not asked for yet, and where that begins and ends.
    ahead: Box<[u8; AHEAD]>,
    begin: usize,
    end: usize,
    // Two: reading and writing may wait in two tasks.
    cut_read: Pin<Box<WaitForCancellationFutureOwned>>,
    cut_write: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, cut: &CancellationToken) -> Self {
        let wait = || Box::pin(cut.clone().cancelled_owned());
        Self { stream, ahead: Box::new([0; AHEAD]), begin: 0, end: 0, cut_read: wait(), cut_write: wait() }
    }

    /// Reads into `wanted`, and what there is beyond it into what is ahead; how much of all that came.
    fn read_now(&mut self, wanted: &mut [u8]) -> io::Result<usize> {
        let room = wanted.len() + AHEAD;
        let mut slices = [IoSliceMut::new(wanted), IoSliceMut::new(&mut self.ahead[..])];
        let mut read = None;
        let tried = self.stream.try_io(Interest::READABLE, || {
            let some = *read.insert(rustix::io::readv(&self.stream, &mut slices)?);
            // Less than there is room for is all that there is: it need not be tried again to know.
            if 0 < some && some < room { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(some) }
        });
        read.map_or(tried, Ok)
    }
}

fn gone<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.cut_read.as_mut().poll(context).is_ready() {
            return gone();
        }
        if self.begin == self.end && buffer.remaining() > 0 {
            let (came, asked) = loop {
                ready!(self.stream.poll_read_ready(context))?;
                let wanted = buffer.initialize_unfilled();
                match self.read_now(wanted) {
                    Ok(came) => break (came, came.min(wanted.len())),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
            };
            buffer.advance(asked);
            (self.begin, self.end) = (0, came - asked);
            return Poll::Ready(Ok(()));
        }
        let end = self.end.min(self.begin + buffer.remaining());
        buffer.put_slice(&self.ahead[self.begin..end]);
        self.begin = end;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.cut_write.as_mut().poll(context).is_ready() {
            return gone();
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.cut_write.as_mut().poll(context).is_ready() {
            return gone();
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    #[tokio::test]
    async fn what_comes_is_read_in_order_whatever_is_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let cut = CancellationToken::new();
        let mut wire = Wire::new(listener.accept().await.unwrap().0, &cut);
        let data: Vec<u8> = (0..2_u32 << 20).map(|at| (at % 251).to_le_bytes()[0]).collect();
        let send = async {
            // A short one by itself, then more than is read at once.
            client.write_all(&data[..40]).await.unwrap();
            tokio::task::yield_now().await;
            client.write_all(&data[40..]).await.unwrap();
            client.shutdown().await.unwrap();
        };
        let read = async {
            let (mut at, mut lengths) =
                (0, [4, 36, 4, 32_768, 1, AHEAD, AHEAD + 1, 3 * AHEAD].iter().cycle());
            while at < data.len() {
                let mut some = vec![0; (*lengths.next().unwrap()).min(data.len() - at)];
                wire.read_exact(&mut some).await.unwrap();
                assert!(some == data[at..at + some.len()], "{} bytes at {at}", some.len());
                at += some.len();
            }
            assert_eq!(wire.read(&mut [0; 9]).await.unwrap(), 0);
            cut.cancel();
            assert!(wire.read(&mut [0; 9]).await.is_err());
        };
        tokio::join!(send, read);
    }
}
