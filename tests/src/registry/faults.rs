//! What stands before a registry and does to some requests what networks and disks do: refuses them, cuts them off half
//! way, holds them back. All others pass.
//!
//! Threads and blocking calls, so that it goes on whatever the test itself is busy with. Each connection carries one
//! request.

use std::{
    io::{self, Read, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use crate::OrFail as _;

/// The most of a request's head.
const HEAD_MAX: usize = 64 << 10;
/// What is passed on at once.
const PIECE: usize = 64 << 10;

/// What becomes of the requests that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// They are answered in the registry's place, with this status.
    Answer(u16, &'static str),
    /// The connection ends after this many bytes of what is sent.
    Cut(usize),
    /// The registry gets this many bytes of the request, and the rest when another fault is set.
    Hold(usize),
    /// Each piece of what is sent takes this long.
    Slow(Duration),
    /// Those for layers do not reach the registry, until something else is to be done.
    KeepLayers,
}

/// A proxy before a registry.
#[derive(Debug)]
pub struct Faults {
    shared: Arc<Shared>,
    address: String,
}

#[derive(Debug)]
struct Shared {
    registry: String,
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    /// The method and the fault, if there is one, and to how many requests more.
    fault: Option<(&'static str, Fault, usize)>,
    /// Requests that it was done to.
    done: usize,
    /// Requests of which bytes were held back.
    held: usize,
}

impl Faults {
    /// Before the registry at `registry`; nothing is wrong yet.
    pub(super) fn before(registry: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").or_fail("listen for a registry");
        let address = listener.local_addr().or_fail("listen for a registry").to_string();
        let shared = Arc::new(Shared {
            registry: registry.to_owned(),
            now: Mutex::default(),
            changed: Condvar::new(),
        });
        let faults = Self { shared: Arc::clone(&shared), address };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // Whoever is cut off sees it; there is nobody else to tell.
                thread::spawn(move || drop(shared.serve(client)));
            }
        });
        faults
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// From now on, to all requests of this method.
    pub fn all(&self, method: &'static str, fault: Fault) {
        self.next(usize::MAX, method, fault);
    }

    /// To the next so many requests of this method.
    pub fn next(&self, count: usize, method: &'static str, fault: Fault) {
        self.shared.now().fault = Some((method, fault, count));
        self.shared.changed.notify_all();
    }

    /// Nothing is wrong any more.
    pub fn none(&self) {
        self.shared.now().fault = None;
        self.shared.changed.notify_all();
    }

    /// To how many requests something was done.
    pub fn done(&self) -> usize {
        self.shared.now().done
    }

    /// Counts requests of which bytes were held back.
    pub fn held(&self) -> usize {
        self.shared.now().held
    }
}

impl Shared {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault_for(&self, method: &str) -> Option<Fault> {
        let mut now = self.now();
        let (which, fault, left) = now.fault.as_mut()?;
        if *which != method || *left == 0 {
            return None;
        }
        *left -= 1;
        let fault = *fault;
        now.done += 1;
        Some(fault)
    }

    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let (head, rest) = read_head(&mut client)?;
        let method = head.split(' ').next().unwrap_or_default().to_owned();
        let fault = self.fault_for(&method);
        if let Some(Fault::Answer(status, said)) = fault {
            let length = said.len();
            let answer = format!(
                "HTTP/1.1 {status} Fault\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{said}"
            );
            client.write_all(answer.as_bytes())?;
            client.shutdown(Shutdown::Write)?;
            // Until it has been read: a reset would take the answer away.
            return io::copy(&mut client, &mut io::sink()).map(drop);
        }
        if fault == Some(Fault::KeepLayers) && head.contains("/blobs/") {
            let kept = |now: &mut Now| matches!(now.fault, Some((_, Fault::KeepLayers, _)));
            drop(self.changed.wait_while(self.now(), kept));
        }
        let mut registry = TcpStream::connect(&self.registry)?;
        let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        registry.write_all(head.as_bytes())?;
        let (mut back, mut to) = (registry.try_clone()?, client.try_clone()?);
        let answers = thread::spawn(move || {
            let _ = io::copy(&mut back, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
        let sent = self.send(fault, &rest, &mut client, &mut registry);
        if sent.is_err() || matches!(fault, Some(Fault::Cut(_))) {
            let _ = registry.shutdown(Shutdown::Both);
            let _ = client.shutdown(Shutdown::Both);
        }
        let _ = answers.join();
        sent
    }

    /// Passes on what follows a request's head.
    fn send(
        &self,
        fault: Option<Fault>,
        first: &[u8],
        client: &mut TcpStream,
        registry: &mut TcpStream,
    ) -> io::Result<()> {
        let mut left = if let Some(Fault::Cut(bytes)) = fault { bytes } else { usize::MAX };
        let mut passes = if let Some(Fault::Hold(bytes)) = fault { bytes } else { usize::MAX };
        let mut piece = vec![0; PIECE];
        let mut length = first.len();
        piece[..length].copy_from_slice(first);
        loop {
            match fault {
                Some(Fault::Hold(_)) if length > passes => {
                    registry.write_all(&piece[..passes])?;
                    piece.copy_within(passes..length, 0);
                    length -= passes;
                    passes = usize::MAX;
                    let mut now = self.now();
                    now.held += 1;
                    let held = |now: &mut Now| matches!(now.fault, Some((_, Fault::Hold(_), _)));
                    drop(self.changed.wait_while(now, held));
                }
                Some(Fault::Hold(_)) => passes -= length,
                Some(Fault::Slow(pause)) => thread::sleep(pause),
                Some(Fault::Answer(..) | Fault::Cut(_) | Fault::KeepLayers) | None => {}
            }
            registry.write_all(&piece[..length.min(left)])?;
            left = left.saturating_sub(length);
            if left == 0 {
                return Ok(());
            }
            length = client.read(&mut piece)?;
            if length == 0 {
                return Ok(());
            }
        }
    }
}

/// A request's head with the empty line, and what came with it.
fn read_head(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let length = client.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..length]);
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(at + 4);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
        if length == 0 || bytes.len() > HEAD_MAX {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
