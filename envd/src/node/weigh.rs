//! The room that instances take on this machine's disk: measured one after the other, and told to those over their
//! limit.
//!
//! An instance over its limit is stopped and its files are kept, so it has to be started again to remove some. That
//! start is given [some time](ROOM_TO_CLEAN) as long as it does not take more room than before.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gateway_api::{Goal, InstanceId};
use jiff::Timestamp;
use tokio::time::sleep;
use tracing::warn;

use super::Node;
use crate::{
    disk::Measured,
    door::OverLimit,
    instance::Over,
    runtime::{Phase, Runtime},
};

/// Between two rounds, at least; more when rounds take long.
const ROUND_EVERY: Duration = Duration::from_secs(10);
const ROUND_EVERY_MAX: Duration = Duration::from_mins(5);
/// The share of the time that goes into measuring is one in so many.
const SHARE: u32 = 20;
/// For a start that follows a stop for lack of room.
const ROOM_TO_CLEAN: Duration = Duration::from_mins(10);
/// What such a start may write nonetheless: logs, locks, lists.
const SLACK: u64 = 64 << 20;

impl<R: Runtime> Node<R> {
    pub(super) async fn weigh_for_ever(&self) {
        let mut pause = ROUND_EVERY;
        loop {
            sleep(pause).await;
            let began = Instant::now();
            let running: Vec<_> = {
                let instances = self.instances();
                let goals = instances.iter().map(|(id, handle)| (id.clone(), handle.goal()));
                goals.filter(|(_, put)| put.goal == Goal::Running).collect()
            };
            for (id, put) in running {
                let limit = self.world.disk_limit(&put.spec);
                if let Some(over) = self.weigh(&id, limit).await
                    && let Some(handle) = self.instances().get(&id)
                {
                    handle.is_over(over);
                }
            }
            pause = (began.elapsed() * SHARE).clamp(ROUND_EVERY, ROUND_EVERY_MAX);
        }
    }

    async fn weigh(&self, id: &InstanceId, limit: u64) -> Option<Over> {
        let container = self.world.runtime.find(id).await.ok()??;
        let Phase::Running { since } = container.phase else { return None };
        let (world, door) = (Arc::clone(&self.world), id.clone());
        let last = self.world.tasks.blocking(move || world.doors.last_start(&door)).await?.ok()??;
        let is_cleaning = Timestamp::now().duration_since(since).unsigned_abs() < ROOM_TO_CLEAN;
        let limit_now = match last.over_before {
            Some(before) if is_cleaning => limit.max(before.saturating_add(SLACK)),
            Some(_) | None => limit,
        };
        let bytes = match self.world.runtime.disk_use(&container, limit_now).await {
            Ok(Measured::Bytes(bytes)) => bytes,
            Ok(Measured::Late(bytes)) => {
                warn!(instance = %id, bytes, "it has too many files to measure them in time");
                bytes
            }
            Ok(Measured::TooDeep) => u64::MAX,
            Err(error) => {
                warn!(instance = %id, %error, "cannot measure its files");
                return None;
            }
        };
        (bytes > limit_now).then(|| Over { last_start: container.last_start, limit: over(bytes, limit) })
    }
}

fn over(bytes: u64, limit: u64) -> OverLimit {
    let minutes = ROOM_TO_CLEAN.as_secs() / 60;
    let message = if bytes == u64::MAX {
        "its directories are nested too deeply to be measured, so it was stopped; nothing was removed"
            .to_owned()
    } else {
        format!(
            "its own files take more than the {} that they may, so it was stopped; nothing was removed: start it and delete some within {minutes} minutes, or move them to a mounted storage",
            size(limit)
        )
    };
    // What cannot be measured gets no room to grow.
    let bytes = if bytes == u64::MAX { limit } else { bytes };
    OverLimit { bytes, message }
}

fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    let fits = |(_, unit): &&(&str, u64)| bytes >= *unit && bytes.is_multiple_of(*unit);
    let (name, unit) = UNITS.iter().find(fits).copied().unwrap_or(("bytes", 1));
    format!("{} {name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_a_person_would_say_them() {
        let said: Vec<_> = [50 << 30, 1536 << 20, 5 << 10, 1000].map(size).into();
        assert_eq!(said, ["50 GB", "1536 MB", "5 KB", "1000 bytes"]);
    }
}
