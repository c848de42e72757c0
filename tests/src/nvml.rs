//! NVIDIA's library for machines without its cards: built from `nvml/cards.c`, it tells of eight of two models.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::OrFail as _;

/// How many cards it tells of.
pub const CARDS: usize = 8;
/// The model of the first four, and of the others.
pub const MODELS: [&str; 2] = ["NVIDIA GeForce RTX 3090", "Tesla P100-PCIE-16GB"];

/// Builds the library in a directory; its path.
#[track_caller]
pub fn library(directory: &Path) -> PathBuf {
    let library = directory.join("libnvidia-ml.so.1");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("nvml/cards.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .arg(&library)
        .arg(source)
        .output();
    let built = built.or_fail("run the C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    library
}

/// From now on these cards, by their numbers, do not answer.
#[track_caller]
pub fn lose(library: &Path, cards: &[usize]) {
    let numbers: String = cards.iter().map(ToString::to_string).collect();
    std::fs::write(library.with_file_name("lost"), numbers).or_fail("lose a card");
}
