//! Images as users see them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An image that instances can start from without a download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Image {
    /// The full reference, as `create --image` takes it.
    pub reference: String,
    pub size_bytes: u64,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Whether `create` without an image takes this one.
    pub default: bool,
}
