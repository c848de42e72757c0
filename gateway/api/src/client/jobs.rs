//! Jobs.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use reqwest::{Method, Url};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Client, ClientError, Event, Events, Process, process, wait};
use crate::{
    Code, Job, JobId, Page,
    convert::{ConvertJob, Converted},
    job::{ChangeJob, DryRun, JobEventAt, RerunJob, SubmitJob},
    quota::{OwnQuota, Quota},
    usage::{Sample, Usage},
};

/// Which part of what a task wrote. What is left out does not narrow it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPart {
    /// `role/index`; the first task when absent.
    pub task: Option<String>,
    /// Which try, from 1; the last when absent.
    pub attempt: Option<u32>,
    pub tail: Option<u32>,
    pub since: Option<Timestamp>,
    pub grep: Option<String>,
    /// From this line on, counted from 1, whatever `tail` and `since` say.
    pub from: Option<u64>,
    /// How many with `from`.
    pub lines: Option<u64>,
}

/// Wherever a job is asked for, its name, its slug or its id will do.
impl Client {
    pub async fn submit_job(&self, job: &SubmitJob) -> Result<Job, ClientError> {
        self.call(Method::POST, &["jobs"], Some(job)).await
    }

    /// What would become of a submission.
    pub async fn dry_run_job(&self, job: &SubmitJob) -> Result<DryRun, ClientError> {
        self.call(Method::POST, &["jobs:dryRun"], Some(job)).await
    }

    /// What a job file means at this site; mistakes are part of the answer.
    pub async fn convert_job(&self, file: &ConvertJob) -> Result<Converted, ClientError> {
        self.call(Method::POST, &["jobs:convert"], Some(file)).await
    }

    /// One's own jobs, or all that one may see, newest first.
    pub async fn jobs(&self, all: bool) -> Result<Vec<Job>, ClientError> {
        self.all_pages("jobs", all, |job: &Job| job.id.to_string()).await
    }

    /// Those that come after `after`; the newest when it is absent.
    pub async fn job_page(
        &self,
        all: bool,
        after: Option<&JobId>,
        limit: u32,
    ) -> Result<Vec<Job>, ClientError> {
        self.page("jobs", all, after.map(JobId::as_str), limit).await
    }

    pub async fn job(&self, name: &str) -> Result<Job, ClientError> {
        self.get(&["jobs", name]).await
    }

    pub async fn stop_job(&self, name: &str) -> Result<Job, ClientError> {
        self.call(Method::POST, &["jobs", name, "stop"], None::<&()>).await
    }

    pub async fn delete_job(&self, name: &str) -> Result<Job, ClientError> {
        self.call(Method::DELETE, &["jobs", name], None::<&()>).await
    }

    pub async fn change_job(&self, name: &str, change: &ChangeJob) -> Result<Job, ClientError> {
        self.call(Method::PATCH, &["jobs", name], Some(change)).await
    }

    pub async fn rerun_job(&self, name: &str, rerun: &RerunJob) -> Result<Job, ClientError> {
        self.call(Method::POST, &["jobs", name, "rerun"], Some(rerun)).await
    }

    pub async fn job_events(&self, name: &str) -> Result<Vec<JobEventAt>, ClientError> {
        Ok(self.get::<Page<JobEventAt>>(&["jobs", name, "events"]).await?.items)
    }

    /// The file as it was submitted.
    pub async fn job_file(
        &self,
        name: &str,
    ) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Unpin + use<>, ClientError> {
        self.pieces(self.url(&["jobs", name, "file"])?).await
    }

    /// What the file became, in our own YAML.
    pub async fn job_spec(&self, name: &str) -> Result<String, ClientError> {
        let mut url = self.url(&["jobs", name, "file"])?;
        url.query_pairs_mut().append_pair("converted", "true");
        let pieces: Vec<Bytes> = self.pieces(url).await?.try_collect().await?;
        Ok(String::from_utf8_lossy(&pieces.concat()).into_owned())
    }

    /// What a task has written so far.
    pub async fn job_logs(
        &self,
        name: &str,
        part: &LogPart,
    ) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Unpin + use<>, ClientError> {
        self.pieces(self.log_url(&["jobs", name, "logs"], part)?).await
    }

    /// The same, then on until the task has ended.
    pub async fn follow_job_logs(&self, name: &str, part: &LogPart) -> Result<Process, ClientError> {
        let url = self.log_url(&["jobs", name, "logs", "follow"], part)?;
        Process::connect(self, url, process::Framing::Prefixed).await
    }

    pub(super) async fn pieces(
        &self,
        url: Url,
    ) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Unpin + use<>, ClientError> {
        let answer = self.send(self.request(Method::GET, url.clone()), &url).await?;
        Ok(answer.bytes_stream().map_err(move |cause| ClientError::unreachable(&url, cause)))
    }

    pub(super) fn log_url(&self, path: &[&str], part: &LogPart) -> Result<Url, ClientError> {
        let mut url = self.url(path)?;
        let pairs = [
            ("task", part.task.clone()),
            ("attempt", part.attempt.map(|number| number.to_string())),
            ("tail", part.tail.map(|number| number.to_string())),
            ("since", part.since.map(|time| time.to_string())),
            ("grep", part.grep.clone()),
            ("from", part.from.map(|number| number.to_string())),
            ("lines", part.lines.map(|number| number.to_string())),
        ];
        for (name, value) in pairs {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, &value);
            }
        }
        Ok(url)
    }

    /// Waits until the job is as `done` wants it; `None` when it is gone.
    ///
    /// A gateway that goes away for a while is waited for too, up to `limit`.
    pub async fn wait_for_job(
        &self,
        id: &JobId,
        limit: Duration,
        mut done: impl FnMut(&Job) -> bool,
    ) -> Result<Option<Job>, ClientError> {
        let deadline = Instant::now() + limit;
        let late = || ClientError::TooLate { what: format!("waiting for {id}"), limit };
        let mut events: Option<Events> = None;
        loop {
            if events.is_none() {
                events = timeout_at(deadline, self.events()).await.map_err(|_| late())?.ok();
            }
            match timeout_at(deadline, self.job(id.as_str())).await.map_err(|_| late())? {
                Ok(job) if done(&job) => return Ok(Some(job)),
                Ok(_) | Err(ClientError::Unreachable { .. }) => {}
                Err(error) if error.code() == Some(Code::NotFound) => return Ok(None),
                Err(error) => return Err(error),
            }
            let every = if events.is_some() { wait::ASK_WITH_EVENTS } else { wait::ASK_WITHOUT_EVENTS };
            let ask_again = (Instant::now() + every).min(deadline);
            loop {
                tokio::select! {
                    () = sleep_until(ask_again) => break,
                    event = wait::next(&mut events) => match event {
                        Some(Event::Job(job)) if job.id == *id && done(&job) => return Ok(Some(*job)),
                        Some(Event::JobDeleted(gone)) if gone == *id => return Ok(None),
                        Some(_) => {}
                        None => {
                            events = None;
                            break;
                        }
                    },
                }
            }
            if Instant::now() >= deadline {
                return Err(late());
            }
        }
    }
}

/// What may be held at a time.
impl Client {
    /// What an instance used.
    pub async fn instance_samples(
        &self,
        name: &str,
        since: Option<Timestamp>,
        points: Option<usize>,
    ) -> Result<Vec<Sample>, ClientError> {
        self.samples(&["instances", name, "samples"], since, points).await
    }

    /// What the first task of a job used.
    pub async fn job_samples(
        &self,
        name: &str,
        since: Option<Timestamp>,
        points: Option<usize>,
    ) -> Result<Vec<Sample>, ClientError> {
        self.samples(&["jobs", name, "samples"], since, points).await
    }

    async fn samples(
        &self,
        path: &[&str],
        since: Option<Timestamp>,
        points: Option<usize>,
    ) -> Result<Vec<Sample>, ClientError> {
        let mut url = self.url(path)?;
        if let Some(since) = since {
            url.query_pairs_mut().append_pair("since", &since.to_string());
        }
        if let Some(points) = points {
            url.query_pairs_mut().append_pair("points", &points.to_string());
        }
        Ok(self.get_url::<Page<Sample>>(url).await?.items)
    }

    /// What was held from `since` until `until`.
    pub async fn usage(
        &self,
        all: bool,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Vec<Usage>, ClientError> {
        let mut url = self.url(&["usage"])?;
        if all {
            url.query_pairs_mut().append_pair("all", "true");
        }
        for (name, time) in [("since", since), ("until", until)] {
            if let Some(time) = time {
                url.query_pairs_mut().append_pair(name, &time.to_string());
            }
        }
        Ok(self.get_url::<Page<Usage>>(url).await?.items)
    }

    /// What the caller and the caller's group may hold, hold and wait for.
    pub async fn own_quota(&self) -> Result<OwnQuota, ClientError> {
        self.get(&["me", "quota"]).await
    }

    pub async fn user_quota(&self, name: &str) -> Result<Quota, ClientError> {
        self.get(&["users", name, "quota"]).await
    }

    pub async fn group_quota(&self, name: &str) -> Result<Quota, ClientError> {
        self.get(&["groups", name, "quota"]).await
    }

    pub async fn set_user_quota(&self, name: &str, quota: &Quota) -> Result<Quota, ClientError> {
        self.call(Method::PUT, &["users", name, "quota"], Some(quota)).await
    }

    pub async fn set_group_quota(&self, name: &str, quota: &Quota) -> Result<Quota, ClientError> {
        self.call(Method::PUT, &["groups", name, "quota"], Some(quota)).await
    }
}

impl Job {
    /// Whether it has ended for good.
    pub fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }
}
