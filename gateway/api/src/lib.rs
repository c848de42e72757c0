//! The public contract of Berth: what the gateway promises to the console, the `berth` command and everyone's own scripts.
//!
//! Types, ids, names and errors, without any I/O (the client sits behind the feature `client`). One word per thing:
//! what is called `instance` here is called so in the JSON, the SQL, the command line and the console.

pub mod app;
pub mod audit;
#[cfg(feature = "client")]
pub mod client;
pub mod cluster;
pub mod convert;
pub mod error;
pub mod id;
pub mod image;
pub mod instance;
pub mod job;
pub mod name;
pub mod node;
pub mod notice;
pub mod packages;
pub mod people;
pub mod preparing;
pub mod queue;
pub mod quota;
pub mod secret;
pub mod session;
pub mod setting;
pub mod site;
pub mod ssh;
pub mod stream;
pub mod token;
pub mod usage;
pub mod words;

pub use app::AppName;
pub use error::{Code, Problem};
pub use id::{ImageId, InstanceId, JobId};
pub use instance::{Action, CreateInstance, Goal, Instance, Status};
pub use job::Job;
pub use name::{GroupName, InstanceName, SecretName, Slug, SshKeyName, TokenName, UserName, WorkspaceName};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One page of a listing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
}

/// Returns `0.1.0 (de1391c)`, or only `0.1.0` if the build did not know the commit.
///
/// Only the thin binaries know the commit and pass it here. The agent has none: its SHA-256 identifies it, so a new
/// commit must not make a new agent.
pub fn version(commit: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match commit {
        None | Some("") => version.to_owned(),
        Some(commit) => format!("{version} ({commit})"),
    }
}
