//! The tables of who holds how much of which machine, of what waits for it, and of what everyone may hold.
//!
//! A reservation is written in the transaction that decides on a start, and goes in the transaction that writes down
//! that the container has ended (or with the instance itself): so a crash at any moment neither leaks nor doubles one.

use envd_api::control::InstanceSpec;
use gateway_api::{InstanceId, JobId, Status, node::GpuHolder};
use jiff::Timestamp;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{GroupId, Store, StoreError, UserId, now, readable, time};

/// What an instance is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) node: String,
    pub(crate) cpus_milli: u64,
    pub(crate) memory_mib: u64,
    pub(crate) cards: Vec<String>,
    /// The model of the cards, where that is known.
    pub(crate) model: Option<String>,
    /// The order of starts.
    pub(crate) sequence: u64,
}

/// A reservation, with whose it is.
#[derive(Debug, Clone)]
pub(crate) struct Reservation {
    pub(crate) instance: InstanceId,
    /// Of a job that is not over.
    pub(crate) job: Option<JobId>,
    /// A kept task of a job that is over, opened to be looked at.
    pub(crate) opened: bool,
    pub(crate) user: String,
    pub(crate) group: String,
    pub(crate) share: String,
    pub(crate) cluster: String,
    pub(crate) taken_at: Timestamp,
    /// When its job's time limit ends it.
    pub(crate) ends_by: Option<Timestamp>,
    pub(crate) held: Held,
}

/// An instance that waits for room.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) id: InstanceId,
    pub(crate) name: String,
    pub(crate) generation: u64,
    pub(crate) user: String,
    pub(crate) group: String,
    pub(crate) cluster: String,
    pub(crate) pool: Option<String>,
    pub(crate) spec: InstanceSpec,
    pub(crate) priority: u8,
    pub(crate) queued_at: Timestamp,
    /// A kept task that is looked at.
    pub(crate) is_task: bool,
}

/// A card that somebody has.
#[derive(Debug)]
pub(crate) struct HeldCard {
    pub(crate) card: String,
    pub(crate) user_id: UserId,
    pub(crate) group_id: GroupId,
    pub(crate) holder: GpuHolder,
}

/// Whose quota it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaOwner {
    User(UserId),
    Group(GroupId),
}

impl Store {
    /// Everything that is held now.
    pub(crate) async fn reservations(&self) -> Result<Vec<Reservation>, StoreError> {
        let rows = sqlx::query(
            "select r.*, i.cluster, j.id as job_id, i.job_id is not null and j.id is null as opened,
                    users.name as user_name, groups.name as group_name,
                    coalesce(json_extract(j.spec, '$.share'), 'default') as share,
                    j.begun_at + j.time_limit_seconds * 1000 as ends_by,
                    (select json_group_array(card) from cards where cards.instance_id = r.instance_id) as cards
             from reservations as r join instances as i on i.id = r.instance_id
                  join users on users.id = i.user_id join groups on groups.id = users.group_id
                  left join jobs as j on j.id = i.job_id and j.ended_at is null
             order by r.sequence, r.instance_id",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(reservation).collect()
    }

    /// Who has which card.
    pub(crate) async fn held_cards(&self) -> Result<Vec<HeldCard>, StoreError> {
        let rows = sqlx::query(
            "select cards.card, r.taken_at, users.id as user_id, users.group_id, users.name as user_name,
                    coalesce(j.name || '/' || json_extract(j.spec, '$.roles[' || t.role || '].name') || '/' || t.task,
                             i.name) as name
             from cards join reservations as r on r.instance_id = cards.instance_id
                  join instances as i on i.id = r.instance_id join users on users.id = i.user_id
                  left join tasks as t on t.instance_id = i.id left join jobs as j on j.id = t.job_id
             order by cards.node, cards.card",
        )
        .fetch_all(&self.pool)
        .await?;
        let held = |row: &SqliteRow| {
            Ok::<_, StoreError>(HeldCard {
                card: row.try_get("card")?,
                user_id: UserId(row.try_get("user_id")?),
                group_id: GroupId(row.try_get("group_id")?),
                holder: GpuHolder {
                    user: readable(row.try_get::<&str, _>("user_name")?.parse())?,
                    name: row.try_get("name")?,
                    since: time(row.try_get("taken_at")?)?,
                },
            })
        };
        rows.iter().map(held).collect()
    }

    /// The instances that wait for room; jobs wait as jobs. What is on its way and holds no place waits for one, whatever
    /// its status says: a command may end while its user asks for it to be started anew.
    pub(crate) async fn waiting_instances(&self) -> Result<Vec<Waiting>, StoreError> {
        let rows = sqlx::query(
            "select i.id, i.name, i.generation, i.cluster, i.pool, i.spec, i.priority, i.queued_at, i.job_id,
                    users.name as user_name, groups.name as group_name
             from instances as i join users on users.id = i.user_id join groups on groups.id = users.group_id
             where i.goal = 'running' and json_extract(i.status, '$.state') in ('waiting', 'pulling', 'starting')
               and not exists (select 1 from reservations where instance_id = i.id)
             order by i.queued_at, i.id",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(waiting).collect()
    }

    /// Gives a waiting instance its place. `false`: its user has acted meanwhile, or it has one.
    pub(crate) async fn reserve_instance(
        &self,
        id: &InstanceId,
        generation: u64,
        held: &Held,
        status: &Status,
    ) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let done = sqlx::query(
            "update instances set status = ?3, spec = json_set(spec, '$.cards', json(?4)) where id = ?1 and generation = ?2 and goal = 'running'
             and not exists (select 1 from reservations where instance_id = ?1)",
        )
        .bind(id.as_str())
        .bind(generation.cast_signed())
        .bind(readable(serde_json::to_string(status))?)
        .bind(readable(serde_json::to_string(&held.cards))?)
        .execute(&mut *change)
        .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        reserve(&mut change, id, held).await?;
        change.commit().await?;
        Ok(true)
    }

    /// The quotas there are, by the name of their owner.
    pub(crate) async fn quotas(&self) -> Result<Vec<(queue::Owner, queue::Allowance)>, StoreError> {
        let rows = sqlx::query(
            "select q.owner, q.limits, q.raised, coalesce(users.name, groups.name) as name
             from quotas as q left join users on q.owner = 'user' and users.id = q.id
                  left join groups on q.owner = 'group' and groups.id = q.id",
        )
        .fetch_all(&self.pool)
        .await?;
        let mut all = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(name) = row.try_get::<Option<String>, _>("name")? else { continue };
            let owner = match row.try_get::<&str, _>("owner")? {
                "user" => queue::Owner::User(name),
                _ => queue::Owner::Group(name),
            };
            all.push((owner, allowance(row)?));
        }
        Ok(all)
    }

    pub(crate) async fn quota(&self, owner: QuotaOwner) -> Result<Option<queue::Allowance>, StoreError> {
        quota(&mut *self.pool.acquire().await?, owner).await
    }

    pub(crate) async fn set_quota(
        &self,
        owner: QuotaOwner,
        allowance: &queue::Allowance,
        line: &super::Line,
    ) -> Result<(), StoreError> {
        let (word, id) = owner.words();
        let raise = allowance.raise.as_ref().map(serde_json::to_string).transpose();
        let mut change = self.change().await?;
        sqlx::query("insert or replace into quotas (owner, id, limits, raised) values (?, ?, ?, ?)")
            .bind(word)
            .bind(id)
            .bind(readable(serde_json::to_string(&allowance.limits))?)
            .bind(readable(raise)?)
            .execute(&mut *change)
            .await?;
        super::audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }
}

pub(super) async fn quota(
    connection: &mut SqliteConnection,
    owner: QuotaOwner,
) -> Result<Option<queue::Allowance>, StoreError> {
    let (word, id) = owner.words();
    let row = sqlx::query("select limits, raised from quotas where owner = ? and id = ?")
        .bind(word)
        .bind(id)
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(allowance).transpose()
}

/// Writes down what an instance holds. A card that somebody has is [`StoreError::Taken`].
pub(super) async fn reserve(
    change: &mut SqliteConnection,
    id: &InstanceId,
    held: &Held,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into reservations (instance_id, node, cpus_milli, memory_mib, sequence, taken_at)
         values (?, ?, ?, ?, ?, ?)",
    )
    .bind(id.as_str())
    .bind(&held.node)
    .bind(held.cpus_milli.cast_signed())
    .bind(held.memory_mib.cast_signed())
    .bind(held.sequence.cast_signed())
    .bind(now())
    .execute(&mut *change)
    .await?;
    super::holdings::begin(change, id, held).await?;
    for card in &held.cards {
        sqlx::query("insert into cards (node, card, instance_id) values (?, ?, ?)")
            .bind(&held.node)
            .bind(card)
            .bind(id.as_str())
            .execute(&mut *change)
            .await?;
    }
    Ok(())
}

/// Takes back what an instance held.
pub(super) async fn release(change: &mut SqliteConnection, id: &InstanceId) -> Result<(), StoreError> {
    sqlx::query("delete from reservations where instance_id = ?").bind(id.as_str()).execute(change).await?;
    Ok(())
}

impl QuotaOwner {
    pub(super) fn words(self) -> (&'static str, i64) {
        match self {
            Self::User(id) => ("user", id.0),
            Self::Group(id) => ("group", id.0),
        }
    }
}

/// Processors in thousandths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "requests are checked when they come"
)]
pub(crate) fn milli(cpus: f64) -> u64 {
    (cpus * 1000.0).round().max(0.0) as u64
}

#[expect(clippy::cast_precision_loss, reason = "nobody has so many processors")]
pub(crate) fn cpus(milli: u64) -> f64 {
    milli as f64 / 1000.0
}

fn allowance(row: &SqliteRow) -> Result<queue::Allowance, StoreError> {
    Ok(queue::Allowance {
        limits: readable(serde_json::from_str(row.try_get("limits")?))?,
        raise: super::jobs::optional(row, "raised")?,
    })
}

fn reservation(row: &SqliteRow) -> Result<Reservation, StoreError> {
    let number = |column| Ok::<_, StoreError>(row.try_get::<i64, _>(column)?.cast_unsigned());
    Ok(Reservation {
        instance: readable(row.try_get::<&str, _>("instance_id")?.parse())?,
        job: row.try_get::<Option<&str>, _>("job_id")?.map(|id| readable(id.parse())).transpose()?,
        opened: row.try_get("opened")?,
        user: row.try_get("user_name")?,
        group: row.try_get("group_name")?,
        share: row.try_get("share")?,
        cluster: row.try_get("cluster")?,
        taken_at: time(row.try_get("taken_at")?)?,
        ends_by: row.try_get::<Option<i64>, _>("ends_by")?.map(time).transpose()?,
        held: Held {
            node: row.try_get("node")?,
            cpus_milli: number("cpus_milli")?,
            memory_mib: number("memory_mib")?,
            cards: readable(serde_json::from_str(row.try_get("cards")?))?,
            model: None,
            sequence: number("sequence")?,
        },
    })
}

fn waiting(row: &SqliteRow) -> Result<Waiting, StoreError> {
    Ok(Waiting {
        id: readable(row.try_get::<&str, _>("id")?.parse())?,
        name: row.try_get("name")?,
        generation: row.try_get::<i64, _>("generation")?.cast_unsigned(),
        user: row.try_get("user_name")?,
        group: row.try_get("group_name")?,
        cluster: row.try_get("cluster")?,
        pool: row.try_get("pool")?,
        spec: readable(serde_json::from_str(row.try_get("spec")?))?,
        priority: u8::try_from(row.try_get::<i64, _>("priority")?).unwrap_or(u8::MAX),
        queued_at: time(row.try_get("queued_at")?)?,
        is_task: row.try_get::<Option<&str>, _>("job_id")?.is_some(),
    })
}
