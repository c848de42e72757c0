//! The preparation that follows a start of the site: its images, and the tools volume.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One step of the preparation. Steps run one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreparingStep {
    pub what: PreparingWhat,
    pub state: PreparingState,
    /// Estimated seconds until this step ends, with the steps before it. 0 when it takes longer than expected; absent
    /// when there is no estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreparingWhat {
    /// The default image of new instances.
    Base,
    /// The tools volume, with VS Code.
    Tools,
    /// The image with JupyterLab.
    Lab,
    /// The image with a desktop.
    Desktop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreparingState {
    Waiting,
    Working,
    Done,
    Failed,
}

impl PreparingStep {
    /// True until the step succeeds or fails.
    pub fn is_pending(&self) -> bool {
        match self.state {
            PreparingState::Waiting | PreparingState::Working => true,
            PreparingState::Done | PreparingState::Failed => false,
        }
    }

    /// The estimate in whole minutes, at least one. `None` without an estimate, and for a step that is late.
    pub fn minutes_left(&self) -> Option<u64> {
        self.seconds_left
            .filter(|&seconds| seconds > 0)
            .map(|seconds| (seconds.saturating_add(30) / 60).max(1))
    }
}
