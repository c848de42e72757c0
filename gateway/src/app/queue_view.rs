//! The line as people see it: their own in full, of the others what they take.

use ::queue::Decision;
use gateway_api::queue::{Queued, QueuedKind, QueuedWork};

use super::App;
use crate::{
    auth::{Caller, policy},
    error::Error,
    store::{JobRow, Waiting},
};

impl App {
    /// Takes over the places of a decision; answers with the ids of those whose place is another one now. Everyone hears
    /// that the line has moved: places are in no table, so the store tells nobody.
    pub(crate) fn note_places(&self, decisions: &[Decision]) -> Vec<String> {
        let before = self.places.count();
        let changed = self.places.note(decisions);
        if !changed.is_empty() || self.places.count() != before {
            self.events.line_moved();
        }
        changed
    }

    /// All that waits, in its order.
    pub(crate) async fn queue(&self, caller: &Caller) -> Result<Vec<Queued>, Error> {
        let instances = self.store.waiting_instances().await?;
        let jobs = self.store.waiting_jobs().await?;
        let instances = instances.into_iter().filter_map(|waiting| self.queued_instance(caller, waiting));
        let jobs = jobs.iter().filter_map(|job| self.queued_job(caller, job));
        let mut line: Vec<_> = instances.chain(jobs).collect();
        // What can never start is nobody's turn.
        line.sort_by_key(|queued| (queued.position == 0, queued.position));
        Ok(line)
    }

    fn queued_instance(&self, caller: &Caller, waiting: Waiting) -> Option<Queued> {
        let queue = self.places.of(waiting.id.as_str())?;
        let position = queue.position;
        let known = policy::may_know_holder(caller, &waiting.user, &waiting.group);
        let user = waiting.user.parse().ok()?;
        Some(Queued {
            position,
            kind: QueuedKind::Instance,
            priority: waiting.priority,
            gpus: waiting.spec.gpus,
            gpu_model: waiting.spec.gpu_model,
            cpus: waiting.spec.cpus,
            memory_bytes: waiting.spec.memory_bytes,
            since: waiting.queued_at,
            work: known.then(|| QueuedWork { id: waiting.id.to_string(), name: waiting.name, user, queue }),
        })
    }

    fn queued_job(&self, caller: &Caller, job: &JobRow) -> Option<Queued> {
        let queue = self.places.of(job.id.as_str())?;
        let position = queue.position;
        let known = policy::may_know_holder(caller, job.user.as_str(), &job.group);
        let roles = || job.spec.roles.iter();
        Some(Queued {
            position,
            kind: QueuedKind::Job,
            priority: job.priority,
            gpus: roles().map(|role| role.tasks * role.resources.gpus).sum(),
            gpu_model: job.spec.gpu_model.clone(),
            cpus: roles().map(|role| f64::from(role.tasks) * role.resources.cpus).sum(),
            memory_bytes: roles().map(|role| u64::from(role.tasks) * (role.resources.memory_mib << 20)).sum(),
            since: job.queued_at,
            work: known.then(|| QueuedWork {
                id: job.id.to_string(),
                name: job.name.clone(),
                user: job.user.clone(),
                queue,
            }),
        })
    }
}
