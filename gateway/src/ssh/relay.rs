//! Bytes between a channel and what is on the other side of it, each way at the pace of its receiver.
//!
//! Nothing is buffered beyond one piece on the way out; on the way in, see `inbox`.

use bytes::{Bytes, BytesMut};
use envd_api::agent::{CHUNK_MAX, Chunk, ProtocolError, Refusal, Signal};
use gateway_api::{InstanceId, stream::Exit};
use russh::{
    ChannelWriteHalf, Sig,
    server::{Handle, Msg},
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{
    inbox::{Inbox, Input},
    pressure::Pressure,
    words::Words,
};
use crate::agents::{AgentError, Agents, Process};

/// What is read at once.
const PIECE: usize = 64 << 10;
/// Packets that go to a process as one chunk.
const PIECES_MAX: usize = 16;
/// Extended data of this kind is standard error.
const STDERR: u32 = 1;

/// The way out of a channel.
#[derive(Debug)]
pub(super) struct Outbox<'a> {
    pub(super) write: ChannelWriteHalf<Msg>,
    pub(super) handle: Handle,
    pub(super) pressure: &'a Pressure,
}

type Sent = Result<(), russh::Error>;

impl Outbox<'_> {
    pub(super) async fn stdout(&self, bytes: impl Into<Bytes>) -> Sent {
        self.pressure.sending(self.write.data_bytes(bytes)).await
    }

    pub(super) async fn stderr(&self, bytes: impl Into<Bytes>) -> Sent {
        self.pressure.sending(self.write.extended_data_bytes(STDERR, bytes)).await
    }

    /// How it ended, and then the end of the channel.
    pub(super) async fn exit(&self, exit: Exit) {
        let told = match exit {
            Exit::Code(code) => {
                let code = u32::try_from(code & 0xff).unwrap_or(0xff);
                self.write.exit_status(code).await.is_ok()
            }
            Exit::Signal(name) => {
                let signal = Sig::Custom(name);
                let id = self.write.id();
                self.handle.exit_signal_request(id, signal, false, String::new(), String::new()).await.is_ok()
            }
        };
        if told {
            let _ = self.write.eof().await;
            let _ = self.write.close().await;
        }
    }
}

/// A process that was started under a mark, by which signals get past all that it has not read.
#[derive(Debug)]
pub(super) struct Marked<'a> {
    pub(super) process: Process,
    pub(super) mark: u64,
    pub(super) instance: &'a InstanceId,
    pub(super) agents: &'a Agents,
}

/// A process: its streams apart, its end told.
pub(super) async fn process(process: Marked<'_>, words: Words, inbox: &Inbox<'_>, outbox: &Outbox<'_>) {
    let Marked { process: Process { mut input, mut output }, mark, instance, agents } = process;
    let feed = async {
        let mut pieces = Vec::new();
        loop {
            match inbox.next().await {
                Input::Data(bytes) if bytes.len() > CHUNK_MAX => input.stdin(&bytes).await?,
                Input::Data(bytes) => {
                    gather(&mut pieces, bytes, inbox);
                    input.stdin_of(&pieces).await?;
                    pieces.clear();
                }
                Input::End => input.send(&Chunk::CloseStdin).await?,
                Input::Resize(size) => input.send(&Chunk::Resize(size)).await?,
                Input::Signal(name) => input.send(&Chunk::Signal(name)).await?,
            }
        }
    };
    // An agent that takes no more input may still have something to say.
    let feed = async {
        let _: Result<(), ProtocolError> = feed.await;
        std::future::pending::<()>().await;
    };
    let show = async {
        loop {
            match output.next().await {
                Ok(Some(Chunk::Stdout(bytes))) => outbox.stdout(bytes).await?,
                Ok(Some(Chunk::Stderr(bytes))) => outbox.stderr(bytes).await?,
                Ok(Some(Chunk::Exit(exit))) => {
                    outbox.exit(exit).await;
                    return Sent::Ok(());
                }
                Ok(Some(Chunk::Stdin(_) | Chunk::Resize(_) | Chunk::Signal(_) | Chunk::CloseStdin)) => {}
                Ok(None) | Err(_) => {
                    // The instance was stopped, most likely.
                    outbox.stderr(format!("berth: {}\r\n", words.gone())).await?;
                    outbox.exit(Exit::Code(255)).await;
                    return Ok(());
                }
            }
        }
    };
    let pass_signals = async {
        loop {
            let name = inbox.next_signal().await;
            let sent = agents.signal(instance, Signal { mark, name: name.clone() }).await;
            if let Err(AgentError::Refused { refusal: Refusal::UnknownCall, .. }) = sent {
                // An older agent takes them in their turn only.
                inbox.put_first(Input::Signal(name));
            }
        }
    };
    tokio::select! { () = feed => {}, _ = show => {}, () = pass_signals => {} }
}

/// A piece and those that have come after it, as many as one chunk can hold.
fn gather(pieces: &mut Vec<Bytes>, first: Bytes, inbox: &Inbox<'_>) {
    let mut room = CHUNK_MAX - first.len();
    pieces.push(first);
    while pieces.len() < PIECES_MAX
        && let Some(more) = inbox.more(room)
    {
        room -= more.len();
        pieces.push(more);
    }
}

/// A stream of bytes. Ends when both ways have; `exit` is told then, where there is one.
pub(super) async fn stream(
    stream: impl AsyncRead + AsyncWrite,
    inbox: &Inbox<'_>,
    outbox: &Outbox<'_>,
    exit: Option<Exit>,
) {
    let (mut read, mut write) = tokio::io::split(stream);
    let feed = async {
        loop {
            match inbox.next().await {
                Input::Data(bytes) => write.write_all(&bytes).await?,
                Input::End => return write.shutdown().await,
                Input::Resize(_) | Input::Signal(_) => {}
            }
        }
    };
    let show = async {
        let mut piece = BytesMut::new();
        loop {
            piece.reserve(PIECE);
            match read.read_buf(&mut piece).await {
                Ok(1..) => outbox.stdout(piece.split().freeze()).await?,
                Ok(_) | Err(_) => return outbox.write.eof().await,
            }
        }
    };
    if let Some(exit) = exit {
        // A server that has ended does not read any more.
        let feed = async {
            let _done = feed.await;
            std::future::pending::<()>().await;
        };
        tokio::select! { () = feed => {}, _ = show => {} }
        outbox.exit(exit).await;
    } else {
        // A reset is the end of both ways.
        let feed = async { feed.await.map_err(|_| ()) };
        let show = async { show.await.map_err(|_| ()) };
        let _broken = tokio::try_join!(feed, show);
        let _ = outbox.write.close().await;
    }
}
