//! Starts what waits, when there is room: reads the situation, lets the queue decide, and writes the decisions down.
//!
//! A start is a reservation in the store, written together with what it is for; telling the cluster is the affair of
//! `place.rs`, which starts nothing without one. A decision that somebody's act has overtaken is dropped: the next round
//! sees what is.

use std::{collections::HashSet, sync::Arc, time::Duration};

use gateway_api::{
    Status,
    instance::WaitReason,
    job::{EndCause, JobEnd},
};
use queue::{Decision, Outcome, Placed};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    app::{App, Outlook},
    error::chain,
    reconcile::jobs::finish,
    store::{Held, JobStart, StoreError},
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
        app.note_places(&[]);
        return Ok(());
    }
    let mut decisions = queue::decide(&outlook.situation);
    keep_cards(&outlook, &mut decisions);
    let mut sequence = outlook.situation.running.iter().map(|running| running.sequence).max().unwrap_or(0);
    let mut started = false;
    for decision in &decisions {
        let Outcome::Start { tasks } = &decision.outcome else { continue };
        sequence += 1;
        started |= start(app, &outlook, &decision.id, tasks, sequence).await?;
    }
    let changed = app.note_places(&decisions);
    if started {
        app.clusters.wake();
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

/// An instance gets the cards again that it had last, where they are free and as good as those that it was given: its
/// container need not be made anew for others.
fn keep_cards(outlook: &Outlook, decisions: &mut [Decision]) {
    let node = &outlook.situation.nodes;
    let model = |id: &str| {
        let mut cards = node.iter().flat_map(|node| &node.cards);
        cards.find(|card| card.id == id && card.healthy).map(|card| card.model.clone())
    };
    let running = outlook.situation.running.iter().flat_map(|running| &running.tasks);
    let mut taken: HashSet<String> = running.flat_map(|task| task.cards.clone()).collect();
    for decision in decisions.iter() {
        if let Outcome::Start { tasks } = &decision.outcome {
            taken.extend(tasks.iter().flat_map(|task| task.cards.clone()));
        }
    }
    for decision in decisions {
        let Outcome::Start { tasks } = &mut decision.outcome else { continue };
        let (Some(waiting), [task]) = (outlook.instances.get(&decision.id), &mut tasks[..]) else { continue };
        let before = &waiting.spec.cards;
        let as_good = before.len() == task.cards.len()
            && before
                .iter()
                .zip(&task.cards)
                .all(|(before, given)| model(before).is_some_and(|m| Some(m) == model(given)));
        let free = before.iter().all(|card| task.cards.contains(card) || !taken.contains(card));
        if as_good && free {
            for given in &task.cards {
                taken.remove(given);
            }
            taken.extend(before.iter().cloned());
            task.cards.clone_from(before);
        }
    }
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
        let held = held(app, placed, sequence);
        let done = app.store.reserve_instance(&waiting.id, waiting.generation, &held, &status).await;
        return overtaken(done);
    }
    match outlook.jobs.get(id) {
        Some(job) => match app.start_job(job, tasks, sequence).await {
            Ok(JobStart::NameTaken(name)) => {
                finish(app, job.clone(), name_taken(name)).await?;
                Ok(false)
            }
            done => overtaken(done.map(|done| done == JobStart::Done)),
        },
        None => Ok(false),
    }
}

/// Waiting would not help: what has the name may have it for ever, and the room would be kept for nothing.
fn name_taken(name: String) -> JobEnd {
    JobEnd { message: name, ..JobEnd::new(EndCause::NameTaken) }
}

/// Somebody else has the card: the next round decides anew.
fn overtaken(done: Result<bool, StoreError>) -> Result<bool, StoreError> {
    match done {
        Err(StoreError::Taken) => {
            tracing::warn!("a decision was overtaken");
            Ok(false)
        }
        done => done,
    }
}

pub(crate) fn held(app: &App, placed: &Placed, sequence: u64) -> Held {
    Held {
        node: app.clusters.of(&placed.node).node().map(|node| node.name).unwrap_or_default(),
        cpus_milli: placed.cpus_milli,
        memory_mib: placed.memory_mib,
        cards: placed.cards.clone(),
        model: placed.cards.first().and_then(|card| app.card_model(card)),
        sequence,
    }
}

/// The status of what has just got its place.
pub(crate) fn told() -> Status {
    Status::Waiting { reason: WaitReason::StartingUp, message: "the cluster has been told".to_owned() }
}
