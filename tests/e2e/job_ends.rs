//! When a job is over, and whether it is tried again: as the platform of its file had it.

use gateway_api::{Status, job::EndCause};
use tests::{IMAGE, LIMIT, OrFail as _, World, wait_until};

use super::jobs::{home, over, run, submit, v1};

/// Counts its runs, and lets the rest see the number.
fn counted(name: &str, then: &str) -> String {
    format!("echo run >> /userhome/{name}; n=$(wc -l < /userhome/{name}); {then}")
}

fn runs(world: &World, name: &str) -> usize {
    home(world, name).lines().count()
}

/// OpenPAI's second format, one task for each role.
fn v2(name: &str, more: &str, roles: &[(&str, &str)]) -> String {
    let role = |(name, command): &(&str, &str)| {
        let command = serde_json::to_string(command).or_fail("quote a command");
        format!(
            "  {name}:\n    dockerImage: image\n    resourcePerInstance: {{cpu: 1, memoryMB: 128}}\n    \
             commands: [{command}]\n"
        )
    };
    format!(
        "protocolVersion: 2\nname: {name}\ntype: job\n{more}\
         prerequisites: [{{type: dockerimage, name: image, uri: '{IMAGE}'}}]\ntaskRoles:\n{}",
        roles.iter().map(role).collect::<String>()
    )
}

#[tokio::test]
async fn one_role_that_succeeds_is_enough_for_the_second_format() {
    let world = World::start().await;
    let ended = run(&world, v2("enough", "", &[("quick", "true"), ("slow", "sleep 600")])).await;
    assert_eq!(ended.status, Status::Succeeded, "{:?}", ended.ended);
    assert_eq!(ended.tasks[1].end.as_ref().map(|end| end.cause), Some(EndCause::Stopped));
}

#[tokio::test]
async fn failures_that_nobody_counts_do_not_fail_the_job() {
    let world = World::start().await;
    let file = v1("lenient", "", "echo $PAI_TASK_INDEX >> /userhome/ran; exit $PAI_TASK_INDEX")
        .replace("\"taskNumber\": 1", "\"taskNumber\": 2, \"minFailedTaskCount\": null");
    let ended = run(&world, file).await;
    assert_eq!((ended.status, ended.attempt), (Status::Succeeded, 1));
    assert_eq!(ended.tasks[1].end.as_ref().and_then(|end| end.exit_code), Some(1));
    assert_eq!(runs(&world, "ran"), 2);
}

#[tokio::test]
async fn what_may_be_the_platforms_fault_is_tried_again_for_free_and_what_cannot_help_is_not() {
    let world = World::start().await;
    // Without a single retry of its own.
    let killed = counted("killed", "[ $n -ge 2 ] || kill -9 $$");
    let ended = run(&world, v1("killed", r#""retryCount": 0,"#, &killed)).await;
    assert_eq!((ended.status, ended.attempt), (Status::Succeeded, 2), "{:?}", ended.ended);
    let ended = run(&world, v1("broken", r#""retryCount": 5,"#, &counted("broken", "exit 141"))).await;
    let end = ended.ended.or_fail("see how it ended");
    assert_eq!((end.exit_code, ended.attempt, runs(&world, "broken")), (Some(141), 1, 1), "{end:?}");
}

#[tokio::test]
async fn a_job_is_tried_again_without_end_where_its_file_says_so() {
    let world = World::start().await;
    // −1: after any failure, also one that another try does not help as a rule.
    let command = counted("any", "[ $n -ge 3 ] || exit 141");
    let ended = run(&world, v2("any", "jobRetryCount: -1\n", &[("main", &command)])).await;
    assert_eq!((ended.status, ended.attempt), (Status::Succeeded, 3), "{:?}", ended.ended);
    // −2: after success too, until it is stopped.
    let service =
        submit(&world, v2("service", "jobRetryCount: -2\n", &[("main", &counted("service", "true"))]));
    let service = service.await;
    wait_until("it has run again", LIMIT, async || (runs(&world, "service") >= 2).then_some(())).await;
    world.berth(&["stop", "service"]).await.succeeded();
    let ended = over(&world, &service).await.ended.or_fail("see how it ended");
    assert_eq!(ended.cause, EndCause::Stopped);
}
