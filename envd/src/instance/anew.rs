//! A container that is made anew with all that is in it: for what only a new one can have, and where the engine cannot
//! start the one that is there.

use envd_api::control::{Observation, PutInstance};
use tracing::info;

use super::{Instance, trouble::Trouble};
use crate::{
    door::Start,
    runtime::{Container, Runtime, RuntimeError},
};

/// So often the engine may say that it has not let go of a container's last run, which usually takes it a moment.
const STUCK_MAX: u32 = 3;

impl<R: Runtime> Instance<R> {
    /// Counts the starts in a row that failed since the engine holds on to the run before. An engine that missed the end
    /// of a run, as one that was killed or that is busy may, says so until it is started anew itself.
    pub(super) fn note_start(&mut self, started: &Result<(), RuntimeError>) {
        self.stuck =
            if matches!(started, Err(RuntimeError::Stuck { .. })) { self.stuck.saturating_add(1) } else { 0 };
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.stuck >= STUCK_MAX
    }

    /// A container has its cards and its storages for as long as it is there. With others it is made anew, from an image
    /// of all that is in it: the record names that image before the container goes.
    pub(super) async fn make_way(
        &self,
        put: &PutInstance,
        container: &Container,
        last: Option<Start>,
    ) -> Result<(), Trouble> {
        self.check_cards(put)?;
        self.observe(put, Observation::Starting);
        let Some(last) = last else {
            // It was never started: there is nothing in it.
            return Ok(self.world.runtime.remove(container).await?);
        };
        let why = if self.is_stuck() { "the engine cannot start it" } else { "other cards or storages" };
        info!(instance = %self.id, generation = put.generation, why, "making it anew");
        let image = self.world.runtime.keep(container).await?;
        let before = last.kept.clone().filter(|kept| *kept != container.image.0 && *kept != image.0);
        let start = Start { image: Some(image.0.clone()), kept: Some(image.0), ..last };
        self.disk(move |world, id| world.doors.record(id, &start)).await?;
        if let Some(before) = before {
            self.world.runtime.untag(&before).await?;
        }
        Ok(self.world.runtime.remove(container).await?)
    }
}
