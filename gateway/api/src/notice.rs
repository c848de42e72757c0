//! What admins tell everyone: announcements and the rules of the place.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest text, in bytes.
pub const NOTICE_MAX_BYTES: usize = 16 << 10;

/// A text in the languages of the console. A reader of a language that is empty gets the other one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bilingual {
    #[serde(default)]
    pub chinese: String,
    #[serde(default)]
    pub english: String,
}

/// How urgent an announcement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Info,
    Warning,
}

impl Level {
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
        }
    }
}

/// Something that everyone should know for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Announcement {
    pub id: i64,
    pub level: Level,
    pub text: Bilingual,
    #[schema(value_type = String, format = DateTime)]
    pub starts_at: Timestamp,
    /// Absent: until it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ends_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// The body that adds an announcement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddAnnouncement {
    pub level: Level,
    pub text: Bilingual,
    /// Absent: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub starts_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ends_at: Option<Timestamp>,
}

/// The rules of the place, as one user sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rules {
    /// Both languages are empty where there are no rules.
    pub text: Bilingual,
    /// Grows with every change; what is agreed to is a version.
    pub version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub changed_at: Option<Timestamp>,
    /// Whether the caller has agreed to this version; true where there is nothing to agree to.
    pub accepted: bool,
}

/// The body that agrees to the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptRules {
    /// The version that was read. Another one may be in force by now.
    pub version: i64,
}
