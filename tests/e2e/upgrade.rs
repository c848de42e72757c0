//! Upgrades: agents are as old as the last start of their instance, and what they know still works.

use std::path::Path;

use gateway_api::{client::ProcessEvent, stream::Size};
use tests::{LIMIT, OrFail as _, Screen, Setup, World, engine, wait_until};

use crate::port::ask;

const PORT: u16 = 9000;

/// What an agent of the first version can do.
async fn serves(world: &World) {
    let script = "read line; echo out $line $FRUIT; echo err >&2; exit 7";
    let ended = world.berth_with(&["exec", "web", "--", "sh", "-c", script], b"put in\n").await.ended(7);
    assert_eq!(ended, ("out put in two words\n".to_owned(), "err\n".to_owned()));
    let answer = wait_until("the server answers", LIMIT, async || ask(world, PORT, "/").await.ok()).await;
    assert!(answer.starts_with(b"HTTP/1.0 200"), "{}", String::from_utf8_lossy(&answer));
    assert!(ask(world, PORT + 1, "/").await.is_err(), "nobody listens there");
}

/// What it has never heard of.
async fn says_that_it_is_too_old(world: &World) {
    let size = Size { cols: 80, rows: 24 };
    let mut process = world.client().terminal("web", "main", size).await.or_fail("attach to a terminal");
    let event = tokio::time::timeout(LIMIT, process.output.next()).await.or_fail("hear from a terminal");
    let Some(Ok(ProcessEvent::Problem(problem))) = event else { panic!("{event:?}") };
    assert!(problem.message.contains("older version: restart it"), "{problem}");
}

#[tokio::test]
async fn an_agent_of_the_first_version_works_until_its_instance_is_restarted() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/version-1.py");
    let mut world = World::start_with(Setup { agent: Some(old), ..Setup::default() }).await;
    world.berth(&["create", "web", "--env", "FRUIT=two words", "--wait"]).await.succeeded();
    let serve = format!("python3 -m http.server {PORT} --bind 127.0.0.1 >/dev/null 2>&1 &");
    world.berth(&["exec", "web", "--", "sh", "-c", &serve]).await.succeeded();
    serves(&world).await;
    let container = world.only_container();
    let process = engine::inspect(&container, ".State.Pid");

    world.upgrade_agent();
    assert!(world.stop_gateway().await.success());
    assert!(world.stop_envd().await.success());
    world.start_envd().await;
    world.start_gateway().await;
    world.wait_for_cluster().await;
    serves(&world).await;
    says_that_it_is_too_old(&world).await;
    assert_eq!(engine::inspect(&container, ".State.Pid"), process, "nobody has touched it");

    world.berth(&["exec", "web", "--", "sh", "-c", "echo kept > /kept"]).await.succeeded();
    world.berth(&["restart", "web", "--wait"]).await.succeeded();
    assert_eq!(world.only_container(), container);
    let mut screen = Screen::attach(&world.client(), "web", "main").await;
    screen.enter("echo $(cat /kept)-$((6*7))").await;
    screen.shows("kept-42").await;
}
