//! The table of who has held how much, and for how long. Rows are ended by a trigger, with the reservation.

use gateway_api::{InstanceId, usage::Usage};
use jiff::Timestamp;
use sqlx::{Row as _, SqliteConnection};

use super::{GroupId, Held, Store, StoreError, UserId, now, readable};

/// Whose things are asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whose {
    Everyones,
    Group(GroupId),
    User(UserId),
}

impl Whose {
    /// The numbers of the user and of the group that are meant; all where there is none.
    pub(super) fn ids(self) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Everyones => (None, None),
            Self::Group(id) => (None, Some(id.0)),
            Self::User(id) => (Some(id.0), None),
        }
    }
}

/// Writes down that an instance holds something from now on.
pub(super) async fn begin(
    change: &mut SqliteConnection,
    id: &InstanceId,
    held: &Held,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into holdings (instance_id, user_id, group_name, cpus_milli, gpus, gpu_model, taken_at)
         select ?1, users.id, groups.name, ?2, ?3, ?4, ?5
         from instances as i join users on users.id = i.user_id join groups on groups.id = users.group_id
         where i.id = ?1",
    )
    .bind(id.as_str())
    .bind(held.cpus_milli.cast_signed())
    .bind(i64::try_from(held.cards.len()).unwrap_or(i64::MAX))
    .bind(held.model.as_deref())
    .bind(now())
    .execute(change)
    .await?;
    Ok(())
}

impl Store {
    /// What was held from `since` until `until`, by user, group and model.
    pub(crate) async fn usage(
        &self,
        whose: Whose,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Usage>, StoreError> {
        let (user, group) = whose.ids();
        // What is still held counts until now, and no later.
        let rows = sqlx::query(
            "with parts as (
                 select h.*, max(0, min(coalesce(h.freed_at, ?5), ?2, ?5) - max(h.taken_at, ?1)) as held_ms
                 from holdings as h
                 where h.taken_at < ?2 and coalesce(h.freed_at, ?5) > ?1
             )
             select users.name as user_name, p.group_name, p.gpu_model, count(*) as starts,
                    sum(p.held_ms * p.gpus) / 3600000.0 as gpu_hours,
                    sum(p.held_ms * p.cpus_milli) / 3600000000.0 as cpu_hours
             from parts as p join users on users.id = p.user_id
             where (?3 is null or users.id = ?3) and (?4 is null or users.group_id = ?4)
             group by users.id, p.group_name, p.gpu_model
             order by gpu_hours desc, cpu_hours desc, user_name",
        )
        .bind(since.as_millisecond())
        .bind(until.as_millisecond())
        .bind(user)
        .bind(group)
        .bind(now())
        .fetch_all(&self.pool)
        .await?;
        let usage = |row: &sqlx::sqlite::SqliteRow| {
            Ok::<_, StoreError>(Usage {
                user: readable(row.try_get::<&str, _>("user_name")?.parse())?,
                group: row.try_get("group_name")?,
                gpu_model: row.try_get("gpu_model")?,
                gpu_hours: row.try_get("gpu_hours")?,
                cpu_hours: row.try_get("cpu_hours")?,
                starts: row.try_get::<i64, _>("starts")?.cast_unsigned(),
                image_bytes: 0,
            })
        };
        rows.iter().map(usage).collect()
    }

    /// Forgets what was over before `then`.
    pub(crate) async fn forget_holdings(&self, then: Timestamp) -> Result<(), StoreError> {
        sqlx::query("delete from holdings where freed_at < ?")
            .bind(then.as_millisecond())
            .execute(&self.writer)
            .await?;
        Ok(())
    }
}
