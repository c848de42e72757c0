//! Jobs: what users do with them. Acts write the goal and return; the loops do the rest.

mod begin;
mod view;

pub(crate) use begin::task_status;

use std::{collections::HashSet, time::Duration};

use gateway_api::{
    Goal, InstanceId, Job, JobId, Slug, Status,
    instance::WaitReason,
    job::{
        ChangeJob, DryRun, EndCause, JobAction, JobEnd, JobEvent, JobEventAt, JobNote, RerunJob, SubmitJob,
    },
    session::Role,
};
use jiff::Timestamp;
use jobfile::{
    JobSpec, Level, Site,
    spec::{Accompaniment, StoragePath},
    variables,
};

use super::{App, instances::check, line};
use crate::{
    auth::{Caller, policy},
    clusters::Cluster,
    error::Error,
    events::What,
    store::{JobRow, NewJob, StoreError},
};

/// The most jobs of a page.
const LIST_MAX: u32 = 1000;
const NAME_MAX: usize = 255;
const TIME_LIMIT_MAX: u64 = 366 * 24 * 3600;

impl App {
    /// Takes a job into the line. Every mistake in its file is told at once, and then nothing is queued.
    pub(crate) async fn submit_job(&self, caller: &Caller, wanted: SubmitJob) -> Result<Job, Error> {
        let (mut row, warnings) = self.draft(caller, &wanted).await?;
        if let Some((wanted, largest)) = self.too_many_cpus(&row) {
            return Err(Error::TooLarge { field: "cpus", wanted, largest });
        }
        self.refuse(&line::job_work(&row)).await?;
        self.check_task_names(&row).await?;
        self.check_job_secrets(caller, &row.spec).await?;
        self.pin_job(caller, self.clusters.of(&row.cluster), &mut row.spec).await?;
        let new = NewJob {
            id: &row.id,
            user: caller.user.id,
            name: &row.name,
            slug: &row.slug,
            cluster: &row.cluster,
            file: &wanted.file,
            spec: &row.spec,
            warnings: &warnings,
            status: &row.status,
            priority: row.priority,
            needs: &self.saved_among(row.spec.roles.iter().filter_map(|role| role.image.as_deref())),
        };
        let entry = caller.line("job.submit", row.id.as_str()).with("name", row.name.as_str());
        self.store.add_job(new, &entry).await.map_err(|error| {
            if matches!(error, StoreError::Taken) {
                Error::AlreadyExists { kind: "job", name: row.name.clone() }
            } else {
                error.into()
            }
        })?;
        tracing::info!(user = %caller.user.name, job = %row.id, name = row.name, "submitted");
        self.line_moves.notify_one();
        let row = self.store.job(&row.id).await?.ok_or_else(|| not_found(&row.name))?;
        self.announce_job(&row).await?;
        self.job_view(caller, row).await
    }

    /// A task is called like an instance, so no two of one user may be called the same.
    async fn check_task_names(&self, row: &JobRow) -> Result<(), Error> {
        let mut mine: HashSet<Slug> = HashSet::new();
        if let Some(twice) = row.task_slugs().find(|slug| !mine.insert(slug.clone())) {
            return Err(Error::AlreadyExists { kind: "task", name: twice.to_string() });
        }
        if let Some(name) = self.store.slug_taken(row.user_id, &mine).await? {
            return Err(Error::NameTaken { name });
        }
        for other in self.store.unfinished_jobs_near(row.user_id, &row.slug).await? {
            if let Some(twice) = other.task_slugs().find(|slug| mine.contains(slug)) {
                return Err(Error::AlreadyExists { kind: "task", name: twice.to_string() });
            }
        }
        Ok(())
    }

    /// What would become of a submission.
    pub(crate) async fn dry_run_job(&self, caller: &Caller, wanted: &SubmitJob) -> Result<DryRun, Error> {
        let (row, _) = self.draft(caller, wanted).await?;
        if let Some((wanted, largest)) = self.too_many_cpus(&row) {
            return Ok(line::never_so_many_cpus(wanted, largest));
        }
        if self.store.job_by_slug(row.user_id, &row.slug).await?.is_some() {
            return Err(Error::AlreadyExists { kind: "job", name: row.name });
        }
        self.check_task_names(&row).await?;
        self.check_job_secrets(caller, &row.spec).await?;
        self.dry_run(&line::job_work(&row)).await
    }

    /// A task that asks for more processors than its machine has, and how many that are: the engine starts none such,
    /// though the line gives out each processor several times.
    fn too_many_cpus(&self, row: &JobRow) -> Option<(String, String)> {
        let most = self.clusters.of(&row.cluster).node()?.cpus;
        let wanted = row.spec.roles.iter().map(|role| role.resources.cpus).find(|wanted| *wanted > most)?;
        Some((wanted.to_string(), most.to_string()))
    }

    /// A page of the caller's own jobs, or of all that they may see: the newest, or those that come after `page.after`.
    pub(crate) async fn jobs(&self, caller: &Caller, all: bool, page: &JobPage) -> Result<Vec<Job>, Error> {
        let (user, group) = match (all, caller.user.role) {
            (true, Role::Admin) => (None, None),
            (true, Role::Leader) => (None, Some(caller.user.group_id)),
            (true, Role::User) | (false, _) => (Some(caller.user.id), None),
        };
        let limit = page.limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
        let rows = self.store.jobs(user, group, page.after.as_ref(), limit).await?;
        let ids: Vec<_> = rows.iter().map(|row| &row.id).collect();
        let mut tasks = self.store.tasks_of_jobs(&ids).await?;
        let view = |row: JobRow| {
            let its_own = tasks.remove(&row.id).unwrap_or_default();
            self.job_view_with(caller, row, its_own)
        };
        Ok(rows.into_iter().map(view).collect())
    }

    pub(crate) async fn job(&self, caller: &Caller, name: &str) -> Result<Job, Error> {
        let row = self.find_job(caller, name).await?;
        self.job_view(caller, row).await
    }

    /// The file as it was submitted; it may hold secrets, so only to the owner.
    pub(crate) async fn job_file(&self, caller: &Caller, name: &str) -> Result<Vec<u8>, Error> {
        let row = self.find_job(caller, name).await?;
        policy::may_read_job(caller, &row)?;
        Ok(self.store.job_file(&row.id).await?)
    }

    /// What its file became: the job that runs, in our own YAML and without its secrets.
    pub(crate) async fn job_spec(&self, caller: &Caller, name: &str) -> Result<String, Error> {
        let row = self.find_job(caller, name).await?;
        policy::may_read_job(caller, &row)?;
        Ok(jobfile::write(&row.spec))
    }

    pub(crate) async fn job_events(&self, caller: &Caller, name: &str) -> Result<Vec<JobEventAt>, Error> {
        let row = self.find_job(caller, name).await?;
        let events = self.store.job_events(&row.id).await?;
        let is_owner = row.user_id == caller.user.id;
        let shown = events.into_iter().map(|(at, mut event)| {
            if let (JobEvent::Retried { end } | JobEvent::Ended { end }, false) = (&mut event, is_owner) {
                end.last_lines.clear();
            }
            JobEventAt { at, event }
        });
        Ok(shown.collect())
    }

    /// The instance that a task was, to read what it wrote: its owner's alone.
    pub(crate) async fn task_of(
        &self,
        caller: &Caller,
        name: &str,
        task: Option<&str>,
        attempt: Option<u32>,
    ) -> Result<InstanceId, Error> {
        let row = self.find_job(caller, name).await?;
        policy::act_on_job(caller, &row, JobAction::Logs)?;
        self.task_instance(&row, task, attempt).await
    }

    pub(super) async fn task_instance(
        &self,
        row: &JobRow,
        task: Option<&str>,
        attempt: Option<u32>,
    ) -> Result<InstanceId, Error> {
        let (role, index) = match task {
            None => (0, 0),
            Some(text) => {
                let (role, index) = text.rsplit_once('/').unwrap_or((text, "0"));
                let role = row.spec.roles.iter().position(|known| known.name == role);
                role.zip(index.parse::<usize>().ok()).ok_or_else(|| Error::not_found("task", text))?
            }
        };
        let tasks = self.store.tasks_of(&row.id, attempt.unwrap_or(row.attempt)).await?;
        let found = tasks.into_iter().find(|known| known.role == role && known.task == index);
        match (found, task, attempt) {
            (Some(found), _, _) => Ok(found.instance),
            // In the line: there is nothing to read yet, and nothing wrong with asking.
            (None, _, None) if row.ended_at.is_none() => self.last_task(row, role, index).await,
            (None, _, _) => Err(Error::not_found("task", task.unwrap_or(&row.name))),
        }
    }

    /// The same task of the try before, for a job that waits for another one.
    async fn last_task(&self, row: &JobRow, role: usize, index: usize) -> Result<InstanceId, Error> {
        let before = self.store.tasks_of(&row.id, row.attempt.saturating_sub(1)).await?;
        let found = before.into_iter().find(|known| known.role == role && known.task == index);
        found.map(|found| found.instance).ok_or_else(|| Error::not_begun(&row.name))
    }

    pub(crate) async fn stop_job(&self, caller: &Caller, name: &str) -> Result<Job, Error> {
        let by = caller.user.name.to_string();
        self.act_on_job(caller, name, JobAction::Stop, |row| {
            row.goal = Goal::Stopped;
            row.stopped_by = Some(by.clone());
            if matches!(row.status, Status::Waiting { reason: WaitReason::Queued, .. }) {
                let end = stopped_by(&by);
                row.status = Status::Stopped { exit_code: None };
                row.ended = Some(end.clone());
                row.ended_at = Some(Timestamp::now());
                return JobEvent::Ended { end };
            }
            row.status = Status::STOPPING;
            JobEvent::StopAsked { by: by.clone() }
        })
        .await
    }

    pub(crate) async fn delete_job(&self, caller: &Caller, name: &str) -> Result<Job, Error> {
        let by = caller.user.name.to_string();
        self.act_on_job(caller, name, JobAction::Delete, |row| {
            row.goal = Goal::Deleted;
            row.status = Status::DELETING;
            JobEvent::StopAsked { by: by.clone() }
        })
        .await
    }

    pub(crate) async fn change_job(
        &self,
        caller: &Caller,
        name: &str,
        wanted: ChangeJob,
    ) -> Result<Job, Error> {
        if wanted == ChangeJob::default() {
            return Err(Error::unfit("", gateway_api::error::Reason::NothingToChange));
        }
        if wanted.time_limit_seconds.is_some_and(|limit| limit > TIME_LIMIT_MAX) {
            return Err(Error::unfit("time_limit_seconds", gateway_api::error::Reason::TimeLimitTooLong));
        }
        if wanted
            .priority
            .is_some_and(|priority| !(queue::PRIORITY_MIN..=queue::PRIORITY_MAX).contains(&priority))
        {
            return Err(Error::unfit("priority", gateway_api::error::Reason::PriorityOutOfRange));
        }
        self.check_priority(caller, wanted.priority)?;
        if let Some(limit) = wanted.time_limit_seconds {
            self.check_promises(caller, name, limit).await?;
        }
        let by = caller.user.name.to_string();
        self.act_on_job(caller, name, JobAction::Change, |row| {
            if let Some(limit) = wanted.time_limit_seconds {
                row.time_limit_seconds = (limit > 0).then_some(limit);
            }
            if let Some(priority) = wanted.priority {
                row.priority = priority;
            }
            JobEvent::Changed { by: by.clone() }
        })
        .await
    }

    /// The limit of what runs is what others were told by when they start: only an admin changes that.
    async fn check_promises(&self, caller: &Caller, name: &str, limit: u64) -> Result<(), Error> {
        let row = self.find_job(caller, name).await?;
        policy::act_on_job(caller, &row, JobAction::Change)?;
        let begun = row.begun_at.unwrap_or_else(Timestamp::now);
        let limit = (limit > 0).then(|| Duration::from_secs(limit));
        let end = limit.and_then(|limit| begun.checked_add(limit).ok());
        if caller.user.role != Role::Admin && self.holds_up(row.id.as_str(), end).await? {
            return Err(Error::Forbidden { why: "somebody in the line was told an earlier start" });
        }
        Ok(())
    }

    /// The same file once more, as a new job of the caller's.
    pub(crate) async fn rerun_job(
        &self,
        caller: &Caller,
        name: &str,
        wanted: RerunJob,
    ) -> Result<Job, Error> {
        let file = self.job_file(caller, name).await?;
        let row = self.find_job(caller, name).await?;
        let file = String::from_utf8_lossy(&file).into_owned();
        let name = match wanted.name {
            Some(name) => name,
            None => self.next_name(caller, &row.name).await?,
        };
        let wanted = SubmitJob {
            file,
            name: Some(name),
            keep_on_failure: Some(row.keep),
            cluster: Some(row.cluster),
            pool: row.spec.pool,
        };
        self.submit_job(caller, wanted).await
    }

    /// `train-2`, `train-3` …: the first that the caller does not have.
    async fn next_name(&self, caller: &Caller, name: &str) -> Result<String, Error> {
        let stem = match name.rsplit_once('-') {
            Some((stem, number))
                if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                stem
            }
            _ => name,
        };
        for number in 2..u32::MAX {
            let number = format!("-{number}");
            let next = stem.get(..NAME_MAX - number.len()).unwrap_or(stem).to_owned() + &number;
            if self.store.job_by_slug(caller.user.id, &Slug::of_job(&next)).await?.is_none() {
                return Ok(next);
            }
        }
        Err(Error::AlreadyExists { kind: "job", name: name.to_owned() })
    }

    /// A job as it would be, from its file.
    async fn draft(&self, caller: &Caller, wanted: &SubmitJob) -> Result<(JobRow, Vec<JobNote>), Error> {
        let (user, group) = (caller.user.name.as_str(), caller.user.group.as_str());
        let (cluster, clusters) = match &wanted.cluster {
            // Whatever the file says.
            Some(name) => (self.clusters.asked(Some(name))?, None),
            None => (self.cluster_of_file(&wanted.file), Some(self.clusters.names())),
        };
        let site = Site { clusters, ..self.site(cluster, user, &caller.user.home, group).await };
        let reading = jobfile::read(wanted.file.as_bytes(), &site);
        let mut notes: Vec<JobNote> = reading.notes.iter().map(note).collect();
        let Some(mut spec) = reading.spec else { return Err(Error::BadJobFile { notes }) };
        let id = JobId::new();
        let name = wanted.name.clone().or_else(|| spec.name.clone()).unwrap_or_else(|| made_up_name(&id));
        check_name(&name)?;
        spec.name = Some(name.clone());
        if let Some(keep) = wanted.keep_on_failure {
            spec.keep_on_failure = keep;
        }
        self.check_priority(caller, spec.priority)?;
        notes.extend(self.unknown_workspace(caller, &spec).await?.as_ref().map(note));
        spec.pool = wanted.pool.clone().or(spec.pool);
        spec.cluster = Some(cluster.name.clone());
        // Before anything is checked: what is checked is what runs.
        let known = variables::known_before(&spec, caller.user.name.as_str(), &name);
        spec = variables::expand_spec(&spec, &known);
        self.check_roles(caller, cluster, &mut spec).await?;
        let now = Timestamp::now();
        let row = JobRow {
            slug: Slug::of_job(&name),
            cluster: cluster.name.clone(),
            id,
            user_id: caller.user.id,
            user: caller.user.name.clone(),
            group_id: caller.user.group_id,
            group: caller.user.group.to_string(),
            name,
            warnings: notes.clone(),
            goal: Goal::Running,
            stopped_by: None,
            version: 1,
            status: in_line(),
            verdict: None,
            ended: None,
            attempt: 1,
            tries: jobfile::outcome::Tries::default(),
            priority: spec.priority.unwrap_or(line::PRIORITY_DEFAULT.min(self.highest_priority(caller))),
            time_limit_seconds: spec.time_limit.map(|limit| limit.as_secs()),
            keep: spec.keep_on_failure,
            created_at: now,
            queued_at: now,
            begun_at: None,
            started_at: None,
            ended_at: None,
            kept_until: None,
            spec,
        };
        Ok((row, notes))
    }

    /// What the site lets the caller give.
    fn highest_priority(&self, caller: &Caller) -> u8 {
        if caller.user.role == Role::Admin { queue::PRIORITY_MAX } else { self.config.jobs.priority_max }
    }

    fn check_priority(&self, caller: &Caller, wanted: Option<u8>) -> Result<(), Error> {
        let most = self.highest_priority(caller);
        match wanted {
            Some(wanted) if wanted > most => Err(Error::PriorityTooHigh { wanted, most }),
            Some(_) | None => Ok(()),
        }
    }

    /// The cluster that a file names, or the first: what there is of storages depends on it.
    pub(super) fn cluster_of_file(&self, file: &str) -> &Cluster {
        let named = jobfile::read(file.as_bytes(), &Site::default()).spec.and_then(|spec| spec.cluster);
        named.and_then(|name| self.clusters.get(&name)).unwrap_or_else(|| self.clusters.first())
    }

    /// What this site says about job files of that user, for a cluster.
    pub(crate) async fn site(&self, cluster: &Cluster, user: &str, home: &str, group: &str) -> Site {
        let old = self.config.jobs.old_paths.iter().map(|(path, storage)| {
            let (name, below) = storage.split_once('/').unwrap_or((storage, ""));
            let path = path.replace("{user}", user);
            StoragePath { path, name: name.to_owned(), below: below.to_owned() }
        });
        let storages = cluster.envd.storage(home, group).await.ok().map(|mounted| {
            let own = mounted.into_iter().map(|one| StoragePath {
                path: one.at,
                name: one.storage,
                below: String::new(),
            });
            let own: Vec<_> = own.collect();
            // An alias to a storage that this user does not have leads nowhere.
            let old: Vec<_> = old.filter(|old| own.iter().any(|one| one.name == old.name)).collect();
            [own, old].concat()
        });
        let shares = self.config.shares.iter().map(|share| share.name.clone()).collect();
        let registries = self.config.jobs.old_registries.clone();
        let mut site = Site { storages, shares: Some(shares), registries, ..Site::default() };
        if let Some(node) = cluster.node() {
            // Half of the memory, since nobody has said that they need all of it.
            site.with_gpus_most =
                Some(Accompaniment { cpus: node.cpus, memory_mib: node.memory_bytes >> 21 });
        }
        site
    }

    /// A workspace decides nothing here, so a file that names one of elsewhere runs all the same.
    async fn unknown_workspace(
        &self,
        caller: &Caller,
        spec: &JobSpec,
    ) -> Result<Option<jobfile::Note>, Error> {
        let Some(named) = &spec.workspace else { return Ok(None) };
        let own = self.store.workspaces(Some(caller.user.id)).await?;
        if own.iter().any(|workspace| workspace.name.as_str() == named) {
            return Ok(None);
        }
        let known: Vec<_> = own.iter().map(|workspace| workspace.name.as_str()).collect();
        let key = if spec.dialect == jobfile::Dialect::Dlc { "workspace_id" } else { "workspace" };
        let params = [("value", named.clone()), ("known", known.join(", "))];
        Ok(Some(jobfile::Note {
            level: Level::Warning,
            code: jobfile::Code::UnknownValue,
            place: None,
            pointer: format!("/{key}"),
            params: params.map(|(name, value)| (name.to_owned(), value)).into(),
        }))
    }

    /// Checks the image of each role; a saved one becomes the one with its digest.
    async fn check_roles(&self, caller: &Caller, cluster: &Cluster, spec: &mut JobSpec) -> Result<(), Error> {
        for role in &mut spec.roles {
            if let Some(image) = &mut role.image {
                check::image(image)?;
                *image = self.authorise_image(caller, image).await?;
                self.check_image_is_here(cluster, image).await?;
            }
        }
        Ok(())
    }

    async fn act_on_job(
        &self,
        caller: &Caller,
        name: &str,
        action: JobAction,
        change: impl Fn(&mut JobRow) -> JobEvent,
    ) -> Result<Job, Error> {
        loop {
            let mut row = self.find_job(caller, name).await?;
            policy::act_on_job(caller, &row, action)?;
            if action == JobAction::Delete && row.goal == Goal::Deleted {
                return self.job_view(caller, row).await;
            }
            if !action.fits(&row.status) {
                return Err(Error::WrongJobState { name: row.name, state: row.status.word(), action });
            }
            let event = change(&mut row);
            let entry = caller.line(act_word(action), row.id.as_str()).with("name", row.name.as_str());
            // The loop may have acted between the look and the write: look again.
            if self.store.change_job(&row, Some(&event), Some(&entry)).await? {
                row.version += 1;
                self.announce_job(&row).await?;
                self.jobs_move.notify_one();
                self.line_moves.notify_one();
                return self.job_view(caller, row).await;
            }
            if !self.store.still_opens(caller.key_hash()).await? {
                return Err(Error::Unauthenticated);
            }
        }
    }

    /// By name, slug or id; what the caller may not see is not there.
    pub(crate) async fn find_job(&self, caller: &Caller, name: &str) -> Result<JobRow, Error> {
        let row = match name.parse::<JobId>() {
            Ok(id) => self.store.job(&id).await?,
            Err(_) => self.store.job_by_slug(caller.user.id, &Slug::of_job(name)).await?,
        };
        match row {
            Some(row) if policy::may_see_job(caller, &row) => Ok(row),
            Some(_) => Err(Error::hidden("job", name)),
            None => Err(not_found(name)),
        }
    }

    /// The caller's own job that will have a task of this name and has none now: it waits for its first try, or for the
    /// next one.
    pub(crate) async fn job_of_coming_task(&self, caller: &Caller, name: &str) -> Result<Option<Job>, Error> {
        let Some(slug) = Slug::meant(name) else { return Ok(None) };
        let coming = self.store.coming_jobs(caller.user.id).await?;
        match coming.into_iter().find(|row| row.task_slugs().any(|task| task == slug)) {
            Some(row) => Ok(Some(self.job_view(caller, row).await?)),
            None => Ok(None),
        }
    }

    /// Tells listeners of a changed job.
    pub(crate) async fn announce_job(&self, row: &JobRow) -> Result<(), StoreError> {
        let job = self.job_as_is(row.clone()).await?;
        self.events.tell(row.user_id, What::JobChanged(Box::new(job)));
        Ok(())
    }
}

/// The status of a job that waits for room.
pub(crate) fn in_line() -> Status {
    Status::Waiting { reason: WaitReason::Queued, message: "it waits for room".to_owned() }
}

pub(crate) fn stopped_by(by: &str) -> JobEnd {
    JobEnd { by: Some(by.to_owned()), ..JobEnd::new(EndCause::Stopped) }
}

/// How long the files of a failed job are kept.
pub(crate) fn kept_for(app: &App) -> Duration {
    Duration::from_hours(app.config.jobs.keep_failed_hours)
}

pub(super) fn note(note: &jobfile::Note) -> JobNote {
    let word = serde_json::to_value(note.code).ok().and_then(|word| word.as_str().map(str::to_owned));
    JobNote {
        level: if note.level == Level::Error { "error" } else { "warning" }.to_owned(),
        code: word.unwrap_or_default(),
        line: note.place.map(|place| place.line),
        column: note.place.map(|place| place.column).filter(|column| *column > 0),
        pointer: note.pointer.clone(),
        message: note.message(),
        hint: note.hint(),
        params: note.params.clone(),
    }
}

/// A part of a list of jobs, newest first.
#[derive(Debug, Default)]
pub(crate) struct JobPage {
    /// The last of the page before.
    pub(crate) after: Option<JobId>,
    pub(crate) limit: Option<u32>,
}

/// `job-` and a few letters of its id, for a file without a name.
fn made_up_name(id: &JobId) -> String {
    let letters = id.as_str();
    format!("job-{}", &letters[letters.len().saturating_sub(8)..])
}

fn check_name(name: &str) -> Result<(), Error> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(Error::BadName(gateway_api::name::NotAName {
        text: name.chars().filter(|letter| !letter.is_control()).take(40).collect(),
        kind: "a job name",
        rule: "use letters, digits, `-`, `.`, `_` and `~`, at most 255 of them",
        of: "job",
    }))
}

fn not_found(name: &str) -> Error {
    Error::not_found("job", name)
}

/// An act on a job as the audit log calls it.
fn act_word(action: JobAction) -> &'static str {
    match action {
        JobAction::Stop => "job.stop",
        JobAction::Delete => "job.delete",
        JobAction::Rerun => "job.rerun",
        JobAction::Change => "job.change",
        JobAction::Logs => "job.logs",
    }
}
