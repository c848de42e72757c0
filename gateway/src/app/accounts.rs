//! Accounts: the first admin, signing in and out, changing a password.

use std::time::Duration;

use gateway_api::{
    UserName,
    error::Reason,
    session::{ChangePassword, PASSWORD_MAX_BYTES, Role},
    words::Language,
};

use super::App;
use crate::{
    auth::{Caller, Key, Origin, password, policy, token::Token},
    error::Error,
    store::{GroupId, Line, NewUser, User},
};

/// How long one stays signed in.
pub(crate) const SESSION_LASTS: Duration = Duration::from_hours(30 * 24);
/// How long a client of the registry stays signed in. It asks again by itself.
pub(crate) const REGISTRY_SESSION_LASTS: Duration = Duration::from_mins(10);

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
            group: GroupId::DEFAULT,
            must_change_password: true,
        };
        self.store.add_user(user, &Line::by_system("user.add", name.as_str())).await?;
        Ok(Some(NewAdmin { name, password }))
    }

    /// A new random password for a user who lost theirs; ends all their sessions and tokens.
    ///
    /// For whoever has the machine itself: it also works when nobody can sign in any more.
    pub(crate) async fn reset_password(&self, name: &UserName) -> Result<String, Error> {
        let user = self.store.user_by_name(name).await?;
        let user = user.ok_or_else(|| Error::not_found("user", name.as_str()))?;
        self.new_password(&user, &Line::by_system("user.reset_password", name.as_str())).await
    }

    pub(super) async fn new_password(&self, user: &User, line: &Line) -> Result<String, Error> {
        let password = password::random();
        let hash = self.passwords.hash(password.clone()).await?;
        self.store.set_password(user.id, &hash, true, None, line).await?;
        self.live.look();
        Ok(password)
    }

    /// Checks a name and a password. Unknown, wrong and disabled give the same answer at the same cost.
    pub(crate) async fn sign_in(
        &self,
        name: &str,
        password: String,
        origin: &Origin,
    ) -> Result<(User, Token), Error> {
        self.sign_in_for(name, password, origin, SESSION_LASTS).await
    }

    /// The same for as long as is said.
    pub(crate) async fn sign_in_for(
        &self,
        name: &str,
        password: String,
        origin: &Origin,
        lasts: Duration,
    ) -> Result<(User, Token), Error> {
        let known = name.parse::<UserName>();
        // What is no user name may be a password in the wrong place: it is not written down.
        let claimed = known.as_ref().map_or("", UserName::as_str);
        let line = origin.line(claimed, "sign_in", claimed);
        let found = match &known {
            Ok(name) => self.store.user_to_verify(name).await?,
            Err(_) => None,
        };
        // To those who may not sign in the right password is a wrong one, in all that it causes.
        let (user, hash) = found.filter(|(user, _)| user.may_sign_in()).unzip();
        let right = match self.verify(name, password, hash, origin).await {
            Err(error @ Error::TooManyAttempts { .. }) => {
                self.note_guesses(claimed, origin).await;
                return Err(error);
            }
            right => right?,
        };
        let Some(user) = user.filter(|_| right) else {
            self.store.audit(&line.refused()).await?;
            return Err(Error::BadCredentials);
        };
        let token = Token::new();
        self.store.add_session(&token.hash(), user.id, lasts, &line).await?;
        tracing::info!(user = %user.name, from = %origin.source, "signed in");
        Ok((user, token))
    }

    pub(crate) async fn sign_out(&self, caller: &Caller) -> Result<(), Error> {
        policy::sign_out(caller)?;
        self.store
            .end_session(caller.key_hash(), &caller.line("sign_out", caller.user.name.as_str()))
            .await?;
        self.live.look();
        Ok(())
    }

    /// Who sent `token`.
    pub(crate) async fn caller(&self, token: &Token, origin: Origin) -> Result<Caller, Error> {
        let hash = token.hash();
        let (user, key) = if token.is_for_api() {
            let found = self.store.token_user(&hash).await?;
            let (user, id, scope) = found.ok_or(Error::Unauthenticated)?;
            (user, Key::Token { hash, id, scope })
        } else {
            let user = self.store.session_user(&hash).await?.ok_or(Error::Unauthenticated)?;
            (user, Key::Session { hash })
        };
        Ok(Caller { user, key, origin })
    }

    /// Changes the caller's password; other sessions of theirs end, this one and tokens go on.
    pub(crate) async fn change_password(&self, caller: &Caller, change: ChangePassword) -> Result<(), Error> {
        let name = caller.user.name.as_str();
        password::check(&change.new)?;
        if change.old == change.new {
            return Err(Error::WeakPassword { reason: Reason::PasswordUnchanged });
        }
        let hash = self.store.user_to_verify(&caller.user.name).await?.map(|(_, hash)| hash);
        let line = caller.line("change_password", name);
        if !self.verify(name, change.old, hash, &caller.origin).await? {
            self.store.audit(&line.refused()).await?;
            return Err(Error::BadCredentials);
        }
        let hash = self.passwords.hash(change.new).await?;
        self.store.set_password(caller.user.id, &hash, false, Some(caller.key_hash()), &line).await?;
        self.live.look();
        Ok(())
    }

    /// Sets the language in which the caller is spoken to, also outside the console.
    pub(crate) async fn set_language(
        &self,
        caller: &Caller,
        language: Option<Language>,
    ) -> Result<(), Error> {
        let line = caller.line("change_language", caller.user.name.as_str());
        Ok(self.store.set_language(caller.user.id, language, &line).await?)
    }

    /// Compares a password within the limits on guesses. Whatever is wrong, it costs the same.
    async fn verify(
        &self,
        account: &str,
        password: String,
        hash: Option<String>,
        origin: &Origin,
    ) -> Result<bool, Error> {
        self.limits.check(account, origin.source)?;
        let turn = self.passwords.turn().await?;
        let guess = self.limits.begin(account, origin.source)?;
        // Of one that is too long to be anybody's no more is looked at than of others.
        let fits = password.len() <= PASSWORD_MAX_BYTES;
        let password = if fits { password } else { String::new() };
        let right = turn.verify(password, hash).await? && fits;
        if right {
            guess.was_right();
        }
        Ok(right)
    }
}
