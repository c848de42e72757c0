//! What package managers have installed beyond an image.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is installed in an instance beyond the image that it was made from, by who installed it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Packages {
    /// By apt and dpkg.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apt: Vec<Package>,
    /// By pip and its like.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pip: Vec<Package>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conda: Vec<Package>,
    /// What dpkg had in the image and has no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// A package that is new, or of another version than in the image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Package {
    #[schema(example = "numpy")]
    pub name: String,
    #[schema(example = "2.1.0")]
    pub version: String,
    /// The environment that it is in, such as `/opt/conda` or `/root/venv`; left out for the system's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// How an image like a saved one could be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Recipe {
    /// A Dockerfile from the image's parent and the packages beyond it. Files that no package manager knows of are not
    /// in it.
    pub dockerfile: String,
    /// One line for each package: who installs it, its name and its version.
    pub lock: Vec<String>,
}

impl Packages {
    pub fn is_empty(&self) -> bool {
        self.apt.is_empty() && self.pip.is_empty() && self.conda.is_empty() && self.removed.is_empty()
    }
}
