//! What clients have sent and nobody has taken yet.
//!
//! russh hands over what arrives one message at a time and waits until it is taken, output of the same connection
//! included, and it opens a channel's window again as soon as something has arrived. So a channel takes everything at
//! once and keeps it here, or `ssh host cat` would wait for itself. [`Pressure`] keeps this small: it slows a channel down
//! to the pace of its reader, and keeps the window shut if the reader does not read at all.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use gateway_api::stream::Size;
use russh::{ChannelMsg, ChannelReadHalf, Sig};
use tokio::sync::Notify;

use super::pressure::{Level, Pressure};

/// Requests that wait with the data, such as changes of the window's size.
const REQUESTS_MAX: usize = 1024;

/// What arrived on one channel.
#[derive(Debug)]
pub(super) struct Inbox<'a> {
    pressure: &'a Pressure,
    channel: u32,
    level: Arc<Level>,
    queue: Mutex<VecDeque<Input>>,
    arrived: Notify,
    /// Names of signals, without `SIG`. They wait for nothing that came before them.
    signals: Mutex<VecDeque<String>>,
    signalled: Notify,
}

/// A piece of it, in its order.
#[derive(Debug)]
pub(super) enum Input {
    Data(Bytes),
    End,
    Resize(Size),
    /// A signal that has to wait for its turn after all.
    Signal(String),
}

// === impl Inbox ===

impl<'a> Inbox<'a> {
    pub(super) fn new(pressure: &'a Pressure, channel: u32) -> Self {
        Self {
            pressure,
            channel,
            level: pressure.watch(channel),
            queue: Mutex::default(),
            arrived: Notify::new(),
            signals: Mutex::default(),
            signalled: Notify::new(),
        }
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
                    self.level.put_on(cost(&data));
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
                ChannelMsg::Signal { signal } => self.put_signal(name(&signal)),
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
                    self.level.take_off(cost(data));
                }
                return input;
            }
            self.arrived.notified().await;
        }
    }

    /// What follows at once, if it is data and no longer than `most`.
    pub(super) fn more(&self, most: usize) -> Option<Bytes> {
        let next =
            self.queue().pop_front_if(|input| matches!(input, Input::Data(data) if data.len() <= most))?;
        let Input::Data(data) = next else { return None };
        self.level.take_off(cost(&data));
        Some(data)
    }

    /// The next signal. Cancel-safe.
    pub(super) async fn next_signal(&self) -> String {
        loop {
            if let Some(name) = self.signals().pop_front() {
                return name;
            }
            self.signalled.notified().await;
        }
    }

    /// Gives back what was taken and is for somebody else: it comes first again.
    pub(super) fn put_back(&self, data: Bytes) {
        if !data.is_empty() {
            self.level.put_on(cost(&data));
            self.put_first(Input::Data(data));
        }
    }

    /// Puts something before all that has arrived.
    pub(super) fn put_first(&self, input: Input) {
        self.queue().push_front(input);
        self.arrived.notify_one();
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

    fn put_signal(&self, name: &str) {
        let mut signals = self.signals();
        if signals.len() < REQUESTS_MAX {
            signals.push_back(name.to_owned());
            self.signalled.notify_one();
        }
    }

    fn signals(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Input>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inbox<'_> {
    fn drop(&mut self) {
        let left =
            self.queue().iter().map(|input| if let Input::Data(data) = input { cost(data) } else { 0 }).sum();
        self.level.take_off(left);
        self.pressure.forget(self.channel, &self.level);
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
