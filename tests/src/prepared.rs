//! What tests need and no package installs: made once by a script, kept in the cache.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::OrFail as _;

/// The exit code of a script that cannot do its work just now.
const NOT_NOW: i32 = 75;

/// Names what tests may do without where it cannot be made, with commas between: `BERTH_TESTS_WITHOUT=old-glibc.tar`.
const WITHOUT: &str = "BERTH_TESTS_WITHOUT";

/// What `script` makes at the path that it is given; nothing when that cannot be done just now, and whoever runs the
/// tests has said that they may do without.
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
        let without = std::env::var(WITHOUT).unwrap_or_default();
        let is_named = without.split(',').any(|one| one == name);
        assert!(
            is_named,
            "`{name}` cannot be made just now ({}); set {WITHOUT}={name} to do without",
            said.trim()
        );
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
