//! Saving an instance as an image, as the gateway asks for it and as envd reports it.
//!
//! | call | what it does |
//! | --- | --- |
//! | `PUT /v1/saves/{image}` [`PutSave`] | begins to save, or goes on after a restart; answers with a [`SaveState`]. The image's id is the key: the same again changes nothing |
//! | `GET /v1/saves/{image}` | the [`SaveState`] |
//! | `DELETE /v1/saves/{image}` | gives up what is not finished, and forgets what is; of one that is not known too |
//! | `POST /v1/saves/{image}/rest` | of one that failed: the next `PUT` tries again, with what was made so far |
//! | `POST /v1/images/remove` [`RemoveImage`] | takes an image out of the registry and off the engine; of one that is gone too |
//! | `POST /v1/images/collect` [`Collect`] | removes what no image needs: [`Collected`] |
//! | `POST /v1/instances/{id}/changes` [`AskChanges`] | what a save would put into the image: [`gateway_api::image::Changes`] |
//!
//! envd writes down how far each save is, below the data directory, and so goes on where it was when it was killed.

use gateway_api::{ImageId, InstanceId, image::SaveFailure, packages::Packages};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The most bytes of a [`PutSave`] as JSON.
pub const PUT_SAVE_MAX: usize = 1 << 20;

/// The most bytes of a [`Collect`] as JSON: some hundred thousand digests.
pub const COLLECT_MAX: usize = 64 << 20;

/// What to save, and as what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutSave {
    pub instance: InstanceId,
    /// The repository in the site's registry, such as `alice/train`.
    pub repository: String,
    pub tag: String,
    /// Files and directories that are left out: absolute paths, of which a part may be `*`.
    #[serde(default)]
    pub exclude: Vec<String>,
    pub provenance: Provenance,
}

/// What the image's annotations say of where it comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    pub author: String,
    /// The instance's name.
    pub title: String,
    #[serde(default)]
    pub message: String,
    /// The image that the instance was made from, by name.
    #[serde(default)]
    pub base: String,
}

/// How far a save is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SaveState {
    /// What changed is being looked for.
    Looking,
    /// The changes are read and compressed.
    Packing {
        done_bytes: u64,
        total_bytes: u64,
    },
    Pushing {
        done_bytes: u64,
        total_bytes: u64,
    },
    /// Everything is asked for again at the registry, and the engine is told.
    Verifying,
    Saved(SavedImage),
    Failed {
        failure: SaveFailure,
        message: String,
    },
}

/// An image that is in the registry, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedImage {
    /// The digest of its manifest.
    pub digest: String,
    /// The digest of its config, by which engines know it too.
    pub config: String,
    /// All its layers, as they are in the registry.
    pub size_bytes: u64,
    /// What of that is new.
    pub added_bytes: u64,
    /// How many layers it has.
    pub layers: u32,
    /// How long the instance stood still for it.
    pub frozen_ms: u64,
    /// What package managers had installed beyond the image.
    #[serde(default)]
    pub packages: Packages,
    /// All its layers, the lowest first.
    #[serde(default)]
    pub blobs: Vec<SavedLayer>,
}

/// A layer of a saved image, as the registry has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedLayer {
    pub digest: String,
    pub size_bytes: u64,
    /// Whether it is of the image that the instance was made from.
    pub of_base: bool,
}

/// An image to be taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveImage {
    pub repository: String,
    pub tag: String,
    /// What the tag names; what it means at the registry, if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What other images of the repository are, by their manifests: never removed, whatever the tag means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
}

/// What of an instance's changes is of interest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskChanges {
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// What is to stay of what images are made of; the rest may go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collect {
    /// The blobs and manifests that are needed, by their digests.
    pub needed: Vec<String>,
    /// The images that are listed, by how their references end: `/alice/train:1`.
    pub references: Vec<String>,
    /// What was written since so long stays.
    pub older_than_seconds: u64,
    /// The saves that may still be tried again; of others nothing is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saves: Option<Vec<ImageId>>,
    /// What tags name that were written in these times stays too, with all that it is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spare: Vec<Span>,
    /// Only say what would go.
    pub dry_run: bool,
}

/// From one moment to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub since: Timestamp,
    pub until: Timestamp,
}

impl Span {
    pub fn holds(&self, moment: Timestamp) -> bool {
        self.since <= moment && moment <= self.until
    }
}

/// What has gone, or would.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// In the registry.
    pub blobs: u64,
    pub blob_bytes: u64,
    /// On the engine.
    pub images: Vec<String>,
    pub image_bytes: u64,
    /// Whether the registry's files are known here; where they are not, it looks after them itself.
    pub has_files: bool,
}
