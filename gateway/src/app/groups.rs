//! Groups, workspaces and API tokens.

use std::time::Duration;

use gateway_api::{
    GroupName, TokenName, WorkspaceName,
    error::Reason,
    id::TokenId,
    people::{Group, Workspace},
    token::{AddToken, ApiToken, NewToken, TOKEN_DAYS, TOKEN_DAYS_MAX},
};

use super::App;
use crate::{
    auth::{Caller, policy, token::Token},
    error::Error,
    store::{self, GroupId, StoreError},
};

// === groups ===

impl App {
    pub(crate) async fn groups(&self, caller: &Caller) -> Result<Vec<Group>, Error> {
        Ok(self.store.groups(policy::list_groups(caller)?).await?)
    }

    pub(crate) async fn group(&self, caller: &Caller, name: &str) -> Result<Group, Error> {
        let id = self.find_group(caller, name).await?;
        let group = self.store.groups(Some(id)).await?.pop();
        group.ok_or_else(|| Error::not_found("group", name))
    }

    pub(crate) async fn add_group(&self, caller: &Caller, name: &str) -> Result<Group, Error> {
        policy::administer(caller)?;
        let name: GroupName = name.parse().map_err(Error::BadName)?;
        let line = caller.line("group.add", name.as_str());
        self.store
            .add_group(&name, &line)
            .await
            .map_err(|error| already_there(error, "group", name.as_str()))?;
        self.group(caller, name.as_str()).await
    }

    pub(crate) async fn remove_group(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let id = self.find_group(caller, name).await?;
        policy::administer(caller)?;
        let in_use = |why| Error::InUse { kind: "group", name: name.to_owned(), why };
        if id == GroupId::DEFAULT {
            return Err(in_use("everyone without another group is in it"));
        }
        if self.store.remove_group(id, &caller.line("group.remove", name)).await? {
            Ok(())
        } else {
            Err(in_use("it has members, or removed ones who can be restored"))
        }
    }

    async fn find_group(&self, caller: &Caller, name: &str) -> Result<GroupId, Error> {
        let found = match name.parse::<GroupName>() {
            Ok(name) => self.store.group_id(&name).await?,
            Err(_) => None,
        };
        policy::see_group(caller, found, name)
    }
}

// === workspaces ===

impl App {
    pub(crate) async fn workspaces(&self, caller: &Caller) -> Result<Vec<Workspace>, Error> {
        Ok(self.store.workspaces(policy::list_workspaces(caller)).await?)
    }

    pub(crate) async fn workspace(&self, caller: &Caller, name: &str) -> Result<Workspace, Error> {
        let found = match name.parse::<WorkspaceName>() {
            Ok(name) => self.store.workspace(&name).await?,
            Err(_) => None,
        };
        policy::see_workspace(caller, found, name)
    }

    pub(crate) async fn add_workspace(&self, caller: &Caller, name: &str) -> Result<Workspace, Error> {
        policy::administer(caller)?;
        let name: WorkspaceName = name.parse().map_err(Error::BadName)?;
        let line = caller.line("workspace.add", name.as_str());
        self.store
            .add_workspace(&name, &line)
            .await
            .map_err(|error| already_there(error, "workspace", name.as_str()))?;
        self.workspace(caller, name.as_str()).await
    }

    pub(crate) async fn remove_workspace(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let workspace = self.workspace(caller, name).await?;
        policy::administer(caller)?;
        let line = caller.line("workspace.remove", workspace.name.as_str());
        Ok(self.store.remove_workspace(&workspace.name, &line).await?)
    }

    /// Puts a user into a workspace or takes one out.
    pub(crate) async fn set_member(
        &self,
        caller: &Caller,
        workspace: &str,
        user: &str,
        member: bool,
    ) -> Result<Workspace, Error> {
        let workspace = self.workspace(caller, workspace).await?;
        policy::administer(caller)?;
        let user = self.find_user(caller, user).await?;
        let act = if member { "workspace.add_member" } else { "workspace.remove_member" };
        let line = caller.line(act, workspace.name.as_str()).with("user", user.name.as_str());
        self.store.set_member(&workspace.name, user.id, member, &line).await?;
        self.workspace(caller, workspace.name.as_str()).await
    }
}

// === tokens ===

impl App {
    /// The caller's own tokens, or for admins those of `user`.
    pub(crate) async fn tokens(&self, caller: &Caller, user: Option<&str>) -> Result<Vec<ApiToken>, Error> {
        let owner = match user {
            Some(user) => {
                let owner = self.find_user(caller, user).await?;
                if owner.id != caller.user.id {
                    policy::administer(caller)?;
                }
                owner.id
            }
            None => caller.user.id,
        };
        Ok(self.store.tokens_of(owner).await?)
    }

    /// Makes a token, whose secret is shown this once.
    pub(crate) async fn add_token(&self, caller: &Caller, wanted: AddToken) -> Result<NewToken, Error> {
        policy::add_token(caller)?;
        let name: TokenName = wanted.name.parse().map_err(Error::BadName)?;
        let days = wanted.days.unwrap_or(TOKEN_DAYS);
        if !(1..=TOKEN_DAYS_MAX).contains(&days) {
            return Err(Error::unfit("days", Reason::DaysOutOfRange));
        }
        let (id, secret) = (TokenId::new(), Token::new_for_api());
        let new = store::NewToken {
            id: &id,
            token_hash: &secret.hash(),
            user: caller.user.id,
            name: &name,
            scope: wanted.scope,
            lasts: Duration::from_hours(24 * u64::from(days)),
        };
        let line = caller.line("token.add", id.as_str()).with("scope", wanted.scope.word());
        self.store
            .add_token(new, &line)
            .await
            .map_err(|error| already_there(error, "token", name.as_str()))?;
        let found = self.store.token(&id).await?;
        let token = policy::see_token(caller, found, id.as_str())?;
        Ok(NewToken { token, secret: secret.reveal().to_owned() })
    }

    pub(crate) async fn remove_token(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let found = match id.parse::<TokenId>() {
            Ok(id) => self.store.token(&id).await?,
            Err(_) => None,
        };
        let token = policy::see_token(caller, found, id)?;
        self.store.remove_token(&token.id, &caller.line("token.remove", token.id.as_str())).await?;
        self.live.look();
        Ok(())
    }
}

fn already_there(error: StoreError, kind: &'static str, name: &str) -> Error {
    if matches!(error, StoreError::Taken) {
        Error::AlreadyExists { kind, name: name.to_owned() }
    } else {
        error.into()
    }
}
