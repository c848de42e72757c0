//! The table of users.

use gateway_api::{UserName, session::Role};
use sqlx::Row as _;

use super::{Store, StoreError, now, readable};

/// The id of a user: never shown, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct UserId(pub(super) i64);

/// A user as the store keeps one.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) id: UserId,
    pub(crate) name: UserName,
    pub(crate) role: Role,
    pub(crate) must_change_password: bool,
}

/// A user who is not there yet.
#[derive(Debug)]
pub(crate) struct NewUser<'a> {
    pub(crate) name: &'a UserName,
    pub(crate) password_hash: &'a str,
    pub(crate) role: Role,
    pub(crate) must_change_password: bool,
}

impl Store {
    pub(crate) async fn has_users(&self) -> Result<bool, StoreError> {
        Ok(sqlx::query("select 1 from users limit 1").fetch_optional(&self.pool).await?.is_some())
    }

    pub(crate) async fn add_user(&self, user: NewUser<'_>) -> Result<(), StoreError> {
        sqlx::query(
            "insert into users (name, password_hash, role, must_change_password, created_at) values (?, ?, ?, ?, ?)",
        )
        .bind(user.name.as_str())
        .bind(user.password_hash)
        .bind(role_word(user.role))
        .bind(user.must_change_password)
        .bind(now())
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// A user and the hash of the password, by name.
    pub(crate) async fn user_to_verify(&self, name: &UserName) -> Result<Option<(User, String)>, StoreError> {
        let row = sqlx::query(
            "select id, name, role, must_change_password, password_hash from users where name = ?",
        )
        .bind(name.as_str())
        .fetch_optional(&self.pool)
        .await?;
        row.map(|row| Ok((user(&row)?, row.try_get("password_hash")?))).transpose()
    }

    /// Sets a password and ends all sessions of that user but `except`.
    pub(crate) async fn set_password(
        &self,
        user: UserId,
        password_hash: &str,
        must_change: bool,
        except: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let mut change = self.pool.begin().await?;
        sqlx::query("update users set password_hash = ?, must_change_password = ? where id = ?")
            .bind(password_hash)
            .bind(must_change)
            .bind(user.0)
            .execute(&mut *change)
            .await?;
        sqlx::query("delete from sessions where user_id = ? and token_hash is not ?")
            .bind(user.0)
            .bind(except)
            .execute(&mut *change)
            .await?;
        change.commit().await?;
        Ok(())
    }
}

/// Reads a [`User`] out of a row that has the columns `id, name, role, must_change_password`.
pub(super) fn user(row: &sqlx::sqlite::SqliteRow) -> Result<User, StoreError> {
    let role: &str = row.try_get("role")?;
    let name: &str = row.try_get("name")?;
    Ok(User {
        id: UserId(row.try_get("id")?),
        name: readable(name.parse::<UserName>())?,
        role: match role {
            "admin" => Role::Admin,
            "user" => Role::User,
            other => return readable(Err(format!("the role `{other}`"))),
        },
        must_change_password: row.try_get("must_change_password")?,
    })
}

fn role_word(role: Role) -> &'static str {
    match role {
        Role::Admin => "admin",
        Role::User => "user",
    }
}
