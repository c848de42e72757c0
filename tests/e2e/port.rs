//! A port of an instance, reached through the gateway.

use futures_util::{SinkExt as _, StreamExt as _};
use gateway_api::{Code, stream::FromServer};
use tests::{IMAGE, LIMIT, OrFail as _, Socket, World, wait_until, web_socket};
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

#[tokio::test]
async fn what_listens_on_the_loopback_of_an_instance_is_reached() {
    let world = World::start().await;
    let script = format!(
        "head -c 3000000 /dev/zero > /tmp/zeros; exec python3 -m http.server {PORT} --bind 127.0.0.1 -d /tmp"
    );
    let create = ["create", "web", "--image", IMAGE, "--wait", "--", "sh", "-c", &script];
    world.berth(&create).await.succeeded();
    let answer =
        wait_until("the server answers", LIMIT, async || ask(&world, PORT, "/zeros").await.ok()).await;
    assert!(answer.starts_with(b"HTTP/1.0 200 OK"), "{}", String::from_utf8_lossy(&answer[..200]));
    assert!(answer.ends_with(&vec![0; 3_000_000]), "{} bytes", answer.len());

    let nothing = ask(&world, PORT + 1, "/").await;
    let Err(FromServer::Error(problem)) = nothing else { panic!("nobody listens there, but: {nothing:?}") };
    assert_eq!(problem.code, Code::BadValue, "{problem:?}");
    assert!(problem.message.contains("nothing listens"), "{problem:?}");
}
