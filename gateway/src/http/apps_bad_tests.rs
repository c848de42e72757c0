//! Apps and clients that do not behave: each gets a clear answer or a clean close, and the next request is served.

use std::time::Duration;

use gateway_api::{Code, Status, secret::UseSecret};
use http::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::stage::{LIMIT, Stage, cookie, head, program, rest};
use crate::auth::live::Kind;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_that_misbehaves_harms_nobody() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let page = format!("Accept: text/html\r\n{cookie}");
    let long = "x".repeat(1 << 20);
    // What the app answers, and what of it the browser sees.
    let cases: [(&str, Vec<u8>, &str); 9] = [
        ("nothing", b"".to_vec(), "HTTP/1.1 502"),
        ("garbage", b"\x16\x03\x01 what?\r\n\r\n".to_vec(), "HTTP/1.1 502"),
        ("half a head", b"HTTP/1.1 200 OK\r\nX: y".to_vec(), "HTTP/1.1 502"),
        ("a long header", format!("HTTP/1.1 200 OK\r\nX: {long}\r\n\r\n").into_bytes(), "HTTP/1.1 502"),
        (
            "many headers",
            format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(5000)).into_bytes(),
            "HTTP/1.1 502",
        ),
        (
            "two lengths",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_vec(),
            "HTTP/1.1 502",
        ),
        (
            "a protocol unasked",
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".to_vec(),
            "HTTP/1.1 502",
        ),
        (
            "more than declared",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nevil".to_vec(),
            "HTTP/1.1 200",
        ),
        ("less than declared", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok".to_vec(), "HTTP/1.1 200"),
    ];
    for (what, answer, expected) in cases {
        let app = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            head(&mut stream).await;
            let _ = stream.write_all(&answer).await;
        };
        let (seen, ()) = tokio::join!(stage.get(&host, "/", &page), app);
        assert!(
            seen.starts_with(expected) && !seen.contains("evil"),
            "{what}: {}",
            &seen[..seen.len().min(600)]
        );
        if expected.ends_with("502") {
            assert!(
                seen.contains("did not answer as a web server should") || seen.contains("protocol unasked"),
                "{what}: {seen}"
            );
        }
    }

    // A head without end costs no more than its limit.
    let endless = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nX: ").await.unwrap();
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    };
    let (seen, ()) = tokio::join!(stage.get(&host, "/", &page), endless);
    assert!(seen.starts_with("HTTP/1.1 502"), "{seen}");

    drop(listener);
    let seen = stage.get(&host, "/", &page).await;
    assert!(
        seen.starts_with("HTTP/1.1 502") && seen.contains(&format!("Nothing listens on port {port}")),
        "{seen}"
    );
    let seen = stage.get(&host, "/", &cookie).await;
    assert!(seen.starts_with("HTTP/1.1 502") && seen.contains("text/plain"), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_does_not_run_says_so() {
    let stage = Stage::set().await;
    let (host, cookie) = (stage.host("3000"), stage.entered("3000").await);
    let page = format!("Accept: text/html\r\n{cookie}");
    let store = &stage.site.app.store;
    for (status, said) in [
        (Status::Stopped { exit_code: None }, "The instance is stopped"),
        (
            Status::Failed { reason: "the image is gone".to_owned(), exit_code: None, cause: None },
            "The image is gone.",
        ),
        (Status::Starting, "The instance is starting"),
    ] {
        assert!(store.set_status(&stage.instance, 1, &status).await.unwrap());
        // What was looked up a moment ago is believed for a second.
        let begun = std::time::Instant::now();
        loop {
            let seen = stage.get(&host, "/", &page).await;
            if seen.starts_with("HTTP/1.1 503") && seen.contains(said) {
                assert_eq!(
                    seen.contains("Start the instance</button>"),
                    status.allows(gateway_api::Action::Start),
                    "{seen}"
                );
                break;
            }
            assert!(begun.elapsed() < LIMIT, "{said}: {seen}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    // The address is good before the instance is.
    stage.opened("3000", &json!({})).await;
    let reply = stage.site.ask(&Method::DELETE, "/api/v1/instances/train", Some(&stage.alice), None).await;
    assert_eq!(reply.status, 202);
    let begun = std::time::Instant::now();
    while !stage.get(&host, "/", &page).await.starts_with("HTTP/1.1 303") {
        assert!(begun.elapsed() < LIMIT, "the cookie still opens what is being deleted");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_button_that_cannot_start_the_instance_says_why() {
    let stage = Stage::set().await;
    let gone = UseSecret { name: "HF_TOKEN".to_owned(), env: None, file: true };
    let stopped = Status::Stopped { exit_code: None };
    stage.site.instance_with("alice", "needy", &stopped, vec![gone]).await;
    let path = "/api/v1/instances/needy/apps/3000/open";
    let reply = stage.site.ask(&Method::POST, path, Some(&stage.alice), Some(&json!({}))).await;
    let reply = reply.json();
    let (host, path) = reply["url"].as_str().unwrap()["http://".len()..].split_once('/').unwrap();
    let cookie = cookie(&stage.get(host, &format!("/{path}"), "").await);
    let press = async |headers: &str| {
        let request = format!(
            "POST /.berth/act HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nOrigin: http://{host}\r\n\
             Cookie: {cookie}\r\n{headers}Content-Length: 9\r\n\r\nact=start"
        );
        stage.raw(request.as_bytes()).await
    };
    let seen = press("").await;
    assert!(seen.starts_with("HTTP/1.1 422") && seen.contains("application/json"), "{seen}");
    assert!(seen.contains("The instance could not be started") && seen.contains("`HF_TOKEN`"), "{seen}");
    // Without scripts it is a page.
    let seen = press("Sec-Fetch-Mode: navigate\r\nAccept-Language: zh-CN\r\n").await;
    assert!(seen.contains("<h1 id=\"title\" role=\"status\">实例未能启动</h1>"), "{seen}");
    assert!(seen.contains("`HF_TOKEN`") && seen.contains("返回</a>"), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_a_websocket_stays_a_request() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let app = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let seen = head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        seen
    };
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nOrigin: http://{host}\r\n{cookie}\r\n"
    );
    let (answer, seen) = tokio::join!(stage.raw(request.as_bytes()), app);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
    assert!(!seen.contains("h2c") && !seen.to_lowercase().contains("upgrade"), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_ours_reaches_an_app_in_trailers() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {host}\r\n{cookie}Connection: close\r\nTransfer-Encoding: chunked\r\n\
         Trailer: x-sum, x-forwarded-user, x-berth-user, authorization, cookie\r\n\r\n5\r\nhello\r\n0\r\n\
         X-Sum: 7\r\nX-Forwarded-User: root\r\nX-Berth-User: root\r\nAuthorization: Bearer x\r\n{cookie}\r\n"
    );
    let expected = "5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n";
    let app = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        head(&mut stream).await;
        let mut body = vec![0; expected.len()];
        stream.read_exact(&mut body).await.unwrap();
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&body).into_owned()
    };
    let both = async { tokio::join!(stage.raw(request.as_bytes()), app) };
    let (answer, body) = tokio::time::timeout(LIMIT, both).await.unwrap();
    assert_eq!(body, expected);
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_leave_a_doubt_are_refused() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let other = stage.host("3999");
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    for request in [
        format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\n{cookie}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\n{cookie}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{smuggled}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\n{cookie}Transfer-Encoding: identity\r\nContent-Length: 4\r\n\r\nabcd"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\n{cookie}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"
        ),
        format!("POST / HTTP/1.1\r\nHost: {host}\r\n{cookie}Content-Length: +4\r\n\r\nabcd"),
        format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\n{cookie}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"
        ),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nHost: {other}\r\n{cookie}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n{cookie}\r\n"),
        format!("GET http://{other}/ HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n"),
        format!("GET http://a@{host}/ HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n"),
        format!("GET / HTTP/1.1\r\n{cookie}\r\n"),
        format!("GET / HTTP/1.1\r\nHost : {host}\r\n{cookie}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\n{cookie} folded: x\r\n\r\n"),
        format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n"),
    ] {
        let seen = stage.raw(request.as_bytes()).await;
        assert!(seen.starts_with("HTTP/1.1 400"), "{request}: {seen}");
        assert_eq!(seen.matches("HTTP/1.1 ").count(), 1, "{request}: {seen}");
    }
    for request in [
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close, Cookie\r\n{cookie}\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close, X-Forwarded-For\r\n{cookie}\r\n"),
        format!("OPTIONS * HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{cookie}\r\n"),
        format!("TRACE / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{cookie}\r\n"),
    ] {
        let seen = stage.raw(request.as_bytes()).await;
        assert!(seen.starts_with("HTTP/1.1 400"), "{request}: {seen}");
    }
    // A target in absolute form for the same host is valid. This request is the first to reach the app.
    let app = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let seen = head(&mut stream).await;
        let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
        stream.write_all(answer).await.unwrap();
        seen
    };
    let request =
        format!("GET http://{host}/a?b HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{cookie}\r\n");
    let (answer, seen) = tokio::join!(stage.raw(request.as_bytes()), app);
    assert!(answer.ends_with("ok") && seen.starts_with("GET /a?b HTTP/1.1\r\n"), "{answer} {seen}");
    // One whose end is in doubt is on its way by then. What follows it stays here.
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {host}\r\n{cookie}Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\n{smuggled}"
    );
    let app = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = Vec::new();
        let _reset = stream.read_to_end(&mut seen).await;
        String::from_utf8_lossy(&seen).into_owned()
    };
    let (answer, seen) = tokio::join!(stage.raw(request.as_bytes()), app);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.matches("HTTP/1.1 ").count() == 1 && !seen.contains("smuggled"), "{answer} {seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_breaks_off_reaches_the_app_as_broken() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let mut browser = TcpStream::connect(stage.site.address).await.unwrap();
    let request = format!("POST / HTTP/1.1\r\nHost: {host}\r\n{cookie}Content-Length: 10\r\n\r\nhalf");
    browser.write_all(request.as_bytes()).await.unwrap();
    let (mut app, _) = listener.accept().await.unwrap();
    head(&mut app).await;
    let mut four = [0; 4];
    app.read_exact(&mut four).await.unwrap();
    drop(browser);
    assert_eq!(rest(&mut app).await, "", "nothing is made up, and the connection is not used again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_a_body_is_no_part_of_it() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let request =
        format!("POST / HTTP/1.1\r\nHost: {host}\r\n{cookie}Content-Length: 4\r\n\r\nfour and more\r\n\r\n");
    let app = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        head(&mut stream).await;
        let mut body = [0; 4];
        stream.read_exact(&mut body).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
        stream.write_all(answer).await.unwrap();
        (body, stream)
    };
    let (seen, (body, mut stream)) = tokio::join!(stage.raw(request.as_bytes()), app);
    assert_eq!(&body, b"four");
    assert!(seen.starts_with("HTTP/1.1 200") && seen.contains("HTTP/1.1 400"), "{seen}");
    assert_eq!(rest(&mut stream).await, "", "the rest reached the app");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_apps_and_ports_get_a_sentence() {
    let stage = Stage::set().await;
    let ask = async |app: &str, body: serde_json::Value| {
        let path = format!("/api/v1/instances/train/apps/{app}/open");
        let reply = stage.site.ask(&Method::POST, &path, Some(&stage.alice), Some(&body)).await;
        (reply.status, serde_json::from_value::<Code>(reply.json()["code"].clone()).ok())
    };
    for port in ["0", "65536", "080", "1e3"] {
        assert_eq!(ask(port, json!({})).await, (422, Some(Code::BadValue)), "{port}");
    }
    for app in ["notebook", "Lab", "lab%20"] {
        assert_eq!(ask(app, json!({})).await, (404, Some(Code::NotFound)), "{app}");
    }
    for path in ["//evil.example", "http://evil.example", "\\\\evil", "relative"] {
        assert_eq!(ask("lab", json!({ "path": path })).await, (422, Some(Code::BadValue)), "{path}");
    }
    assert_eq!(ask("tensorboard", json!({"folder": "runs"})).await, (422, Some(Code::BadValue)));
    for label in ["0--train--alice", "65536--train--alice", "terminal--train--alice", "x", "lab--train"] {
        let seen = stage.get(&format!("{label}.localhost:1"), "/", "Accept: text/html\r\n").await;
        assert!(seen.starts_with("HTTP/1.1 404"), "{label}: {seen}");
    }
    let away = crate::http::testing::Site::open_with("[gateway]\nurl = 'https://berth.example.org'").await;
    let alice = away.user("alice", gateway_api::session::Role::User, crate::store::GroupId::DEFAULT).await;
    away.instance("alice", "train", &Status::Starting).await;
    let path = "/api/v1/instances/train/apps/lab/open";
    let reply = away.ask(&Method::POST, path, Some(&alice), Some(&json!({}))).await;
    assert_eq!(
        (reply.status, reply.json()["code"].as_str()),
        (503, Some("apps_unavailable")),
        "{}",
        reply.body
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_too_long_or_never_ends_is_cut_off() {
    let stage = Stage::set().await;
    let (host, cookie) = (stage.host("3000"), stage.entered("3000").await);
    for (what, most) in [("one of a mebibyte", 1 << 20), ("one without end", usize::MAX)] {
        let mut browser = TcpStream::connect(stage.site.address).await.unwrap();
        let (mut reads, mut writes) = browser.split();
        let writing = async {
            let mut sent = 0;
            let begin = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{cookie}X-Long: ");
            writes.write_all(begin.as_bytes()).await.unwrap();
            while sent < most && writes.write_all(&[b'x'; 4096]).await.is_ok() {
                sent += 4096;
            }
            let _closed = writes.write_all(b"\r\n\r\n").await;
            sent
        };
        let reading = async {
            let mut seen = Vec::new();
            // What was not read makes the close a reset.
            let _closed = reads.read_to_end(&mut seen).await;
            String::from_utf8_lossy(&seen).into_owned()
        };
        let both = async { tokio::join!(writing, reading) };
        let (sent, seen) = tokio::time::timeout(LIMIT, both).await.unwrap();
        assert!(seen.is_empty() || seen.starts_with("HTTP/1.1 431"), "{what}: {seen}");
        assert!(sent < 64 << 20, "{what}: {sent} bytes were taken");
    }
    let seen = stage.get(&host, "/", &cookie).await;
    assert!(seen.starts_with("HTTP/1.1 502"), "the next request is served: {seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_too_many_connections_open_is_told_so() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let alice = stage.site.app.store.user_by_name(&"alice".parse().unwrap()).await.unwrap().unwrap().id;
    let open = || stage.site.app.live.open_by(stage.alice.hash(), alice, Kind::App);
    let all: Vec<_> = std::iter::from_fn(|| open().ok()).collect();
    let ask = async || {
        let mut browser = TcpStream::connect(stage.site.address).await.unwrap();
        let request = format!(
            "GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAccept: text/html\r\nOrigin: http://{host}\r\n{cookie}\r\n"
        );
        browser.write_all(request.as_bytes()).await.unwrap();
        let (mut app, _) = listener.accept().await.unwrap();
        head(&mut app).await;
        let agreed = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
                      Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        app.write_all(agreed.as_bytes()).await.unwrap();
        head(&mut browser).await
    };
    let answer = ask().await;
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    drop(all);
    let answer = ask().await;
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
}
