//! The internal contract of Berth: what the gateway tells envd ([`control`]) and what the gateway and an instance's
//! agent say to each other ([`agent`]).
//!
//! envd knows no users, passwords or quotas, and an agent knows nothing but its own instance: neither appears here. The
//! [`log`] that both programs write is here too, since nothing else is shared by exactly these two.

pub mod agent;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "control")]
pub mod control;
#[cfg(feature = "log")]
pub mod log;
#[cfg(feature = "control")]
pub mod save;
