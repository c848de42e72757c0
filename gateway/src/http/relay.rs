//! A WebSocket on one side, something of an instance on the other: the one way in which bytes go between them.
//!
//! Both ways go on at once, each at the pace of its receiver, so a flood of output never keeps a Ctrl-C from getting
//! through. What an instance's side is, [`Source`] and [`Sink`] say; this module knows none of them.
//!
//! - **A peer that is gone is noticed.** A laptop that was closed says nothing for ever, and would keep its place at a
//!   terminal. So the server asks now and then ([`PRESENCE`]); whoever is silent for too long is let go. Any message
//!   counts, and while the instance's side does not take what the client sent before, nothing is expected of it.
//! - **A window for those who cannot wait.** A browser takes all that comes, and a program's flood would pile up in the
//!   page: Ctrl-C would work and show nothing for a minute. A client that asks for it says how many bytes it has dealt
//!   with ([`FromClient::Ack`]), and never has more than [`WINDOW`] before it.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code},
    response::Response,
};
use bytes::Bytes;
use futures_util::{Sink as MessageSink, SinkExt as _, Stream, StreamExt as _};
use gateway_api::{
    Problem,
    stream::{FromClient, FromServer},
};
use tokio::{
    sync::Notify,
    time::{Instant, MissedTickBehavior, interval_at, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use crate::{app::App, auth::live::Kind, error::Error};

/// How often a client is asked whether it is there, and how long it may say nothing at all.
const PRESENCE: Presence =
    Presence { ping_every: Duration::from_secs(20), silence_max: Duration::from_mins(1) };
/// How long a client may take to close its side.
const LINGER: Duration = Duration::from_secs(2);
/// The longest message from a client: pasted text, mostly.
const MESSAGE_MAX: usize = 1 << 20;
/// Bytes that a client which acknowledges has not dealt with yet.
const WINDOW: usize = 256 << 10;

/// What comes from an instance.
pub(super) trait Source: Send {
    /// The next of it. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Piece> + Send;
}

/// What goes to an instance.
pub(super) trait Sink: Send {
    /// Takes bytes; `false` when it takes no more.
    fn bytes(&mut self, bytes: Bytes) -> impl Future<Output = bool> + Send;

    /// Takes anything else that a client says.
    fn word(&mut self, word: FromClient) -> impl Future<Output = bool> + Send;
}

/// One thing that comes from an instance.
#[derive(Debug)]
pub(super) enum Piece {
    Bytes(Bytes),
    /// The last words, then a close in order.
    Last(FromServer),
    /// The end, in order.
    End,
    /// It cannot go on, and why.
    Failed(Box<Problem>),
    Broken,
}

#[derive(Debug, Clone, Copy)]
struct Presence {
    ping_every: Duration,
    silence_max: Duration,
}

/// Whether the client acknowledges what it has dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    AsItReads,
    Acknowledged,
}

/// Answers with a WebSocket and does `work` with it, for as long as the caller's key is good. The work is a task of the
/// gateway's like any other.
pub(super) fn accept<F: Future<Output = ()> + Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    kind: Kind,
    upgrade: WebSocketUpgrade,
    work: impl FnOnce(WebSocket) -> F + Send + 'static,
) -> Result<Response, Error> {
    let open = app.live.open(caller, kind)?;
    let tasks = app.tasks.clone();
    let upgrade = upgrade.max_message_size(MESSAGE_MAX).max_frame_size(MESSAGE_MAX);
    Ok(upgrade.on_upgrade(move |socket| tasks.owned(open.during(work(socket)))))
}

/// Carries bytes both ways until either side ends.
pub(super) async fn relay<S, E>(
    stopping: CancellationToken,
    socket: S,
    pace: Pace,
    source: impl Source,
    sink: impl Sink,
) where
    S: Stream<Item = Result<Message, E>> + MessageSink<Message> + Send,
    E: Send,
{
    Client::new(pace, PRESENCE).relay(stopping, socket, source, sink).await;
}

/// Says why there is nothing to relay.
pub(super) async fn refuse(socket: WebSocket, caller: &Caller, error: &Error) {
    tracing::info!(%error, "a process was not started");
    let (mut sender, receiver) = socket.split();
    last(&mut sender, &FromServer::Error(problem(caller, error))).await;
    linger(receiver).await;
}

/// An error as it travels over a WebSocket, where no layer adds the request's number.
pub(super) fn problem(caller: &Caller, error: &Error) -> Problem {
    Problem { request_id: caller.origin.request_id.clone(), ..error.problem() }
}

/// Reads on until the client has closed too. A socket that is dropped while the client still sends is reset, and the
/// client may then never read what was said last.
async fn linger<E>(mut receiver: impl Stream<Item = Result<Message, E>> + Unpin) {
    let closed = async { while let Some(Ok(_)) = receiver.next().await {} };
    let _ = timeout(LINGER, closed).await;
}

/// What is known of the client.
struct Client {
    pace: Pace,
    presence: Presence,
    begun: Instant,
    /// When it was last heard, in milliseconds since the beginning; [`u64::MAX`] while nothing is expected of it.
    heard: AtomicU64,
    unacknowledged: AtomicUsize,
    acknowledged: Notify,
}

impl Client {
    fn new(pace: Pace, presence: Presence) -> Self {
        Self {
            pace,
            presence,
            begun: Instant::now(),
            heard: AtomicU64::new(0),
            unacknowledged: AtomicUsize::new(0),
            acknowledged: Notify::new(),
        }
    }

    async fn relay<S, E>(&self, stopping: CancellationToken, socket: S, source: impl Source, sink: impl Sink)
    where
        S: Stream<Item = Result<Message, E>> + MessageSink<Message> + Send,
        E: Send,
    {
        let (mut sender, mut receiver) = socket.split();
        tokio::select! {
            () = self.outwards(&mut sender, source) => {}
            () = self.inwards(&mut receiver, sink) => {}
            () = stopping.cancelled() => {}
            () = self.silence() => {
                tracing::info!("a connection was closed: its client has gone");
                return;
            }
        }
        linger(receiver).await;
    }

    /// From the instance to the client, until the instance's side ends or the client takes no more.
    async fn outwards(&self, sender: &mut (impl MessageSink<Message> + Unpin), mut source: impl Source) {
        let mut ping = interval_at(self.begun + self.presence.ping_every, self.presence.ping_every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = async {
                self.room().await;
                source.next().await
            };
            let piece = tokio::select! {
                piece = next => piece,
                _ = ping.tick() => {
                    if sender.send(Message::Ping(Bytes::new())).await.is_err() {
                        return;
                    }
                    continue;
                }
            };
            let bytes = match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Last(words) => return last(sender, &words).await,
                Piece::End => return close(sender, close_code::NORMAL, "").await,
                Piece::Failed(problem) => {
                    let _ = sender.send(words(&FromServer::Error(*problem))).await;
                    return close(sender, close_code::ERROR, "").await;
                }
                Piece::Broken => {
                    return close(sender, close_code::AWAY, "the link to the instance broke").await;
                }
            };
            self.unacknowledged.fetch_add(bytes.len(), Ordering::Relaxed);
            if sender.send(Message::Binary(bytes)).await.is_err() {
                return;
            }
        }
    }

    /// Waits until the client may have more before it.
    async fn room(&self) {
        while self.pace == Pace::Acknowledged && self.unacknowledged.load(Ordering::Relaxed) >= WINDOW {
            self.acknowledged.notified().await;
        }
    }

    /// From the client to the instance, until the client is gone or talks nonsense.
    ///
    /// An instance's side that takes no more may still have something to say, so the client is heard out even then.
    async fn inwards<E>(
        &self,
        receiver: &mut (impl Stream<Item = Result<Message, E>> + Unpin),
        mut sink: impl Sink,
    ) {
        let mut takes = true;
        while let Some(Ok(message)) = receiver.next().await {
            self.expect_nothing();
            match message {
                Message::Close(_) => return,
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Binary(bytes) => takes = takes && sink.bytes(bytes).await,
                Message::Text(text) => match serde_json::from_str(&text) {
                    Ok(FromClient::Ack(bytes)) => self.acknowledge(bytes),
                    Ok(word) => takes = takes && sink.word(word).await,
                    Err(_) => return,
                },
            }
            self.hear();
        }
    }

    fn acknowledge(&self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let less = |unacknowledged: usize| Some(unacknowledged.saturating_sub(bytes));
        let _ = self.unacknowledged.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.acknowledged.notify_one();
    }

    /// Returns when the client has been silent for too long.
    async fn silence(&self) {
        loop {
            sleep(self.presence.ping_every / 2).await;
            let heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
            if self.begun.elapsed().saturating_sub(heard) >= self.presence.silence_max {
                return;
            }
        }
    }

    fn hear(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Relaxed);
    }

    fn expect_nothing(&self) {
        self.heard.store(u64::MAX, Ordering::Relaxed);
    }
}

/// The last message, then a clean close.
async fn last(sender: &mut (impl MessageSink<Message> + Unpin), said: &FromServer) {
    if sender.send(words(said)).await.is_ok() {
        close(sender, close_code::NORMAL, "").await;
    }
}

async fn close(sender: &mut (impl MessageSink<Message> + Unpin), code: u16, reason: &'static str) {
    let _ = sender.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
}

fn words(said: &FromServer) -> Message {
    Message::Text(serde_json::to_string(said).unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, pin::Pin, task::Context, task::Poll};

    use futures_util::stream;
    use tokio::sync::mpsc;

    use super::*;

    /// The server's end of a WebSocket without a network.
    struct Socket {
        from: mpsc::Receiver<Message>,
        to: futures_util::sink::Drain<Message>,
        sent: mpsc::Sender<Message>,
    }

    impl Stream for Socket {
        type Item = Result<Message, Infallible>;

        fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            self.from.poll_recv(context).map(|message| message.map(Ok))
        }
    }

    impl MessageSink<Message> for Socket {
        type Error = Infallible;

        fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            self.to.poll_ready_unpin(context)
        }

        fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), Infallible> {
            self.sent.try_send(message).unwrap();
            Ok(())
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            self.to.poll_flush_unpin(context)
        }

        fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            self.to.poll_close_unpin(context)
        }
    }

    fn socket() -> (Socket, mpsc::Sender<Message>, mpsc::Receiver<Message>) {
        let (client, from) = mpsc::channel(16);
        let (sent, heard) = mpsc::channel(1024);
        (Socket { from, to: futures_util::sink::drain(), sent }, client, heard)
    }

    /// An instance that says what is in the list, and then nothing.
    struct Says(stream::Iter<std::vec::IntoIter<Piece>>);

    fn says(pieces: Vec<Piece>) -> Says {
        Says(stream::iter(pieces))
    }

    impl Source for Says {
        async fn next(&mut self) -> Piece {
            match self.0.next().await {
                Some(piece) => piece,
                None => std::future::pending().await,
            }
        }
    }

    /// One that takes what comes, or the first thing for ever.
    struct Takes {
        stuck: bool,
    }

    impl Sink for Takes {
        async fn bytes(&mut self, _: Bytes) -> bool {
            if self.stuck { std::future::pending().await } else { true }
        }

        async fn word(&mut self, _: FromClient) -> bool {
            true
        }
    }

    /// Pings every few milliseconds. The limit is longer than any pause of a busy machine.
    const SOON: Presence =
        Presence { ping_every: Duration::from_millis(4), silence_max: Duration::from_mins(30) };

    /// Returns `true` if the relay drops a client that was silent for an hour and then says this. Twenty pings mean that it
    /// does not: the relay checks the client more often than it pings.
    async fn is_let_go(stuck: bool, said: Option<Message>) -> bool {
        let (socket, client, mut heard) = socket();
        let begun = Instant::now() - Duration::from_hours(1);
        let silent = Client { begun, ..Client::new(Pace::AsItReads, SOON) };
        if let Some(said) = said {
            client.send(said).await.unwrap();
        }
        let relaying = silent.relay(CancellationToken::new(), socket, says(Vec::new()), Takes { stuck });
        let asked = async {
            for _ in 0..20 {
                assert!(matches!(heard.recv().await, Some(Message::Ping(_))));
            }
        };
        tokio::select! {
            () = relaying => true,
            () = asked => false,
        }
    }

    #[tokio::test]
    async fn whoever_is_silent_is_let_go() {
        assert!(is_let_go(false, None).await);
        assert!(!is_let_go(false, Some(Message::Pong(Bytes::new()))).await);
        // The instance does not read what was typed, and the client's answers are behind that.
        assert!(!is_let_go(true, Some(Message::Binary(Bytes::from_static(b"x")))).await);
    }

    #[tokio::test]
    async fn no_more_than_the_window_is_before_a_client_that_acknowledges() {
        const PIECE: usize = 64 << 10;
        let flood = || says((0..64).map(|_| Piece::Bytes(vec![b'y'; PIECE].into())).collect());
        let (client_side, client, mut heard) = socket();
        let relaying =
            relay(CancellationToken::new(), client_side, Pace::Acknowledged, flood(), Takes { stuck: false });
        let talk = async {
            assert_eq!(heard_bytes(&mut heard, WINDOW).await, WINDOW);
            let ack = serde_json::to_string(&FromClient::Ack((2 * PIECE) as u64)).unwrap();
            client.send(Message::Text(ack.into())).await.unwrap();
            assert_eq!(heard_bytes(&mut heard, 2 * PIECE).await, 2 * PIECE);
        };
        tokio::select! {
            () = relaying => panic!("it ended"),
            () = talk => {}
        }

        let (client_side, _client, mut heard) = socket();
        let relaying =
            relay(CancellationToken::new(), client_side, Pace::AsItReads, flood(), Takes { stuck: false });
        tokio::select! {
            () = relaying => panic!("it ended"),
            all = heard_bytes(&mut heard, 64 * PIECE) => {
                assert_eq!(all, 64 * PIECE, "whoever did not ask for it reads at the pace of the network");
            }
        }
    }

    /// Counts bytes until there are `enough`, and those that the relay sends in its next 1000 turns.
    async fn heard_bytes(heard: &mut mpsc::Receiver<Message>, enough: usize) -> usize {
        let mut bytes = 0;
        while bytes < enough {
            if let Some(Message::Binary(piece)) = heard.recv().await {
                bytes += piece.len();
            }
        }
        for _ in 0..1000 {
            tokio::task::yield_now().await;
            if let Ok(Message::Binary(piece)) = heard.try_recv() {
                bytes += piece.len();
            }
        }
        bytes
    }
}
