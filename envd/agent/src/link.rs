//! The link to the gateway, and the answers to what is asked on it.
//!
//! The gateway may be away for as long as it likes; the agent tries again several times a second, for ever. An answer
//! that is under way does not end with the link: it has a connection of its own.

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    os::fd::OwnedFd,
    pin::pin,
    process::{Command, Stdio},
    rc::Rc,
    time::Duration,
};

use envd_api::agent::{
    Address, AppReport, Begun, Call, ChunkReader, ChunkWriter, Greeting, Presence, ProtocolError, ReadHalf,
    Refusal, Reply, Signalled, TerminalsReport, VERSION, halves, read_message, write_message,
};
use rustix::event::{PollFd, PollFlags};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpStream, UnixStream};

use crate::{
    Agent, app, children::Streams, dial, enter::Helper, environment::StartError, exec, secrets, session,
    terminal,
};

/// Answers under way at once. A terminal that is watched counts as one.
pub(crate) const ANSWERS_MAX: usize = 2048;
/// Tasks beyond which a request is not even refused: the gateway's own limit for an answer then ends the wait.
const TASKS_MAX: usize = 2 * ANSWERS_MAX;
/// The pause between two tries to link.
const RELINK_PAUSE: Duration = Duration::from_millis(200);
/// Tries to connect for an answer.
const ANSWER_TRIES: u32 = 5;
const ANSWER_PAUSE: Duration = Duration::from_millis(50);
/// How often a blocked write looks whether the gateway is still there.
const PRESENCE_CHECK: Duration = Duration::from_secs(1);

/// A request whose call may be newer than this agent.
#[derive(Deserialize)]
struct AnyRequest {
    request: u64,
    call: serde_json::Value,
}

/// An answer that is refused in words.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) refusal: Refusal,
    pub(crate) message: String,
}

/// What is there to answer with.
enum Ready {
    Connection(TcpStream),
    Process(exec::Process),
    Viewer(terminal::Viewer),
    Terminals(TerminalsReport),
    App(AppReport),
    Begun,
    Presence(Presence),
    Signalled,
    /// A process that answers by itself, on its standard input and output; with `stream`, from the first byte.
    Helper {
        command: Box<Command>,
        stream: bool,
    },
}

/// Keeps the link, for ever.
pub(crate) async fn keep(agent: Rc<Agent>) {
    loop {
        // How a link ended makes no difference to what is to be done.
        let _ended = serve(&agent).await;
        tokio::time::sleep(RELINK_PAUSE).await;
    }
}

async fn serve(agent: &Rc<Agent>) -> Result<(), ProtocolError> {
    let mut stream = UnixStream::connect(&agent.socket).await?;
    write_message(&mut stream, &Greeting::Link { version: VERSION }).await?;
    loop {
        let request: AnyRequest = read_message(&mut stream).await?;
        if agent.tasks.len() < TASKS_MAX {
            agent.tasks.spawn_local(answer(Rc::clone(agent), request));
        }
    }
}

async fn answer(agent: Rc<Agent>, request: AnyRequest) {
    let Ok(mut stream) = connect(&agent, request.request).await else { return };
    let permit = agent.answers.try_acquire();
    let ready = match (&permit, serde_json::from_value(request.call)) {
        (Ok(_), Ok(call)) => prepare(&agent, call).await,
        (Err(_), _) => Err(Refused::new(Refusal::Busy, "the instance has too much under way already")),
        (_, Err(_)) => Err(Refused::new(
            Refusal::UnknownCall,
            "the instance was started by an older version: restart it",
        )),
    };
    // However the conversation ends, it ends here.
    let _ended = match ready {
        Ok(Ready::Connection(connection)) => dial::hand_over(stream, connection).await,
        Ok(Ready::Process(process)) => process.serve(&agent, stream).await,
        Ok(Ready::Viewer(viewer)) => viewer.serve(&agent, stream).await,
        Ok(Ready::Terminals(report)) => report_once(&mut stream, &report).await,
        Ok(Ready::App(report)) => report_once(&mut stream, &report).await,
        Ok(Ready::Begun) => report_once(&mut stream, &Begun {}).await,
        Ok(Ready::Presence(presence)) => report_once(&mut stream, &presence).await,
        Ok(Ready::Signalled) => report_once(&mut stream, &Signalled {}).await,
        Ok(Ready::Helper { command, stream: says }) => hand_to(&agent, *command, stream, says).await,
        Err(Refused { refusal, message }) => {
            write_message(&mut stream, &Reply::Refused { refusal, message }).await
        }
    };
}

/// Does what was asked for, up to the point where words could still refuse it.
async fn prepare(agent: &Rc<Agent>, call: Call) -> Result<Ready, Refused> {
    match call {
        Call::Dial { port } => dial::dial(port).await.map(Ready::Connection),
        Call::Exec(call) => exec::start(agent, &call).map(Ready::Process),
        Call::Terminal(call) => terminal::attach(agent, &call).map(Ready::Viewer),
        Call::Terminals(call) => Ok(Ready::Terminals(terminal::survey(agent, &call.act))),
        Call::App(call) => app::call(agent, &call).map(Ready::App),
        Call::Session(call) => session::start(agent, &call).map(Ready::Process),
        Call::Sftp {} => {
            let around = agent.surroundings(&BTreeMap::new())?;
            let command = Box::new(around.helper(Helper::Sftp, "", &around.home_directory()));
            Ok(Ready::Helper { command, stream: true })
        }
        Call::Connect(Address::Tcp { host, port }) => {
            dial::reach(agent, &host, port).await.map(Ready::Connection)
        }
        Call::Connect(Address::Unix { path }) => helper(agent, Helper::ConnectUnix, &path),
        Call::Listen(wanted) => {
            let wanted = serde_json::to_string(&wanted).unwrap_or_default();
            helper(agent, Helper::Listen, &wanted)
        }
        Call::Begin(begin) => {
            if agent.begun.get().is_none() {
                secrets::put(agent, &begin.files)?;
            }
            if agent.begun.set(begin).is_ok() {
                agent.begin.notify_one();
            }
            Ok(Ready::Begun)
        }
        // Whoever asks is not one of them.
        Call::Presence {} => Ok(Ready::Presence(Presence {
            conversations: ANSWERS_MAX - agent.answers.available_permits() - 1,
        })),
        Call::Signal(signal) => {
            let session = agent.sessions.borrow().get(&signal.mark).copied();
            if let Some(pid) = session {
                exec::send_signal(agent, pid, &signal.name);
            }
            Ok(Ready::Signalled)
        }
    }
}

/// The command of a helper that answers in words first.
fn helper(agent: &Agent, helper: Helper, argument: &str) -> Result<Ready, Refused> {
    if argument.contains('\0') {
        return Err(Refused::new(Refusal::Other, "a path cannot hold a zero byte"));
    }
    let around = agent.surroundings(&BTreeMap::new())?;
    let command = Box::new(around.helper(helper, argument, &around.home_directory()));
    Ok(Ready::Helper { command, stream: false })
}

/// Gives the connection away: the process speaks with the gateway, nothing is copied here.
async fn hand_to(
    agent: &Agent,
    mut command: Command,
    mut stream: UnixStream,
    says: bool,
) -> Result<(), ProtocolError> {
    if says {
        write_message(&mut stream, &Reply::Stream).await?;
    }
    let stream = OwnedFd::from(stream.into_std()?);
    // The descriptor is shared with the process, which reads and writes it plainly.
    rustix::io::ioctl_fionbio(&stream, false).map_err(io::Error::from)?;
    let streams = Streams {
        stdin: stream.try_clone()?.into(),
        stdout: stream.into(),
        stderr: Stdio::null(),
        tty: false,
    };
    agent.children.spawn(&mut command, streams)?;
    Ok(())
}

async fn connect(agent: &Agent, request: u64) -> Result<UnixStream, ProtocolError> {
    let mut tries = 0;
    let mut stream = loop {
        tries += 1;
        match UnixStream::connect(&agent.socket).await {
            Ok(stream) => break stream,
            Err(error) if tries == ANSWER_TRIES => return Err(error.into()),
            Err(_) => tokio::time::sleep(ANSWER_PAUSE).await,
        }
    };
    write_message(&mut stream, &Greeting::Answer { request }).await?;
    Ok(stream)
}

/// One message is the whole answer.
async fn report_once<T: Serialize>(stream: &mut UnixStream, report: &T) -> Result<(), ProtocolError> {
    write_message(stream, &Reply::Stream).await?;
    write_message(stream, report).await
}

/// Says that the connection is the stream from here on.
pub(crate) async fn stream(mut stream: UnixStream) -> Result<(ChunkReader, ChunkWriter), ProtocolError> {
    write_message(&mut stream, &Reply::Stream).await?;
    let (read, write) = halves(stream)?;
    Ok((ChunkReader::new(read), ChunkWriter::new(write)))
}

/// Writes on behalf of the gateway, which cannot be listened to meanwhile, but gives up when it is gone.
pub(crate) async fn while_present(
    gateway: &ReadHalf,
    write: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    let mut write = pin!(write);
    loop {
        tokio::select! {
            // First: a write that need not wait sets no timer.
            biased;
            written = &mut write => return written,
            () = tokio::time::sleep(PRESENCE_CHECK) => {
                let mut poll = [PollFd::new(gateway, PollFlags::HUP)];
                let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
                if rustix::event::poll(&mut poll, Some(&now))? > 0 {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
            }
        }
    }
}

// === impl Refused ===

impl Refused {
    pub(crate) fn new(refusal: Refusal, message: &str) -> Self {
        Self { refusal, message: message.to_owned() }
    }
}

impl From<StartError> for Refused {
    fn from(error: StartError) -> Self {
        Self { refusal: Refusal::CannotRun, message: error.to_string() }
    }
}
