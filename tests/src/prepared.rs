//! What tests need and no package installs: made once by a script, kept in the cache.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::OrFail as _;

/// The exit code of a script that cannot do its work just now.
const NOT_NOW: i32 = 75;

/// What `script` makes at the path that it is given; nothing, and a word on it, when that cannot be done just now.
#[track_caller]
pub fn prepared(script: &Path, name: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("BERTH_CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".cache/berth"))
    });
    let place = cache.or_fail("find the cache").join(name);
    let made = Command::new(script).arg(&place).output().or_fail("run a script");
    let said = String::from_utf8_lossy(&made.stderr);
    if made.status.code() == Some(NOT_NOW) {
        let _ = writeln!(std::io::stderr(), "not tried, for want of `{name}`: {said}");
        return None;
    }
    assert!(made.status.success(), "{said}");
    Some(place)
}

/// The archive of an image whose C library is of 2016.
#[track_caller]
pub fn old_glibc() -> Option<PathBuf> {
    prepared(&Path::new(env!("CARGO_MANIFEST_DIR")).join("images/old-glibc.sh"), "old-glibc.tar")
}
