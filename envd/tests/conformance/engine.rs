//! An engine that hangs, talks nonsense or goes away: envd answers at once, says so, and goes on when it is back.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    os::unix::{
        fs::symlink,
        net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use envd_api::control::{EngineState, Failure, Observation};
use gateway_api::{Goal, InstanceId};

use crate::cluster::{Cluster, spec, start_of, wait_until};

const ENGINE: &str = "/var/run/docker.sock";

/// An engine that says `answer`, or nothing at all. It ends with the test.
struct Fake {
    hangs: bool,
    /// Connections without an answer.
    open: Arc<Mutex<Vec<UnixStream>>>,
}

impl Fake {
    fn at(path: &Path, answer: Option<&'static [u8]>) -> Self {
        let (listener, open) = (UnixListener::bind(path).unwrap(), Arc::default());
        let fake = Self { hangs: answer.is_none(), open: Arc::clone(&open) };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if let Some(answer) = answer {
                    let _ = stream.write_all(answer);
                } else {
                    stream.set_nonblocking(true).unwrap();
                    open.lock().unwrap().push(stream);
                }
            }
        });
        fake
    }

    /// Asks envd for something from memory. If the engine hangs, one request to it is pending before and after the answer,
    /// so envd did not wait for the engine.
    async fn asked_beside<T>(&self, what: &str, mut ask: impl AsyncFnMut() -> T) -> T {
        let mut answer = None;
        wait_until(what, async || {
            let hung = self.hung();
            answer = Some(ask().await);
            !self.hangs || hung.into_iter().any(|mut stream| is_open(&mut stream))
        })
        .await;
        answer.unwrap()
    }

    /// Returns the requests that are pending.
    fn hung(&self) -> Vec<UnixStream> {
        let mut open = self.open.lock().unwrap();
        open.retain_mut(is_open);
        open.iter().map(|stream| stream.try_clone().unwrap()).collect()
    }
}

/// Returns `true` until the other side gives up.
fn is_open(stream: &mut UnixStream) -> bool {
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
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
    let fake = Fake::at(&bad, answer);
    let cluster = Cluster::down(Some(&format!("[envd]\ndocker = \"{}\"", link.display()))).up().await;
    let (old, new) = (InstanceId::new(), InstanceId::new());
    cluster.put(&old, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&old, 1).await;
    let start = start_of(&old);

    point(&link, &bad);
    fake.asked_beside("a report", async || cluster.client.report().await.unwrap()).await;
    wait_until("the engine is said to be away", async || {
        matches!(cluster.client.report().await.unwrap().engine, EngineState::Unreachable { .. })
    })
    .await;
    // A put only stores the goal.
    fake.asked_beside("a put", async || cluster.put(&new, 1, Goal::Running, &spec()).await).await;
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
    let node = fake.asked_beside("a node", async || cluster.client.node().await.unwrap()).await;
    assert!(node.cpus >= 1.0);

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
