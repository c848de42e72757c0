//! The console in a real browser: runs the walks of `tests/browser/`.

use std::path::{Path, PathBuf};

use tests::{OrFail as _, World};

/// Where screenshots are kept: `BERTH_SHOTS`, else beside what cargo builds, never in the clone.
fn screenshots() -> PathBuf {
    let given = std::env::var_os("BERTH_SHOTS").map(PathBuf::from);
    let beside = || PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
    let folder = given.unwrap_or_else(beside);
    std::fs::create_dir_all(&folder).or_fail("make a folder for screenshots");
    folder
}

/// All `*.test.mjs`.
fn walks(folder: &Path) -> Vec<PathBuf> {
    let files = folder.read_dir().or_fail("list the walks");
    let mut walks: Vec<_> = files.map(|file| file.or_fail("list the walks").path()).collect();
    walks.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
    walks.sort();
    assert!(!walks.is_empty(), "there are no walks");
    walks
}

#[tokio::test]
async fn the_console_works_in_a_browser() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
    assert!(
        folder.join("node_modules/playwright-core").exists(),
        "playwright-core is not installed: run `make browser`"
    );
    let world = World::start().await;
    let output = tokio::process::Command::new("node")
        .args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        .args(walks(&folder))
        .env("URL", world.console())
        .env("PASSWORD", world.password())
        .env("SCREENSHOTS", screenshots())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(std::time::Duration::from_mins(3), output).await;
    let output = output.or_fail("wait for the browser").or_fail("run node");
    let told = String::from_utf8_lossy(&output.stdout);
    let more = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{more}");
}
