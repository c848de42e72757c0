//! A valve in the pipe between envd and its engine: the engine seems to hang, to be slow, or to talk nonsense, while
//! nothing at all is done to it.
//!
//! Threads and blocking calls, so that it goes on whatever the test itself is busy with.

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

use crate::OrFail as _;

/// No HTTP of any version.
const NOT_HTTP: &[u8] = b"\x16\x03\x01 every good boy deserves fruit\r\n\r\n";
/// HTTP, but nothing that an engine would say.
const NOT_AN_ENGINE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 20\r\n\r\n<html>Hello!</html>\n";

#[derive(Debug)]
pub struct Valve {
    shared: Arc<Shared>,
    directory: TempDir,
}

#[derive(Debug)]
struct Shared {
    engine: PathBuf,
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug)]
struct Now {
    mode: Mode,
    /// Requests that came while it hung or was slow.
    held: usize,
    /// The connections of those that came while it hung.
    hung: Vec<UnixStream>,
    /// Answers that were nonsense.
    nonsense: usize,
    /// A container whose last run the engine seems to hold on to.
    clings_to: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    Hung,
    Slow(Duration),
    Nonsense,
    Over,
}

impl Valve {
    /// An open one before the engine that listens at `engine`.
    pub fn new(engine: &Path) -> Self {
        let directory = tempfile::Builder::new().prefix("berth-valve-").tempdir_in("/tmp");
        let directory = directory.or_fail("make a directory");
        let now = Now { mode: Mode::Open, held: 0, hung: Vec::new(), nonsense: 0, clings_to: None };
        let shared =
            Arc::new(Shared { engine: engine.to_owned(), now: Mutex::new(now), changed: Condvar::new() });
        let valve = Self { shared: Arc::clone(&shared), directory };
        let listener = UnixListener::bind(valve.socket()).or_fail("listen on a socket");
        thread::spawn(move || accept(&listener, &shared));
        valve
    }

    /// Where to ask for the engine.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("docker.sock")
    }

    /// Nothing gets through any more, in either direction; connections stay.
    pub fn hang(&self) {
        self.turn(Mode::Hung);
    }

    /// Every request takes so long to get through.
    pub fn slow_down(&self, delay: Duration) {
        self.turn(Mode::Slow(delay));
    }

    /// Every request gets an answer that makes no sense.
    pub fn talk_nonsense(&self) {
        self.turn(Mode::Nonsense);
    }

    /// The engine says of this container's starts what one says that has missed the end of its last run.
    pub fn cling_to(&self, container: &str) {
        self.shared.now().clings_to = Some(container.to_owned());
    }

    /// All is well again.
    pub fn open(&self) {
        self.turn(Mode::Open);
    }

    /// Requests that were held back since it hangs or is slow.
    pub fn held(&self) -> usize {
        self.shared.now().held
    }

    /// Returns the requests that wait since it hangs.
    pub fn pending(&self) -> Pending {
        let now = self.shared.now();
        let open = now.hung.iter().filter(|request| is_open(request));
        Pending(open.filter_map(|request| request.try_clone().ok()).collect())
    }

    /// Answers so far that made no sense.
    pub fn nonsense(&self) -> usize {
        self.shared.now().nonsense
    }

    fn turn(&self, mode: Mode) {
        let mut now = self.shared.now();
        now.mode = mode;
        now.held = 0;
        now.hung.clear();
        self.shared.changed.notify_all();
    }
}

/// Requests that wait at a [`Valve`] that hangs.
#[derive(Debug)]
pub struct Pending(Vec<UnixStream>);

impl Pending {
    /// Returns `false` once envd has given up all of them.
    pub fn any_waits(&self) -> bool {
        self.0.iter().any(is_open)
    }
}

/// Returns `true` until the other side gives up.
fn is_open(stream: &UnixStream) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(stream, PollFlags::RDHUP)], Some(&at_once)) == Ok(0)
}

impl Drop for Valve {
    fn drop(&mut self) {
        self.turn(Mode::Over);
        // Somebody must knock for the listener to see it.
        let _ = UnixStream::connect(self.socket());
    }
}

impl Shared {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while it hangs, and for a while when it is slow. `from` is the connection of what wants to pass.
    fn pass(&self, from: &UnixStream, is_request: bool) -> Mode {
        let mut now = self.now();
        if matches!(now.mode, Mode::Hung | Mode::Slow(_)) && is_request {
            now.held += 1;
        }
        if now.mode == Mode::Hung && is_request {
            now.hung.extend(from.try_clone());
        }
        if let Mode::Slow(delay) = now.mode
            && is_request
        {
            let waited = self.changed.wait_timeout_while(now, delay, |now| now.mode == Mode::Slow(delay));
            now = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        while now.mode == Mode::Hung {
            now = self.changed.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        now.mode
    }

    /// The answer to a start of the container that it clings to.
    fn refusal(&self, request: &[u8]) -> Option<String> {
        let container = self.now().clings_to.clone()?;
        let line = String::from_utf8_lossy(request.split(|byte| *byte == b'\r').next()?);
        if !line.contains(&format!("/containers/{container}/start")) {
            return None;
        }
        let said = format!(r#"{{"message":"task {container}: already exists"}}"#);
        let head = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json";
        Some(format!("{head}\r\nContent-Length: {}\r\n\r\n{said}", said.len()))
    }
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    while let Ok((client, _)) = listener.accept() {
        if shared.now().mode == Mode::Over {
            return;
        }
        let (Ok(engine), shared) = (UnixStream::connect(&shared.engine), Arc::clone(shared)) else {
            continue;
        };
        let (Ok(client_too), Ok(engine_too)) = (client.try_clone(), engine.try_clone()) else { continue };
        let shared_too = Arc::clone(&shared);
        thread::spawn(move || carry(client, engine, &shared, true));
        thread::spawn(move || carry(engine_too, client_too, &shared_too, false));
    }
}

/// Carries bytes one way until an end ends.
fn carry(mut from: UnixStream, mut to: UnixStream, shared: &Shared, is_request: bool) {
    let mut bytes = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        let mode = shared.pass(&from, is_request);
        if is_request && let Some(refusal) = shared.refusal(&bytes[..read]) {
            let _ = from.write_all(refusal.as_bytes());
            continue;
        }
        match mode {
            Mode::Open | Mode::Hung | Mode::Slow(_) => {
                if to.write_all(&bytes[..read]).is_err() {
                    break;
                }
            }
            Mode::Nonsense if is_request => {
                let answer = {
                    let mut now = shared.now();
                    now.nonsense += 1;
                    if now.nonsense.is_multiple_of(2) { NOT_HTTP } else { NOT_AN_ENGINE }
                };
                // It may have hung up meanwhile.
                let _ = from.write_all(answer);
                break;
            }
            Mode::Nonsense | Mode::Over => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
