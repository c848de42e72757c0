//! A process of its own for one call, its streams on the call's connection.
//!
//! Nothing is buffered beyond one piece each way: a program that writes faster than the gateway reads waits, and so
//! does a gateway that writes faster than the program reads.
//!
//! - The exit comes after all that the process itself wrote. What its orphans write later is not waited for, as with
//!   `docker exec`; `ssh`, which waits, is known to hang on daemons.
//! - When the connection breaks before the process has ended, the process group is hung up, as with `ssh -t`: its
//!   input ends and it gets `SIGHUP`; its output goes nowhere, and is closed when it still runs after a while. What
//!   was started with `nohup` or `setsid`, and writes to a file, goes on.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    process::{Command, Stdio},
    time::Duration,
};

use envd_api::agent::{Chunk, ChunkReader, ChunkWriter, Exec, ProtocolError};
use process_api::Size;
use rustix::process::Pid;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixStream, unix::pipe},
    sync::oneshot,
    time::timeout,
};

use crate::{
    Agent,
    children::{Ended, Pipes, Streams},
    environment::{DEFAULT_TERM, StartError},
    link::{self, Refused, while_present},
    pty::{self, CLOSED_PAUSE, Pty},
    signal, splice,
};

/// What is read from a process at once: all that a pipe holds.
const PIECE: usize = 64 << 10;
/// The most that a pipe or a terminal can hold of what an ended process wrote.
const LEFT_MAX: usize = 1 << 20;
/// How long a process that was hung up can still write, to nobody, before its output is closed.
const HANG_UP_GRACE: Duration = Duration::from_secs(10);
/// What Ctrl-D types: the end of input at a terminal.
const END_OF_INPUT: &[u8] = b"\x04";

/// A process that runs and that nobody listens to yet.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) ended: oneshot::Receiver<Ended>,
    pub(crate) ends: Ends,
    pub(crate) manner: Manner,
}

/// Whose habits a process without a terminal follows at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// `docker exec`: orphans are not waited for, and a connection that breaks hangs the process up.
    Exec,
    /// `sshd`: what orphans write is waited for, a connection that breaks closes the streams and no more, and signals
    /// wait for nothing: they come by its mark.
    Session { mark: u64 },
}

#[derive(Debug)]
pub(crate) enum Ends {
    Tty(Pty),
    Pipes { stdin: Option<pipe::Sender>, stdout: pipe::Receiver, stderr: pipe::Receiver },
}

/// Starts the process, or says in words why not.
pub(crate) fn start(agent: &Agent, call: &Exec) -> Result<Process, Refused> {
    let mut extra = call.env.clone();
    if let Some(tty) = &call.tty {
        let term = tty.term.clone().unwrap_or_else(|| DEFAULT_TERM.to_owned());
        extra.entry("TERM".to_owned()).or_insert(term);
    }
    let around = agent.surroundings(&extra)?;
    let directory = match &call.cwd {
        Some(named) => around.directory(named)?,
        None => around.workdir(),
    };
    let mut command = around.command(&call.argv, &directory, call.tty.is_some())?;
    let system = |error| StartError::System(call.argv.first().cloned().unwrap_or_default(), error);

    let terminal = match &call.tty {
        Some(tty) => {
            let size = Size { cols: tty.cols, rows: tty.rows };
            Some(pty::open(size, around.account.uid).map_err(system)?)
        }
        None => None,
    };
    Ok(Process::spawn(agent, &mut command, terminal, Manner::Exec).map_err(system)?)
}

// === impl Process ===

impl Process {
    /// Starts `command` on a terminal (ours, and theirs), or on pipes where there is none.
    pub(crate) fn spawn(
        agent: &Agent,
        command: &mut Command,
        terminal: Option<(Pty, OwnedFd)>,
        manner: Manner,
    ) -> io::Result<Self> {
        let (child, ends) = if let Some((pty, theirs)) = terminal {
            (agent.children.spawn(command, Streams::terminal(theirs)?)?, Ends::Tty(pty))
        } else {
            let streams =
                Streams { stdin: Stdio::piped(), stdout: Stdio::piped(), stderr: Stdio::piped(), tty: false };
            let mut child = agent.children.spawn(command, streams)?;
            let ends = Ends::pipes(&mut child.pipes)?;
            (child, ends)
        };
        if let Manner::Session { mark } = manner {
            agent.sessions.borrow_mut().insert(mark, child.pid);
        }
        Ok(Self { pid: child.pid, ended: child.ended, ends, manner })
    }

    /// Carries the streams until the process has ended or the gateway is gone.
    pub(crate) async fn serve(mut self, agent: &Agent, stream: UnixStream) -> Result<(), ProtocolError> {
        let served = self.carry(agent, stream).await;
        if let Manner::Session { mark } = self.manner {
            agent.sessions.borrow_mut().remove(&mark);
        }
        let left_alone = self.manner != Manner::Exec && matches!(self.ends, Ends::Pipes { .. });
        if agent.children.running(self.pid) && !left_alone {
            agent.children.hang_up(self.pid);
            let _still_runs = timeout(HANG_UP_GRACE, self.discard_output()).await;
        }
        served
    }

    async fn carry(&mut self, agent: &Agent, stream: UnixStream) -> Result<(), ProtocolError> {
        let Self { pid, ended, ends, manner } = self;
        let (reader, writer) = link::stream(stream).await?;
        match ends {
            Ends::Tty(pty) => tokio::select! {
                shown = show(pty, ended, writer) => shown,
                typed = type_in(agent, *pid, pty, reader) => typed,
            },
            Ends::Pipes { stdin, stdout, stderr } => tokio::select! {
                sent = send_output(stdout, stderr, ended, writer, *manner) => sent,
                fed = feed(agent, *pid, stdin.take(), reader) => fed,
            },
        }
    }

    /// Reads for nobody until the process has ended, so that its last words do not kill it before it has tidied up.
    async fn discard_output(&mut self) {
        let ended = &mut self.ended;
        match &mut self.ends {
            Ends::Tty(pty) => {
                let discard = async {
                    let mut piece = vec![0; PIECE];
                    loop {
                        if !matches!(pty.read(&mut piece).await, Ok(1..)) {
                            tokio::time::sleep(CLOSED_PAUSE).await;
                        }
                    }
                };
                tokio::select! { _ = ended => {}, () = discard => {} }
            }
            Ends::Pipes { stdout, stderr, .. } => {
                let (mut nobody, mut nobody_either) = (tokio::io::sink(), tokio::io::sink());
                let discard = async {
                    let out = tokio::io::copy(stdout, &mut nobody);
                    let err = tokio::io::copy(stderr, &mut nobody_either);
                    let _closed = tokio::join!(out, err);
                    std::future::pending::<()>().await;
                };
                tokio::select! { _ = ended => {}, () = discard => {} }
            }
        }
    }
}

// --- with a terminal ---

async fn show(
    pty: &Pty,
    ended: &mut oneshot::Receiver<Ended>,
    mut writer: ChunkWriter,
) -> Result<(), ProtocolError> {
    let mut piece = vec![0; PIECE];
    let exit = loop {
        tokio::select! {
            read = pty.read(&mut piece) => match read {
                Ok(read) if read > 0 => writer.stdout(&piece[..read]).await?,
                Ok(_) | Err(_) => {
                    if let Ok(exit) = timeout(CLOSED_PAUSE, &mut *ended).await {
                        break exit.map_err(io::Error::other)?;
                    }
                }
            },
            exit = &mut *ended => break exit.map_err(io::Error::other)?,
        }
    };
    let mut left = LEFT_MAX;
    while left > 0
        && let Ok(read) = pty.read_now(&mut piece)
        && read > 0
    {
        writer.stdout(&piece[..read]).await?;
        left = left.saturating_sub(read);
    }
    writer.send(&Chunk::Exit(exit.into())).await
}

async fn type_in(agent: &Agent, pid: Pid, pty: &Pty, mut reader: ChunkReader) -> Result<(), ProtocolError> {
    while let Some(chunk) = reader.next().await? {
        match chunk {
            Chunk::Stdin(bytes) => while_present(reader.get_ref(), pty.write(&bytes)).await?,
            Chunk::CloseStdin => while_present(reader.get_ref(), pty.write(END_OF_INPUT)).await?,
            Chunk::Resize(size) => pty.resize(size),
            Chunk::Signal(name) => send_signal(agent, pid, &name),
            Chunk::Stdout(_) | Chunk::Stderr(_) | Chunk::Exit(_) => {}
        }
    }
    Ok(())
}

// --- with three pipes ---

async fn send_output(
    stdout: &mut pipe::Receiver,
    stderr: &mut pipe::Receiver,
    ended: &mut oneshot::Receiver<Ended>,
    mut writer: ChunkWriter,
    manner: Manner,
) -> Result<(), ProtocolError> {
    let (mut out, mut err) = (vec![0; PIECE], vec![0; PIECE]);
    let (mut out_open, mut err_open) = (true, true);
    let waits = manner != Manner::Exec;
    let exit = loop {
        if waits && !out_open && !err_open {
            break (&mut *ended).await.map_err(io::Error::other)?;
        }
        tokio::select! {
            read = stdout.read(&mut out), if out_open => match read {
                Ok(read) if read > 0 => writer.stdout(&out[..read]).await?,
                Ok(_) | Err(_) => out_open = false,
            },
            read = stderr.read(&mut err), if err_open => match read {
                Ok(read) if read > 0 => writer.stderr(&err[..read]).await?,
                Ok(_) | Err(_) => err_open = false,
            },
            exit = &mut *ended, if !waits => break exit.map_err(io::Error::other)?,
        }
    };
    let mut left = LEFT_MAX;
    while left > 0
        && let Some(read) = read_now(stdout.as_fd(), &mut out)
    {
        writer.stdout(&out[..read]).await?;
        left = left.saturating_sub(read);
    }
    left = LEFT_MAX;
    while left > 0
        && let Some(read) = read_now(stderr.as_fd(), &mut err)
    {
        writer.stderr(&err[..read]).await?;
        left = left.saturating_sub(read);
    }
    writer.send(&Chunk::Exit(exit.into())).await
}

async fn feed(
    agent: &Agent,
    pid: Pid,
    mut stdin: Option<pipe::Sender>,
    mut reader: ChunkReader,
) -> Result<(), ProtocolError> {
    let mut can_splice = true;
    loop {
        if let Some(pipe) = &stdin
            && can_splice
        {
            can_splice = splice::input(&mut reader, pipe).await?;
        }
        let Some(chunk) = reader.next().await? else { return Ok(()) };
        match chunk {
            Chunk::Stdin(bytes) => {
                if let Some(pipe) = &mut stdin {
                    match while_present(reader.get_ref(), pipe.write_all(&bytes)).await {
                        // The program does not read any more, which is its right.
                        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => stdin = None,
                        result => result?,
                    }
                }
            }
            Chunk::CloseStdin => stdin = None,
            Chunk::Signal(name) => send_signal(agent, pid, &name),
            Chunk::Resize(_) | Chunk::Stdout(_) | Chunk::Stderr(_) | Chunk::Exit(_) => {}
        }
    }
}

fn read_now(pipe: BorrowedFd<'_>, into: &mut [u8]) -> Option<usize> {
    rustix::io::read(pipe, into).ok().filter(|read| *read > 0)
}

/// To the whole group, as from a keyboard. A name that means nothing is ignored.
pub(crate) fn send_signal(agent: &Agent, pid: Pid, name: &str) {
    if let Some(signal) = signal::by_name(name) {
        agent.children.signal(pid, signal);
    }
}

// === impl Ends, Streams ===

impl Ends {
    pub(crate) fn pipes(pipes: &mut Pipes) -> io::Result<Self> {
        let taken = (pipes.stdin.take(), pipes.stdout.take(), pipes.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = taken else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self::Pipes {
            stdin: Some(pipe::Sender::from_owned_fd(stdin.into())?),
            stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
        })
    }
}

impl Streams {
    /// All three are the terminal.
    pub(crate) fn terminal(theirs: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            stdin: theirs.try_clone()?.into(),
            stdout: theirs.try_clone()?.into(),
            stderr: theirs.into(),
            tty: true,
        })
    }
}
