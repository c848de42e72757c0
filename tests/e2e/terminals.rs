//! Terminals that go on without their viewers: several, named, closed on demand, and never ahead of who watches.

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use gateway_api::{
    Code,
    client::ClientError,
    stream::{ExecStart, Exit},
};
use tests::{LIMIT, OrFail as _, Screen, Socket, World, web_socket};
use tokio_tungstenite::tungstenite::{Bytes, Message};

/// What the gateway lets be before a viewer that acknowledges.
const WINDOW: usize = 256 << 10;

#[tokio::test]
async fn terminals_are_listed_and_closed() {
    let world = World::start().await;
    world.berth(&["create", "a1", "--wait"]).await.succeeded();
    let (_, none) = world.berth(&["terminals", "a1"]).await.ended(0);
    assert!(none.contains("no terminals"), "{none}");
    let mut first = Screen::attach(&world.client(), "a1", "main").await;
    first.enter("x=first; echo $x-$((6*7))").await;
    first.shows("first-42").await;
    let mut second = Screen::attach(&world.client(), "a1", "notes").await;
    second.enter("echo [$x]-$((6*7))").await;
    second.shows("[]-42").await;

    let listed = world.client().terminals("a1").await.or_fail("list the terminals");
    let listed: Vec<_> = listed.iter().map(|one| (one.name.as_str(), one.viewers)).collect();
    assert_eq!(listed, [("main", 1), ("notes", 1)]);
    world.berth(&["terminals", "a1", "--close", "notes", "--close", "never-there"]).await.succeeded();
    let table = world.berth(&["terminals", "a1"]).await.succeeded();
    assert!(table.contains("main") && !table.contains("notes"), "{table}");
    first.enter("echo still-$x").await;
    first.shows("still-first").await;

    let (_, wrong) = world.berth(&["terminals", "a1", "--close", "No Such"]).await.ended(1);
    assert!(wrong.contains("lower-case letters"), "{wrong}");
}

#[tokio::test]
async fn an_exec_that_is_too_long_is_refused_and_harms_nobody() {
    let world = World::start().await;
    world.berth(&["create", "a1", "--wait"]).await.succeeded();
    let mut screen = Screen::attach(&world.client(), "a1", "main").await;
    let argv = vec!["true".to_owned(), "x".repeat(300 << 10)];
    let start = ExecStart { argv, env: [].into(), cwd: None, tty: None };
    let process = world.client().exec("a1", &start).await.or_fail("begin an exec");
    let refused = process.finish(b"").await;
    let Err(ClientError::Problem(problem)) = refused else { panic!("not refused but {refused:?}") };
    assert_eq!(problem.code, Code::BadValue, "{problem:?}");
    assert!(problem.message.contains("at most 256 KiB"), "{problem:?}");
    assert!(problem.request_id.starts_with("req_"), "{problem:?}");
    assert_eq!(world.berth(&["exec", "a1", "--", "echo", "again"]).await.succeeded(), "again\n");
    screen.enter("echo on-$((6*7))").await;
    screen.shows("on-42").await;
}

/// Returns the bytes of the next message; none if it is not binary.
async fn piece(socket: &mut Socket) -> Bytes {
    let message = tokio::time::timeout(LIMIT, socket.next()).await.or_fail("hear from a terminal");
    bytes_of(message.or_fail("find the terminal open").or_fail("read a terminal"))
}

fn bytes_of(message: Message) -> Bytes {
    if let Message::Binary(bytes) = message { bytes } else { Bytes::new() }
}

/// Reads until `text` has come, and returns the number of bytes.
async fn read(socket: &mut Socket, text: &str) -> usize {
    let mut all = Vec::new();
    while !all.windows(text.len()).any(|window| window == text.as_bytes()) {
        all.extend_from_slice(&piece(socket).await);
    }
    all.len()
}

async fn say(socket: &mut Socket, message: Message) {
    socket.send(message).await.or_fail("write to a terminal");
}

#[tokio::test]
async fn a_flood_waits_for_the_viewer_and_ctrl_c_does_not() {
    let world = World::start().await;
    world.berth(&["create", "a1", "--wait"]).await.succeeded();
    let url = format!("{}/api/v1/instances/a1/terminals/main?cols=80&rows=24&ack=1", world.console());
    let mut socket = web_socket(&url, &[("authorization", &format!("Bearer {}", world.token()))]).await;
    say(&mut socket, Message::binary("stty -echo; PS1=; echo set-$((1+1))\r".as_bytes())).await;
    let mut before = read(&mut socket, "set-2").await;
    say(&mut socket, Message::binary("yes\r".as_bytes())).await;

    // Until the viewer acknowledges, no more than the window comes, also while the instance serves others.
    while before < WINDOW {
        before += piece(&mut socket).await.len();
    }
    for _ in 0..3 {
        let ran = world.client().run("a1", &["true"], b"").await.or_fail("run something");
        assert_eq!(ran.exit, Exit::Code(0));
        while let Some(message) = socket.next().now_or_never() {
            before += bytes_of(message.or_fail("find the terminal open").or_fail("read a terminal")).len();
        }
    }
    assert!(before <= WINDOW + (64 << 10), "{before}");
    // From here on what has come is dealt with at once.
    say(&mut socket, Message::binary("\x03echo end-$((1+1))\r".as_bytes())).await;
    say(&mut socket, Message::text(format!("{{\"ack\":{before}}}"))).await;
    let (mut left, mut ended) = (0, false);
    while !ended {
        let piece = piece(&mut socket).await;
        left += piece.len();
        ended = piece.windows(5).any(|window| window == b"end-2");
        say(&mut socket, Message::text(format!("{{\"ack\":{}}}", piece.len()))).await;
        assert!(left < 1 << 20, "{left} bytes were on the way");
    }
}
