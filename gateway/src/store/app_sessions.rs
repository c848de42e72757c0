//! The table of app sessions: who may use which app at its own address, by the hash of a cookie that only the browser
//! has. A row is worth something only while the key that made it is.

use std::time::Duration;

use gateway_api::{AppName, InstanceId, words::Language};
use sqlx::Row as _;

use super::{InstanceRow, Line, Store, StoreError, UserId, audit, now, readable};
use crate::auth::{Key, token::TokenHash};

/// A session that is not there yet.
#[derive(Debug)]
pub(crate) struct NewAppSession<'a> {
    pub(crate) token_hash: &'a TokenHash,
    pub(crate) user: UserId,
    pub(crate) instance: &'a InstanceId,
    pub(crate) app: AppName,
    pub(crate) folder: Option<&'a str>,
    /// What the one who opened the app had shown.
    pub(crate) key: &'a Key,
    pub(crate) lasts: Duration,
}

/// What an app session opens.
#[derive(Debug, Clone)]
pub(crate) struct AppSession {
    pub(crate) app: AppName,
    pub(crate) folder: Option<String>,
    pub(crate) instance: InstanceRow,
    /// The one that its user has chosen, if any.
    pub(crate) language: Option<Language>,
}

/// What makes an app session `s` worth something: its own time, its user, and the key that made it.
macro_rules! good {
    () => {
        "s.expires_at > ?2
         and exists (select 1 from users where users.id = s.user_id and disabled_at is null and removed_at is null)
         and exists (select 1 from instances where instances.id = s.instance_id and instances.user_id = s.user_id)
         and (exists (select 1 from sessions where sessions.token_hash = s.session_hash and sessions.expires_at > ?2)
              or exists (select 1 from tokens where tokens.id = s.token_id and tokens.expires_at > ?2))"
    };
}
pub(super) use good;

impl Store {
    /// Adds a session, if the key that opens it is still there; else [`StoreError::UserGone`].
    pub(crate) async fn add_app_session(
        &self,
        new: NewAppSession<'_>,
        line: &Line,
    ) -> Result<(), StoreError> {
        let (session, token) = match new.key {
            Key::Session { hash } => (Some(&hash[..]), None),
            Key::Token { id, .. } => (None, Some(id.as_str())),
            // No browser comes with one.
            Key::Ssh { .. } => return Err(StoreError::UserGone),
        };
        let now = now();
        let lasts = i64::try_from(new.lasts.as_millis()).unwrap_or(i64::MAX);
        let mut change = self.change().await?;
        // Once in a while somebody has to throw away what nobody asks for any more.
        sqlx::query("delete from app_sessions where expires_at <= ?").bind(now).execute(&mut *change).await?;
        let done = sqlx::query(
            "insert into app_sessions
                 (token_hash, user_id, instance_id, app, folder, session_hash, token_id, created_at, expires_at)
             select ?1, ?2, id, ?4, ?5, ?6, ?7, ?8, ?9 from instances where id = ?3 and user_id = ?2
                 and (exists (select 1 from sessions where token_hash = ?6 and user_id = ?2)
                      or exists (select 1 from tokens where id = ?7 and user_id = ?2))",
        )
        .bind(&new.token_hash[..])
        .bind(new.user.0)
        .bind(new.instance.as_str())
        .bind(new.app.to_string())
        .bind(new.folder)
        .bind(session)
        .bind(token)
        .bind(now)
        .bind(now.saturating_add(lasts))
        .execute(&mut *change)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::UserGone);
        }
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// What a cookie opens, while it does.
    pub(crate) async fn app_session(&self, token_hash: &TokenHash) -> Result<Option<AppSession>, StoreError> {
        let row = sqlx::query(concat!(
            "select instance_id, app, folder, (select language from users where id = s.user_id) as language
             from app_sessions s where token_hash = ?1 and ",
            good!()
        ))
        .bind(&token_hash[..])
        .bind(now())
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let id: InstanceId = readable(row.try_get::<&str, _>("instance_id")?.parse())?;
        let Some(instance) = self.instance(&id).await? else { return Ok(None) };
        Ok(Some(AppSession {
            app: readable(row.try_get::<&str, _>("app")?.parse())?,
            folder: row.try_get("folder")?,
            instance,
            language: row.try_get::<Option<&str>, _>("language")?.and_then(Language::named),
        }))
    }
}
