//! Connections that live for long: each ends soon after the session or token that opened it does.
//!
//! A request is checked when it comes, a terminal or a stream of events goes on for days. So every key that holds one
//! open is looked up again every few seconds, and at once when somebody was disabled or signed out here. The look goes
//! to the store, so it also sees keys that expired and those that another process (`gateway reset-password`) ended.
//!
//! Each costs memory and descriptors for as long as it is open, so a user can have only so many of each [`Kind`].

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use super::{Caller, token::TokenHash};
use crate::{
    app::App,
    error::{Error, chain},
    store::UserId,
    tasks::Bell,
};

/// How often all keys are looked up. Together with the look itself it stays below the five seconds that are promised.
const ROUND: Duration = Duration::from_secs(3);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A terminal, a process or a port.
    Process,
    Log,
    Events,
    /// A WebSocket of an app.
    App,
    Ssh,
}

/// The keys that hold connections open. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Live(Arc<All>);

#[derive(Debug)]
struct All {
    /// How many connections the gateway takes at each door.
    places: usize,
    keys: Mutex<HashMap<TokenHash, Entry>>,
    /// How many each user has open.
    counts: Mutex<HashMap<(UserId, Kind), usize>>,
    look: Notify,
    /// How often somebody may have lost a right.
    losses: AtomicU64,
}

#[derive(Debug, Default)]
struct Entry {
    ended: Bell,
    connections: usize,
    user: Option<UserId>,
}

/// A connection that is open.
#[derive(Debug)]
#[must_use]
pub(crate) struct Connection {
    live: Live,
    key: TokenHash,
    ended: Bell,
    counted: Option<(UserId, Kind)>,
}

impl Kind {
    /// The most that one user has open, of so many places in all: nobody takes more than half of them.
    const fn limit(self, places: usize) -> usize {
        match self {
            Self::Process => 256,
            Self::Log | Self::Events => 32,
            Self::App | Self::Ssh => places / 2,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Process => "terminals, processes and ports",
            Self::Log => "logs",
            Self::Events => "streams of events",
            Self::App => "connections to apps",
            Self::Ssh => "SSH connections",
        }
    }
}

impl Live {
    pub(crate) fn new(places: usize) -> Self {
        Self(Arc::new(All {
            places,
            keys: Mutex::default(),
            counts: Mutex::default(),
            look: Notify::new(),
            losses: AtomicU64::new(0),
        }))
    }

    /// Notes one more connection of `caller`, unless there are too many of that kind already.
    pub(crate) fn open(&self, caller: &Caller, kind: Kind) -> Result<Connection, Error> {
        self.open_by(*caller.key_hash(), caller.user.id, kind)
    }

    /// The same for a key of `user`'s.
    pub(crate) fn open_by(&self, key: TokenHash, user: UserId, kind: Kind) -> Result<Connection, Error> {
        let limit = kind.limit(self.0.places);
        let mut counts = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((user, kind)).or_default();
        if *count >= limit {
            return Err(Error::TooManyOpen { what: kind.words(), limit });
        }
        *count += 1;
        drop(counts);
        let mut connection = self.watch(key);
        if let Some(entry) = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&key) {
            entry.user = Some(user);
        }
        connection.counted = Some((user, kind));
        Ok(connection)
    }

    /// Watches a key for what takes no place of its own, such as an answer that is on its way.
    pub(crate) fn watch(&self, key: TokenHash) -> Connection {
        let mut keys = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = keys.entry(key).or_default();
        entry.connections += 1;
        Connection { live: self.clone(), key, ended: entry.ended.clone(), counted: None }
    }

    /// Somebody may have lost a right: look at once.
    pub(crate) fn look(&self) {
        self.0.losses.fetch_add(1, Ordering::Release);
        self.0.look.notify_one();
    }

    /// Changes whenever somebody may have lost a right: what was looked up before has to be looked up again.
    pub(crate) fn losses(&self) -> u64 {
        self.0.losses.load(Ordering::Acquire)
    }

    /// Closes all that a user has open, though the keys are good: they see what they may see now when they come again.
    pub(crate) fn end_of(&self, user: UserId) {
        let mut keys = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, entry) in keys.extract_if(|_, entry| entry.user == Some(user)) {
            entry.ended.ring();
        }
    }

    fn keys(&self) -> Vec<TokenHash> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    fn end(&self, key: &TokenHash) {
        if let Some(entry) = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(key) {
            entry.ended.ring();
        }
    }
}

impl Connection {
    /// Waits until the key that opened it is worth nothing any more.
    pub(crate) async fn ended(&self) {
        self.ended.rung().await;
    }

    /// Does `work` for as long as the key is good; what is open then is closed.
    pub(crate) async fn during(self, work: impl Future<Output = ()>) {
        if self.ended.unless_rung(work).await.is_none() {
            tracing::info!("a connection was closed: its key has ended");
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(key) = self.counted {
            let mut counts = self.live.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(count) = counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&key);
                }
            }
        }
        let mut keys = self.live.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        // A key that has ended is forgotten already; what stands there now may be its successor.
        if self.ended.is_rung() {
            return;
        }
        if let Some(entry) = keys.get_mut(&self.key) {
            entry.connections -= 1;
            if entry.connections == 0 {
                keys.remove(&self.key);
            }
        }
    }
}

/// Looks at all keys, round after round, until the process stops.
pub(crate) async fn run(app: Arc<App>) {
    let stopping = app.tasks.stopping();
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(ROUND) => {}
            () = app.live.0.look.notified() => {}
        }
        for key in app.live.keys() {
            match app.store.still_opens(&key).await {
                Ok(true) => {}
                Ok(false) => app.live.end(&key),
                Err(error) => tracing::error!(error = chain(&error), "cannot look at open connections"),
            }
        }
    }
}
