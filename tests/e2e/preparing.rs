//! The API and `berth doctor` say what `make up` still prepares, from the file that it keeps.

use std::process::Command;

use gateway_api::{
    Code,
    preparing::{PreparingState, PreparingStep, PreparingWhat},
};
use reqwest::{Method, StatusCode};
use tests::{OrFail as _, World, raw_http};

/// Steps that begin after this test has ended, so that no time passes for them.
const STEPS: &str = r#"[
    {"what":"base","state":"working","started_at":"2999-01-01T00:00:00Z","expected_seconds":70},
    {"what":"tools","state":"waiting","expected_seconds":600},
    {"what":"lab","state":"done"},
    {"what":"desktop","state":"failed"}]"#;

/// Puts the file there as `make up` does, by rename.
fn put(world: &World, text: &str) {
    let folder = world.data().join("run");
    std::fs::create_dir_all(&folder).or_fail("make a folder");
    let new = folder.join("preparing.json.new");
    std::fs::write(&new, text).or_fail("write the file");
    std::fs::rename(new, folder.join("preparing.json")).or_fail("rename the file");
}

fn of_process(pid: u32) -> String {
    format!(r#"{{"pid": {pid}, "steps": {STEPS}}}"#)
}

async fn steps(world: &World) -> Vec<PreparingStep> {
    world.client().preparing().await.or_fail("list what is being prepared")
}

/// The number of a process that has ended.
fn ended() -> u32 {
    let mut child = Command::new("true").spawn().or_fail("run a program");
    child.wait().or_fail("wait for it");
    child.id()
}

#[tokio::test]
async fn the_api_lists_what_is_being_prepared() {
    let world = World::start().await;
    assert_eq!(steps(&world).await, [], "there is no file");

    put(&world, &of_process(std::process::id()));
    let step = |what, state, seconds_left| PreparingStep { what, state, seconds_left };
    let expected = [
        step(PreparingWhat::Base, PreparingState::Working, Some(70)),
        step(PreparingWhat::Tools, PreparingState::Waiting, Some(670)),
        step(PreparingWhat::Lab, PreparingState::Done, None),
        step(PreparingWhat::Desktop, PreparingState::Failed, None),
    ];
    assert_eq!(steps(&world).await, expected);
    let person = world.person("alice").await;
    assert_eq!(person.preparing().await.or_fail("ask as an ordinary user"), expected);
    let url = format!("{}/api/v1/site/preparing", world.console());
    let (status, problem, _) = raw_http(Method::GET, &url, &[]).await;
    assert_eq!(
        (status, problem.map(|problem| problem.code)),
        (StatusCode::UNAUTHORIZED, Some(Code::Unauthenticated))
    );

    let said = world.berth(&["doctor"]).await.stdout;
    assert!(said.contains("warn  preparation: ") && said.contains("about 11 minutes left"), "{said}");
    let said = world.berth_in_chinese(&["doctor"]).await.stdout;
    assert!(said.contains("准备工作：") && said.contains("约剩 11 分钟"), "{said}");

    put(&world, &of_process(ended()));
    assert_eq!(steps(&world).await, [], "`make up` was killed");
    for nonsense in ["", "{", r#"{"pid": 1, "steps": "all"}"#] {
        put(&world, nonsense);
        assert_eq!(steps(&world).await, [], "{nonsense}");
    }
    put(&world, &of_process(std::process::id()));
    assert_eq!(steps(&world).await, expected);
    std::fs::remove_file(world.data().join("run/preparing.json")).or_fail("remove the file");
    assert_eq!(steps(&world).await, [], "all is done");
    let said = world.berth(&["doctor"]).await.stdout;
    assert!(!said.contains("preparation"), "{said}");
}
