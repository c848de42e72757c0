//! How a call can fail: the gateway says why, the gateway is not there, or what answers is not a gateway.

use std::error::Error;

use reqwest::Url;

use crate::error::{Code, Problem};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("`{address}` is not the address of a gateway: {reason}")]
    BadAddress { address: String, reason: &'static str },
    /// The gateway's own words.
    #[error(transparent)]
    Problem(Box<Problem>),
    #[error("no answer from `{url}`")]
    Unreachable {
        url: String,
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    #[error("what `{url}` answers is not from a gateway: {what}")]
    Protocol { url: String, what: String },
    #[error("`{what}` took longer than {} s", limit.as_secs())]
    TooLate { what: String, limit: std::time::Duration },
}

impl ClientError {
    /// The gateway's code, where the gateway answered.
    pub fn code(&self) -> Option<Code> {
        self.problem().map(|problem| problem.code)
    }

    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            Self::BadAddress { .. }
            | Self::Unreachable { .. }
            | Self::Protocol { .. }
            | Self::TooLate { .. } => None,
        }
    }

    pub(super) fn unreachable(url: &Url, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unreachable { url: origin(url), cause: cause.into() }
    }

    pub(super) fn protocol(url: &Url, what: impl Into<String>) -> Self {
        Self::Protocol { url: origin(url), what: what.into() }
    }
}

impl From<Problem> for ClientError {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

/// What a person recognises of an address: they typed the origin, not the path.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
