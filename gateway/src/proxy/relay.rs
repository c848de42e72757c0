//! Bytes between two connections that are no longer HTTP, each way at the pace of its receiver.
//!
//! Thousands of these are idle at a time, so an idle one holds no buffer: what can be read is read into a buffer that
//! all relays of a thread share and written on at once. Only what the other side does not take is kept.

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

/// How much is read at once.
const PIECE: usize = 64 << 10;
/// How long one side may go on after the other has said that nothing more will come.
const HALF_OPEN_LIMIT: Duration = Duration::from_mins(5);

thread_local! {
    static PIECES: RefCell<Vec<u8>> = RefCell::new(vec![0; PIECE]);
}

/// One way.
struct Flow {
    /// What was read and is not written yet.
    kept: Bytes,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Open,
    Flushing,
    Closing,
    Closed,
}

/// Copies both ways until both are done or one breaks. A future by hand: one that the compiler makes holds both
/// connections twice.
pub(super) struct Relay<A, B> {
    first: A,
    second: B,
    there: Flow,
    back: Flow,
    /// Runs once one way is done. Boxed: whoever is idle pays for it only once it matters.
    limit: Option<Pin<Box<Sleep>>>,
}

impl<A, B> Relay<A, B> {
    /// `from_first` and `from_second` are what was read of each before.
    pub(super) fn new(first: A, second: B, from_first: Bytes, from_second: Bytes) -> Self {
        let flow = |kept: Bytes| {
            let state = if kept.is_empty() { State::Open } else { State::Flushing };
            Flow { kept, state }
        };
        Self { first, second, there: flow(from_first), back: flow(from_second), limit: None }
    }
}

impl<A, B> Future for Relay<A, B>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { first, second, there, back, limit } = &mut *self;
        let there_done = there.poll(context, first, second)?.is_ready();
        let back_done = back.poll(context, second, first)?.is_ready();
        if there_done && back_done {
            return Poll::Ready(Ok(()));
        }
        if there_done || back_done {
            let limit = limit.get_or_insert_with(|| Box::pin(tokio::time::sleep(HALF_OPEN_LIMIT)));
            return limit.as_mut().poll(context).map(Ok);
        }
        Poll::Pending
    }
}

impl Flow {
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        loop {
            while !self.kept.is_empty() {
                let written = ready!(Pin::new(&mut *to).poll_write(context, &self.kept))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.kept.advance(written);
            }
            // Empty bytes still hold on to the buffer that they are a part of, for as long as the connection lives.
            self.kept = Bytes::new();
            match self.state {
                State::Open => ready!(self.carry(context, from, to))?,
                State::Flushing => {
                    // TLS keeps what it was given until it is told that there is no more for now.
                    ready!(Pin::new(&mut *to).poll_flush(context))?;
                    self.state = State::Open;
                    ready!(self.carry(context, from, to))?;
                }
                State::Closing => {
                    ready!(Pin::new(&mut *to).poll_shutdown(context))?;
                    self.state = State::Closed;
                }
                State::Closed => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Reads once and writes as much of it as the other side takes.
    fn carry(
        &mut self,
        context: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        PIECES.with_borrow_mut(|piece| {
            let mut buffer = ReadBuf::new(piece);
            ready!(Pin::new(&mut *from).poll_read(context, &mut buffer))?;
            let mut read = buffer.filled();
            if read.is_empty() {
                self.state = State::Closing;
                return Poll::Ready(Ok(()));
            }
            self.state = State::Flushing;
            while !read.is_empty() {
                match Pin::new(&mut *to).poll_write(context, read) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(written)) => read = &read[written..],
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        self.kept = Bytes::copy_from_slice(read);
                        break;
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn an_idle_relay_holds_nothing_of_what_it_was_given() {
        let (mut browser, near) = duplex(1000);
        let (far, mut app) = duplex(1000);
        let buffers = [vec![1_u8; 8192], Vec::new()].map(std::sync::Arc::<[u8]>::from);
        let [full, empty] = buffers.each_ref().map(|buffer| Bytes::from_owner(std::sync::Arc::clone(buffer)));
        let talk = async {
            let mut seen = vec![0; 8192];
            app.read_exact(&mut seen).await.unwrap();
            // An answer that came back was carried after all that was there before.
            app.write_all(b"x").await.unwrap();
            browser.read_u8().await.unwrap();
            assert_eq!(buffers.each_ref().map(std::sync::Arc::strong_count), [1, 1]);
        };
        tokio::select! {
            ended = Relay::new(near, far, full, empty) => panic!("{ended:?}"),
            () = talk => {}
        }
    }

    #[tokio::test]
    async fn both_ways_at_once_with_small_windows_and_half_closes() {
        let (mut browser, near) = duplex(1000);
        let (far, mut app) = duplex(700);
        let relayed = Relay::new(near, far, Bytes::from_static(b"early"), Bytes::from_static(b"first"));
        let load: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        let talk = async {
            let (mut browser_reads, mut browser_writes) = tokio::io::split(&mut browser);
            let (mut app_reads, mut app_writes) = tokio::io::split(&mut app);
            let up = async {
                browser_writes.write_all(&load).await.unwrap();
                browser_writes.shutdown().await.unwrap();
            };
            let down = async {
                let mut seen = Vec::new();
                app_reads.read_to_end(&mut seen).await.unwrap();
                assert_eq!((&seen[..5], seen[5..] == load), (&b"early"[..], true));
                // The browser has said that nothing more comes; the app may still answer.
                app_writes.write_all(&load).await.unwrap();
                app_writes.shutdown().await.unwrap();
            };
            let back = async {
                let mut seen = Vec::new();
                browser_reads.read_to_end(&mut seen).await.unwrap();
                assert_eq!((&seen[..5], seen[5..] == load), (&b"first"[..], true));
            };
            tokio::join!(up, down, back);
        };
        let (result, ()) = tokio::join!(relayed, talk);
        result.unwrap();
    }
}
