//! Secrets: values that are kept encrypted, named by those who use them, and never shown again.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::name::SecretName;

/// The longest value.
pub const SECRET_MAX_BYTES: usize = 12 << 10;
/// Secrets of one user, and of the site.
pub const SECRETS_MAX: usize = 100;

/// A secret without its value, which is never shown again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Secret {
    pub name: SecretName,
    /// What it opens, if it is the password of a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<SecretRegistry>,
    /// When its value was last set.
    #[schema(value_type = String, format = DateTime)]
    pub changed_at: Timestamp,
}

/// The most secrets of one instance.
pub const USED_MAX: usize = 8;

/// A secret that an instance uses: as a variable of its processes, as a file in memory, or both. One that says neither is
/// a variable of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UseSecret {
    #[schema(example = "HF_TOKEN")]
    pub name: String,
    /// The variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// Whether it is the file `/.berth/secrets/NAME`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub file: bool,
}

/// A registry and who signs in there. The password is given to this one alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRegistry {
    /// As it stands in references of images, with its port if it has one.
    #[schema(example = "registry.example.org:5000")]
    pub host: String,
    #[schema(example = "alice")]
    pub user: String,
}

/// The body that sets a secret, whether it is there already or not.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetSecret {
    /// Text, at most 12 KiB of it; a registry's password where there is one.
    pub value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<SecretRegistry>,
}

impl fmt::Debug for SetSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SetSecret").field("registry", &self.registry).finish_non_exhaustive()
    }
}
