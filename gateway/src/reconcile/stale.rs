//! What to do when the cluster knows more than the store: a backup of the store was restored.
//!
//! Acts of users since the backup are lost, and with them what their instances should be. The cluster's record of
//! starts is all that is left, so it wins: the instance takes over the generation on record and the goal that its
//! container is at. That changes nothing in the cluster: nothing is deleted, though the store may say so, nothing is
//! started or stopped, no command runs a second time. A generation above the one on record would be a restart. The
//! next act of the user counts again.
//!
//! Containers without a row are no concern of this module: nobody ever puts a goal for them.

use envd_api::control::Stale;
use gateway_api::{Goal, InstanceId, Status, instance::WaitReason};

use super::place::Interrupted;
use crate::app::App;

/// Brings one row up to what the cluster knows; the loop's next round puts it. Whether it did.
pub(super) async fn take_over(app: &App, id: InstanceId, stale: Stale) -> Result<bool, Interrupted> {
    let Some(row) = app.store.instance(&id).await? else { return Ok(false) };
    let Some(goal) = goal(stale, row.generation) else { return Ok(false) };
    let status = match goal {
        Goal::Running => Status::Waiting {
            reason: WaitReason::StartingUp,
            message: "the cluster knows a newer state than the store".to_owned(),
        },
        Goal::Stopped | Goal::Deleted => Status::STOPPING,
    };
    let taken = app.store.take_over(&id, row.generation, stale.known, goal, &status).await?;
    if taken {
        tracing::warn!(
            instance = %id, generation = row.generation, known = stale.known, ?goal,
            "the store is older than the cluster; the cluster's record is taken over"
        );
        app.clusters.wake();
        app.announce(crate::store::InstanceRow { goal, generation: stale.known, status, ..row });
    }
    Ok(taken)
}

/// The goal that changes nothing; `None` if there is nothing to take over, or the cluster cannot say yet.
fn goal(stale: Stale, generation: u64) -> Option<Goal> {
    let is_older = generation < stale.known;
    let goal = if stale.running? { Goal::Running } else { Goal::Stopped };
    is_older.then_some(goal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_wins_and_never_deletes() {
        let stale = |running| Stale { known: 5, running };
        assert_eq!(goal(stale(Some(true)), 3), Some(Goal::Running));
        assert_eq!(goal(stale(Some(false)), 3), Some(Goal::Stopped));
        assert_eq!(goal(stale(None), 3), None, "ask again");
        assert_eq!(goal(stale(Some(true)), 5), None, "the user has acted meanwhile");
    }
}
