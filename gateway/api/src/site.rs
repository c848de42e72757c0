//! What admins say of the site as a whole.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest name of a site, in characters.
pub const SITE_NAME_MAX: usize = 60;

/// The site as everyone sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Site {
    /// Empty: it has none.
    pub name: String,
    /// Whether the console asks before every submission of a job, and not only where it costs.
    pub confirm_always: bool,
    /// Whether an admin has been through the first steps, or has put them away.
    pub set_up: bool,
}

/// The body of a change to the site. What is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSite {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_always: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_up: Option<bool>,
}
