//! The calls about users, groups, workspaces, tokens and the audit log.

use reqwest::Method;

use super::{Client, ClientError};
use crate::{
    Page,
    audit::{AuditPage, AuditQuery},
    people::{AddNamed, AddUser, ChangeUser, Group, NewPassword, User, Workspace},
    ssh::{AddSshKey, SshChallenge, SshDoor, SshKey},
    token::{AddToken, ApiToken, NewToken},
};

// === users ===

impl Client {
    pub async fn users(&self) -> Result<Vec<User>, ClientError> {
        Ok(self.get::<Page<User>>(&["users"]).await?.items)
    }

    pub async fn user(&self, name: &str) -> Result<User, ClientError> {
        self.get(&["users", name]).await
    }

    pub async fn add_user(&self, user: &AddUser) -> Result<NewPassword, ClientError> {
        self.call(Method::POST, &["users"], Some(user)).await
    }

    pub async fn change_user(&self, name: &str, change: &ChangeUser) -> Result<User, ClientError> {
        self.call(Method::PATCH, &["users", name], Some(change)).await
    }

    pub async fn remove_user(&self, name: &str) -> Result<User, ClientError> {
        self.call(Method::DELETE, &["users", name], None::<&()>).await
    }

    pub async fn restore_user(&self, name: &str) -> Result<User, ClientError> {
        self.call(Method::POST, &["users", name, "restore"], None::<&()>).await
    }

    pub async fn reset_password(&self, name: &str) -> Result<NewPassword, ClientError> {
        self.call(Method::POST, &["users", name, "password"], None::<&()>).await
    }
}

// === groups and workspaces ===

impl Client {
    pub async fn groups(&self) -> Result<Vec<Group>, ClientError> {
        Ok(self.get::<Page<Group>>(&["groups"]).await?.items)
    }

    pub async fn group(&self, name: &str) -> Result<Group, ClientError> {
        self.get(&["groups", name]).await
    }

    pub async fn add_group(&self, name: &str) -> Result<Group, ClientError> {
        self.call(Method::POST, &["groups"], Some(&AddNamed { name: name.to_owned() })).await
    }

    pub async fn remove_group(&self, name: &str) -> Result<(), ClientError> {
        self.tell(Method::DELETE, &["groups", name], None::<&()>).await
    }

    pub async fn workspaces(&self) -> Result<Vec<Workspace>, ClientError> {
        Ok(self.get::<Page<Workspace>>(&["workspaces"]).await?.items)
    }

    pub async fn workspace(&self, name: &str) -> Result<Workspace, ClientError> {
        self.get(&["workspaces", name]).await
    }

    pub async fn add_workspace(&self, name: &str) -> Result<Workspace, ClientError> {
        self.call(Method::POST, &["workspaces"], Some(&AddNamed { name: name.to_owned() })).await
    }

    pub async fn remove_workspace(&self, name: &str) -> Result<(), ClientError> {
        self.tell(Method::DELETE, &["workspaces", name], None::<&()>).await
    }

    pub async fn add_member(&self, workspace: &str, user: &str) -> Result<Workspace, ClientError> {
        self.call(Method::PUT, &["workspaces", workspace, "members", user], None::<&()>).await
    }

    pub async fn remove_member(&self, workspace: &str, user: &str) -> Result<Workspace, ClientError> {
        self.call(Method::DELETE, &["workspaces", workspace, "members", user], None::<&()>).await
    }
}

// === SSH ===

impl Client {
    /// Where SSH listens, and its host key.
    pub async fn ssh_door(&self) -> Result<SshDoor, ClientError> {
        self.get(&["ssh"]).await
    }

    /// One's own keys, newest first.
    pub async fn ssh_keys(&self) -> Result<Vec<SshKey>, ClientError> {
        Ok(self.get::<Page<SshKey>>(&["me", "ssh-keys"]).await?.items)
    }

    /// What to sign with a key that is to be added.
    pub async fn ssh_challenge(&self) -> Result<SshChallenge, ClientError> {
        self.call(Method::POST, &["me", "ssh-keys", "challenge"], None::<&()>).await
    }

    pub async fn add_ssh_key(&self, key: &AddSshKey) -> Result<SshKey, ClientError> {
        self.call(Method::POST, &["me", "ssh-keys"], Some(key)).await
    }

    pub async fn remove_ssh_key(&self, id: &str) -> Result<(), ClientError> {
        self.tell(Method::DELETE, &["me", "ssh-keys", id], None::<&()>).await
    }
}

// === tokens and the audit log ===

impl Client {
    /// One's own tokens, newest first.
    pub async fn tokens(&self) -> Result<Vec<ApiToken>, ClientError> {
        Ok(self.get::<Page<ApiToken>>(&["tokens"]).await?.items)
    }

    /// The tokens of somebody else, for admins.
    pub async fn tokens_of(&self, user: &str) -> Result<Vec<ApiToken>, ClientError> {
        let mut url = self.url(&["tokens"])?;
        url.query_pairs_mut().append_pair("user", user);
        Ok(self.get_url::<Page<ApiToken>>(url).await?.items)
    }

    pub async fn add_token(&self, token: &AddToken) -> Result<NewToken, ClientError> {
        self.call(Method::POST, &["tokens"], Some(token)).await
    }

    pub async fn remove_token(&self, id: &str) -> Result<(), ClientError> {
        self.tell(Method::DELETE, &["tokens", id], None::<&()>).await
    }

    /// One page of everybody's log, newest first.
    pub async fn audit(&self, query: &AuditQuery) -> Result<AuditPage, ClientError> {
        let mut url = self.url(&["audit"])?;
        let pairs = [
            ("actor", query.actor.clone()),
            ("act", query.act.clone()),
            ("object", query.object.clone()),
            ("since", query.since.map(|since| since.to_string())),
            ("before", query.before.map(|before| before.to_string())),
            ("limit", query.limit.map(|limit| limit.to_string())),
        ];
        for (key, value) in pairs {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(key, &value);
            }
        }
        self.get_url(url).await
    }
}
