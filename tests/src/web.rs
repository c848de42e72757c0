//! HTTP and WebSockets by hand, for requests that the client of `gateway-api` would never send.

use std::net::IpAddr;

use gateway_api::Problem;
use reqwest::{Method, StatusCode, header::HeaderMap};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error, client::IntoClientRequest as _},
};

use crate::OrFail as _;

pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A client without any habits. It speaks with loopback only, but will not be made without something for TLS.
pub fn http_client() -> reqwest::Client {
    builder().build().or_fail("make a client")
}

/// The same, at an address of its own.
pub fn http_client_from(address: IpAddr) -> reqwest::Client {
    builder().local_address(address).build().or_fail("make a client")
}

fn builder() -> reqwest::ClientBuilder {
    // Another thread may have been faster.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    reqwest::Client::builder().no_proxy()
}

/// Sends a request with nothing but these headers; the status, and the problem if the answer is one.
pub async fn raw_http(
    method: Method,
    url: &str,
    headers: &[(&'static str, &str)],
) -> (StatusCode, Option<Problem>, HeaderMap) {
    let mut request = http_client().request(method, url);
    for &(name, value) in headers {
        request = request.header(name, value);
    }
    let answer = request.send().await.or_fail(format!("get an answer from {url}"));
    let (status, head) = (answer.status(), answer.headers().clone());
    let is_problem = head.get("content-type").is_some_and(|kind| kind == gateway_api::error::PROBLEM_JSON);
    if !is_problem {
        return (status, None, head);
    }
    let body = answer.bytes().await.or_fail("read an answer");
    (status, Some(serde_json::from_slice(&body).or_fail("read a problem")), head)
}

/// Opens a WebSocket at an `http://` address.
pub async fn web_socket(url: &str, headers: &[(&'static str, &str)]) -> Socket {
    try_web_socket(url, headers).await.or_fail(format!("open a WebSocket at {url}"))
}

/// How the gateway refuses a WebSocket; fails the test if it does not.
pub async fn web_socket_refused(
    url: &str,
    headers: &[(&'static str, &str)],
) -> (StatusCode, Option<Problem>) {
    let Err(Error::Http(answer)) = try_web_socket(url, headers).await else {
        panic!("{url} was not refused");
    };
    let problem = answer.body().as_ref().and_then(|body| serde_json::from_slice(body).ok());
    (answer.status(), problem)
}

async fn try_web_socket(url: &str, headers: &[(&'static str, &str)]) -> Result<Socket, Error> {
    let mut request = url.replacen("http", "ws", 1).into_client_request()?;
    for &(name, value) in headers {
        request.headers_mut().insert(name, value.parse().or_fail("make a header"));
    }
    Ok(connect_async(request).await?.0)
}
