//! What clients have sent and nobody has taken yet.
//!
//! russh hands over what arrives one message at a time and waits until it is taken, output of the same connection
//! included, and it opens a channel's window again as soon as something has arrived. So a channel takes everything at
//! once and keeps it here, or `ssh host cat` would wait for itself. What keeps this small is [`Pressure`]: a channel
//! whose reader is behind is slowed down to its pace, and when the reader does not read at all the window stays shut.
//!
//! russh has one size of windows for a connection, and asks for the next when it has opened one. It is told what the
//! channel may have whose window that was: one that reads gets all of it after two bytes, one that does not gets two
//! bytes again. A client that goes on sending to who does not read takes windows that were meant for another channel, so
//! what all channels of a user hold is bounded as well ([`Backlogs`]); past that all of them wait.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use gateway_api::stream::Size;
use russh::{ChannelMsg, ChannelReadHalf, Sig};
use tokio::{sync::Notify, time::timeout};

use super::WINDOW_BYTES;

/// Above this a channel waits for its reader.
const SOFT_BYTES: usize = 1 << 20;
/// Above this its window is not opened any more: somebody has stopped reading.
const STALLED_BYTES: usize = 4 << 20;
/// Above this no window of a user is opened any more, and no channel either.
const USER_FULL_BYTES: usize = 64 << 20;
/// Above this the connection is closed on which more arrives: nobody needs that who keeps to their windows.
const USER_MAX_BYTES: usize = 256 << 20;
/// The smallest window that russh can be made to open; it asks again with every byte that comes.
const SHUT: u32 = 2;
/// How long a connection waits for a reader before it looks after the rest again: shorter when output waits too.
const PAUSE: Duration = Duration::from_millis(20);
const SHORT_PAUSE: Duration = Duration::from_millis(2);
/// Requests that wait with the data, such as changes of the window's size.
const REQUESTS_MAX: usize = 1024;

/// What all connections of each user hold, by the user's home.
#[derive(Debug, Default)]
pub(super) struct Backlogs(Mutex<HashMap<String, Weak<AtomicUsize>>>);

/// How far the readers of one connection are behind.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    levels: Mutex<HashMap<u32, Arc<Level>>>,
    of_user: OnceLock<Arc<AtomicUsize>>,
    /// Pieces of output that wait to be written.
    sending: AtomicUsize,
}

/// How far the reader of one channel is behind.
#[derive(Debug, Default)]
struct Level {
    bytes: AtomicUsize,
    relieved: Notify,
    /// What it counts towards as well, from its first byte to its last.
    of_user: Option<Arc<AtomicUsize>>,
}

/// What arrived on one channel.
#[derive(Debug)]
pub(super) struct Inbox<'a> {
    pressure: &'a Pressure,
    channel: u32,
    level: Arc<Level>,
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

// === impl Backlogs ===

impl Backlogs {
    /// What the connections of a user hold together.
    pub(super) fn of(&self, home: &str) -> Arc<AtomicUsize> {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = users.get(home).and_then(Weak::upgrade) {
            return held;
        }
        users.retain(|_, held| held.strong_count() > 0);
        let held = Arc::default();
        users.insert(home.to_owned(), Arc::downgrade(&held));
        held
    }
}

// === impl Pressure ===

impl Pressure {
    /// From here on what this connection holds counts as the user's.
    pub(super) fn is_of(&self, held: Arc<AtomicUsize>) {
        let _once = self.of_user.set(held);
    }

    /// Whether a user has so much unread that nothing more is opened.
    pub(super) fn is_full(&self) -> bool {
        self.held() > USER_FULL_BYTES
    }

    /// The window to open next, after that of `channel`.
    pub(super) fn window(&self, channel: u32) -> u32 {
        let stalled = self.level(channel).is_some_and(|level| level.behind() > STALLED_BYTES);
        if stalled || self.is_full() { SHUT } else { WINDOW_BYTES }
    }

    /// Holds the connection up for a moment while the reader of `channel`, on which something came, is behind.
    pub(super) async fn brake(&self, channel: u32) -> Result<(), russh::Error> {
        if self.held() > USER_MAX_BYTES {
            return Err(russh::Error::Inconsistent);
        }
        let Some(level) = self.level(channel).filter(|level| level.behind() > SOFT_BYTES) else {
            return Ok(());
        };
        let pause = if self.sending.load(Ordering::Relaxed) > 0 { SHORT_PAUSE } else { PAUSE };
        let relief = async {
            loop {
                let relieved = level.relieved.notified();
                if level.behind() <= SOFT_BYTES {
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

    fn held(&self) -> usize {
        self.of_user.get().map_or(0, |held| held.load(Ordering::Relaxed))
    }

    fn level(&self, channel: u32) -> Option<Arc<Level>> {
        self.levels().get(&channel).map(Arc::clone)
    }

    fn levels(&self) -> MutexGuard<'_, HashMap<u32, Arc<Level>>> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Level {
    fn behind(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn put_on(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(held) = &self.of_user {
            held.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn take_off(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(held) = &self.of_user {
            held.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.relieved.notify_one();
    }
}

// === impl Inbox ===

impl<'a> Inbox<'a> {
    pub(super) fn new(pressure: &'a Pressure, channel: u32) -> Self {
        let level = Arc::new(Level { of_user: pressure.of_user.get().cloned(), ..Level::default() });
        pressure.levels().insert(channel, Arc::clone(&level));
        Self { pressure, channel, level, queue: Mutex::default(), arrived: Notify::new() }
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
                    self.level.take_off(cost(data));
                }
                return input;
            }
            self.arrived.notified().await;
        }
    }

    /// Gives back what was taken and is for somebody else: it comes first again.
    pub(super) fn put_back(&self, data: Bytes) {
        if !data.is_empty() {
            self.level.put_on(cost(&data));
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
        self.level.take_off(left);
        let mut levels = self.pressure.levels();
        // The number may be another channel's already.
        if levels.get(&self.channel).is_some_and(|level| Arc::ptr_eq(level, &self.level)) {
            levels.remove(&self.channel);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts so many bytes into a channel.
    fn send(inbox: &Inbox<'_>, bytes: usize) {
        inbox.put_back(Bytes::from(vec![0; bytes]));
    }

    #[tokio::test]
    async fn a_channel_that_is_not_read_leaves_the_others_their_windows() {
        let pressure = Pressure::default();
        let (one, other) = (1, 2);
        let stuck = Inbox::new(&pressure, one);
        let _read = Inbox::new(&pressure, other);
        send(&stuck, STALLED_BYTES);
        assert_eq!((pressure.window(one), pressure.window(other)), (SHUT, WINDOW_BYTES));
        let begun = tokio::time::Instant::now();
        pressure.brake(other).await.unwrap();
        assert!(begun.elapsed() < PAUSE);
        pressure.brake(one).await.unwrap();
        assert!(begun.elapsed() >= PAUSE);
        drop(stuck);
        assert_eq!(pressure.window(one), WINDOW_BYTES);
    }

    #[tokio::test]
    async fn what_a_user_holds_is_bounded_over_all_connections() {
        // What arrived before it was known whose it is does not count, nor does its end.
        let early = Pressure::default();
        let inbox = Inbox::new(&early, 1);
        send(&inbox, 10);
        early.is_of(Arc::default());
        drop(inbox);
        assert_eq!(early.held(), 0);

        let (backlogs, user) = (Backlogs::default(), "alice");
        let connections = [Pressure::default(), Pressure::default()];
        for connection in &connections {
            connection.is_of(backlogs.of(user));
        }
        let somebody = Pressure::default();
        somebody.is_of(backlogs.of("bob"));
        let channel = 1;
        let inboxes = connections.each_ref().map(|connection| Inbox::new(connection, channel));
        send(&inboxes[0], USER_FULL_BYTES);
        assert!(connections[1].is_full() && connections[1].window(channel) == SHUT);
        assert!(!somebody.is_full());
        send(&inboxes[0], USER_MAX_BYTES - USER_FULL_BYTES);
        assert!(connections[1].brake(channel).await.is_err() && somebody.brake(channel).await.is_ok());
        drop(inboxes);
        assert!(!connections[0].is_full() && connections[1].brake(channel).await.is_ok());
        drop(connections);
        assert_eq!(backlogs.of(user).load(Ordering::Relaxed), 0);
    }
}
