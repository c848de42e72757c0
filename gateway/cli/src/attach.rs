//! A process elsewhere, joined to the terminal and pipes here.
//!
//! Three things go on at once and none holds up the others: what it writes is written here, what is typed here goes to
//! it, and signals are heard. The first that comes to an end decides; the terminal is then as it was.

use std::{
    future::{Future, pending},
    time::Duration,
};

use gateway_api::{
    client::{ClientError, Process, ProcessEvent, ProcessInput, ProcessOutput, StandardStream},
    stream::Exit,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, stderr, stdin, stdout},
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use crate::terminal::{self, Changed};

/// Ctrl-].
const DETACH: u8 = 0x1d;
/// How often a silent connection shows that it is alive; proxies cut one after a minute.
const PING_EVERY: Duration = Duration::from_secs(20);
/// How many signals it takes to leave a process that does not heed them.
const SIGNALS_TO_LEAVE: u32 = 3;
const STDIN_PIECE: usize = 32 << 10;

/// How to join.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joint {
    /// The process has a terminal: ours becomes raw, and its size follows ours.
    pub(crate) tty: bool,
    /// What is typed or piped here goes to the process.
    pub(crate) stdin: bool,
    /// Ctrl-] leaves.
    pub(crate) detach: bool,
}

/// How it ended for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    Exit(Exit),
    Detached,
    /// We were told to go, by this signal.
    Signal(u8),
}

/// What there is to say to the process besides its input.
enum Notice {
    Signal(&'static str),
    Resize,
}

/// Joins the process to this terminal until one of the two ends.
pub(crate) async fn attach(process: Process, joint: Joint) -> anyhow::Result<Ended> {
    let Process { mut input, mut output } = process;
    let raw = (joint.tty && joint.stdin && terminal::is_attended()).then(Changed::raw).transpose()?;
    let joint = Joint { detach: joint.detach && raw.is_some(), ..joint };
    let (notices, mut heard) = mpsc::channel(16);
    let ended = tokio::select! {
        ended = hear(&mut output) => ended,
        () = feed(&mut input, joint, &mut heard) => Ok(Ended::Detached),
        ended = listen(raw.is_some(), joint.tty, notices) => ended,
    };
    drop(raw);
    input.leave().await;
    ended
}

/// Does `work` while showing now and then that somebody is there. Who looks at a pager for an hour keeps it from taking
/// more, so nothing of the connection is read meanwhile, not even the question whether anybody is there.
pub(crate) async fn patiently<T>(mut input: ProcessInput, work: impl Future<Output = T>) -> T {
    showing_presence(PING_EVERY, async || input.ping().await.is_ok(), work).await
}

async fn showing_presence<T>(
    every: Duration,
    mut show: impl AsyncFnMut() -> bool,
    work: impl Future<Output = T>,
) -> T {
    let presence = async {
        let mut ping = interval(every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ping.tick().await;
            if !show().await {
                // The connection is broken, which whoever reads it says better.
                return pending().await;
            }
        }
    };
    tokio::select! { done = work => done, never = presence => never }
}

/// Writes what the process writes, until it ends.
async fn hear(output: &mut ProcessOutput) -> anyhow::Result<Ended> {
    let (mut out, mut err) = (stdout(), stderr());
    while let Some(event) = output.next().await {
        match event? {
            ProcessEvent::Output { stream: StandardStream::Stdout, bytes } => {
                out.write_all(&bytes).await?;
                out.flush().await?;
            }
            ProcessEvent::Output { stream: StandardStream::Stderr, bytes } => {
                err.write_all(&bytes).await?;
                err.flush().await?;
            }
            ProcessEvent::Exit(exit) => return Ok(Ended::Exit(exit)),
            ProcessEvent::Problem(problem) => return Err(ClientError::Problem(problem).into()),
        }
    }
    Err(output.cut_off().into())
}

/// Sends input and notices. Returns only to detach: when the connection breaks, what is heard says more.
async fn feed(input: &mut ProcessInput, joint: Joint, notices: &mut mpsc::Receiver<Notice>) {
    match send(input, joint, notices).await {
        Ok(()) => {}
        Err(_broken) => pending().await,
    }
}

async fn send(
    input: &mut ProcessInput,
    joint: Joint,
    notices: &mut mpsc::Receiver<Notice>,
) -> Result<(), ClientError> {
    let mut keys = stdin();
    let mut open = joint.stdin;
    let mut piece = vec![0; STDIN_PIECE];
    let mut ping = interval(PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if !open {
        input.close_stdin().await?;
    }
    loop {
        tokio::select! {
            read = keys.read(&mut piece), if open => match read {
                Ok(0) | Err(_) => {
                    open = false;
                    input.close_stdin().await?;
                }
                Ok(length) => {
                    let typed = &piece[..length];
                    let detach = typed.iter().position(|&byte| joint.detach && byte == DETACH);
                    input.write(&typed[..detach.unwrap_or(length)]).await?;
                    if detach.is_some() {
                        return Ok(());
                    }
                }
            },
            Some(notice) = notices.recv() => match notice {
                Notice::Signal(name) => input.signal(name).await?,
                Notice::Resize => if let Some(size) = terminal::size() {
                    input.resize(size).await?;
                },
            },
            _ = ping.tick() => input.ping().await?,
        }
    }
}

/// Hears signals. Without a raw terminal they are for the process, until there are too many of them; with one, keys
/// are keys, and a signal comes from outside and is for us.
async fn listen(raw: bool, tty: bool, notices: mpsc::Sender<Notice>) -> anyhow::Result<Ended> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut resized = signal(SignalKind::window_change())?;
    let mut heard = 0;
    loop {
        let name = tokio::select! {
            _ = hang_up.recv() => "HUP",
            _ = interrupt.recv() => "INT",
            _ = quit.recv() => "QUIT",
            _ = terminate.recv() => "TERM",
            _ = resized.recv() => {
                if tty {
                    // A full queue holds a resize already, and the size is read when that is sent.
                    let _ = notices.try_send(Notice::Resize);
                }
                continue;
            }
        };
        heard += 1;
        if raw || heard >= SIGNALS_TO_LEAVE {
            return Ok(Ended::Signal(signal_number(name).unwrap_or_default()));
        }
        let _ = notices.try_send(Notice::Signal(name));
    }
}

/// The number of a signal on Linux by its name without `SIG`.
pub(crate) fn signal_number(name: &str) -> Option<u8> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let index = NAMES.iter().position(|&known| known == name)?;
    u8::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_who_takes_nothing_is_still_there() {
        let (mut pager, mut screen) = tokio::io::duplex(4);
        let (shown, mut heard) = mpsc::channel(16);
        let write = async {
            pager.write_all(b"more than fits").await.unwrap();
            drop(pager);
        };
        let work = async {
            // The pager takes the rest once presence was shown three times.
            let read = async {
                for _ in 0..3 {
                    heard.recv().await;
                }
                let mut all = String::new();
                screen.read_to_string(&mut all).await.unwrap();
                all
            };
            tokio::join!(write, read).1
        };
        let show = async || shown.try_send(()).is_ok();
        assert_eq!(showing_presence(Duration::from_millis(1), show, work).await, "more than fits");
        // A connection that is broken does not end what is still to be read of it.
        let work = tokio::time::sleep(Duration::from_millis(5));
        showing_presence(Duration::from_millis(1), async || false, work).await;
    }

    #[test]
    fn signals_have_their_numbers() {
        for (name, number) in [("HUP", 1), ("KILL", 9), ("SEGV", 11), ("TERM", 15), ("SYS", 31)] {
            assert_eq!(signal_number(name), Some(number));
        }
        assert_eq!(signal_number("NONE"), None);
    }
}
