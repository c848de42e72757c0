//! What envd promises about a runtime, tried on the real one: the envd binary, its control socket, real containers.
//!
//! Every test has a data directory of its own, hence a cluster of its own, and reaps by that cluster's label.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

mod cluster;
mod crash;
mod engine;
mod goals;
mod image;
mod limits;
mod network;
mod stale;
mod storage;
mod words;
