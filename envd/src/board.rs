//! What is known, in memory: reads answer at once, however the engine feels, and watchers hear of each change.
//!
//! A change is written and told under one lock, so a watcher that starts with a report misses nothing and hears
//! nothing twice.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use envd_api::control::{EngineState, Observation, Observed, Report, WatchEvent};
use gateway_api::InstanceId;
use tokio::sync::broadcast;

/// Changes that a slow watcher may be behind before it gets a whole report instead.
const BEHIND_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct Board {
    known: Mutex<Known>,
    changes: broadcast::Sender<WatchEvent>,
}

#[derive(Debug)]
struct Known {
    engine: EngineState,
    instances: BTreeMap<InstanceId, Observed>,
}

impl Board {
    pub(crate) fn new() -> Self {
        let message = "the container engine has not been asked yet".to_owned();
        let engine = EngineState::Unreachable { message };
        Self {
            known: Mutex::new(Known { engine, instances: BTreeMap::new() }),
            changes: broadcast::Sender::new(BEHIND_MAX),
        }
    }

    pub(crate) fn report(&self) -> Report {
        self.known().report()
    }

    /// Everything now, and each change after it.
    pub(crate) fn watch(&self) -> (Report, broadcast::Receiver<WatchEvent>) {
        let known = self.known();
        (known.report(), self.changes.subscribe())
    }

    pub(crate) fn engine(&self) -> EngineState {
        self.known().engine.clone()
    }

    /// Notes how the engine is; `true` if it was otherwise.
    pub(crate) fn set_engine(&self, engine: EngineState) -> bool {
        let mut known = self.known();
        if known.engine == engine {
            return false;
        }
        known.engine = engine;
        self.tell(WatchEvent::Report(known.report()));
        true
    }

    pub(crate) fn observed(&self, id: &InstanceId) -> Option<Observed> {
        self.known().instances.get(id).cloned()
    }

    /// Notes what is; `true` if it was otherwise.
    pub(crate) fn observe(&self, observed: Observed) -> bool {
        let mut known = self.known();
        if known.instances.get(&observed.id) == Some(&observed) {
            return false;
        }
        known.instances.insert(observed.id.clone(), observed.clone());
        self.tell(WatchEvent::Observed(observed));
        true
    }

    /// Drops an instance that is no more.
    pub(crate) fn forget(&self, id: &InstanceId) {
        let mut known = self.known();
        if let Some(observed) = known.instances.remove(id)
            && observed.observation != Observation::Absent
        {
            self.tell(WatchEvent::Observed(Observed { observation: Observation::Absent, ..observed }));
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: WatchEvent) {
        // Without a watcher there is nobody to tell, and that is fine.
        let _ = self.changes.send(event);
    }
}

impl Known {
    fn report(&self) -> Report {
        Report { engine: self.engine.clone(), instances: self.instances.values().cloned().collect() }
    }
}
