//! The settings that the gateway runs with.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One setting as it is in effect. None of them is a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveSetting {
    #[schema(example = "gateway.keep_removed_days")]
    pub key: String,
    /// As it would stand in the file; absent: not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    pub source: SettingSource,
    /// The environment variable that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}

/// Where a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingSource {
    Default,
    File,
    Environment,
}
