//! The table of SSH keys: who may sign in with which public key.

use std::time::Duration;

use gateway_api::{SshKeyName, id::SshKeyId, ssh::SshKey};
use sqlx::{Row as _, sqlite::SqliteRow};

use super::{Line, Store, StoreError, User, UserId, audit, now, readable, time, users};
use crate::auth::token::TokenHash;

/// How old `last_used_at` may be before a use is worth a write.
const USE_IS_OLD: Duration = Duration::from_mins(5);

/// A key that is not there yet.
#[derive(Debug)]
pub(crate) struct NewSshKey<'a> {
    pub(crate) id: &'a SshKeyId,
    pub(crate) hash: &'a TokenHash,
    pub(crate) user: UserId,
    pub(crate) name: &'a SshKeyName,
    pub(crate) fingerprint: &'a [u8],
    pub(crate) public_key: &'a str,
    pub(crate) proved: bool,
}

/// A key that opens something, and whose it is.
#[derive(Debug, Clone)]
pub(crate) struct KnownKey {
    pub(crate) id: SshKeyId,
    pub(crate) hash: TokenHash,
    pub(crate) user: User,
    pub(crate) proved: bool,
    last_used_at: Option<i64>,
}

impl Store {
    /// Adds a key. A name or a key that its user has already, or a key that is proved to be another's, is
    /// [`StoreError::Taken`].
    pub(crate) async fn add_ssh_key(&self, key: NewSshKey<'_>, line: &Line) -> Result<(), StoreError> {
        let now = now();
        let mut change = self.change().await?;
        sqlx::query(
            "insert into ssh_keys (id, hash, user_id, name, fingerprint, public_key, proved_at, created_at)
             values (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(key.id.as_str())
        .bind(key.hash.as_slice())
        .bind(key.user.0)
        .bind(key.name.as_str())
        .bind(key.fingerprint)
        .bind(key.public_key)
        .bind(key.proved.then_some(now))
        .bind(now)
        .execute(&mut *change)
        .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// All who have that key and may sign in. More than one only while nobody has proved it.
    pub(crate) async fn known_keys(&self, fingerprint: &[u8]) -> Result<Vec<KnownKey>, StoreError> {
        let rows = sqlx::query(users::select!(
            ", ssh_keys.id as key_id, hash, proved_at, last_used_at",
            "join ssh_keys on ssh_keys.user_id = users.id
             where fingerprint = ? and disabled_at is null and removed_at is null"
        ))
        .bind(fingerprint)
        .fetch_all(&self.pool)
        .await?;
        rows.iter()
            .map(|row| {
                let hash: &[u8] = row.try_get("hash")?;
                Ok(KnownKey {
                    id: readable(row.try_get::<&str, _>("key_id")?.parse())?,
                    hash: readable(hash.try_into())?,
                    user: users::user(row)?,
                    proved: row.try_get::<Option<i64>, _>("proved_at")?.is_some(),
                    last_used_at: row.try_get("last_used_at")?,
                })
            })
            .collect()
    }

    /// Notes that somebody has signed in with a key; that they have its private half is proved by it. Good to know,
    /// and not worth failing for: the same key may be proved to be another's meanwhile.
    pub(crate) async fn note_key_use(&self, key: &KnownKey) {
        let old = now() - i64::try_from(USE_IS_OLD.as_millis()).unwrap_or(i64::MAX);
        if key.proved && key.last_used_at.is_some_and(|used| used > old) {
            return;
        }
        let noted = sqlx::query(
            "update or ignore ssh_keys set last_used_at = ?1, proved_at = coalesce(proved_at, ?1) where id = ?2",
        )
        .bind(now())
        .bind(key.id.as_str())
        .execute(&self.writer)
        .await;
        if let Err(error) = noted {
            tracing::warn!(%error, "the use of a key cannot be noted");
        }
    }

    /// A user's keys, newest first.
    pub(crate) async fn ssh_keys_of(&self, user: UserId) -> Result<Vec<SshKey>, StoreError> {
        let rows = sqlx::query("select * from ssh_keys where user_id = ? order by id desc")
            .bind(user.0)
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(ssh_key).collect()
    }

    /// Removes a user's key; `false` when they have none of that id.
    pub(crate) async fn remove_ssh_key(
        &self,
        user: UserId,
        id: &SshKeyId,
        line: &Line,
    ) -> Result<bool, StoreError> {
        let delete =
            sqlx::query("delete from ssh_keys where user_id = ? and id = ?").bind(user.0).bind(id.as_str());
        self.audited(delete, line).await
    }
}

fn ssh_key(row: &SqliteRow) -> Result<SshKey, StoreError> {
    let public_key: &str = row.try_get("public_key")?;
    let fingerprint: &[u8] = row.try_get("fingerprint")?;
    Ok(SshKey {
        id: readable(row.try_get::<&str, _>("id")?.parse())?,
        name: readable(row.try_get::<&str, _>("name")?.parse())?,
        kind: public_key.split(' ').next().unwrap_or_default().to_owned(),
        fingerprint: fingerprint_text(fingerprint),
        public_key: public_key.to_owned(),
        proved: row.try_get::<Option<i64>, _>("proved_at")?.is_some(),
        created_at: time(row.try_get("created_at")?)?,
        last_used_at: row.try_get::<Option<i64>, _>("last_used_at")?.map(time).transpose()?,
    })
}

/// As `ssh-keygen -l` writes it.
fn fingerprint_text(sha256: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
    format!("SHA256:{}", STANDARD_NO_PAD.encode(sha256))
}
