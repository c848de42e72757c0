//! Places for connections that nobody has signed in on yet: few in all, fewer for each source. Key exchange costs the
//! server more than the client, so this is counted before a byte is read.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::limits::network;

/// Connections without a user, in all and from one source.
const STRANGERS_MAX: usize = 512;
const STRANGERS_PER_SOURCE: usize = 64;

/// The counters. One per listener.
#[derive(Debug)]
pub(super) struct Gate {
    all: Arc<Semaphore>,
    strangers: Arc<Strangers>,
}

#[derive(Debug, Default)]
struct Strangers(Mutex<HashMap<IpAddr, usize>>);

/// A place, kept until the connection ends.
#[derive(Debug)]
pub(super) struct Place {
    _connection: OwnedSemaphorePermit,
    stranger: Option<Stranger>,
}

/// A place among the strangers, kept until somebody has signed in.
#[derive(Debug)]
struct Stranger {
    strangers: Arc<Strangers>,
    source: IpAddr,
}

impl Gate {
    pub(super) fn new(connections_max: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(connections_max)), strangers: Arc::default() }
    }

    /// A place for a connection from there, if one is free.
    pub(super) fn enter(&self, source: IpAddr) -> Option<Place> {
        let connection = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let source = network(source);
        let mut counts = self.strangers.0.lock().unwrap_or_else(PoisonError::into_inner);
        let here = counts.get(&source).copied().unwrap_or(0);
        if here >= STRANGERS_PER_SOURCE || counts.values().sum::<usize>() >= STRANGERS_MAX {
            return None;
        }
        counts.insert(source, here + 1);
        drop(counts);
        let stranger = Stranger { strangers: Arc::clone(&self.strangers), source };
        Some(Place { _connection: connection, stranger: Some(stranger) })
    }
}

impl Place {
    /// Somebody has signed in: the place among the strangers is free again.
    pub(super) fn known(&mut self) {
        self.stranger = None;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut counts = self.strangers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.source) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_few_and_fewer_from_one_source() {
        let gate = Gate::new(10_000);
        let source = |n: u8| IpAddr::from([10, 0, 0, n]);
        let mut places: Vec<_> = std::iter::from_fn(|| gate.enter(source(1))).collect();
        assert_eq!(places.len(), STRANGERS_PER_SOURCE);
        assert!(gate.enter(source(2)).is_some(), "others are let in");
        places[0].known();
        places.extend(gate.enter(source(1)));
        assert_eq!(places.len(), STRANGERS_PER_SOURCE + 1, "who has signed in is no stranger");
        for n in 2..=255 {
            places.extend(std::iter::from_fn(|| gate.enter(source(n))).take(10));
        }
        assert_eq!(places.len(), STRANGERS_MAX + 1);
        drop(places);
        assert!(gate.strangers.0.lock().unwrap().is_empty());
    }

    #[test]
    fn connections_are_limited_in_all() {
        let gate = Gate::new(2);
        let mut places: Vec<_> = std::iter::from_fn(|| gate.enter([10, 0, 0, 1].into())).collect();
        assert_eq!(places.len(), 2);
        places.iter_mut().for_each(Place::known);
        assert!(gate.enter([10, 0, 0, 2].into()).is_none());
    }
}
