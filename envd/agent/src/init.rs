//! The life of PID 1: reap, run the command or wait, pass signals on, end.
//!
//! With a command the instance is that command: signals go to its process group, and the agent ends with its exit
//! code, 128 and the number for a signal, 127 when it cannot be run; a task's may be run again before that. Without one the agent stays until it is told to
//! stop, and then gives everything in the instance a chance to end.

use std::{collections::BTreeMap, future::pending, io, process::Stdio, rc::Rc, time::Duration};

use rustix::process::{Pid, Signal};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::Instant,
};

use crate::{
    Agent,
    again::Tries,
    children::{Child, Streams, sweep},
    complain,
    environment::StartError,
    link,
};

/// What processes get to end after they were told, before they are killed.
const STOP_GRACE: Duration = Duration::from_secs(8);
/// How often it is looked whether all have ended.
const STOP_CHECK: Duration = Duration::from_millis(20);
/// The exit code of a command that cannot be run, as shells give it.
const CANNOT_RUN: u8 = 127;
/// The exit code of a command that was stopped before it began: that of one which `SIGTERM` ended.
const STOPPED_BEFORE: u8 = 143;
/// Signals that are passed on to the command; of these `TERM`, `INT` and `QUIT` stop an instance without one.
const PASSED_ON: [Signal; 7] =
    [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::USR1, Signal::USR2, Signal::WINCH];

const STOPPING: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::QUIT];

/// Lives. The result is the agent's exit code.
pub(crate) async fn run(agent: Rc<Agent>) -> io::Result<u8> {
    if rustix::process::getpid() != Pid::INIT {
        // Somebody else is PID 1: orphans come here all the same.
        let _as_it_is = rustix::process::set_child_subreaper(Some(Pid::INIT));
    }
    reap(&agent)?;
    let mut signals = signals(&agent)?;
    agent.tasks.spawn_local(link::keep(Rc::clone(&agent)));
    if agent.spec.hold && !may_begin(&agent, &mut signals).await {
        return Ok(STOPPED_BEFORE);
    }
    if agent.spec.command.is_empty() {
        return wait_for_stop(&agent, &mut signals).await;
    }
    accompany(&agent, &mut signals).await
}

/// Waits for the word to begin; `false` if the instance is stopped before it comes.
async fn may_begin(agent: &Agent, signals: &mut mpsc::Receiver<Signal>) -> bool {
    loop {
        tokio::select! {
            () = agent.begin.notified() => return true,
            signal = next(signals) => {
                if STOPPING.contains(&signal) {
                    return false;
                }
            }
        }
    }
}

fn start(agent: &Agent) -> Result<Child, StartError> {
    let surroundings = agent.surroundings(&BTreeMap::new())?;
    let told = agent.begun.get().map(|begun| &begun.command).filter(|command| !command.is_empty());
    let argv = told.unwrap_or(&agent.spec.command);
    let mut command = surroundings.command(argv, &surroundings.workdir(), false)?;
    let streams =
        Streams { stdin: Stdio::inherit(), stdout: Stdio::inherit(), stderr: Stdio::inherit(), tty: false };
    agent
        .children
        .spawn(&mut command, streams)
        .map_err(|error| StartError::System(argv.first().cloned().unwrap_or_default(), error))
}

/// Runs the command, once more where its job asks for that, and ends as it did the last time.
async fn accompany(agent: &Agent, signals: &mut mpsc::Receiver<Signal>) -> io::Result<u8> {
    let mut tries = Tries::new(agent.begun.get().and_then(|begun| begun.again.clone()));
    loop {
        let Ran { code, stopped, pid } = run_once(agent, signals).await?;
        let Some(pause) = tries.next(code).filter(|_| !stopped) else { return Ok(code) };
        // What it left behind would be in the way of the next one.
        pid.into_iter().for_each(sweep);
        complain(&format!("it ended with exit code {code} and is run again ({})", tries.count()));
        if is_stopped_within(pause, signals).await {
            return Ok(code);
        }
        tries.begin();
    }
}

/// What came of one run of the command.
struct Ran {
    code: u8,
    /// The instance was told to stop meanwhile.
    stopped: bool,
    /// If it could be started.
    pid: Option<Pid>,
}

async fn run_once(agent: &Agent, signals: &mut mpsc::Receiver<Signal>) -> io::Result<Ran> {
    let mut child = match start(agent) {
        Ok(child) => child,
        Err(error) => {
            complain(&error.to_string());
            return Ok(Ran { code: CANNOT_RUN, stopped: false, pid: None });
        }
    };
    let mut stopped = false;
    loop {
        tokio::select! {
            ended = &mut child.ended => {
                let code = ended.map(crate::children::Ended::code).map_err(io::Error::other)?;
                return Ok(Ran { code, stopped, pid: Some(child.pid) });
            }
            signal = next(signals) => {
                stopped |= STOPPING.contains(&signal);
                agent.children.signal(child.pid, signal);
            }
        }
    }
}

async fn is_stopped_within(pause: Duration, signals: &mut mpsc::Receiver<Signal>) -> bool {
    let over = tokio::time::sleep(pause);
    tokio::pin!(over);
    loop {
        tokio::select! {
            signal = next(signals) => {
                if STOPPING.contains(&signal) {
                    return true;
                }
            }
            () = &mut over => return false,
        }
    }
}

async fn wait_for_stop(agent: &Agent, signals: &mut mpsc::Receiver<Signal>) -> io::Result<u8> {
    while !STOPPING.contains(&next(signals).await) {}
    agent.children.signal_all(Signal::TERM);
    // What is stopped must wake to end.
    agent.children.signal_all(Signal::CONT);
    let deadline = Instant::now() + STOP_GRACE;
    while agent.children.reap() && Instant::now() < deadline {
        agent.children.hang_up_idle_shells();
        tokio::time::sleep(STOP_CHECK).await;
    }
    agent.children.signal_all(Signal::KILL);
    Ok(0)
}

async fn next(signals: &mut mpsc::Receiver<Signal>) -> Signal {
    match signals.recv().await {
        Some(signal) => signal,
        None => pending().await,
    }
}

/// Reaps whenever a child ends, for as long as the agent lives.
fn reap(agent: &Rc<Agent>) -> io::Result<()> {
    let mut ended = signal(SignalKind::child())?;
    let agent_too = Rc::clone(agent);
    agent.tasks.spawn_local(async move {
        while ended.recv().await.is_some() {
            agent_too.children.reap();
        }
    });
    Ok(())
}

/// The signals that come to the agent, in one queue.
fn signals(agent: &Agent) -> io::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(PASSED_ON.len());
    for which in PASSED_ON {
        let mut coming = signal(SignalKind::from_raw(which.as_raw()))?;
        let sender = sender.clone();
        agent.tasks.spawn_local(async move {
            while coming.recv().await.is_some() {
                if sender.send(which).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(receiver)
}
