//! What clients have sent and nobody has taken yet.
//!
//! russh hands over what arrives one message at a time and waits until it is taken, output of the same connection
//! included, and it opens a channel's window again as soon as something has arrived. So a channel takes everything at
//! once and keeps it here, or `ssh host cat` would wait for itself. What keeps this small is [`Pressure`]: the
//! connection is slowed down to the pace of its readers, and when a reader does not read at all the window stays shut.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use gateway_api::stream::Size;
use russh::{ChannelMsg, ChannelReadHalf, Sig};
use tokio::{sync::Notify, time::timeout};

use super::WINDOW_BYTES;

/// Above this a connection waits for its readers.
const SOFT_BYTES: usize = 1 << 20;
/// Above this no window is opened any more: somebody has stopped reading.
const STALLED_BYTES: usize = 4 << 20;
/// More than a client can have sent that keeps to its windows.
const OVERFLOW_BYTES: usize = 64 << 20;
/// The smallest window that russh can be made to open; it asks again with every byte that comes.
const SHUT: u32 = 2;
/// How long a connection waits for a reader before it looks after the rest again: shorter when output waits too.
const PAUSE: Duration = Duration::from_millis(20);
const SHORT_PAUSE: Duration = Duration::from_millis(2);
/// Requests that wait with the data, such as changes of the window's size.
const REQUESTS_MAX: usize = 1024;

/// How far the readers of one connection are behind.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    bytes: AtomicUsize,
    relieved: Notify,
    /// Pieces of output that wait to be written.
    sending: AtomicUsize,
}

/// What arrived on one channel.
#[derive(Debug)]
pub(super) struct Inbox<'a> {
    pressure: &'a Pressure,
    queue: Mutex<VecDeque<Input>>,
    arrived: Notify,
}

/// A piece of it, in its order.
#[derive(Debug)]
pub(super) enum Input {
    Data(Bytes),
    End,
    Resize(Size),
    /// A signal's name without `SIG`.
    Signal(String),
}

// === impl Pressure ===

impl Pressure {
    /// The window to open next.
    pub(super) fn window(&self) -> u32 {
        if self.bytes.load(Ordering::Relaxed) > STALLED_BYTES { SHUT } else { WINDOW_BYTES }
    }

    /// Holds the connection up for a moment while its readers are behind.
    pub(super) async fn brake(&self) -> Result<(), russh::Error> {
        let behind = self.bytes.load(Ordering::Relaxed);
        if behind <= SOFT_BYTES {
            return Ok(());
        }
        if behind > OVERFLOW_BYTES {
            // It does not keep to its windows.
            return Err(russh::Error::Inconsistent);
        }
        let pause = if self.sending.load(Ordering::Relaxed) > 0 { SHORT_PAUSE } else { PAUSE };
        let relief = async {
            loop {
                let relieved = self.relieved.notified();
                if self.bytes.load(Ordering::Relaxed) <= SOFT_BYTES {
                    return;
                }
                relieved.await;
            }
        };
        let _or_not = timeout(pause, relief).await;
        Ok(())
    }

    /// Notes that output waits for as long as `write` does.
    pub(super) async fn sending<T>(&self, write: impl Future<Output = T>) -> T {
        self.sending.fetch_add(1, Ordering::Relaxed);
        let done = write.await;
        self.sending.fetch_sub(1, Ordering::Relaxed);
        done
    }

    fn take_off(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.relieved.notify_one();
    }
}

// === impl Inbox ===

impl<'a> Inbox<'a> {
    pub(super) fn new(pressure: &'a Pressure) -> Self {
        Self { pressure, queue: Mutex::default(), arrived: Notify::new() }
    }

    /// Takes what arrives, until the client has closed the channel or the connection.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "russh's messages grow; all else was answered where it arrived"
    )]
    pub(super) async fn fill(&self, channel: &mut ChannelReadHalf) {
        let mut ended = false;
        while let Some(message) = channel.wait().await {
            match message {
                ChannelMsg::Data { data } if data.is_empty() => {}
                ChannelMsg::Data { data } => {
                    self.pressure.bytes.fetch_add(cost(&data), Ordering::Relaxed);
                    self.put(Input::Data(data));
                }
                ChannelMsg::Eof if ended => {}
                ChannelMsg::Eof => {
                    ended = true;
                    self.put(Input::End);
                }
                ChannelMsg::WindowChange { col_width, row_height, .. } => {
                    self.put_request(Input::Resize(size(col_width, row_height)));
                }
                ChannelMsg::Signal { signal } => self.put_request(Input::Signal(name(&signal).to_owned())),
                ChannelMsg::Close => return,
                _ => {}
            }
        }
    }

    /// The next piece. Cancel-safe.
    pub(super) async fn next(&self) -> Input {
        loop {
            if let Some(input) = self.queue().pop_front() {
                if let Input::Data(data) = &input {
                    self.pressure.take_off(cost(data));
                }
                return input;
            }
            self.arrived.notified().await;
        }
    }

    /// Gives back what was taken and is for somebody else: it comes first again.
    pub(super) fn put_back(&self, data: Bytes) {
        if !data.is_empty() {
            self.pressure.bytes.fetch_add(cost(&data), Ordering::Relaxed);
            self.queue().push_front(Input::Data(data));
            self.arrived.notify_one();
        }
    }

    fn put(&self, input: Input) {
        self.queue().push_back(input);
        self.arrived.notify_one();
    }

    /// Of too many requests the rest is dropped.
    fn put_request(&self, input: Input) {
        if self.queue().len() < REQUESTS_MAX {
            self.put(input);
        }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Input>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inbox<'_> {
    fn drop(&mut self) {
        let left =
            self.queue().iter().map(|input| if let Input::Data(data) = input { cost(data) } else { 0 }).sum();
        self.pressure.take_off(left);
    }
}

/// What keeping it costs: a client that sends byte by byte must not look small.
fn cost(data: &Bytes) -> usize {
    const PIECE: usize = 128;
    data.len() + PIECE
}

/// A size as clients send it, cut to what a terminal can have.
pub(super) fn size(cols: u32, rows: u32) -> Size {
    let cut = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    Size { cols: cut(cols), rows: cut(rows) }
}

fn name(signal: &Sig) -> &str {
    match signal {
        Sig::ABRT => "ABRT",
        Sig::ALRM => "ALRM",
        Sig::FPE => "FPE",
        Sig::HUP => "HUP",
        Sig::ILL => "ILL",
        Sig::INT => "INT",
        Sig::KILL => "KILL",
        Sig::PIPE => "PIPE",
        Sig::QUIT => "QUIT",
        Sig::SEGV => "SEGV",
        Sig::TERM => "TERM",
        Sig::USR1 => "USR1",
        Sig::Custom(name) => name,
    }
}
