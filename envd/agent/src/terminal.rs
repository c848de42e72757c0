//! Terminals that outlive their viewers: a shell by name, what it has shown, and whoever watches it now.
//!
//! A terminal is made on first use and stays until its shell ends, whatever happens to browsers, gateways and links.
//! Several viewers see the same, and its size is the one that was last asked for.
//!
//! The shell waits for its viewers, so that a flood of output is not lost on the way; but a viewer that takes nothing
//! for too long is let go, sooner when others watch too. It can come back and is shown what it missed.
//!
//! Little is on the way to a viewer at any time, since all of it is shown before what Ctrl-C brings about. What a shell
//! writes at once goes out at once; only within a flood is it gathered for a moment, as few large pieces cost everyone
//! on the way less than many small ones.
//!
//! The shell is interactive but not a login shell: `/etc/profile` of common images sets `PATH` anew, and with it what
//! the image's own environment says would be lost.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io,
    pin::pin,
    rc::Rc,
    time::Duration,
};

use envd_api::agent::{
    self, Chunk, ChunkReader, ChunkWriter, ProtocolError, Refusal, TerminalsAct, TerminalsReport,
};
use jiff::Timestamp;
use process_api::{Exit, Size};
use rustix::process::Pid;
use tokio::{
    net::UnixStream,
    sync::{Notify, mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

use crate::{
    Agent,
    children::{Ended, Streams},
    environment::{DEFAULT_TERM, StartError},
    exec::send_signal,
    link::{self, Refused, while_present},
    program,
    pty::{self, CLOSED_PAUSE, Pty},
    scrollback::Scrollback,
};

/// Terminals at once.
const TERMINALS_MAX: usize = 32;
/// Viewers of one terminal at once.
const VIEWERS_MAX: usize = 16;
/// The longest name.
const NAME_MAX: usize = 64;
/// Pieces that wait for one viewer.
const QUEUE: usize = 2;
/// The most that is gathered.
const PIECE: usize = 64 << 10;
/// How long pieces are gathered within a flood.
const GATHER: Duration = Duration::from_millis(2);
/// What is no longer than this is the echo of keys and no part of a flood: nothing waits after it.
const ECHO_MAX: usize = 64;
/// What the system holds on the way to a viewer.
const ON_THE_WAY: usize = 64 << 10;
/// The most that a terminal can hold of what an ended shell wrote.
const LEFT_MAX: usize = 1 << 20;
/// How long a shell that is hung up has for its end.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How long the shell waits for its only viewer to take anything.
const PATIENCE_ALONE: Duration = Duration::from_secs(10);
/// How long it waits for one of several.
const PATIENCE_SHARED: Duration = Duration::from_secs(1);

/// The terminals of this instance, by name.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    open: RefCell<HashMap<String, Rc<Terminal>>>,
    next: Cell<u64>,
}

#[derive(Debug)]
struct Terminal {
    /// Tells the oldest from the newest.
    number: u64,
    since: Timestamp,
    pid: Pid,
    pty: Pty,
    shown: RefCell<Scrollback>,
    viewers: RefCell<Vec<Place>>,
    next: Cell<u64>,
    closed: Notify,
}

/// A viewer, as its terminal sees it.
#[derive(Debug, Clone)]
struct Place {
    number: u64,
    queue: mpsc::Sender<News>,
}

/// What a viewer learns.
#[derive(Debug, Clone)]
enum News {
    Shown(Rc<[u8]>),
    Ended(Exit),
}

/// What a shell has written and nobody has been shown.
#[derive(Debug)]
struct Gathered {
    piece: Vec<u8>,
    filled: usize,
    /// When something was last shown that may be part of a flood.
    shown: Option<Instant>,
}

/// One who watches and types.
#[derive(Debug)]
pub(crate) struct Viewer {
    terminal: Rc<Terminal>,
    number: u64,
    replay: Vec<u8>,
    news: mpsc::Receiver<News>,
}

/// Attaches to the terminal of that name, which is made if there is none.
pub(crate) fn attach(agent: &Rc<Agent>, call: &agent::Terminal) -> Result<Viewer, Refused> {
    if call.name.is_empty() || call.name.len() > NAME_MAX {
        return Err(Refused::new(Refusal::Other, "a terminal needs a short name"));
    }
    let open = agent.terminals.open.borrow().get(&call.name).cloned();
    let terminal = match open {
        Some(terminal) => {
            terminal.pty.resize(call.size);
            terminal
        }
        None if agent.terminals.open.borrow().len() >= TERMINALS_MAX => {
            let message =
                format!("this instance has {TERMINALS_MAX} terminals already: end one of them first");
            return Err(Refused { refusal: Refusal::Busy, message });
        }
        None => launch(agent, &call.name, call.size)?,
    };
    Viewer::new(terminal)
}

/// Does what is asked with the terminals, and says which there are then.
pub(crate) fn survey(agent: &Agent, act: &TerminalsAct) -> TerminalsReport {
    let mut open = agent.terminals.open.borrow_mut();
    match act {
        TerminalsAct::List => {}
        TerminalsAct::Close { name } => {
            // Forgotten at once, so that the name is free; the rest is up to whoever keeps it.
            if let Some(terminal) = open.remove(name) {
                terminal.closed.notify_one();
            }
        }
    }
    let mut all: Vec<_> = open.iter().collect();
    all.sort_by_key(|(_, terminal)| terminal.number);
    let items = all
        .into_iter()
        .map(|(name, terminal)| process_api::Terminal {
            name: name.clone(),
            since: terminal.since,
            viewers: u32::try_from(terminal.viewers.borrow().len()).unwrap_or(u32::MAX),
        })
        .collect();
    TerminalsReport { items }
}

fn launch(agent: &Rc<Agent>, name: &str, size: Size) -> Result<Rc<Terminal>, StartError> {
    let term = [("TERM".to_owned(), DEFAULT_TERM.to_owned())].into();
    let around = agent.surroundings(&term)?;
    let shell = program::shell(around.account.shell.as_deref(), around.path())?;
    let argv = [shell.clone().into_os_string()];
    let mut command = around.program(&shell, &argv, &around.terminal_directory(), true);
    let mut start = || {
        let (pty, theirs) = pty::open(size, around.account.uid)?;
        let child = agent.children.spawn(&mut command, Streams::terminal(theirs)?)?;
        io::Result::Ok((pty, child))
    };
    let (pty, child) =
        start().map_err(|error| StartError::System(shell.to_string_lossy().into_owned(), error))?;
    let number = agent.terminals.next.replace(agent.terminals.next.get() + 1);
    let terminal = Rc::new(Terminal {
        number,
        since: Timestamp::now(),
        pid: child.pid,
        pty,
        shown: RefCell::default(),
        viewers: RefCell::default(),
        next: Cell::new(0),
        closed: Notify::new(),
    });
    agent.terminals.open.borrow_mut().insert(name.to_owned(), Rc::clone(&terminal));
    agent.tasks.spawn_local(keep(Rc::clone(agent), name.to_owned(), Rc::clone(&terminal), child.ended));
    Ok(terminal)
}

/// Shows what the shell writes until it ends or is closed; then tells all viewers, and the terminal is forgotten.
async fn keep(agent: Rc<Agent>, name: String, terminal: Rc<Terminal>, mut ended: oneshot::Receiver<Ended>) {
    let mut gathered = Gathered { piece: vec![0; PIECE], filled: 0, shown: None };
    let exit = loop {
        tokio::select! {
            () = gathered.fill(&terminal.pty) => {
                if gathered.is_empty()
                    && let Ok(exit) = timeout(CLOSED_PAUSE, &mut ended).await
                {
                    break exit.ok();
                }
                gathered.show(&terminal).await;
            }
            exit = &mut ended => break exit.ok(),
            () = terminal.closed.notified() => {
                hang_up(&agent, terminal.pid);
                terminal.end(Exit::Signal("HUP".to_owned())).await;
                // With the last who holds the terminal it goes, and the kernel hangs up all who use it: not yet, since a
                // shell that hears it twice at once neither runs its traps nor writes its history.
                let _ended_or_not = timeout(LAST_WORDS, &mut ended).await;
                return;
            }
        }
    };
    gathered.show(&terminal).await;
    let mut left = LEFT_MAX;
    while left > 0
        && let Ok(read) = terminal.pty.read_now(&mut gathered.piece)
        && read > 0
    {
        terminal.show(&gathered.piece[..read]).await;
        left = left.saturating_sub(read);
    }
    // Forgotten first: whoever comes from here on gets a new shell. What has the name now may be a newer one.
    let is_this = |open: &Rc<Terminal>| open.number == terminal.number;
    if agent.terminals.open.borrow().get(&name).is_some_and(is_this) {
        agent.terminals.open.borrow_mut().remove(&name);
    }
    if let Some(exit) = exit {
        terminal.end(exit.into()).await;
    }
    terminal.viewers.borrow_mut().clear();
}

/// As a window does that is closed: what is stopped must wake to hear it.
fn hang_up(agent: &Agent, shell: Pid) {
    for signal in ["HUP", "CONT"] {
        send_signal(agent, shell, signal);
    }
}

// === impl Gathered ===

impl Gathered {
    /// Reads what the shell writes, and within a flood what comes a moment later. Still empty when nobody has the
    /// other end open. Cancel-safe: what has come stays.
    async fn fill(&mut self, pty: &Pty) {
        if self.filled == 0 {
            match pty.read(&mut self.piece).await {
                Ok(read) => self.filled = read,
                Err(_) => return,
            }
        }
        let Some(until) = self.shown.map(|shown| shown + GATHER).filter(|until| *until > Instant::now())
        else {
            return;
        };
        let mut over = pin!(sleep_until(until));
        while self.filled > 0 && self.filled < self.piece.len() {
            let read = tokio::select! {
                biased;
                read = pty.read_flood(&mut self.piece[self.filled..]) => read,
                () = &mut over => return,
            };
            match read {
                Ok(read) if read > 0 => self.filled += read,
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Shows what has come. Whether what comes next is part of a flood counts from when the viewers have this.
    async fn show(&mut self, terminal: &Terminal) {
        let filled = std::mem::take(&mut self.filled);
        terminal.show(&self.piece[..filled]).await;
        self.shown = (filled > ECHO_MAX).then(Instant::now);
    }
}

// === impl Terminal ===

impl Terminal {
    async fn end(&self, exit: Exit) {
        self.tell(&News::Ended(exit)).await;
        self.viewers.borrow_mut().clear();
    }

    async fn show(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // One step, so that who attaches meanwhile gets this from the scrollback or from the queue, never both.
        self.shown.borrow_mut().push(bytes);
        self.tell(&News::Shown(bytes.into())).await;
    }

    async fn tell(&self, news: &News) {
        let viewers = self.viewers.borrow().clone();
        let patience = if viewers.len() > 1 { PATIENCE_SHARED } else { PATIENCE_ALONE };
        for viewer in viewers {
            if !matches!(timeout(patience, viewer.queue.send(news.clone())).await, Ok(Ok(()))) {
                self.let_go(viewer.number);
            }
        }
    }

    fn let_go(&self, number: u64) {
        self.viewers.borrow_mut().retain(|viewer| viewer.number != number);
    }
}

// === impl Viewer ===

impl Viewer {
    fn new(terminal: Rc<Terminal>) -> Result<Self, Refused> {
        if terminal.viewers.borrow().len() >= VIEWERS_MAX {
            return Err(Refused::new(Refusal::Busy, "this terminal has too many viewers already"));
        }
        let (queue, news) = mpsc::channel(QUEUE);
        let number = terminal.next.replace(terminal.next.get() + 1);
        terminal.viewers.borrow_mut().push(Place { number, queue });
        let replay = terminal.shown.borrow().replay();
        Ok(Self { terminal, number, replay, news })
    }

    /// Watches until the shell ends, the viewer leaves or is let go.
    pub(crate) async fn serve(mut self, agent: &Agent, stream: UnixStream) -> Result<(), ProtocolError> {
        // More than this the kernel may hold by itself; less is better, and not to be had is no reason to give up.
        let _as_it_is = rustix::net::sockopt::set_socket_send_buffer_size(&stream, ON_THE_WAY);
        let (reader, writer) = link::stream(stream).await?;
        let terminal = Rc::clone(&self.terminal);
        tokio::select! {
            watched = self.watch(writer) => watched,
            typed = type_in(agent, &terminal, reader) => typed,
        }
    }

    async fn watch(&mut self, mut writer: ChunkWriter) -> Result<(), ProtocolError> {
        writer.stdout(&std::mem::take(&mut self.replay)).await?;
        while let Some(news) = self.news.recv().await {
            match news {
                News::Shown(bytes) => writer.stdout(&bytes).await?,
                News::Ended(exit) => return writer.send(&Chunk::Exit(exit)).await,
            }
        }
        Ok(())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.terminal.let_go(self.number);
    }
}

async fn type_in(agent: &Agent, terminal: &Terminal, mut reader: ChunkReader) -> Result<(), ProtocolError> {
    while let Some(chunk) = reader.next().await? {
        match chunk {
            Chunk::Stdin(bytes) => while_present(reader.get_ref(), terminal.pty.write(&bytes)).await?,
            Chunk::Resize(size) => terminal.pty.resize(size),
            Chunk::Signal(name) => send_signal(agent, terminal.pid, &name),
            Chunk::CloseStdin | Chunk::Stdout(_) | Chunk::Stderr(_) | Chunk::Exit(_) => {}
        }
    }
    Ok(())
}
