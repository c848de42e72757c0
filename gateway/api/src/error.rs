//! The one shape of every error that leaves the gateway.
//!
//! Clients branch and translate by [`Code`] and `params`, never by the text. `message` is what happened and why, in
//! English; `hint` is what to do next.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a [`Problem`].
pub const PROBLEM_JSON: &str = "application/problem+json";

/// What kind of error it is. Never renamed once released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    Unauthenticated,
    BadCredentials,
    TooManyAttempts,
    Forbidden,
    NotFound,
    BadName,
    NameTaken,
    BadImage,
    ImageNotFound,
    BadValue,
    TooLarge,
    WeakPassword,
    WrongState,
    BadBody,
    BodyTooLarge,
    CrossSite,
    ClusterUnreachable,
    EngineUnreachable,
    AgentUnreachable,
    DiskFull,
    Internal,
    /// A code that this client does not know, from a newer gateway.
    #[serde(other)]
    Unknown,
}

/// An error as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
pub struct Problem {
    pub code: Code,
    /// What happened and why: lower case, no full stop.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// A JSON pointer to the field of the request that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The values in the message, for translations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Names this very request in the gateway's log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}
