//! What instances and tasks use, and what everyone has held over time.

use std::sync::Arc;

use gateway_api::{
    InstanceId, UserName,
    error::Reason,
    session::Role,
    usage::{Sample, Usage},
};
use jiff::{SignedDuration, Timestamp};

use super::App;
use crate::{
    auth::{Caller, policy},
    error::Error,
    store::Whose,
};

/// What is asked for where nothing is said.
const HOURS_DEFAULT: i64 = 1;
const DAYS_DEFAULT: i64 = 30;
const POINTS_DEFAULT: usize = 360;
const POINTS_MAX: usize = 10_000;

/// A stretch of time, and how finely it is to be drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) points: Option<usize>,
}

impl App {
    pub(crate) async fn instance_samples(
        &self,
        caller: &Caller,
        name: &str,
        stretch: Stretch,
    ) -> Result<Vec<Sample>, Error> {
        let row = self.find(caller, name).await?;
        self.samples_of(row.id, stretch).await
    }

    /// Those of a task, also when it is gone.
    pub(crate) async fn job_samples(
        &self,
        caller: &Caller,
        name: &str,
        task: Option<&str>,
        attempt: Option<u32>,
        stretch: Stretch,
    ) -> Result<Vec<Sample>, Error> {
        let row = self.find_job(caller, name).await?;
        match self.task_instance(&row, task, attempt).await {
            Ok(instance) => self.samples_of(instance, stretch).await,
            // In the line: nothing was used yet.
            Err(Error::WrongJobState { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn samples_of(&self, instance: InstanceId, stretch: Stretch) -> Result<Vec<Sample>, Error> {
        let (since, until) = times(stretch, SignedDuration::from_hours(HOURS_DEFAULT))?;
        let points = stretch.points.unwrap_or(POINTS_DEFAULT).clamp(1, POINTS_MAX);
        let samples = Arc::clone(&self.samples);
        let read = self.tasks.blocking(move || samples.read(&instance, since, until, points)).await;
        read.unwrap_or_else(|| Err(std::io::Error::other("it panicked"))).map_err(Error::internal)
    }

    /// What was held, and what images take: by everyone for an admin, by the group for its leader, by oneself for others.
    pub(crate) async fn usage(
        &self,
        caller: &Caller,
        all: bool,
        stretch: Stretch,
    ) -> Result<Vec<Usage>, Error> {
        let whose = match (all, caller.user.role) {
            (true, Role::Admin) => Whose::Everyones,
            (true, Role::Leader) => Whose::Group(caller.user.group_id),
            (true, Role::User) => {
                policy::administer(caller)?;
                Whose::User(caller.user.id)
            }
            (false, _) => Whose::User(caller.user.id),
        };
        let (since, until) = times(stretch, SignedDuration::from_hours(24 * DAYS_DEFAULT))?;
        let usage = self.store.usage(whose, since, until).await?;
        Ok(with_images(usage, self.store.image_bytes(whose).await?))
    }
}

/// Adds what images take, at what had no graphics processor.
fn with_images(mut usage: Vec<Usage>, images: Vec<(UserName, String, u64)>) -> Vec<Usage> {
    for (user, group, image_bytes) in images {
        let is_theirs = |one: &&mut Usage| one.user == user && one.group == group && one.gpu_model.is_none();
        if let Some(one) = usage.iter_mut().find(is_theirs) {
            one.image_bytes = image_bytes;
            continue;
        }
        let (gpu_model, gpu_hours, cpu_hours, starts) = (None, 0.0, 0.0, 0);
        usage.push(Usage { user, group, gpu_model, gpu_hours, cpu_hours, starts, image_bytes });
    }
    usage
}

/// From when until when; what ends before it begins is a mistake.
fn times(stretch: Stretch, usual: SignedDuration) -> Result<(Timestamp, Timestamp), Error> {
    let until = stretch.until.unwrap_or_else(Timestamp::now);
    let since = match stretch.since {
        Some(since) => since,
        None => until.checked_sub(usual).unwrap_or(Timestamp::MIN),
    };
    if since > until {
        return Err(Error::unfit("since", Reason::EndsBeforeItStarts));
    }
    Ok((since, until))
}
