//! Accounts: the first admin, signing in and out, changing a password.

use std::{net::IpAddr, time::Duration};

use gateway_api::{
    UserName,
    session::{ChangePassword, PASSWORD_MAX_BYTES, Role},
};

use super::App;
use crate::{
    auth::{password, token::Token},
    error::Error,
    store::{NewUser, User},
};

/// How long one stays signed in.
pub(crate) const SESSION_LASTS: Duration = Duration::from_hours(30 * 24);

/// The first account, made because there was none, and the password that is shown this once.
#[derive(Debug)]
pub(crate) struct NewAdmin {
    pub(crate) name: UserName,
    pub(crate) password: String,
}

impl App {
    /// Makes the admin's account where there is no account at all.
    pub(crate) async fn ensure_admin(&self) -> Result<Option<NewAdmin>, Error> {
        if self.store.has_users().await? {
            return Ok(None);
        }
        let name: UserName = "admin".parse().map_err(Error::BadName)?;
        let password = password::random();
        let password_hash = self.passwords.hash(password.clone()).await?;
        let user = NewUser {
            name: &name,
            password_hash: &password_hash,
            role: Role::Admin,
            must_change_password: true,
        };
        self.store.add_user(user).await?;
        Ok(Some(NewAdmin { name, password }))
    }

    /// A new random password for a user who lost theirs; ends all their sessions.
    pub(crate) async fn reset_password(&self, name: &UserName) -> Result<String, Error> {
        let (user, _) = self
            .store
            .user_to_verify(name)
            .await?
            .ok_or_else(|| Error::NotFound { kind: "user", name: name.to_string() })?;
        let password = password::random();
        let hash = self.passwords.hash(password.clone()).await?;
        self.store.set_password(user.id, &hash, true, None).await?;
        Ok(password)
    }

    /// Checks a name and a password. Unknown and wrong give the same answer at the same cost.
    pub(crate) async fn sign_in(
        &self,
        name: &str,
        password: String,
        from: IpAddr,
    ) -> Result<(User, Token), Error> {
        self.limits.count(name, from)?;
        if password.len() > PASSWORD_MAX_BYTES {
            return Err(Error::BadCredentials);
        }
        let found = match name.parse::<UserName>() {
            Ok(name) => self.store.user_to_verify(&name).await?,
            Err(_) => None,
        };
        let (user, hash) = found.unzip();
        let right = self.passwords.verify(password, hash).await?;
        let Some(user) = user.filter(|_| right) else {
            tracing::info!(%from, "a sign-in was refused");
            return Err(Error::BadCredentials);
        };
        let token = Token::new();
        self.store.add_session(&token.hash(), user.id, SESSION_LASTS).await?;
        tracing::info!(user = %user.name, %from, "signed in");
        Ok((user, token))
    }

    pub(crate) async fn sign_out(&self, token: &Token) -> Result<(), Error> {
        Ok(self.store.end_session(&token.hash()).await?)
    }

    /// Who sent `token`.
    pub(crate) async fn caller(&self, token: &Token) -> Result<User, Error> {
        self.store.session_user(&token.hash()).await?.ok_or(Error::Unauthenticated)
    }

    /// Changes the caller's password; other sessions of theirs end, this one goes on.
    pub(crate) async fn change_password(
        &self,
        caller: &User,
        session: &Token,
        change: ChangePassword,
        from: IpAddr,
    ) -> Result<(), Error> {
        self.limits.count(caller.name.as_str(), from)?;
        password::check(&change.new)?;
        if change.old == change.new {
            return Err(Error::WeakPassword { why: "it is the old one" });
        }
        let hash = self.store.user_to_verify(&caller.name).await?.map(|(_, hash)| hash);
        if !self.passwords.verify(change.old, hash).await? {
            return Err(Error::BadCredentials);
        }
        let hash = self.passwords.hash(change.new).await?;
        self.store.set_password(caller.id, &hash, false, Some(&session.hash())).await?;
        tracing::info!(user = %caller.name, "changed the password");
        Ok(())
    }
}
