//! What running instances use of the machine, counted by the clock.

use std::{sync::Arc, time::Duration};

use envd_api::control::Counted;
use futures_util::{StreamExt as _, stream};
use gateway_api::Goal;
use tokio::time::{MissedTickBehavior, interval};
use tracing::debug;

use super::Node;
use crate::runtime::Runtime;

/// Between two rounds.
const ROUND_EVERY: Duration = Duration::from_secs(10);
/// Containers that are asked about at once.
const AT_ONCE: usize = 8;

impl<R: Runtime> Node<R> {
    pub(super) async fn measure_for_ever(self: Arc<Self>) {
        let mut clock = interval(ROUND_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            clock.tick().await;
            let counted = self.measure().await;
            *self.counted() = counted;
        }
    }

    async fn measure(&self) -> Vec<Counted> {
        let running: Vec<_> = {
            let instances = self.instances();
            let to_run = instances.iter().filter(|(_, handle)| handle.goal().goal == Goal::Running);
            to_run.map(|(id, _)| id.clone()).collect()
        };
        let counts = stream::iter(running).map(async |id| match self.world.runtime.count(&id).await {
            Ok(counts) => counts.map(|counts| Counted { instance: id, counts }),
            Err(error) => {
                debug!(instance = %id, %error, "cannot count what it uses");
                None
            }
        });
        counts.buffer_unordered(AT_ONCE).filter_map(async |counted| counted).collect().await
    }
}
