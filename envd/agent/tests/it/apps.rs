//! Apps: what becomes of them, whoever asks and however often.
//!
//! The app here is a small one that does as its folder says, under a name that the agent looks for. The real ones are
//! started by the smoke tests of the images.

use std::{fs, io::Read as _, net::TcpStream, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use envd_api::agent::{
    APP_LOG_MAX, AppAct, AppCall, AppReport, AppSource, AppState, Call, Received, Refusal, read_message,
};
use rustix::process::{Pid, Signal};

use crate::world::{World, soon, spec};

/// Serves on the port that it is told, in the folder that it is told, unless a file there says otherwise.
const TENSORBOARD: &str = r#"#!/usr/bin/env python3
import http.server, os, signal, socket, sys
flags = dict(argument[2:].split("=", 1) for argument in sys.argv[1:])
os.chdir(flags["logdir"])
print("pid", os.getpid(), flush=True)
if os.path.exists("flood"):
    sys.stdout.write(("y" * 79 + "\n") * 20000)
    sys.stdout.flush()
if os.path.exists("die"):
    print("no such module: 张量", file=sys.stderr, flush=True)
    sys.exit(3)
if os.path.exists("silent"):
    print("busy with something else", flush=True)
    signal.pause()
if os.path.exists("mute"):
    listener = socket.create_server((flags["host"], int(flags["port"])))
    signal.pause()
http.server.HTTPServer((flags["host"], int(flags["port"])), http.server.SimpleHTTPRequestHandler).serve_forever()
"#;

/// And the folder of the program, which is gone with what holds it.
async fn world() -> (World, tempfile::TempDir) {
    world_with(&[]).await
}

/// The same with variables of the instance.
async fn world_with(variables: &[(&str, &str)]) -> (World, tempfile::TempDir) {
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("tensorboard");
    fs::write(&program, TENSORBOARD).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = spec(&[]);
    spec.env.insert("PATH".to_owned(), format!("{}:/usr/local/bin:/usr/bin:/bin", programs.path().display()));
    spec.env.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    (World::linked(&spec).await, programs)
}

fn call(act: AppAct, folder: Option<&str>) -> AppCall {
    let folder = folder.map(str::to_owned);
    AppCall { app: "tensorboard".to_owned(), act, prefix: "/".to_owned(), folder }
}

async fn report(world: &mut World, call: AppCall) -> AppReport {
    let (mut stream, received) = world.ask(Call::App(call)).await;
    assert!(matches!(received, Received::Stream), "{received:?}");
    let report = soon("the report", read_message(&mut stream)).await.unwrap();
    let mut rest = [0; 1];
    let closed = soon("the end", tokio::io::AsyncReadExt::read(&mut stream, &mut rest)).await.unwrap();
    assert_eq!(closed, 0);
    report
}

async fn becomes(world: &mut World, state: AppState, folder: Option<&str>) -> AppReport {
    loop {
        let report = report(world, call(AppAct::Look, folder)).await;
        if report.state == state {
            return report;
        }
        assert!([AppState::Starting, AppState::Ready].contains(&report.state), "{report:?}");
        soon("a while", tokio::time::sleep(Duration::from_millis(20))).await;
    }
}

fn pid(report: &AppReport) -> Pid {
    let number = report.log.lines().find_map(|line| line.strip_prefix("pid ")).unwrap();
    Pid::from_raw(number.parse().unwrap()).unwrap()
}

fn serves(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok_and(|mut stream| {
        std::io::Write::write_all(&mut stream, b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).is_ok() && text.starts_with("HTTP/1.0 200")
    })
}

fn is_gone(pid: Pid) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn an_app_starts_once_and_outlives_the_gateway() {
    let (mut world, _programs) = world().await;
    let looked = report(&mut world, call(AppAct::Look, None)).await;
    assert_eq!((looked.state, looked.source), (AppState::Stopped, Some(AppSource::Image)));

    let started = report(&mut world, call(AppAct::Start, None)).await;
    assert_eq!(started.state, AppState::Starting, "{started:?}");
    report(&mut world, call(AppAct::Start, None)).await;
    let ready = becomes(&mut world, AppState::Ready, None).await;
    let steps: Vec<_> = ready.steps.iter().map(|step| (step.step.as_str(), step.done)).collect();
    assert_eq!(steps, [("find", true), ("start", true), ("answer", true)]);
    let port = ready.port.unwrap();
    assert!(serves(port));

    world.vanish();
    fs::remove_file(world.socket()).unwrap();
    world.listen();
    world.wait_for_link().await;
    let again = report(&mut world, call(AppAct::Start, None)).await;
    assert_eq!((again.state, again.port), (AppState::Ready, Some(port)));
    assert!(serves(port));

    let stopped = report(&mut world, call(AppAct::Stop, None)).await;
    assert_eq!((stopped.state, stopped.port), (AppState::Stopped, None));
    crate::world::until("its end", || is_gone(pid(&ready))).await;
    let stopped = report(&mut world, call(AppAct::Stop, None)).await;
    assert_eq!(stopped.state, AppState::Stopped);
}

#[tokio::test]
async fn one_that_dies_says_how_and_starts_anew() {
    let (mut world, _programs) = world().await;
    let home = world.directory.path().to_owned();
    fs::write(home.join("die"), "").unwrap();
    report(&mut world, call(AppAct::Start, None)).await;
    let failed = becomes(&mut world, AppState::Failed, None).await;
    let problem = failed.problem.unwrap();
    assert_eq!(
        (problem.code.as_str(), problem.message.as_str()),
        ("ended", "TensorBoard ended with exit code 3")
    );
    assert!(failed.log.ends_with("no such module: 张量\n"), "{}", failed.log);
    assert!(!failed.steps.last().unwrap().done);

    fs::remove_file(home.join("die")).unwrap();
    report(&mut world, call(AppAct::Start, None)).await;
    let ready = becomes(&mut world, AppState::Ready, None).await;
    assert!(ready.problem.is_none() && !ready.log.contains("no such module"), "{ready:?}");

    rustix::process::kill_process(pid(&ready), Signal::KILL).unwrap();
    let failed = becomes(&mut world, AppState::Failed, None).await;
    let problem = failed.problem.unwrap();
    assert_eq!(problem.message, "TensorBoard ended by signal KILL");
    assert!(problem.hint.contains("memory"), "{}", problem.hint);
}

#[tokio::test]
async fn one_that_listens_on_nothing_is_ended_and_says_so() {
    never_answers("silent", "start").await;
}

#[tokio::test]
async fn one_that_listens_without_a_word_is_ended_and_says_so() {
    never_answers("mute", "answer").await;
}

async fn never_answers(how: &str, last_step: &str) {
    let (mut world, _programs) = world_with(&[("BERTH_APP_START_SECONDS", "5")]).await;
    fs::write(world.directory.path().join(how), "").unwrap();
    report(&mut world, call(AppAct::Start, None)).await;
    let failed = becomes(&mut world, AppState::Failed, None).await;
    let problem = failed.problem.as_ref().unwrap();
    assert_eq!(
        (problem.code.as_str(), problem.message.as_str()),
        ("no_answer", "TensorBoard did not answer within 5 seconds"),
    );
    let step = failed.steps.last().unwrap();
    assert_eq!((step.step.as_str(), step.done, failed.port), (last_step, false, None));
    crate::world::until("its end", || is_gone(pid(&failed))).await;
}

#[tokio::test]
async fn only_the_last_of_a_flood_is_kept() {
    let (mut world, _programs) = world().await;
    fs::write(world.directory.path().join("flood"), "").unwrap();
    report(&mut world, call(AppAct::Start, None)).await;
    let ready = becomes(&mut world, AppState::Ready, None).await;
    assert!(ready.log.len() <= APP_LOG_MAX && ready.log.len() > APP_LOG_MAX / 2, "{}", ready.log.len());
    assert!(ready.log.contains(&"y".repeat(79)) && !ready.log.contains("pid "));
    report(&mut world, call(AppAct::Stop, None)).await;
    crate::world::until("its end", || !serves(ready.port.unwrap())).await;
}

#[tokio::test]
async fn another_folder_is_another_app() {
    let (mut world, _programs) = world().await;
    let home = world.directory.path().to_owned();
    fs::create_dir(home.join("runs")).unwrap();
    report(&mut world, call(AppAct::Start, Some("runs"))).await;
    let first = becomes(&mut world, AppState::Ready, Some("runs")).await;
    assert_eq!(report(&mut world, call(AppAct::Look, None)).await.state, AppState::Ready);
    assert_eq!(report(&mut world, call(AppAct::Look, Some("~"))).await.state, AppState::Stopped);
    let mut elsewhere = call(AppAct::Look, None);
    elsewhere.prefix = "/alice/train/tensorboard/".to_owned();
    assert_eq!(report(&mut world, elsewhere).await.state, AppState::Stopped);

    report(&mut world, call(AppAct::Start, Some("~"))).await;
    let second = becomes(&mut world, AppState::Ready, Some("~")).await;
    assert_ne!(first.port, second.port);
    crate::world::until("the first one's end", || is_gone(pid(&first))).await;

    report(&mut world, call(AppAct::Start, Some("nowhere"))).await;
    let failed = becomes(&mut world, AppState::Failed, Some("nowhere")).await;
    assert_eq!(failed.problem.unwrap().code, "no_folder");
    crate::world::until("the second one's end", || is_gone(pid(&second))).await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let (mut world, _programs) = world().await;
    for (app, prefix, folder, about) in [
        ("paint", "/", None, "`paint`"),
        ("lab", "", None, "prefix"),
        ("lab", "lab/", None, "prefix"),
        ("lab", "/a b/", None, "prefix"),
        ("lab", "/a\r\nX: y/", None, "prefix"),
        ("tensorboard", "/", Some("a\0b"), "folder"),
    ] {
        let (app, prefix, folder) = (app.to_owned(), prefix.to_owned(), folder.map(str::to_owned));
        let call = AppCall { app, act: AppAct::Start, prefix, folder };
        let (refusal, message) = world.refused(Call::App(call)).await;
        assert_eq!(refusal, Refusal::Other);
        assert!(message.contains(about), "{message}");
    }
}
