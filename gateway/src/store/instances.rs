//! The table of instances.
//!
//! Two writers who never meet: users' acts write `goal` and raise `generation` (with the status that the act itself
//! means), reports of the cluster write `status`, and only for the generation that they speak of.

use envd_api::control::InstanceSpec;
use gateway_api::{Goal, InstanceId, InstanceName, Slug, Status, UserName};
use jiff::Timestamp;
use sqlx::{Row as _, sqlite::SqliteRow};

use super::{Store, StoreError, UserId, now, readable, time};

/// An instance as the store keeps one.
#[derive(Debug, Clone)]
pub(crate) struct InstanceRow {
    pub(crate) id: InstanceId,
    pub(crate) user_id: UserId,
    pub(crate) user: UserName,
    pub(crate) name: InstanceName,
    pub(crate) slug: Slug,
    pub(crate) spec: InstanceSpec,
    pub(crate) goal: Goal,
    pub(crate) generation: u64,
    pub(crate) status: Status,
    pub(crate) created_at: Timestamp,
}

/// An instance that is not there yet.
#[derive(Debug)]
pub(crate) struct NewInstance<'a> {
    pub(crate) id: &'a InstanceId,
    pub(crate) user: UserId,
    pub(crate) name: &'a InstanceName,
    pub(crate) slug: &'a Slug,
    pub(crate) spec: &'a InstanceSpec,
    pub(crate) status: &'a Status,
}

/// `select` of all that [`instance`] reads, with the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select instances.*, users.name as user_name
             from instances join users on users.id = instances.user_id ",
            $rest
        )
    };
}

impl Store {
    /// Adds an instance that should run. A slug that the user already has is [`StoreError::Taken`].
    pub(crate) async fn add_instance(&self, instance: NewInstance<'_>) -> Result<(), StoreError> {
        sqlx::query(
            "insert into instances (id, user_id, name, slug, spec, goal, generation, status, created_at)
             values (?, ?, ?, ?, ?, 'running', 1, ?, ?)",
        )
        .bind(instance.id.as_str())
        .bind(instance.user.0)
        .bind(instance.name.as_str())
        .bind(instance.slug.as_str())
        .bind(readable(serde_json::to_string(instance.spec))?)
        .bind(readable(serde_json::to_string(instance.status))?)
        .bind(now())
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    pub(crate) async fn instances(&self) -> Result<Vec<InstanceRow>, StoreError> {
        let rows = sqlx::query(select!("order by instances.id")).fetch_all(&self.pool).await?;
        rows.iter().map(instance).collect()
    }

    /// The generation of every instance.
    pub(crate) async fn generations(&self) -> Result<Vec<(InstanceId, u64)>, StoreError> {
        let rows =
            sqlx::query("select id, generation from instances order by id").fetch_all(&self.pool).await?;
        rows.iter()
            .map(|row| {
                let id = readable(row.try_get::<&str, _>("id")?.parse())?;
                Ok((id, row.try_get::<i64, _>("generation")?.cast_unsigned()))
            })
            .collect()
    }

    /// A user's own instances, newest first.
    pub(crate) async fn instances_of(&self, user: UserId) -> Result<Vec<InstanceRow>, StoreError> {
        let rows = sqlx::query(select!("where user_id = ? order by instances.id desc"))
            .bind(user.0)
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
    ) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "update instances set goal = ?, generation = generation + 1, status = ? where id = ? and generation = ?",
        )
        .bind(goal_word(goal))
        .bind(readable(serde_json::to_string(status))?)
        .bind(id.as_str())
        .bind(generation.cast_signed())
        .execute(&self.pool)
        .await?;
        Ok(done.rows_affected() == 1)
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
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Forgets an instance whose container is gone, as its user wanted at `generation`.
    pub(crate) async fn forget_instance(&self, id: &InstanceId, generation: u64) -> Result<bool, StoreError> {
        let done = sqlx::query("delete from instances where id = ? and generation = ? and goal = 'deleted'")
            .bind(id.as_str())
            .bind(generation.cast_signed())
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() == 1)
    }
}

fn instance(row: &SqliteRow) -> Result<InstanceRow, StoreError> {
    let text = |column| row.try_get::<&str, _>(column);
    Ok(InstanceRow {
        id: readable(text("id")?.parse())?,
        user_id: UserId(row.try_get("user_id")?),
        user: readable(text("user_name")?.parse())?,
        name: readable(text("name")?.parse())?,
        slug: readable(text("slug")?.parse())?,
        spec: readable(serde_json::from_str(text("spec")?))?,
        goal: match text("goal")? {
            "running" => Goal::Running,
            "stopped" => Goal::Stopped,
            "deleted" => Goal::Deleted,
            other => return readable(Err(format!("the goal `{other}`"))),
        },
        generation: row.try_get::<i64, _>("generation")?.cast_unsigned(),
        status: readable(serde_json::from_str(text("status")?))?,
        created_at: time(row.try_get("created_at")?)?,
    })
}

fn goal_word(goal: Goal) -> &'static str {
    match goal {
        Goal::Running => "running",
        Goal::Stopped => "stopped",
        Goal::Deleted => "deleted",
    }
}
