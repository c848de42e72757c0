//! The agent's own life: its command, its end, its link, its orphans.

use std::os::unix::process::ExitStatusExt as _;

use envd_api::agent::Call;
use rustix::process::Signal;

use crate::world::{World, exec, spec, until};

#[tokio::test]
async fn the_command_decides_the_exit_code_with_or_without_a_gateway() {
    let check = async |command: &[&str], code: i32, stdout: &str, stderr: &str| {
        let (status, out, err) = World::start(&spec(command)).end().await;
        assert_eq!((status.code(), out.as_str(), err.as_str()), (Some(code), stdout, stderr), "{command:?}");
    };
    check(&["sh", "-c", "echo $IMAGE; exit 7"], 7, "from the image\n", "").await;
    check(&["sh", "-c", "kill -9 $$"], 137, "", "").await;
    check(&["no-such-tool"], 127, "", "berth: `no-such-tool` is not in this image\n").await;
}

#[tokio::test]
async fn signals_are_passed_on_to_the_command() {
    let mut world =
        World::linked(&spec(&["sh", "-c", "trap 'exit 9' USR1; while :; do sleep 0.05; done"])).await;
    // Its trap is set once it sleeps.
    until("the command's loop", || {
        let children = format!("/proc/{0}/task/{0}/children", world.agent.id());
        let command = std::fs::read_to_string(children).unwrap_or_default();
        let children = format!("/proc/{0}/task/{0}/children", command.trim());
        std::fs::read_to_string(children).is_ok_and(|children| !children.is_empty())
    })
    .await;
    world.signal(Signal::USR1);
    assert_eq!(world.end().await.0.code(), Some(9));
}

#[tokio::test]
async fn without_a_command_it_stays_until_told_and_ends_everything() {
    let mut world = World::linked(&spec(&[])).await;
    let mark = world.directory.path().join("ended");
    let script =
        format!("trap 'echo > {}; exit' TERM; echo ready; while :; do sleep 0.05; done", mark.display());
    let mut process = world.process(Call::Exec(exec(&["sh", "-c", &script]))).await;
    process.shows("ready").await;
    world.signal(Signal::TERM);
    let (status, ..) = world.end().await;
    assert_eq!((status.code(), status.signal()), (Some(0), None));
    assert!(mark.exists());
}

#[tokio::test]
async fn it_links_again_when_the_gateway_returns() {
    let mut world = World::linked(&spec(&[])).await;
    // Also after it has returned before.
    for _ in 0..3 {
        world.vanish();
        std::fs::remove_file(world.socket()).unwrap();
        world.listen();
        world.wait_for_link().await;
        assert_eq!(world.run(&["echo", "still here"]).await.stdout, "still here\n");
    }
}

#[tokio::test]
async fn a_broken_link_is_made_anew_after_nonsense() {
    let mut world = World::linked(&spec(&[])).await;
    world.say_nonsense().await;
    world.wait_for_link().await;
    assert_eq!(world.run(&["echo", "fine"]).await.stdout, "fine\n");
}

#[tokio::test]
async fn orphans_are_reaped() {
    let mut world = World::linked(&spec(&[])).await;
    let outcome = world.run(&["sh", "-c", "i=0; while [ $i -lt 300 ]; do (true &); i=$((i+1)); done"]).await;
    assert_eq!(outcome.exit, Some(process_api::Exit::Code(0)));
    let children = format!("/proc/{0}/task/{0}/children", world.agent.id());
    until("the last orphan", || std::fs::read_to_string(&children).unwrap().trim().is_empty()).await;
}
