//! The table of sessions: who is signed in, by the hash of a token that only the client has.

use std::time::Duration;

use super::{Store, StoreError, User, UserId, now, users};

impl Store {
    pub(crate) async fn add_session(
        &self,
        token_hash: &[u8],
        user: UserId,
        lasts: Duration,
    ) -> Result<(), StoreError> {
        let now = now();
        let lasts = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
        sqlx::query("insert into sessions (token_hash, user_id, created_at, expires_at) values (?, ?, ?, ?)")
            .bind(token_hash)
            .bind(user.0)
            .bind(now)
            .bind(now.saturating_add(lasts))
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Whose session it is, while it lasts.
    pub(crate) async fn session_user(&self, token_hash: &[u8]) -> Result<Option<User>, StoreError> {
        let row = sqlx::query(
            "select users.id, name, role, must_change_password
             from sessions join users on users.id = sessions.user_id
             where token_hash = ? and expires_at > ?",
        )
        .bind(token_hash)
        .bind(now())
        .fetch_optional(&self.pool)
        .await?;
        row.map(|row| users::user(&row)).transpose()
    }

    pub(crate) async fn end_session(&self, token_hash: &[u8]) -> Result<(), StoreError> {
        sqlx::query("delete from sessions where token_hash = ?").bind(token_hash).execute(&self.pool).await?;
        Ok(())
    }

    pub(crate) async fn forget_expired_sessions(&self) -> Result<(), StoreError> {
        sqlx::query("delete from sessions where expires_at <= ?").bind(now()).execute(&self.pool).await?;
        Ok(())
    }
}
