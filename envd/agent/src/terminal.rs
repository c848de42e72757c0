//! Terminals that outlive their viewers: a shell by name, what it has shown, and whoever watches it now.
//!
//! A terminal is made on first use and stays until its shell ends, whatever happens to browsers, gateways and links.
//! Several viewers see the same, and its size is the one that was last asked for.
//!
//! The shell waits for its viewers, so that a flood of output is not lost on the way; but a viewer that takes nothing
//! for too long is let go, sooner when others watch too. It can come back and is shown what it missed.
//!
//! The shell is interactive but not a login shell: `/etc/profile` of common images sets `PATH` anew, and with it what
//! the image's own environment says would be lost.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io,
    rc::Rc,
    time::Duration,
};

use envd_api::agent::{self, Chunk, ChunkReader, ChunkWriter, ProtocolError, Refusal};
use gateway_api::stream::{Exit, Size};
use rustix::process::Pid;
use tokio::{
    net::UnixStream,
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{
    Agent,
    children::{Ended, Streams},
    environment::{DEFAULT_TERM, StartError, Surroundings},
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
/// Pieces that wait for one viewer; each is what the terminal gave at once, usually up to 4 KiB.
const QUEUE: usize = 64;
/// What is read from a terminal at once.
const PIECE: usize = 16 << 10;
/// The most that a terminal can hold of what an ended shell wrote.
const LEFT_MAX: usize = 1 << 20;
/// How long the shell waits for its only viewer to take anything.
const PATIENCE_ALONE: Duration = Duration::from_secs(10);
/// How long it waits for one of several.
const PATIENCE_SHARED: Duration = Duration::from_secs(1);

/// The terminals of this instance, by name.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    open: RefCell<HashMap<String, Rc<Terminal>>>,
}

#[derive(Debug)]
struct Terminal {
    pid: Pid,
    pty: Pty,
    shown: RefCell<Scrollback>,
    viewers: RefCell<Vec<Place>>,
    next: Cell<u64>,
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

fn launch(agent: &Rc<Agent>, name: &str, size: Size) -> Result<Rc<Terminal>, StartError> {
    let term = [("TERM".to_owned(), DEFAULT_TERM.to_owned())].into();
    let around = Surroundings::new(&agent.spec, &term)?;
    let shell = program::shell(around.account.shell.as_deref(), around.path())?;
    let argv = [shell.to_string_lossy().into_owned()];
    let mut command = around.program(&shell, &argv, &around.terminal_directory(), true);
    let mut start = || {
        let (pty, theirs) = pty::open(size, around.account.uid)?;
        let child = agent.children.spawn(&mut command, Streams::terminal(theirs)?)?;
        io::Result::Ok((pty, child))
    };
    let (pty, child) = start().map_err(|error| StartError::System(argv[0].clone(), error))?;
    let terminal = Rc::new(Terminal {
        pid: child.pid,
        pty,
        shown: RefCell::default(),
        viewers: RefCell::default(),
        next: Cell::new(0),
    });
    agent.terminals.open.borrow_mut().insert(name.to_owned(), Rc::clone(&terminal));
    agent.tasks.spawn_local(keep(Rc::clone(agent), name.to_owned(), Rc::clone(&terminal), child.ended));
    Ok(terminal)
}

/// Shows what the shell writes until it ends; then tells all viewers, and the terminal is forgotten.
async fn keep(agent: Rc<Agent>, name: String, terminal: Rc<Terminal>, mut ended: oneshot::Receiver<Ended>) {
    let mut piece = vec![0; PIECE];
    let exit = loop {
        tokio::select! {
            read = terminal.pty.read(&mut piece) => match read {
                Ok(read) if read > 0 => terminal.show(&piece[..read]).await,
                Ok(_) | Err(_) => {
                    if let Ok(exit) = timeout(CLOSED_PAUSE, &mut ended).await {
                        break exit;
                    }
                }
            },
            exit = &mut ended => break exit,
        }
    };
    let mut left = LEFT_MAX;
    while left > 0
        && let Ok(read) = terminal.pty.read_now(&mut piece)
        && read > 0
    {
        terminal.show(&piece[..read]).await;
        left = left.saturating_sub(read);
    }
    // Forgotten first: whoever comes from here on gets a new shell.
    agent.terminals.open.borrow_mut().remove(&name);
    if let Ok(exit) = exit {
        terminal.tell(&News::Ended(exit.into())).await;
    }
    terminal.viewers.borrow_mut().clear();
}

// === impl Terminal ===

impl Terminal {
    async fn show(&self, bytes: &[u8]) {
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
