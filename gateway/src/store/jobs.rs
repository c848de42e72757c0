//! The table of jobs.
//!
//! Users' acts and the loop of `reconcile::jobs` both change a job, so each says which `version` it has seen; whoever
//! comes second looks again. What happened to a job is appended to its events in the same transaction.

use gateway_api::{
    Goal, JobId, Slug, Status, UserName,
    job::{JobEnd, JobEvent, JobNote},
};
use jiff::Timestamp;
use jobfile::{JobSpec, outcome::Verdict};
use serde::{Deserialize, Serialize};
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    GroupId, Line, NeededImage, Store, StoreError, UserId, audit, images::all_ready, instances::goal_word,
    now, readable, time,
};

/// A job as the store keeps one, its file apart.
#[derive(Debug, Clone)]
pub(crate) struct JobRow {
    pub(crate) id: JobId,
    pub(crate) user_id: UserId,
    pub(crate) user: UserName,
    /// The group that its user is in now.
    pub(crate) group_id: GroupId,
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) slug: Slug,
    /// By the name that the settings give it.
    pub(crate) cluster: String,
    pub(crate) spec: JobSpec,
    pub(crate) warnings: Vec<JobNote>,
    pub(crate) goal: Goal,
    pub(crate) stopped_by: Option<String>,
    pub(crate) version: u64,
    pub(crate) status: Status,
    pub(crate) verdict: Option<AttemptEnd>,
    pub(crate) ended: Option<JobEnd>,
    pub(crate) attempt: u32,
    pub(crate) tries: jobfile::outcome::Tries,
    pub(crate) priority: u8,
    pub(crate) time_limit_seconds: Option<u64>,
    pub(crate) keep: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) queued_at: Timestamp,
    pub(crate) begun_at: Option<Timestamp>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) kept_until: Option<Timestamp>,
}

/// How one try came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptEnd {
    pub(crate) end: JobEnd,
    /// What its tasks came to; `None` if somebody or something stopped it.
    pub(crate) judged: Option<Verdict>,
}

impl JobRow {
    /// What its tasks are called, in the order of the spec.
    pub(crate) fn task_slugs(&self) -> impl Iterator<Item = Slug> {
        let roles = self.spec.roles.iter();
        roles.flat_map(|role| (0..role.tasks).map(|task| Slug::of_task(&self.slug, &role.name, task)))
    }
}

/// A job that is not there yet.
#[derive(Debug)]
pub(crate) struct NewJob<'a> {
    pub(crate) id: &'a JobId,
    pub(crate) user: UserId,
    pub(crate) name: &'a str,
    pub(crate) slug: &'a Slug,
    pub(crate) cluster: &'a str,
    pub(crate) file: &'a str,
    pub(crate) spec: &'a JobSpec,
    pub(crate) warnings: &'a [JobNote],
    pub(crate) status: &'a Status,
    pub(crate) priority: u8,
    /// The saved images that its tasks are made from.
    pub(crate) needs: &'a [NeededImage<'a>],
}

/// `select` of all that [`job`] reads, with the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select j.id, j.user_id, j.name, j.slug, j.cluster, j.spec, j.warnings, j.goal, j.stopped_by, j.version, j.status,
                    j.verdict, j.ended, j.attempt, j.counted, j.free, j.priority, j.time_limit_seconds, j.keep,
                    j.created_at, j.queued_at, j.begun_at, j.started_at, j.ended_at, j.kept_until,
                    users.name as user_name, users.group_id, groups.name as group_name
             from jobs as j join users on users.id = j.user_id join groups on groups.id = users.group_id ",
            $rest
        )
    };
}

impl Store {
    /// Adds a job that is to run. A slug that the user already has is [`StoreError::Taken`].
    pub(crate) async fn add_job(&self, job: NewJob<'_>, line: &Line) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let at = now();
        // The request may have begun before its user was removed.
        let done = sqlx::query(
            "insert into jobs (id, user_id, name, slug, file, spec, warnings, goal, version, status, attempt, counted,
                               free, priority, time_limit_seconds, keep, created_at, queued_at, cluster)
             select ?1, id, ?3, ?4, ?5, ?6, ?7, 'running', 1, ?8, 1, 0, 0, ?9, ?10, ?11, ?12, ?12, ?13
             from users where id = ?2 and removed_at is null",
        )
        .bind(job.id.as_str())
        .bind(job.user.0)
        .bind(job.name)
        .bind(job.slug.as_str())
        .bind(job.file.as_bytes())
        .bind(readable(serde_json::to_string(job.spec))?)
        .bind(readable(serde_json::to_string(job.warnings))?)
        .bind(readable(serde_json::to_string(job.status))?)
        .bind(i64::from(job.priority))
        .bind(job.spec.time_limit.map(|limit| limit.as_secs().cast_signed()))
        .bind(job.spec.keep_on_failure)
        .bind(at)
        .bind(job.cluster)
        .execute(&mut *change)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::UserGone);
        }
        all_ready(&mut change, job.needs).await?;
        append(&mut change, job.id, &JobEvent::Submitted {}).await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    pub(crate) async fn job(&self, id: &JobId) -> Result<Option<JobRow>, StoreError> {
        let row = sqlx::query(select!("where j.id = ?")).bind(id.as_str()).fetch_optional(&self.pool).await?;
        row.as_ref().map(job).transpose()
    }

    pub(crate) async fn job_by_slug(&self, user: UserId, slug: &Slug) -> Result<Option<JobRow>, StoreError> {
        let row = sqlx::query(select!("where j.user_id = ? and j.slug = ?"))
            .bind(user.0)
            .bind(slug.as_str())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(job).transpose()
    }

    /// The jobs of a user that are not over and whose tasks may be called like those of a job with that slug: the one
    /// slug begins with the other.
    pub(crate) async fn unfinished_jobs_near(
        &self,
        user: UserId,
        slug: &Slug,
    ) -> Result<Vec<JobRow>, StoreError> {
        let rows = sqlx::query(select!(
            "where j.user_id = ?1 and j.ended_at is null
               and (substr(?2 || '-', 1, length(j.slug) + 1) = j.slug || '-'
                    or substr(j.slug, 1, length(?2) + 1) = ?2 || '-')"
        ))
        .bind(user.0)
        .bind(slug.as_str())
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(job).collect()
    }

    /// The newest jobs of a user, of a group, or of all, newest first; those that come after `after` when it is named.
    pub(crate) async fn jobs(
        &self,
        user: Option<UserId>,
        group: Option<GroupId>,
        after: Option<&JobId>,
        most: u32,
    ) -> Result<Vec<JobRow>, StoreError> {
        let rows = sqlx::query(select!(
            "where (?1 is null or j.user_id = ?1) and (?2 is null or users.group_id = ?2)
               and (?3 is null or j.id < ?3)
             order by j.id desc limit ?4"
        ))
        .bind(user.map(|user| user.0))
        .bind(group.map(|group| group.0))
        .bind(after.map(JobId::as_str))
        .bind(i64::from(most))
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(job).collect()
    }

    /// All that something is still to be done about, oldest first.
    pub(crate) async fn jobs_under_way(&self) -> Result<Vec<JobRow>, StoreError> {
        let rows = sqlx::query(select!(
            "where j.ended_at is null or j.goal = 'deleted'
                or exists (select 1 from instances as i where i.job_id = j.id and i.goal <> 'deleted'
                           and (j.kept_until is null or j.kept_until <= ?1))
             order by j.id"
        ))
        .bind(now())
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(job).collect()
    }

    /// Those in the line.
    pub(crate) async fn waiting_jobs(&self) -> Result<Vec<JobRow>, StoreError> {
        let rows = sqlx::query(select!(
            "where j.ended_at is null and j.goal = 'running' and json_extract(j.status, '$.reason') = 'queued'
               and j.queued_at <= ?
             order by j.queued_at, j.id"
        ))
        .bind(now())
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(job).collect()
    }

    /// Those of a user whose tasks are still to come: in the line, or pausing before it after a try that failed.
    pub(crate) async fn coming_jobs(&self, user: UserId) -> Result<Vec<JobRow>, StoreError> {
        let rows = sqlx::query(select!(
            "where j.user_id = ? and j.ended_at is null and j.goal = 'running'
               and json_extract(j.status, '$.reason') = 'queued'
             order by j.id"
        ))
        .bind(user.0)
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(job).collect()
    }

    /// The file as it was submitted.
    pub(crate) async fn job_file(&self, id: &JobId) -> Result<Vec<u8>, StoreError> {
        let row = sqlx::query("select file from jobs where id = ?")
            .bind(id.as_str())
            .fetch_optional(&self.pool)
            .await?;
        Ok(row.map(|row| row.try_get("file")).transpose()?.unwrap_or_default())
    }

    /// Writes down a job that was read at `row.version`. `false`: somebody else changed it meanwhile.
    pub(crate) async fn change_job(
        &self,
        row: &JobRow,
        event: Option<&JobEvent>,
        line: Option<&Line>,
    ) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        if !write(&mut change, row).await? {
            return Ok(false);
        }
        if let Some(event) = event {
            append(&mut change, &row.id, event).await?;
        }
        if let Some(line) = line {
            audit::append(&mut change, line).await?;
        }
        change.commit().await?;
        Ok(true)
    }

    /// Another try: the job waits again, and what the last one left goes.
    pub(crate) async fn try_job_again(&self, row: &JobRow, event: &JobEvent) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        if !write(&mut change, row).await? {
            return Ok(false);
        }
        drop_tasks(&mut change, &row.id).await?;
        append(&mut change, &row.id, event).await?;
        change.commit().await?;
        Ok(true)
    }

    /// Forgets a job of which nothing is left in the cluster.
    pub(crate) async fn forget_job(&self, id: &JobId) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "delete from jobs where id = ?1 and goal = 'deleted'
             and not exists (select 1 from instances where job_id = ?1)",
        )
        .bind(id.as_str())
        .execute(&self.writer)
        .await?;
        Ok(done.rows_affected() == 1)
    }

    /// What happened to a job, in order.
    pub(crate) async fn job_events(&self, id: &JobId) -> Result<Vec<(Timestamp, JobEvent)>, StoreError> {
        let rows = sqlx::query("select at, event from job_events where job_id = ? order by number")
            .bind(id.as_str())
            .fetch_all(&self.pool)
            .await?;
        rows.iter()
            .map(|row| {
                let event = readable(serde_json::from_str(row.try_get("event")?))?;
                Ok((time(row.try_get("at")?)?, event))
            })
            .collect()
    }
}

/// The instances of a job are to go. Their names are free at once, for the next try.
pub(super) async fn drop_tasks(change: &mut SqliteConnection, id: &JobId) -> Result<(), StoreError> {
    sqlx::query(
        "update instances set goal = 'deleted', generation = generation + 1, slug = replace(id, '_', '-'),
                              status = ?2
         where job_id = ?1 and goal <> 'deleted'",
    )
    .bind(id.as_str())
    .bind(readable(serde_json::to_string(&Status::DELETING))?)
    .execute(change)
    .await?;
    Ok(())
}

pub(super) async fn write(change: &mut SqliteConnection, row: &JobRow) -> Result<bool, StoreError> {
    let json = |value: &Option<JobEnd>| value.as_ref().map(serde_json::to_string).transpose();
    let verdict = row.verdict.as_ref().map(serde_json::to_string).transpose();
    let milliseconds = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    let done = sqlx::query(
        "update jobs set goal = ?3, stopped_by = ?4, version = version + 1, status = ?5, verdict = ?6, ended = ?7,
                         attempt = ?8, counted = ?9, free = ?10, priority = ?11, time_limit_seconds = ?12,
                         queued_at = ?13, begun_at = ?14, started_at = ?15, ended_at = ?16, kept_until = ?17
         where id = ?1 and version = ?2",
    )
    .bind(row.id.as_str())
    .bind(row.version.cast_signed())
    .bind(goal_word(row.goal))
    .bind(row.stopped_by.as_deref())
    .bind(readable(serde_json::to_string(&row.status))?)
    .bind(readable(verdict)?)
    .bind(readable(json(&row.ended))?)
    .bind(i64::from(row.attempt))
    .bind(i64::from(row.tries.counted))
    .bind(i64::from(row.tries.free))
    .bind(i64::from(row.priority))
    .bind(row.time_limit_seconds.map(u64::cast_signed))
    .bind(row.queued_at.as_millisecond())
    .bind(milliseconds(row.begun_at))
    .bind(milliseconds(row.started_at))
    .bind(milliseconds(row.ended_at))
    .bind(milliseconds(row.kept_until))
    .execute(change)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Appends what happened to the events of a job.
pub(super) async fn append(
    change: &mut SqliteConnection,
    id: &JobId,
    event: &JobEvent,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into job_events (job_id, number, at, event)
         values (?1, (select coalesce(max(number), 0) + 1 from job_events where job_id = ?1), ?2, ?3)",
    )
    .bind(id.as_str())
    .bind(now())
    .bind(readable(serde_json::to_string(event))?)
    .execute(change)
    .await?;
    Ok(())
}

fn job(row: &SqliteRow) -> Result<JobRow, StoreError> {
    let text = |column| row.try_get::<&str, _>(column);
    let at = |column| row.try_get::<Option<i64>, _>(column)?.map(time).transpose();
    let number = |column| Ok::<_, StoreError>(row.try_get::<i64, _>(column)?.cast_unsigned());
    let small = |column| Ok::<_, StoreError>(u32::try_from(number(column)?).unwrap_or(u32::MAX));
    Ok(JobRow {
        id: readable(text("id")?.parse())?,
        user_id: UserId(row.try_get("user_id")?),
        user: readable(text("user_name")?.parse())?,
        group_id: GroupId(row.try_get("group_id")?),
        group: row.try_get("group_name")?,
        name: text("name")?.to_owned(),
        slug: readable(text("slug")?.parse())?,
        cluster: row.try_get("cluster")?,
        spec: readable(serde_json::from_str(text("spec")?))?,
        warnings: readable(serde_json::from_str(text("warnings")?))?,
        goal: super::instances::goal(text("goal")?)?,
        stopped_by: row.try_get("stopped_by")?,
        version: number("version")?,
        status: readable(serde_json::from_str(text("status")?))?,
        verdict: optional(row, "verdict")?,
        ended: optional(row, "ended")?,
        attempt: small("attempt")?,
        tries: jobfile::outcome::Tries { counted: small("counted")?, free: small("free")? },
        priority: u8::try_from(number("priority")?).unwrap_or(u8::MAX),
        time_limit_seconds: row.try_get::<Option<i64>, _>("time_limit_seconds")?.map(i64::cast_unsigned),
        keep: row.try_get("keep")?,
        created_at: time(row.try_get("created_at")?)?,
        queued_at: time(row.try_get("queued_at")?)?,
        begun_at: at("begun_at")?,
        started_at: at("started_at")?,
        ended_at: at("ended_at")?,
        kept_until: at("kept_until")?,
    })
}

/// A column that holds one of our own types, or nothing.
pub(super) fn optional<T: serde::de::DeserializeOwned>(
    row: &SqliteRow,
    column: &str,
) -> Result<Option<T>, StoreError> {
    row.try_get::<Option<&str>, _>(column)?.map(|text| readable(serde_json::from_str(text))).transpose()
}
