//! Users, groups and workspaces.
//!
//! Every user is in exactly one group, which is what quotas are counted by, and in any number of workspaces, which is
//! what people share things in.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    name::{GroupName, UserName, WorkspaceName},
    session::Role,
};

/// The group of everyone who was put into no other.
pub const DEFAULT_GROUP: &str = "default";

/// A user as admins, the group's leader and the user see one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    pub name: UserName,
    pub role: Role,
    pub group: GroupName,
    pub workspaces: Vec<WorkspaceName>,
    pub state: UserState,
    /// True while the password is one that somebody else has seen.
    pub must_change_password: bool,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// Whether a user can sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum UserState {
    Active,
    /// Cannot sign in. Instances and files stay as they are.
    Disabled {
        #[schema(value_type = String, format = DateTime)]
        since: Timestamp,
    },
    /// Can be restored until `until`; after that the instances are deleted and the name is free. The files stay.
    Removed {
        #[schema(value_type = String, format = DateTime)]
        since: Timestamp,
        #[schema(value_type = String, format = DateTime)]
        until: Timestamp,
    },
}

/// The body that adds a user. The gateway makes the first password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddUser {
    /// Checked by the gateway, so that a wrong one gets a sentence of its own.
    #[schema(example = "alice")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The group `default` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// What to change about a user; what is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeUser {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// True ends all sessions and tokens at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

/// A password that the gateway made and shows this once. It has to be changed after the next sign-in.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct NewPassword {
    pub user: User,
    pub password: String,
}

impl std::fmt::Debug for NewPassword {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("NewPassword").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The body that adds a group or a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddNamed {
    /// Checked by the gateway, so that a wrong one gets a sentence of its own.
    #[schema(example = "vision")]
    pub name: String,
}

/// A group and who is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    pub name: GroupName,
    /// Those of the members who lead it.
    pub leaders: Vec<UserName>,
    pub members: Vec<UserName>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// A workspace and who is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workspace {
    pub name: WorkspaceName,
    pub members: Vec<UserName>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}
