//! The browser console: the files that `make console` built from `web/`, embedded in the gateway.
//!
//! A crate of its own, so the gateway's library and its tests share one embedded copy.

pub use rust_embed::EmbeddedFile;
use rust_embed::RustEmbed;

/// All files of the console by their paths, with the brotli and gzip copies beside them.
#[derive(Debug, RustEmbed)]
#[folder = "../../web/dist"]
pub struct Files;
