//! Secrets on their way into instances.
//!
//! The agent of an instance that uses secrets holds its command until they come. Until then the instance is `starting`,
//! so nobody gets into it without them; that it is `running` is written down only afterwards. Whoever is killed in
//! between begins again: an agent that has them already keeps what it has.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gateway_api::{Goal, InstanceId, Status};

use crate::{
    app::App,
    error::chain,
    store::{InstanceRow, StoreError},
};

/// How long it rests before it tries an agent again.
const REST: Duration = Duration::from_millis(500);

/// The runs that are on their way, and what each is once its secrets are there.
#[derive(Debug, Default)]
pub(crate) struct Delivering(Mutex<HashMap<(InstanceId, u64), Status>>);

impl Delivering {
    /// `true` for whoever comes first.
    fn begin(&self, id: &InstanceId, generation: u64, then: Status) -> bool {
        self.all().insert((id.clone(), generation), then).is_none()
    }

    fn end(&self, id: &InstanceId, generation: u64) -> Option<Status> {
        self.all().remove(&(id.clone(), generation))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<(InstanceId, u64), Status>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an instance is still to get its secrets before it is what the cluster says.
pub(super) fn is_due(row: &InstanceRow, status: &Status) -> bool {
    let waits = row.job.is_none() && !row.spec.secrets.is_empty();
    waits && matches!(status, Status::Running { .. }) && *status != row.status
}

/// Beside the loop and not in it: an agent can take its time.
pub(super) fn deliver(app: &Arc<App>, row: &InstanceRow, then: Status) {
    if !app.delivering.begin(&row.id, row.generation, then) {
        return;
    }
    let (owned, id, generation) = (Arc::clone(app), row.id.clone(), row.generation);
    app.tasks.spawn("deliver secrets", async move {
        let stopping = owned.tasks.stopping();
        loop {
            match attempt(&owned, &id, generation).await {
                Ok(true) => return,
                // It is on its way once more, and whoever said so relies on this task.
                Ok(false) if !is_wanted(&owned, &id, generation).await => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(instance = %id, error, "its secrets are not there yet"),
            }
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(REST) => {}
            }
        }
    });
}

/// One try; `false` if there is nobody to deliver to now.
async fn attempt(app: &App, id: &InstanceId, generation: u64) -> Result<bool, String> {
    let Some(row) = waiting(app, id, generation).await.map_err(|error| chain(&error))? else {
        return Ok(false);
    };
    let begin = app.secrets_for(&row).await.map_err(|error| chain(&error))?;
    app.agents.begin(id, begin).await.map_err(|error| chain(&error))?;
    let Some(then) = app.delivering.end(id, generation) else { return Ok(true) };
    if app.store.has_started(id, generation, &then).await.map_err(|error| chain(&error))?
        && let Some(row) = app.store.instance(id).await.map_err(|error| chain(&error))?
    {
        app.announce(row);
    }
    Ok(true)
}

/// Gives the delivery up, unless it is waited for again.
async fn is_wanted(app: &App, id: &InstanceId, generation: u64) -> bool {
    let then = app.delivering.end(id, generation);
    match (waiting(app, id, generation).await, then) {
        (Ok(None), _) | (_, None) => false,
        (Ok(Some(_)) | Err(_), Some(then)) => app.delivering.begin(id, generation, then),
    }
}

async fn waiting(app: &App, id: &InstanceId, generation: u64) -> Result<Option<InstanceRow>, StoreError> {
    let row = app.store.instance(id).await?;
    Ok(row.filter(|row| {
        row.generation == generation && row.goal == Goal::Running && matches!(row.status, Status::Starting)
    }))
}
