//! The agent: PID 1 of every instance, static, mounted read-only, so that any image works, down to one without a
//! shell.
//!
//! It reaps, runs the instance's command and ends with its exit code ([`init`]), and answers the gateway over the
//! instance's own door ([`link`]): dial a port, run a process, keep a terminal, start an app, serve SFTP, listen. It
//! knows no users, no other instance
//! and no path on the host. It is one thread; nothing in it waits but by `await`.
//!
//! Every process it starts goes through [`enter`]: the agent executes itself once more, becomes the image's user and
//! then the program. That needs no code between `fork` and `exec`, and hence no unsafe code.
//!
//! It writes to standard error only when it cannot do its work: that stream belongs to the user's command.

mod account;
mod again;
mod app;
mod children;
mod code;
mod dial;
mod enter;
mod environment;
mod exec;
mod init;
mod link;
mod links;
mod listen;
mod modes;
mod program;
mod pty;
mod resolve;
mod room;
mod scp;
mod scrollback;
mod secrets;
mod session;
mod sftp;
mod signal;
mod splice;
mod terminal;

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    rc::Rc,
};

use envd_api::agent::{AgentSpec, Begin, DOOR, FETCH_CODE, ROOM, SOCKET, SPEC};
use rustix::process::Pid;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::{
    app::Apps,
    children::Children,
    environment::{StartError, Surroundings},
    terminal::Terminals,
};

/// The exit code when the instance's own set-up is at fault, not its command.
const BAD_SETUP: u8 = 78;

/// What all parts of the agent share. One thread, so nothing here is locked.
#[derive(Debug)]
struct Agent {
    spec: AgentSpec,
    /// What came with the word to begin, for an agent that was told to wait for it.
    begun: tokio::sync::OnceCell<Begin>,
    begin: tokio::sync::Notify,
    socket: PathBuf,
    children: Children,
    terminals: Terminals,
    apps: Apps,
    /// The processes of sessions, by the marks that the gateway gave them.
    sessions: RefCell<HashMap<u64, Pid>>,
    /// One permit for each answer under way.
    answers: Semaphore,
    /// The owner of every task.
    tasks: TaskTracker,
}

impl Agent {
    /// What every process finds around it, with `extra` on top.
    fn surroundings(&self, extra: &BTreeMap<String, String>) -> Result<Surroundings, StartError> {
        match self.begun.get() {
            None => Surroundings::new(&self.spec, extra),
            Some(begun) => {
                let mut all = begun.env.clone();
                all.extend(extra.clone());
                Surroundings::new(&self.spec, &all)
            }
        }
    }
}

/// Serves an instance, or does one of the smaller jobs that the first argument names.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let door = match arguments.next() {
        Some(first) if first == enter::ARGUMENT => return enter::enter(arguments),
        Some(first) if first == scp::ARGUMENT => return scp::run(arguments),
        Some(first) if first == ROOM => return room::serve(&arguments.next().unwrap_or_default()),
        Some(first) if first == FETCH_CODE => return code::fetch(&arguments.next().unwrap_or_default()),
        // For tests only: a door elsewhere.
        Some(first) if first == "--door" => {
            PathBuf::from(arguments.next().unwrap_or_else(|| OsString::from(DOOR)))
        }
        Some(_) | None => PathBuf::from(DOOR),
    };
    match run(&door) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(BAD_SETUP)
        }
    }
}

fn run(door: &Path) -> io::Result<u8> {
    let spec = read_spec(&door.join(SPEC))?;
    links::make(&spec.links)?;
    links::offer(&spec.aliases);
    code::show(&spec);
    let agent = Rc::new(Agent {
        spec,
        begun: tokio::sync::OnceCell::new(),
        begin: tokio::sync::Notify::new(),
        socket: door.join(SOCKET),
        children: Children::default(),
        terminals: Terminals::default(),
        apps: Apps::default(),
        sessions: RefCell::default(),
        answers: Semaphore::new(link::ANSWERS_MAX),
        tasks: TaskTracker::new(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, init::run(agent))
}

fn read_spec(path: &Path) -> io::Result<AgentSpec> {
    let wrong = |error: &dyn std::fmt::Display| {
        io::Error::other(format!("the instance's specification `{}` cannot be read: {error}", path.display()))
    };
    let text = std::fs::read(path).map_err(|error| wrong(&error))?;
    serde_json::from_slice(&text).map_err(|error| wrong(&error))
}

/// A sentence on standard error, for the instance's log.
fn complain(sentence: &str) {
    let _nobody_listens = writeln!(io::stderr(), "berth: {sentence}");
}
