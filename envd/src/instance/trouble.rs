//! What keeps an instance from its goal, and when to try again.

use std::{
    io,
    time::{Duration, Instant},
};

use envd_api::control::{Failure, Observation};

use super::ACTS_MAX;
use crate::{
    code::CodeError,
    runtime::RuntimeError,
    storage::{StorageError, is_full},
};

const BACK_OFF_MIN: Duration = Duration::from_secs(1);
const BACK_OFF_MAX: Duration = Duration::from_mins(1);
/// A container that ran for this long did not end because it was started.
const CALM: Duration = Duration::from_mins(1);

/// Why a turn failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error("cannot write below the data directory: {0}")]
    Disk(#[from] io::Error),
    #[error("this machine has no GPUs, and `{0}` are asked for")]
    NoGpu(u32),
    #[error("this machine has no GPU `{0}`, or no longer")]
    NoSuchCard(String),
    #[error("its image was removed from this machine")]
    ImageRemoved,
    #[error("its container, in which its command was running, is gone")]
    Lost,
    #[error("its container is broken; delete the instance")]
    Broken,
    #[error("it took more than {ACTS_MAX} acts")]
    Restless,
}

/// The ends of a container that should not have ended.
#[derive(Debug, Default)]
pub(super) struct Crashes {
    /// The start that the newest one ended.
    of: Option<String>,
    in_a_row: u32,
    again_at: Option<Instant>,
}

// === impl Crashes ===

impl Crashes {
    /// How long to wait before the container that ended is started again; `None` if no longer.
    pub(super) fn pause(&mut self, start: &str, ran_for: Duration) -> Option<Duration> {
        let again_at = match self.again_at {
            Some(again_at) if self.of.as_deref() == Some(start) => again_at,
            _ => {
                self.in_a_row = if ran_for >= CALM { 0 } else { self.in_a_row.saturating_add(1) };
                self.of = Some(start.to_owned());
                let pause = if self.in_a_row == 0 { Duration::ZERO } else { back_off(self.in_a_row) };
                *self.again_at.insert(Instant::now() + pause)
            }
        };
        let pause = again_at.saturating_duration_since(Instant::now());
        (!pause.is_zero()).then_some(pause)
    }
}

// === impl Trouble ===

impl Trouble {
    fn failure(&self) -> Failure {
        match self {
            Self::Runtime(error) => error.failure(),
            Self::Disk(error) if is_full(error) => Failure::DiskFull,
            Self::Disk(_) | Self::Broken | Self::Restless => Failure::Engine,
            Self::Storage(error) => error.failure(),
            Self::Code(_) | Self::NoGpu(_) | Self::NoSuchCard(_) => Failure::Refused,
            Self::ImageRemoved => Failure::ImageNotFound,
            Self::Lost => Failure::Lost,
        }
    }

    pub(super) fn passes(&self) -> bool {
        match self {
            Self::Runtime(error) => error.passes(),
            Self::Disk(_) | Self::Broken | Self::Restless => true,
            Self::Storage(error) => error.passes(),
            Self::Code(_) | Self::NoGpu(_) | Self::NoSuchCard(_) | Self::ImageRemoved | Self::Lost => false,
        }
    }

    pub(super) fn is_engine_away(&self) -> bool {
        matches!(self, Self::Runtime(RuntimeError::Unreachable { .. }))
    }
}

pub(super) fn failed(trouble: &Trouble) -> Observation {
    Observation::Failed {
        failure: trouble.failure(),
        message: trouble.to_string(),
        retrying: trouble.passes(),
    }
}

/// 1, 2, 4 … seconds after so many failures in a row, spread so that not all come at once.
pub(super) fn back_off(failures: u32) -> Duration {
    let doubled = BACK_OFF_MIN.saturating_mul(1 << failures.saturating_sub(1).min(10));
    jittered(doubled.min(BACK_OFF_MAX))
}

pub(super) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.8..1.2))
}
