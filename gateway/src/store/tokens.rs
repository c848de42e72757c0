//! The table of API tokens, by the hash of a secret that only its owner has.

use std::time::Duration;

use gateway_api::{
    TokenName,
    id::TokenId,
    token::{ApiToken, Scope},
};
use sqlx::{Row as _, sqlite::SqliteRow};

use super::{Line, Store, StoreError, User, UserId, audit, now, readable, time, users};

/// How old `last_used_at` may be before a use is worth a write.
const USE_IS_OLD: Duration = Duration::from_mins(5);

/// A token that is not there yet.
#[derive(Debug)]
pub(crate) struct NewToken<'a> {
    pub(crate) id: &'a TokenId,
    pub(crate) token_hash: &'a [u8],
    pub(crate) user: UserId,
    pub(crate) name: &'a TokenName,
    pub(crate) scope: Scope,
    pub(crate) lasts: Duration,
}

impl Store {
    /// Adds a token. A name that its user has in use already is [`StoreError::Taken`].
    pub(crate) async fn add_token(&self, token: NewToken<'_>, line: &Line) -> Result<(), StoreError> {
        let now = now();
        let lasts = i64::try_from(token.lasts.as_millis()).unwrap_or(i64::MAX);
        let mut change = self.change().await?;
        sqlx::query(
            "insert into tokens (id, token_hash, user_id, name, scope, created_at, expires_at)
             values (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(token.id.as_str())
        .bind(token.token_hash)
        .bind(token.user.0)
        .bind(token.name.as_str())
        .bind(token.scope.word())
        .bind(now)
        .bind(now.saturating_add(lasts))
        .execute(&mut *change)
        .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// Whose token it is and what it opens, while it lasts and its user may sign in.
    pub(crate) async fn token_user(
        &self,
        token_hash: &[u8],
    ) -> Result<Option<(User, TokenId, Scope)>, StoreError> {
        let row = sqlx::query(users::select!(
            ", tokens.id as token_id, scope, last_used_at",
            "join tokens on tokens.user_id = users.id
             where token_hash = ? and expires_at > ? and disabled_at is null and removed_at is null"
        ))
        .bind(token_hash)
        .bind(now())
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let id: TokenId = readable(row.try_get::<&str, _>("token_id")?.parse())?;
        let used: Option<i64> = row.try_get("last_used_at")?;
        self.note_use(&id, used).await;
        Ok(Some((users::user(&row)?, id, scope(&row)?)))
    }

    /// When a token was used last is good to know and not worth failing for.
    async fn note_use(&self, id: &TokenId, used: Option<i64>) {
        let old = now() - i64::try_from(USE_IS_OLD.as_millis()).unwrap_or(i64::MAX);
        if used.is_some_and(|used| used > old) {
            return;
        }
        let noted = sqlx::query("update tokens set last_used_at = ? where id = ?")
            .bind(now())
            .bind(id.as_str())
            .execute(&self.writer)
            .await;
        if let Err(error) = noted {
            tracing::warn!(%error, "the use of a token cannot be noted");
        }
    }

    /// A user's tokens, newest first.
    pub(crate) async fn tokens_of(&self, user: UserId) -> Result<Vec<ApiToken>, StoreError> {
        let rows = sqlx::query("select * from tokens where user_id = ? order by id desc")
            .bind(user.0)
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(token).collect()
    }

    /// A token and whose it is.
    pub(crate) async fn token(&self, id: &TokenId) -> Result<Option<(UserId, ApiToken)>, StoreError> {
        let row = sqlx::query("select * from tokens where id = ?")
            .bind(id.as_str())
            .fetch_optional(&self.pool)
            .await?;
        row.map(|row| Ok((UserId(row.try_get("user_id")?), token(&row)?))).transpose()
    }

    pub(crate) async fn remove_token(&self, id: &TokenId, line: &Line) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query("delete from tokens where id = ?").bind(id.as_str()).execute(&mut *change).await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }
}

fn token(row: &SqliteRow) -> Result<ApiToken, StoreError> {
    Ok(ApiToken {
        id: readable(row.try_get::<&str, _>("id")?.parse())?,
        name: readable(row.try_get::<&str, _>("name")?.parse())?,
        scope: scope(row)?,
        created_at: time(row.try_get("created_at")?)?,
        expires_at: time(row.try_get("expires_at")?)?,
        last_used_at: row.try_get::<Option<i64>, _>("last_used_at")?.map(time).transpose()?,
    })
}

fn scope(row: &SqliteRow) -> Result<Scope, StoreError> {
    match row.try_get("scope")? {
        "all" => Ok(Scope::All),
        "read" => Ok(Scope::Read),
        other => readable(Err(format!("the scope `{other}`"))),
    }
}
