//! The table of users.
//!
//! A user who is removed stays in the table: first because they can be restored, then because their `home` must never
//! become somebody else's. Once `purged_at` is set nobody finds them by name any more.

use gateway_api::{GroupName, UserName, WorkspaceName, session::Role, words::Language};
use jiff::Timestamp;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{GroupId, Line, Store, StoreError, audit, now, readable, time};

/// The id of a user: never shown, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct UserId(pub(super) i64);

impl std::fmt::Display for UserId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(out)
    }
}

/// A user as the store keeps one.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) id: UserId,
    pub(crate) name: UserName,
    pub(crate) role: Role,
    pub(crate) group_id: GroupId,
    pub(crate) group: GroupName,
    /// The key of the user's storage.
    pub(crate) home: String,
    pub(crate) must_change_password: bool,
    /// The one that they have chosen, if any.
    pub(crate) language: Option<Language>,
    pub(crate) created_at: Timestamp,
    pub(crate) disabled_at: Option<Timestamp>,
    pub(crate) removed_at: Option<Timestamp>,
}

impl User {
    pub(crate) fn may_sign_in(&self) -> bool {
        self.disabled_at.is_none() && self.removed_at.is_none()
    }
}

/// A user who is not there yet.
#[derive(Debug)]
pub(crate) struct NewUser<'a> {
    pub(crate) name: &'a UserName,
    pub(crate) password_hash: &'a str,
    pub(crate) role: Role,
    pub(crate) group: GroupId,
    pub(crate) must_change_password: bool,
}

/// What changes about a user.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct UserChange {
    pub(crate) role: Option<Role>,
    pub(crate) group: Option<GroupId>,
    pub(crate) disabled: Option<bool>,
}

/// `select` of all that [`user`] reads, with more columns and the rest of the statement.
macro_rules! select {
    ($more:literal, $rest:literal) => {
        concat!(
            "select users.id, users.name, role, group_id, home, must_change_password, users.created_at, disabled_at,
                    removed_at, language, groups.name as group_name",
            $more,
            " from users join groups on groups.id = users.group_id ",
            $rest
        )
    };
}
pub(super) use select;

// === reading ===

impl Store {
    pub(crate) async fn has_users(&self) -> Result<bool, StoreError> {
        Ok(sqlx::query("select 1 from users limit 1").fetch_optional(&self.pool).await?.is_some())
    }

    /// All who are there or can be restored, or only those of a group who are there.
    pub(crate) async fn users(&self, of: Option<GroupId>) -> Result<Vec<User>, StoreError> {
        let rows = sqlx::query(select!(
            "",
            "where purged_at is null and (?1 is null or (group_id = ?1 and removed_at is null)) order by users.name"
        ))
        .bind(of.map(|group| group.0))
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(user).collect()
    }

    pub(crate) async fn user_by_name(&self, name: &UserName) -> Result<Option<User>, StoreError> {
        Ok(self.user_to_verify(name).await?.map(|(user, _)| user))
    }

    /// A user and the hash of the password, by name.
    pub(crate) async fn user_to_verify(&self, name: &UserName) -> Result<Option<(User, String)>, StoreError> {
        let row = sqlx::query(select!(", password_hash", "where users.name = ? and purged_at is null"))
            .bind(name.as_str())
            .fetch_optional(&self.pool)
            .await?;
        row.map(|row| Ok((user(&row)?, row.try_get("password_hash")?))).transpose()
    }

    /// The names of the workspaces that each user is in.
    pub(crate) async fn memberships(&self) -> Result<Vec<(UserId, WorkspaceName)>, StoreError> {
        let rows = sqlx::query(
            "select user_id, name from workspace_members join workspaces on workspaces.id = workspace_id order by name",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter()
            .map(|row| {
                Ok((UserId(row.try_get("user_id")?), readable(row.try_get::<&str, _>("name")?.parse())?))
            })
            .collect()
    }

    /// Those who were removed before `then` and can still be restored. Time that the store does not know does not count:
    /// somebody may have been restored in it.
    pub(crate) async fn users_removed_before(&self, then: Timestamp) -> Result<Vec<User>, StoreError> {
        let rows = sqlx::query(select!(
            "",
            "where purged_at is null and removed_at + (
                 select coalesce(sum(until - max(since, removed_at)), 0) from unknown_times where until > removed_at) < ?"
        ))
            .bind(then.as_millisecond())
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(user).collect()
    }
}

// === changing ===

impl Store {
    /// Adds a user. A name that is in use, also by one who can be restored, is [`StoreError::Taken`].
    pub(crate) async fn add_user(&self, new: NewUser<'_>, line: &Line) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let home = free_home(&mut change, new.name).await?;
        sqlx::query(
            "insert into users (name, password_hash, role, group_id, home, must_change_password, created_at)
             values (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(new.name.as_str())
        .bind(new.password_hash)
        .bind(new.role.word())
        .bind(new.group.0)
        .bind(home)
        .bind(new.must_change_password)
        .bind(now())
        .execute(&mut *change)
        .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// Sets a password and ends all sessions of that user but `except`. One that `must_change` was reset by somebody
    /// else, and takes their tokens and SSH keys with it.
    pub(crate) async fn set_password(
        &self,
        user: UserId,
        password_hash: &str,
        must_change: bool,
        except: Option<&[u8]>,
        line: &Line,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query("update users set password_hash = ?, must_change_password = ? where id = ?")
            .bind(password_hash)
            .bind(must_change)
            .bind(user.0)
            .execute(&mut *change)
            .await?;
        // The one that stays may have been opened by one that goes.
        sqlx::query("update sessions set parent_hash = null where token_hash is ?")
            .bind(except)
            .execute(&mut *change)
            .await?;
        sqlx::query("delete from sessions where user_id = ? and token_hash is not ?")
            .bind(user.0)
            .bind(except)
            .execute(&mut *change)
            .await?;
        // A password that had to be reset may have been in wrong hands, and with it the making of tokens and keys.
        if must_change {
            sqlx::query("delete from tokens where user_id = ?").bind(user.0).execute(&mut *change).await?;
            sqlx::query("delete from ssh_keys where user_id = ?").bind(user.0).execute(&mut *change).await?;
            sqlx::query("delete from secrets where user_id = ?").bind(user.0).execute(&mut *change).await?;
        }
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// Sets the language that a user has chosen.
    pub(crate) async fn set_language(
        &self,
        user: UserId,
        language: Option<Language>,
        line: &Line,
    ) -> Result<(), StoreError> {
        let set = sqlx::query("update users set language = ? where id = ?")
            .bind(language.map(Language::tag))
            .bind(user.0);
        self.audited(set, line).await.map(|_| ())
    }

    /// Changes a user. Being disabled ends sessions and tokens. [`StoreError::LastAdmin`]: nothing was changed.
    pub(crate) async fn change_user(
        &self,
        user: UserId,
        wanted: UserChange,
        line: &Line,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query(
            "update users set role = coalesce(?2, role), group_id = coalesce(?3, group_id),
             disabled_at = case ?4 when 1 then coalesce(disabled_at, ?5) when 0 then null else disabled_at end
             where id = ?1",
        )
        .bind(user.0)
        .bind(wanted.role.map(Role::word))
        .bind(wanted.group.map(|group| group.0))
        .bind(wanted.disabled)
        .bind(now())
        .execute(&mut *change)
        .await?;
        if wanted.disabled == Some(true) {
            end_all(&mut change, user).await?;
        }
        if wanted.group.is_some() {
            // The cluster is told, and takes from containers what they see of a group that was left.
            sqlx::query(
                "update instances set spec = json_set(spec, '$.group',
                    (select groups.name from users join groups on groups.id = group_id where users.id = ?1))
                 where user_id = ?1",
            )
            .bind(user.0)
            .execute(&mut *change)
            .await?;
        }
        an_admin_is_left(&mut change).await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// Removes a user for the time being: sessions and tokens end, instances are to stop with `stopping` as status.
    pub(crate) async fn remove_user(
        &self,
        user: UserId,
        stopping: &gateway_api::Status,
        line: &Line,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query("update users set removed_at = ? where id = ? and removed_at is null")
            .bind(now())
            .bind(user.0)
            .execute(&mut *change)
            .await?;
        end_all(&mut change, user).await?;
        sqlx::query(
            "update instances set goal = 'stopped', generation = generation + 1, status = ?
             where user_id = ? and goal = 'running'",
        )
        .bind(readable(serde_json::to_string(stopping))?)
        .bind(user.0)
        .execute(&mut *change)
        .await?;
        sqlx::query(
            "update jobs set goal = 'stopped', version = version + 1
             where user_id = ? and goal = 'running' and ended_at is null",
        )
        .bind(user.0)
        .execute(&mut *change)
        .await?;
        an_admin_is_left(&mut change).await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// Brings a removed user back. `false`: it is too late, or they were not removed.
    pub(crate) async fn restore_user(&self, user: UserId, line: &Line) -> Result<bool, StoreError> {
        let restore = sqlx::query(
            "update users set removed_at = null
             where id = ? and removed_at is not null and purged_at is null",
        )
        .bind(user.0);
        self.audited(restore, line).await
    }

    /// Gives up a removed user: their instances are to be deleted, their secrets are, their name is free, their files stay.
    pub(crate) async fn purge_user(
        &self,
        user: UserId,
        deleting: &gateway_api::Status,
        line: &Line,
    ) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let done = sqlx::query(
            "update users set purged_at = ? where id = ? and removed_at is not null and purged_at is null",
        )
        .bind(now())
        .bind(user.0)
        .execute(&mut *change)
        .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        sqlx::query("delete from workspace_members where user_id = ?")
            .bind(user.0)
            .execute(&mut *change)
            .await?;
        // Whoever comes back under another name brings the same key.
        sqlx::query("delete from ssh_keys where user_id = ?").bind(user.0).execute(&mut *change).await?;
        sqlx::query("delete from secrets where user_id = ?").bind(user.0).execute(&mut *change).await?;
        sqlx::query(
            "update instances set goal = 'deleted', generation = generation + 1, status = ?
             where user_id = ? and goal <> 'deleted'",
        )
        .bind(readable(serde_json::to_string(deleting))?)
        .bind(user.0)
        .execute(&mut *change)
        .await?;
        sqlx::query(
            "update jobs set goal = 'deleted', version = version + 1 where user_id = ? and goal <> 'deleted'",
        )
        .bind(user.0)
        .execute(&mut *change)
        .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(true)
    }
}

/// A key for storage that nobody ever had: the name, or the name and a number.
async fn free_home(connection: &mut SqliteConnection, name: &UserName) -> Result<String, StoreError> {
    let mut home = name.to_string();
    let mut number = 2;
    while sqlx::query("select 1 from users where home = ?")
        .bind(&home)
        .fetch_optional(&mut *connection)
        .await?
        .is_some()
    {
        home = format!("{name}.{number}");
        number += 1;
    }
    Ok(home)
}

async fn end_all(connection: &mut SqliteConnection, user: UserId) -> Result<(), StoreError> {
    sqlx::query("delete from sessions where user_id = ?").bind(user.0).execute(&mut *connection).await?;
    sqlx::query("delete from tokens where user_id = ?").bind(user.0).execute(&mut *connection).await?;
    Ok(())
}

async fn an_admin_is_left(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let admin = sqlx::query(
        "select 1 from users where role = 'admin' and disabled_at is null and removed_at is null limit 1",
    )
    .fetch_optional(connection)
    .await?;
    if admin.is_some() { Ok(()) } else { Err(StoreError::LastAdmin) }
}

/// Reads a [`User`] out of a row of `select!`.
pub(super) fn user(row: &SqliteRow) -> Result<User, StoreError> {
    let moment = |column| row.try_get::<Option<i64>, _>(column)?.map(time).transpose();
    Ok(User {
        id: UserId(row.try_get("id")?),
        name: readable(row.try_get::<&str, _>("name")?.parse())?,
        role: match row.try_get("role")? {
            "admin" => Role::Admin,
            "leader" => Role::Leader,
            "user" => Role::User,
            other => return readable(Err(format!("the role `{other}`"))),
        },
        group_id: GroupId(row.try_get("group_id")?),
        group: readable(row.try_get::<&str, _>("group_name")?.parse())?,
        home: row.try_get("home")?,
        must_change_password: row.try_get("must_change_password")?,
        language: row.try_get::<Option<&str>, _>("language")?.and_then(Language::named),
        created_at: time(row.try_get("created_at")?)?,
        disabled_at: moment("disabled_at")?,
        removed_at: moment("removed_at")?,
    })
}
