//! The table of instances.
//!
//! Two writers who never meet: users' acts write `goal` and raise `generation` (with the status that the act itself
//! means), reports of the cluster write `status`, and only for the generation that they speak of.

use std::collections::BTreeMap;

use envd_api::control::InstanceSpec;
use gateway_api::{Goal, ImageId, InstanceId, InstanceName, JobId, Slug, Status, UserName, job::TaskEnd};
use jiff::Timestamp;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    GroupId, Line, NeededImage, Store, StoreError, UserId, Whose, audit, images, job_tasks::end_task, now,
    readable, reservations::release, time,
};

/// An instance as the store keeps one.
#[derive(Debug, Clone)]
pub(crate) struct InstanceRow {
    pub(crate) id: InstanceId,
    pub(crate) user_id: UserId,
    pub(crate) user: UserName,
    /// The group that its user is in now.
    pub(crate) group_id: GroupId,
    pub(crate) name: InstanceName,
    pub(crate) slug: Slug,
    /// By the name that the settings give it.
    pub(crate) cluster: String,
    /// The pool that was asked for.
    pub(crate) pool: Option<String>,
    pub(crate) spec: InstanceSpec,
    pub(crate) goal: Goal,
    pub(crate) generation: u64,
    pub(crate) status: Status,
    /// SSH starts it when it is stopped, without asking.
    pub(crate) auto_start: bool,
    /// The job that it is a task of.
    pub(crate) job: Option<JobId>,
    /// A task that has ended and whose files were kept.
    pub(crate) is_kept: bool,
    /// When it came to each state since its last start began.
    pub(crate) start_times: BTreeMap<String, Timestamp>,
    pub(crate) created_at: Timestamp,
}

impl InstanceRow {
    /// Whether it can be started when it has ended: a task only to look around in what was kept of it.
    pub(crate) fn starts_again(&self) -> bool {
        self.job.is_none() || self.is_kept
    }
}

/// What the cluster reports of an instance.
#[derive(Debug)]
pub(crate) struct Settled<'a> {
    pub(crate) status: &'a Status,
    /// Its container has ended, or there will be none: what it held is free.
    pub(crate) is_over: bool,
    /// How the task ended, if that is what it was.
    pub(crate) end: Option<TaskEnd>,
}

/// It comes after every id.
const LAST: &str = "~";

/// An instance that is not there yet.
#[derive(Debug)]
pub(crate) struct NewInstance<'a> {
    pub(crate) id: &'a InstanceId,
    pub(crate) user: UserId,
    pub(crate) name: &'a InstanceName,
    pub(crate) slug: &'a Slug,
    pub(crate) cluster: &'a str,
    pub(crate) pool: Option<&'a str>,
    pub(crate) spec: &'a InstanceSpec,
    pub(crate) status: &'a Status,
    pub(crate) auto_start: bool,
    /// What it is made from, if that is a saved image.
    pub(crate) needs: &'a [NeededImage<'a>],
}

/// `select` of all that [`instance`] reads, with the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select instances.*, users.name as user_name, users.home as user_home, users.group_id,
                    exists (select 1 from jobs where jobs.id = job_id and kept_until is not null) as is_kept
             from instances join users on users.id = instances.user_id ",
            $rest
        )
    };
}

impl Store {
    /// Adds an instance that should run. A slug that the user already has is [`StoreError::Taken`].
    pub(crate) async fn add_instance(
        &self,
        instance: NewInstance<'_>,
        line: &Line,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        // The request may have begun before its user was removed.
        let done = sqlx::query(
            "insert into instances (id, user_id, name, slug, spec, goal, generation, status, created_at, auto_start,
                                    queued_at, cluster, pool)
             select ?1, id, ?3, ?4, ?5, 'running', 1, ?6, ?7, ?8, ?7, ?9, ?10 from users where id = ?2 and removed_at is null",
        )
        .bind(instance.id.as_str())
        .bind(instance.user.0)
        .bind(instance.name.as_str())
        .bind(instance.slug.as_str())
        .bind(readable(serde_json::to_string(instance.spec))?)
        .bind(readable(serde_json::to_string(instance.status))?)
        .bind(now())
        .bind(instance.auto_start)
        .bind(instance.cluster)
        .bind(instance.pool)
        .execute(&mut *change)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::UserGone);
        }
        images::all_ready(&mut change, instance.needs).await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    pub(crate) async fn instances(&self) -> Result<Vec<InstanceRow>, StoreError> {
        let rows = sqlx::query(select!("order by instances.id")).fetch_all(&self.pool).await?;
        rows.iter().map(instance).collect()
    }

    /// The generation and the group of every instance that a cluster is to know of: what is to run only once it holds
    /// its place.
    pub(crate) async fn generations(
        &self,
        cluster: &str,
    ) -> Result<Vec<(InstanceId, u64, String)>, StoreError> {
        let rows = sqlx::query(
            "select id, generation, coalesce(json_extract(spec, '$.group'), '') as in_group from instances
             where cluster = ? and (goal <> 'running' or exists (select 1 from reservations where instance_id = id))
             order by id",
        )
        .bind(cluster)
        .fetch_all(&self.pool)
        .await?;
        rows.iter()
            .map(|row| {
                let id = readable(row.try_get::<&str, _>("id")?.parse())?;
                let generation = row.try_get::<i64, _>("generation")?.cast_unsigned();
                Ok((id, generation, row.try_get("in_group")?))
            })
            .collect()
    }

    /// Instances of a user, of a group or of all, newest first, those that come after `after` where it is named; tasks are
    /// shown with their job. Only what is shown is read: each of these follows an index (`0022_instance_pages.sql`).
    pub(crate) async fn shown_instances(
        &self,
        whose: Whose,
        after: Option<&InstanceId>,
        most: Option<u32>,
    ) -> Result<Vec<InstanceRow>, StoreError> {
        let (query, owner) = match whose {
            Whose::User(user) => (
                sqlx::query(select!(
                    "where user_id = ?1 and job_id is null and instances.id < ?2
                     order by instances.id desc limit ?3"
                )),
                user.0,
            ),
            Whose::Group(group) => (
                sqlx::query(select!(
                    "where instances.id in (select i.id from instances as i
                                            where i.user_id in (select u.id from users as u where u.group_id = ?1)
                                              and i.job_id is null and i.id < ?2
                                            order by i.id desc limit ?3)
                     order by instances.id desc"
                )),
                group.0,
            ),
            Whose::Everyones => (
                sqlx::query(select!(
                    "where ?1 is not null and job_id is null and instances.id < ?2
                     order by instances.id desc limit ?3"
                )),
                0,
            ),
        };
        let rows = query
            .bind(owner)
            .bind(after.map_or(LAST, InstanceId::as_str))
            // Less than nothing is no limit.
            .bind(most.map_or(-1, i64::from))
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(instance).collect()
    }

    pub(crate) async fn instance(&self, id: &InstanceId) -> Result<Option<InstanceRow>, StoreError> {
        let row = sqlx::query(select!("where instances.id = ?"))
            .bind(id.as_str())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(instance).transpose()
    }

    /// The same if it is one of theirs. What is not is not read either: that would take longer than nothing does.
    pub(crate) async fn instance_of(
        &self,
        whose: Whose,
        id: &InstanceId,
    ) -> Result<Option<InstanceRow>, StoreError> {
        let (user, group) = whose.ids();
        let row = sqlx::query(select!(
            "where instances.id = ?1 and (?2 is null or user_id = ?2) and (?3 is null or group_id = ?3)"
        ))
        .bind(id.as_str())
        .bind(user)
        .bind(group)
        .fetch_optional(&self.pool)
        .await?;
        row.as_ref().map(instance).transpose()
    }

    /// The name of the cluster that it is on.
    pub(crate) async fn cluster_of(&self, id: &InstanceId) -> Result<Option<String>, StoreError> {
        let query = sqlx::query_scalar("select cluster from instances where id = ?").bind(id.as_str());
        Ok(query.fetch_optional(&self.pool).await?)
    }

    pub(crate) async fn instance_by_slug(
        &self,
        user: UserId,
        slug: &Slug,
    ) -> Result<Option<InstanceRow>, StoreError> {
        let row = sqlx::query(select!("where user_id = ? and slug = ?"))
            .bind(user.0)
            .bind(slug.as_str())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(instance).transpose()
    }

    /// A user's act: a new goal for an instance that is still at `generation`. `false`: somebody else acted meanwhile.
    pub(crate) async fn set_goal(
        &self,
        id: &InstanceId,
        generation: u64,
        goal: Goal,
        status: &Status,
        line: &Line,
    ) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        if !set_goal(&mut change, id, generation, goal, status, line).await? {
            return Ok(false);
        }
        change.commit().await?;
        Ok(true)
    }

    /// Stops an instance that was to stop once `image` is whole, and forgets that wish with it: whoever starts the
    /// instance again is not stopped a second time.
    pub(crate) async fn stop_after_save(
        &self,
        image: &ImageId,
        id: &InstanceId,
        generation: u64,
        line: &Line,
    ) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        if !set_goal(&mut change, id, generation, Goal::Stopped, &Status::STOPPING, line).await? {
            return Ok(false);
        }
        images::forget_stop(&mut change, image).await?;
        change.commit().await?;
        Ok(true)
    }

    /// A report of the cluster about `generation`. `false`: the user has acted since.
    pub(crate) async fn set_status(
        &self,
        id: &InstanceId,
        generation: u64,
        status: &Status,
    ) -> Result<bool, StoreError> {
        let done = sqlx::query("update instances set status = ? where id = ? and generation = ?")
            .bind(readable(serde_json::to_string(status))?)
            .bind(id.as_str())
            .bind(generation.cast_signed())
            .execute(&self.reports)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// As [`Self::set_status`], with what follows from it: room that is free again, a task that has ended.
    pub(crate) async fn settle(
        &self,
        id: &InstanceId,
        generation: u64,
        settled: &Settled<'_>,
    ) -> Result<bool, StoreError> {
        if !settled.is_over {
            return self.set_status(id, generation, settled.status).await;
        }
        let mut change = self.change().await?;
        let done = sqlx::query("update instances set status = ? where id = ? and generation = ?")
            .bind(readable(serde_json::to_string(settled.status))?)
            .bind(id.as_str())
            .bind(generation.cast_signed())
            .execute(&mut *change)
            .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        release(&mut change, id).await?;
        if let Some(end) = &settled.end {
            end_task(&mut change, id, end).await?;
        }
        change.commit().await?;
        Ok(true)
    }

    /// Writes down that what was `starting` is further; `false` if it is something else by now.
    pub(crate) async fn has_started(
        &self,
        id: &InstanceId,
        generation: u64,
        status: &Status,
    ) -> Result<bool, StoreError> {
        let done =
            sqlx::query("update instances set status = ? where id = ? and generation = ? and status = ?")
                .bind(readable(serde_json::to_string(status))?)
                .bind(id.as_str())
                .bind(generation.cast_signed())
                .bind(readable(serde_json::to_string(&Status::Starting))?)
                .execute(&self.reports)
                .await?;
        Ok(done.rows_affected() == 1)
    }

    /// What the cluster has on record in place of a row that is older; see `reconcile::stale`.
    pub(crate) async fn take_over(
        &self,
        id: &InstanceId,
        generation: u64,
        known: u64,
        goal: Goal,
        status: &Status,
    ) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let done = sqlx::query(
            "update instances set goal = ?, generation = ?, status = ? where id = ? and generation = ?",
        )
        .bind(goal_word(goal))
        .bind(known.cast_signed())
        .bind(readable(serde_json::to_string(status))?)
        .bind(id.as_str())
        .bind(generation.cast_signed())
        .execute(&mut *change)
        .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        // What runs holds its room, whether or not there would be any.
        if goal == Goal::Running {
            sqlx::query(
                "insert or ignore into reservations (instance_id, node, cpus_milli, memory_mib, sequence, taken_at)
                 select id, '', cast(round(json_extract(spec, '$.cpus') * 1000) as integer),
                        json_extract(spec, '$.memory_bytes') / 1048576, 0, ?2 from instances where id = ?1",
            )
            .bind(id.as_str())
            .bind(now())
            .execute(&mut *change)
            .await?;
            sqlx::query(
                "insert or ignore into cards (node, card, instance_id)
                 select r.node, held.value, r.instance_id
                 from reservations as r join instances as i on i.id = r.instance_id,
                      json_each(coalesce(json_extract(i.spec, '$.cards'), '[]')) as held
                 where r.instance_id = ?",
            )
            .bind(id.as_str())
            .execute(&mut *change)
            .await?;
        }
        change.commit().await?;
        Ok(true)
    }

    /// Forgets an instance whose container is gone, as its user wanted at `generation`.
    pub(crate) async fn forget_instance(&self, id: &InstanceId, generation: u64) -> Result<bool, StoreError> {
        let done = sqlx::query("delete from instances where id = ? and generation = ? and goal = 'deleted'")
            .bind(id.as_str())
            .bind(generation.cast_signed())
            .execute(&self.writer)
            .await?;
        Ok(done.rows_affected() == 1)
    }
}

fn instance(row: &SqliteRow) -> Result<InstanceRow, StoreError> {
    let text = |column| row.try_get::<&str, _>(column);
    let mut spec: InstanceSpec = readable(serde_json::from_str(text("spec")?))?;
    // Rows of the first release do not say whose storage it is.
    if spec.user.is_empty() {
        text("user_home")?.clone_into(&mut spec.user);
    }
    Ok(InstanceRow {
        id: readable(text("id")?.parse())?,
        user_id: UserId(row.try_get("user_id")?),
        user: readable(text("user_name")?.parse())?,
        group_id: GroupId(row.try_get("group_id")?),
        // Names that were made may be longer than what a user may choose.
        name: readable(text("name")?.to_owned().try_into())?,
        slug: readable(text("slug")?.parse())?,
        cluster: row.try_get("cluster")?,
        pool: row.try_get("pool")?,
        spec,
        goal: goal(text("goal")?)?,
        generation: row.try_get::<i64, _>("generation")?.cast_unsigned(),
        status: readable(serde_json::from_str(text("status")?))?,
        auto_start: row.try_get("auto_start")?,
        job: row.try_get::<Option<&str>, _>("job_id")?.map(|id| readable(id.parse())).transpose()?,
        is_kept: row.try_get("is_kept")?,
        start_times: start_times(text("start_times")?)?,
        created_at: time(row.try_get("created_at")?)?,
    })
}

fn start_times(column: &str) -> Result<BTreeMap<String, Timestamp>, StoreError> {
    let times: BTreeMap<String, i64> = readable(serde_json::from_str(column))?;
    times.into_iter().map(|(state, at)| Ok((state, time(at)?))).collect()
}

pub(super) fn goal(word: &str) -> Result<Goal, StoreError> {
    match word {
        "running" => Ok(Goal::Running),
        "stopped" => Ok(Goal::Stopped),
        "deleted" => Ok(Goal::Deleted),
        other => readable(Err(format!("the goal `{other}`"))),
    }
}

pub(super) fn goal_word(goal: Goal) -> &'static str {
    match goal {
        Goal::Running => "running",
        Goal::Stopped => "stopped",
        Goal::Deleted => "deleted",
    }
}

async fn set_goal(
    change: &mut SqliteConnection,
    id: &InstanceId,
    generation: u64,
    goal: Goal,
    status: &Status,
    line: &Line,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "update instances set goal = ?1, generation = generation + 1, status = ?2, queued_at = ?5
         where id = ?3 and generation = ?4
           and (?1 <> 'running' or exists (select 1 from users where id = user_id and removed_at is null))",
    )
    .bind(goal_word(goal))
    .bind(readable(serde_json::to_string(status))?)
    .bind(id.as_str())
    .bind(generation.cast_signed())
    .bind(now())
    .execute(&mut *change)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    audit::append(change, line).await?;
    Ok(true)
}
