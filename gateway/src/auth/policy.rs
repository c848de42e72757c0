//! Who may do what with which instance. The only maker of [`Grant`].

use gateway_api::{Action, InstanceId, session::Role};

use crate::{
    error::Error,
    store::{InstanceRow, User},
};

/// Proof that a caller may do something with an instance. Nothing reaches into an instance without one.
#[must_use]
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    instance: InstanceRow,
}

impl Grant {
    pub(crate) fn id(&self) -> &InstanceId {
        &self.instance.id
    }

    pub(crate) fn instance(&self) -> &InstanceRow {
        &self.instance
    }
}

/// Whether `caller` may know of this instance at all. If not, it does not exist for them.
pub(crate) fn may_see(caller: &User, instance: &InstanceRow) -> bool {
    instance.user_id == caller.id || caller.role == Role::Admin
}

/// Grants `action`, if the caller may and the instance's state allows it.
///
/// Admins see, stop and delete what belongs to others; they do not step into it.
pub(crate) fn grant(caller: &User, instance: InstanceRow, action: Action) -> Result<Grant, Error> {
    let owner = instance.user_id == caller.id;
    let may = match action {
        Action::Stop | Action::Delete => owner || caller.role == Role::Admin,
        Action::Start | Action::Restart | Action::Terminal | Action::Exec | Action::Logs => owner,
    };
    if !may {
        return Err(Error::NotFound { kind: "instance", name: instance.id.to_string() });
    }
    if !instance.status.allows(action) {
        return Err(Error::WrongState {
            name: instance.name.to_string(),
            state: instance.status.word(),
            action,
        });
    }
    tracing::info!(user = %caller.name, instance = %instance.id, action = action.word(), "granted");
    Ok(Grant { instance })
}
