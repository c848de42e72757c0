//! The background loops: each closes the difference between what should be and what is, takes no input, is woken by a
//! signal and by a clock, and may be killed at any instruction.

pub(crate) mod deliver;
pub(crate) mod idle;
pub(crate) mod images;
pub(crate) mod jobs;
pub(crate) mod place;
pub(crate) mod queue;
mod stale;
mod status;
