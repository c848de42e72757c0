//! Who may do what with which thing: one function per kind of thing, and the only maker of [`Grant`].
//!
//! What a caller may not know of is [`Error::Hidden`], which reads like something that is not there; what they may know
//! of but not do is [`Error::Forbidden`]. Both are written into the audit log where they are answered.
//!
//! The whole of it as a table, walked from the router, is `http/snapshots/*policy*`.

use gateway_api::{
    Action, InstanceId,
    image::{ChangeImage, ImageState, Share},
    job::JobAction,
    people::Workspace,
    session::Role,
};

use super::{Caller, Key};
use crate::{
    error::Error,
    store::{AppSession, GroupId, ImageRow, InstanceRow, JobRow, User, UserId},
};

const ONLY_ADMINS: Error = Error::Forbidden { why: "only an admin may do this" };
const NOT_YOUR_IMAGE: Error = Error::Forbidden { why: "this image is somebody else's" };
const NOT_PROPOSED: Error =
    Error::Forbidden { why: "its user does not propose this image for the platform's list" };
const READS_ONLY: Error = Error::Forbidden { why: "this token may only read" };

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

/// Before every request that changes something.
pub(crate) fn change_anything(caller: &Caller) -> Result<(), Error> {
    if caller.reads_only() { Err(READS_ONLY) } else { Ok(()) }
}

/// What belongs to the whole site.
pub(crate) fn administer(caller: &Caller) -> Result<(), Error> {
    if caller.user.role == Role::Admin { Ok(()) } else { Err(ONLY_ADMINS) }
}

// === instances ===

/// Whether `caller` may know of this instance at all. If not, it does not exist for them.
pub(crate) fn may_see(caller: &Caller, instance: &InstanceRow) -> bool {
    owns(caller, instance) || oversees(&caller.user, instance.group_id)
}

/// Whether `caller` may do `action` in whatever state the instance is.
///
/// Admins see, stop and delete what belongs to others, leaders see and stop what is of their group; neither steps into
/// it.
pub(crate) fn may(caller: &Caller, instance: &InstanceRow, action: Action) -> bool {
    let owner = owns(caller, instance);
    let role = match action {
        Action::Stop => owner || oversees(&caller.user, instance.group_id),
        Action::Delete => owner || caller.user.role == Role::Admin,
        Action::Start
        | Action::Restart
        | Action::Terminal
        | Action::Exec
        | Action::Logs
        | Action::Open
        | Action::Save => owner,
    };
    role && (action == Action::Logs || !caller.reads_only())
}

/// What can be done with one task: its job as a whole is started, deleted and run again.
pub(crate) fn fits_a_task(action: Action) -> bool {
    match action {
        Action::Start
        | Action::Stop
        | Action::Terminal
        | Action::Exec
        | Action::Logs
        | Action::Open
        | Action::Save => true,
        Action::Restart | Action::Delete => false,
    }
}

/// Grants `action`, if the caller may and the instance's state allows it.
pub(crate) fn grant(caller: &Caller, instance: InstanceRow, action: Action) -> Result<Grant, Error> {
    let grant = grant_in_any_state(caller, instance, action)?;
    let instance = grant.instance();
    if !instance.status.allows(action) {
        return Err(Error::WrongState {
            name: instance.name.to_string(),
            state: instance.status.word(),
            action,
        });
    }
    Ok(grant)
}

/// Grants `action` whatever the instance's state, if the caller may.
pub(crate) fn grant_in_any_state(
    caller: &Caller,
    instance: InstanceRow,
    action: Action,
) -> Result<Grant, Error> {
    if !may(caller, &instance, action) {
        return Err(if owns(caller, &instance) {
            READS_ONLY
        } else {
            Error::Forbidden { why: "this instance is somebody else's" }
        });
    }
    if instance.job.is_some() && !fits_a_task(action) {
        return Err(Error::Forbidden { why: "this is a task: do that with its job" });
    }
    tracing::info!(user = %caller.user.name, instance = %instance.id, action = action.word(), "granted");
    Ok(Grant { instance })
}

/// Grants what an app session was made for. The session itself is the proof: it was made from a grant of its owner's
/// and is looked up together with the key that made it.
pub(crate) fn grant_by_app_session(session: &AppSession) -> Grant {
    Grant { instance: session.instance.clone() }
}

/// Whether environment variables may be shown: they often hold secrets, so to nobody but the owner.
pub(crate) fn owns(caller: &Caller, instance: &InstanceRow) -> bool {
    instance.user_id == caller.user.id
}

// === jobs ===

/// Whether `caller` may know of this job at all.
pub(crate) fn may_see_job(caller: &Caller, job: &JobRow) -> bool {
    job.user_id == caller.user.id || oversees(&caller.user, job.group_id)
}

/// As with instances: admins stop and delete what belongs to others, leaders stop what is of their group, and what it
/// wrote is its owner's alone.
pub(crate) fn act_on_job(caller: &Caller, job: &JobRow, action: JobAction) -> Result<(), Error> {
    let owner = job.user_id == caller.user.id;
    let role = match action {
        JobAction::Stop => owner || oversees(&caller.user, job.group_id),
        JobAction::Delete | JobAction::Change => owner || caller.user.role == Role::Admin,
        JobAction::Rerun | JobAction::Logs => owner,
    };
    if !role {
        return Err(Error::Forbidden { why: "this job is somebody else's" });
    }
    if action != JobAction::Logs && caller.reads_only() { Err(READS_ONLY) } else { Ok(()) }
}

/// Its file may hold secrets.
pub(crate) fn may_read_job(caller: &Caller, job: &JobRow) -> Result<(), Error> {
    act_on_job(caller, job, JobAction::Logs)
}

/// Admins oversee all, leaders their group.
fn oversees(user: &User, group: GroupId) -> bool {
    match user.role {
        Role::Admin => true,
        Role::Leader => user.group_id == group,
        Role::User => false,
    }
}

/// The same answer, and the same work, whether it is there or not. Only of an admin is it known that it is not.
pub(crate) fn missing(caller: &Caller, kind: &'static str, name: &str) -> Error {
    match caller.user.role {
        Role::Admin => Error::not_found(kind, name),
        Role::Leader | Role::User => Error::hidden(kind, name),
    }
}

// === machines ===

/// Whether `caller` may know who holds a card: their own, and those of whom they oversee.
pub(crate) fn may_know_holder(caller: &Caller, user: &str, group: &str) -> bool {
    match caller.user.role {
        Role::Admin => true,
        Role::Leader => caller.user.group.as_str() == group || caller.user.name.as_str() == user,
        Role::User => caller.user.name.as_str() == user,
    }
}

// === images ===

/// Whether `caller` may make instances from a saved image. Admins have no other way in than everybody: an image holds
/// its user's files.
pub(crate) fn may_use_image(caller: &Caller, image: &ImageRow) -> bool {
    let shared = image.platform
        || match image.share {
            Share::Me => false,
            Share::Group => image.group_id == caller.user.group_id,
            Share::Everyone => true,
        };
    owns_image(caller, image) || (shared && image.state == ImageState::Ready)
}

/// Whether `caller` may know of a saved image.
pub(crate) fn may_see_image(caller: &Caller, image: &ImageRow) -> bool {
    may_use_image(caller, image) || oversees(&caller.user, image.group_id)
}

pub(crate) fn owns_image(caller: &Caller, image: &ImageRow) -> bool {
    image.user_id == caller.user.id
}

/// Its user says who may use it, an admin what is on the platform's list.
pub(crate) fn change_image(caller: &Caller, image: &ImageRow, wanted: &ChangeImage) -> Result<(), Error> {
    if wanted.platform.is_some() {
        administer(caller)?;
    }
    // The list is open to everybody, and an image holds its user's files.
    let offered = image.proposed || image.share == Share::Everyone || owns_image(caller, image);
    if wanted.platform == Some(true) && !offered {
        return Err(NOT_PROPOSED);
    }
    let ChangeImage { name, tag, share, message, proposed, platform: _ } = wanted;
    let own = name.is_some() || tag.is_some() || share.is_some() || message.is_some() || proposed.is_some();
    if own && !owns_image(caller, image) { Err(NOT_YOUR_IMAGE) } else { Ok(()) }
}

pub(crate) fn retry_image(caller: &Caller, image: &ImageRow) -> Result<(), Error> {
    if owns_image(caller, image) { Ok(()) } else { Err(NOT_YOUR_IMAGE) }
}

pub(crate) fn delete_image(caller: &Caller, image: &ImageRow) -> Result<(), Error> {
    if owns_image(caller, image) || caller.user.role == Role::Admin { Ok(()) } else { Err(NOT_YOUR_IMAGE) }
}

// === people ===

/// The user that `found` is, if the caller may know of them.
pub(crate) fn see_user(caller: &Caller, found: Option<User>, name: &str) -> Result<User, Error> {
    let seen = |user: &User| {
        user.id == caller.user.id
            || caller.user.role == Role::Admin
            || (user.removed_at.is_none() && oversees(&caller.user, user.group_id))
    };
    found.filter(seen).ok_or_else(|| missing(caller, "user", name))
}

/// Whose users a listing shows.
pub(crate) fn list_users(caller: &Caller) -> Result<Option<GroupId>, Error> {
    oversight(caller)
}

/// Which groups a listing shows: all, or that one.
pub(crate) fn list_groups(caller: &Caller) -> Result<Option<GroupId>, Error> {
    oversight(caller)
}

pub(crate) fn see_group(caller: &Caller, found: Option<GroupId>, name: &str) -> Result<GroupId, Error> {
    found.filter(|&group| oversees(&caller.user, group)).ok_or_else(|| missing(caller, "group", name))
}

/// All, the own group, or nothing.
fn oversight(caller: &Caller) -> Result<Option<GroupId>, Error> {
    match caller.user.role {
        Role::Admin => Ok(None),
        Role::Leader => Ok(Some(caller.user.group_id)),
        Role::User => Err(Error::Forbidden { why: "only an admin or the leader of a group may do this" }),
    }
}

/// Which workspaces a listing shows: all, or those of that user.
pub(crate) fn list_workspaces(caller: &Caller) -> Option<UserId> {
    (caller.user.role != Role::Admin).then_some(caller.user.id)
}

pub(crate) fn see_workspace(
    caller: &Caller,
    found: Option<Workspace>,
    name: &str,
) -> Result<Workspace, Error> {
    found
        .filter(|workspace| caller.user.role == Role::Admin || workspace.members.contains(&caller.user.name))
        .ok_or_else(|| missing(caller, "workspace", name))
}

// === tokens ===

/// A key that could make keys would never have to end.
pub(crate) fn add_token(caller: &Caller) -> Result<(), Error> {
    match caller.key {
        Key::Session { .. } => Ok(()),
        Key::Token { .. } | Key::Ssh { .. } => {
            Err(Error::Forbidden { why: "a token cannot make tokens; sign in with a password" })
        }
    }
}

/// A public key is a way in that does not end by itself: only who gave a password adds one.
pub(crate) fn add_ssh_key(caller: &Caller) -> Result<(), Error> {
    match caller.key {
        Key::Session { .. } => Ok(()),
        Key::Token { .. } | Key::Ssh { .. } => {
            Err(Error::Forbidden { why: "a token cannot add SSH keys; sign in with a password" })
        }
    }
}

/// Signing out ends a session; a token is removed instead.
pub(crate) fn sign_out(caller: &Caller) -> Result<(), Error> {
    match caller.key {
        Key::Session { .. } => Ok(()),
        Key::Token { .. } | Key::Ssh { .. } => {
            Err(Error::Forbidden { why: "a token has no session to end; remove the token" })
        }
    }
}

pub(crate) fn see_token<T>(caller: &Caller, found: Option<(UserId, T)>, id: &str) -> Result<T, Error> {
    found
        .filter(|(owner, _)| *owner == caller.user.id || caller.user.role == Role::Admin)
        .map(|(_, token)| token)
        .ok_or_else(|| missing(caller, "token", id))
}
