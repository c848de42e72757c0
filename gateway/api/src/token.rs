//! API tokens: a way in for scripts, with a scope and an end, shown once.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{id::TokenId, name::TokenName};

/// What every API token begins with, so that one that leaked is recognised.
pub const TOKEN_PREFIX: &str = "berth_";
/// How long a token lasts whose maker does not say.
pub const TOKEN_DAYS: u32 = 90;
/// The longest that a token can last.
pub const TOKEN_DAYS_MAX: u32 = 366;

/// What a token opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All that its user may do, but for making tokens.
    All,
    /// Lists, details and logs; nothing that changes anything or steps into an instance.
    Read,
}

impl Scope {
    /// The word as it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Read => "read",
        }
    }
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiToken {
    pub id: TokenId,
    pub name: TokenName,
    pub scope: Scope,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    /// To within five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Timestamp>,
}

/// The body that makes a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddToken {
    /// Checked by the gateway, so that a wrong one gets a sentence of its own.
    #[schema(example = "nightly backup")]
    pub name: String,
    pub scope: Scope,
    /// 1 to 366; 90 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
}

/// A new token and its secret, which is shown this once.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    pub token: ApiToken,
    /// Goes into `Authorization: Bearer`.
    pub secret: String,
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("NewToken").field("token", &self.token).finish_non_exhaustive()
    }
}
