//! The audit log: who did what, from where, and how it ended.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest page of the log.
pub const AUDIT_PAGE_MAX: u32 = 1000;
/// A page's length when none is asked for.
pub const AUDIT_PAGE: u32 = 100;

/// One line of the log. It is never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    pub id: i64,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The user's name; of a failed sign-in the name that was given; `system` for what the gateway does by itself.
    pub actor: String,
    /// The address that the request came from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// What was done, such as `sign_in` or `user.remove`.
    pub act: String,
    /// What it was done to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub object: String,
    pub result: AuditResult,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// How an act ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditResult {
    Done,
    /// The actor may not, or gave a wrong password.
    Refused,
}

impl AuditResult {
    /// The word as it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
        }
    }
}

/// One page of the log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    pub items: Vec<AuditEntry>,
    /// What to give as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}

/// Which part of the log to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}
