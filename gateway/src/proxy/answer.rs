//! What goes back to the browser: a text of ours, or what an app sends, for as long as its visitor may see it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::{Proxy, session::Visitor, upstream::Lent};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer.
pub(crate) enum AnswerBody {
    Text(Option<Bytes>),
    App(Watched),
}

/// An app's body that breaks off when the key of its visitor ends. As long as it comes, its instance is in use; once all
/// of it has been read, its connection is free again.
pub(crate) struct Watched {
    body: Incoming,
    connection: Option<Lent>,
    proxy: Arc<Proxy>,
    visitor: Visitor,
    /// Made once there is something to wait for: most bodies come at once.
    ended: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Watched {
    pub(super) fn new(body: Incoming, connection: Lent, proxy: Arc<Proxy>, visitor: Visitor) -> Self {
        let mut watched = Self { body, connection: Some(connection), proxy, visitor, ended: None };
        if watched.body.is_end_stream() {
            watched.give_back();
        }
        watched
    }

    fn give_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.proxy.upstreams.keep(connection);
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let watched = match self.get_mut() {
            Self::Text(text) => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::App(watched) => watched,
        };
        if let Poll::Ready(frame) = Pin::new(&mut watched.body).poll_frame(context) {
            // Whoever sends it on does not ask again after trailers.
            let trailers = matches!(&frame, Some(Ok(frame)) if frame.is_trailers());
            if frame.is_none() || trailers || watched.body.is_end_stream() {
                watched.give_back();
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let (app, visitor) = (&watched.proxy.app, &watched.visitor);
        let ended = watched.ended.get_or_insert_with(|| {
            let connection = app.live.watch(visitor.key);
            let used = app.agents.note_open(visitor.session.instance.id.clone());
            Box::pin(async move {
                connection.ended().await;
                drop(used);
            })
        });
        ended.as_mut().poll(context).map(|()| Some(Err("the visitor's session has ended".into())))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Text(text) => text.as_ref().is_none_or(Bytes::is_empty),
            Self::App(watched) => watched.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::App(watched) => watched.body.size_hint(),
        }
    }
}

/// A text of ours. Nobody keeps it, and nobody is told where it came from.
pub(super) fn text(response: Response<Bytes>) -> Response<AnswerBody> {
    let mut response = response.map(|text| AnswerBody::Text(Some(text)));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::VARY, HeaderValue::from_static("accept, accept-language, cookie"));
    response
}

pub(super) fn redirect(status: StatusCode, to: &str) -> Response<AnswerBody> {
    let mut response = text(Response::new(Bytes::new()));
    match HeaderValue::from_str(to) {
        Ok(location) => {
            *response.status_mut() = status;
            response.headers_mut().insert(header::LOCATION, location);
        }
        Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}
