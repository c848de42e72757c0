//! The app behind every proxy: as little of its own as can be.

use std::{convert::Infallible, net::SocketAddr};

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{handshake::derive_accept_key, protocol::Role},
};

const SMALL: usize = 1 << 10;
const LARGE: usize = 10 << 20;

type Answer = Response<Full<Bytes>>;

pub(crate) async fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await.context("cannot listen")?;
    let (small, large) = (Bytes::from(vec![b'x'; SMALL]), Bytes::from(vec![b'x'; LARGE]));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (small, large) = (small.clone(), large.clone());
        let service = service_fn(move |request| answer(request, small.clone(), large.clone()));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        go(async move {
            // Whoever hangs up is not asked why.
            let _ = connection.with_upgrades().await;
        });
    }
}

async fn answer(mut request: Request<Incoming>, small: Bytes, large: Bytes) -> Result<Answer, Infallible> {
    let bytes = match request.uri().path() {
        "/small" => small,
        "/large" => large,
        "/sink" => {
            while let Some(Ok(_)) = request.body_mut().frame().await {}
            Bytes::new()
        }
        "/socket" => return Ok(switch(&mut request)),
        _ => {
            let mut nothing = Answer::default();
            *nothing.status_mut() = StatusCode::NOT_FOUND;
            return Ok(nothing);
        }
    };
    Ok(Response::new(Full::new(bytes)))
}

/// Answers 101 and echoes from then on.
fn switch(request: &mut Request<Incoming>) -> Answer {
    let mut answer = Answer::default();
    let Some(key) = request.headers().get(header::SEC_WEBSOCKET_KEY) else {
        *answer.status_mut() = StatusCode::BAD_REQUEST;
        return answer;
    };
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accepted) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    }
    go(echo(hyper::upgrade::on(request)));
    answer
}

async fn echo(upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else { return };
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
    while let Some(Ok(message)) = socket.next().await {
        if (message.is_binary() || message.is_text()) && socket.send(message).await.is_err() {
            return;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "it ends with the process; nothing waits for it")]
fn go(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}
