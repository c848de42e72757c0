//! `berth start`, `stop`, `restart`, `rm`, and waiting for any of them.

use std::time::Duration;

use clap::Args;
use gateway_api::{
    Code, Instance,
    client::{ClientError, Waited},
    instance::Status as State,
};

use super::{Session, jobs};
use crate::{
    failure::{self, Said, Status},
    output::{self, Progress},
};

/// How long is waited for an instance, unless it is said.
const INSTANCE_LIMIT: Duration = Duration::from_hours(1);
/// How long is waited for the end of a job: as long as it takes.
pub(super) const JOB_LIMIT: Duration = Duration::from_hours(24 * 366);

#[derive(Debug, Args)]
pub(crate) struct Names {
    /// The instances
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    wait: Wait,
}

#[derive(Debug, Args)]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) names: Names,
    /// For what a failed task of a job left: so many graphics processors of the kind that it had [default: none]
    #[arg(long, value_name = "N")]
    pub(crate) gpus: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// Wait until it is done, and fail if it fails
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait [default: an hour, and for a job until it has ended]
    #[arg(long, value_name = "SECONDS", requires = "wait")]
    timeout: Option<u64>,
}

impl Wait {
    fn instance_limit(&self) -> Duration {
        self.timeout.map_or(INSTANCE_LIMIT, Duration::from_secs)
    }

    pub(crate) fn job_limit(&self) -> Duration {
        self.timeout.map_or(JOB_LIMIT, Duration::from_secs)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Verb {
    Start { gpus: Option<u32> },
    Stop,
    Restart,
    Remove,
}

/// Tells all of them first and waits afterwards; one that fails does not hold up the others.
pub(crate) async fn run(verb: Verb, arguments: &Names, session: &Session) -> anyhow::Result<Status> {
    let mut status = Status::DONE;
    let mut told = Vec::new();
    for name in &arguments.names {
        match tell(verb, name, session).await {
            Ok(both) => told.push(both),
            Err(error) if error.code() == Some(Code::NotFound) && jobs::knows(verb, name, session).await => {
                match jobs::end(verb, name, &arguments.wait, session).await {
                    Ok(name) => output::data(&name)?,
                    Err(error) => status = failure::report(&error, session.words, Status::FAILED),
                }
            }
            Err(error) => {
                let error = session.explain(name, error).await;
                status = failure::report(&error, session.words, Status::FAILED);
            }
        }
    }
    for (before, now) in told {
        let done = if arguments.wait.wait {
            arguments.wait.until_done(verb, session, before.as_ref(), now).await
        } else {
            Ok(now.name.to_string())
        };
        match done {
            Ok(name) => {
                if matches!(verb, Verb::Remove) {
                    output::say(&session.words.deleted(&name, arguments.wait.wait));
                }
                output::data(&name)?;
            }
            Err(error) => status = failure::report(&error, session.words, Status::FAILED),
        }
    }
    Ok(status)
}

/// The instance as it was, where that matters, and as it is after the call.
async fn tell(
    verb: Verb,
    name: &str,
    session: &Session,
) -> Result<(Option<Instance>, Instance), ClientError> {
    let client = &session.client;
    Ok(match verb {
        Verb::Start { gpus: None } => (None, client.start_instance(name).await?),
        Verb::Start { gpus: Some(gpus) } => (None, client.open_with_gpus(name, gpus).await?),
        Verb::Stop => (None, client.stop_instance(name).await?),
        Verb::Restart => (Some(client.instance(name).await?), client.restart_instance(name).await?),
        Verb::Remove => (None, client.delete_instance(name).await?),
    })
}

impl Wait {
    /// Waits until the instance rests; an instance that failed or vanished meanwhile is an error.
    pub(crate) async fn until_at_rest(
        &self,
        session: &Session,
        instance: Instance,
    ) -> anyhow::Result<Instance> {
        match self.until(session, &instance, Instance::is_at_rest).await? {
            Waited::Rests(instance) => not_failed(session, *instance),
            Waited::Gone => {
                Err(Said { what: session.words.instance_gone(instance.name.as_str()), hint: None }.into())
            }
        }
    }

    async fn until_done(
        &self,
        verb: Verb,
        session: &Session,
        before: Option<&Instance>,
        now: Instance,
    ) -> anyhow::Result<String> {
        let name = now.name.to_string();
        match verb {
            Verb::Remove => {
                self.until(session, &now, |_| false).await?;
            }
            // Until envd has seen the new goal, the old run is still reported.
            Verb::Restart => {
                let old = before.and_then(|before| running_since(&before.status));
                let restarted = |instance: &Instance| {
                    instance.is_at_rest() && (old.is_none() || running_since(&instance.status) != old)
                };
                if let Waited::Rests(instance) = self.until(session, &now, restarted).await? {
                    not_failed(session, *instance)?;
                }
            }
            Verb::Start { .. } => {
                self.until_at_rest(session, now).await?;
            }
            Verb::Stop => {
                self.until(session, &now, Instance::is_at_rest).await?;
            }
        }
        Ok(name)
    }

    async fn until(
        &self,
        session: &Session,
        instance: &Instance,
        done: impl FnMut(&Instance) -> bool,
    ) -> Result<Waited, ClientError> {
        let mut progress = Progress::new(session.words);
        let limit = self.instance_limit();
        session.client.wait_until(&instance.id, limit, done, |now| progress.show(now)).await
    }
}

fn running_since(status: &State) -> Option<jiff::Timestamp> {
    match status {
        State::Running { since } => Some(*since),
        State::Waiting { .. }
        | State::Pulling { .. }
        | State::Starting
        | State::Stopping { .. }
        | State::Stopped { .. }
        | State::Succeeded
        | State::Failed { .. }
        | State::Deleting { .. } => None,
    }
}

fn not_failed(session: &Session, instance: Instance) -> anyhow::Result<Instance> {
    if let State::Failed { reason, .. } = &instance.status {
        let name = instance.name.as_str();
        let what = session.words.instance_failed(name, reason);
        return Err(Said { what, hint: Some(session.words.hint_logs(name)) }.into());
    }
    Ok(instance)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        wait: Wait,
    }

    #[test]
    fn the_end_of_a_job_is_waited_for_as_long_as_it_takes() {
        let limits = |line: &[&str]| {
            let Line { wait } = Line::try_parse_from(line).unwrap();
            (wait.instance_limit(), wait.job_limit())
        };
        let hour = Duration::from_hours(1);
        let (instance, job) = limits(&["berth", "--wait"]);
        assert!(instance == hour && job > 24 * 300 * hour, "{instance:?} {job:?}");
        assert_eq!(limits(&["berth", "--wait", "--timeout", "3600"]), (hour, hour));
    }
}
