//! The room that instances take on this machine's disk: measured one after the other, and told to those over their
//! limit.
//!
//! An instance over its limit is stopped and its files are kept, so it has to be started again to remove some. That
//! start is given [some time](ROOM_TO_CLEAN) as long as it does not take more room than before.

use std::{
    collections::HashMap,
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
/// How long one instance may take, and how often that time is doubled before it counts as over its limit: whoever has
/// more files than can be counted would have no limit at all.
const MEASURE: Duration = Duration::from_secs(30);
const DOUBLED_MAX: u32 = 4;
/// For a start that follows a stop for lack of room.
const ROOM_TO_CLEAN: Duration = Duration::from_mins(10);
/// What such a start may write nonetheless: logs, locks, lists.
const SLACK: u64 = 64 << 20;

impl<R: Runtime> Node<R> {
    pub(super) async fn weigh_for_ever(&self) {
        let mut pause = ROUND_EVERY;
        // How often in a row there was not time enough for an instance.
        let mut late: HashMap<InstanceId, u32> = HashMap::new();
        loop {
            sleep(pause).await;
            let began = Instant::now();
            let running: Vec<_> = {
                let instances = self.instances();
                let goals = instances.iter().map(|(id, handle)| (id.clone(), handle.goal()));
                goals.filter(|(_, put)| put.goal == Goal::Running).collect()
            };
            late.retain(|id, _| running.iter().any(|(running, _)| running == id));
            for (id, put) in running {
                let limit = self.world.disk_limit(&put.spec);
                let times = late.remove(&id).unwrap_or(0);
                match self.weigh(&id, limit, times).await {
                    Some(Weight::Over(over)) => {
                        if let Some(handle) = self.instances().get(&id) {
                            handle.is_over(over);
                        }
                    }
                    Some(Weight::Late) => {
                        late.insert(id, times + 1);
                    }
                    None => {}
                }
            }
            pause = (began.elapsed() * SHARE).clamp(ROUND_EVERY, ROUND_EVERY_MAX);
        }
    }

    async fn weigh(&self, id: &InstanceId, limit: u64, late: u32) -> Option<Weight> {
        let container = self.world.runtime.find(id).await.ok()??;
        let Phase::Running { since } = container.phase else { return None };
        let (world, door) = (Arc::clone(&self.world), id.clone());
        let last = self.world.tasks.blocking(move || world.doors.last_start(&door)).await?.ok()??;
        let is_new = Timestamp::now().duration_since(since).unsigned_abs() < ROOM_TO_CLEAN;
        let before = last.over_before.filter(|_| is_new);
        let limit_now = before.map_or(limit, |before| limit.max(before.saturating_add(SLACK)));
        let within = MEASURE * 2_u32.pow(late.min(DOUBLED_MAX));
        let limit = match self.world.runtime.disk_use(&container, limit_now, within).await {
            Ok(Measured::Bytes(bytes) | Measured::Late(bytes)) if bytes > limit_now => {
                too_large(bytes, limit)
            }
            Ok(Measured::Bytes(_)) => return None,
            Ok(Measured::Late(_)) if before.is_some() || late < DOUBLED_MAX => {
                warn!(instance = %id, ?within, "it has too many files to measure them in time");
                return Some(Weight::Late);
            }
            Ok(Measured::Late(_)) => unmeasured(TOO_MANY, limit),
            Ok(Measured::TooDeep) => unmeasured(TOO_DEEP, limit),
            Err(error) => {
                warn!(instance = %id, %error, "cannot measure its files");
                return None;
            }
        };
        Some(Weight::Over(Over { last_start: container.last_start, limit }))
    }
}

/// What is wrong with an instance's files.
enum Weight {
    Over(Over),
    /// There was not time enough to tell.
    Late,
}

const TOO_DEEP: &str =
    "its directories are nested too deeply to be measured, so it was stopped; nothing was removed";
const TOO_MANY: &str = "it has more files than can be counted, so it was stopped; nothing was removed: start it and delete some, or move them to a mounted storage";

fn too_large(bytes: u64, limit: u64) -> OverLimit {
    let minutes = ROOM_TO_CLEAN.as_secs() / 60;
    let message = format!(
        "its own files take more than the {} that they may, so it was stopped; nothing was removed: start it and delete some within {minutes} minutes, or move them to a mounted storage",
        size(limit)
    );
    OverLimit { bytes, message }
}

/// What cannot be measured gets no room to grow.
fn unmeasured(message: &str, limit: u64) -> OverLimit {
    OverLimit { bytes: limit, message: message.to_owned() }
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
