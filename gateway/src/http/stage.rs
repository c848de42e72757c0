//! An instance with an agent that is played by hand, and programs of the test in place of apps: what reaches an app is
//! seen byte for byte, and what it answers is up to the test.

use std::{
    os::{fd::AsFd as _, fd::AsRawFd as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use envd_api::agent::{
    AppReport, Call, Greeting, Refusal, Reply, Request, SOCKET, VERSION, read_message, send_with_descriptor,
    write_message,
};
use gateway_api::{InstanceId, Status, session::Role};
use http::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixStream},
};

use super::testing::Site;
use crate::{auth::token::Token, store::GroupId};

/// Nothing here takes long, but the machine may be busy.
pub(super) const LIMIT: Duration = Duration::from_mins(1);

pub(super) struct Stage {
    pub(super) site: Site,
    pub(super) alice: Token,
    pub(super) bob: Token,
    pub(super) instance: InstanceId,
    /// What the agent says of apps.
    pub(super) report: Arc<Mutex<Option<AppReport>>>,
    /// What it was asked to do with them.
    pub(super) acts: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    pub(super) async fn set() -> Self {
        Self::set_with("").await
    }

    /// Alice's running instance `train`, and Bob, who has nothing.
    pub(super) async fn set_with(settings: &str) -> Self {
        let site = Site::open_with(settings).await;
        let alice = site.user("alice", Role::User, GroupId::DEFAULT).await;
        let bob = site.user("bob", Role::User, GroupId::DEFAULT).await;
        let running = Status::Running { since: jiff::Timestamp::now() };
        let instance = site.instance("alice", "train", &running).await;
        let stage = Self { site, alice, bob, instance, report: Arc::default(), acts: Arc::default() };
        let door = envd_api::agent::door(stage.site.folder.path(), &stage.instance);
        std::fs::create_dir_all(door.join("link")).unwrap();
        stage.site.app.agents.open(&stage.instance).await.unwrap();
        let agent = play(door, Arc::clone(&stage.report), Arc::clone(&stage.acts));
        stage.site.app.tasks.spawn("agent", agent);
        stage
    }

    /// The host of an app of Alice's.
    pub(super) fn host(&self, app: &str) -> String {
        format!("{app}--train--alice.localhost:{}", self.site.address.port())
    }

    /// Sends bytes and reads until the other side closes.
    pub(super) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.site.address).await.unwrap();
        let _ = stream.write_all(bytes).await;
        rest(&mut stream).await
    }

    /// A request at a host, without keep-alive.
    pub(super) async fn get(&self, host: &str, path: &str, headers: &str) -> String {
        self.raw(
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n").as_bytes(),
        )
        .await
    }

    /// The one-time address of an app.
    pub(super) async fn opened(&self, app: &str, body: &Value) -> String {
        let path = format!("/api/v1/instances/train/apps/{app}/open");
        let reply = self.site.ask(&Method::POST, &path, Some(&self.alice), Some(body)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["url"].as_str().unwrap().to_owned()
    }

    /// The cookie of a browser that has opened an app.
    pub(super) async fn entered(&self, app: &str) -> String {
        self.entered_to(app, &json!({})).await
    }

    /// The same for a place in it.
    pub(super) async fn entered_to(&self, app: &str, place: &Value) -> String {
        let url = self.opened(app, place).await;
        let (_, path) = url.split_once("/.berth/").unwrap();
        let answer = self.get(&self.host(app), &format!("/.berth/{path}"), "").await;
        assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
        format!("Cookie: {}\r\n", cookie(&answer))
    }
}

/// The cookie that an answer sets, as the browser sends it back.
pub(super) fn cookie(answer: &str) -> String {
    let line = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    line.unwrap_or_else(|| panic!("no cookie: {answer}")).split(';').next().unwrap().to_owned()
}

pub(super) async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = tokio::time::timeout(LIMIT, stream.read_to_end(&mut bytes)).await.expect("it was not closed");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the head of a message, and not a byte more.
pub(super) async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = tokio::time::timeout(LIMIT, stream.read_u8()).await.expect("no head came");
        let Ok(byte) = byte else { break };
        head.push(byte);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// A program that listens.
pub(super) async fn program() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    (listener, port)
}

/// An agent that dials what the test listens on.
async fn play(
    door: std::path::PathBuf,
    report: Arc<Mutex<Option<AppReport>>>,
    acts: Arc<Mutex<Vec<String>>>,
) {
    let directory = std::fs::File::open(door).unwrap();
    let connect = async |greeting: Greeting| {
        let path = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
        let mut stream = UnixStream::connect(path).await.ok()?;
        write_message(&mut stream, &greeting).await.ok()?;
        Some(stream)
    };
    let Some(mut link) = connect(Greeting::Link { version: VERSION }).await else { return };
    while let Ok(Request { request, call }) = read_message::<Request>(&mut link).await {
        let Some(mut answer) = connect(Greeting::Answer { request }).await else { return };
        match call {
            Call::Dial { port } => {
                if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)).await {
                    send_with_descriptor(&answer, stream.as_fd()).await.unwrap();
                } else {
                    let message = format!("nothing listens on port {port}");
                    let refused = Reply::Refused { refusal: Refusal::NothingListens, message };
                    write_message(&mut answer, &refused).await.unwrap();
                }
            }
            Call::App(call) => {
                acts.lock()
                    .unwrap()
                    .push(format!("{:?} {} {} {:?}", call.act, call.app, call.prefix, call.folder));
                let report = report.lock().unwrap().clone();
                if let Some(report) = report {
                    write_message(&mut answer, &Reply::Stream).await.unwrap();
                    write_message(&mut answer, &report).await.unwrap();
                } else {
                    let refused =
                        Reply::Refused { refusal: Refusal::UnknownCall, message: "what?".to_owned() };
                    write_message(&mut answer, &refused).await.unwrap();
                }
            }
            Call::Exec(_)
            | Call::Terminal(_)
            | Call::Terminals(_)
            | Call::Session(_)
            | Call::Signal(_)
            | Call::Sftp { .. }
            | Call::Connect(_)
            | Call::Listen(_)
            | Call::Begin(_)
            | Call::Presence {} => {}
        }
    }
}
