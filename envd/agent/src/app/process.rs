//! A process of an app: one pipe for all it writes, read for as long as it lives.

use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal};
use tokio::{io::AsyncReadExt as _, net::unix::pipe, sync::oneshot, time::Instant};

use crate::{
    Agent,
    children::{Ended, Streams},
    environment::{StartError, Surroundings},
};

/// What is read at once.
const PIECE: usize = 4 << 10;
/// The most that a pipe holds of what an ended process wrote.
const LEFT_MAX: usize = 1 << 20;
/// What a process gets to end after it was told, before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// How often it is looked whether it has.
const STOP_CHECK: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    ended: oneshot::Receiver<Ended>,
    output: pipe::Receiver,
    /// Somebody could still write to it.
    is_open: bool,
}

impl Process {
    pub(crate) fn start(
        agent: &Agent,
        around: &Surroundings,
        program: &Path,
        argv: &[String],
        directory: &Path,
    ) -> Result<Self, StartError> {
        let start = || {
            let (ours, theirs) = io::pipe()?;
            let streams = Streams {
                stdin: Stdio::null(),
                stdout: theirs.try_clone()?.into(),
                stderr: theirs.into(),
                tty: false,
            };
            let output = pipe::Receiver::from_owned_fd(OwnedFd::from(ours))?;
            let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
            let mut command = around.program(program, &argv, directory, false);
            let child = agent.children.spawn(&mut command, streams)?;
            io::Result::Ok(Self { pid: child.pid, ended: child.ended, output, is_open: true })
        };
        start().map_err(|error| StartError::System(program.display().to_string(), error))
    }

    /// Hands on what it writes until it ends. May be dropped and called again.
    pub(crate) async fn watch(&mut self, mut wrote: impl FnMut(&[u8])) -> Ended {
        let mut piece = [0; PIECE];
        let ended = loop {
            tokio::select! {
                read = self.output.read(&mut piece), if self.is_open => match read {
                    Ok(read) if read > 0 => wrote(&piece[..read]),
                    Ok(_) | Err(_) => self.is_open = false,
                },
                // The reaper never drops what somebody awaits.
                ended = &mut self.ended => break ended.unwrap_or(Ended::Signal(Signal::KILL.as_raw())),
            }
        };
        let mut left = LEFT_MAX;
        while left > 0
            && let Ok(read) = rustix::io::read(self.output.as_fd(), &mut piece)
            && read > 0
        {
            wrote(&piece[..read]);
            left = left.saturating_sub(read);
        }
        ended
    }
}

/// Ends a process and its group, with a while to tidy up.
pub(crate) async fn end(agent: &Agent, pid: Pid) {
    agent.children.signal(pid, Signal::TERM);
    agent.children.signal(pid, Signal::CONT);
    let deadline = Instant::now() + STOP_GRACE;
    while agent.children.running(pid) && Instant::now() < deadline {
        tokio::time::sleep(STOP_CHECK).await;
    }
    agent.children.signal(pid, Signal::KILL);
}
