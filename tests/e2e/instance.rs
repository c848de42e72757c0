//! The life of an instance, from the command line.

use std::path::PathBuf;

use gateway_api::{
    Status,
    client::{LogPart, ProcessEvent},
};
use tests::{IMAGE, LIMIT, OrFail as _, World, wait_until};

/// A file of the user's home as it lies on the machine's disk.
fn home(world: &World, file: &str) -> PathBuf {
    world.data().join("home/admin").join(file)
}

#[tokio::test]
async fn files_stay_when_an_instance_is_stopped_and_started() {
    let world = World::start().await;
    let created = world.berth(&["create", "a1", "--image", IMAGE, "--wait"]).await.succeeded();
    assert_eq!(created, "a1\n", "only data goes to standard output");
    let write = "echo hi > /userhome/x; echo kept > /opt/y";
    world.berth(&["exec", "a1", "--", "sh", "-c", write]).await.succeeded();

    world.berth(&["stop", "a1", "--wait"]).await.succeeded();
    let stopped = world.client().instance("a1").await.or_fail("show an instance");
    assert!(matches!(stopped.status, Status::Stopped { .. }), "{:?}", stopped.status);
    let (_, said) = world.berth(&["exec", "a1", "--", "true"]).await.ended(125);
    assert!(said.contains("stopped"), "{said}");

    world.berth(&["start", "a1", "--wait"]).await.succeeded();
    let read = world.berth(&["exec", "a1", "--", "cat", "/userhome/x", "/opt/y"]).await.succeeded();
    assert_eq!(read, "hi\nkept\n");
}

#[tokio::test]
async fn exec_is_like_running_it_here() {
    let world = World::start().await;
    world.berth(&["create", "a1", "--env", "FRUIT=two words", "--wait"]).await.succeeded();

    let script = "echo out; echo err >&2; exit 7";
    let ends = world.berth(&["exec", "a1", "--", "sh", "-c", script]).await.ended(7);
    assert_eq!(ends, ("out\n".to_owned(), "err\n".to_owned()));

    let input = "line\n".repeat(100_000);
    let piped = world.berth_with(&["exec", "a1", "--", "cat"], input.as_bytes()).await.succeeded();
    assert!(piped == input, "{} of {} bytes came back", piped.len(), input.len());

    let variables = ["exec", "--env", "MORE=1", "a1", "--", "sh", "-c", "echo $FRUIT $MORE"];
    assert_eq!(world.berth(&variables).await.succeeded(), "two words 1\n");

    // One that ends while there is still much to read.
    let input = "line\n".repeat(1_000_000);
    let first = ["exec", "a1", "--", "sh", "-c", "head -n 1; exit 7"];
    for _ in 0..5 {
        let (first, _) = world.berth_with(&first, input.as_bytes()).await.ended(7);
        assert_eq!(first, "line\n");
    }

    let (_, said) = world.berth(&["exec", "a1", "--", "no-such-program"]).await.ended(127);
    assert!(said.contains("no-such-program"), "{said}");
    world.berth(&["exec", "a1", "--", "sh", "-c", "kill -KILL $$"]).await.ended(137);
}

#[tokio::test]
async fn the_home_is_shared_and_outlives_its_instances() {
    let world = World::start().await;
    let (first, second) =
        tokio::join!(world.berth(&["create", "a1", "--wait"]), world.berth(&["create", "a2", "--wait"]));
    first.succeeded();
    second.succeeded();
    world.berth(&["exec", "a1", "--", "sh", "-c", "echo mine > /userhome/x"]).await.succeeded();
    assert_eq!(world.berth(&["exec", "a2", "--", "cat", "/userhome/x"]).await.succeeded(), "mine\n");

    assert_eq!(world.containers().len(), 2);
    world.berth(&["rm", "a1", "a2", "--wait"]).await.succeeded();
    assert_eq!(world.containers(), [""; 0]);
    assert_eq!(world.client().instances().await.or_fail("list instances"), []);
    assert_eq!(std::fs::read_to_string(home(&world, "x")).or_fail("read the home"), "mine\n");
}

#[tokio::test]
async fn a_command_runs_to_its_end() {
    let world = World::start().await;
    let client = world.client();
    let end_of = async |name: &str| {
        wait_until(&format!("`{name}` has ended"), LIMIT, async || {
            let status = client.instance(name).await.or_fail("show an instance").status;
            (!status.is_passing() && !matches!(status, Status::Running { .. })).then_some(status)
        })
        .await
    };
    let script = "echo the result; echo a warning >&2";
    world.berth(&["create", "good", "--", "sh", "-c", script]).await.succeeded();
    world.berth(&["create", "bad", "--", "sh", "-c", "echo before; exit 3"]).await.succeeded();
    assert_eq!(end_of("good").await, Status::Succeeded);
    let logs = world.berth(&["logs", "good"]).await.succeeded();
    assert!(logs.contains("the result\n") && logs.contains("a warning\n"), "{logs}");

    let status = end_of("bad").await;
    assert!(matches!(status, Status::Failed { exit_code: Some(3), .. }), "{status:?}");
    assert_eq!(world.berth(&["logs", "bad"]).await.succeeded(), "before\n");
    // Started again, it runs again.
    world.berth(&["start", "bad"]).await.succeeded();
    end_of("bad").await;
    let logs = world.berth(&["logs", "bad"]).await.succeeded();
    assert_eq!(logs, "before\nbefore\n");
}

#[tokio::test]
async fn logs_are_followed_until_the_command_ends() {
    let world = World::start().await;
    let script = "echo one; until [ -e /userhome/go ]; do sleep 0.1; done; echo two";
    world.berth(&["create", "a1", "--wait", "--", "sh", "-c", script]).await.succeeded();

    let watch_then_let_go = async {
        let mut shown = String::new();
        let mut output =
            world.client().follow_logs("a1", &LogPart::default()).await.or_fail("follow the logs").output;
        while let Some(event) = output.next().await {
            let ProcessEvent::Output { bytes, .. } = event.or_fail("read the logs") else { continue };
            shown += &String::from_utf8_lossy(&bytes);
            if shown == "one\n" {
                std::fs::write(home(&world, "go"), "").or_fail("write into the home");
            }
        }
        shown
    };
    let limited = tokio::time::timeout(LIMIT, watch_then_let_go);
    let (shown, command) = tokio::join!(limited, world.berth(&["logs", "-f", "a1"]));
    assert_eq!(shown.or_fail("hear the logs out"), "one\ntwo\n");
    assert_eq!(command.succeeded(), "one\ntwo\n");
    wait_until("it is told to have succeeded", LIMIT, async || {
        let instance = world.client().instance("a1").await.or_fail("show an instance");
        (instance.status == Status::Succeeded).then_some(())
    })
    .await;
}

#[tokio::test]
async fn mistakes_are_explained() {
    let world = World::start().await;
    world.berth(&["create", "taken", "--wait"]).await.succeeded();
    let check = async |arguments: &[&str], code: i32, expected: [&str; 2]| {
        let (data, said) = world.berth(arguments).await.ended(code);
        let [error, hint] = expected;
        let lines: Vec<_> = said.lines().collect();
        let has =
            |start: &str, text: &str| lines.iter().any(|line| line.starts_with(start) && line.contains(text));
        assert!(data.is_empty(), "{arguments:?} wrote to standard output: {data}");
        assert!(has("error:", error) && has("hint:", hint), "{arguments:?}: {said}");
    };
    check(&["create", "taken"], 1, ["already have an instance named `taken`", "choose another name"]).await;
    check(&["create", "a-b"], 1, ["`a-b` is not an instance name", "choose another name"]).await;
    let nothing = "localhost/berth/nothing:latest";
    check(&["create", "b1", "--image", nothing], 1, [nothing, "berth images"]).await;
    check(&["create", "b1", "--cpus", "10000"], 1, ["cpus: 10000 is more than any node has", "ask for less"])
        .await;
    check(&["create", "b1", "--memory", "1M"], 1, ["memory", "change that value"]).await;
    check(&["stop", "takn"], 1, ["takn", "taken"]).await;
    check(&["start", "taken"], 1, ["`taken` is running", "berth show taken"]).await;
    check(&["exec", "nobody", "--", "true"], 125, ["nobody", "berth ls"]).await;
    let instances = world.client().instances().await.or_fail("list instances");
    assert_eq!(instances.len(), 1, "a refused create leaves nothing behind");
}
