//! Starts what waits, when there is room: reads the situation, lets the queue decide, and writes the decisions down.
//!
//! A start is a reservation in the store, written together with what it is for; telling the cluster is the affair of
//! `place.rs`, which starts nothing without one. A decision that somebody's act has overtaken is dropped: the next round
//! sees what is.

use std::{sync::Arc, time::Duration};

use gateway_api::{Status, instance::WaitReason};
use queue::{Outcome, Placed};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    app::{App, Outlook},
    error::chain,
    store::{Held, StoreError},
};

/// How often it looks without being told to.
const CLOCK: Duration = Duration::from_secs(2);
/// The most places that are told to listeners in one round: a long line moves all the time.
const TOLD_MAX: usize = 50;

/// Runs until the process stops.
pub(crate) async fn run(app: Arc<App>) {
    let stopping = app.tasks.stopping();
    let mut clock = interval(CLOCK);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = app.line_moves.notified() => {}
            _ = clock.tick() => {}
        }
        if let Err(error) = turn(&app).await {
            tracing::error!(error = chain(&error), "cannot decide what starts");
        }
    }
}

async fn turn(app: &App) -> Result<(), StoreError> {
    let Some(outlook) = app.outlook().await? else { return Ok(()) };
    if outlook.situation.waiting.is_empty() {
        app.places.note(&[]);
        return Ok(());
    }
    let decisions = queue::decide(&outlook.situation);
    let mut sequence = outlook.situation.running.iter().map(|running| running.sequence).max().unwrap_or(0);
    let mut started = false;
    for decision in &decisions {
        let Outcome::Start { tasks } = &decision.outcome else { continue };
        sequence += 1;
        started |= start(app, &outlook, &decision.id, tasks, sequence).await?;
    }
    let changed = app.places.note(&decisions);
    if started {
        app.wake.notify_one();
        app.jobs_move.notify_one();
    }
    for id in changed.iter().take(TOLD_MAX) {
        if let Some(waiting) = outlook.instances.get(id)
            && let Some(row) = app.store.instance(&waiting.id).await?
        {
            app.announce(row);
        } else if let Some(job) = outlook.jobs.get(id) {
            app.announce_job(job).await?;
        }
    }
    Ok(())
}

/// Gives what was decided on its place; `false` if it is no longer what it was.
async fn start(
    app: &App,
    outlook: &Outlook,
    id: &str,
    tasks: &[Placed],
    sequence: u64,
) -> Result<bool, StoreError> {
    if let (Some(waiting), [placed]) = (outlook.instances.get(id), tasks) {
        let status = told();
        let held = held(placed, sequence);
        let done = app.store.reserve_instance(&waiting.id, waiting.generation, &held, &status).await;
        return overtaken(done);
    }
    match outlook.jobs.get(id) {
        Some(job) => overtaken(app.start_job(job, tasks, sequence).await),
        None => Ok(false),
    }
}

/// Somebody else has the card or the name: the next round decides anew.
fn overtaken(done: Result<bool, StoreError>) -> Result<bool, StoreError> {
    match done {
        Err(StoreError::Taken) => {
            tracing::warn!("a decision was overtaken");
            Ok(false)
        }
        done => done,
    }
}

pub(crate) fn held(placed: &Placed, sequence: u64) -> Held {
    Held {
        node: placed.node.clone(),
        cpus_milli: placed.cpus_milli,
        memory_mib: placed.memory_mib,
        cards: placed.cards.clone(),
        sequence,
    }
}

/// The status of what has just got its place.
pub(crate) fn told() -> Status {
    Status::Waiting { reason: WaitReason::StartingUp, message: "the cluster has been told".to_owned() }
}
