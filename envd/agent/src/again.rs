//! Running a task's command once more after it has ended, as often as its job asks for.
//!
//! It is run where it stands: the container, its address, its cards and its place in the queue stay, so the other tasks
//! find it where it was, and nobody takes its room meanwhile.

use std::{
    fs,
    time::{Duration, Instant},
};

use envd_api::agent::Again;

/// Tries that follow each other at once; those after them wait for each other, longer and longer.
const AT_ONCE: u32 = 3;
const PAUSE_MAX: Duration = Duration::from_mins(5);
/// A try that ran for this long did not fail because it was started.
const RAN_WELL: Duration = Duration::from_mins(1);
/// Where the kernel counts what it killed for want of memory, in both its generations of control groups.
const MEMORY_EVENTS: [&str; 2] = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

/// The tries of one command.
#[derive(Debug)]
pub(crate) struct Tries {
    rule: Option<Again>,
    counted: u32,
    free: u32,
    killed: u64,
    since: Instant,
}

impl Tries {
    /// At the start of the first one.
    pub(crate) fn new(rule: Option<Again>) -> Self {
        let killed = if rule.is_some() { killed_for_memory() } else { 0 };
        Self { rule, counted: 0, free: 0, killed, since: Instant::now() }
    }

    /// How long after an end with `code` the next one begins; `None`: that was the last.
    pub(crate) fn next(&mut self, code: u8) -> Option<Duration> {
        let rule = self.rule.as_ref()?;
        let before = std::mem::replace(&mut self.killed, killed_for_memory());
        if self.killed > before && code != 0 && !rule.after_out_of_memory {
            return None;
        }
        if rule.free.contains(&code) {
            if self.free >= rule.free_most {
                return None;
            }
            self.free += 1;
        } else if rule.counted.contains(&code) {
            if rule.most.is_some_and(|most| self.counted >= most) {
                return None;
            }
            self.counted = self.counted.saturating_add(1);
        } else {
            return None;
        }
        let ran_for = self.since.elapsed();
        Some(pause(self.counted.saturating_add(self.free), ran_for))
    }

    /// The next one begins.
    pub(crate) fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// For the log: `1 of 3`, or only how many there were.
    pub(crate) fn count(&self) -> String {
        match self.rule.as_ref().and_then(|rule| rule.most) {
            Some(most) if self.counted > 0 => format!("{} of {most}", self.counted),
            _ => (self.counted.saturating_add(self.free)).to_string(),
        }
    }
}

/// A command that ends at once is not run as fast as it can for ever.
fn pause(tries: u32, ran_for: Duration) -> Duration {
    if tries <= AT_ONCE || ran_for >= RAN_WELL {
        return Duration::ZERO;
    }
    Duration::from_secs(1 << (tries - AT_ONCE - 1).min(16)).min(PAUSE_MAX)
}

/// How many processes of the instance the kernel has killed for want of memory; 0 where it does not say.
fn killed_for_memory() -> u64 {
    let text = MEMORY_EVENTS.into_iter().find_map(|path| fs::read_to_string(path).ok());
    let count = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill ").map(str::to_owned))?;
        line.trim().parse().ok()
    };
    text.and_then(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(most: Option<u32>) -> Again {
        Again { counted: [1, 9].into(), most, free: [137].into(), free_most: 2, after_out_of_memory: false }
    }

    #[test]
    fn a_command_is_run_again_as_often_as_its_exit_code_allows() {
        let ends = |rule: Option<Again>, codes: &[u8]| {
            let mut tries = Tries::new(rule);
            codes.iter().map(|&code| tries.next(code).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(ends(None, &[1]), [false]);
        assert_eq!(ends(Some(rule(Some(2))), &[1, 9, 1]), [true, true, false]);
        assert_eq!(ends(Some(rule(Some(1))), &[137, 137, 9, 137]), [true, true, true, false]);
        assert_eq!(ends(Some(rule(Some(1))), &[0]), [false], "success is no failure");
        assert_eq!(ends(Some(rule(None)), &[1; 50]), [true; 50]);
    }

    #[test]
    fn tries_follow_each_other_ever_more_slowly() {
        let seconds = |tries| pause(tries, Duration::ZERO).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 12, 13, u32::MAX].map(seconds), [0, 0, 0, 1, 2, 256, 300, 300]);
        assert_eq!(pause(50, RAN_WELL), Duration::ZERO);
    }
}
