//! A job file from elsewhere in our own words.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::job::JobNote;

/// The body of a conversion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvertJob {
    /// A job file in any of the languages that are known.
    pub file: String,
}

/// What a job file means here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Converted {
    /// The language of the file; absent where it is none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The same job in our own YAML, without its secrets; absent while there are mistakes in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Mistakes, and what is worth saying, in the order of the file.
    pub notes: Vec<JobNote>,
}
