//! One table of what reaches an app, walked for plain requests and for upgrades alike.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::headers::*;

fn map(lines: &[(&str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        })
        .fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(name, value);
            map
        })
}

fn lines(headers: &HeaderMap) -> Vec<String> {
    let mut lines: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    lines.sort();
    lines
}

const FACTS: Facts<'_> = Facts {
    from: std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
    secure: true,
    prefix: None,
    keys: &[],
};

/// What is left of `sent`, as a plain request and as an upgrade, apart from what is always there.
fn reaches(sent: &[(&str, &str)]) -> Result<Vec<String>, Meddling> {
    let host = ("host", "lab--train--alice.localhost:8080");
    let mut both = Vec::new();
    for upgrade in [false, true] {
        let mut all = vec![host, ("origin", "https://lab--train--alice.localhost:8080")];
        all.extend_from_slice(sent);
        if upgrade {
            all.extend([
                ("connection", "keep-alive, Upgrade"),
                ("upgrade", "websocket"),
                ("sec-websocket-key", "x"),
            ]);
        }
        let mut headers = map(&all);
        sanitize_upstream_request(&mut headers, &FACTS)?;
        let mut left = lines(&headers);
        let mut always = vec![
            "host: lab--train--alice.localhost:8080",
            "origin: https://lab--train--alice.localhost:8080",
            "x-forwarded-for: 192.0.2.7",
            "x-forwarded-host: lab--train--alice.localhost:8080",
            "x-forwarded-proto: https",
        ];
        if upgrade {
            always.extend(["connection: Upgrade", "upgrade: websocket", "sec-websocket-key: x"]);
        }
        for line in always {
            let at = left.iter().position(|other| other == line);
            left.remove(at.unwrap_or_else(|| panic!("no `{line}` in {left:?}")));
        }
        both.push(left);
    }
    assert_eq!(both[0], both[1], "a request and an upgrade are treated alike");
    Ok(both.remove(0))
}

#[test]
fn nothing_of_ours_reaches_an_app() {
    let check = |sent: &[(&str, &str)], expected: &[&str]| {
        assert_eq!(reaches(sent).unwrap(), expected, "{sent:?}");
    };
    check(&[], &[]);
    check(
        &[("x-anything", "stays"), ("accept", "a"), ("accept", "b")],
        &["accept: a", "accept: b", "x-anything: stays"],
    );
    check(&[("cookie", "a=1; __Host-berth-app=secret; b=2")], &["cookie: a=1; b=2"]);
    check(&[("cookie", "__Host-berth-app=secret")], &[]);
    check(&[("cookie", "a=\"; __Host-berth-app=secret; b=\"")], &["cookie: a=\"; b=\""]);
    check(
        &[("cookie", "__host-BERTH-app = secret;__Host-berth=x;berth=y;berth-app=z; c=3")],
        &["cookie: c=3"],
    );
    check(&[("cookie", "a=1"), ("cookie", "__Host-berth-app=s"), ("cookie", "b=2")], &["cookie: a=1; b=2"]);
    check(&[("cookie", " a=1;b=  2;; xberth=1")], &["cookie:  a=1;b=  2;; xberth=1"]);
    check(&[("authorization", "token abc")], &["authorization: token abc"]);
    check(
        &[
            ("x-forwarded-for", "10.0.0.1"),
            ("x-forwarded-user", "root"),
            ("x-forwarded-prefix", "/x"),
            ("forwarded", "for=10.0.0.1"),
            ("x-real-ip", "10.0.0.1"),
            ("x-berth-user", "admin"),
            ("x-remote-user", "admin"),
        ],
        &[],
    );
    check(
        &[
            ("x_forwarded_for", "10.0.0.1"),
            ("X-Forwarded_Proto", "http"),
            ("remote_user", "root"),
            ("x_remote-user", "root"),
            ("x_berth_user", "root"),
            ("x.real.ip", "10.0.0.1"),
            ("x~original~url", "/x"),
            ("content_length", "9"),
            ("transfer_encoding", "chunked"),
            ("proxy_authorization", "Basic x"),
            ("sec_fetch_site", "none"),
            ("x_mine", "stays"),
        ],
        &["x_mine: stays"],
    );
    check(
        &[
            ("connection", "close, x-mine"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "x"),
        ],
        &[],
    );
    check(&[("transfer-encoding", "chunked"), ("proxy-authorization", "Basic x")], &[]);
    for named in
        ["cookie", "Authorization", "x-forwarded-for", "X-Real-IP", "host", "origin", "content-length", "a b"]
    {
        assert_eq!(reaches(&[("connection", named)]), Err(Meddling), "{named}");
    }

    let mut headers = map(&[
        ("authorization", "Bearer x"),
        ("authorization", "Bearer app"),
        ("authorization", "Bearer y"),
        ("te", "gzip, trailers"),
        ("connection", "te"),
    ]);
    sanitize_upstream_request(&mut headers, &Facts { keys: &[0, 2], prefix: Some("/a/b/ide"), ..FACTS })
        .unwrap();
    let left = lines(&headers);
    assert!(
        left.contains(&"te: trailers".to_owned())
            && left.contains(&"x-forwarded-prefix: /a/b/ide".to_owned()),
        "{left:?}"
    );
    let kept: Vec<_> = left.iter().filter(|line| line.starts_with("authorization")).collect();
    assert_eq!(kept, ["authorization: Bearer app"]);
}

#[test]
fn an_answer_stays_within_its_origin() {
    let policy = HeaderValue::from_static("frame-ancestors 'self'");
    let mut headers = map(&[
        ("set-cookie", "a=1; Path=/; Domain=localhost; HttpOnly"),
        ("set-cookie", "b=2; path=/; SameSite=Strict; secure"),
        ("set-cookie", "c=3;DOMAIN = .example.org"),
        ("set-cookie", "__Host-berth-app=stolen; Path=/; Secure"),
        ("set-cookie", "__HOST-berth=stolen"),
        ("connection", "keep-alive, x-hop"),
        ("x-hop", "1"),
        ("keep-alive", "timeout=5"),
        ("transfer-encoding", "chunked"),
        ("clear-site-data", "\"*\""),
        ("alt-svc", "h2=\"elsewhere:443\""),
        ("strict-transport-security", "max-age=31536000; includeSubDomains"),
        ("nel", "{\"report_to\":\"x\",\"max_age\":1,\"success_fraction\":1}"),
        ("report-to", "{\"group\":\"x\",\"max_age\":1,\"endpoints\":[]}"),
        ("public-key-pins", "max-age=1"),
        ("expect-ct", "max-age=1"),
        ("set-login", "logged-out"),
        ("secure-session-registration", "(ES256);path=\"/x\""),
        ("content-security-policy", "Frame-Ancestors 'none'; default-src 'self'; report-uri /csp"),
        ("content-security-policy", " frame-ancestors 'self';"),
        ("x-frame-options", "DENY"),
        ("content-type", "text/html"),
        ("trailer", "x-sum"),
    ]);
    sanitize_upstream_response(
        &mut headers,
        &Bounds { frame_ancestors: &policy, below: None, plain: false, is_upgrade: false },
    );
    assert_eq!(
        lines(&headers),
        [
            "content-security-policy: default-src 'self'; report-uri /csp",
            "content-security-policy: frame-ancestors 'self'",
            "content-type: text/html",
            "set-cookie: a=1; Path=/; HttpOnly; Secure; SameSite=None; Partitioned",
            "set-cookie: b=2; path=/; Secure; SameSite=None; Partitioned",
            "set-cookie: c=3; Secure; SameSite=None; Partitioned",
            "trailer: x-sum",
        ]
    );
}

/// Without TLS browsers keep nothing that is marked as secure, and without that mark nothing for other sites' frames.
#[test]
fn where_there_is_no_tls_cookies_are_what_the_app_made_them() {
    let policy = HeaderValue::from_static("frame-ancestors 'self'");
    let mut headers = map(&[
        ("set-cookie", "a=1; Path=/; Domain=example.org; HttpOnly"),
        ("set-cookie", "b=2; SameSite=Strict"),
        ("set-cookie", "berth-app=stolen"),
    ]);
    sanitize_upstream_response(
        &mut headers,
        &Bounds { frame_ancestors: &policy, below: None, plain: true, is_upgrade: false },
    );
    headers.remove("content-security-policy");
    assert_eq!(lines(&headers), ["set-cookie: a=1; Path=/; HttpOnly", "set-cookie: b=2; SameSite=Strict"]);
}

/// Of several apps at one origin none gets a service worker that sees the others' requests.
#[test]
fn a_service_worker_reaches_no_further_than_its_app() {
    let policy = HeaderValue::from_static("frame-ancestors 'self'");
    let allowed = |below| {
        let mut headers = map(&[("service-worker-allowed", "/")]);
        let bounds = Bounds { frame_ancestors: &policy, below, plain: false, is_upgrade: false };
        sanitize_upstream_response(&mut headers, &bounds);
        headers["service-worker-allowed"].clone()
    };
    assert_eq!(allowed(None), "/");
    assert_eq!(allowed(Some("/alice/train/ide/")), "/alice/train/ide/");
}
