//! End-to-end walks: what a user does, on real Docker, with the programs as they are shipped.

mod authz;
mod console;
mod instance;
mod port;
mod restart;
mod sidebyside;
