//! Processes, terminals and the problems of apps, as the API and the agent's protocol both describe them.
//!
//! A crate of its own, because the static agent needs these types and nothing else of the public contract.

use serde::{Deserialize, Serialize};

/// First byte of a binary message that carries standard output.
pub const STDOUT: u8 = 1;
/// First byte of a binary message that carries standard error.
pub const STDERR: u8 = 2;

/// Every code of a problem with an app. Each client has a sentence for each of them, in both languages.
pub const PROBLEMS: [&str; 13] = [
    "no_python",
    "old_python",
    "no_pip",
    "install_failed",
    "no_tools",
    "not_in_image",
    "no_folder",
    "no_port",
    "cannot_run",
    "ended",
    "no_answer",
    "nothing_listens",
    "old_agent",
];

/// A terminal's size and kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Tty {
    pub cols: u16,
    pub rows: u16,
    /// The value of `TERM`; `xterm-256color` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<String>,
}

/// A terminal's size in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Size {
    pub cols: u16,
    pub rows: u16,
}

/// A terminal that goes on without its viewers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Terminal {
    pub name: String,
    /// When its shell was started.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub since: jiff::Timestamp,
    /// How many watch it now.
    pub viewers: u32,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    /// A signal by its name without `SIG`.
    Signal(String),
}
