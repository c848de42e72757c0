//! Reads the steps that `make up` still runs beside the gateway.
//!
//! `make up` keeps `run/preparing.json` in the data directory, replaces it by rename, and removes it when all is done. A
//! file that is unreadable, malformed or left by a process that has ended counts as none. It only informs people: no
//! decision depends on it.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use gateway_api::preparing::{PreparingState, PreparingStep, PreparingWhat};
use jiff::Timestamp;
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde::Deserialize;

use super::{App, instances::same_image};

/// The file, below the data directory.
const FILE: &str = "run/preparing.json";
/// The most that is read of the file. A longer one is truncated.
const BYTES_MAX: u64 = 16 << 10;

/// The file of `make up`.
#[derive(Debug)]
pub(super) struct PreparingFile {
    path: PathBuf,
    /// Set once the log has the reason why the file cannot be read.
    is_logged: AtomicBool,
}

#[derive(Debug, Deserialize)]
struct Content {
    /// The process of `make up`.
    pid: i32,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    what: PreparingWhat,
    state: PreparingState,
    started_at: Option<Timestamp>,
    expected_seconds: Option<u32>,
}

impl App {
    /// The steps that `make up` runs, in order. Empty when nothing is being prepared.
    pub(crate) fn preparing(&self) -> Vec<PreparingStep> {
        self.preparing_file.steps(Timestamp::now())
    }

    /// Returns `true` if a step that is still to come makes this image.
    pub(super) fn is_preparing_image(&self, image: &str) -> bool {
        let makes_it = |step: &PreparingStep| {
            step.is_pending() && image_of(step.what).is_some_and(|made| same_image(made, image))
        };
        self.preparing().iter().any(makes_it)
    }

    /// Returns the step that prepares the tools volume, unless it is done or nothing is being prepared.
    pub(super) fn preparing_tools(&self) -> Option<PreparingStep> {
        let is_to_come =
            |step: &PreparingStep| step.what == PreparingWhat::Tools && step.state != PreparingState::Done;
        self.preparing().into_iter().find(is_to_come)
    }
}

/// Returns the image that a step makes for users.
fn image_of(what: PreparingWhat) -> Option<&'static str> {
    match what {
        PreparingWhat::Base => Some("localhost/berth/base"),
        PreparingWhat::Lab => Some("localhost/berth/lab"),
        PreparingWhat::Desktop => Some("localhost/berth/desktop"),
        PreparingWhat::Tools => None,
    }
}

// === impl PreparingFile ===

impl PreparingFile {
    pub(super) fn new(data: &Path) -> Self {
        Self { path: data.join(FILE), is_logged: AtomicBool::new(false) }
    }

    fn steps(&self, now: Timestamp) -> Vec<PreparingStep> {
        match read(&self.path) {
            Ok(Some(content)) if is_alive(content.pid) => estimated(&content.steps, now),
            Ok(_) => Vec::new(),
            Err(error) => {
                if !self.is_logged.swap(true, Ordering::Relaxed) {
                    tracing::debug!(path = %self.path.display(), %error, "cannot read the preparation file");
                }
                Vec::new()
            }
        }
    }
}

fn read(path: &Path) -> io::Result<Option<Content>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text)?;
    Ok(Some(serde_json::from_slice(&text)?))
}

/// Returns `true` also for a process that the gateway may not signal.
fn is_alive(pid: i32) -> bool {
    let pid = if pid > 0 { Pid::from_raw(pid) } else { None };
    pid.is_some_and(|pid| matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM)))
}

/// Adds up the time that is left. After a step without an estimate the ends of all later steps are unknown.
fn estimated(steps: &[Step], now: Timestamp) -> Vec<PreparingStep> {
    let mut so_far = Some(0);
    let each = steps.iter().map(|step| {
        let seconds_left = match step.state {
            PreparingState::Waiting | PreparingState::Working => {
                so_far = so_far.zip(step.seconds_alone(now)).map(|(before, own)| before + own);
                so_far
            }
            PreparingState::Done | PreparingState::Failed => None,
        };
        PreparingStep { what: step.what, state: step.state, seconds_left }
    });
    each.collect()
}

// === impl Step ===

impl Step {
    /// The time that this step takes from its start, or still takes if it runs.
    fn seconds_alone(&self, now: Timestamp) -> Option<u64> {
        let expected = u64::from(self.expected_seconds?);
        if self.state != PreparingState::Working {
            return Some(expected);
        }
        // A clock that was set back does not lengthen the estimate.
        let elapsed = u64::try_from(now.duration_since(self.started_at?).as_secs()).unwrap_or(0);
        Some(expected.saturating_sub(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NOW: &str = "2026-11-18T10:00:30Z";

    /// The seconds left of each of these steps.
    fn left(steps: &str) -> Vec<Option<u64>> {
        let content: Content = serde_json::from_str(&format!(r#"{{"pid": 1, "steps": {steps}}}"#)).unwrap();
        estimated(&content.steps, NOW.parse().unwrap()).iter().map(|step| step.seconds_left).collect()
    }

    /// The states in the file, read as a gateway does.
    fn states(folder: &tempfile::TempDir, text: &str) -> Vec<PreparingState> {
        let file = PreparingFile::new(folder.path());
        fs::create_dir_all(file.path.parent().unwrap()).unwrap();
        fs::write(&file.path, text).unwrap();
        file.steps(NOW.parse().unwrap()).iter().map(|step| step.state).collect()
    }

    #[test]
    fn waiting_steps_include_the_steps_before_them() {
        let check = |steps: &str, expected: &[Option<u64>]| assert_eq!(left(steps), expected, "{steps}");
        check(
            r#"[{"what":"base","state":"working","started_at":"2026-11-18T10:00:00Z","expected_seconds":70},
                {"what":"tools","state":"waiting","expected_seconds":600},
                {"what":"lab","state":"waiting","expected_seconds":120},
                {"what":"desktop","state":"failed"}]"#,
            &[Some(40), Some(640), Some(760), None],
        );
        // A step that is late ends at any moment.
        check(
            r#"[{"what":"base","state":"working","started_at":"2026-11-18T09:00:00Z","expected_seconds":70},
                {"what":"tools","state":"waiting","expected_seconds":600}]"#,
            &[Some(0), Some(600)],
        );
        check(
            r#"[{"what":"base","state":"working","started_at":"2026-11-18T11:00:00Z","expected_seconds":70}]"#,
            &[Some(70)],
        );
        check(
            r#"[{"what":"base","state":"done","expected_seconds":70},
                {"what":"tools","state":"working","started_at":"2026-11-18T10:00:00Z"},
                {"what":"lab","state":"waiting","expected_seconds":120}]"#,
            &[None, None, None],
        );
        check(r#"[{"what":"base","state":"working","expected_seconds":70}]"#, &[None]);
    }

    #[test]
    fn nonsense_means_that_nothing_is_being_prepared() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(PreparingFile::new(folder.path()).steps(NOW.parse().unwrap()), [], "there is no file");
        let steps = r#"[{"what":"tools","state":"waiting","expected_seconds":600}]"#;
        let mine = std::process::id();
        let good = format!(r#"{{"pid": {mine}, "steps": {steps}}}"#);
        assert_eq!(states(&folder, &good), [PreparingState::Waiting]);
        let padding = " ".repeat(usize::try_from(BYTES_MAX).unwrap());
        for wrong in [
            String::new(),
            "{".to_owned(),
            "[]".to_owned(),
            format!(r#"{{"pid": "{mine}", "steps": {steps}}}"#),
            format!(r#"{{"pid": {mine}, "steps": [{{"what":"moon","state":"waiting"}}]}}"#),
            format!(
                r#"{{"pid": {mine}, "steps": [{{"what":"lab","state":"waiting","expected_seconds":-1}}]}}"#
            ),
            format!("{padding}{good}"),
            // No such process: the first two name none, the last is beyond every limit of Linux.
            format!(r#"{{"pid": 0, "steps": {steps}}}"#),
            format!(r#"{{"pid": -1, "steps": {steps}}}"#),
            format!(r#"{{"pid": {}, "steps": {steps}}}"#, i32::MAX),
        ] {
            assert_eq!(states(&folder, &wrong), [], "{wrong}");
        }
    }
}
