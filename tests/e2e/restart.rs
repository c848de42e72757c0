//! Killing the programs mid-walk: instances do not notice, and nothing that was promised is lost.

use std::process::{Command, Stdio};

use gateway_api::Status;
use tests::{LIMIT, OrFail as _, Screen, World, engine, wait_until, wanted};

async fn wait_until_running(world: &World, name: &str) {
    let client = world.client();
    wait_until(&format!("`{name}` runs"), LIMIT, async || {
        let instance = client.instance(name).await.or_fail("show an instance");
        let failed = matches!(instance.status, Status::Failed { .. });
        assert!(!failed, "{:?}", instance.status);
        matches!(instance.status, Status::Running { .. }).then_some(())
    })
    .await;
}

/// Waits until the agent of `a1` has linked again.
async fn is_led_into(world: &World) {
    wait_until("`a1` runs something", LIMIT, async || {
        let ran = world.berth(&["exec", "a1", "--", "echo", "again"]).await;
        (ran.stdout == "again\n").then_some(())
    })
    .await;
}

/// The key that the SSH door shows to whoever comes.
fn host_key(world: &World) -> String {
    let mut scan = Command::new("ssh-keyscan");
    scan.args(["-T", "60", "-t", "ed25519", "-p", &world.ssh_port().to_string(), "127.0.0.1"]);
    let told = scan.output().or_fail("run ssh-keyscan").stdout;
    let told = String::from_utf8(told).or_fail("read what ssh-keyscan says");
    told.trim().split_once(' ').or_fail("find a host key").1.to_owned()
}

#[tokio::test]
async fn instances_and_terminals_outlive_killed_programs() {
    let mut world = World::start().await;
    world.berth(&["create", "a1", "--wait"]).await.succeeded();
    let mut screen = Screen::attach(&world.client(), "a1", "main").await;
    screen.enter("x=kept; echo before-$((6*7))").await;
    screen.shows("before-42").await;
    let container = world.only_container();
    let process = engine::inspect(&container, ".State.Pid");
    let door = world.client().ssh_door().await.or_fail("ask for the SSH door");
    let key = host_key(&world);
    assert!(door.host_key.starts_with(&key), "{} is not {key}", door.host_key);

    world.kill_gateway();
    world.kill_envd();
    assert_eq!(engine::inspect(&container, ".State.Status"), "running");

    world.start_envd().await;
    world.start_gateway().await;
    wait_until_running(&world, "a1").await;
    assert_eq!(world.only_container(), container);
    assert_eq!(engine::inspect(&container, ".State.Pid"), process, "it is the same process");
    let listed = world.berth(&["ls"]).await.succeeded();
    assert!(listed.contains("a1"), "{listed}");
    assert_eq!(host_key(&world), key, "clients would warn of somebody in between");
    is_led_into(&world).await;

    let mut screen = Screen::attach(&world.client(), "a1", "main").await;
    screen.shows("before-42").await;
    screen.enter("echo $x-after").await;
    screen.shows("kept-after").await;
}

#[tokio::test]
async fn a_stop_of_the_programs_leaves_instances_running() {
    let mut world = World::start().await;
    world.berth(&["create", "a1", "--wait"]).await.succeeded();
    // Held open: it must not keep the gateway from ending.
    let mut screen = Screen::attach(&world.client(), "a1", "main").await;
    screen.enter("echo before-$((6*7))").await;
    screen.shows("before-42").await;
    let container = world.only_container();
    let process = engine::inspect(&container, ".State.Pid");
    assert!(world.stop_gateway().await.success());
    assert!(world.stop_envd().await.success());
    assert_eq!(engine::inspect(&container, ".State.Pid"), process);
    world.start_envd().await;
    world.start_gateway().await;
    wait_until_running(&world, "a1").await;
    assert_eq!(engine::inspect(&container, ".State.Pid"), process);
}

#[tokio::test]
async fn a_gateway_without_envd_still_leads_into_instances() {
    let mut world = World::start().await;
    world.berth(&["create", "a1", "--wait"]).await.succeeded();
    world.kill_envd();
    assert_eq!(world.berth(&["exec", "a1", "--", "echo", "here"]).await.succeeded(), "here\n");
    world.kill_gateway();
    world.start_gateway().await;
    is_led_into(&world).await;
}

#[tokio::test]
async fn an_acknowledged_create_is_carried_out_once() {
    let mut world = World::start().await;
    // The kill falls at once, and then when the engine has just got to know of the container.
    for (name, seen) in [("at_once", false), ("when_seen", true)] {
        world.client().create_instance(&wanted(name)).await.or_fail("create an instance");
        if seen {
            wait_until("there is a container", LIMIT, async || {
                (!world.containers().is_empty()).then_some(())
            })
            .await;
        }
        world.kill_envd();
        world.kill_gateway();
        world.start_envd().await;
        world.start_gateway().await;
        wait_until_running(&world, name).await;
        assert_eq!(world.berth(&["exec", name, "--", "echo", "up"]).await.succeeded(), "up\n");
        world.only_container();
        world.berth(&["rm", name, "--wait"]).await.succeeded();
        assert_eq!(world.containers(), [""; 0]);
    }
}

#[tokio::test]
async fn a_data_directory_has_one_gateway_and_one_envd() {
    let world = World::start().await;
    for (name, sentence) in [("gateway", "another gateway runs on"), ("envd", "another envd is using")] {
        let mut second = world.program(name);
        second.env("BERTH_HTTP", "127.0.0.1:0").stdin(Stdio::null());
        let second = tokio::process::Command::from(second).kill_on_drop(true).output();
        let output = tokio::time::timeout(LIMIT, second).await.or_fail("wait for a second one");
        let output = output.or_fail("start a second one");
        let said = String::from_utf8_lossy(&output.stderr);
        let directory = world.data().display().to_string();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(sentence) && said.contains(&directory), "{said}");
    }
    // The first ones did not notice.
    world.wait_for_cluster().await;
}
