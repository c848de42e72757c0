//! Images as users see them: those of the platform, and those that users have saved from their instances.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    id::ImageId,
    name::{InstanceName, UserName},
    packages::Packages,
};

/// What a save leaves out unless it is told otherwise: caches, and what is temporary. A part of a path may be `*`.
pub const EXCLUDE_DEFAULT: [&str; 7] = [
    "/tmp",
    "/var/tmp",
    "/root/.cache",
    "/home/*/.cache",
    "/var/cache/apt",
    "/var/lib/apt/lists",
    "/opt/conda/pkgs",
];
/// The most paths that a save can be told to leave out.
pub const EXCLUDE_MAX: usize = 64;
/// The longest message of an image, in bytes.
pub const MESSAGE_MAX_BYTES: usize = 4096;

/// An image that instances can start from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Image {
    /// The full reference, as `create --image` takes it.
    pub reference: String,
    /// All of it, as it is stored.
    pub size_bytes: u64,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Whether `create` without an image takes this one.
    pub default: bool,
    /// Of an image that was saved from an instance; the others are the platform's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<Saved>,
}

/// What is known of a saved image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Saved {
    pub id: ImageId,
    /// Who saved it.
    pub user: UserName,
    /// Its name and tag, unique for its user.
    #[schema(example = "train")]
    pub name: String,
    #[schema(example = "20260131-1200")]
    pub tag: String,
    /// What its user wrote about it.
    pub message: String,
    /// The instance that it was saved from, as it was called then; none for an image that was pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceName>,
    /// The image that the instance was made from.
    pub parent: String,
    /// What it is, once it is whole: `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What of its size is not in its parent.
    pub added_bytes: u64,
    pub layers: u32,
    /// For how long the instance stood still while it was saved.
    #[serde(default)]
    pub frozen_ms: u64,
    pub share: Share,
    /// Whether it is on the platform's list, where an admin has put it.
    pub platform: bool,
    /// Whether its user proposes it for the platform's list.
    pub proposed: bool,
    pub state: ImageState,
    /// The instances and the jobs that were made from it, as far as one may see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
}

/// Who may make instances from a saved image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Only who saved it.
    #[default]
    Me,
    /// All who are in the group of who saved it.
    Group,
    Everyone,
}

impl Share {
    pub const ALL: [Self; 3] = [Self::Me, Self::Group, Self::Everyone];

    /// The word as it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Me => "me",
            Self::Group => "group",
            Self::Everyone => "everyone",
        }
    }
}

/// How far a saved image is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ImageState {
    Saving {
        step: SaveStep,
        done_bytes: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_bytes: Option<u64>,
    },
    Ready,
    /// Nothing of it is listed; the instance is as it was. The save can be tried again, within a day from what it has made.
    Failed {
        failure: SaveFailure,
        message: String,
    },
    Deleting,
}

/// What a save is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SaveStep {
    /// The cluster has been told, or does not answer.
    Waiting,
    /// Looking for what changed.
    Looking,
    /// Reading and compressing it.
    Packing,
    Pushing,
    /// Asking the registry for all of it again, and telling the engine.
    Verifying,
}

/// Why an instance was not saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SaveFailure {
    /// The site has no registry.
    NoRegistry,
    InstanceGone,
    RegistryUnreachable,
    RegistryRefused,
    RegistryFull,
    DiskFull,
    EngineUnreachable,
    Cancelled,
    Other,
}

impl ImageState {
    /// Whether it changes by itself.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Saving { .. } | Self::Deleting => true,
            Self::Ready | Self::Failed { .. } => false,
        }
    }

    /// The word as it stands in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Saving { .. } => "saving",
            Self::Ready => "ready",
            Self::Failed { .. } => "failed",
            Self::Deleting => "deleting",
        }
    }
}

/// The body of a save. All of it can be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveInstance {
    /// The image's name; the instance's, in lower case, if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "train")]
    pub name: Option<String>,
    /// Its tag; date and time, such as `20260131-120000`, if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Absolute paths that are left out, of which a part may be `*`; caches and `/tmp` if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<Vec<String>>,
    #[serde(default)]
    pub share: Share,
    /// Stop the instance once the image is whole, and not if that fails.
    #[serde(default)]
    pub stop: bool,
}

/// The body of a change to a saved image. What is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeImage {
    /// Another name. By the one before it nobody finds the image any more; instances that were made from it go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Proposes it for the platform's list, or no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<bool>,
    /// Puts it on the platform's list, or takes it off: for admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<bool>,
}

/// The body of a collection: what no image needs is removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectImages {
    /// Only say what would go.
    #[serde(default)]
    pub dry_run: bool,
    /// What was written since so long stays, as a push may still be under way; a day if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_seconds: Option<u64>,
    /// Also images that were made in a time of which the store has no memory, since it was put back from a backup.
    #[serde(default)]
    pub unknown: bool,
}

/// What has gone, or would.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CollectedImages {
    /// In the registry.
    pub blobs: u64,
    pub blob_bytes: u64,
    /// Copies of images that are gone, on the machine itself.
    pub images: Vec<String>,
    pub image_bytes: u64,
    /// Whether the registry is Berth's own. Any other collects its garbage itself.
    pub own_registry: bool,
}

/// What a save of an instance would put into an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Changes {
    /// Files that are new or different.
    pub files: u64,
    /// What these files hold, before compression.
    pub bytes: u64,
    /// Files and directories of the image that are gone.
    pub deleted: u64,
    /// The largest of the changed files and directories, largest first.
    pub largest: Vec<ChangedPath>,
    /// Where mounts are: nothing below these is in the image.
    pub mounts: Vec<String>,
    /// What is left out although it changed.
    pub excluded: Vec<ChangedPath>,
    /// Files that look as if they hold a secret, of all that the image would have beyond its base.
    pub secrets: Vec<String>,
    /// What package managers have installed beyond the image.
    #[serde(default)]
    pub packages: Packages,
    /// What this was compared with: the image, or the last save of the same instance.
    pub since: Since,
}

/// A path and what is below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangedPath {
    pub path: String,
    pub bytes: u64,
}

/// What changes are counted from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Since {
    #[default]
    Image,
    LastSave,
}
