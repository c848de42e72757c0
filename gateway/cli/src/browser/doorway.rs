//! Hands the browser an address that signs in without naming it: every user of a machine can read the command lines of
//! all others, and whoever is first with such an address is in.
//!
//! The browser is told to open a page of this very process, which leads it on, once. The page answers only connections
//! of the same user, where the system tells whose they are.

use std::{
    cell::Cell,
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use http_body_util::Empty;
use hyper::{
    Method, Request, Response, StatusCode, body::Bytes, header, server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// Connections at once: browsers open some that they may not need.
const CONNECTIONS_MAX: usize = 8;
/// How long one may take over its request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The kernel's list of connections, with their owners.
const CONNECTIONS: &str = "/proc/net/tcp";

#[derive(Debug)]
pub(super) struct Doorway {
    listener: TcpListener,
    path: String,
    to: String,
}

impl Doorway {
    pub(super) async fn to(url: &str) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let path = format!("/{:032x}", rand::random::<u128>());
        Ok(Self { listener, path, to: url.to_owned() })
    }

    /// What to tell the browser to open.
    pub(super) fn address(&self) -> io::Result<String> {
        Ok(format!("http://{}{}", self.listener.local_addr()?, self.path))
    }

    /// Serves until a browser has been led on.
    pub(super) async fn passed(&self) {
        let mut connections = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                    Ok((stream, from)) if self.is_mine(from) => connections.push(self.lead(stream)),
                    Ok(_) => {}
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                Some(led) = connections.next(), if !connections.is_empty() => if led {
                    return;
                },
            }
        }
    }

    /// Answers one connection; whether it was the browser's.
    async fn lead(&self, stream: TcpStream) -> bool {
        let led = Cell::new(false);
        let answer = |request: Request<hyper::body::Incoming>| {
            let is_right = request.method() == Method::GET && request.uri().path() == self.path;
            led.set(led.get() || is_right);
            std::future::ready(Ok::<_, Infallible>(self.answer(is_right)))
        };
        let mut server = http1::Builder::new();
        server.keep_alive(false).timer(TokioTimer::new());
        let conversation = server.serve_connection(TokioIo::new(stream), service_fn(answer));
        let _ended = timeout(REQUEST_LIMIT, conversation).await;
        led.get()
    }

    fn answer(&self, is_right: bool) -> Response<Empty<Bytes>> {
        let mut response = Response::new(Empty::new());
        *response.status_mut() = if is_right { StatusCode::SEE_OTHER } else { StatusCode::NOT_FOUND };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
        headers.insert(header::REFERRER_POLICY, header::HeaderValue::from_static("no-referrer"));
        if let Some(to) = header::HeaderValue::from_str(&self.to).ok().filter(|_| is_right) {
            headers.insert(header::LOCATION, to);
        }
        response
    }

    /// Whether the connection from there is this user's. True where the system does not say.
    fn is_mine(&self, from: SocketAddr) -> bool {
        let (Ok(SocketAddr::V4(here)), SocketAddr::V4(from)) = (self.listener.local_addr(), from) else {
            return false;
        };
        let Ok(connections) = std::fs::read_to_string(CONNECTIONS) else { return !cfg!(target_os = "linux") };
        owner(&connections, from, here) == Some(rustix::process::getuid().as_raw())
    }
}

/// Who has the end of a connection that is at `from` and leads to `to`.
fn owner(connections: &str, from: SocketAddrV4, to: SocketAddrV4) -> Option<u32> {
    let written =
        |end: SocketAddrV4| format!("{:08X}:{:04X}", u32::from_ne_bytes(end.ip().octets()), end.port());
    let (from, to) = (written(from), written(to));
    connections.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, local, remote, _, _, _, _, owner, ..] = fields.as_slice() else { return None };
        (*local == from && *remote == to).then(|| owner.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const URL: &str = "http://lab--train--alice.localhost:8080/.berth/enter?ticket=secret";

    async fn ask(address: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    #[tokio::test]
    async fn it_leads_on_once_and_names_nothing_in_its_address() {
        let doorway = Doorway::to(URL).await.unwrap();
        let address = doorway.address().unwrap();
        assert!(!address.contains("ticket") && !address.contains("secret"), "{address}");
        let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let browser = async {
            // One that is opened early and says nothing holds nobody up.
            let _idle = TcpStream::connect(host).await.unwrap();
            let wrong = ask(host, "/guess").await;
            (wrong, ask(host, &format!("/{path}")).await)
        };
        let (wrong, right) = tokio::select! {
            both = async { tokio::join!(doorway.passed(), browser).1 } => both,
            () = tokio::time::sleep(Duration::from_mins(1)) => panic!("nobody was led on"),
        };
        assert!(wrong.starts_with("HTTP/1.1 404") && !wrong.contains("ticket"), "{wrong}");
        assert!(
            right.starts_with("HTTP/1.1 303") && right.contains(&format!("location: {URL}\r\n")),
            "{right}"
        );
    }

    #[test]
    fn the_owner_of_a_connection_is_read_from_the_kernels_list() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n\
            1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2 1\n\
            2: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 3 1\n";
        let at = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        assert_eq!(owner(list, at(0xc001), at(0x1f90)), Some(1000));
        assert_eq!(owner(list, at(0x1f90), at(0xc001)), Some(0));
        assert_eq!(owner(list, at(0xc002), at(0x1f90)), None);
    }
}
