//! The way of a browser into an instance: pages and WebSockets of its apps, each at an address of its own.

pub(crate) mod address;
