//! One program under test: its process, its log, and its end.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{OrFail as _, wait_until};

/// How much of a log is printed when a test fails.
const LOG_LINES: usize = 150;

/// A started program. Dropping it kills it.
#[derive(Debug)]
pub struct Program {
    name: &'static str,
    child: Child,
    output: PathBuf,
    log: PathBuf,
}

impl Program {
    /// Starts `command`. What it logs is appended to `NAME.log` in `logs`, so that one log tells the whole story of a
    /// program that was started again; what it prints goes to `NAME.out`, which begins anew.
    #[track_caller]
    pub fn start(name: &'static str, mut command: Command, logs: &Path) -> Self {
        let (output, log) = (logs.join(format!("{name}.out")), logs.join(format!("{name}.log")));
        let stdout = File::create(&output).or_fail("make a file for output");
        let stderr = File::options().create(true).append(true).open(&log).or_fail("open a log");
        let child = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn();
        Self { name, child: child.or_fail(format!("start {name}")), output, log }
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub(crate) fn printed(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// The lines of its log that tell of a panic.
    pub(crate) fn panics(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().filter(|line| line.contains("panicked")).map(str::to_owned).collect()
    }

    /// Fails the test if it has ended.
    #[track_caller]
    pub(crate) fn assert_alive(&mut self) {
        if let Some(status) = self.child.try_wait().or_fail("look at a process") {
            panic!("{} ended by itself: {status}", self.name);
        }
    }

    /// SIGKILL: it gets no chance to say goodbye.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// SIGTERM, as Ctrl-C of `make up` does, and how it ended.
    pub async fn terminate(mut self, limit: Duration) -> ExitStatus {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).or_fail("name a process");
        kill_process(pid, Signal::TERM).or_fail("send a signal");
        let what = format!("{} ends after SIGTERM", self.name);
        wait_until(&what, limit, async || self.child.try_wait().or_fail("look at a process")).await
    }

    /// The end of its log, for whoever reads a failure.
    pub(crate) fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        format!("--- {} ({} lines, the last {})\n{}", self.name, lines.len(), last.len(), last.join("\n"))
    }

    fn end(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}
