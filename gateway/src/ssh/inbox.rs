//! What clients have sent and nobody has taken yet.
//!
//! russh hands over what arrives one message at a time and waits until it is taken, output of the same connection
//! included, and it opens a channel's window again as soon as something has arrived. So a channel takes everything at
//! once and keeps it here, or `ssh host cat` would wait for itself. What keeps this small is [`Pressure`]: a channel
//! whose reader is behind is slowed down to its pace, and when the reader does not read at all the window stays shut.
//!
//! russh has one size of windows for a connection, and asks for the next when it has opened one, whichever channel is
//! to get it. A channel that is not read gets two bytes each time, since one that gets nothing never comes back. Clients
//! answer in an order that stays the same, so it is foreseen who comes next ([`Windows`]): one that reads gets all, one
//! that does not gets its two bytes. Where a client does otherwise, a channel that is not read may get a window once more;
//! so what all channels of a user hold is bounded as well ([`Backlogs`]), and past that all of them wait.

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
    windows: Mutex<Windows>,
    of_user: OnceLock<Arc<AtomicUsize>>,
    /// Pieces of output that wait to be written.
    sending: AtomicUsize,
}

/// The channels whose windows are all but shut, in the order in which they will come back.
#[derive(Debug, Default)]
struct Windows(VecDeque<u32>);

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

    /// The window to open next, whoever comes for it; `channel` has just got `given`.
    pub(super) fn window(&self, channel: u32, given: u32) -> u32 {
        let levels = self.levels();
        let is_stalled = |channel: &u32| levels.get(channel).is_some_and(|level| level.is_stalled());
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        windows.gave(channel, given, is_stalled);
        let stalls = match windows.0.front() {
            Some(next) => is_stalled(next),
            None => levels.values().any(|level| level.is_stalled()),
        };
        if stalls || self.is_full() { SHUT } else { WINDOW_BYTES }
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

impl Windows {
    /// Notes who got what. Who comes before those that were to come first is not waited for any more: they are silent.
    fn gave(&mut self, channel: u32, given: u32, is_stalled: impl Fn(&u32) -> bool) {
        if let Some(place) = self.0.iter().position(|other| *other == channel) {
            self.0.drain(..=place);
        }
        if given == SHUT {
            self.0.push_back(channel);
        } else if is_stalled(&channel) {
            // It took what was meant for the first.
            self.0.pop_front();
        }
    }
}

impl Level {
    fn is_stalled(&self) -> bool {
        self.behind() > STALLED_BYTES
    }

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
        Self {
            pressure,
            channel,
            level,
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
        let mut levels = self.pressure.levels();
        // The number may be another channel's already.
        if levels.get(&self.channel).is_some_and(|level| Arc::ptr_eq(level, &self.level)) {
            levels.remove(&self.channel);
            let mut windows = self.pressure.windows.lock().unwrap_or_else(PoisonError::into_inner);
            windows.0.retain(|channel| *channel != self.channel);
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
    use futures_util::FutureExt as _;

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
        // Its next window is shut, whoever comes then; who reads has all of it the time after.
        assert_eq!(pressure.window(one, WINDOW_BYTES), SHUT);
        assert_eq!(pressure.window(other, SHUT), WINDOW_BYTES);
        assert!(matches!(pressure.brake(other).now_or_never(), Some(Ok(()))), "who reads is not held up");
        assert!(pressure.brake(one).now_or_never().is_none());
        pressure.brake(one).await.unwrap();
        drop(stuck);
        assert_eq!(pressure.window(one, SHUT), WINDOW_BYTES);
    }

    /// russh's side of one channel: what the client may still send, and what came in all.
    struct Sender {
        channel: u32,
        window: u32,
        /// What the client may send as far as it has heard.
        known: u32,
        came: u64,
    }

    /// A client that sends on all channels whatever it may, round after round, until one that is read has got `wanted`.
    /// What it sent to the one that is not read, and how many rounds it took.
    fn send_on_all(senders: &mut [Sender], unread: &Inbox<'_>, wanted: u64) -> (u64, u32) {
        const PACKET: u32 = 32 << 10;
        let (pressure, mut target, mut rounds) = (unread.pressure, WINDOW_BYTES, 0);
        let read = |senders: &[Sender]| {
            senders.iter().filter(|one| one.channel != unread.channel).map(|one| one.came).min()
        };
        while read(senders) < Some(wanted) {
            rounds += 1;
            assert!(rounds < 10_000, "it does not go on");
            for sender in &mut *senders {
                let mut budget = sender.known.min(64 * PACKET);
                while budget > 0 {
                    let data = budget.min(PACKET);
                    budget -= data;
                    sender.came += u64::from(data);
                    if sender.channel == unread.channel {
                        send(unread, data as usize);
                    }
                    // As russh has it.
                    sender.window -= data;
                    if sender.window < target / 2 {
                        sender.window = target;
                        target = pressure.window(sender.channel, target);
                    }
                }
            }
            for sender in &mut *senders {
                sender.known = sender.window;
            }
        }
        let unread = senders.iter().find(|one| one.channel == unread.channel).map_or(0, |one| one.came);
        (unread, rounds)
    }

    #[test]
    fn a_client_that_goes_on_sending_to_who_does_not_read_takes_little_from_the_others() {
        for stuck in 0..4 {
            let pressure = Pressure::default();
            let inboxes: Vec<_> = (0..4).map(|channel| Inbox::new(&pressure, channel)).collect();
            let sender = |channel| Sender { channel, window: WINDOW_BYTES, known: WINDOW_BYTES, came: 0 };
            let mut senders: Vec<_> = (0..4).map(sender).collect();
            let wanted = 64 * u64::from(WINDOW_BYTES);
            let (unread, rounds) = send_on_all(&mut senders, &inboxes[stuck], wanted);
            assert!(unread < 4 * u64::from(WINDOW_BYTES), "channel {stuck}: {} MiB", unread >> 20);
            // Without it they would need four rounds for each window.
            assert!(rounds < 64 * 10, "channel {stuck}: {rounds} rounds");
        }
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
        assert!(connections[1].is_full() && connections[1].window(channel, WINDOW_BYTES) == SHUT);
        assert!(!somebody.is_full());
        send(&inboxes[0], USER_MAX_BYTES - USER_FULL_BYTES);
        assert!(connections[1].brake(channel).await.is_err() && somebody.brake(channel).await.is_ok());
        drop(inboxes);
        assert!(!connections[0].is_full() && connections[1].brake(channel).await.is_ok());
        drop(connections);
        assert_eq!(backlogs.of(user).load(Ordering::Relaxed), 0);
    }
}
