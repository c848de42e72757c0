//! An engine that hangs, talks nonsense or goes away: envd answers at once, says so, and goes on when it is back.

use std::{
    fs, io::Write, os::unix::fs::symlink, os::unix::net::UnixListener, path::Path, thread, time::Instant,
};

use envd_api::control::{EngineState, Failure, Observation};
use gateway_api::{Goal, InstanceId};

use crate::cluster::{Cluster, spec, start_of, wait_until};

const ENGINE: &str = "/var/run/docker.sock";
/// What an answer from memory may take on a busy machine.
const AT_ONCE_SECONDS: u64 = 2;

/// Takes connections and says `answer`, or nothing at all, and keeps them open. It ends with the test.
fn fake(path: &Path, answer: Option<&'static [u8]>) {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if let Some(answer) = answer {
                let _ = stream.write_all(answer);
            } else {
                open.push(stream);
            }
        }
    });
}

/// Points `link` to another engine, with no moment in between.
fn point(link: &Path, target: &Path) {
    let draft = link.with_extension("new");
    symlink(target, &draft).unwrap();
    fs::rename(&draft, link).unwrap();
}

async fn check(kind: &str, answer: Option<&'static [u8]>) {
    let sockets = tempfile::tempdir().unwrap();
    let (link, bad) = (sockets.path().join("docker.sock"), sockets.path().join("bad.sock"));
    point(&link, Path::new(ENGINE));
    fake(&bad, answer);
    let cluster = Cluster::down(Some(&format!("[envd]\ndocker = \"{}\"", link.display()))).up().await;
    let (old, new) = (InstanceId::new(), InstanceId::new());
    cluster.put(&old, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&old, 1).await;
    let start = start_of(&old);

    point(&link, &bad);
    wait_until("the engine is said to be away", async || {
        let began = Instant::now();
        let report = cluster.client.report().await.unwrap();
        assert!(began.elapsed().as_secs() < AT_ONCE_SECONDS, "{kind}: {:?}", began.elapsed());
        matches!(report.engine, EngineState::Unreachable { .. })
    })
    .await;
    let began = Instant::now();
    cluster.put(&new, 1, Goal::Running, &spec()).await;
    assert!(began.elapsed().as_secs() < AT_ONCE_SECONDS, "{kind}: a put is only noted");
    let observed = cluster
        .wait_for(&new, "said why", |observed| matches!(observed.observation, Observation::Failed { .. }))
        .await;
    let Observation::Failed { failure, retrying, message } = observed.observation else { unreachable!() };
    assert_eq!((failure, retrying), (Failure::EngineUnreachable, true), "{kind}: {message}");
    let known = cluster.client.report().await.unwrap().instances;
    let known = known.iter().find(|observed| observed.id == old).unwrap();
    assert!(
        matches!(known.observation, Observation::Running { .. }),
        "{kind}: the last that was seen: {known:?}"
    );
    let began = Instant::now();
    assert!(cluster.client.node().await.unwrap().cpus >= 1.0);
    assert!(began.elapsed().as_secs() < AT_ONCE_SECONDS, "{kind}");

    point(&link, Path::new(ENGINE));
    cluster.wait_for_running(&new, 1).await;
    cluster.wait_for_running(&old, 1).await;
    assert_eq!((start_of(&old), cluster.containers().len()), (start, 2), "{kind}");
}

#[tokio::test]
async fn an_engine_that_hangs() {
    check("hangs", None).await;
}

#[tokio::test]
async fn an_engine_that_does_not_speak_http() {
    check("garbage", Some(b"\x00\xffnot http at all\r\n\r\n")).await;
}

#[tokio::test]
async fn an_engine_whose_answers_make_no_sense() {
    check(
        "nonsense",
        Some(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{\"a\": [1,"),
    )
    .await;
}
