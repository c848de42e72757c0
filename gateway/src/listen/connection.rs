//! What a connection holds for as long as it lives, in whatever shape: its place, and whether it is at work.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
    time::Sleep,
};
use tokio_rustls::server::TlsStream;

use super::framing::Framing;
use crate::metrics;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How much of a body that nobody wants is read.
const DISCARD_MAX: usize = 1 << 20;

/// One of the places of a listener. Given back when the last copy is gone.
#[derive(Debug, Clone)]
pub(super) struct Place(Arc<Seat>);

#[derive(Debug)]
struct Seat {
    websocket: AtomicBool,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    pub(super) fn new(permit: OwnedSemaphorePermit) -> Self {
        metrics::connection_opened();
        Self(Arc::new(Seat { websocket: AtomicBool::new(false), _permit: permit }))
    }

    pub(super) fn is_websocket(&self) {
        if !self.0.websocket.swap(true, Ordering::Relaxed) {
            metrics::websocket_opened();
        }
    }

    fn has_become_websocket(&self) -> bool {
        self.0.websocket.load(Ordering::Relaxed)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        metrics::connection_closed();
        if *self.websocket.get_mut() {
            metrics::websocket_closed();
        }
    }
}

/// Whether a connection has requests under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Activity(Arc<(AtomicUsize, AtomicBool)>);

/// One request under way.
#[derive(Debug)]
pub(super) struct Busy(Activity);

impl Activity {
    pub(super) fn busy(&self) -> Busy {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        self.0.1.store(true, Ordering::Relaxed);
        Busy(self.clone())
    }

    /// Whether there is a request now, or was one since this was asked last.
    pub(super) fn is_busy_since_last(&self) -> bool {
        self.0.1.swap(false, Ordering::Relaxed) || self.0.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request's body. It may not pause for too long, and what is left of it when it is dropped goes to [`Leftover`], if
/// its protocol wants one.
#[derive(Default)]
pub(crate) struct RequestBody {
    /// There until it is dropped, unless it was none from the beginning.
    body: Option<Unread>,
    leftover: Option<Leftover>,
}

/// A body and how long it may pause. Time counts only while somebody waits for it.
struct Unread {
    body: Incoming,
    /// What is done with the headers at its end.
    tame: Option<fn(&mut HeaderMap)>,
    pause_limit: Duration,
    pause: Option<Pin<Box<Sleep>>>,
}

/// What a handler did not read of a body. HTTP/2 resets a stream whose body is dropped before its end, and some clients
/// then lose the answer that was sent before.
#[derive(Clone, Default)]
pub(super) struct Leftover(Arc<Mutex<Option<Unread>>>);

impl RequestBody {
    pub(super) fn new(body: Incoming, pause_limit: Duration, leftover: Option<Leftover>) -> Self {
        Self { body: Some(Unread { body, tame: None, pause_limit, pause: None }), leftover }
    }

    /// For somebody who is known, and whose program may take its time.
    pub(crate) fn may_pause_for(&mut self, limit: Duration) {
        if let Some(body) = &mut self.body {
            body.pause_limit = limit;
        }
    }

    /// Trailers are headers too: what must not go on is taken out of them as well.
    pub(crate) fn tame_trailers(&mut self, tame: fn(&mut HeaderMap)) {
        if let Some(body) = &mut self.body {
            body.tame = Some(tame);
        }
    }
}

impl Body for Unread {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(mut frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.pause = None;
            if let (Some(tame), Some(Ok(frame))) = (self.tame, &mut frame)
                && let Some(trailers) = frame.trailers_mut()
            {
                tame(trailers);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let limit = self.pause_limit;
        let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        pause.as_mut().poll(context).map(|()| Some(Err("the body paused for too long".into())))
    }
}

impl Leftover {
    /// Reads on to the end, but not for ever; `None` when there is nothing to read.
    pub(super) fn discard(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(discard(body, DISCARD_MAX))
    }
}

/// Lets the rest of a body pass by, up to so many bytes: whoever still sends when a stream or a connection ends may
/// never hear the answer.
pub(crate) async fn discard(mut body: impl Body<Data = Bytes> + Unpin, most: usize) {
    let mut left = most;
    while let Some(Ok(frame)) = body.frame().await {
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        if left == 0 {
            return;
        }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(leftover) = &self.leftover
            && let Some(body) = self.body.take().filter(|unread| !unread.body.is_end_stream())
        {
            *leftover.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.body.as_mut().map_or(Poll::Ready(None), |unread| Pin::new(unread).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(|unread| unread.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), |unread| unread.body.size_hint())
    }
}

/// A body that keeps its request under way until its end.
#[derive(Debug)]
pub(super) struct Held<B> {
    body: Option<B>,
    _busy: Busy,
}

impl<B> Held<B> {
    pub(super) fn new(body: B, busy: Busy) -> Self {
        Self { body: Some(body), _busy: busy }
    }

    pub(super) fn empty(busy: Busy) -> Self {
        Self { body: None, _busy: busy }
    }
}

impl<B: Body + Unpin> Body for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.body.as_mut().map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// A connection that was HTTP once, without anything of HTTP around it. It keeps its place.
#[derive(Debug)]
pub(crate) struct Raw {
    stream: RawStream,
    _place: Option<Place>,
}

#[derive(Debug)]
enum RawStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Other(TokioIo<Upgraded>),
}

impl Raw {
    /// Takes a connection back from hyper, with what it has read already.
    pub(crate) fn take_back(upgraded: Upgraded) -> (Self, Bytes) {
        let upgraded = match upgraded.downcast::<TokioIo<Owned<TcpStream>>>() {
            Ok(parts) => {
                let Owned { stream, place, .. } = parts.io.into_inner();
                let stream = RawStream::Plain(stream);
                return (Self { stream, _place: Some(place) }, parts.read_buf);
            }
            Err(upgraded) => upgraded,
        };
        match upgraded.downcast::<TokioIo<Owned<TlsStream<TcpStream>>>>() {
            Ok(parts) => {
                let Owned { stream, place, .. } = parts.io.into_inner();
                let stream = RawStream::Tls(Box::new(stream));
                (Self { stream, _place: Some(place) }, parts.read_buf)
            }
            Err(upgraded) => {
                (Self { stream: RawStream::Other(TokioIo::new(upgraded)), _place: None }, Bytes::new())
            }
        }
    }
}

impl AsyncRead for Raw {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            RawStream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            RawStream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            RawStream::Other(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Raw {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            RawStream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            RawStream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            RawStream::Other(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            RawStream::Plain(stream) => Pin::new(stream).poll_flush(context),
            RawStream::Tls(stream) => Pin::new(stream).poll_flush(context),
            RawStream::Other(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            RawStream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            RawStream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            RawStream::Other(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// A stream that keeps its place until it is closed, also when it is no longer HTTP.
#[derive(Debug)]
pub(super) struct Owned<IO> {
    stream: IO,
    place: Place,
    /// For HTTP/1.
    framing: Option<Framing>,
}

impl<IO> Owned<IO> {
    pub(super) fn new(stream: IO, place: Place, http2: bool) -> Self {
        Self { stream, place, framing: (!http2).then(Framing::default) }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Owned<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.framing.is_some() && self.place.has_become_websocket() {
            self.framing = None;
        }
        if let Some(framing) = &mut self.framing {
            framing.look(&mut buffer.filled_mut()[before..]);
        }
        read
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Owned<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
