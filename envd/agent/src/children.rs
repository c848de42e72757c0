//! The processes that the agent started, and the reaping of all that came to it.
//!
//! As PID 1 the agent inherits every orphan of the instance. There is one `waitpid(-1)` in the whole program, here; an
//! exit status that somebody awaits is handed to them by pid, every other one is dropped. Spawning and reaping happen
//! on the same thread, so a child cannot be reaped before it is known.

use std::{
    cell::RefCell,
    collections::HashMap,
    io,
    process::{Command, Stdio},
};

use process_api::Exit;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use tokio::sync::oneshot;

use crate::signal;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Code(i32),
    Signal(i32),
}

/// The children that are awaited.
#[derive(Debug, Default)]
pub(crate) struct Children {
    awaited: RefCell<HashMap<Pid, Awaited>>,
}

#[derive(Debug)]
struct Awaited {
    waiting: oneshot::Sender<Ended>,
    /// It leads a terminal's session.
    tty: bool,
}

/// A child that was started. It leads a session and a process group of its own.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: Pid,
    pub(crate) ended: oneshot::Receiver<Ended>,
    pub(crate) pipes: Pipes,
}

/// The agent's ends of the pipes that were asked for.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<std::process::ChildStdin>,
    pub(crate) stdout: Option<std::process::ChildStdout>,
    pub(crate) stderr: Option<std::process::ChildStderr>,
}

/// What a child's three streams are.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
    /// All three are a terminal.
    pub(crate) tty: bool,
}

// === impl Children ===

impl Children {
    pub(crate) fn spawn(&self, command: &mut Command, streams: Streams) -> io::Result<Child> {
        command.stdin(streams.stdin).stdout(streams.stdout).stderr(streams.stderr);
        let mut child = command.spawn()?;
        // Closes our copies of the child's ends.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let pid = Pid::from_child(&child);
        let (waiting, ended) = oneshot::channel();
        self.awaited.borrow_mut().insert(pid, Awaited { waiting, tty: streams.tty });
        let pipes =
            Pipes { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() };
        Ok(Child { pid, ended, pipes })
    }

    /// Reaps all that have ended. False when not one child is left, ended or not.
    pub(crate) fn reap(&self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if let (Some(ended), Some(awaited)) =
                        (Ended::from_status(status), self.awaited.borrow_mut().remove(&pid))
                    {
                        let _nobody_waits = awaited.waiting.send(ended);
                    }
                }
                Ok(None) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_none_left) => return false,
            }
        }
    }

    /// The child has not ended.
    pub(crate) fn running(&self, pid: Pid) -> bool {
        self.awaited.borrow().contains_key(&pid)
    }

    /// Signals a child's process group, if the child has not ended: after that its number may be another's.
    pub(crate) fn signal(&self, pid: Pid, signal: Signal) {
        if self.running(pid) {
            send(pid, signal);
        }
    }

    /// Hangs a child up, as a terminal or a connection that goes away does. `nohup` and `setsid` survive it.
    pub(crate) fn hang_up(&self, pid: Pid) {
        self.signal(pid, Signal::HUP);
        self.signal(pid, Signal::CONT);
    }

    /// Signals everything: as PID 1 all processes of the instance, else the groups of our own children.
    pub(crate) fn signal_all(&self, signal: Signal) {
        if rustix::process::getpid() == Pid::INIT {
            // `kill(-1)`: all processes but this one.
            let _none_left = rustix::process::kill_process_group(Pid::INIT, signal);
        } else {
            self.awaited.borrow().keys().for_each(|pid| send(*pid, signal));
        }
    }

    /// Hangs up the shells that wait at a terminal: they ignore `TERM`. One with a job waits for the job, which was
    /// told as well.
    pub(crate) fn hang_up_idle_shells(&self) {
        let shells: Vec<_> =
            self.awaited.borrow().iter().filter(|(_, child)| child.tty).map(|(pid, _)| *pid).collect();
        shells
            .into_iter()
            .filter(|pid| ignores_term(*pid) && is_alone(*pid))
            .for_each(|pid| self.hang_up(pid));
    }
}

fn ignores_term(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    ignored & (1 << (Signal::TERM.as_raw() - 1)) != 0
}

fn is_alone(pid: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .is_ok_and(|children| children.is_empty())
}

/// Kills what is left of the process group of a child that has just been reaped. While one of them lives, its number is
/// given to nobody else.
pub(crate) fn sweep(pid: Pid) {
    let _nothing_left = rustix::process::kill_process_group(pid, Signal::KILL);
}

fn send(pid: Pid, signal: Signal) {
    // The group is there as soon as the child has made its session; until then the child is alone.
    if rustix::process::kill_process_group(pid, signal).is_err() {
        let _gone = rustix::process::kill_process(pid, signal);
    }
}

// === impl Ended ===

impl Ended {
    fn from_status(status: WaitStatus) -> Option<Self> {
        status.exit_status().map(Self::Code).or_else(|| status.terminating_signal().map(Self::Signal))
    }

    /// The exit code that shells give it.
    pub(crate) fn code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(number) => 128 + number,
        };
        u8::try_from(code & 0xff).unwrap_or(u8::MAX)
    }
}

impl From<Ended> for Exit {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Code(code) => Self::Code(code),
            Ended::Signal(number) => Self::Signal(signal::name(number)),
        }
    }
}
