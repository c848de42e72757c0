//! When a job is over, how it ended, and whether it is tried again.
//!
//! Both are pure: [`judge`] looks at the tasks of one try, [`retry`] at how the try ended and how many there were.
//! The rules are OpenPAI's, which the other dialects are special cases of: a dialect's own defaults are in the spec
//! that its reader made (`Completion`, `Retries`), so no rule here asks which file a job came from, with one
//! exception: of exit codes that may be the platform's own, such as 137, only OpenPAI promised its users that they do
//! not count. A machine that went away under its tasks counts for nobody.

use serde::{Deserialize, Serialize};

use crate::spec::{Completion, Dialect, Purpose, Retries};

/// Tries that do not count end some day too: a machine that kills every task is not tried for ever.
pub const MOST_FREE_RETRIES: u32 = 10;

/// The exit codes that we make up, in OpenPAI's numbering.
pub const OUT_OF_MEMORY: i32 = -1200;
pub const NODE_LOST: i32 = -1300;
pub const IMAGE_NOT_FOUND: i32 = 254;
/// Ended because the job was over.
pub const STOPPED: i32 = -220;

/// What became of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    Going,
    Succeeded,
    Failed {
        exit_code: i32,
    },
    /// Ended on purpose: neither a success nor a failure.
    Stopped,
}

/// A role's tasks, and when they end the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleTasks {
    pub completion: Completion,
    pub tasks: Vec<Task>,
}

/// What the tasks mean for the try that they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Going,
    /// By the role of that index, or by all tasks having ended. Tasks that go on are to be stopped.
    Succeeded {
        by: Option<usize>,
    },
    /// By that task. Tasks that go on are to be stopped.
    Failed {
        role: usize,
        task: usize,
        exit_code: i32,
    },
    /// All tasks ended, and none of them by itself.
    Stopped,
}

/// Whose fault an exit code is, and so whether another try may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Behaviour {
    /// The platform's: another try may well succeed.
    Transient,
    /// The user's: another try fails the same way.
    Permanent,
    Unknown,
}

/// How many tries there were besides the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tries {
    pub counted: u32,
    pub free: u32,
}

/// Whether there is another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    Over,
    Again { counted: bool },
}

/// What the end of a task's container means.
pub fn task_end(purpose: Purpose, exit_code: i32, out_of_memory: bool) -> Task {
    match exit_code {
        // First of all: a task that ran out of memory has died by a signal as well.
        _ if out_of_memory => Task::Failed { exit_code: OUT_OF_MEMORY },
        0 => Task::Succeeded,
        // Whoever sleeps for ever is ended by a signal sooner or later.
        130 | 137 | 143 if purpose == Purpose::Interactive => Task::Stopped,
        exit_code => Task::Failed { exit_code },
    }
}

/// What the tasks of a try mean. A failure counts before a success that came at the same time.
pub fn judge(roles: &[RoleTasks]) -> Verdict {
    for (role, tasks) in roles.iter().enumerate() {
        let reached = |least: u32| tasks.failures().count() >= least as usize;
        if tasks.completion.min_failed.is_some_and(reached)
            && let Some((task, exit_code)) = tasks.failures().last()
        {
            return Verdict::Failed { role, task, exit_code };
        }
    }
    for (role, tasks) in roles.iter().enumerate() {
        let succeeded = tasks.tasks.iter().filter(|task| **task == Task::Succeeded).count();
        if tasks.completion.min_succeeded.is_some_and(|least| succeeded >= least as usize) {
            return Verdict::Succeeded { by: Some(role) };
        }
    }
    let mut all = roles.iter().flat_map(|role| &role.tasks);
    if all.clone().any(|task| *task == Task::Going) {
        Verdict::Going
    } else if all.all(|task| *task == Task::Stopped) {
        Verdict::Stopped
    } else {
        Verdict::Succeeded { by: None }
    }
}

/// Whether a try that ended so is followed by another.
pub fn retry(dialect: Dialect, retries: Retries, tries: Tries, verdict: Verdict) -> Next {
    let exit_code = match verdict {
        Verdict::Going | Verdict::Stopped => return Next::Over,
        Verdict::Succeeded { .. } => {
            return if retries == Retries::Always { Next::Again { counted: true } } else { Next::Over };
        }
        Verdict::Failed { exit_code, .. } => exit_code,
    };
    let most = match retries {
        Retries::AfterFailure | Retries::Always => return Next::Again { counted: true },
        Retries::UpTo(most) => most,
    };
    let behaviour = behaviour(exit_code);
    let promised = matches!(dialect, Dialect::OpenpaiV1 | Dialect::OpenpaiV2);
    let is_free = behaviour == Behaviour::Transient && (promised || exit_code == NODE_LOST);
    let again = match behaviour {
        Behaviour::Transient if is_free => tries.free < MOST_FREE_RETRIES,
        Behaviour::Permanent => false,
        Behaviour::Transient | Behaviour::Unknown => tries.counted < most,
    };
    if again { Next::Again { counted: !is_free } } else { Next::Over }
}

/// Whether a task alone is run again after an end with `exit_code`, as long as its tries last. One that is not to be
/// tried again by itself never is: what its end means is the job's affair.
pub fn task_retry(
    dialect: Dialect,
    purpose: Purpose,
    retries: Retries,
    exit_code: i32,
    out_of_memory: bool,
) -> Next {
    if retries == Retries::UpTo(0) {
        return Next::Over;
    }
    let verdict = match task_end(purpose, exit_code, out_of_memory) {
        Task::Going | Task::Stopped => return Next::Over,
        Task::Succeeded => Verdict::Succeeded { by: None },
        Task::Failed { exit_code } => Verdict::Failed { role: 0, task: 0, exit_code },
    };
    retry(dialect, retries, Tries::default(), verdict)
}

/// Whose fault `exit_code` is.
pub fn behaviour(exit_code: i32) -> Behaviour {
    match exit_code {
        -100
        | -101
        | -110
        | -111
        | -120
        | -1003..=-1000
        | -1006
        | -1205
        | NODE_LOST
        | 130
        | 131
        | 137
        | 143
        | 223
        | 250
        | 251
        | 253 => Behaviour::Transient,
        -200
        | -210
        | STOPPED
        | -230
        | -1004
        | -1005
        | -1100
        | OUT_OF_MEMORY
        | -1202
        | -1203
        | 132
        | 135
        | 136
        | 141
        | 220..=222
        | 224..=226
        | 228..=235
        | 249
        | 252
        | IMAGE_NOT_FOUND => Behaviour::Permanent,
        _ => Behaviour::Unknown,
    }
}

impl RoleTasks {
    fn failures(&self) -> impl Iterator<Item = (usize, i32)> {
        self.tasks.iter().enumerate().filter_map(|(at, task)| match task {
            Task::Failed { exit_code } => Some((at, *exit_code)),
            Task::Going | Task::Succeeded | Task::Stopped => None,
        })
    }
}
