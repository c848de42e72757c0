//! The table of tasks: what each task of each try of a job is, and how it ended. A task is an instance for as long as
//! it has a container; its row here is what is left afterwards.

use std::collections::{BTreeMap, HashMap, HashSet};

use envd_api::control::InstanceSpec;
use gateway_api::{
    Goal, InstanceId, InstanceName, JobId, Slug, Status,
    job::{JobEvent, TaskEnd},
};
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    JobRow, Store, StoreError, UserId,
    instances::goal,
    jobs::{append, drop_tasks, optional, write},
    now, readable,
    reservations::{Held, reserve},
};
use crate::store::Line;

/// A task as the store keeps one.
#[derive(Debug, Clone)]
pub(crate) struct TaskRow {
    /// Both by their number in the spec.
    pub(crate) role: usize,
    pub(crate) task: usize,
    pub(crate) instance: InstanceId,
    pub(crate) slug: Slug,
    pub(crate) ports: BTreeMap<String, Vec<u16>>,
    pub(crate) cards: Vec<String>,
    pub(crate) address: Option<String>,
    pub(crate) ended: Option<TaskEnd>,
    pub(crate) log_whole: bool,
    /// Of its instance, while there is one.
    pub(crate) machine: Option<(Goal, Status)>,
}

/// A task that is about to be started.
#[derive(Debug)]
pub(crate) struct NewTask {
    pub(crate) role: usize,
    pub(crate) task: usize,
    pub(crate) instance: InstanceId,
    pub(crate) slug: Slug,
    pub(crate) spec: InstanceSpec,
    pub(crate) ports: BTreeMap<String, Vec<u16>>,
    pub(crate) held: Held,
}

/// What came of the start of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobStart {
    Done,
    /// The job was changed meanwhile.
    Overtaken,
    /// An instance of its user has the name of one of its tasks, or two of them have the same.
    NameTaken(String),
}

impl Store {
    /// Starts a try of a job: its tasks become instances that hold what they were given, all of them or none.
    /// [`StoreError::Taken`]: a card is somebody else's.
    pub(crate) async fn start_job(
        &self,
        job: &JobRow,
        tasks: &[NewTask],
        status: &Status,
    ) -> Result<JobStart, StoreError> {
        let mut change = self.change().await?;
        if !write(&mut change, job).await? {
            return Ok(JobStart::Overtaken);
        }
        let mut names = HashSet::new();
        if let Some(twice) = tasks.iter().find(|task| !names.insert(task.slug.clone())) {
            return Ok(JobStart::NameTaken(twice.slug.to_string()));
        }
        if let Some(name) = taken(&mut change, job.user_id, &names).await? {
            return Ok(JobStart::NameTaken(name));
        }
        for task in tasks {
            add(&mut change, job, task, status).await?;
        }
        append(&mut change, &job.id, &JobEvent::Started { attempt: job.attempt }).await?;
        change.commit().await?;
        Ok(JobStart::Done)
    }

    /// The first of these names that an instance of the user has.
    pub(crate) async fn slug_taken(
        &self,
        user: UserId,
        slugs: &HashSet<Slug>,
    ) -> Result<Option<String>, StoreError> {
        taken(&mut *self.pool.acquire().await?, user, slugs).await
    }

    /// The tasks of a try, in the order of the spec.
    pub(crate) async fn tasks_of(&self, job: &JobId, attempt: u32) -> Result<Vec<TaskRow>, StoreError> {
        let rows = sqlx::query(
            "select t.*, i.goal, i.status from tasks as t left join instances as i on i.id = t.instance_id
             where t.job_id = ? and t.attempt = ? order by t.role, t.task",
        )
        .bind(job.as_str())
        .bind(i64::from(attempt))
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(task).collect()
    }

    /// The tasks of the last try of each of these jobs, in the order of their specs.
    pub(crate) async fn tasks_of_jobs(
        &self,
        jobs: &[&JobId],
    ) -> Result<HashMap<JobId, Vec<TaskRow>>, StoreError> {
        let ids: Vec<_> = jobs.iter().map(|id| id.as_str()).collect();
        let rows = sqlx::query(
            "select t.*, i.goal, i.status
             from jobs as j join tasks as t on t.job_id = j.id and t.attempt = j.attempt
                            left join instances as i on i.id = t.instance_id
             where j.id in (select value from json_each(?)) order by t.job_id, t.role, t.task",
        )
        .bind(readable(serde_json::to_string(&ids))?)
        .fetch_all(&self.pool)
        .await?;
        let mut tasks: HashMap<JobId, Vec<TaskRow>> = HashMap::new();
        for row in &rows {
            let job = readable(row.try_get::<&str, _>("job_id")?.parse())?;
            tasks.entry(job).or_default().push(task(row)?);
        }
        Ok(tasks)
    }

    /// Tries and tasks of a job, by the instance that each was.
    pub(crate) async fn task_instances(&self, job: &JobId) -> Result<Vec<InstanceId>, StoreError> {
        let rows = sqlx::query("select instance_id from tasks where job_id = ?")
            .bind(job.as_str())
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(|row| readable(row.try_get::<&str, _>("instance_id")?.parse())).collect()
    }

    /// Forgets the tasks of the first tries of a job, as far as they have no container any more.
    pub(crate) async fn forget_tries(&self, job: &JobId, last: u32) -> Result<Vec<InstanceId>, StoreError> {
        let rows = sqlx::query(
            "delete from tasks where job_id = ? and attempt <= ?
             and not exists (select 1 from instances where id = instance_id) returning instance_id",
        )
        .bind(job.as_str())
        .bind(i64::from(last))
        .fetch_all(&self.writer)
        .await?;
        rows.iter().map(|row| readable(row.try_get::<&str, _>("instance_id")?.parse())).collect()
    }

    /// Tells what still runs of a job to stop, for the sake of the job.
    pub(crate) async fn stop_tasks(&self, job: &JobId) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "update instances set goal = 'stopped', generation = generation + 1, status = ?2
             where job_id = ?1 and goal = 'running'
               and exists (select 1 from tasks where instance_id = instances.id and ended is null)",
        )
        .bind(job.as_str())
        .bind(readable(serde_json::to_string(&Status::STOPPING))?)
        .execute(&self.writer)
        .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Tells what there is of a job to go.
    pub(crate) async fn delete_tasks(&self, job: &JobId) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        drop_tasks(&mut change, job).await?;
        change.commit().await?;
        Ok(())
    }

    pub(crate) async fn note_address(&self, instance: &InstanceId, address: &str) -> Result<(), StoreError> {
        sqlx::query("update tasks set address = ?2 where instance_id = ?1 and address is not ?2")
            .bind(instance.as_str())
            .bind(address)
            .execute(&self.reports)
            .await?;
        Ok(())
    }

    /// The output of a task has been copied to its end.
    pub(crate) async fn note_log_whole(&self, instance: &InstanceId) -> Result<(), StoreError> {
        sqlx::query("update tasks set log_whole = 1 where instance_id = ?")
            .bind(instance.as_str())
            .execute(&self.writer)
            .await?;
        Ok(())
    }

    /// The tasks whose output is still to be copied.
    pub(crate) async fn logs_to_copy(&self) -> Result<Vec<InstanceId>, StoreError> {
        let rows = sqlx::query(
            "select t.instance_id from tasks as t join instances as i on i.id = t.instance_id
             where t.log_whole = 0 and i.goal <> 'deleted'
               and json_extract(i.status, '$.state') not in ('waiting', 'pulling')",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(|row| readable(row.try_get::<&str, _>("instance_id")?.parse())).collect()
    }

    pub(crate) async fn is_task(&self, instance: &InstanceId) -> Result<bool, StoreError> {
        let found = sqlx::query("select 1 from tasks where instance_id = ?").bind(instance.as_str());
        Ok(found.fetch_optional(&self.pool).await?.is_some())
    }

    pub(crate) async fn task_has_ended(&self, instance: &InstanceId) -> Result<bool, StoreError> {
        self.of_task(instance, "select ended is not null from tasks where instance_id = ?").await
    }

    /// Whether all that a task ever wrote has been copied, or nothing more will be.
    pub(crate) async fn log_is_whole(&self, instance: &InstanceId) -> Result<bool, StoreError> {
        let whole = "select log_whole = 1 or not exists (select 1 from instances where id = instance_id)
                     from tasks where instance_id = ?";
        self.of_task(instance, whole).await
    }

    /// What is not there any more has ended in every sense.
    async fn of_task(&self, instance: &InstanceId, question: &'static str) -> Result<bool, StoreError> {
        let row = sqlx::query(question).bind(instance.as_str()).fetch_optional(&self.pool).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(true))
    }

    /// What a kept task becomes when it is opened: an instance to look around in.
    pub(crate) async fn open_task(
        &self,
        instance: &InstanceId,
        generation: u64,
        spec: &InstanceSpec,
        status: &Status,
        line: &Line,
    ) -> Result<bool, StoreError> {
        let open = sqlx::query(
            "update instances set goal = 'running', generation = generation + 1, spec = ?3, status = ?4, queued_at = ?5
             where id = ?1 and generation = ?2",
        )
        .bind(instance.as_str())
        .bind(generation.cast_signed())
        .bind(readable(serde_json::to_string(spec))?)
        .bind(readable(serde_json::to_string(status))?)
        .bind(now());
        self.audited(open, line).await
    }
}

async fn taken(
    connection: &mut SqliteConnection,
    user: UserId,
    slugs: &HashSet<Slug>,
) -> Result<Option<String>, StoreError> {
    let slugs = readable(serde_json::to_string(slugs))?;
    let row = sqlx::query(
        "select slug from instances where user_id = ? and slug in (select value from json_each(?)) limit 1",
    )
    .bind(user.0)
    .bind(slugs)
    .fetch_optional(connection)
    .await?;
    row.map(|row| Ok(row.try_get("slug")?)).transpose()
}

async fn add(
    change: &mut SqliteConnection,
    job: &JobRow,
    task: &NewTask,
    status: &Status,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into instances (id, user_id, name, slug, spec, goal, generation, status, created_at, job_id, queued_at,
                                cluster)
         values (?1, ?2, ?3, ?4, ?5, 'running', 1, ?6, ?7, ?8, ?7, ?9)",
    )
    .bind(task.instance.as_str())
    .bind(job.user_id.0)
    .bind(InstanceName::of_task(&task.slug).as_str())
    .bind(task.slug.as_str())
    .bind(readable(serde_json::to_string(&task.spec))?)
    .bind(readable(serde_json::to_string(status))?)
    .bind(now())
    .bind(job.id.as_str())
    .bind(&job.cluster)
    .execute(&mut *change)
    .await?;
    reserve(&mut *change, &task.instance, &task.held).await?;
    sqlx::query(
        "insert into tasks (job_id, attempt, role, task, instance_id, slug, ports, cards)
         values (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(job.id.as_str())
    .bind(i64::from(job.attempt))
    .bind(i64::try_from(task.role).unwrap_or(i64::MAX))
    .bind(i64::try_from(task.task).unwrap_or(i64::MAX))
    .bind(task.instance.as_str())
    .bind(task.slug.as_str())
    .bind(readable(serde_json::to_string(&task.ports))?)
    .bind(readable(serde_json::to_string(&task.held.cards))?)
    .execute(change)
    .await?;
    Ok(())
}

/// Writes down how a task ended, if this instance is one and has not ended before.
pub(super) async fn end_task(
    change: &mut SqliteConnection,
    instance: &InstanceId,
    end: &TaskEnd,
) -> Result<(), StoreError> {
    sqlx::query("update tasks set ended = ?2, ended_at = ?3 where instance_id = ?1 and ended is null")
        .bind(instance.as_str())
        .bind(readable(serde_json::to_string(end))?)
        .bind(now())
        .execute(change)
        .await?;
    Ok(())
}

fn task(row: &SqliteRow) -> Result<TaskRow, StoreError> {
    let text = |column| row.try_get::<&str, _>(column);
    let number = |column| {
        let number = row.try_get::<i64, _>(column)?;
        readable(usize::try_from(number))
    };
    let machine = match (row.try_get::<Option<&str>, _>("goal")?, optional(row, "status")?) {
        (Some(word), Some(status)) => Some((goal(word)?, status)),
        _ => None,
    };
    Ok(TaskRow {
        role: number("role")?,
        task: number("task")?,
        instance: readable(text("instance_id")?.parse())?,
        slug: readable(text("slug")?.parse())?,
        ports: readable(serde_json::from_str(text("ports")?))?,
        cards: readable(serde_json::from_str(text("cards")?))?,
        address: row.try_get("address")?,
        ended: optional(row, "ended")?,
        log_whole: row.try_get("log_whole")?,
        machine,
    })
}
