//! The agent as the gateway sees it: the real binary behind a door of its own, spoken to in the protocol.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod apps;
mod calls;
mod life;
mod terminals;
mod world;
