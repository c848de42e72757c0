//! One instance's door: the socket that its agent connects to, the link, and the answers that are awaited.
//!
//! The socket lives in a directory that the instance sees read-only. Whoever is root in the instance can connect as
//! often as they like, so connections that have not greeted are few and short-lived, an answer must name a request
//! that is awaited, and of several links the newest counts.

use std::{
    collections::HashMap,
    io,
    os::{fd::AsRawFd, unix::net::UnixListener as StdUnixListener},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use envd_api::agent::{Call, Greeting, ProtocolError, Request, SOCKET, encode, read_message};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{AgentError, BROKEN_LINK_GRACE};
use crate::tasks::Tasks;

/// How long a connection may take to say what it is for.
const GREETING_LIMIT: Duration = Duration::from_secs(5);
/// How long the agent may take to read a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// Connections of one instance that have not said what they are for.
pub(super) const UNGREETED_MAX: usize = 64;
/// Calls to one instance that have no answer yet; the rest waits for its turn. Fewer than [`UNGREETED_MAX`], so that no
/// answer of an honest agent is turned away.
const UNANSWERED_MAX: usize = 48;
/// Requests that wait to be written to the link.
const REQUEST_QUEUE: usize = 16;
/// The pause after the system refused to accept a connection, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// An open door.
#[derive(Debug)]
pub(super) struct Door {
    /// The socket's device and inode: tells whether the path still leads here.
    identity: (u64, u64),
    link: watch::Sender<Option<Link>>,
    awaited: Mutex<HashMap<u64, oneshot::Sender<UnixStream>>>,
    unanswered: Semaphore,
    ungreeted: Arc<Semaphore>,
    next: AtomicU64,
    closed: CancellationToken,
}

/// The way to the agent. It ends when its last copy but the door's own is gone, or the door has a newer one.
#[derive(Debug, Clone)]
pub(super) struct Link {
    number: u64,
    /// Whole messages: what is too long for one must not get as far as the link, which it would break.
    requests: mpsc::Sender<Vec<u8>>,
}

/// A request whose answer is awaited; forgotten when dropped.
struct Awaited<'a> {
    door: &'a Door,
    number: u64,
}

// === impl Door ===

impl Door {
    /// Listens in the door's directory, in place of whoever did before.
    pub(super) fn open(directory: &Path, tasks: &Tasks) -> io::Result<Arc<Self>> {
        let (listener, identity) = listen(&directory.join(SOCKET))?;
        let door = Arc::new(Self {
            identity,
            link: watch::Sender::new(None),
            awaited: Mutex::default(),
            unanswered: Semaphore::new(UNANSWERED_MAX),
            ungreeted: Arc::new(Semaphore::new(UNGREETED_MAX)),
            // Not from one: an answer to an earlier gateway must not pass for an answer to this one.
            next: AtomicU64::new(rand::random::<u64>() >> 1),
            closed: tasks.stopping().child_token(),
        });
        tasks.spawn("agent door", Arc::clone(&door).accept(listener, tasks.clone()));
        Ok(door)
    }

    /// The socket in the directory is this door's.
    pub(super) fn is_in(&self, directory: &Path) -> bool {
        rustix::fs::lstat(directory.join(SOCKET)).is_ok_and(|stat| identity(&stat) == self.identity)
    }

    pub(super) fn is_linked(&self) -> bool {
        self.link.borrow().is_some()
    }

    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// Waits until there is a link.
    pub(super) async fn link(&self) -> Result<Link, AgentError> {
        let mut links = self.link.subscribe();
        tokio::select! {
            link = links.wait_for(Option::is_some) => {
                link.ok().and_then(|link| link.clone()).ok_or(AgentError::NotLinked)
            }
            () = self.closed.cancelled() => Err(AgentError::NotLinked),
        }
    }

    /// Puts a request on the link and waits for the connection that answers it.
    pub(super) async fn ask(&self, link: &Link, call: Call) -> Result<UnixStream, AgentError> {
        let _permit = self.unanswered.acquire().await.map_err(|_| AgentError::NotLinked)?;
        let (awaited, answer) = self.expect_answer();
        let request = encode(&Request { request: awaited.number, call })?;
        link.requests.send(request).await.map_err(|_| AgentError::NotLinked)?;

        let broken = async {
            link.requests.closed().await;
            tokio::time::sleep(BROKEN_LINK_GRACE).await;
        };
        tokio::select! {
            answer = answer => answer.map_err(|_| AgentError::NotLinked),
            () = broken => Err(AgentError::NotLinked),
            () = self.closed.cancelled() => Err(AgentError::NotLinked),
        }
    }

    fn expect_answer(&self) -> (Awaited<'_>, oneshot::Receiver<UnixStream>) {
        let number = self.number();
        let (sender, receiver) = oneshot::channel();
        self.awaited().insert(number, sender);
        (Awaited { door: self, number }, receiver)
    }

    async fn accept(self: Arc<Self>, listener: UnixListener, tasks: Tasks) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.closed.cancelled() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    // Past the bound a connection is closed at once; an agent tries again.
                    if let Ok(permit) = Arc::clone(&self.ungreeted).try_acquire_owned() {
                        tasks.spawn("agent connection", Arc::clone(&self).serve(stream, permit));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection from an agent could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve(self: Arc<Self>, mut stream: UnixStream, permit: OwnedSemaphorePermit) {
        let greeting = tokio::select! {
            greeting = timeout(GREETING_LIMIT, read_message::<Greeting>(&mut stream)) => greeting,
            () = self.closed.cancelled() => return,
        };
        drop(permit);
        match greeting {
            Ok(Ok(Greeting::Link { version })) => self.serve_link(stream, version).await,
            Ok(Ok(Greeting::Answer { request })) => {
                // Nobody waits any more, or nobody asked: the connection closes, and that tells the agent.
                if let Some(waiting) = self.awaited().remove(&request) {
                    let _gave_up = waiting.send(stream);
                }
            }
            Ok(Err(error)) => tracing::debug!(%error, "a connection from an agent made no sense"),
            Err(_) => tracing::debug!("a connection from an agent said nothing"),
        }
    }

    async fn serve_link(&self, stream: UnixStream, version: u32) {
        let (requests, queue) = mpsc::channel(REQUEST_QUEUE);
        let number = self.number();
        self.link.send_replace(Some(Link { number, requests }));
        tracing::debug!(number, version, "an agent has linked");
        tokio::select! {
            ended = carry(stream, queue) => {
                if let Err(error) = ended {
                    tracing::debug!(number, %error, "the link of an agent broke");
                }
            }
            () = self.replaced(number) => {}
            () = self.closed.cancelled() => {}
        }
        self.link.send_if_modified(|link| {
            let mine = link.as_ref().is_some_and(|link| link.number == number);
            if mine {
                *link = None;
            }
            mine
        });
    }

    /// Waits until another link has taken the place of this one.
    async fn replaced(&self, number: u64) {
        let mut links = self.link.subscribe();
        let _door_gone = links.wait_for(|link| link.as_ref().is_none_or(|link| link.number != number)).await;
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn awaited(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<UnixStream>>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.door.awaited().remove(&self.number);
    }
}

/// Writes requests to a link until it ends. What the agent says on it is read and not listened to.
async fn carry(stream: UnixStream, mut queue: mpsc::Receiver<Vec<u8>>) -> Result<(), ProtocolError> {
    let (mut read, mut write) = stream.into_split();
    let requests = async {
        while let Some(request) = queue.recv().await {
            timeout(REQUEST_LIMIT, write.write_all(&request))
                .await
                .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        }
        Ok(())
    };
    let end = async {
        let mut ignored = [0; 512];
        while read.read(&mut ignored).await? > 0 {}
        Ok(())
    };
    tokio::select! {
        ended = requests => ended,
        ended = end => ended,
    }
}

/// Listens on a socket at `path`, only its owner may connect. Replaces the socket of an earlier process in one step,
/// so that an agent finds one or the other.
fn listen(path: &Path) -> io::Result<(UnixListener, (u64, u64))> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    let mut fresh = name.to_owned();
    fresh.push(".new");
    match rustix::fs::unlinkat(&directory, &fresh, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    // A socket's path must be shorter than 108 bytes; by way of the descriptor it always is.
    let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(&fresh);
    let listener = StdUnixListener::bind(short)?;
    rustix::fs::chmodat(&directory, &fresh, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
    let stat = rustix::fs::statat(&directory, &fresh, AtFlags::SYMLINK_NOFOLLOW)?;
    rustix::fs::renameat(&directory, &fresh, &directory, name)?;
    listener.set_nonblocking(true)?;
    Ok((UnixListener::from_std(listener)?, identity(&stat)))
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}
