//! The gateway's side of every instance's agent: dial a port, run a process, attach to a terminal.
//!
//! The gateway never connects into an instance. For each one it listens behind a door of that instance alone, the
//! agent keeps a link to it, and every call is one request on the link, answered on a connection of its own (see
//! [`envd_api::agent`] for the protocol and [`door`] for the listening). Nothing that comes through a door is trusted:
//! messages are bounded, waits have limits, and what one instance does touches no other.
//!
//! This module knows no users and no policy: whoever calls it has already been allowed to.

mod door;
#[cfg(test)]
mod tests;
mod uses;

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use envd_api::agent::{
    Address, AppCall, AppReport, Begin, Begun, Call, ChunkReader, ChunkWriter, Exec, Listen, Passed,
    Presence, ProtocolError, Received, Refusal, Session, Signal, Signalled, Terminal, TerminalsAct,
    TerminalsCall, TerminalsReport, halves, read_message, receive_reply,
};
use gateway_api::InstanceId;
use serde::de::DeserializeOwned;
use tokio::{net::UnixStream, time::timeout};

use self::{door::Door, uses::Uses};
use crate::tasks::Tasks;
pub(crate) use uses::Open;

/// How long a call waits for an agent that is not linked; an agent links again well within this.
const LINK_WAIT: Duration = Duration::from_secs(4);
/// How long a call waits for its answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// How long an answer may still come after the link that carried its request broke.
const BROKEN_LINK_GRACE: Duration = Duration::from_secs(1);
/// The longest sentence of an agent that is shown to a user.
const SENTENCE_MAX: usize = 300;

/// The agents of all instances. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Agents {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The data directories of all clusters.
    data: Vec<PathBuf>,
    tasks: Tasks,
    doors: Mutex<HashMap<InstanceId, Arc<Door>>>,
    uses: Uses,
    /// Held while a door is opened, so that two callers do not open the same one twice.
    opening: tokio::sync::Mutex<()>,
}

/// A process in an instance. It is hung up (`SIGHUP`) when `input` is dropped before the process has ended.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) input: ChunkWriter,
    pub(crate) output: ChunkReader,
}

/// Connections that are accepted inside an instance.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) port: u16,
    pub(crate) path: String,
    stream: UnixStream,
}

/// Why an agent did not do what was asked. The text is for the user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error("the instance does not answer: its agent is not connected")]
    NotLinked,
    #[error("the instance did not answer in time")]
    TimedOut,
    #[error("{message}")]
    Refused { refusal: Refusal, message: String },
    #[error("the instance's agent broke off the conversation")]
    Protocol(#[source] ProtocolError),
}

// === impl Agents ===

impl Agents {
    /// Doors live below the clusters' data directories; every connection is a task of `tasks`.
    pub(crate) fn new(data: Vec<PathBuf>, tasks: Tasks) -> Self {
        let shared = Shared {
            data,
            tasks,
            doors: Mutex::default(),
            uses: Uses::default(),
            opening: tokio::sync::Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Listens behind an instance's door; its directory must be there. Opening an open door changes nothing, unless
    /// the directory has been made anew since.
    pub(crate) async fn open(&self, instance: &InstanceId) -> io::Result<()> {
        let _one_at_a_time = self.shared.opening.lock().await;
        let mut places = self.shared.data.iter().map(|data| envd_api::agent::door(data, instance));
        let directory = places.find(|place| place.exists()).ok_or(io::ErrorKind::NotFound)?;
        let old = self.door(instance);
        if old.as_ref().is_some_and(|door| door.is_in(&directory)) {
            return Ok(());
        }
        let door = Door::open(&directory, &self.shared.tasks)?;
        if let Some(old) = self.doors().insert(instance.clone(), door) {
            old.close();
        }
        Ok(())
    }

    /// Stops listening and ends the link. Processes that are attached stay attached.
    pub(crate) fn close(&self, instance: &InstanceId) {
        self.shared.uses.forget(instance);
        if let Some(door) = self.doors().remove(instance) {
            door.close();
        }
    }

    /// How many agents are connected.
    pub(crate) fn linked(&self) -> usize {
        self.doors().values().filter(|door| door.is_linked()).count()
    }

    /// A byte stream to a port on the instance's own loopback.
    pub(crate) async fn dial(&self, instance: &InstanceId, port: u16) -> Result<Passed, AgentError> {
        self.note_use(instance);
        match self.call(instance, Call::Dial { port }).await? {
            (_, Received::Descriptor(passed)) => Ok(passed),
            (stream, Received::Stream) => Ok(Passed::relayed(stream)?),
            (_, Received::Listening { .. }) => Err(unexpected()),
            (_, Received::Refused { refusal, message }) => Err(AgentError::refused(refusal, &message)),
        }
    }

    /// A byte stream to an address as it is seen from inside the instance.
    pub(crate) async fn connect(&self, instance: &InstanceId, to: Address) -> Result<Passed, AgentError> {
        match self.call(instance, Call::Connect(to)).await? {
            (_, Received::Descriptor(passed)) => Ok(passed),
            (stream, Received::Stream) => Ok(Passed::relayed(stream)?),
            (_, Received::Listening { .. }) => Err(unexpected()),
            (_, Received::Refused { refusal, message }) => Err(AgentError::refused(refusal, &message)),
        }
    }

    /// Accepts connections inside the instance for as long as the listener is kept.
    pub(crate) async fn listen(&self, instance: &InstanceId, at: Listen) -> Result<Listener, AgentError> {
        match self.call(instance, Call::Listen(at)).await? {
            (stream, Received::Listening { port, path }) => Ok(Listener { port, path, stream }),
            (_, Received::Descriptor(_) | Received::Stream) => Err(unexpected()),
            (_, Received::Refused { refusal, message }) => Err(AgentError::refused(refusal, &message)),
        }
    }

    /// The stream of an SFTP server on the instance's files.
    pub(crate) async fn sftp(&self, instance: &InstanceId) -> Result<Passed, AgentError> {
        match self.call(instance, Call::Sftp {}).await? {
            (stream, Received::Stream) => Ok(Passed::relayed(stream)?),
            (_, Received::Descriptor(_) | Received::Listening { .. }) => Err(unexpected()),
            (_, Received::Refused { refusal, message }) => Err(AgentError::refused(refusal, &message)),
        }
    }

    /// Runs the user's login shell, or a command in it, as an SSH server does.
    pub(crate) async fn session(
        &self,
        instance: &InstanceId,
        session: Session,
    ) -> Result<Process, AgentError> {
        self.process(instance, Call::Session(session)).await
    }

    /// Sends a signal to a session, before all that the session was sent and has not read.
    pub(crate) async fn signal(&self, instance: &InstanceId, signal: Signal) -> Result<(), AgentError> {
        let Signalled {} = self.report(instance, Call::Signal(signal)).await?;
        Ok(())
    }

    /// Runs a process in the instance.
    pub(crate) async fn exec(&self, instance: &InstanceId, exec: Exec) -> Result<Process, AgentError> {
        self.process(instance, Call::Exec(exec)).await
    }

    /// Attaches to a persistent terminal of the instance, which is made on first use.
    pub(crate) async fn terminal(
        &self,
        instance: &InstanceId,
        terminal: Terminal,
    ) -> Result<Process, AgentError> {
        self.process(instance, Call::Terminal(terminal)).await
    }

    /// Looks at an app of the instance, or changes it. Answers with what is, once that has begun.
    pub(crate) async fn app(&self, instance: &InstanceId, call: AppCall) -> Result<AppReport, AgentError> {
        self.report(instance, Call::App(call)).await
    }

    /// Lets what waits begin: a task for its fellows, an instance for its secrets.
    pub(crate) async fn begin(&self, instance: &InstanceId, begin: Begin) -> Result<(), AgentError> {
        let Begun {} = self.report(instance, Call::Begin(begin)).await?;
        Ok(())
    }

    /// A port of the instance was asked for, if over a connection that was there already.
    pub(crate) fn note_use(&self, instance: &InstanceId) {
        self.shared.uses.note(instance);
    }

    /// A connection to a port of the instance that stays open.
    pub(crate) fn note_open(&self, instance: InstanceId) -> Open {
        self.shared.uses.open(instance)
    }

    /// Whether somebody works in the instance, or asked for one of its ports within `lately`.
    pub(crate) async fn is_used(&self, instance: &InstanceId, lately: Duration) -> Result<bool, AgentError> {
        if self.shared.uses.is_used(instance, lately) {
            return Ok(true);
        }
        let Presence { conversations } = self.report(instance, Call::Presence {}).await?;
        Ok(conversations > 0)
    }

    /// The persistent terminals of the instance, after `act`.
    pub(crate) async fn terminals(
        &self,
        instance: &InstanceId,
        act: TerminalsAct,
    ) -> Result<TerminalsReport, AgentError> {
        self.report(instance, Call::Terminals(TerminalsCall { act })).await
    }

    /// A call whose answer is one message.
    async fn report<T: DeserializeOwned>(&self, instance: &InstanceId, call: Call) -> Result<T, AgentError> {
        match self.call(instance, call).await? {
            (mut stream, Received::Stream) => {
                let report = timeout(ANSWER_LIMIT, read_message(&mut stream)).await;
                Ok(report.map_err(|_| AgentError::TimedOut)??)
            }
            (_, Received::Descriptor(_) | Received::Listening { .. }) => Err(unexpected()),
            (_, Received::Refused { refusal, message }) => Err(AgentError::refused(refusal, &message)),
        }
    }

    async fn process(&self, instance: &InstanceId, call: Call) -> Result<Process, AgentError> {
        match self.call(instance, call).await? {
            (stream, Received::Stream) => {
                let (read, write) = halves(stream).map_err(ProtocolError::from)?;
                Ok(Process { input: ChunkWriter::new(write), output: ChunkReader::new(read) })
            }
            (_, Received::Descriptor(_) | Received::Listening { .. }) => Err(unexpected()),
            (_, Received::Refused { refusal, message }) => Err(AgentError::refused(refusal, &message)),
        }
    }

    async fn call(&self, instance: &InstanceId, call: Call) -> Result<(UnixStream, Received), AgentError> {
        // A gateway that has just started may not have come to this door yet.
        if self.door(instance).is_none() {
            self.open(instance).await.map_err(|_| AgentError::NotLinked)?;
        }
        let door = self.door(instance).ok_or(AgentError::NotLinked)?;
        let link = timeout(LINK_WAIT, door.link()).await.map_err(|_| AgentError::NotLinked)??;
        let answer = async {
            let mut stream = adopted(door.ask(&link, call).await?)?;
            let received = receive_reply(&mut stream).await?;
            Ok((stream, received))
        };
        timeout(ANSWER_LIMIT, answer).await.map_err(|_| AgentError::TimedOut)?
    }

    fn door(&self, instance: &InstanceId) -> Option<Arc<Door>> {
        self.doors().get(instance).cloned()
    }

    fn doors(&self) -> MutexGuard<'_, HashMap<InstanceId, Arc<Door>>> {
        self.shared.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same connection, watched by the thread that will use it and no longer by that of the door: else each byte that
/// comes would wake both.
fn adopted(stream: UnixStream) -> Result<UnixStream, ProtocolError> {
    Ok(UnixStream::from_std(stream.into_std()?)?)
}

fn unexpected() -> AgentError {
    ProtocolError::Descriptor("something else than what was asked for").into()
}

// === impl Listener ===

impl Listener {
    /// The next connection; an error when there will be no more. Not cancel-safe.
    pub(crate) async fn accept(&mut self) -> Result<Passed, AgentError> {
        match receive_reply(&mut self.stream).await? {
            Received::Descriptor(passed) => Ok(passed),
            Received::Stream | Received::Listening { .. } => Err(unexpected()),
            Received::Refused { refusal, message } => Err(AgentError::refused(refusal, &message)),
        }
    }
}

// === impl AgentError ===

impl AgentError {
    /// A refusal in the agent's words, made fit to be shown: they come from inside the instance.
    fn refused(refusal: Refusal, message: &str) -> Self {
        let message: String = message.chars().filter(|c| !c.is_control()).take(SENTENCE_MAX).collect();
        let message = if message.is_empty() { "the instance refused".to_owned() } else { message };
        Self::Refused { refusal, message }
    }
}

impl From<ProtocolError> for AgentError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}
