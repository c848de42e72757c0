//! What takes long: it ends with the session of whoever asked for it, and counts as use of the instance meanwhile.

use std::time::{Duration, Instant};

use http::Method;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    stage::{LIMIT, Stage, head, program, rest},
    testing::REVOKED_LIMIT,
};

/// An app's answer that has begun, and its visitor, who has read so far.
async fn begun(stage: &Stage) -> (TcpStream, TcpStream) {
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let mut browser = TcpStream::connect(stage.site.address).await.unwrap();
    let request = format!("GET /events HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n");
    browser.write_all(request.as_bytes()).await.unwrap();
    let (mut app, _) = listener.accept().await.unwrap();
    head(&mut app).await;
    app.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nfirst").await.unwrap();
    head(&mut browser).await;
    let mut first = [0; 5];
    browser.read_exact(&mut first).await.unwrap();
    (browser, app)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_cuts_what_it_waits_for() {
    let stage = Stage::set().await;
    let (mut stream, mut streaming) = begun(&stage).await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let pending = async {
        let answer = stage.get(&host, "/slow", &cookie).await;
        (answer, Instant::now())
    };
    let end = async {
        // Kept open, and never answered.
        let (mut app, _) = listener.accept().await.unwrap();
        head(&mut app).await;
        let ended = Instant::now();
        stage.site.ask(&Method::DELETE, "/api/v1/session", Some(&stage.alice), None).await;
        assert_eq!(rest(&mut stream).await, "");
        assert_eq!(rest(&mut streaming).await, "", "the app is told too");
        assert!(ended.elapsed() < REVOKED_LIMIT, "{:?}", ended.elapsed());
        (app, ended)
    };
    let ((answer, answered), (mut app, ended)) = tokio::join!(pending, end);
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let took = answered.duration_since(ended);
    assert!(took < REVOKED_LIMIT, "{took:?}");
    assert_eq!(rest(&mut app).await, "", "the app is told too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_is_use_of_the_instance_for_as_long_as_it_takes() {
    let stage = Stage::set().await;
    let becomes = async |expected: bool, when: &str| {
        let since = Instant::now();
        let agents = &stage.site.app.agents;
        while matches!(agents.is_used(&stage.instance, Duration::ZERO).await, Ok(true)) != expected {
            assert!(since.elapsed() < LIMIT, "{when}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (browser, app) = begun(&stage).await;
    becomes(true, "while it is on its way").await;
    drop((browser, app));
    becomes(false, "after it was given up").await;
}
