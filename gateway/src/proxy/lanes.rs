//! What each thread has for itself, so that no request waits for one on another core.

use std::sync::atomic::{AtomicUsize, Ordering};

/// More than there are threads that serve; where there are more, some share one.
const LANES: usize = 64;

/// One of each for every thread.
#[derive(Debug)]
pub(super) struct Lanes<T>(Vec<T>);

impl<T: Default> Default for Lanes<T> {
    fn default() -> Self {
        Self(std::iter::repeat_with(T::default).take(LANES).collect())
    }
}

impl<T> Lanes<T> {
    /// This thread's.
    pub(super) fn own(&self) -> &T {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static LANE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % LANES;
        }
        &self.0[LANE.with(|lane| *lane)]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}
