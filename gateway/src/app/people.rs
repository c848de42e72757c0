//! Users: added, changed, removed and restored by admins, seen by leaders and by themselves.

use gateway_api::{
    GroupName, InstanceId, JobId, Status, UserName,
    audit::{AUDIT_PAGE, AUDIT_PAGE_MAX, AuditPage, AuditQuery},
    error::Reason,
    people::{AddUser, ChangeUser, NewPassword, User, UserState},
    session::Role,
};
use jiff::{SignedDuration, Timestamp};

use super::App;
use crate::{
    auth::{Caller, password, policy},
    error::Error,
    store::{self, GroupId, NewUser, StoreError, UserChange},
};

impl App {
    /// Everyone, or everyone in the group that the caller leads.
    pub(crate) async fn users(&self, caller: &Caller) -> Result<Vec<User>, Error> {
        let users = self.store.users(policy::list_users(caller)?).await?;
        let memberships = self.store.memberships().await?;
        Ok(users
            .into_iter()
            .map(|user| {
                let of = memberships.iter().filter(|(member, _)| *member == user.id);
                self.person(user.clone(), of.map(|(_, workspace)| workspace.clone()).collect())
            })
            .collect())
    }

    pub(crate) async fn user(&self, caller: &Caller, name: &str) -> Result<User, Error> {
        let user = self.find_user(caller, name).await?;
        self.described(user).await
    }

    /// Adds a user with a random password, which is shown this once.
    pub(crate) async fn add_user(&self, caller: &Caller, wanted: AddUser) -> Result<NewPassword, Error> {
        policy::administer(caller)?;
        let name: UserName = wanted.name.parse().map_err(Error::BadName)?;
        let role = wanted.role.unwrap_or(Role::User);
        let group = match &wanted.group {
            Some(group) => self.group_of(group).await?,
            None => GroupId::DEFAULT,
        };
        if let Some(there) = self.store.user_by_name(&name).await? {
            return Err(self.taken(&there));
        }
        let password = password::random();
        let password_hash = self.passwords.hash(password.clone()).await?;
        let new =
            NewUser { name: &name, password_hash: &password_hash, role, group, must_change_password: true };
        let line = caller.line("user.add", name.as_str()).with("role", role.word());
        match self.store.add_user(new, &line).await {
            Err(StoreError::Taken) => {
                return Err(Error::AlreadyExists { kind: "user", name: name.to_string() });
            }
            done => done?,
        }
        let user = self.user(caller, name.as_str()).await?;
        Ok(NewPassword { user, password })
    }

    pub(crate) async fn change_user(
        &self,
        caller: &Caller,
        name: &str,
        wanted: ChangeUser,
    ) -> Result<User, Error> {
        let user = self.find_user(caller, name).await?;
        policy::administer(caller)?;
        if wanted == ChangeUser::default() {
            return Err(Error::unfit("", Reason::NothingToChange));
        }
        self.refuse_removed(&user)?;
        let group = match &wanted.group {
            Some(group) => Some(self.group_of(group).await?),
            None => None,
        };
        let mut line = caller.line("user.change", user.name.as_str());
        if let Some(role) = wanted.role {
            line = line.with("role", role.word());
        }
        if let Some(group) = wanted.group {
            line = line.with("group", group);
        }
        if let Some(disabled) = wanted.disabled {
            line = line.with("disabled", disabled.to_string());
        }
        let change = UserChange { role: wanted.role, group, disabled: wanted.disabled };
        self.store.change_user(user.id, change, &line).await.map_err(|error| last_admin(error, &user))?;
        self.live.look();
        if group.is_some() {
            // What is open may see files of the group that was left; its user can open it again.
            self.live.end_of(user.id);
            self.clusters.wake();
        }
        self.user(caller, name).await
    }

    /// Ends all that the user has open, stops their instances, and keeps the account for a while.
    pub(crate) async fn remove_user(&self, caller: &Caller, name: &str) -> Result<User, Error> {
        let user = self.find_user(caller, name).await?;
        policy::administer(caller)?;
        let line = caller.line("user.remove", user.name.as_str());
        if user.removed_at.is_none() {
            self.store
                .remove_user(user.id, &Status::STOPPING, &line)
                .await
                .map_err(|error| last_admin(error, &user))?;
            self.live.look();
            self.clusters.wake();
        }
        // An admin who removed the own account sees it this last time.
        let removed = self.store.user_by_name(&user.name).await?;
        self.described(removed.unwrap_or(user)).await
    }

    pub(crate) async fn restore_user(&self, caller: &Caller, name: &str) -> Result<User, Error> {
        let user = self.find_user(caller, name).await?;
        policy::administer(caller)?;
        let line = caller.line("user.restore", user.name.as_str());
        if user.removed_at.is_some() && !self.store.restore_user(user.id, &line).await? {
            return Err(Error::not_found("user", name));
        }
        self.user(caller, name).await
    }

    pub(crate) async fn reset_users_password(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<NewPassword, Error> {
        let user = self.find_user(caller, name).await?;
        policy::administer(caller)?;
        self.refuse_removed(&user)?;
        let line = caller.line("user.reset_password", user.name.as_str());
        let password = self.new_password(&user, &line).await?;
        let user = self.store.user_by_name(&user.name).await?.unwrap_or(user);
        Ok(NewPassword { user: self.described(user).await?, password })
    }

    /// A page of the log. Who may read which is for the caller to have asked.
    pub(crate) async fn audit_log(&self, mut query: AuditQuery) -> Result<AuditPage, Error> {
        let limit = query.limit.take().unwrap_or(AUDIT_PAGE);
        if !(1..=AUDIT_PAGE_MAX).contains(&limit) {
            return Err(Error::unfit("limit", Reason::LimitOutOfRange));
        }
        let mut items = self.store.audit_page(&query, limit + 1).await?;
        let more = items.len() > limit as usize;
        items.truncate(limit as usize);
        Ok(AuditPage { next: items.last().filter(|_| more).map(|last| last.id), items })
    }

    /// What was done in the caller's name; of something of their own also what others did to it, whose addresses stay
    /// theirs.
    pub(crate) async fn own_audit(&self, caller: &Caller, query: AuditQuery) -> Result<AuditPage, Error> {
        let me = caller.user.name.to_string();
        let theirs = match &query.object {
            Some(object) => self.belongs_to(caller, object).await?,
            None => false,
        };
        let actor = (!theirs).then(|| me.clone());
        let mut page = self.audit_log(AuditQuery { actor, ..query }).await?;
        for line in page.items.iter_mut().filter(|line| line.actor != me) {
            line.source.clear();
            line.request_id.clear();
        }
        Ok(page)
    }

    /// Whether an instance or a job with this id is the caller's.
    async fn belongs_to(&self, caller: &Caller, object: &str) -> Result<bool, Error> {
        let owner = match (object.parse::<InstanceId>(), object.parse::<JobId>()) {
            (Ok(id), _) => self.store.instance(&id).await?.map(|row| row.user_id),
            (Err(_), Ok(id)) => self.store.job(&id).await?.map(|row| row.user_id),
            (Err(_), Err(_)) => None,
        };
        Ok(owner == Some(caller.user.id))
    }

    /// A user whom the caller may know of.
    pub(super) async fn find_user(&self, caller: &Caller, name: &str) -> Result<store::User, Error> {
        let found = match name.parse::<UserName>() {
            Ok(name) => self.store.user_by_name(&name).await?,
            Err(_) => None,
        };
        policy::see_user(caller, found, name)
    }

    async fn group_of(&self, name: &str) -> Result<GroupId, Error> {
        let found = match name.parse::<GroupName>() {
            Ok(name) => self.store.group_id(&name).await?,
            Err(_) => None,
        };
        found.ok_or_else(|| Error::unfit("group", Reason::NoSuchGroup))
    }

    async fn described(&self, user: store::User) -> Result<User, Error> {
        let workspaces = self.store.workspaces(Some(user.id)).await?;
        Ok(self.person(user, workspaces.into_iter().map(|workspace| workspace.name).collect()))
    }

    fn person(&self, user: store::User, workspaces: Vec<gateway_api::WorkspaceName>) -> User {
        let state = match (user.removed_at, user.disabled_at) {
            (Some(since), _) => UserState::Removed { since, until: self.kept_until(since) },
            (None, Some(since)) => UserState::Disabled { since },
            (None, None) => UserState::Active,
        };
        User {
            name: user.name,
            role: user.role,
            group: user.group,
            workspaces,
            state,
            must_change_password: user.must_change_password,
            created_at: user.created_at,
        }
    }

    /// When a user who was removed at `since` can no longer be restored.
    fn kept_until(&self, since: Timestamp) -> Timestamp {
        since.saturating_add(self.keep_removed()).unwrap_or(Timestamp::MAX)
    }

    pub(super) fn keep_removed(&self) -> SignedDuration {
        SignedDuration::from_hours(24 * i64::from(self.config.keep_removed_days))
    }

    fn refuse_removed(&self, user: &store::User) -> Result<(), Error> {
        match user.removed_at {
            Some(_) => Err(self.taken(user)),
            None => Ok(()),
        }
    }

    fn taken(&self, there: &store::User) -> Error {
        let name = there.name.to_string();
        match there.removed_at {
            Some(since) => Error::UserRemoved { name, until: self.kept_until(since) },
            None => Error::AlreadyExists { kind: "user", name },
        }
    }
}

fn last_admin(error: StoreError, user: &store::User) -> Error {
    if matches!(error, StoreError::LastAdmin) {
        Error::LastAdmin { name: user.name.to_string() }
    } else {
        error.into()
    }
}
