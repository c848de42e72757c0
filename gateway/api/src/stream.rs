//! What travels over the WebSockets of `exec`, terminals and logs.
//!
//! Binary messages are bytes of a process, text messages are these types as JSON. In `exec` and `logs` the first byte
//! of a binary message from the server says which stream it belongs to; in a terminal there is only one.

use std::collections::BTreeMap;

pub use process_api::{Exit, STDERR, STDOUT, Size, Terminal, Tty};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::Problem;

/// The first message of `exec`: what to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecStart {
    pub argv: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// A terminal for the process; without it the three streams stay apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tty: Option<Tty>,
}

/// A text message from the client while a process runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FromClient {
    Resize(Size),
    /// A signal by its name without `SIG`, such as `INT`.
    Signal(String),
    CloseStdin {},
    /// So many more bytes of output have been dealt with. For those who asked for a window with `ack=1`.
    Ack(u64),
}

/// A text message from the server; the last one before it closes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FromServer {
    Exit(Exit),
    Error(Problem),
}
