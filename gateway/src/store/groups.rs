//! The tables of groups and workspaces, and who is in them.

use gateway_api::{
    GroupName, UserName, WorkspaceName,
    people::{Group, Workspace},
};
use sqlx::{Row as _, sqlite::SqliteRow};

use super::{Line, Store, StoreError, UserId, audit, now, readable, time};

/// The id of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GroupId(pub(super) i64);

impl GroupId {
    /// The group of everyone who was put into no other.
    pub(crate) const DEFAULT: Self = Self(1);
}

const GROUPS: &str = "select groups.*,
    (select json_group_array(name) from
        (select name from users where group_id = groups.id and removed_at is null order by name)) as members,
    (select json_group_array(name) from
        (select name from users where group_id = groups.id and removed_at is null and role = 'leader' order by name))
        as leaders
    from groups ";

const WORKSPACES: &str = "select workspaces.*,
    (select json_group_array(name) from
        (select users.name from workspace_members join users on users.id = user_id
         where workspace_id = workspaces.id and removed_at is null order by users.name)) as members
    from workspaces ";

// === groups ===

impl Store {
    /// All groups, or the one of that id.
    pub(crate) async fn groups(&self, only: Option<GroupId>) -> Result<Vec<Group>, StoreError> {
        let sql = sqlx::AssertSqlSafe(format!("{GROUPS} where ?1 is null or id = ?1 order by name"));
        let rows = sqlx::query(sql).bind(only.map(|group| group.0)).fetch_all(&self.pool).await?;
        rows.iter().map(group).collect()
    }

    pub(crate) async fn group_id(&self, name: &GroupName) -> Result<Option<GroupId>, StoreError> {
        let row = sqlx::query("select id from groups where name = ?")
            .bind(name.as_str())
            .fetch_optional(&self.pool)
            .await?;
        row.map(|row| Ok(GroupId(row.try_get("id")?))).transpose()
    }

    pub(crate) async fn add_group(&self, name: &GroupName, line: &Line) -> Result<GroupId, StoreError> {
        let mut change = self.change().await?;
        let done = sqlx::query("insert into groups (name, created_at) values (?, ?)")
            .bind(name.as_str())
            .bind(now())
            .execute(&mut *change)
            .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(GroupId(done.last_insert_rowid()))
    }

    /// Removes a group that has no members, also none that could be restored. `false`: it has.
    pub(crate) async fn remove_group(&self, group: GroupId, line: &Line) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        // Of those who are gone for good only the row is left; it may as well be elsewhere.
        sqlx::query("update users set group_id = ? where group_id = ? and purged_at is not null")
            .bind(GroupId::DEFAULT.0)
            .bind(group.0)
            .execute(&mut *change)
            .await?;
        let done = sqlx::query(
            "delete from groups where id = ?1 and not exists (select 1 from users where group_id = ?1)",
        )
        .bind(group.0)
        .execute(&mut *change)
        .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        // A later group may get the number.
        sqlx::query("delete from quotas where owner = 'group' and id = ?")
            .bind(group.0)
            .execute(&mut *change)
            .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(true)
    }
}

// === workspaces ===

impl Store {
    /// All workspaces, or those of one user.
    pub(crate) async fn workspaces(&self, of: Option<UserId>) -> Result<Vec<Workspace>, StoreError> {
        let sql = sqlx::AssertSqlSafe(format!(
            "{WORKSPACES} where ?1 is null
             or id in (select workspace_id from workspace_members where user_id = ?1) order by name"
        ));
        let rows = sqlx::query(sql).bind(of.map(|user| user.0)).fetch_all(&self.pool).await?;
        rows.iter().map(workspace).collect()
    }

    pub(crate) async fn workspace(&self, name: &WorkspaceName) -> Result<Option<Workspace>, StoreError> {
        let sql = sqlx::AssertSqlSafe(format!("{WORKSPACES} where name = ?"));
        let row = sqlx::query(sql).bind(name.as_str()).fetch_optional(&self.pool).await?;
        row.as_ref().map(workspace).transpose()
    }

    pub(crate) async fn add_workspace(&self, name: &WorkspaceName, line: &Line) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query("insert into workspaces (name, created_at) values (?, ?)")
            .bind(name.as_str())
            .bind(now())
            .execute(&mut *change)
            .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    pub(crate) async fn remove_workspace(&self, name: &WorkspaceName, line: &Line) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query("delete from workspaces where name = ?")
            .bind(name.as_str())
            .execute(&mut *change)
            .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// Puts a user into a workspace or takes one out; doing so twice is doing so once.
    pub(crate) async fn set_member(
        &self,
        workspace: &WorkspaceName,
        user: UserId,
        member: bool,
        line: &Line,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let sql = if member {
            "insert into workspace_members (workspace_id, user_id)
             select id, ?2 from workspaces where name = ?1 on conflict do nothing"
        } else {
            "delete from workspace_members
             where workspace_id = (select id from workspaces where name = ?1) and user_id = ?2"
        };
        sqlx::query(sql).bind(workspace.as_str()).bind(user.0).execute(&mut *change).await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }
}

fn group(row: &SqliteRow) -> Result<Group, StoreError> {
    Ok(Group {
        name: readable(row.try_get::<&str, _>("name")?.parse())?,
        leaders: names(row, "leaders")?,
        members: names(row, "members")?,
        created_at: time(row.try_get("created_at")?)?,
    })
}

fn workspace(row: &SqliteRow) -> Result<Workspace, StoreError> {
    Ok(Workspace {
        name: readable(row.try_get::<&str, _>("name")?.parse())?,
        members: names(row, "members")?,
        created_at: time(row.try_get("created_at")?)?,
    })
}

fn names(row: &SqliteRow, column: &str) -> Result<Vec<UserName>, StoreError> {
    readable(serde_json::from_str(row.try_get(column)?))
}
