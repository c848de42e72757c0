//! The harness of the end-to-end tests: real binaries, real Docker, public surfaces only.
//!
//! A [`World`] is a Berth of its own: an envd and a gateway on a data directory, ports and a cluster that nobody else
//! uses, so that many can run at once. What it started it ends, whatever became of the test.
//!
//! A test that cannot go on panics: then, and only then, the world prints the logs of both programs on its way out.
//! Nothing here sleeps for a fixed time; [`wait_until`] asks until something is so or a limit has passed.

#![expect(
    clippy::missing_panics_doc,
    reason = "failing the test is what everything here does when it cannot go on"
)]

mod aside;
pub mod engine;
mod fail;
pub mod nvml;
mod port;
mod prepared;
mod program;
mod registry;
mod screen;
mod secured;
mod small_disk;
mod ssh;
mod wait;
mod web;
mod world;

use gateway_api::CreateInstance;

pub use self::{
    aside::Aside,
    fail::OrFail,
    port::Port,
    prepared::{old_glibc, prepared},
    program::Program,
    registry::{Fault, Faults, Registry},
    screen::Screen,
    secured::Stream,
    small_disk::SmallDisk,
    ssh::{Laptop, Talk, scripts},
    wait::{LIMIT, wait_until, wait_until_agreed},
    web::{Socket, http_client, http_client_from, raw_http, web_socket, web_socket_refused},
    world::{Ran, Setup, World, programs},
};

/// The image that instances of these tests start from; `make images` makes it.
pub const IMAGE: &str = "localhost/berth/base:latest";

/// Reads a count from `variable`, else returns `usual`: `make test-long` raises it.
#[track_caller]
pub fn count(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |text| text.parse().or_fail(format!("read {variable}")))
}

/// A small instance without a command.
pub fn wanted(name: &str) -> CreateInstance {
    CreateInstance {
        name: name.to_owned(),
        image: None,
        cpus: 0.5,
        memory_bytes: 64 << 20,
        shm_bytes: None,
        gpus: 0,
        gpu_model: None,
        cluster: None,
        pool: None,
        env: [].into(),
        command: Vec::new(),
        auto_start: false,
        secrets: Vec::new(),
    }
}
