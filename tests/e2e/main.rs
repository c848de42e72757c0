//! End-to-end walks: what a user does, on real Docker, with the programs as they are shipped.

mod acme;
mod anyimage;
mod apps;
mod audit;
mod authz;
mod console;
mod crash;
mod disk;
mod engine;
mod instance;
mod jobs;
mod port;
mod registry;
mod restart;
mod restore;
mod save;
mod sidebyside;
mod ssh;
mod ssh_bad;
mod ssh_clients;
mod ssh_load;
mod ssh_waiting;
mod terminals;
mod upgrade;
