//! A port of an instance, reached through the gateway.

use std::{net::SocketAddr, process::Stdio};

use futures_util::{SinkExt as _, StreamExt as _, future::join_all};
use gateway_api::{Code, stream::FromServer};
use rustix::process::{Pid, Signal, kill_process};
use tests::{IMAGE, LIMIT, OrFail as _, Socket, World, engine::LocalImage, wait_until, web_socket};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStderr, ChildStdout},
    time::timeout,
};
use tokio_tungstenite::tungstenite::Message;

const PORT: u16 = 9000;

/// A connection to a port of instance `web`.
async fn dial(world: &World, port: u16) -> Socket {
    let url = format!("{}/api/v1/instances/web/ports/{port}", world.console());
    web_socket(&url, &[("authorization", &format!("Bearer {}", world.token()))]).await
}

/// Asks instance `web` for a page; the whole answer, or the gateway's reason why there is none.
pub(crate) async fn ask(world: &World, port: u16, path: &str) -> Result<Vec<u8>, FromServer> {
    let mut socket = dial(world, port).await;
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    socket.send(Message::binary(request.into_bytes())).await.or_fail("send a request");
    let mut answer = Vec::new();
    while let Some(message) = socket.next().await {
        match message.or_fail("read an answer") {
            Message::Binary(bytes) => answer.extend_from_slice(&bytes),
            Message::Text(text) => return Err(serde_json::from_str(&text).or_fail("read a message")),
            Message::Close(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
    Ok(answer)
}

/// An instance `web` that serves `/tmp` with a large file in it. Python's server lets five connections wait, and who comes
/// after them may be sent away; more come at once here.
async fn serve(world: &World) {
    let script = format!(
        "head -c 3000000 /dev/zero > /tmp/zeros; exec python3 -c 'import socketserver, runpy, sys; \
         socketserver.TCPServer.request_queue_size = 128; \
         sys.argv[1:] = [\"{PORT}\", \"--bind\", \"127.0.0.1\", \"-d\", \"/tmp\"]; \
         runpy.run_module(\"http.server\", run_name=\"__main__\")'"
    );
    let create = ["create", "web", "--image", IMAGE, "--wait", "--", "sh", "-c", &script];
    world.berth(&create).await.succeeded();
}

#[tokio::test]
async fn what_listens_on_the_loopback_of_an_instance_is_reached() {
    let world = World::start().await;
    serve(&world).await;
    let answer =
        wait_until("the server answers", LIMIT, async || ask(&world, PORT, "/zeros").await.ok()).await;
    assert!(answer.starts_with(b"HTTP/1.0 200 OK"), "{}", String::from_utf8_lossy(&answer[..200]));
    assert!(answer.ends_with(&vec![0; 3_000_000]), "{} bytes", answer.len());

    let nothing = ask(&world, PORT + 1, "/").await;
    let Err(FromServer::Error(problem)) = nothing else { panic!("nobody listens there, but: {nothing:?}") };
    assert_eq!(problem.code, Code::BadValue, "{problem:?}");
    assert!(problem.message.contains("nothing listens"), "{problem:?}");
}

/// A `berth port-forward` that goes on.
struct Forward {
    child: Child,
    printed: Lines<BufReader<ChildStdout>>,
    said: Lines<BufReader<ChildStderr>>,
}

impl Forward {
    fn start(world: &World, arguments: &[&str]) -> Self {
        let mut command = tokio::process::Command::from(world.program("berth"));
        command.arg("port-forward").args(arguments).env("BERTH_LANG", "en");
        command.env("BERTH_URL", world.console()).env("BERTH_TOKEN", world.token());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().or_fail("start a forwarding");
        let printed = BufReader::new(child.stdout.take().or_fail("take its output")).lines();
        let said = BufReader::new(child.stderr.take().or_fail("take its words")).lines();
        Self { child, printed, said }
    }

    /// Where the next of its ports listens.
    async fn address(&mut self) -> SocketAddr {
        let line = timeout(LIMIT, self.printed.next_line()).await.or_fail("wait for a line");
        let line = line.or_fail("read a line").or_fail("hear where it listens");
        line.split(' ').next().unwrap_or_default().parse().or_fail(&line)
    }

    async fn says(&mut self, words: &str) {
        let hear = async {
            while let Some(line) = self.said.next_line().await.or_fail("read what it says") {
                if line.contains(words) {
                    return;
                }
            }
            panic!("it ended and never said `{words}`");
        };
        timeout(LIMIT, hear).await.or_fail(format!("hear `{words}`"));
    }

    /// Ctrl-C.
    async fn interrupt(mut self) -> Option<i32> {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        kill_process(pid.or_fail("name a process"), Signal::INT).or_fail("send a signal");
        timeout(LIMIT, self.child.wait()).await.or_fail("wait for its end").or_fail("wait").code()
    }
}

/// Says `request` and that nothing follows; the whole answer.
async fn ask_here(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.or_fail("connect to this machine");
    let mut answer = Vec::new();
    let talk = async {
        stream.write_all(request).await.or_fail("send a request");
        // A connection that is refused there may be gone already.
        let _ = stream.shutdown().await;
        let _ = stream.read_to_end(&mut answer).await;
    };
    timeout(LIMIT, talk).await.or_fail("wait for an answer");
    answer
}

#[tokio::test]
async fn ports_of_an_instance_become_ports_of_this_machine() {
    let mut world = World::start().await;
    serve(&world).await;
    wait_until("the server answers", LIMIT, async || ask(&world, PORT, "/zeros").await.ok()).await;
    let (served, silent) = (format!("0:{PORT}"), format!("0:{}", PORT + 1));
    let mut forward = Forward::start(&world, &["web", &served, &silent]);
    let (served, silent) = (forward.address().await, forward.address().await);
    assert!(served.ip().is_loopback(), "others must not reach it: {served}");

    let request = b"GET /zeros HTTP/1.0\r\n\r\n";
    for answer in join_all((0..16).map(|_| ask_here(served, request))).await {
        assert!(answer.ends_with(&vec![0; 3_000_000]), "{} bytes", answer.len());
    }
    assert_eq!(ask_here(silent, request).await, b"");
    forward.says(&format!("nothing listens on port {} of `web`", PORT + 1)).await;

    // What forwards outlives the gateway.
    world.kill_gateway();
    assert_eq!(ask_here(served, request).await, b"");
    world.start_gateway().await;
    wait_until("it forwards again", LIMIT, async || {
        ask_here(served, request).await.ends_with(&[0; 1000]).then_some(())
    })
    .await;
    assert_eq!(forward.interrupt().await, Some(0));

    let taken = TcpStream::connect(served).await;
    assert!(taken.is_err(), "it listens after its end");
    let (_, said) = world.berth(&["port-forward", "wbe", "8000"]).await.ended(1);
    assert!(said.contains("no instance named `wbe`") && said.contains("did you mean `web`?"), "{said}");
    let (_, said) = world.berth(&["port-forward", "web", "80:0"]).await.ended(2);
    assert!(said.contains("use ports from 1 to 65535"), "{said}");
}

#[tokio::test]
async fn an_app_is_opened_by_an_address_that_is_printed() {
    let world = World::start().await;
    world.berth(&["create", "a1", "--image", IMAGE, "--wait"]).await.succeeded();
    let printed = world.berth(&["open", "a1", "3000", "--print"]).await.succeeded();
    let host = format!("://3000--a1--admin.localhost:{}/.berth/enter?ticket=", port_of(world.console()));
    assert!(printed.contains(&host), "{printed}");
    let printed = world.berth(&["open", "a1", "terminal", "--print"]).await.succeeded();
    let page = format!("{}/instances/a1/terminal#ticket=", world.console());
    assert!(printed.starts_with(&page), "{printed}");
    // A token opens apps, and signs no browser in to the console.
    let token = world.berth(&["token", "new", "script"]).await.succeeded();
    let by_token = async |app: &str| {
        let mut command = tokio::process::Command::from(world.program("berth"));
        command.args(["open", "a1", app, "--print"]).env("BERTH_LANG", "en");
        command.env("BERTH_URL", world.console()).env("BERTH_TOKEN", token.trim());
        let output = command.output().await.or_fail("run berth");
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let [printed, said] = by_token("terminal").await;
    assert_eq!(printed.trim(), format!("{}/instances/a1/terminal", world.console()), "{said}");
    assert!(said.contains("signs in no browser"), "{said}");
    let [printed, said] = by_token("3000").await;
    assert!(printed.contains(&host) && !said.contains("signs in no browser"), "{printed}{said}");
    let (_, said) = world.berth(&["open", "a1", "65536", "--print"]).await.ended(2);
    assert!(said.contains("a port from 1 to 65535"), "{said}");
    let (_, said) = world.berth(&["tensorboard", "runs"]).await.ended(1);
    assert!(said.contains("`/userhome/runs`"), "{said}");
}

#[tokio::test]
async fn what_cannot_be_opened_is_said_before_the_browser_shows_it() {
    let small = LocalImage::busybox();
    let world = World::start().await;
    world.berth(&["create", "small", "--image", small.reference(), "--wait"]).await.succeeded();
    // What is not there yet: the address is good.
    let (printed, said) = world.berth(&["open", "small", "3000", "--print"]).await.ended(0);
    assert!(
        printed.contains("ticket=") && said.contains("nothing listens on port 3000 of `small`"),
        "{said}"
    );
    // What cannot be had in this image: there is nothing to open.
    let (printed, said) = world.berth(&["open", "small", "lab", "--print"]).await.ended(1);
    assert!(printed.is_empty() && said.contains("`lab` cannot be opened in `small`"), "{said}");
    assert!(said.contains("Python"), "{said}");
    let (_, said) = world.berth_in_chinese(&["open", "small", "lab", "--print"]).await.ended(1);
    assert!(said.contains("镜像中没有 Python"), "{said}");
    let (_, said) = world.berth(&["open", "smal", "--print"]).await.ended(1);
    assert!(said.contains("did you mean `small`?"), "{said}");

    world.berth(&["stop", "small", "--wait"]).await.succeeded();
    let (printed, said) = world.berth(&["open", "small", "ide", "--print"]).await.ended(0);
    assert!(printed.contains("ticket=") && said.contains("`berth start small`"), "{said}");
    let (_, said) = world.berth_in_chinese(&["open", "small", "ide", "--print"]).await.ended(0);
    assert!(said.contains("没有运行"), "{said}");
}

fn port_of(url: &str) -> &str {
    url.rsplit_once(':').map_or("", |(_, port)| port)
}
