//! WebSockets: many that echo, or many that do nothing.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use clap::Args;
use futures_util::{
    SinkExt as _, StreamExt as _,
    future::{join_all, try_join_all},
};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, net::TcpStream};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest as _},
};

pub(crate) type Socket = WebSocketStream<TcpStream>;

/// So many are opened at once; a listener's queue takes more.
const AT_ONCE: usize = 64;
/// What those say that are kept open, and how often.
const BEAT: Duration = Duration::from_secs(1);
const BEAT_BYTES: usize = 64;

#[derive(Debug, Args)]
pub(crate) struct To {
    /// Such as `ws://app.localhost:8080/socket`
    url: String,
    /// Where the connection goes, whatever the URL's host is
    #[arg(long)]
    connect: std::net::SocketAddr,
    /// A header of the handshake, such as `Cookie: a=b`
    #[arg(long = "header")]
    headers: Vec<String>,
}

impl To {
    pub(crate) async fn open(&self) -> anyhow::Result<Socket> {
        let mut request = self.url.as_str().into_client_request().context("the URL cannot be read")?;
        for header in &self.headers {
            let (name, value) = header.split_once(": ").context("a header is `Name: value`")?;
            request
                .headers_mut()
                .insert(name.parse::<HeaderName>()?, HeaderValue::from_str(value).context("a bad header")?);
        }
        let stream = TcpStream::connect(self.connect).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        Ok(client_async(request, stream).await.context("the handshake failed")?.0)
    }

    async fn open_many(&self, count: usize) -> anyhow::Result<Vec<Socket>> {
        let mut sockets = Vec::with_capacity(count);
        while sockets.len() < count {
            let more = AT_ONCE.min(count - sockets.len());
            sockets.extend(try_join_all((0..more).map(|_| self.open())).await?);
        }
        Ok(sockets)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Echo {
    #[command(flatten)]
    to: To,
    #[arg(long, default_value_t = 16)]
    sockets: usize,
    /// In all, over all sockets
    #[arg(long, default_value_t = 20_000)]
    messages: usize,
    #[arg(long, default_value_t = 64)]
    bytes: usize,
}

impl Echo {
    pub(crate) async fn run(self) -> anyhow::Result<Value> {
        let sockets = self.to.open_many(self.sockets).await?;
        let each = self.messages / self.sockets;
        let begun = Instant::now();
        let times = try_join_all(sockets.into_iter().map(|socket| echoes(socket, each, self.bytes))).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let mut told = summary(times.concat());
        told["messages"] = (each * self.sockets).into();
        told["seconds"] = seconds.into();
        Ok(told)
    }
}

async fn echoes(mut socket: Socket, count: usize, bytes: usize) -> anyhow::Result<Vec<Duration>> {
    echo_some(&mut socket, count, bytes).await
}

async fn echo_some(socket: &mut Socket, count: usize, bytes: usize) -> anyhow::Result<Vec<Duration>> {
    let message = Message::binary(unlike_others(bytes));
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        socket.send(message.clone()).await?;
        let back = socket.next().await.context("the socket was closed")??;
        ensure!(back == message, "another message came back");
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// So many bytes that no other message has: what comes back over the wrong socket is told from what was sent.
fn unlike_others(bytes: usize) -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    number.into_iter().cycle().take(bytes).collect()
}

#[derive(Debug, Args)]
pub(crate) struct Idle {
    #[command(flatten)]
    to: To,
    #[arg(long, default_value_t = 1000)]
    sockets: usize,
}

impl Idle {
    /// Says `open` once all are, and then waits.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let sockets = self.to.open_many(self.sockets).await?;
        println!("open");
        let _ = tokio::io::stdin().read(&mut [0]).await?;
        drop(sockets);
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Soak {
    #[command(flatten)]
    to: To,
    /// Those in which nothing happens until the end
    #[arg(long, default_value_t = 2000)]
    idle: usize,
    /// Those that echo a message a second
    #[arg(long, default_value_t = 200)]
    active: usize,
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

impl Soak {
    /// Keeps all open for so long; each that does not echo any more, in the end at the latest, was dropped.
    pub(crate) async fn run(self) -> anyhow::Result<Value> {
        let idle = self.to.open_many(self.idle).await?;
        let active = self.to.open_many(self.active).await?;
        let until = Instant::now() + Duration::from_secs(self.seconds);
        let beats = join_all(active.into_iter().map(|socket| beat(socket, until))).await;
        let mut dropped = beats.iter().filter(|beats| beats.is_err()).count();
        let times = beats.into_iter().filter_map(Result::ok).flatten().collect::<Vec<_>>();
        for socket in idle {
            dropped += usize::from(echoes(socket, 1, BEAT_BYTES).await.is_err());
        }
        let messages = times.len();
        let mut told = summary(times);
        told["dropped"] = dropped.into();
        told["messages"] = messages.into();
        Ok(told)
    }
}

/// A message a second until then; how long each took.
async fn beat(mut socket: Socket, until: Instant) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut clock = tokio::time::interval(BEAT);
    while Instant::now() < until {
        clock.tick().await;
        times.extend(echo_some(&mut socket, 1, BEAT_BYTES).await?);
    }
    Ok(times)
}

/// The median and the 99th percentile, in microseconds.
pub(crate) fn summary(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at = |share: usize| {
        times.get((times.len() * share / 100).min(times.len().saturating_sub(1))).map(Duration::as_micros)
    };
    json!({ "p50_us": at(50).unwrap_or_default(), "p99_us": at(99).unwrap_or_default() })
}
