//! Apps as a browser meets them: opening, coming in, and what reaches them.

use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use envd_api::agent::{AppProblem, AppReport, AppState, AppStep};
use http::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    stage::{LIMIT, Stage, cookie, head, program, rest},
    testing::REVOKED_LIMIT,
};

const UPGRADE: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
/// What RFC 6455 has an app answer to it.
const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
                      Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_sees_the_request_and_nothing_of_ours() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let cookie = cookie.trim_end().replace("Cookie: ", "");
    let bearer = stage.alice.reveal();
    let asked = format!(
        "POST /a%2Fb//c;d/../e?x=%00&y={{}} HTTP/1.1\r\nHost: {host}\r\nConnection: close, X-Hop\r\n\
         X-Hop: 1\r\nX-Forwarded-For: 10.1.1.1\r\nX-Real-IP: 10.1.1.1\r\nX-Berth-User: root\r\nForwarded: for=x\r\n\
         X_Forwarded_For: 10.1.1.1\r\nRemote_User: root\r\nX-Berth_User: root\r\nContent_Length: 9\r\n\
         Cookie: a=1; {cookie}; b=2\r\nAuthorization: Bearer {bearer}\r\nX-Twice: 1\r\nX-Twice: 2\r\n\
         Content-Length: 5\r\n\r\nhello"
    );
    let app = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = head(&mut stream).await;
        let mut body = [0; 5];
        stream.read_exact(&mut body).await.unwrap();
        let answer = "HTTP/1.1 201 Created\r\nX-From: app\r\nSet-Cookie: s=1; Domain=localhost\r\nContent-Length: 2\r\n\r\nok";
        stream.write_all(answer.as_bytes()).await.unwrap();
        (head, body)
    };
    let (answer, (seen, body)) = tokio::join!(stage.raw(asked.as_bytes()), app);
    let mut lines: Vec<&str> = seen.trim_end().lines().collect();
    assert_eq!(lines.remove(0), "POST /a%2Fb//c;d/../e?x=%00&y={} HTTP/1.1");
    lines.sort_unstable();
    let own_host = format!("host: {host}");
    let told_host = format!("x-forwarded-host: {host}");
    assert_eq!(
        lines,
        [
            "content-length: 5",
            "cookie: a=1; b=2",
            &own_host,
            "x-forwarded-for: 127.0.0.1",
            &told_host,
            "x-forwarded-proto: http",
            "x-twice: 1",
            "x-twice: 2",
        ]
    );
    assert_eq!(&body, b"hello");
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n") && answer.ends_with("\r\n\r\nok"), "{answer}");
    assert!(
        answer.contains("x-from: app\r\n")
            && answer.contains("set-cookie: s=1; Secure; SameSite=None; Partitioned\r\n"),
        "{answer}"
    );
    assert!(answer.contains("content-security-policy: frame-ancestors 'self' http://localhost"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_to_the_console_reach_no_app_wherever_they_stand() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let (_, api) = stage.site.token("alice", gateway_api::token::Scope::All).await;
    let strange = "x".repeat(43);
    let tokens = "Bearer of-the-app, Basic YTpi";
    for ours in [stage.alice.reveal(), api.reveal()] {
        let basic = STANDARD.encode(format!("alice:{ours}"));
        for (sent, left) in [
            (vec!["Basic YTpi".to_owned(), format!("Bearer {ours}")], vec!["Basic YTpi"]),
            (vec![format!("Bearer {ours}"), tokens.to_owned(), format!("token {ours}")], vec![tokens]),
            (vec![format!("Bearer {ours}, Basic YTpi")], vec![]),
            (vec![format!("Basic YTpi, bearer  {ours}")], vec![]),
            (vec![format!("Basic {basic}")], vec![]),
            (vec![format!("Bearer {strange}")], vec![strange.as_str()]),
        ] {
            for upgrade in ["", UPGRADE] {
                let lines: String =
                    sent.iter().flat_map(|value| ["Authorization: ", value.as_str(), "\r\n"]).collect();
                let headers = format!("{cookie}Origin: http://{host}\r\n{lines}{upgrade}");
                let app = async {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let seen = head(&mut stream).await;
                    let answer = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    seen
                };
                let (answer, seen) = tokio::join!(stage.get(&host, "/", &headers), app);
                assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
                let kept: Vec<_> =
                    seen.lines().filter_map(|line| line.strip_prefix("authorization: ")).collect();
                assert_eq!(kept.len(), left.len(), "{sent:?}: {kept:?}");
                assert!(kept.iter().zip(&left).all(|(kept, left)| kept.ends_with(left)), "{kept:?}");
                assert!(!seen.contains(ours), "{seen}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_becomes_bytes_and_ends_with_the_session() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let ask = async |origin: &str, cookie: &str| {
        let mut stream = TcpStream::connect(stage.site.address).await.unwrap();
        let request = format!("GET /ws HTTP/1.1\r\nHost: {host}\r\n{UPGRADE}{origin}{cookie}\r\nearly");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    };
    let own = format!("Origin: http://{host}\r\n");
    for (origin, cookie, status) in [
        ("", cookie.as_str(), "403"),
        ("Origin: http://evil.example\r\n", cookie.as_str(), "403"),
        (&format!("Origin: http://localhost:{}\r\n", stage.site.address.port()), cookie.as_str(), "403"),
        (&format!("Origin: http://{}\r\n", stage.host("lab")), cookie.as_str(), "403"),
        (own.as_str(), "", "401"),
    ] {
        let mut stream = ask(origin, cookie).await;
        let answer = head(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{origin}{cookie}: {answer}");
    }

    let mut browser = ask(&own, &cookie).await;
    let (mut app, _) = listener.accept().await.unwrap();
    let seen = head(&mut app).await;
    assert!(!seen.contains("berth-app") && seen.contains("upgrade: websocket\r\n"), "{seen}");
    assert!(
        seen.contains(&format!("origin: http://{host}\r\n")) && seen.contains("connection: Upgrade\r\n"),
        "{seen}"
    );
    app.write_all(format!("{AGREED}\r\nfirst").as_bytes()).await.unwrap();
    let answer = head(&mut browser).await;
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    assert!(
        answer.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n")
            && answer.contains("upgrade: websocket\r\n"),
        "{answer}"
    );
    let mut five = [0; 5];
    app.read_exact(&mut five).await.unwrap();
    assert_eq!(&five, b"early");
    browser.read_exact(&mut five).await.unwrap();
    assert_eq!(&five, b"first");
    // Neither of these is HTTP any more, whatever it looks like.
    let odd = b"\r\nPOST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
    browser.write_all(odd).await.unwrap();
    let mut same = vec![0; odd.len()];
    app.read_exact(&mut same).await.unwrap();
    assert_eq!(same, odd);

    let begun = Instant::now();
    stage.site.ask(&Method::DELETE, "/api/v1/session", Some(&stage.alice), None).await;
    assert_eq!(rest(&mut browser).await, "");
    assert_eq!(rest(&mut app).await, "");
    assert!(begun.elapsed() < REVOKED_LIMIT, "{:?}", begun.elapsed());
    let answer = stage.get(&host, "/", &cookie).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_an_app_has_not_understood_opens_no_tunnel() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let own = format!("Origin: http://{host}\r\n{cookie}");
    let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    let wrong = "Sec-WebSocket-Accept: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let upgrade = "Connection: upgrade\r\nUpgrade: websocket\r\n";
    for answered in [
        upgrade.to_owned(),
        format!("{upgrade}{wrong}"),
        format!("{upgrade}{wrong}{accept}"),
        format!("{upgrade}{accept}{accept}"),
        format!("{upgrade}Upgrade: h2c\r\n{accept}"),
        format!("Connection: upgrade\r\nUpgrade: h2c\r\n{accept}"),
        format!("Connection: upgrade\r\nUpgrade: websocket, h2c\r\n{accept}"),
        format!("Connection: upgrade\r\n{accept}"),
        format!("Upgrade: websocket\r\n{accept}"),
    ] {
        let mut browser = TcpStream::connect(stage.site.address).await.unwrap();
        let asked = format!("GET /ws HTTP/1.1\r\nHost: {host}\r\n{UPGRADE}{own}\r\n");
        browser.write_all(asked.as_bytes()).await.unwrap();
        let (mut app, _) = listener.accept().await.unwrap();
        head(&mut app).await;
        let answer = format!("HTTP/1.1 101 Switching Protocols\r\n{answered}\r\nPRI * HTTP/2.0\r\n\r\n");
        app.write_all(answer.as_bytes()).await.unwrap();
        let answer = head(&mut browser).await;
        assert!(answer.starts_with("HTTP/1.1 502"), "{answered}: {answer}");
        assert_eq!(rest(&mut app).await, "", "{answered}: the connection to the app is still open");
    }
    // One that no app can agree to is not sent on.
    let twice = format!("{UPGRADE}Sec-WebSocket-Key: x\r\n{own}");
    for headers in [format!("Connection: Upgrade\r\nUpgrade: websocket\r\n{own}"), twice] {
        let answer = stage.get(&host, "/ws", &headers).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{headers}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_opens_one_address_once() {
    let stage = Stage::set().await;
    let url = stage.opened("3000", &json!({"path": "/deep/er?x=1"})).await;
    let host = stage.host("3000");
    let path = url.strip_prefix(&format!("http://{host}")).unwrap();
    let ticket = path.split_once("ticket=").unwrap().1;

    // Not at another app, another instance's, the console, or changed in any way.
    for (other, ticket) in [
        (stage.host("3001"), ticket.to_owned()),
        (host.replace("alice", "bob"), ticket.to_owned()),
        (host.clone(), format!("{ticket}x")),
        (host.clone(), String::new()),
    ] {
        let answer = stage.get(&other, &format!("/.berth/enter?ticket={ticket}"), "").await;
        assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("set-cookie"), "{other}: {answer}");
    }
    let body = json!({ "ticket": ticket });
    let reply = stage.site.ask(&Method::POST, "/api/v1/session", None, Some(&body)).await;
    assert_eq!(reply.status, 401);

    let answer = stage.get(&host, path, "").await;
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    assert!(answer.contains("location: /deep/er?x=1\r\n"), "{answer}");
    assert!(answer.contains("referrer-policy: no-referrer\r\n"), "{answer}");
    for attribute in
        ["__Host-berth-app=", "; Path=/;", "; Secure", "; HttpOnly", "; SameSite=None", "; Partitioned"]
    {
        assert!(answer.contains(attribute), "{attribute}: {answer}");
    }
    let again = stage.get(&host, path, "").await;
    assert!(again.starts_with("HTTP/1.1 401"), "{again}");
    // Whoever is in already is not bothered by a reload.
    let again = stage.get(&host, path, &format!("Cookie: {}\r\n", cookie(&answer))).await;
    assert!(again.starts_with("HTTP/1.1 303") && again.contains("location: /\r\n"), "{again}");

    // A ticket for the console signs in there, once, and what it opens ends with who asked for it.
    let url = stage.opened("terminal", &json!({})).await;
    let (page, ticket) = url.split_once("#ticket=").unwrap();
    assert!(page.ends_with("/instances/train/terminal"), "{url}");
    let body = json!({ "ticket": ticket });
    assert_eq!(stage.site.ask(&Method::POST, "/api/v1/session", None, Some(&body)).await.status, 200);
    assert_eq!(stage.site.ask(&Method::POST, "/api/v1/session", None, Some(&body)).await.status, 401);
    let (_, token) = stage.site.token("alice", gateway_api::token::Scope::All).await;
    let path = "/api/v1/instances/train/apps/terminal/open";
    let reply = stage.site.ask(&Method::POST, path, Some(&token), Some(&json!({}))).await;
    assert!(!reply.body.contains("ticket"), "a token does not become a session: {}", reply.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_frame_of_another_site_it_is_tried_first_what_the_browser_keeps() {
    let stage = Stage::set().await;
    let host = stage.host("lab");
    let frame = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\nSec-Fetch-Site: ";
    let enter = async |site: &str| {
        let url = stage.opened("lab", &json!({"path": "/lab/tree?x=1&y"})).await;
        let path = url.strip_prefix(&format!("http://{host}")).unwrap().to_owned();
        stage.get(&host, &path, &format!("{frame}{site}\r\n")).await
    };
    let near = enter("same-site").await;
    assert!(near.starts_with("HTTP/1.1 303") && near.contains("location: /lab/tree?x=1&y\r\n"), "{near}");

    let far = enter("cross-site").await;
    assert!(far.starts_with("HTTP/1.1 200") && far.contains("set-cookie: __Host-berth-app="), "{far}");
    assert!(far.contains("data-go-on=\"/lab/tree?x=1&amp;y\""), "{far}");
    assert!(far.contains("<main hidden>") && far.contains("keeps nothing for apps in a frame"), "{far}");
    assert!(far.contains("/enter?host=lab--train--alice&amp;next=/lab/tree%3Fx%3D1%26y\""), "{far}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_ones_own_machine_apps_are_neighbours_of_the_console_that_frames_them() {
    let stage = Stage::set().await;
    let port = stage.site.address.port();
    let ask = async |request: &str, host: &str, headers: &str| {
        let head = format!("{request} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n{headers}");
        stage.raw(head.as_bytes()).await
    };
    let bearer = format!(
        "Authorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
        stage.alice.reveal()
    );
    let open = "POST /api/v1/instances/train/apps/lab/open";
    let near = ask(open, "berth.localhost", &bearer).await;
    let entrance = near.split('"').find_map(|text| text.strip_prefix("http://")).unwrap();
    let (host, path) = entrance.split_once('/').unwrap();
    assert_eq!(host, format!("lab--train--alice.berth.localhost:{port}"));
    let answer = stage.get(host, &format!("/{path}"), "").await;
    assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("set-cookie"), "{answer}");
    let far = ask(open, "localhost", &bearer).await;
    assert!(far.contains(&format!("http://lab--train--alice.localhost:{port}/")), "{far}");

    // A person is led to that console, a program is not, and neither is who has found that it cannot go there.
    let page = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    let better = format!("const there = 'http://berth.localhost:{port}'");
    for (host, headers, led) in [
        ("localhost", format!("{page}\r\n"), true),
        ("127.0.0.1", format!("{page}\r\n"), true),
        ("localhost", format!("{page}Cookie: a=b; berth-stays=1\r\n\r\n"), false),
        ("berth.localhost", format!("{page}\r\n"), false),
        ("localhost", "\r\n".to_owned(), false),
    ] {
        let answer = ask("GET /instances/train/lab?x=1", host, &headers).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(answer.contains(&better), led, "{host} {headers}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hidden_and_what_is_not_there_are_the_same_bytes() {
    let stage = Stage::set().await;
    let bobs = stage.entered("3000").await; // any cookie that is good elsewhere
    let there = stage.host("3001");
    let same = |answer: String, host: &str| {
        let label = host.split('.').next().unwrap().to_owned();
        let lines: Vec<_> = answer
            .replace(&label, "LABEL")
            .lines()
            .filter(|line| !line.starts_with("date:") && !line.contains("nonce"))
            .map(str::to_owned)
            .collect();
        lines.join("\n")
    };
    for headers in [
        "Accept: text/html\r\n",
        "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
        "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n",
        "Sec-Fetch-Mode: cors\r\n",
        "",
        UPGRADE,
        &bobs,
    ] {
        let exists = same(stage.get(&there, "/x?y=1", headers).await, &there);
        for absent in [there.replace("train", "trail"), there.replace("alice", "carol")] {
            assert_eq!(
                exists,
                same(stage.get(&absent, "/x?y=1", headers).await, &absent),
                "{absent} {headers}"
            );
        }
        assert!(exists.starts_with("HTTP/1.1 303") || exists.starts_with("HTTP/1.1 401"), "{exists}");
    }
    let answer = stage.get(&there, "/x?y=1&z", "Accept: text/html\r\n").await;
    let label = there.split('.').next().unwrap();
    let enter = format!("/enter?host={label}&next=/x%3Fy%3D1%26z\r\n");
    assert!(answer.contains(&enter), "{answer}");

    // Bob cannot open what is Alice's, and is told so as of what is not there.
    let reply = async |name: &str| {
        let path = format!("/api/v1/instances/{name}/apps/3000/open");
        let reply = stage.site.ask(&Method::POST, &path, Some(&stage.bob), Some(&json!({}))).await;
        (reply.status, reply.json()["code"].clone())
    };
    assert_eq!(reply(stage.instance.as_str()).await, reply(gateway_api::InstanceId::new().as_str()).await);
}

fn report(state: AppState, port: Option<u16>) -> AppReport {
    AppReport {
        app: "lab".to_owned(),
        state,
        source: None,
        port,
        steps: vec![AppStep { step: "find".to_owned(), seconds: 0.25, done: true }],
        problem: (state == AppState::Failed).then(|| AppProblem {
            code: "ended".to_owned(),
            message: "it ended with exit code 1".to_owned(),
            hint: "look at the log".to_owned(),
        }),
        log: "last <words>".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_without_tools_says_that_they_are_being_prepared() {
    let stage = Stage::set().await;
    let (host, cookie) = (stage.host("ide"), stage.entered("ide").await);
    let says = async |code: &str| {
        *stage.report.lock().unwrap() = Some(AppReport {
            problem: Some(AppProblem {
                code: code.to_owned(),
                message: "it is not here".to_owned(),
                hint: "ask for it".to_owned(),
            }),
            ..report(AppState::Absent, None)
        });
        stage.get(&host, "/.berth/status", &cookie).await
    };
    let answer = says("no_tools").await;
    assert!(answer.contains("It is not here.") && answer.contains("\"about\":\"app\""), "{answer}");

    let run = stage.site.folder.path().join("run");
    std::fs::create_dir(&run).unwrap();
    let tools = json!({"what": "tools", "state": "waiting", "expected_seconds": 600});
    let text = json!({"pid": std::process::id(), "steps": [tools]}).to_string();
    std::fs::write(run.join("preparing.json"), text).unwrap();
    let answer = says("no_tools").await;
    assert!(answer.contains("VS Code is being prepared, about 10 minutes left."), "{answer}");
    assert!(answer.contains("\"about\":\"tools\""), "{answer}");
    let answer = says("not_in_image").await;
    assert!(answer.contains("It is not here."), "only the tools are being prepared: {answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_is_started_by_its_first_visit_and_its_page_says_how_it_goes() {
    let stage = Stage::set().await;
    let (host, cookie) = (stage.host("lab"), stage.entered("lab").await);
    let page = format!("Accept: text/html\r\n{cookie}");
    let say = |state, port| *stage.report.lock().unwrap() = Some(report(state, port));
    let asked = || std::mem::take(&mut *stage.acts.lock().unwrap());

    let answer = stage.get(&host, "/", &page).await;
    assert!(answer.contains("older version"), "{answer}");
    asked();

    say(AppState::Stopped, None);
    let answer = stage.get(&host, "/lab", &page).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 2\r\n"), "{answer}");
    assert_eq!(asked(), ["Look lab / None", "Start lab / None"]);

    say(AppState::Starting, Some(9));
    let answer = stage.get(&host, "/lab", &page).await;
    assert!(answer.contains("JupyterLab is starting") && answer.contains("last &lt;words&gt;"), "{answer}");
    assert!(answer.contains("content-security-policy: default-src 'none'; style-src 'nonce-"), "{answer}");
    let chinese = stage.get(&host, "/lab", &format!("Accept-Language: zh-CN\r\n{page}")).await;
    assert!(chinese.contains("JupyterLab 正在启动"), "{chinese}");
    let answer = stage.get(&host, "/api/kernels", &cookie).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("text/plain"), "{answer}");
    let answer = stage.get(&host, "/.berth/status", &cookie).await;
    assert!(answer.contains("\"moves\":true") && answer.contains("\"seconds\":\"0.2 s\""), "{answer}");
    asked();

    say(AppState::Failed, None);
    let answer = stage.get(&host, "/lab", &page).await;
    assert!(
        answer.contains("could not be started") && answer.contains("It ended with exit code 1."),
        "{answer}"
    );
    assert_eq!(asked(), ["Look lab / None"], "what failed is not started again by a mere look");
    let act = |origin: &str| {
        format!(
            "POST /.berth/act HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{cookie}{origin}Content-Length: 9\r\n\r\nact=start"
        )
    };
    let answer = stage.raw(act("Origin: http://evil.example\r\n").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(asked().is_empty());
    let answer = stage.raw(act(&format!("Origin: http://{host}\r\n")).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    assert_eq!(asked(), ["Start lab / None"]);

    let (listener, port) = program().await;
    say(AppState::Ready, Some(port.parse().unwrap()));
    let answer = stage.get(&host, "/.berth/status", &cookie).await;
    assert!(answer.contains("\"ready\":true"), "{answer}");
    let app = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlab!").await.unwrap();
    };
    let (answer, ()) = tokio::join!(stage.get(&host, "/lab", &page), app);
    assert!(answer.ends_with("lab!"), "{answer}");
    let answer = stage.get(&host, "/.berth/other", &cookie).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_that_has_moved_to_another_port_is_found_there_at_once() {
    let stage = Stage::set().await;
    let (host, cookie) = (stage.host("tensorboard"), stage.entered("tensorboard").await);
    for text in ["first", "other"] {
        let (listener, port) = program().await;
        *stage.report.lock().unwrap() = Some(report(AppState::Ready, port.parse().ok()));
        let app = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let seen = head(&mut stream).await;
            let mut body = [0; 4];
            let read = tokio::time::timeout(LIMIT, stream.read_exact(&mut body)).await;
            read.expect("no body came").unwrap();
            let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n{text}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            (seen, body)
        };
        let asked = format!(
            "POST /data?x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 4\r\n{cookie}\r\nbody"
        );
        let (answer, (seen, body)) = tokio::join!(stage.raw(asked.as_bytes()), app);
        assert!(answer.ends_with(text), "{answer}");
        assert!(seen.starts_with("POST /data?x HTTP/1.1\r\n"), "{seen}");
        assert_eq!(&body, b"body", "it is sent to where the app is now");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tabs_with_different_folders_neither_see_nor_end_each_others() {
    let stage = Stage::set().await;
    let host = stage.host("tensorboard");
    let one = stage.entered_to("tensorboard", &json!({"folder": "/one"})).await;
    let other = stage.entered_to("tensorboard", &json!({"folder": "/other"})).await;
    let (listener, port) = program().await;
    *stage.report.lock().unwrap() = Some(report(AppState::Ready, port.parse().ok()));
    let asked = || std::mem::take(&mut *stage.acts.lock().unwrap());
    for (cookie, folder) in [(&one, "/one"), (&other, "/other")] {
        let app = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            head(&mut stream).await;
            let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
            stream.write_all(answer.as_bytes()).await.unwrap();
        };
        let (answer, ()) = tokio::join!(stage.get(&host, "/data", cookie), app);
        assert!(answer.ends_with("ok"), "{answer}");
        let looked = format!("Look tensorboard / Some({folder:?})");
        assert_eq!(asked(), [looked], "what was seen of another folder is not believed");
    }

    *stage.report.lock().unwrap() = Some(report(AppState::Stopped, None));
    let answer = stage.get(&host, "/data", &one).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert_eq!(asked(), ["Look tensorboard / Some(\"/one\")"], "a poll ends nothing of another tab's");
    stage.get(&host, "/", &format!("Accept: text/html\r\n{one}")).await;
    assert_eq!(
        asked(),
        ["Look tensorboard / Some(\"/one\")", "Start tensorboard / Some(\"/one\")"],
        "a page is meant"
    );
}

/// Returns after others got twenty answers, one after the other.
async fn others_are_answered(stage: &Stage) {
    for _ in 0..20 {
        assert_eq!(stage.site.ask(&Method::GET, "/api/v1/me", Some(&stage.bob), None).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_stream_both_ways_at_the_receivers_pace() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let mut browser = TcpStream::connect(stage.site.address).await.unwrap();

    // Server-sent events come as they are sent.
    browser
        .write_all(format!("GET /events HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n").as_bytes())
        .await
        .unwrap();
    let (mut app, _) = listener.accept().await.unwrap();
    head(&mut app).await;
    app.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
    .await
    .unwrap();
    head(&mut browser).await;
    for n in 0..3 {
        let event = format!("data: {n}\n\n");
        app.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await.unwrap();
        let expected = format!("{:x}\r\n{event}\r\n", event.len());
        let mut seen = vec![0; expected.len()];
        tokio::time::timeout(LIMIT, browser.read_exact(&mut seen)).await.unwrap().unwrap();
        assert_eq!(seen, expected.as_bytes());
    }
    app.write_all(b"0\r\n\r\n").await.unwrap();
    let mut end = [0; 5];
    browser.read_exact(&mut end).await.unwrap();
    assert_eq!(&end, b"0\r\n\r\n");

    // The next request takes the same connection. `Expect` is answered, trailers come through.
    let request = format!(
        "PUT /file HTTP/1.1\r\nHost: {host}\r\n{cookie}TE: trailers\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    );
    browser.write_all(request.as_bytes()).await.unwrap();
    let seen = head(&mut app).await;
    assert!(seen.starts_with("PUT /file") && seen.contains("te: trailers\r\n"), "{seen}");
    assert!(head(&mut browser).await.starts_with("HTTP/1.1 100"));
    browser.write_all(b"abc").await.unwrap();
    let mut three = [0; 3];
    app.read_exact(&mut three).await.unwrap();
    app.write_all(b"HTTP/1.1 200 OK\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n")
        .await
        .unwrap();
    head(&mut browser).await;
    let expected = "2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n";
    let mut all = vec![0; expected.len()];
    browser.read_exact(&mut all).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&all), expected);

    // An app that does not read stops the sender, long before all is sent.
    let huge = 200 << 20;
    let request = format!("POST /sink HTTP/1.1\r\nHost: {host}\r\n{cookie}Content-Length: {huge}\r\n\r\n");
    browser.write_all(request.as_bytes()).await.unwrap();
    assert!(head(&mut app).await.starts_with("POST /sink"), "trailers do not end the connection");
    let piece = vec![7; 1 << 20];
    let mut sent = 0;
    loop {
        tokio::select! {
            biased;
            count = browser.write(&piece) => sent += count.unwrap(),
            // The upload stalls: the gateway answers others and reads no more of it.
            () = others_are_answered(&stage) => break,
        }
        assert!(sent < huge / 2, "the gateway takes whatever comes");
    }
    let drain = async {
        let (mut left, mut buffer) = (huge, vec![0; 1 << 16]);
        while left > 0 {
            left -= app.read(&mut buffer).await.unwrap();
        }
        app.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    };
    let fill = async {
        let (mut reads, mut writes) = browser.split();
        while sent < huge {
            let piece = &piece[..piece.len().min(huge - sent)];
            sent += writes.write(piece).await.unwrap();
        }
        let mut status = [0; 12];
        reads.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 204");
    };
    tokio::time::timeout(Duration::from_mins(2), async { tokio::join!(drain, fill) }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_a_file_is_asked_for_and_answered_as_such() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let app = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let seen = head(&mut stream).await;
        let answer = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-4/10\r\nAccept-Ranges: bytes\r\n\
                      ETag: \"v1\"\r\nContent-Length: 3\r\n\r\ncde";
        stream.write_all(answer.as_bytes()).await.unwrap();
        seen
    };
    let headers = format!("Range: bytes=2-4\r\nIf-Range: \"v1\"\r\n{cookie}");
    let (answer, seen) = tokio::join!(stage.get(&host, "/file", &headers), app);
    assert!(seen.contains("range: bytes=2-4\r\n") && seen.contains("if-range: \"v1\"\r\n"), "{seen}");
    assert!(answer.starts_with("HTTP/1.1 206") && answer.ends_with("\r\n\r\ncde"), "{answer}");
    assert!(answer.contains("content-range: bytes 2-4/10\r\n"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "the client's side has no owner but the test")]
async fn a_browser_speaks_http_2_and_the_app_need_not() {
    let stage = Stage::set().await;
    let (listener, port) = program().await;
    let (host, cookie) = (stage.host(&port), stage.entered(&port).await);
    let host = host.replace(".localhost", ".berth.localhost");
    let cookie = cookie.trim_end().replace("Cookie: ", "");
    let stream = stage.site.by_tls(host.split(':').next().unwrap()).await;
    let io = hyper_util::rt::TokioIo::new(stream);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut client, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    // Browsers send each cookie in a header of its own here.
    let request = http::Request::post(format!("https://{host}/a%2Fb?c"))
        .header("cookie", "own=1")
        .header("cookie", cookie)
        .header("cookie", "other=2")
        .header("origin", format!("http://{host}"))
        .body(http_body_util::Full::new(bytes::Bytes::from_static(b"hello")))
        .unwrap();
    let app = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let seen = head(&mut stream).await;
        let mut body = [0; 5];
        stream.read_exact(&mut body).await.unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
            .await
            .unwrap();
        (seen, body)
    };
    let answered = async {
        let answer = tokio::time::timeout(LIMIT, client.send_request(request)).await.unwrap().unwrap();
        let (head, body) = answer.into_parts();
        (head, http_body_util::BodyExt::collect(body).await.unwrap().to_bytes())
    };
    let ((answer, text), (seen, body)) = tokio::join!(answered, app);
    assert_eq!((answer.version, answer.status.as_u16(), &text[..]), (http::Version::HTTP_2, 200, &b"ok"[..]));
    assert!(!answer.headers.contains_key("transfer-encoding"), "{answer:?}");
    assert_eq!(&body, b"hello");
    assert!(seen.starts_with("POST /a%2Fb?c HTTP/1.1\r\n"), "{seen}");
    assert!(
        seen.contains(&format!("host: {host}\r\n")) && seen.contains("cookie: own=1; other=2\r\n"),
        "{seen}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_path_mode_each_app_has_its_part_of_one_host() {
    let stage =
        Stage::set_with("[gateway]\ndangerous_plain_http = true\n[gateway.apps]\nmode = 'path'").await;
    let (listener, port) = program().await;
    let url = stage.opened(&port, &json!({"path": "/deep"})).await;
    let prefix = format!("/alice/train/{port}");
    assert!(url.starts_with(&format!("http://localhost:8081{prefix}/.berth/enter?ticket=")), "{url}");
    let ask = async |path: &str, headers: &str| {
        let mut stream = TcpStream::connect(stage.site.apps_address).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost:8081\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        rest(&mut stream).await
    };
    let answer = ask(url.strip_prefix("http://localhost:8081").unwrap(), "").await;
    assert!(answer.contains(&format!("location: {prefix}/deep\r\n")), "{answer}");
    assert!(
        answer.contains(&format!("; Path={prefix}/;")) && answer.contains("set-cookie: berth-app="),
        "{answer}"
    );
    let cookie = format!("Cookie: {}\r\n", cookie(&answer));
    let answer = ask(&format!("{prefix}?a=b"), &cookie).await;
    assert!(
        answer.starts_with("HTTP/1.1 308") && answer.contains(&format!("location: {prefix}/?a=b\r\n")),
        "{answer}"
    );
    let app = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let seen = head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        seen
    };
    let path = format!("{prefix}/a%2Fb?x");
    let (answer, seen) = tokio::join!(ask(&path, &cookie), app);
    assert!(answer.ends_with("ok"), "{answer}");
    assert!(
        seen.starts_with("GET /a%2Fb?x HTTP/1.1\r\n")
            && seen.contains(&format!("x-forwarded-prefix: {prefix}\r\n")),
        "{seen}"
    );
    for elsewhere in ["/", "/alice/train/lab/", "/bob/train/3000/", "/alice/train/%33000/"] {
        let answer = ask(elsewhere, &cookie).await;
        assert!(
            answer.starts_with("HTTP/1.1 401") || answer.starts_with("HTTP/1.1 404"),
            "{elsewhere}: {answer}"
        );
    }
}
