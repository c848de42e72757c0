//! The protocol between the gateway and the agent that is PID 1 of an instance.
//!
//! The host owns the door: the gateway listens on a unix socket in a directory that the instance sees read-only at
//! [`DOOR`], and the agent connects *out*. So no host process ever follows a path that a container can change.
//!
//! - The agent keeps one **link** open: it sends [`Greeting::Link`], then reads [`Request`]s for as long as it lives,
//!   and connects again when the link breaks.
//! - For each request it opens one more connection, the **answer**: [`Greeting::Answer`] with the request's number,
//!   then a [`Reply`]. With [`Reply::Descriptor`] exactly one connected stream socket rides on the reply's message
//!   (`SCM_RIGHTS`); with [`Reply::Stream`] the connection itself becomes the stream, of [`Chunk`]s for processes.
//!
//! Messages are a length (u32, big-endian) and JSON, never longer than [`MESSAGE_MAX`]. Unknown fields are ignored, so
//! that an agent that is months old and a newer gateway understand each other; a call that an old agent does not know
//! gets [`Reply::Refused`] with [`Refusal::UnknownCall`]. The gateway trusts nothing here: root in the container is
//! the user.

mod app;
mod chunk;
mod descriptor;
mod halves;
mod message;
mod passed;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use process_api::{Exit, Size, Tty};
use serde::{Deserialize, Serialize};

pub use self::{
    app::{
        APP_LOG_MAX, AppAct, AppCall, AppProblem, AppReport, AppSource, AppState, AppStep, CERTIFICATES,
        TOOLS,
    },
    chunk::{ChunkReader, ChunkWriter},
    descriptor::{Received, receive_reply, send_with_descriptor},
    halves::{ReadHalf, WriteHalf, halves, when_room},
    message::{ProtocolError, encode, read_message, write_message},
    passed::Passed,
};

/// The first argument of an agent that serves a [`Room`], which is the second, instead of an instance.
pub const ROOM: &str = "--room";
/// The first argument of an agent that fetches a job's code ([`FetchCode`], the second) into the directory that is its
/// standard input. What it cannot do it says on standard error.
pub const FETCH_CODE: &str = "--fetch-code";
/// The version that this code speaks.
pub const VERSION: u32 = 1;
/// Where envd mounts the agent in an instance.
pub const AGENT: &str = "/.berth/agent";
/// Where envd mounts the door's directory in an instance, read-only.
pub const DOOR: &str = "/.berth/door";
/// Where envd mounts memory for files with secrets, in instances that use some.
pub const SECRETS: &str = "/.berth/secrets";
/// Where an instance has its storages once more and cannot write to them, each below this at its own path, if one of its
/// links leads here.
pub const READ_ONLY: &str = "/.berth/read-only";
/// The gateway's socket, below [`DOOR`] and below the door's directory on the host. The directory that holds it is
/// the only thing there that belongs to the gateway.
pub const SOCKET: &str = "link/gateway.sock";
/// The agent's own instructions ([`AgentSpec`]), below [`DOOR`].
pub const SPEC: &str = "spec.json";
/// The copy of a job's code, below the door's directory, which an instance sees read-only.
pub const CODE: &str = "code";
/// The most that the code of a job may take: what is larger is data, and has a place of its own.
pub const CODE_BYTES_MAX: u64 = 200 << 20;
/// The longest message.
pub const MESSAGE_MAX: usize = 256 << 10;
/// The longest chunk of a stream.
pub const CHUNK_MAX: usize = 64 << 10;

/// The door's directory of an instance, below the data directory.
#[cfg(feature = "control")]
pub fn door(data: &std::path::Path, instance: &gateway_api::InstanceId) -> PathBuf {
    data.join("door").join(instance.as_str())
}

/// What the agent reads when it starts. envd writes it before each start of the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// The generation that this start is for.
    pub generation: u64,
    /// Empty: stay until told to stop. Else run this and end with its exit code.
    #[serde(default)]
    pub command: Vec<String>,
    /// The image's environment, then the user's own on top.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The image's `USER` (`name`, `uid`, `name:group`, `uid:gid`, or empty for root): commands and terminals run as it.
    #[serde(default)]
    pub user: String,
    /// The image's `WORKDIR`, or empty for `/`.
    #[serde(default)]
    pub cwd: String,
    /// Paths and where they lead, both inside the instance: links that are to be there before anything runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
    /// The same, but where the image has something of its own, that stays.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
    /// The name under which the copy of its code ([`CODE`]) is in the working directory, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The command waits for [`Call::Begin`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
}

/// The first message on every connection from the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Greeting {
    Link { version: u32 },
    Answer { request: u64 },
}

/// A message from the gateway on the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub request: u64,
    pub call: Call,
}

/// What the gateway asks of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// A byte stream to a port on the instance's own loopback.
    Dial { port: u16 },
    /// A process of its own for this call.
    Exec(Exec),
    /// A terminal that outlives its viewers: made on first use, attached to after that.
    Terminal(Terminal),
    /// The terminals that there are: one [`TerminalsReport`] comes on the stream, which then ends.
    Terminals(TerminalsCall),
    /// An app: answered by [`Reply::Stream`], one [`AppReport`] and the end of the connection.
    App(AppCall),
    /// What an SSH server does for one session: the user's login shell, or a command in it. Its streams are chunks.
    Session(Session),
    /// An SFTP server on the instance's files, as the image's user: the answer is its stream.
    Sftp {},
    /// A byte stream to any address that the instance itself can reach.
    Connect(Address),
    /// Accepts connections inside the instance for as long as the answer is open: [`Reply::Listening`], then one
    /// [`Reply::Descriptor`] for each.
    Listen(Listen),
    /// Lets the command of an agent that holds it begin. What has begun already stays as it is: one [`Begun`] comes on
    /// the stream.
    Begin(Begin),
    /// Who is there: one [`Presence`] comes on the stream.
    Presence {},
    /// A signal that does not wait for what the session was sent before it: one [`Signalled`] comes on the stream.
    Signal(Signal),
}

/// What the command begins with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// Variables besides those of the spec, for all processes from now on.
    pub env: BTreeMap<String, String>,
    /// Instead of the spec's command, in which secrets are left out.
    #[serde(default)]
    pub command: Vec<String>,
    /// Files below [`SECRETS`], by name. An older agent writes none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// When it is run once more after it has ended. An older agent never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
}

/// After which ends a command is run once more, in the same container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// The exit codes after which it is, as often as `most` says.
    pub counted: BTreeSet<u8>,
    /// `None`: without end.
    pub most: Option<u32>,
    /// Those after which it is without being counted, and how often at most.
    pub free: BTreeSet<u8>,
    pub free_most: u32,
    /// Also when something was killed for want of memory.
    pub after_out_of_memory: bool,
}

/// Values and commands may be secret.
impl std::fmt::Debug for Begin {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
        out.debug_struct("Begin")
            .field("env", &names(&self.env))
            .field("files", &names(&self.files))
            .finish_non_exhaustive()
    }
}

/// The command has begun, now or before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {}

/// How many are at work in an instance now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Terminals that are looked at, sessions and processes that somebody waits for.
    pub conversations: usize,
}

/// A signal for a session that runs. For one that has ended it means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// The session's [`mark`](Session::mark).
    pub mark: u64,
    /// Without `SIG`. A name that means nothing is ignored.
    pub name: String,
}

/// The signal was sent, or there was nobody to send it to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signalled {}

/// A process: its streams are chunks on the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    pub argv: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub tty: Option<Tty>,
}

/// A persistent terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    pub name: String,
    pub size: Size,
}

/// What to do with the persistent terminals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalsCall {
    pub act: TerminalsAct,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalsAct {
    List,
    /// Hangs its shell up, as closing a window does. One that is not there is closed already.
    Close {
        name: String,
    },
}

/// The persistent terminals, oldest first; after a close, those that are left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalsReport {
    pub items: Vec<process_api::Terminal>,
}

/// A session as an SSH server knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// A command for the login shell; absent: the shell itself.
    #[serde(default)]
    pub command: Option<Raw>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub tty: Option<SessionTty>,
    /// What the gateway calls it in a [`Signal`].
    #[serde(default)]
    pub mark: u64,
}

/// The terminal that an SSH client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTty {
    pub term: String,
    pub size: Size,
    /// The client's own terminal modes: opcodes of RFC 4254, section 8, and their values.
    #[serde(default)]
    pub modes: Vec<(u8, u32)>,
}

/// The room that an agent makes for itself on a machine, to serve SFTP on a user's storages with no instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Where a conversation begins: one of the places. It is held as the owner of that one.
    pub home: String,
    pub places: Vec<RoomPlace>,
}

/// A storage in a [`Room`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomPlace {
    pub root: PathBuf,
    /// The directory below the root; the root itself when there is none.
    pub key: Option<String>,
    /// Where it appears, as in instances.
    pub at: String,
    pub read_only: bool,
}

/// The code of a job, as it is to be fetched from its user's storages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchCode {
    pub room: Room,
    /// A folder in the room.
    pub from: String,
}

/// Bytes that are text most of the time, such as a command: each byte as the character of that number.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raw(String);

/// Where to connect to, as seen from inside the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// A name is resolved in the instance.
    Tcp {
        host: String,
        port: u16,
    },
    Unix {
        path: String,
    },
}

/// Where to listen inside the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listen {
    /// Port 0 is any that is free. The host is as SSH says it: empty or `*` for all, `localhost`, or an address.
    Tcp {
        host: String,
        port: u16,
    },
    Unix {
        path: String,
    },
    /// A socket of its own in a directory that only the user can enter, removed at the end.
    Private {},
}

/// The first message on an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// This connection is the stream from here on.
    Stream,
    /// A connected socket rides on this message; this connection has served its purpose.
    Descriptor,
    /// Connections are accepted there from now on; each comes as a [`Reply::Descriptor`] of its own.
    Listening {
        #[serde(default)]
        port: u16,
        #[serde(default)]
        path: String,
    },
    Refused {
        refusal: Refusal,
        message: String,
    },
}

/// Why an agent does not do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Nothing listens on that port.
    NothingListens,
    /// The program is not in the image, or cannot be run.
    CannotRun,
    /// This agent is older than the call.
    UnknownCall,
    /// Too many at once.
    Busy,
    /// It is there, and not for users.
    NotForUsers,
    #[serde(other)]
    Other,
}

impl Raw {
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.iter().copied().map(char::from).collect())
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect()
    }
}

impl std::fmt::Debug for Raw {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", String::from_utf8_lossy(&self.bytes()))
    }
}

/// A piece of a process's streams: kind (u8), length (u32, big-endian), bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    Stdin(Vec<u8>),
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Resize(Size),
    /// A signal's name without `SIG`.
    Signal(String),
    CloseStdin,
    Exit(Exit),
}
