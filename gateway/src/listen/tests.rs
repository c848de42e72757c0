//! Real sockets and real clients: `rustls` with our own certificate as its only root, `hyper` for both protocols.

use std::{os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;
use crate::config::{Certificate, Tls};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);

struct Site {
    address: SocketAddr,
    tasks: Tasks,
    data: tempfile::TempDir,
}

impl Site {
    /// Answers with what it was asked: protocol, host, path and the client's address.
    async fn start(limits: Limits, front: impl FnOnce(&std::path::Path, &Tasks) -> Front) -> Self {
        let (tasks, data) = (Tasks::default(), tempfile::tempdir().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let door = Door { listener, front: front(data.path(), &tasks), limits };
        let answer = |request: Request<RequestBody>, from: SocketAddr| async move {
            let host = request.headers()[header::HOST].to_str().unwrap().to_owned();
            let text = format!("{:?} {host} {} {}", request.version(), request.uri().path(), from.ip());
            Response::new(Full::new(Bytes::from(text)))
        };
        tasks.spawn("site", door.serve(tasks.clone(), answer));
        Self { address, tasks, data }
    }

    async fn with_tls(limits: Limits) -> Self {
        Self::start(limits, |data, tasks| {
            let names = ["berth.test", "*.apps.test"].map(str::to_owned).to_vec();
            let tls = Tls { certificate: Certificate::SelfSigned { names }, redirect_http: None };
            Front::Tls(Certificates::build(&tls, data, tasks).unwrap())
        })
        .await
    }

    fn pem(&self) -> PathBuf {
        self.data.path().join("keys/self-signed.pem")
    }

    async fn connect(&self, protocol: &[u8]) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_to("berth.test", protocol).await
    }

    async fn connect_to(&self, name: &'static str, protocol: &[u8]) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.pem()).unwrap()).unwrap();
        let mut config = ClientConfig::builder_with_provider(tls::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from(name).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(self.address).await?).await
    }

    async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn end(self) {
        self.tasks.stop(Duration::from_secs(5)).await;
    }
}

/// Everything that comes until the other side closes.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the connection was not closed");
    String::from_utf8(bytes).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the client's side has no owner but the test")]
async fn ask_http2(stream: TlsStream<TcpStream>, header: &str) -> (StatusCode, String) {
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(executor, TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request =
        Request::get("https://berth.test:1/path").header("x-long", header).body(Empty::<Bytes>::new());
    let answer = timeout(PATIENCE, client.send_request(request.unwrap())).await.unwrap().unwrap();
    let (head, body) = answer.into_parts();
    (head.status, String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

#[tokio::test]
async fn both_protocols_by_tls() {
    let site = Site::with_tls(Limits::default()).await;
    let mut stream = site.connect(b"http/1.1").await.unwrap();
    let request = b"GET /path HTTP/1.1\r\nhost: berth.test:1\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("HTTP/1.1 berth.test:1 /path 127.0.0.1"), "{answer}");

    let stream = site.connect(b"h2").await.unwrap();
    assert_eq!(
        ask_http2(stream, "short").await,
        (StatusCode::OK, "HTTP/2.0 berth.test:1 /path 127.0.0.1".to_owned())
    );
    let mode = |name| std::fs::metadata(site.data.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("keys"), mode("keys/self-signed.key")), (0o700, 0o600));
    site.end().await;
}

#[tokio::test]
async fn our_own_certificate_covers_the_hosts_of_apps() {
    let site = Site::with_tls(Limits::default()).await;
    for app in ["lab--train--alice.apps.test", "lab--train--alice.berth.localhost", "berth.localhost"] {
        let stream = site.connect_to(app, tls::HTTP_2).await.unwrap_or_else(|error| panic!("{app}: {error}"));
        let (status, answer) = ask_http2(stream, app).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    for other in ["apps.test", "a.lab--train--alice.apps.test", "elsewhere.test"] {
        assert!(site.connect_to(other, tls::HTTP_2).await.is_err(), "{other}");
    }
    site.end().await;
}

#[tokio::test]
async fn our_own_certificate_is_made_once_and_again_for_another_name() {
    let (tasks, data) = (Tasks::default(), tempfile::tempdir().unwrap());
    let made = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let tls = Tls { certificate: Certificate::SelfSigned { names }, redirect_http: None };
        let certificates = Certificates::build(&tls, data.path(), &tasks).unwrap();
        assert_eq!(certificates.trouble(), None);
        std::fs::read(data.path().join("keys/self-signed.pem")).unwrap()
    };
    let first = made(&[]);
    assert_eq!(made(&[]), first);
    let second = made(&["berth.test", "192.0.2.7", "*.apps.test"]);
    assert_ne!(second, first);
    assert_eq!(made(&["192.0.2.7", "*.apps.test"]), second);
    std::fs::write(data.path().join("keys/self-signed.key"), "broken").unwrap();
    assert_ne!(made(&["192.0.2.7"]), second);
    tasks.stop(PATIENCE).await;
}

#[tokio::test]
async fn a_slow_head_is_not_waited_for_and_holds_up_nobody() {
    let limits = Limits {
        headers_limit: Duration::from_millis(300),
        handshake_limit: Duration::from_millis(300),
        connections_max: 2,
        ..Limits::default()
    };
    let site = Site::start(limits, |_, _| Front::Plain).await;
    let (mut silent, mut slow, mut third) = (site.tcp().await, site.tcp().await, site.tcp().await);
    slow.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nx-slow: ").await.unwrap();
    // All places are taken; the third is served when they are given up.
    third.write_all(b"GET /third HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(rest(&mut third).await.contains(" /third "));
    let _ = (rest(&mut silent).await, rest(&mut slow).await);
    site.end().await;

    let site = Site::with_tls(limits).await;
    let mut silent = site.tcp().await;
    assert_eq!(rest(&mut silent).await, "");
    site.end().await;
}

#[tokio::test]
async fn a_long_head_is_refused() {
    let site = Site::with_tls(Limits { headers_max_bytes: 8192, ..Limits::default() }).await;
    let mut stream = site.connect(b"http/1.1").await.unwrap();
    let long = "x".repeat(20_000);
    let _ = stream.write_all(format!("GET / HTTP/1.1\r\nhost: a\r\nx-long: {long}\r\n\r\n").as_bytes()).await;
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 431 "));
    let mut stream = site.connect(b"http/1.1").await.unwrap();
    let many = "a: b\r\n".repeat(101);
    let _ = stream.write_all(format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n").as_bytes()).await;
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 431 "));
    let (status, _) = ask_http2(site.connect(b"h2").await.unwrap(), &long).await;
    assert_eq!(status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    site.end().await;
}

#[tokio::test]
async fn a_new_certificate_is_taken_without_dropping_anyone() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tls = || Tls {
        certificate: Certificate::SelfSigned { names: vec!["berth.test".to_owned()] },
        redirect_http: None,
    };
    let site = Site::start(Limits::default(), |data, tasks| {
        for folder in [&one, &two] {
            Certificates::build(&tls(), folder.path(), tasks).unwrap();
        }
        let to = data.join("keys");
        std::fs::create_dir(&to).unwrap();
        let (cert, key) = (to.join("self-signed.pem"), to.join("self-signed.key"));
        std::fs::copy(one.path().join("keys/self-signed.pem"), &cert).unwrap();
        std::fs::copy(one.path().join("keys/self-signed.key"), &key).unwrap();
        Front::Tls(Certificates::from_files(cert, key, Duration::from_millis(20), tasks).unwrap())
    })
    .await;
    let mut kept = site.connect(b"http/1.1").await.unwrap();
    for name in ["self-signed.key", "self-signed.pem"] {
        let fresh = site.data.path().join("keys/fresh");
        std::fs::copy(two.path().join("keys").join(name), &fresh).unwrap();
        std::fs::rename(&fresh, site.data.path().join("keys").join(name)).unwrap();
    }
    // `connect` trusts nothing but the new one by now.
    timeout(PATIENCE, async {
        while site.connect(b"http/1.1").await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the new certificate was not taken");
    kept.write_all(b"GET /kept HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(rest(&mut kept).await.contains(" /kept "));
    site.end().await;
}

#[tokio::test]
async fn an_old_address_answers_both_with_and_without_tls() {
    let site = Site::start(Limits::default(), |data, tasks| {
        let certificate = Certificate::SelfSigned { names: vec!["berth.test".to_owned()] };
        Front::Either(Certificates::build(&Tls { certificate, redirect_http: None }, data, tasks).unwrap())
    })
    .await;
    let request = b"GET /x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let mut plain = site.tcp().await;
    plain.write_all(request).await.unwrap();
    assert!(rest(&mut plain).await.contains(" /x "));
    let mut secure = site.connect(b"http/1.1").await.unwrap();
    secure.write_all(request).await.unwrap();
    assert!(rest(&mut secure).await.contains(" /x "));
    site.end().await;
}

#[expect(clippy::disallowed_methods, reason = "the client's side has no owner but the test")]
#[tokio::test]
async fn an_answer_is_not_lost_with_an_unread_body() {
    let site = Site::with_tls(Limits::default()).await;
    let executor = hyper_util::rt::TokioExecutor::new();
    let io = TokioIo::new(site.connect(b"h2").await.unwrap());
    let (mut client, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    // The answer comes first, the rest of the body after it: the stream must still end well for both sides.
    let (sender, mut pieces) = tokio::sync::mpsc::channel::<Bytes>(1);
    let body = http_body_util::StreamBody::new(futures_util::stream::poll_fn(move |context| {
        pieces.poll_recv(context).map(|piece| {
            piece.map(|piece| Ok::<_, std::convert::Infallible>(hyper::body::Frame::data(piece)))
        })
    }));
    let request = Request::post("https://berth.test/x").body(body).unwrap();
    let answer = timeout(PATIENCE, client.send_request(request)).await.unwrap().unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    for _ in 0..10 {
        let sent = timeout(PATIENCE, sender.send(Bytes::from(vec![0; 20_000]))).await.unwrap();
        assert!(sent.is_ok(), "the stream was reset");
    }
    drop(sender);
    assert!(answer.into_body().collect().await.is_ok());
    site.end().await;
}

#[tokio::test]
async fn a_client_that_vanishes_is_noticed_by_the_kernel() {
    use rustix::net::sockopt;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    prepare(&listener).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap());
    let (_client, accepted) = tokio::join!(client, listener.accept());
    let (stream, _) = accepted.unwrap();
    assert!(sockopt::socket_keepalive(&stream).unwrap() && sockopt::tcp_nodelay(&stream).unwrap());
    let silence =
        sockopt::tcp_keepidle(&stream).unwrap() + sockopt::tcp_keepintvl(&stream).unwrap() * KEEPALIVES_MAX;
    assert_eq!((silence, sockopt::tcp_keepcnt(&stream).unwrap()), (Duration::from_mins(2), KEEPALIVES_MAX));
}
