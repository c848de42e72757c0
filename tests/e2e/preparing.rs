//! The API and `berth doctor` say what `make up` still prepares, from the file that its script keeps.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use gateway_api::{
    Code,
    error::Reason,
    preparing::{
        PreparingState::{self, Done, Failed, Waiting, Working},
        PreparingStep, PreparingWhat,
    },
};
use reqwest::{Method, StatusCode};
use tests::{LIMIT, OrFail as _, Setup, World, engine::PrivateEngine, raw_http, wait_until_agreed, wanted};

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
        step(PreparingWhat::Base, Working, Some(70)),
        step(PreparingWhat::Tools, Waiting, Some(670)),
        step(PreparingWhat::Lab, Done, None),
        step(PreparingWhat::Desktop, Failed, None),
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

/// Stands in for `images/build.sh`: the test decides through a pipe when the build of an image ends, and how.
const BUILD: &str = r#"#!/bin/sh
if [ "$1" = --is-current ]; then
  test -e "$GATE/$2.done"
else
  read -r word <"$GATE/$1"
  test "$word" = ok && touch "$GATE/$1.done"
fi
"#;

/// A copy of `prepare.sh` beside stand-ins for the builds, which take minutes.
struct Script<'a> {
    folder: tempfile::TempDir,
    world: &'a World,
}

impl<'a> Script<'a> {
    fn new(world: &'a World) -> Self {
        let folder = tempfile::tempdir().or_fail("make a folder");
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("deploy").join("up");
        let done = Command::new("sh")
            .current_dir(folder.path())
            .args([
                "-euc",
                r#"mkdir -p deploy/up images gate
                cp "$1/prepare.sh" "$1/step.sh" deploy/up
                printf %s "$2" >images/build.sh
                printf '#!/bin/sh\n' >deploy/up/tools.sh
                chmod 755 images/build.sh deploy/up/tools.sh
                cd gate
                mkfifo base tools lab desktop"#,
                "sh",
            ])
            .args([&scripts, Path::new(BUILD)])
            .status();
        assert!(done.or_fail("run a shell").success());
        Self { folder, world }
    }

    fn command(&self, mode: &str) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(self.folder.path().join("deploy/up/prepare.sh"));
        let status = self.world.data().join("run/preparing.json");
        std::fs::create_dir_all(status.with_file_name("")).or_fail("make a folder");
        command.args([mode, &status.display().to_string(), &std::process::id().to_string()]);
        command.arg(self.folder.path().join("log")).kill_on_drop(true).stderr(Stdio::piped());
        for name in ["BERTH_CACHE", "BERTH_TOOLS"] {
            command.env(name, self.folder.path().join(name));
        }
        command.env("GATE", self.folder.path().join("gate"));
        command
    }

    async fn plan(&self) {
        assert!(self.command("plan").status().await.or_fail("run prepare.sh").success());
    }

    /// Ends the build that runs. Opening the pipe waits for it to begin.
    async fn build_ends(&self, name: &str, word: &str) {
        let pipe = self.folder.path().join("gate").join(name);
        tokio::time::timeout(LIMIT, tokio::fs::write(pipe, format!("{word}\n")))
            .await
            .or_fail("wait for the build")
            .or_fail("end the build");
    }

    async fn shows(&self, expected: &[PreparingState]) {
        wait_until_agreed("the steps", LIMIT, async || {
            let states: Vec<_> = steps(self.world).await.iter().map(|step| step.state).collect();
            if states == expected { Ok(()) } else { Err(format!("{states:?}")) }
        })
        .await;
    }
}

#[tokio::test]
async fn preparation_goes_on_after_a_failure_and_ends_when_all_is_there() {
    let engine = PrivateEngine::start().await;
    let world = World::start_with(Setup { engine: Some(engine.socket()), ..Setup::default() }).await;
    let script = Script::new(&world);
    script.plan().await;
    script.shows(&[Waiting; 4]).await;
    let created = world.client().create_instance(&wanted("early")).await;
    let refused = created.err().or_fail("be refused: its image is not there yet").to_string();
    assert!(refused.contains(Reason::ImageBeingPrepared.sentence()), "{refused}");

    let running = script.command("run").spawn().or_fail("run prepare.sh");
    script.shows(&[Working, Waiting, Waiting, Waiting]).await;
    script.build_ends("base", "ok").await;
    script.shows(&[Done, Working, Waiting, Waiting]).await;
    script.build_ends("tools", "broken").await;
    script.shows(&[Done, Failed, Working, Waiting]).await;
    script.build_ends("lab", "ok").await;
    script.build_ends("desktop", "ok").await;
    let ended = running.wait_with_output().await.or_fail("wait for prepare.sh");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("== [2/4] VS Code and the tools volume"), "{said}");
    assert!(said.contains("cannot prepare VS Code and the tools volume"), "{said}");
    script.shows(&[Done, Failed, Done, Done]).await;

    // The next `make up` prepares what failed, and nothing else.
    script.plan().await;
    script.shows(&[Done, Waiting, Done, Done]).await;
    let running = script.command("run").spawn().or_fail("run prepare.sh");
    script.build_ends("tools", "ok").await;
    let ended = running.wait_with_output().await.or_fail("wait for prepare.sh");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    script.shows(&[]).await;

    // A file that a killed `make up` has left is gone with the next plan.
    put(&world, &of_process(std::process::id()));
    script.plan().await;
    script.shows(&[]).await;
}
