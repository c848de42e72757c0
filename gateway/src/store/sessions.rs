//! The table of sessions: who is signed in, by the hash of a token that only the client has.

use std::time::Duration;

use super::{Line, Store, StoreError, User, UserId, app_sessions, audit, now, users};

impl Store {
    pub(crate) async fn add_session(
        &self,
        token_hash: &[u8],
        user: UserId,
        lasts: Duration,
        line: &Line,
    ) -> Result<(), StoreError> {
        let now = now();
        let lasts = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
        let mut change = self.change().await?;
        sqlx::query("insert into sessions (token_hash, user_id, created_at, expires_at) values (?, ?, ?, ?)")
            .bind(token_hash)
            .bind(user.0)
            .bind(now)
            .bind(now.saturating_add(lasts))
            .execute(&mut *change)
            .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// Adds a session that lasts no longer than `parent`, and ends with it. `None`: the parent has ended already.
    pub(crate) async fn add_child_session(
        &self,
        token_hash: &[u8],
        parent: &[u8],
        line: &Line,
    ) -> Result<Option<User>, StoreError> {
        let mut change = self.change().await?;
        let added = sqlx::query(
            "insert into sessions (token_hash, user_id, created_at, expires_at, parent_hash)
             select ?1, user_id, ?2, expires_at, token_hash from sessions where token_hash = ?3 and expires_at > ?2",
        )
        .bind(token_hash)
        .bind(now())
        .bind(parent)
        .execute(&mut *change)
        .await?;
        if added.rows_affected() == 0 {
            return Ok(None);
        }
        audit::append(&mut change, line).await?;
        change.commit().await?;
        self.session_user(token_hash).await
    }

    /// Whose session it is, while it lasts and its user may sign in.
    pub(crate) async fn session_user(&self, token_hash: &[u8]) -> Result<Option<User>, StoreError> {
        let row = sqlx::query(users::select!(
            "",
            "join sessions on sessions.user_id = users.id
             where token_hash = ? and expires_at > ? and disabled_at is null and removed_at is null"
        ))
        .bind(token_hash)
        .bind(now())
        .fetch_optional(&self.pool)
        .await?;
        row.map(|row| users::user(&row)).transpose()
    }

    /// Whether a session, a token, an app session or an SSH key still opens anything.
    pub(crate) async fn still_opens(&self, token_hash: &[u8]) -> Result<bool, StoreError> {
        let row = sqlx::query(concat!(
            "select 1 from users
             where disabled_at is null and removed_at is null and id in (
                 select user_id from sessions where token_hash = ?1 and expires_at > ?2
                 union all select user_id from tokens where token_hash = ?1 and expires_at > ?2
                 union all select user_id from ssh_keys where hash = ?1
                 union all select user_id from app_sessions s where token_hash = ?1 and ",
            app_sessions::good!(),
            ")"
        ))
        .bind(token_hash)
        .bind(now())
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.is_some())
    }

    pub(crate) async fn end_session(&self, token_hash: &[u8], line: &Line) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query("delete from sessions where token_hash = ?")
            .bind(token_hash)
            .execute(&mut *change)
            .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    pub(crate) async fn forget_expired_sessions(&self) -> Result<(), StoreError> {
        sqlx::query("delete from sessions where expires_at <= ?").bind(now()).execute(&self.writer).await?;
        Ok(())
    }
}
