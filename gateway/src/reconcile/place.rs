//! Tells the cluster what should be and writes down what is.
//!
//! The loop follows envd's watch for as long as it lasts. envd forgets goals when it restarts, so the watch begins with
//! a report of the generations that envd works towards; every instance whose generation differs is put again. Doors are
//! opened after the put, since envd makes their directories.

use std::{collections::HashMap, sync::Arc, time::Duration};

use envd_api::{
    client::ClientError,
    control::{Observation, Observed, PutInstance, WatchEvent},
};
use futures_util::StreamExt as _;
use gateway_api::{Goal, InstanceId, Status, job::EndCause};
use tokio::time::{MissedTickBehavior, interval};

use super::{
    deliver, stale,
    status::{cannot_start, is_over, not_taken, status, task_end},
};
use crate::{
    app::App,
    clusters::{Cluster, Health, Unknown},
    error::chain,
    events::What,
    store::{InstanceRow, Settled, StoreError},
};

/// How often the loop looks without being told to.
const CLOCK: Duration = Duration::from_secs(5);
/// How long it rests before it tries a cluster that did not answer.
const REST: Duration = Duration::from_millis(300);

/// What can interrupt the loop.
#[derive(Debug, thiserror::Error)]
pub(super) enum Interrupted {
    #[error("the cluster did not answer")]
    Cluster(#[from] ClientError),
    #[error("the watch ended")]
    Ended,
    #[error("the store did not answer")]
    Store(#[from] StoreError),
}

/// Runs until the process stops.
pub(crate) async fn run(app: Arc<App>, cluster: Arc<Cluster>) {
    let stopping = app.tasks.stopping();
    loop {
        let interrupted = tokio::select! {
            () = stopping.cancelled() => return,
            interrupted = follow(&app, &cluster) => interrupted,
        };
        let message = chain(&interrupted);
        tracing::debug!(message, "interrupted");
        match interrupted {
            Interrupted::Cluster(_) | Interrupted::Ended => {
                let away = Health::ClusterUnreachable { message: "envd does not answer".to_owned() };
                if cluster.note(away) {
                    announce_passing(&app, &cluster).await;
                }
            }
            Interrupted::Store(_) => tracing::error!(message, "cannot reconcile"),
        }
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(REST) => {}
        }
    }
}

/// The generation of each instance that envd works towards, and the group whose storages it may see there.
type Told = HashMap<InstanceId, Option<(u64, String)>>;

async fn follow(app: &Arc<App>, cluster: &Cluster) -> Interrupted {
    let mut watch = std::pin::pin!(cluster.envd.watch());
    let mut node = std::pin::pin!(look_at_node(cluster));
    let mut clock = interval(CLOCK);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = Told::new();
    // Nothing is told before the first report: it says what envd knows already.
    let mut ready = false;
    loop {
        let step = tokio::select! {
            event = watch.next() => match event {
                None => return Interrupted::Ended,
                Some(Err(error)) => return error.into(),
                Some(Ok(event)) => {
                    ready = true;
                    hear(app, cluster, &mut told, event).await
                }
            },
            () = cluster.wake.notified(), if ready => tell(app, cluster, &mut told).await,
            _ = clock.tick(), if ready => refresh(app, cluster, &mut told).await,
            interrupted = &mut node => return interrupted,
        };
        if let Err(interrupted) = step {
            return interrupted;
        }
    }
}

async fn hear(
    app: &Arc<App>,
    cluster: &Cluster,
    told: &mut Told,
    event: WatchEvent,
) -> Result<(), Interrupted> {
    match event {
        WatchEvent::Report(report) => {
            *told = report.instances.iter().map(|seen| (seen.id.clone(), told_of(seen))).collect();
            cluster.forget_unknown_but(|id| told.contains_key(id));
            for observed in report.instances {
                apply(app, cluster, told, observed).await?;
            }
            // Only now: what is ready may be given out, and what nobody knows of is not to be given out again.
            if cluster.note(report.engine.into()) {
                announce_passing(app, cluster).await;
            }
            refresh(app, cluster, told).await
        }
        WatchEvent::Observed(observed) => {
            told.insert(observed.id.clone(), told_of(&observed));
            apply(app, cluster, told, observed).await
        }
    }
}

/// Asks what the machine has, round after round. Beside the loop and not in it: an engine can take its time to say so.
async fn look_at_node(cluster: &Cluster) -> Interrupted {
    let mut clock = interval(CLOCK);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        match cluster.envd.node().await {
            Ok(node) => cluster.note_node(node),
            Err(ClientError::Refused { message, .. }) => tracing::warn!(message, "the node did not report"),
            Err(error @ (ClientError::Unreachable { .. } | ClientError::Protocol(_))) => return error.into(),
        }
    }
}

/// The clock's round: whatever was missed.
async fn refresh(app: &Arc<App>, cluster: &Cluster, told: &mut Told) -> Result<(), Interrupted> {
    app.store.forget_expired_sessions().await?;
    tell(app, cluster, told).await
}

/// Puts every goal that envd does not know yet.
async fn tell(app: &Arc<App>, cluster: &Cluster, told: &mut Told) -> Result<(), Interrupted> {
    let begun = std::time::Instant::now();
    for (id, generation, group) in app.store.generations(&cluster.name).await? {
        if told.get(&id) != Some(&Some((generation, group))) {
            put(app, cluster, told, &id).await?;
        }
        if let Err(error) = app.agents.open(&id).await {
            tracing::warn!(instance = %id, %error, "the door cannot be opened yet");
        }
    }
    crate::metrics::reconciled(begun.elapsed());
    Ok(())
}

async fn put(app: &Arc<App>, cluster: &Cluster, told: &mut Told, id: &InstanceId) -> Result<(), Interrupted> {
    let Some(row) = app.store.instance(id).await? else { return Ok(()) };
    let login = if row.goal == Goal::Running { app.image_login(&row).await? } else { None };
    let put = PutInstance { generation: row.generation, goal: row.goal, spec: row.spec.clone(), login };
    match cluster.envd.put(id, &put).await {
        Ok(()) => {
            told.insert(id.clone(), Some((row.generation, row.spec.group.clone())));
            Ok(())
        }
        Err(ClientError::Refused { stale: Some(stale), .. }) => {
            if stale::take_over(app, row.id, stale).await? {
                // What the cluster says about that generation it said before anybody here knew of it.
                let report = cluster.envd.report().await?;
                for observed in report.instances.into_iter().filter(|observed| observed.id == *id) {
                    apply(app, cluster, told, observed).await?;
                }
            }
            Ok(())
        }
        Err(ClientError::Refused { message, status, .. }) => {
            tracing::error!(instance = %id, %status, message, "the cluster refused the goal");
            let status = if status.is_client_error() {
                // The same again gives the same again: the user's next act is the next try.
                told.insert(id.clone(), Some((row.generation, row.spec.group.clone())));
                Status::Failed { reason: message, exit_code: None, cause: Some(EndCause::CannotStart) }
            } else {
                not_taken(row.goal, message)
            };
            let is_over = is_over(&status);
            let end = is_over.then(|| cannot_start(&status)).flatten();
            let settled = Settled { status: &status, is_over, end };
            if status != row.status && app.store.settle(id, row.generation, &settled).await? {
                app.announce(InstanceRow { status, ..row });
            }
            Ok(())
        }
        Err(error @ (ClientError::Unreachable { .. } | ClientError::Protocol(_))) => Err(error.into()),
    }
}

/// Writes down what is, if it speaks of what the user wants now.
async fn apply(
    app: &Arc<App>,
    cluster: &Cluster,
    told: &mut Told,
    observed: Observed,
) -> Result<(), Interrupted> {
    // An instance of another cluster is none that this one should have.
    let row = app.store.instance(&observed.id).await?.filter(|row| row.cluster == cluster.name);
    let Some(row) = row else {
        let unknown = unknown(&observed);
        if cluster.note_unknown(&observed.id, unknown.as_ref()) && unknown.is_some() {
            tracing::warn!(instance = %observed.id, "the cluster has a container that the store does not know; it is left alone");
        }
        return Ok(());
    };
    if observed.generation != Some(row.generation) {
        return Ok(());
    }
    if row.goal == Goal::Deleted && observed.observation == Observation::Absent {
        app.agents.close(&row.id);
        if app.store.forget_instance(&row.id, row.generation).await? {
            told.remove(&row.id);
            app.line_moves.notify_one();
            if row.job.is_some() {
                app.jobs_move.notify_one();
            } else {
                app.events.tell(row.user_id, What::Deleted(row.id));
            }
        }
        return Ok(());
    }
    let has_command = !row.spec.command.is_empty();
    let mut status = status(row.goal, has_command, &observed.observation);
    if deliver::is_due(&row, &status) {
        let then = std::mem::replace(&mut status, Status::Starting);
        if row.status == status {
            deliver::deliver(app, &row, then);
            return Ok(());
        }
        let settled = Settled { status: &status, is_over: false, end: None };
        if app.store.settle(&row.id, row.generation, &settled).await? {
            let row = InstanceRow { status, ..row };
            deliver::deliver(app, &row, then);
            app.announce(row);
        }
        return Ok(());
    }
    if let (Some(_), Some(address)) = (&row.job, &observed.address) {
        app.store.note_address(&row.id, address).await?;
    }
    if status == row.status {
        return Ok(());
    }
    let is_over = is_over(&status);
    let end = is_over.then(|| task_end(row.goal, &observed.observation)).flatten();
    let settled = Settled { status: &status, is_over, end };
    if app.store.settle(&row.id, row.generation, &settled).await? {
        app.announce(InstanceRow { status, ..row });
        if is_over {
            app.line_moves.notify_one();
        }
    }
    Ok(())
}

fn told_of(observed: &Observed) -> Option<(u64, String)> {
    Some((observed.generation?, observed.group.clone().unwrap_or_default()))
}

/// What is noted of a container that the store does not know.
fn unknown(observed: &Observed) -> Option<Unknown> {
    let running = match (&observed.observation, &observed.takes) {
        (Observation::Absent, _) => return None,
        (Observation::Running { since }, Some(takes)) => Some((*since, takes.clone())),
        (_, _) => None,
    };
    Some(Unknown { running })
}

/// Tells listeners of instances whose wait has another reason now.
async fn announce_passing(app: &Arc<App>, cluster: &Cluster) {
    match app.store.instances().await {
        Ok(rows) => {
            let waits = |row: &InstanceRow| row.job.is_none() && row.status.is_passing();
            for row in rows.into_iter().filter(|row| row.cluster == cluster.name && waits(row)) {
                app.announce(row);
            }
        }
        Err(error) => tracing::error!(error = chain(&error), "cannot read the instances"),
    }
}
