//! The table of secrets. Values come sealed and go sealed: the key is not the store's.

use gateway_api::{
    SecretName,
    secret::{Secret, SecretRegistry},
};
use sqlx::{Row as _, sqlite::SqliteRow};

use super::{Line, Store, StoreError, UserId, audit, now, readable, time};

/// A secret to be kept, in place of one of the same name.
#[derive(Debug)]
pub(crate) struct NewSecret<'a> {
    /// The site's when absent.
    pub(crate) owner: Option<UserId>,
    pub(crate) name: &'a SecretName,
    pub(crate) registry: Option<&'a SecretRegistry>,
    pub(crate) sealed: &'a [u8],
}

/// A secret with its value, which only the key opens.
#[derive(Debug)]
pub(crate) struct SealedSecret {
    pub(crate) owner: Option<UserId>,
    pub(crate) secret: Secret,
    pub(crate) sealed: Vec<u8>,
}

impl Store {
    /// Sets a secret. A second login for the same registry is [`StoreError::Taken`].
    pub(crate) async fn set_secret(&self, new: NewSecret<'_>, line: &Line) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query("delete from secrets where user_id is ? and name = ?")
            .bind(new.owner.map(|owner| owner.0))
            .bind(new.name.as_str())
            .execute(&mut *change)
            .await?;
        sqlx::query(
            "insert into secrets (user_id, name, host, login, sealed, changed_at) values (?, ?, ?, ?, ?, ?)",
        )
        .bind(new.owner.map(|owner| owner.0))
        .bind(new.name.as_str())
        .bind(new.registry.map(|registry| &registry.host))
        .bind(new.registry.map(|registry| &registry.user))
        .bind(new.sealed)
        .bind(now())
        .execute(&mut *change)
        .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// The secrets of a user, or of the site, by name.
    pub(crate) async fn secrets_of(&self, owner: Option<UserId>) -> Result<Vec<SealedSecret>, StoreError> {
        let rows = sqlx::query("select * from secrets where user_id is ? order by name")
            .bind(owner.map(|owner| owner.0))
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(sealed).collect()
    }

    /// The login for a registry: the user's own, else the site's.
    pub(crate) async fn registry_secret(
        &self,
        user: UserId,
        host: &str,
    ) -> Result<Option<SealedSecret>, StoreError> {
        let row = sqlx::query(
            "select * from secrets where host = ? and (user_id = ? or user_id is null)
             order by user_id is null limit 1",
        )
        .bind(host)
        .bind(user.0)
        .fetch_optional(&self.pool)
        .await?;
        row.as_ref().map(sealed).transpose()
    }

    /// Removes a secret; `false` when there is none of that name.
    pub(crate) async fn remove_secret(
        &self,
        owner: Option<UserId>,
        name: &SecretName,
        line: &Line,
    ) -> Result<bool, StoreError> {
        let delete = sqlx::query("delete from secrets where user_id is ? and name = ?")
            .bind(owner.map(|owner| owner.0))
            .bind(name.as_str());
        self.audited(delete, line).await
    }
}

fn sealed(row: &SqliteRow) -> Result<SealedSecret, StoreError> {
    let (host, user): (Option<String>, Option<String>) = (row.try_get("host")?, row.try_get("login")?);
    Ok(SealedSecret {
        owner: row.try_get::<Option<i64>, _>("user_id")?.map(UserId),
        secret: Secret {
            name: readable(row.try_get::<&str, _>("name")?.parse())?,
            registry: host.zip(user).map(|(host, user)| SecretRegistry { host, user }),
            changed_at: time(row.try_get("changed_at")?)?,
        },
        sealed: row.try_get("sealed")?,
    })
}
