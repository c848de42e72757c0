//! `berth port-forward`: a port of an instance as a port of this machine.
//!
//! Every connection here is one connection there. All of them live in one task; each copies a piece in one direction
//! only after the piece before it was taken, so a slow side slows the other down instead of filling memory. A gateway
//! or an instance that goes away breaks connections, not the forwarding: the next connection finds it again.

use std::{io, net::Ipv4Addr, num::NonZeroU16, str::FromStr};

use clap::Args;
use futures_util::{StreamExt as _, future::Either, future::select, stream::FuturesUnordered};
use gateway_api::{
    Code,
    client::{ClientError, Process, ProcessEvent, ProcessInput, ProcessOutput},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::Session;
use crate::{
    failure::{self, Said, Status},
    output,
};

/// The most connections at once; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 512;
/// How much is read here at once.
const PIECE: usize = 32 << 10;

#[derive(Debug, Args)]
pub(crate) struct PortForward {
    /// The instance
    name: String,
    /// A port here and the port there, if they differ; 0 here takes any free one
    #[arg(required = true, value_name = "LOCAL[:REMOTE]")]
    ports: Vec<Pair>,
}

/// A port here and a port there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    local: u16,
    remote: NonZeroU16,
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "use ports from 1 to 65535, such as `8888` or `8888:8080`".to_owned();
        let (local, remote) = text.split_once(':').unwrap_or((text, text));
        let local = local.parse().map_err(|_| wrong())?;
        Ok(Self { local, remote: remote.parse().map_err(|_| wrong())? })
    }
}

pub(crate) async fn port_forward(arguments: &PortForward, session: &Session) -> anyhow::Result<Status> {
    let name = arguments.name.as_str();
    // Better to hear now than at the first connection that there is no such instance.
    if let Err(error) = session.client.instance(name).await {
        return Err(session.explain(name, error).await);
    }
    let mut listeners = Vec::new();
    for &pair in &arguments.ports {
        listeners.push((listen(pair, session).await?, pair.remote.get()));
    }
    for (listener, remote) in &listeners {
        output::data(&format!("{} -> {remote}", listener.local_addr()?))?;
    }
    output::say(&session.words.forwarding(name));
    tokio::select! {
        error = forward(name, &listeners, session) => Err(error.into()),
        pressed = tokio::signal::ctrl_c() => {
            pressed?;
            Ok(Status::DONE)
        }
    }
}

/// Only this machine reaches the port: what is behind it has no sign-in of its own.
async fn listen(pair: Pair, session: &Session) -> anyhow::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, pair.local)).await.map_err(|cause| {
        let what = session.words.cannot_listen(pair.local, &cause.to_string());
        Said { what, hint: Some(session.words.hint_cannot_listen(pair.remote.get())) }.into()
    })
}

/// Takes connections and carries them, for ever. Only an error of this machine's own ends it.
async fn forward(name: &str, listeners: &[(TcpListener, u16)], session: &Session) -> io::Error {
    let mut open = FuturesUnordered::new();
    let mut accepting: FuturesUnordered<_> = (0..listeners.len()).map(|at| accept(listeners, at)).collect();
    let mut troubles = Troubles { session, last: None };
    loop {
        let full = open.len() >= CONNECTIONS_MAX;
        if full {
            troubles.say(session.words.too_many_connections(CONNECTIONS_MAX));
        }
        tokio::select! {
            Some((at, accepted)) = accepting.next(), if !full => match accepted {
                Ok(stream) => {
                    accepting.push(accept(listeners, at));
                    open.push(carry(session, name, stream, listeners[at].1));
                }
                Err(error) if is_passing(&error) => accepting.push(accept(listeners, at)),
                Err(error) => return error,
            },
            Some((port, ended)) = open.next() => troubles.note(name, port, ended),
        }
    }
}

async fn accept(listeners: &[(TcpListener, u16)], at: usize) -> (usize, io::Result<TcpStream>) {
    (at, listeners[at].0.accept().await.map(|(stream, _)| stream))
}

/// Errors of one connection that say nothing of the next.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

/// Carries one connection to its end.
async fn carry(
    session: &Session,
    name: &str,
    stream: TcpStream,
    port: u16,
) -> (u16, Result<(), ClientError>) {
    // Its own error would only mean that small pieces wait a little.
    let _ = stream.set_nodelay(true);
    let ended = match session.client.port(name, port).await {
        Ok(process) => join(process, stream).await,
        Err(error) => Err(error),
    };
    (port, ended)
}

async fn join(process: Process, stream: TcpStream) -> Result<(), ClientError> {
    let Process { mut input, mut output } = process;
    let (from, to) = stream.into_split();
    let ended = {
        let there = std::pin::pin!(there(from, &mut input));
        let back = std::pin::pin!(back(&mut output, to));
        match select(there, back).await {
            // What was asked for here is still to be answered there.
            Either::Left((Ok(()), back)) => back.await,
            Either::Left((Err(error), _)) | Either::Right((Err(error), _)) => Err(error),
            Either::Right((Ok(()), _)) => Ok(()),
        }
    };
    input.leave().await;
    ended
}

/// From here to the instance, until this side has said all.
async fn there(mut from: OwnedReadHalf, input: &mut ProcessInput) -> Result<(), ClientError> {
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        input.write(&piece[..length]).await?;
    }
    input.close_stdin().await
}

/// From the instance to here, until that side has said all.
async fn back(output: &mut ProcessOutput, mut to: OwnedWriteHalf) -> Result<(), ClientError> {
    while let Some(event) = output.next().await {
        match event? {
            ProcessEvent::Output { bytes, .. } => {
                if to.write_all(&bytes).await.is_err() {
                    return Ok(());
                }
            }
            ProcessEvent::Exit(_) => break,
            ProcessEvent::Problem(problem) => return Err(ClientError::Problem(problem)),
        }
    }
    let _ = to.shutdown().await;
    Ok(())
}

/// What went wrong with connections, each trouble said once until something else happens.
struct Troubles<'session> {
    session: &'session Session,
    last: Option<String>,
}

impl Troubles<'_> {
    fn note(&mut self, name: &str, port: u16, ended: Result<(), ClientError>) {
        let Err(error) = ended else {
            self.last = None;
            return;
        };
        let words = self.session.words;
        if is_nobody_listening(&error) {
            self.say(words.nothing_listens(name, port));
        } else {
            self.say(failure::render(&error.into(), words, output::colours()));
        }
    }

    fn say(&mut self, sentence: String) {
        if self.last.as_ref() != Some(&sentence) {
            output::say(&sentence);
            self.last = Some(sentence);
        }
    }
}

fn is_nobody_listening(error: &ClientError) -> bool {
    error.problem().is_some_and(|problem| {
        problem.code == Code::BadValue && problem.params.get("field").is_some_and(|field| field == "port")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_ports() {
        let pair = |local, remote| Pair { local, remote: NonZeroU16::new(remote).unwrap() };
        for (text, expected) in
            [("8888", pair(8888, 8888)), ("8888:8080", pair(8888, 8080)), ("0:80", pair(0, 80))]
        {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for wrong in ["", "0", "a", "80:", ":80", "80:0", "65536", "1:2:3", "80:65536", "-1", "+80 "] {
            assert!(wrong.parse::<Pair>().is_err(), "{wrong}");
        }
    }
}
