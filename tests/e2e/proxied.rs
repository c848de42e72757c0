//! Behind a proxy of the site's own, people are who came to the proxy: in the audit log, and where guesses are counted.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use gateway_api::audit::{AuditQuery, AuditResult};
use reqwest::StatusCode;
use serde_json::json;
use tests::{OrFail as _, Setup, World, http_client_from};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

const GUESSER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const COLLEAGUE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
/// More than may be wrong in a minute.
const GUESSES: usize = 20;
const HEAD_MAX_BYTES: usize = 64 << 10;

/// A proxy as sites have them: it adds whom it heard to what it was told, and passes on all the rest.
struct Hop {
    address: SocketAddr,
    _work: JoinSet<()>,
}

impl Hop {
    async fn to(gateway: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.or_fail("listen");
        let address = listener.local_addr().or_fail("look at an address");
        let mut work = JoinSet::new();
        work.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, from)) = listener.accept().await {
                connections.spawn(async move {
                    let _ = pass_on(client, from.ip(), gateway).await;
                });
            }
        });
        Self { address, _work: work }
    }
}

/// One request, and then whatever either side says.
async fn pass_on(mut client: TcpStream, from: IpAddr, gateway: SocketAddr) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if client.read_buf(&mut head).await? == 0 || head.len() > HEAD_MAX_BYTES {
            return Ok(());
        }
    }
    // After what the client said itself, as proxies do.
    let end = head.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or(0) + 2;
    let ours = format!("X-Forwarded-For: {from}\r\nConnection: close\r\n");
    let mut upstream = TcpStream::connect(gateway).await?;
    upstream.write_all(&[&head[..end], ours.as_bytes(), &head[end..]].concat()).await?;
    copy_bidirectional(&mut client, &mut upstream).await.map(drop)
}

/// Signs in through the proxy, with what one says about oneself.
async fn sign_in(hop: &Hop, from: IpAddr, password: &str, says: Option<&str>) -> StatusCode {
    let body = json!({"user": "admin", "password": password, "client": "cli"});
    let mut request =
        http_client_from(from).post(format!("http://{}/api/v1/session", hop.address)).json(&body);
    if let Some(says) = says {
        request = request.header("X-Forwarded-For", says);
    }
    request.send().await.or_fail("get an answer").status()
}

#[tokio::test]
async fn a_trusted_proxy_speaks_for_who_came_to_it() {
    let config = "[gateway]\ntrusted_proxies = [\"127.0.0.1\"]\n".to_owned();
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    let gateway = world.console().replace("http://localhost", "127.0.0.1").parse().or_fail("read an address");
    let hop = Hop::to(gateway).await;

    assert_eq!(sign_in(&hop, COLLEAGUE, world.password(), None).await, StatusCode::OK);
    // An invention of one's own changes nothing about who one is.
    assert_eq!(sign_in(&hop, GUESSER, "a guess", Some("203.0.113.9")).await, StatusCode::UNAUTHORIZED);
    let log = world.client().audit(&AuditQuery::default()).await.or_fail("read the log").items;
    let from = |address: IpAddr, result| {
        let lines = log.iter().filter(|line| line.act == "sign_in" && line.result == result);
        lines.filter(|line| line.source == address.to_string()).count()
    };
    assert_eq!((from(COLLEAGUE, AuditResult::Done), from(GUESSER, AuditResult::Refused)), (1, 1), "{log:?}");

    // Who guesses is held up, at whatever account; who comes from elsewhere is not.
    let mut last = StatusCode::UNAUTHORIZED;
    for number in 0..GUESSES {
        let body = json!({"user": format!("somebody{number}"), "password": "a guess", "client": "cli"});
        let guess =
            http_client_from(GUESSER).post(format!("http://{}/api/v1/session", hop.address)).json(&body);
        last = guess.send().await.or_fail("get an answer").status();
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(sign_in(&hop, GUESSER, world.password(), None).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(sign_in(&hop, COLLEAGUE, world.password(), None).await, StatusCode::OK);
}
