//! What a user or a group may hold at a time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The quota of a user or a group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    #[serde(default)]
    pub limits: QuotaLimits,
    /// Other limits for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise: Option<QuotaRaise>,
}

/// The most that may be held; what is absent has no limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// By model, besides the sum.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gpus_by_model: BTreeMap<String, u64>,
    /// Instances that run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<u64>,
    /// Jobs that run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
    /// What images take in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_bytes: Option<u64>,
}

/// Limits that hold until a time. What is absent is as it always is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaRaise {
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    pub limits: QuotaLimits,
}

/// What the caller and the caller's group may hold, hold and wait for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OwnQuota {
    pub user: QuotaStanding,
    pub group: QuotaStanding,
    /// The shares of the site that have limits; everyone's together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<QuotaStanding>,
}

/// How much of a quota is used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct QuotaStanding {
    /// The user's, the group's or the share's.
    pub name: String,
    /// Those that hold now, with what is raised for a while.
    pub limits: QuotaLimits,
    /// Until when some of them are raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub raised_until: Option<Timestamp>,
    pub used: QuotaUse,
    /// What those ask for who wait in the line.
    pub waiting: QuotaUse,
}

/// An amount of everything that quotas are about.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct QuotaUse {
    pub cpus: f64,
    pub memory_bytes: u64,
    pub gpus: u64,
    /// Those whose model is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gpus_by_model: BTreeMap<String, u64>,
    pub instances: u64,
    pub jobs: u64,
    #[serde(default)]
    pub image_bytes: u64,
}
