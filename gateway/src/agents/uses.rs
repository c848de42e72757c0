//! When each instance was last used by way of its ports.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gateway_api::InstanceId;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Uses {
    /// Of what was before, nothing is known.
    since: Instant,
    of: Arc<Mutex<HashMap<InstanceId, Use>>>,
}

#[derive(Debug)]
struct Use {
    last: Instant,
    /// So many connections stay open.
    open: usize,
}

/// A connection that stays open, as a page's WebSocket does: for as long, its instance is in use.
#[derive(Debug)]
pub(crate) struct Open {
    uses: Uses,
    instance: InstanceId,
}

impl Default for Uses {
    fn default() -> Self {
        Self { since: Instant::now(), of: Arc::default() }
    }
}

impl Uses {
    pub(super) fn note(&self, instance: &InstanceId) {
        self.change(instance, 0);
    }

    pub(super) fn open(&self, instance: InstanceId) -> Open {
        self.change(&instance, 1);
        Open { uses: self.clone(), instance }
    }

    pub(super) fn forget(&self, instance: &InstanceId) {
        self.all().remove(instance);
    }

    /// Whether an instance was used within `lately`, or may have been.
    pub(super) fn is_used(&self, instance: &InstanceId, lately: Duration) -> bool {
        let is_recent = |used: &Use| used.open > 0 || used.last.elapsed() < lately;
        self.since.elapsed() < lately || self.all().get(instance).is_some_and(is_recent)
    }

    fn change(&self, instance: &InstanceId, opened: usize) {
        let last = Instant::now();
        let mut all = self.all();
        match all.get_mut(instance) {
            Some(used) => *used = Use { last, open: used.open + opened },
            None => drop(all.insert(instance.clone(), Use { last, open: opened })),
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<InstanceId, Use>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Forgotten already if the instance has ended meanwhile.
        if let Some(used) = self.uses.all().get_mut(&self.instance) {
            *used = Use { last: Instant::now(), open: used.open.saturating_sub(1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asked_of_late_or_stays_connected_uses_an_instance() {
        let (uses, ids) = (Uses::default(), [InstanceId::new(), InstanceId::new()]);
        let [one, other] = &ids;
        let of_both = |lately| ids.each_ref().map(|id| uses.is_used(id, lately));
        assert_eq!(of_both(Duration::from_hours(1)), [true, true], "nobody knows what was an hour ago");
        uses.note(one);
        let open = uses.open(other.clone());
        assert_eq!(of_both(Duration::ZERO), [false, true], "only one of them is open");
        drop(open);
        assert_eq!(of_both(Duration::ZERO), [false, false]);
    }
}
