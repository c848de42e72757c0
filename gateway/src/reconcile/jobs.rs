//! Takes jobs from their start to their end: tells the tasks of a try to begin together, sees what becomes of them, and
//! decides (by `jobfile::outcome`) when a try is over and whether there is another one.
//!
//! Like every loop here it takes no input, is woken by a signal and by a clock, and may be killed at any instruction:
//! each step is one write that names the version it has seen.

use std::{collections::HashSet, sync::Arc, time::Duration};

use gateway_api::{
    Goal, JobId, Status,
    instance::WaitReason,
    job::{EndCause, JobEnd, JobEvent, TaskEnd},
};
use jiff::Timestamp;
use jobfile::outcome::{self, Next, RoleTasks, Task, Verdict};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    app::{App, in_line, kept_for, stopped_by, task_status},
    error::chain,
    events::What,
    store::{AttemptEnd, JobRow, StoreError, TaskRow},
};

/// How often it looks without being told to.
const CLOCK: Duration = Duration::from_secs(2);
/// Tries that follow each other at once; those after them wait for each other, longer and longer.
const TRIES_AT_ONCE: u32 = 3;
const PAUSE_MAX: Duration = Duration::from_mins(5);
/// A try that ran for this long did not fail because it was started.
const RAN_WELL: Duration = Duration::from_mins(1);
/// The tries of a job whose output is kept.
const TRIES_KEPT: u32 = 20;
/// Who stops what nobody stopped by name.
const SYSTEM: &str = "system";

/// Runs until the process stops.
pub(crate) async fn run(app: Arc<App>) {
    let stopping = app.tasks.stopping();
    let mut clock = interval(CLOCK);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = app.jobs_move.notified() => {}
            _ = clock.tick() => {}
        }
        if let Err(error) = turn(&app).await {
            tracing::error!(error = chain(&error), "cannot look after the jobs");
        }
    }
}

async fn turn(app: &Arc<App>) -> Result<(), StoreError> {
    for job in app.store.jobs_under_way().await? {
        let id = job.id.clone();
        if let Err(error) = advance(app, job).await {
            tracing::error!(job = %id, error = chain(&error), "cannot look after a job");
        }
    }
    Ok(())
}

async fn advance(app: &Arc<App>, job: JobRow) -> Result<(), StoreError> {
    if job.goal == Goal::Deleted {
        return delete(app, &job).await;
    }
    let tasks = app.store.tasks_of(&job.id, job.attempt).await?;
    if job.ended_at.is_some() {
        if tasks.iter().all(|task| task.log_whole || task.machine.is_none()) {
            app.store.delete_tasks(&job.id).await?;
            app.clusters.wake();
        }
        return Ok(());
    }
    if tasks.is_empty() {
        // In the line: nothing to look after but a stop that nobody finished.
        if job.goal == Goal::Stopped {
            let end = stopped_by(job.stopped_by.as_deref().unwrap_or(SYSTEM));
            finish(app, job, end).await?;
        }
        return Ok(());
    }
    match job.verdict.clone().or_else(|| verdict(&job, &tasks)) {
        Some(verdict) => wind_up(app, job, verdict, &tasks).await,
        None if app.idle.is_over(app, &job, &tasks).await => {
            let end = JobEnd::new(EndCause::Idle);
            wind_up(app, job, AttemptEnd { end, judged: None }, &tasks).await
        }
        None => go_on(app, job, tasks).await,
    }
}

/// Whether the try is over, by what its tasks came to, by its time or by somebody's will.
fn verdict(job: &JobRow, tasks: &[TaskRow]) -> Option<AttemptEnd> {
    if job.goal == Goal::Stopped {
        let end = stopped_by(job.stopped_by.as_deref().unwrap_or(SYSTEM));
        return Some(AttemptEnd { end, judged: None });
    }
    let judged = outcome::judge(&roles(job, tasks));
    if judged != Verdict::Going {
        return Some(AttemptEnd { end: job_end(job, tasks, judged), judged: Some(judged) });
    }
    let limit = job.time_limit_seconds.and_then(|limit| i64::try_from(limit).ok())?;
    let due = job.begun_at?.checked_add(jiff::SignedDuration::from_secs(limit)).ok()?;
    (due <= Timestamp::now()).then(|| AttemptEnd { end: JobEnd::new(EndCause::TimeLimit), judged: None })
}

fn roles(job: &JobRow, tasks: &[TaskRow]) -> Vec<RoleTasks> {
    let of = |number: usize| tasks.iter().filter(move |task| task.role == number);
    let roles = job.spec.roles.iter().enumerate();
    roles
        .map(|(number, role)| RoleTasks {
            completion: role.completion,
            tasks: of(number).map(|task| outcome_of(job, task)).collect(),
        })
        .collect()
}

fn outcome_of(job: &JobRow, task: &TaskRow) -> Task {
    match &task.ended {
        // Its instance was deleted under it.
        None if task.machine.is_none() => Task::Failed { exit_code: outcome::NODE_LOST },
        None => Task::Going,
        Some(TaskEnd { cause, exit_code, .. }) => match cause {
            EndCause::Stopped => Task::Stopped,
            EndCause::Image => Task::Failed { exit_code: outcome::IMAGE_NOT_FOUND },
            EndCause::Lost => Task::Failed { exit_code: outcome::NODE_LOST },
            EndCause::Succeeded
            | EndCause::ExitCode
            | EndCause::Signal
            | EndCause::OutOfMemory
            | EndCause::OverDiskLimit
            | EndCause::CannotStart
            | EndCause::TimeLimit
            | EndCause::Idle
            | EndCause::NameTaken => {
                let out_of_memory = *cause == EndCause::OutOfMemory;
                outcome::task_end(job.spec.purpose, exit_code.unwrap_or(1), out_of_memory)
            }
        },
    }
}

fn job_end(job: &JobRow, tasks: &[TaskRow], judged: Verdict) -> JobEnd {
    let plain = JobEnd::new;
    match judged {
        Verdict::Going | Verdict::Succeeded { .. } => {
            JobEnd { exit_code: Some(0), ..plain(EndCause::Succeeded) }
        }
        Verdict::Stopped => plain(EndCause::Stopped),
        Verdict::Failed { role, task, exit_code } => {
            let name = job.spec.roles.get(role).map(|role| format!("{}/{task}", role.name));
            let row = tasks.iter().find(|row| row.role == role && row.task == task);
            match row.and_then(|row| row.ended.clone()) {
                Some(end) => {
                    JobEnd { exit_code: end.exit_code, task: name, message: end.message, ..plain(end.cause) }
                }
                None => JobEnd { exit_code: Some(exit_code), task: name, ..plain(EndCause::Lost) },
            }
        }
    }
}

/// The try is over: what still runs is stopped; once nothing does and all output is kept, comes what follows.
async fn wind_up(
    app: &Arc<App>,
    job: JobRow,
    verdict: AttemptEnd,
    tasks: &[TaskRow],
) -> Result<(), StoreError> {
    if job.verdict.is_none() {
        let status = if job.goal == Goal::Stopped { Status::STOPPING } else { job.status.clone() };
        let decided = JobRow { verdict: Some(verdict), status, ..job };
        if app.store.change_job(&decided, None, None).await? {
            app.jobs_move.notify_one();
        }
        return Ok(());
    }
    let gone = |task: &TaskRow| task.machine.is_none();
    if !tasks.iter().all(|task| task.ended.is_some() || gone(task)) {
        if app.store.stop_tasks(&job.id).await? {
            app.clusters.wake();
        }
        return Ok(());
    }
    if !tasks.iter().all(|task| task.log_whole || gone(task)) {
        app.logs_move.notify_one();
        return Ok(());
    }
    let mut verdict = verdict;
    verdict.end.last_lines = last_lines(app, &job, &verdict, tasks).await;
    let next = verdict
        .judged
        .map_or(Next::Over, |judged| outcome::retry(job.spec.dialect, job.spec.retries, job.tries, judged));
    match next {
        Next::Over => finish(app, job, verdict.end).await,
        Next::Again { counted } => again(app, job, verdict.end, counted).await,
    }
}

/// What the task wrote last that failed the try.
async fn last_lines(app: &App, job: &JobRow, verdict: &AttemptEnd, tasks: &[TaskRow]) -> Vec<String> {
    let Some(Verdict::Failed { role, task, .. }) = verdict.judged else { return Vec::new() };
    let Some(task) = tasks.iter().find(|row| row.role == role && row.task == task) else { return Vec::new() };
    app.logs.last_lines(&task.instance).await.unwrap_or_else(|error| {
        tracing::warn!(job = %job.id, %error, "its last lines cannot be read");
        Vec::new()
    })
}

async fn again(app: &App, job: JobRow, end: JobEnd, counted: bool) -> Result<(), StoreError> {
    let now = Timestamp::now();
    let ran_for = job.begun_at.and_then(|begun| now.duration_since(begun).try_into().ok());
    let pause = pause(job.attempt, ran_for.unwrap_or_default());
    let mut next = JobRow {
        attempt: job.attempt + 1,
        verdict: None,
        begun_at: None,
        status: if pause.is_zero() { in_line() } else { pausing(pause) },
        // It is not in the line before.
        queued_at: now.checked_add(pause).unwrap_or(now),
        ..job
    };
    if counted {
        next.tries.counted += 1;
    } else {
        next.tries.free += 1;
    }
    tracing::info!(job = %next.id, attempt = next.attempt, "another try");
    if app.store.try_job_again(&next, &JobEvent::Retried { end }).await? {
        next.version += 1;
        app.announce_job(&next).await?;
        app.clusters.wake();
        app.line_moves.notify_one();
        let kept = app.store.forget_tries(&next.id, next.attempt.saturating_sub(TRIES_KEPT)).await?;
        for instance in &kept {
            app.logs.forget(instance).await;
        }
    }
    Ok(())
}

/// How long a job waits after its try number `attempt`: the first tries follow at once, and so do those that ran for
/// a while; a command that fails at once is not started for ever as fast as it can.
fn pause(attempt: u32, ran_for: Duration) -> Duration {
    if attempt <= TRIES_AT_ONCE || ran_for >= RAN_WELL {
        return Duration::ZERO;
    }
    Duration::from_secs(1 << (attempt - TRIES_AT_ONCE - 1).min(16)).min(PAUSE_MAX)
}

fn pausing(pause: Duration) -> Status {
    let message = format!("its last try failed; it is tried again {} seconds later", pause.as_secs());
    Status::Waiting { reason: WaitReason::Queued, message }
}

pub(super) async fn finish(app: &App, job: JobRow, end: JobEnd) -> Result<(), StoreError> {
    let now = Timestamp::now();
    let status = match end.cause {
        EndCause::Succeeded => Status::Succeeded,
        EndCause::Stopped | EndCause::TimeLimit | EndCause::Idle => {
            Status::Stopped { exit_code: end.exit_code }
        }
        EndCause::ExitCode
        | EndCause::Signal
        | EndCause::OutOfMemory
        | EndCause::OverDiskLimit
        | EndCause::Image
        | EndCause::Lost
        | EndCause::CannotStart
        | EndCause::NameTaken => {
            Status::Failed { reason: end.message.clone(), exit_code: end.exit_code, cause: Some(end.cause) }
        }
    };
    let keeps = job.keep && matches!(status, Status::Failed { .. });
    let kept_until = keeps.then(|| now.checked_add(kept_for(app)).ok()).flatten();
    tracing::info!(job = %job.id, cause = ?end.cause, "ended");
    let over =
        JobRow { status, ended: Some(end.clone()), ended_at: Some(now), verdict: None, kept_until, ..job };
    if app.store.change_job(&over, Some(&JobEvent::Ended { end }), None).await? {
        app.announce_job(&JobRow { version: over.version + 1, ..over }).await?;
        app.jobs_move.notify_one();
        app.line_moves.notify_one();
    }
    Ok(())
}

/// The try goes on: its tasks begin once all are there, and the job's status is that of the one that is furthest back.
async fn go_on(app: &Arc<App>, job: JobRow, tasks: Vec<TaskRow>) -> Result<(), StoreError> {
    let there = |task: &TaskRow| {
        task.ended.is_some()
            || (task.address.is_some() && matches!(task_status(task), Status::Running { .. }))
    };
    if job.begun_at.is_none() && tasks.iter().all(there) {
        begin(app, job, tasks);
        return Ok(());
    }
    let status = furthest_back(&job, &tasks);
    if status != job.status {
        let stage = stage(&job.status, &status);
        let changed = JobRow { status, ..job };
        if app.store.change_job(&changed, stage.as_ref(), None).await? {
            app.announce_job(&JobRow { version: changed.version + 1, ..changed }).await?;
        }
    }
    Ok(())
}

/// The stage that a job comes to on its way from the one status to the other. One that keeps trying stays in its stage.
fn stage(before: &Status, now: &Status) -> Option<JobEvent> {
    match (before, now) {
        (Status::Pulling { .. }, Status::Pulling { .. })
        | (Status::Waiting { reason: WaitReason::Retrying | WaitReason::EngineUnreachable, .. }, _) => None,
        (_, Status::Pulling { .. }) => Some(JobEvent::Pulling {}),
        (Status::Pulling { .. } | Status::Waiting { .. }, Status::Starting) => Some(JobEvent::Creating {}),
        _ => None,
    }
}

fn furthest_back(job: &JobRow, tasks: &[TaskRow]) -> Status {
    let going = tasks.iter().filter(|task| task.ended.is_none()).map(task_status);
    let rank = |status: &Status| match status {
        Status::Waiting { .. } => 0,
        Status::Pulling { .. } => 1,
        Status::Starting => 2,
        Status::Running { .. }
        | Status::Stopping { .. }
        | Status::Stopped { .. }
        | Status::Succeeded
        | Status::Failed { .. }
        | Status::Deleting { .. } => 3,
    };
    let back = going.min_by_key(rank);
    match (back, job.begun_at) {
        (Some(status), _) if rank(&status) < 3 => status,
        (_, Some(since)) => Status::Running { since },
        (_, None) => Status::Starting,
    }
}

/// Beside the loop and not in it: an agent can take its time.
fn begin(app: &Arc<App>, job: JobRow, tasks: Vec<TaskRow>) {
    if !app.beginning.begin(&job.id) {
        return;
    }
    let owned = Arc::clone(app);
    app.tasks.spawn("begin a job", async move {
        let app = owned;
        match app.begin(&job, &tasks).await {
            Ok(()) => {
                if let Err(error) = has_begun(&app, &job.id, job.attempt).await {
                    tracing::error!(job = %job.id, error = chain(&error), "cannot write down that it has begun");
                }
            }
            Err(error) => tracing::warn!(job = %job.id, error = chain(&error), "cannot begin yet"),
        }
        app.beginning.end(&job.id);
    });
}

async fn has_begun(app: &App, id: &JobId, attempt: u32) -> Result<(), StoreError> {
    while let Some(job) = app.store.job(id).await? {
        if job.attempt != attempt || job.begun_at.is_some() || job.ended_at.is_some() {
            break;
        }
        let now = Timestamp::now();
        let status =
            if job.goal == Goal::Running { Status::Running { since: now } } else { job.status.clone() };
        let started_at = job.started_at.or(Some(now));
        let begun = JobRow { begun_at: Some(now), started_at, status, ..job };
        if app.store.change_job(&begun, Some(&JobEvent::Begun {}), None).await? {
            app.announce_job(&JobRow { version: begun.version + 1, ..begun }).await?;
            break;
        }
    }
    app.jobs_move.notify_one();
    Ok(())
}

async fn delete(app: &App, job: &JobRow) -> Result<(), StoreError> {
    app.store.delete_tasks(&job.id).await?;
    app.clusters.wake();
    let instances = app.store.task_instances(&job.id).await?;
    if app.store.forget_job(&job.id).await? {
        for instance in &instances {
            app.logs.forget(instance).await;
        }
        app.events.tell(job.user_id, What::JobDeleted(job.id.clone()));
    }
    Ok(())
}

/// The jobs that are being told to begin, so that no round tells one again meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Beginning(std::sync::Mutex<HashSet<JobId>>);

impl Beginning {
    fn begin(&self, id: &JobId) -> bool {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(id.clone())
    }

    fn end(&self, id: &JobId) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_at_once_is_tried_again_ever_more_slowly() {
        let seconds = |attempt| pause(attempt, Duration::ZERO).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 6, 12, 13, u32::MAX].map(seconds), [0, 0, 0, 1, 2, 4, 256, 300, 300]);
        assert_eq!(pause(50, RAN_WELL), Duration::ZERO);
    }
}
