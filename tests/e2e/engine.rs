//! The container engine is killed, hangs, is slow or talks nonsense: lists answer, acts are taken and say what they wait for,
//! and all goes on by itself when the engine is back.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use gateway_api::{
    Goal, Instance, Status,
    instance::{HeldUpReason, WaitReason},
    node::NodeState,
};
use tests::{
    LIMIT, OrFail as _, Registry, Setup, World,
    engine::{self, PrivateEngine, Valve},
    wait_until, wait_until_agreed, wanted,
};

use crate::saving::Site;

/// How long a slow engine takes for each request: well within what envd waits for an answer.
const SLOW: Duration = Duration::from_secs(2);

fn on_engine(socket: PathBuf, image: Option<&str>) -> Setup {
    let config = image.map(|image| format!("[gateway]\ndefault_image = \"{image}\"\n")).unwrap_or_default();
    Setup { config, engine: Some(socket), ..Setup::default() }
}

async fn show(world: &World, name: &str) -> Instance {
    world.client().instance(name).await.or_fail("show an instance")
}

async fn wait_for(world: &World, name: &str, state: &str) {
    // Each request to the engine may take seconds.
    wait_until_agreed(&format!("`{name}` is {state}"), 5 * LIMIT, async || {
        let status = show(world, name).await.status;
        if status.word() == state { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

/// Waits until the only node says that its engine is away, and why.
async fn wait_until_unwell(world: &World) -> String {
    wait_until("the node is unwell", LIMIT, async || {
        let nodes = world.client().nodes().await.or_fail("list nodes");
        nodes.into_iter().find_map(|node| match node.state {
            NodeState::Unwell { message } => Some(message),
            NodeState::Ready => None,
        })
    })
    .await
}

async fn wait_for_the_engine(world: &World, name: &str) {
    wait_until_agreed(&format!("`{name}` says what it waits for"), LIMIT, async || {
        let status = show(world, name).await.status;
        let agrees = matches!(
            &status,
            Status::Waiting { reason: WaitReason::EngineUnreachable, message } if !message.is_empty()
        );
        if agrees { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

/// What a stop or a deletion is held up by.
async fn held_up(world: &World, name: &str) -> (&'static str, HeldUpReason) {
    wait_until_agreed(&format!("`{name}` is held up"), LIMIT, async || {
        let status = show(world, name).await.status;
        let (Status::Stopping { held_up: Some(held_up) } | Status::Deleting { held_up: Some(held_up) }) =
            &status
        else {
            return Err(format!("{status:?}"));
        };
        Ok((status.word(), held_up.reason))
    })
    .await
}

/// The states of the containers of an instance.
fn states(engine: &PrivateEngine, world: &World, id: &str) -> Vec<String> {
    let found = engine.listed(&world.cluster());
    found.into_iter().filter(|container| container.instance == id).map(|container| container.state).collect()
}

#[tokio::test]
async fn a_killed_engine_comes_back_with_what_should_run() {
    let mut engine = PrivateEngine::start().await;
    let image = engine.import_busybox("tiny");
    let world = World::start_with(on_engine(engine.socket(), Some(&image))).await;
    for name in ["runs", "rests", "woken"] {
        world.berth(&["create", name, "--wait"]).await.succeeded();
    }
    world.berth(&["stop", "rests", "woken", "--wait"]).await.succeeded();
    world.berth(&["exec", "runs", "--", "sh", "-c", "echo kept > /kept"]).await.succeeded();

    engine.kill_daemon();
    let why = wait_until_unwell(&world).await;
    assert!(!why.is_empty());
    let listed = world.berth(&["ls"]).await.succeeded();
    assert!(["runs", "rests", "woken"].iter().all(|name| listed.contains(name)), "{listed}");
    // Who is inside stays inside: the way in does not lead through the engine.
    assert_eq!(world.berth(&["exec", "runs", "--", "cat", "/kept"]).await.succeeded(), "kept\n");
    world.client().create_instance(&wanted("late")).await.or_fail("create an instance");
    world.client().start_instance("woken").await.or_fail("start an instance");
    wait_for_the_engine(&world, "late").await;
    wait_for_the_engine(&world, "woken").await;
    assert_eq!(show(&world, "rests").await.status.word(), "stopped");

    engine.start_daemon().await;
    world.wait_for_cluster().await;
    for name in ["runs", "late", "woken"] {
        let id = show(&world, name).await.id;
        wait_until_agreed(&format!("`{name}` runs again"), LIMIT, async || {
            let (status, found) = (show(&world, name).await.status, states(&engine, &world, id.as_str()));
            let agrees = matches!(status, Status::Running { .. }) && found == ["running"];
            if agrees { Ok(()) } else { Err(format!("{status:?}, {found:?}")) }
        })
        .await;
    }
    let rests = show(&world, "rests").await;
    assert_eq!((rests.goal, rests.status.word()), (Goal::Stopped, "stopped"));
    assert_eq!(states(&engine, &world, rests.id.as_str()), ["exited"]);
    assert_eq!(engine.listed(&world.cluster()).len(), 4, "one for each");
    assert_eq!(world.berth(&["exec", "runs", "--", "cat", "/kept"]).await.succeeded(), "kept\n");
}

/// As `deploy/up/docker.sh` sets engines up: their containers live on without them.
#[tokio::test]
async fn what_runs_goes_on_while_an_engine_with_live_restore_is_away() {
    let mut engine = PrivateEngine::start_with(&["--live-restore"]).await;
    let image = engine.import_busybox("tiny");
    let world = World::start_with(on_engine(engine.socket(), Some(&image))).await;
    world.berth(&["create", "runs", "--wait"]).await.succeeded();
    let run = async |line: &str| world.berth(&["exec", "runs", "--", "sh", "-c", line]).await.succeeded();
    run("echo kept > /kept; (busybox setsid sleep 100000 </dev/null >/dev/null 2>&1 &)").await;
    let find = "for p in /proc/[0-9]*; do busybox grep -q '^sleep' $p/comm && echo $p; done; true";
    // It is `sleep` a moment after the shell has started it.
    let process = wait_until("the process runs", LIMIT, async || {
        let found = run(find).await;
        (found.lines().count() == 1).then_some(found)
    })
    .await;
    let id = show(&world, "runs").await.id;

    engine.kill_daemon();
    wait_until_unwell(&world).await;
    assert_eq!(run(find).await, process);
    engine.start_daemon().await;
    world.wait_for_cluster().await;
    wait_for(&world, "runs", "running").await;
    assert_eq!(states(&engine, &world, id.as_str()), ["running"]);
    assert_eq!(run(find).await, process, "the same one, not one like it");
    assert_eq!(run("cat /kept").await, "kept\n");
    // And it obeys.
    world.berth(&["stop", "runs", "--wait"]).await.succeeded();
    assert_eq!(states(&engine, &world, id.as_str()), ["exited"]);
}

#[tokio::test]
async fn an_engine_that_hangs_or_talks_nonsense_is_waited_for() {
    let valve = Valve::new(Path::new(engine::SOCKET));
    let world = World::start_with(on_engine(valve.socket(), None)).await;
    world.berth(&["create", "runs", "--wait"]).await.succeeded();
    world.berth(&["create", "goes", "--wait"]).await.succeeded();

    valve.hang();
    wait_until("envd waits for an answer", LIMIT, async || (valve.held() > 0).then_some(())).await;
    let instances = world.client().instances().await.or_fail("list instances");
    assert_eq!(instances.len(), 2);
    world.berth(&["exec", "runs", "--", "true"]).await.succeeded();
    world.client().create_instance(&wanted("late")).await.or_fail("create an instance");
    world.client().stop_instance("runs").await.or_fail("stop an instance");
    wait_for_the_engine(&world, "late").await;
    world.client().delete_instance("goes").await.or_fail("delete an instance");
    assert_eq!(held_up(&world, "runs").await, ("stopping", HeldUpReason::EngineUnreachable));
    assert_eq!(held_up(&world, "goes").await, ("deleting", HeldUpReason::EngineUnreachable));
    let (_, said) = world.berth(&["ls"]).await.ended(0);
    assert!(said.contains("stopping: the container engine does not answer; it goes on by itself"), "{said}");
    let why = wait_until_unwell(&world).await;
    assert!(why.contains("no answer"), "{why}");

    valve.talk_nonsense();
    let before = valve.nonsense();
    // Both kinds of it, more than once.
    wait_until("envd has heard nonsense", LIMIT, async || (valve.nonsense() >= before + 4).then_some(()))
        .await;
    assert_eq!(world.client().instances().await.or_fail("list instances").len(), 3);
    wait_until_unwell(&world).await;

    valve.open();
    world.wait_for_cluster().await;
    wait_for(&world, "late", "running").await;
    wait_for(&world, "runs", "stopped").await;
    wait_until_agreed("`goes` is gone, the others are there", LIMIT, async || {
        let found = engine::listed(&world.cluster()).into_iter();
        let mut states: Vec<_> = found.map(|found| found.state).collect();
        states.sort_unstable();
        if states == ["exited", "running"] { Ok(()) } else { Err(format!("{states:?}")) }
    })
    .await;
    assert_eq!(world.berth(&["exec", "late", "--", "echo", "here"]).await.succeeded(), "here\n");
}

#[tokio::test]
async fn images_are_listed_whoever_is_away() {
    let valve = Valve::new(Path::new(engine::SOCKET));
    let registry = Registry::start().await;
    let mut site = Site::start_as(registry, on_engine(valve.socket(), None)).await;
    site.instance("train").await;
    let saved = site.save(&["train", "1"]).await;
    // On a busy machine the engine may miss its limit for a list.
    let before =
        wait_until_agreed("the image of the engine and the saved one are listed", LIMIT, async || {
            let images = site.world.client().images().await.or_fail("list images");
            let whole = images.contains(&saved) && images.iter().any(|image| image.default);
            if whole { Ok(images) } else { Err(format!("{images:?}")) }
        })
        .await;

    // A request to the engine is pending before and after the answer, so nobody waited until envd gave up. Once envd has
    // given one up it is not asked any more: each attempt begins with an engine that is well.
    let listed = wait_until("images are listed while a request hangs", 3 * LIMIT, async || {
        valve.hang();
        wait_until("envd waits for an answer", LIMIT, async || (valve.held() > 0).then_some(())).await;
        let pending = valve.pending();
        let listed = site.world.client().images().await.or_fail("list images");
        if pending.any_waits() {
            return Some(listed);
        }
        valve.open();
        site.world.wait_for_cluster().await;
        None
    })
    .await;
    assert_eq!(listed, before);
    wait_until_unwell(&site.world).await;
    assert_eq!(site.world.client().images().await.or_fail("list images"), before);

    site.world.kill_envd();
    wait_until_unwell(&site.world).await;
    assert_eq!(site.world.client().images().await.or_fail("list images"), before);
    // A gateway that has never heard what the engine has knows what people have saved.
    site.world.kill_gateway();
    site.world.start_gateway().await;
    let listed = site.world.client().images().await.or_fail("list images");
    assert_eq!(listed.iter().map(|image| &image.saved).collect::<Vec<_>>(), [&saved.saved]);

    valve.open();
    site.world.start_envd().await;
    site.world.wait_for_cluster().await;
}

#[tokio::test]
async fn a_slow_engine_makes_acts_slow_and_nothing_else() {
    let valve = Valve::new(Path::new(engine::SOCKET));
    let world = World::start_with(on_engine(valve.socket(), None)).await;
    world.berth(&["create", "runs", "--wait"]).await.succeeded();

    valve.slow_down(SLOW);
    wait_until("the engine is slow", LIMIT, async || (valve.held() > 0).then_some(())).await;
    world.client().create_instance(&wanted("late")).await.or_fail("create an instance");
    world.client().stop_instance("runs").await.or_fail("stop an instance");
    let waiting = world.client().instances().await.or_fail("list instances");
    assert!(waiting.iter().any(|instance| instance.status.word() != "running"), "{waiting:?}");
    wait_for(&world, "late", "running").await;
    wait_for(&world, "runs", "stopped").await;
    assert_eq!(world.unwell().await.or_fail("ask how it is"), [] as [&str; 0]);
    assert_eq!(world.berth(&["exec", "late", "--", "echo", "here"]).await.succeeded(), "here\n");
    world.berth(&["rm", "late"]).await.succeeded();
    wait_until("one container is left", LIMIT, async || {
        (engine::listed(&world.cluster()).len() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_container_that_the_engine_cannot_start_is_made_anew_with_all_that_is_in_it() {
    let valve = Valve::new(Path::new(engine::SOCKET));
    let world = World::start_with(on_engine(valve.socket(), None)).await;
    world.berth(&["create", "mine", "--wait"]).await.succeeded();
    world.berth(&["exec", "mine", "--", "sh", "-c", "echo kept > /root/kept"]).await.succeeded();
    world.berth(&["stop", "mine", "--wait"]).await.succeeded();
    let id = || engine::docker(&["inspect", "--format", "{{.Id}}", &world.only_container()]);
    let before = id();

    valve.cling_to(&before);
    world.client().start_instance("mine").await.or_fail("start an instance");
    wait_for(&world, "mine", "running").await;
    assert_eq!(world.berth(&["exec", "mine", "--", "cat", "/root/kept"]).await.succeeded(), "kept\n");
    assert_ne!(id(), before);
    // And with it the image that it was made from.
    world.berth(&["rm", "mine", "--wait"]).await.succeeded();
}
