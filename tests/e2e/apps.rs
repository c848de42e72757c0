//! Apps of an instance in a browser, at addresses of their own: what reaches them, who reaches them, and how much of
//! it stays in the gateway.

use gateway_api::{AppName, app::OpenApp, client::Client, people::AddUser, session::ChangePassword};
use serde_json::Value;
use tests::{IMAGE, LIMIT, OrFail as _, Setup, Stream, World, count, wait_until};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

const RECORDER: &str = include_str!("recorder.py");
const PORT: u16 = 9000;
/// What is read or written at once, and after how much the gateway's memory is looked at.
const PIECE: usize = 1 << 18;
const LOOK_EACH: u64 = 1 << 26;

/// A browser that knows one app.
struct Browser<'a> {
    world: &'a World,
    /// `http` or `https`.
    scheme: String,
    host: String,
    cookie: String,
}

/// Makes an instance `web` whose app says who it belongs to.
pub(crate) async fn create(client: &Client, who: &str) {
    let command = ["python3", "-u", "-c", RECORDER, who].map(str::to_owned).to_vec();
    let wanted = gateway_api::CreateInstance {
        name: "web".to_owned(),
        image: Some(IMAGE.to_owned()),
        cpus: 1.0,
        memory_bytes: 256 << 20,
        shm_bytes: None,
        gpus: 0,
        gpu_model: None,
        cluster: None,
        pool: None,
        env: [].into(),
        command,
        auto_start: false,
        secrets: Vec::new(),
    };
    client.create_instance(&wanted).await.or_fail("create an instance");
    wait_until("the instance runs", LIMIT, async || {
        let instance = client.instance("web").await.or_fail("look at the instance");
        matches!(instance.status, gateway_api::Status::Running { .. }).then_some(())
    })
    .await;
}

fn port() -> AppName {
    PORT.to_string().parse().or_fail("name a port")
}

impl<'a> Browser<'a> {
    /// Opens the app with a one-time address, as `berth open` does.
    async fn open(world: &'a World, client: &Client) -> Self {
        let opened = client.open_app("web", port(), &OpenApp::default()).await.or_fail("open the app");
        let (scheme, rest) = opened.url.split_once("://").or_fail("read the address");
        let (host, path) = rest.split_once('/').or_fail("read the address");
        let (scheme, host) = (scheme.to_owned(), host.to_owned());
        let mut browser = Self { world, scheme, host, cookie: String::new() };
        let answer = browser.get(&format!("/{path}"), "").await;
        assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
        let set =
            answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).or_fail("find the cookie");
        browser.cookie = set.split(';').next().unwrap_or_default().to_owned();
        wait_until("the app answers", LIMIT, async || {
            browser.get("/", "").await.starts_with("HTTP/1.1 200").then_some(())
        })
        .await;
        browser
    }

    /// A browser at the same address, with another cookie.
    fn with<'b>(&self, world: &'b World, cookie: &str) -> Browser<'b> {
        let (scheme, host) = (self.scheme.clone(), self.host.clone());
        Browser { world, scheme, host, cookie: cookie.to_owned() }
    }

    async fn connect(&self) -> Box<dyn Stream> {
        self.world.connect().await
    }

    /// A request that ends the connection; the whole answer.
    async fn get(&self, path: &str, headers: &str) -> String {
        let Self { host, cookie, .. } = self;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n{headers}\r\n"
        );
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.or_fail("send a request");
        let mut answer = Vec::new();
        timeout(LIMIT, stream.read_to_end(&mut answer)).await.or_fail("read").or_fail("read an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Downloads and uploads so much; the most memory that the gateway held meanwhile.
    async fn moves(&self, bytes: u64) -> u64 {
        let Self { host, cookie, .. } = self;
        let mut most = 0;
        let mut look = |moved: u64| {
            if moved % LOOK_EACH < PIECE as u64 {
                most = self.world.gateway_memory_bytes().max(most);
            }
        };
        let mut piece = vec![0; PIECE];
        let mut stream = self.connect().await;
        let head = format!("HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n");
        let request = format!("GET /zeros/{bytes} {head}\r\n");
        stream.write_all(request.as_bytes()).await.or_fail("ask");
        let mut received = 0;
        while let Ok(count @ 1..) = stream.read(&mut piece).await {
            received += count as u64;
            look(received);
        }
        assert!(received > bytes, "{received}");
        let mut stream = self.connect().await;
        let request = format!("PUT / {head}Content-Length: {bytes}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.or_fail("ask");
        for sent in (0..bytes).step_by(PIECE) {
            stream.write_all(&piece).await.or_fail("send");
            look(sent);
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.or_fail("read");
        assert_eq!(body(&answer)["received"], bytes);
        most
    }

    /// A request by HTTP/2, as `curl` makes it; the head of the answer and its body, or nothing where it is no JSON.
    async fn by_http2(&self, arguments: &[&str], path: &str) -> (String, Value) {
        let Self { world, host, cookie, .. } = self;
        let (_, port) = host.split_once(':').or_fail("find the port");
        let certificate = world.data().join("keys/self-signed.pem");
        let mut curl = tokio::process::Command::new("curl");
        curl.args(["-sSi", "--http2", "--path-as-is", "--max-time", "60", "--cacert"]).arg(certificate);
        curl.args(["--connect-to", &format!("{host}:127.0.0.1:{port}"), "-H", "User-Agent:"]);
        curl.args(["-H", &format!("Cookie: {cookie}")]).args(arguments);
        let output = curl.arg(format!("https://{host}{path}")).output().await.or_fail("start curl");
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{answer}{}", String::from_utf8_lossy(&output.stderr));
        let (head, body) = answer.split_once("\r\n\r\n").or_fail("find a body");
        (head.to_owned(), serde_json::from_str(body).unwrap_or_default())
    }

    fn handshake(&self, path: &str) -> String {
        let Self { scheme, host, cookie, .. } = self;
        format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {scheme}://{host}\r\nCookie: {cookie}; own=1\r\n\
             X-Forwarded-For: 10.9.8.7\r\nX-Berth-User: root\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
        )
    }
}

fn body(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").or_fail("find a body");
    serde_json::from_str(body).or_fail(format!("read {answer}"))
}

/// What an app was sent, line by line; the first is the request's.
fn recorded(head: &str) -> Vec<String> {
    let mut lines: Vec<_> = head.split("\r\n").map(str::to_owned).collect();
    lines[1..].sort();
    lines
}

#[tokio::test]
async fn two_users_each_have_their_own_apps_and_neither_the_others() {
    let mut world = World::start().await;
    let admin = world.client();
    let new = AddUser { name: "bob".to_owned(), role: None, group: None };
    let password = admin.add_user(&new).await.or_fail("add a user").password;
    let signed_in = Client::new(world.console(), None)
        .or_fail("make a client")
        .sign_in("bob", &password)
        .await
        .or_fail("sign in as bob");
    let bob = Client::new(world.console(), signed_in.token).or_fail("make a client");
    let change = ChangePassword { new: format!("{password}-own"), old: password };
    bob.change_password(&change).await.or_fail("change the password");
    tokio::join!(create(&admin, "admin"), create(&bob, "bob"));
    let (admins, bobs) = (Browser::open(&world, &admin).await, Browser::open(&world, &bob).await);
    assert_ne!(admins.host, bobs.host);

    // Byte for byte what reaches an app, by HTTP.
    let answer =
        admins.get("/a%2Fb//c?d=%00", "X-Real-IP: 10.9.8.7\r\nX-Remote-User: root\r\nAccept: */*\r\n").await;
    let seen = body(&answer);
    assert_eq!(seen["who"], "admin");
    assert_eq!(
        recorded(seen["head"].as_str().or_fail("read")),
        [
            "GET /a%2Fb//c?d=%00 HTTP/1.1".to_owned(),
            "accept: */*".to_owned(),
            format!("host: {}", admins.host),
            "x-forwarded-for: 127.0.0.1".to_owned(),
            format!("x-forwarded-host: {}", admins.host),
            "x-forwarded-proto: http".to_owned(),
        ]
    );
    assert_eq!(body(&bobs.get("/", "").await)["who"], "bob");

    // And by WebSocket: the same, and the upgrade.
    let mut stream = admins.connect().await;
    stream.write_all(admins.handshake("/record").as_bytes()).await.or_fail("ask");
    stream.write_all(&frame(8, true, b"")).await.or_fail("close");
    let mut answer = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut answer)).await.or_fail("read").or_fail("read");
    let answer = String::from_utf8_lossy(&answer);
    let start = answer.find("GET /record").or_fail(format!("find what was recorded in {answer}"));
    let head: String = answer[start..]
        .chars()
        .take_while(|letter| letter.is_ascii_graphic() || " \r\n".contains(*letter))
        .collect();
    let lines = recorded(head.trim_end());
    assert_eq!(
        lines,
        [
            "GET /record HTTP/1.1".to_owned(),
            "connection: Upgrade".to_owned(),
            "cookie: own=1".to_owned(),
            format!("host: {}", admins.host),
            format!("origin: http://{}", admins.host),
            "sec-websocket-extensions: permessage-deflate; client_max_window_bits".to_owned(),
            "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==".to_owned(),
            "sec-websocket-version: 13".to_owned(),
            "upgrade: websocket".to_owned(),
            "x-forwarded-for: 127.0.0.1".to_owned(),
            format!("x-forwarded-host: {}", admins.host),
            "x-forwarded-proto: http".to_owned(),
        ]
    );

    // Neither reaches the other's, whatever they bring along.
    let (thief, nobody) = (admins.with(&world, &bobs.cookie), admins.with(&world, ""));
    for (who, headers) in [
        (&thief, String::new()),
        (&thief, format!("Authorization: Bearer {}\r\n", world.token())),
        (&thief, format!("Cookie: __Host-berth={}\r\n", world.token())),
        (&thief, format!("X-Forwarded-Host: {}\r\nOrigin: http://{}\r\n", bobs.host, bobs.host)),
        (&nobody, String::new()),
    ] {
        let answer = who.get("/", &headers).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{headers}: {answer}");
    }
    let mut stream = thief.connect().await;
    stream.write_all(thief.handshake("/").as_bytes()).await.or_fail("ask");
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.or_fail("read");
    assert_eq!(&start, b"HTTP/1.1 401");
    assert!(bob.open_app("web", port(), &OpenApp::default()).await.or_fail("open").url.contains("--bob."));
    let admins_id = admin.instance("web").await.or_fail("look").id;
    assert!(bob.open_app(admins_id.as_str(), port(), &OpenApp::default()).await.is_err());

    // The cookie outlives the gateway.
    let Browser { scheme, host, cookie, .. } = admins;
    world.kill_gateway();
    world.start_gateway().await;
    let again = Browser { world: &world, scheme, host, cookie };
    wait_until("the app answers again", LIMIT, async || {
        again.get("/", "").await.starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
}

#[tokio::test]
async fn large_bodies_pass_without_staying() {
    /// A few hundred kilobytes, and what the allocator keeps beside them.
    const GROWTH: u64 = 2 << 20;
    let world = World::start().await;
    let client = world.client();
    create(&client, "admin").await;
    let browser = Browser::open(&world, &client).await;
    // What everything needs that ever happens is there afterwards.
    for _ in 0..8 {
        browser.moves(1 << 25).await;
    }
    let before = world.gateway_memory_bytes();
    let most = browser.moves(body_bytes()).await;
    let growth = most.saturating_sub(before);
    assert!(growth < GROWTH, "the gateway has grown by {growth} bytes");
}

/// How large a body is that goes down and up; `make test-long` moves twenty gigabytes.
fn body_bytes() -> u64 {
    (count("BERTH_BODY_MIB", 256) as u64) << 20
}

/// A frame of a client, masked.
fn frame(opcode: u8, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![opcode | if last { 0x80 } else { 0 }];
    match payload.len() {
        length @ 0..126 => bytes.push(0x80 | u8::try_from(length).or_fail("fit")),
        length @ 126..65536 => {
            bytes.push(0x80 | 0x7e);
            bytes.extend(u16::try_from(length).or_fail("fit").to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    bytes.extend(mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// What a client sends after the handshake, and whether it ends with a close of its own.
fn cases() -> Vec<(&'static str, Vec<u8>)> {
    let close = |code: u16| frame(8, true, &code.to_be_bytes());
    let ended = |frames: &[Vec<u8>]| [frames.concat(), close(1000)].concat();
    let (text, binary) = (|payload: &[u8]| frame(1, true, payload), |payload: &[u8]| frame(2, true, payload));
    let mut reserved = text(b"x");
    reserved[0] |= 0x40;
    let mut unmasked = text(b"x");
    unmasked[1] &= 0x7f;
    vec![
        ("a text", ended(&[text("hello, 世界".as_bytes())])),
        ("nothing", ended(&[text(b""), binary(b"")])),
        ("sizes at the borders", ended(&[125, 126, 127, 65535, 65536].map(|size| binary(&vec![7; size])))),
        ("a large message", ended(&[binary(&vec![9; 4 << 20])])),
        (
            "fragments with control frames in between",
            ended(&[
                frame(1, false, b"he"),
                frame(9, true, b"ping"),
                frame(0, false, b""),
                frame(10, true, b"unasked"),
                frame(0, true, b"llo"),
            ]),
        ),
        ("a letter over two fragments", ended(&[frame(1, false, &[0xe4, 0xb8]), frame(0, true, &[0x96])])),
        ("pings", ended(&[frame(9, true, b""), frame(9, true, &[1; 125])])),
        ("invalid UTF-8", text(&[0xc3, 0x28])),
        ("a ping that is too long", frame(9, true, &[1; 126])),
        ("a ping in pieces", frame(9, false, b"x")),
        ("a reserved bit", reserved),
        ("a reserved opcode", frame(3, true, b"")),
        ("no mask", unmasked),
        ("a continuation of nothing", frame(0, true, b"x")),
        ("two beginnings", [frame(1, false, b"a"), frame(1, true, b"b")].concat()),
        ("close without a code", frame(8, true, b"")),
        ("close with half a code", frame(8, true, &[3])),
        ("close 1001", close(1001)),
        ("close 3999", close(3999)),
        ("close 999", close(999)),
        ("close 1005", close(1005)),
        ("close 1006", close(1006)),
        ("close with a reason that is no text", frame(8, true, &[3, 232, 0xff])),
        ("words after the close", [close(1000), text(b"too late")].concat()),
    ]
}

#[tokio::test]
async fn the_verdict_on_every_websocket_case_is_the_apps_own() {
    let world = World::start().await;
    let client = world.client();
    create(&client, "admin").await;
    verdicts(&Browser::open(&world, &client).await).await;
}

#[tokio::test]
async fn where_the_site_has_a_domain_and_tls_apps_are_the_same() {
    let world = World::start_with(Setup { secured: true, ..Setup::default() }).await;
    let client = world.client();
    create(&client, "admin").await;
    let browser = Browser::open(&world, &client).await;
    assert!(browser.host.starts_with("9000--web--admin.apps."), "{}", browser.host);

    // By HTTP/2, which browsers choose.
    let (get, seen) = browser.by_http2(&[], "/a%2Fb//c?d=%00").await;
    assert!(get.starts_with("HTTP/2 200"), "{get}");
    assert_eq!(
        recorded(seen["head"].as_str().or_fail("read")),
        [
            "GET /a%2Fb//c?d=%00 HTTP/1.1".to_owned(),
            "accept: */*".to_owned(),
            format!("host: {}", browser.host),
            "x-forwarded-for: 127.0.0.1".to_owned(),
            format!("x-forwarded-host: {}", browser.host),
            "x-forwarded-proto: https".to_owned(),
        ]
    );
    let sent = tempfile::NamedTempFile::new().or_fail("make a file");
    std::fs::write(sent.path(), vec![7; 3 << 20]).or_fail("fill a file");
    let data = format!("@{}", sent.path().display());
    let own = format!("Origin: https://{}", browser.host);
    let (post, seen) = browser.by_http2(&["-H", &own, "--data-binary", &data], "/").await;
    assert!(post.starts_with("HTTP/2 200"), "{post}");
    assert_eq!(seen["received"], 3 << 20);
    let other = format!("Origin: https://9000--web--bob.{}", browser.host.split_once('.').or_fail("split").1);
    let (refused, _) = browser.by_http2(&["-H", &other, "--data-binary", &data], "/").await;
    assert!(refused.starts_with("HTTP/2 403"), "{refused}");
    let (stranger, _) = browser.with(&world, "").by_http2(&[], "/").await;
    assert!(stranger.starts_with("HTTP/2 401"), "{stranger}");

    verdicts(&browser).await;
}

/// The same app on this machine, with nobody in between.
struct Direct {
    port: u16,
    _process: tokio::process::Child,
}

impl Direct {
    async fn start() -> Self {
        let mut process = tokio::process::Command::new("python3")
            .args(["-u", "-c", RECORDER, "direct", "0"])
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .or_fail("start the app");
        let mut lines = BufReader::new(process.stdout.take().or_fail("hear it")).lines();
        let line = timeout(LIMIT, lines.next_line()).await.or_fail("wait").or_fail("read").or_fail("hear it");
        Self { port: line.parse().or_fail("read its port"), _process: process }
    }
}

/// Asks the app for each case directly and as a browser, and compares what it says.
async fn verdicts(browser: &Browser<'_>) {
    let direct = Direct::start().await;
    let handshake = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    for (what, frames) in cases() {
        let stream = TcpStream::connect(("127.0.0.1", direct.port)).await.or_fail("connect");
        let direct = verdict(what, stream, handshake, &frames).await;
        let through = verdict(what, browser.connect().await, &browser.handshake("/"), &frames).await;
        let (through, direct) = (after_head(&through), after_head(&direct));
        assert!(through == direct, "{what}: {} and {}", summary(through), summary(direct));
        assert!(direct.is_some_and(|frames| !frames.is_empty()), "{what}: there is a verdict");
    }
}

/// All that comes back until the connection ends.
async fn verdict(what: &str, stream: impl Stream, handshake: &str, frames: &[u8]) -> Vec<u8> {
    let (mut reads, mut writes) = tokio::io::split(stream);
    let mut said = Vec::new();
    let send = async {
        writes.write_all(handshake.as_bytes()).await.or_fail("ask");
        // Whoever has been told to go may not hear all of it.
        let _ = writes.write_all(frames).await;
        // TLS keeps what it was given until it is told that there is no more for now.
        let _ = writes.flush().await;
    };
    let read = async { reads.read_to_end(&mut said).await };
    // An app that closes on unread words resets the connection; what it said before counts.
    let _ = timeout(LIMIT, async { tokio::join!(send, read) }).await.or_fail(format!("{what}: an end"));
    said
}

/// Enough of a verdict to tell two apart.
fn summary(frames: Option<&[u8]>) -> String {
    let frames = frames.unwrap_or_default();
    format!("{} bytes that end with {:?}", frames.len(), &frames[frames.len().saturating_sub(8)..])
}

fn after_head(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    bytes.get(end + 4..)
}
