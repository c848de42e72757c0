//! The internal contract of Berth: what the gateway tells envd ([`control`]) and what the gateway and an instance's
//! agent say to each other ([`agent`]).
//!
//! envd knows no users, passwords or quotas, and an agent knows nothing but its own instance: neither appears here.

pub mod agent;
#[cfg(feature = "client")]
pub mod client;
pub mod control;
