//! Whether a job or an instance that is there to be worked in is idle: nobody has a terminal, a session or a process open
//! in it, no app of it was asked for anything, and its processors and cards rested, all for as long as a job's file
//! allows, or for as long as the site allows those who hold cards; where the site wants that, whatever they are for.
//!
//! What rested is seen in the samples, which outlive the gateway. Who is there is asked last, and only of a job that would
//! be stopped otherwise. Whoever cannot be asked is held for busy.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gateway_api::{Goal, InstanceId, JobId, Status, usage::Sample};
use jiff::{SignedDuration, Timestamp};
use jobfile::spec::Purpose;
use tokio::time::timeout;

use crate::{
    app::App,
    error::chain,
    store::{JobRow, Line, StoreError, TaskRow},
};

/// Below these an instance rests: processors, and percent of its cards.
const CPUS_AT_REST: f64 = 0.05;
const CARDS_AT_REST: f64 = 5.0;
/// Between two looks at one job.
const LOOK: Duration = Duration::from_secs(5);
/// Between two looks at all instances, at most.
const LOOK_AT_ALL: Duration = Duration::from_mins(1);
/// What an agent has to say who is there.
const ASK_LIMIT: Duration = Duration::from_secs(2);
/// So many means show a rest as well as all samples do.
const POINTS: usize = 2000;

/// When each job is to be looked at again.
#[derive(Debug, Default)]
pub(crate) struct Idle(Mutex<HashMap<JobId, Instant>>);

impl Idle {
    /// Whether the job has been idle for as long as it may.
    pub(crate) async fn is_over(&self, app: &Arc<App>, job: &JobRow, tasks: &[TaskRow]) -> bool {
        let holds_cards = job.spec.roles.iter().any(|role| role.resources.gpus > 0);
        let of_the_site = app.config.jobs.idle_stop.filter(|_| holds_cards);
        let limit = match job.spec.purpose {
            Purpose::Interactive => job.spec.idle_timeout.or(of_the_site),
            Purpose::Batch => of_the_site.filter(|_| app.config.jobs.idle_stop_batch),
        };
        let (Some(limit), Some(begun)) = (limit, job.begun_at) else { return false };
        if !self.is_due(&job.id) {
            return false;
        }
        let going: Vec<_> = tasks.iter().filter(|task| task.ended.is_none()).collect();
        for task in &going {
            if !is_idle(app, &task.instance, begun, limit).await {
                return false;
            }
        }
        if going.is_empty() {
            return false;
        }
        tracing::info!(job = %job.id, "idle for as long as it may be");
        true
    }

    fn is_due(&self, id: &JobId) -> bool {
        let (now, mut looks) = (Instant::now(), self.looks());
        looks.retain(|_, next| now < *next + 10 * LOOK);
        if looks.get(id).is_some_and(|next| now < *next) {
            return false;
        }
        looks.insert(id.clone(), now + LOOK);
        true
    }

    fn looks(&self) -> MutexGuard<'_, HashMap<JobId, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether nothing has happened in an instance, which runs since `begun`, for as long as `limit`.
async fn is_idle(app: &Arc<App>, instance: &InstanceId, begun: Timestamp, limit: Duration) -> bool {
    let now = Timestamp::now();
    let Ok(since) = now.checked_sub(SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX)) else {
        return false;
    };
    if begun > since {
        return false;
    }
    let (samples, id) = (Arc::clone(&app.samples), instance.clone());
    let read = app.tasks.blocking(move || samples.read(&id, since, now, POINTS)).await;
    if !matches!(read, Some(Ok(samples)) if has_rested(&samples)) {
        return false;
    }
    let used = timeout(ASK_LIMIT, app.agents.is_used(instance, limit)).await;
    matches!(used, Ok(Ok(false)))
}

/// Stops instances that hold cards and have been idle for as long as `limit`, round after round. All their files stay.
pub(crate) async fn run(app: Arc<App>, limit: Duration) {
    let stopping = app.tasks.stopping();
    let pause = (limit / 10).clamp(LOOK, LOOK_AT_ALL);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        if let Err(error) = stop_idle(&app, limit).await {
            tracing::error!(error = chain(&error), "cannot stop instances that are idle");
        }
    }
}

async fn stop_idle(app: &Arc<App>, limit: Duration) -> Result<(), StoreError> {
    for row in app.store.instances().await? {
        // What is left of a task and was opened is an instance like any other.
        let holds_cards = !row.spec.task && row.goal == Goal::Running && row.spec.gpus > 0;
        let Status::Running { since } = row.status else { continue };
        if !holds_cards || !is_idle(app, &row.id, since, limit).await {
            continue;
        }
        let line = Line::by_system("instance.stop", row.id.as_str())
            .with("name", row.name.as_str())
            .with("cause", "idle");
        // Whoever has acted meanwhile is not idle.
        if app.store.set_goal(&row.id, row.generation, Goal::Stopped, &Status::STOPPING, &line).await? {
            tracing::info!(instance = %row.id, "stopped: it held cards and was idle for as long as it may be");
            app.announce_stop(row);
        }
    }
    Ok(())
}

/// Without a sample nothing is known.
fn has_rested(samples: &[Sample]) -> bool {
    let rests = |sample: &Sample| {
        sample.cpus < CPUS_AT_REST && sample.gpu_busy.is_none_or(|busy| busy < CARDS_AT_REST)
    };
    !samples.is_empty() && samples.iter().all(rests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rests_uses_neither_processors_nor_cards() {
        let sample = |cpus: f64, gpu_busy: Option<f64>| Sample {
            at: Timestamp::UNIX_EPOCH,
            cpus,
            memory_bytes: 1 << 30,
            disk_read_bytes: 0,
            disk_written_bytes: 0,
            received_bytes: 0,
            sent_bytes: 0,
            gpu_busy,
            gpu_memory_bytes: None,
        };
        assert!(has_rested(&[sample(0.0, None), sample(0.01, Some(0.0))]));
        assert!(!has_rested(&[sample(0.0, None), sample(0.5, None)]));
        assert!(!has_rested(&[sample(0.0, Some(90.0))]));
        assert!(!has_rested(&[]), "nothing is known");
    }
}
