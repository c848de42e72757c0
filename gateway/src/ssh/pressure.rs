//! How far the readers of one SSH connection are behind, and which windows its client gets.
//!
//! russh opens the window of a channel when data arrives on it, always to the connection's current target, and only then
//! asks for the next target. So the size is chosen before it is known which channel gets it:
//!
//! - A channel whose reader stopped (stalled) gets [`SHUT`] bytes. With nothing at all it would never come back.
//! - Clients answer in a stable order, so [`Windows`] predicts the next channel. If that one is read, it gets a large window.
//! - If the prediction is wrong, a stalled channel gets the large window. russh opens a window again once less than half of
//!   the target is left of it. So while the stalled channel's client sends, the target is at most half of what it has
//!   left; otherwise it would get the next window too, and the one after that.
//! - Every mistake costs memory, so less is at stake the more the user's channels hold ([`Pressure::stake`]). The stake never
//!   becomes nothing: a channel that is read makes progress, whatever the others do.
//!
//! What all channels of a user hold is bounded ([`Backlogs`]). Above the bound only channels that keep up get windows.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use super::WINDOW_BYTES;

/// Above this a channel waits for its reader.
const SOFT_BYTES: usize = 1 << 20;
/// Above this a channel is stalled.
const STALLED_BYTES: usize = 4 << 20;
/// Above this a user opens no more channels, and a channel is stalled from [`CROWDED_BYTES`] on.
const USER_FULL_BYTES: usize = 64 << 20;
const CROWDED_BYTES: usize = 64 << 10;
/// Above this the connection that sends more is closed. Clients that keep to their windows stay far below.
const USER_MAX_BYTES: usize = 256 << 20;
/// The smallest window that russh can open: it asks for the next target at each byte.
const SHUT: u32 = 2;
/// The least that is at stake: one packet of OpenSSH.
const STAKE_MIN: u32 = 32 << 10;
/// How many wrong predictions in a row would fill what the user has left, if the stake stayed the same.
const MISTAKES: usize = 16;
/// How long a connection waits for a reader before it serves its other channels again: shorter if output waits too.
const PAUSE: Duration = Duration::from_millis(20);
const SHORT_PAUSE: Duration = Duration::from_millis(2);

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

/// The windows of a connection's channels.
#[derive(Debug, Default)]
struct Windows {
    /// The channels that got [`SHUT`] bytes, in the order in which they will come back.
    order: VecDeque<u32>,
    open: HashMap<u32, Window>,
}

/// What the client may still send on one channel. Kept as russh keeps it, which does not tell.
#[derive(Debug)]
struct Window {
    left: u32,
    /// Opened by the message that is being handled, whose data is already counted.
    is_fresh: bool,
    /// Targets that were chosen since data came last.
    quiet: usize,
}

/// How far the reader of one channel is behind.
#[derive(Debug, Default)]
pub(super) struct Level {
    bytes: AtomicUsize,
    relieved: Notify,
    /// The count of the user, which includes this one.
    of_user: Option<Arc<AtomicUsize>>,
}

// === impl Backlogs ===

impl Backlogs {
    /// Returns the count of what the connections of a user hold together.
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
    /// Counts what this connection holds from now on towards `held`, the user's count.
    pub(super) fn is_of(&self, held: Arc<AtomicUsize>) {
        let _once = self.of_user.set(held);
    }

    /// True if a user holds so much unread data that no more channels are opened.
    pub(super) fn is_full(&self) -> bool {
        self.held() > USER_FULL_BYTES
    }

    /// Starts to watch a channel, as long as the caller keeps the level: see [`Pressure::forget`].
    pub(super) fn watch(&self, channel: u32) -> Arc<Level> {
        let level = Arc::new(Level { of_user: self.of_user.get().cloned(), ..Level::default() });
        self.levels().insert(channel, Arc::clone(&level));
        self.windows().open.insert(channel, Window::default());
        level
    }

    /// Ends the watch of a channel, unless its number is another channel's already.
    pub(super) fn forget(&self, channel: u32, level: &Arc<Level>) {
        let mut levels = self.levels();
        if levels.get(&channel).is_some_and(|other| Arc::ptr_eq(other, level)) {
            levels.remove(&channel);
            self.windows().forget(channel);
        }
    }

    /// Returns the next target, after `channel` got a window of `given` bytes.
    pub(super) fn window(&self, channel: u32, given: u32) -> u32 {
        let stalled_at = if self.is_full() { CROWDED_BYTES } else { STALLED_BYTES };
        let levels = self.levels();
        let is_stalled = |channel: &u32| levels.get(channel).is_some_and(|level| level.behind() > stalled_at);
        let mut windows = self.windows();
        windows.gave(channel, given, is_stalled);
        let any_stalls = levels.keys().any(is_stalled);
        let shut = windows.order.front().map_or(any_stalls, is_stalled);
        if shut {
            SHUT
        } else if any_stalls || self.is_full() {
            self.stake().min(windows.too_little_to_grow(is_stalled))
        } else {
            WINDOW_BYTES
        }
    }

    /// Notes that `bytes` came on `channel`, and pauses the connection for a moment while the channel's reader is behind.
    ///
    /// # Errors
    /// The user holds too much: the connection ends.
    pub(super) async fn arrived(&self, channel: u32, bytes: usize) -> Result<(), russh::Error> {
        let left = self.windows().arrived(channel, bytes);
        if self.held() > USER_MAX_BYTES {
            return Err(russh::Error::Inconsistent);
        }
        let Some(level) = self.level(channel).filter(|level| level.behind() > SOFT_BYTES) else {
            return Ok(());
        };
        // The rest of a stalled channel's window comes in any case: pauses would only delay what is behind it.
        if level.behind() > STALLED_BYTES && left > SHUT {
            return Ok(());
        }
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

    /// Counts a piece of output as waiting as long as `write` runs.
    pub(super) async fn sending<T>(&self, write: impl Future<Output = T>) -> T {
        self.sending.fetch_add(1, Ordering::Relaxed);
        let done = write.await;
        self.sending.fetch_sub(1, Ordering::Relaxed);
        done
    }

    /// Returns the window that the predicted channel gets while another is stalled and could take it.
    fn stake(&self) -> u32 {
        let left = USER_FULL_BYTES.saturating_sub(self.held()) / MISTAKES;
        u32::try_from(left).unwrap_or(WINDOW_BYTES).clamp(STAKE_MIN, WINDOW_BYTES)
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

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Windows ===

impl Windows {
    /// Notes who got what. A channel that comes before its turn shows that those before it are silent: they lose theirs.
    fn gave(&mut self, channel: u32, given: u32, is_stalled: impl Fn(&u32) -> bool) {
        for window in self.open.values_mut() {
            window.quiet += 1;
        }
        if let Some(window) = self.open.get_mut(&channel) {
            *window = Window { left: given, is_fresh: true, quiet: 0 };
        }
        if let Some(place) = self.order.iter().position(|other| *other == channel) {
            self.order.drain(..=place);
        }
        if given == SHUT {
            self.order.push_back(channel);
        } else if is_stalled(&channel) {
            // It took the window of the first.
            self.order.pop_front();
        }
    }

    /// Notes that data came and returns how much more the client may send on that channel.
    fn arrived(&mut self, channel: u32, bytes: usize) -> u32 {
        let Some(window) = self.open.get_mut(&channel) else { return 0 };
        window.quiet = 0;
        if !std::mem::take(&mut window.is_fresh) {
            window.left = window.left.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        window.left
    }

    /// Returns the largest target that opens no window of a stalled channel whose client is sending, before half of it is used up.
    fn too_little_to_grow(&self, is_stalled: impl Fn(&u32) -> bool) -> u32 {
        // In one round each channel comes at most once for a window.
        let rounds = 2 * self.open.len();
        let sends = |(channel, window): &(&u32, &Window)| {
            window.left > SHUT && window.quiet <= rounds && is_stalled(channel)
        };
        let least = self.open.iter().filter(sends).map(|(_, window)| window.left).min();
        least.map_or(WINDOW_BYTES, |left| (left / 2).max(SHUT))
    }

    fn forget(&mut self, channel: u32) {
        self.open.remove(&channel);
        self.order.retain(|other| *other != channel);
    }
}

impl Default for Window {
    fn default() -> Self {
        Self { left: WINDOW_BYTES, is_fresh: false, quiet: 0 }
    }
}

// === impl Level ===

impl Level {
    pub(super) fn put_on(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(held) = &self.of_user {
            held.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    pub(super) fn take_off(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(held) = &self.of_user {
            held.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.relieved.notify_one();
    }

    fn behind(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "pressure_tests.rs"]
mod tests;
