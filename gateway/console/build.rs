//! Builds the console if it is missing, so `cargo test` works in a clean clone.

use std::{path::Path, process::Command};

fn main() {
    let dist = Path::new("../../web/dist");
    if !dist.join("index.html").exists() {
        let built = Command::new("../../deploy/up/console.sh").status();
        assert!(built.is_ok_and(|status| status.success()), "cannot build the console: run `make console`");
    }
    println!("cargo::rerun-if-changed={}", dist.display());
}
