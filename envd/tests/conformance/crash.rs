//! `kill -9` of envd loses nothing, starts nothing twice and leaves nothing behind.

use std::{
    env, fs,
    io::Write,
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use envd_api::control::{EngineState, Failure, Observation};
use gateway_api::{Goal, InstanceId};
use tokio::time::sleep;

use crate::cluster::{Cluster, spec, spec_with_command, start_of, wait_until};

fn cluster_home(cluster: &Cluster) -> PathBuf {
    cluster.data.path().join("home/alice")
}

#[tokio::test]
async fn a_new_envd_finds_what_an_earlier_one_started() {
    let (mut cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    let start = start_of(&id);
    cluster.kill_and_start().await;
    cluster
        .wait_for(&id, "found by its label", |observed| {
            observed.generation.is_none() && matches!(observed.observation, Observation::Running { .. })
        })
        .await;
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    assert_eq!(start_of(&id), start, "it has been running all the while");
}

#[tokio::test]
async fn a_command_that_has_ended_stays_ended() {
    let (mut cluster, id) = (Cluster::new().await, InstanceId::new());
    let spec = spec_with_command("echo ran >>/userhome/runs; exit 3");
    let home = cluster_home(&cluster);
    let runs = || fs::read_to_string(home.join("runs")).unwrap().lines().count();
    cluster.put(&id, 1, Goal::Running, &spec).await;
    let exited = cluster.wait_for_exit(&id, 1).await;
    assert_eq!(exited.observation, Observation::Exited { exit_code: 3, out_of_memory: false });
    assert_eq!(runs(), 1);
    cluster.kill_and_start().await;
    cluster.put(&id, 1, Goal::Running, &spec).await;
    cluster.wait_for_exit(&id, 1).await;
    assert_eq!(runs(), 1, "the same generation is the same run");
    cluster.put(&id, 2, Goal::Running, &spec).await;
    cluster.wait_for_exit(&id, 2).await;
    assert_eq!(runs(), 2, "a new generation is a new run");
}

/// Pauses between a goal and a kill of envd, for `make test-long`.
const PAUSES_MS: [u64; 9] = [0, 2, 5, 10, 20, 40, 80, 160, 320];

/// The first kill comes when the engine has made the container. `BERTH_LAUNCH_KILLS` adds kills after other pauses.
#[tokio::test]
async fn killed_at_any_moment_of_a_launch_it_ends_with_one_container_and_one_run() {
    let kills =
        env::var("BERTH_LAUNCH_KILLS").map_or(1, |text| text.parse().expect("read BERTH_LAUNCH_KILLS"));
    let mut cluster = Cluster::new().await;
    let ids: Vec<_> = (0..kills).map(|_| InstanceId::new()).collect();
    let line = |id: &InstanceId| format!("echo {id} >>/userhome/runs; exit 5");
    for (kill, id) in ids.iter().enumerate() {
        cluster.put(id, 1, Goal::Running, &spec_with_command(&line(id))).await;
        if kill == 0 {
            wait_until("the container is made", async || !cluster.containers().is_empty()).await;
        } else {
            // The pause is what is tried: another moment each time.
            sleep(Duration::from_millis(PAUSES_MS[(kill - 1) % PAUSES_MS.len()])).await;
        }
        cluster.kill_and_start().await;
    }
    for id in &ids {
        cluster.put(id, 1, Goal::Running, &spec_with_command(&line(id))).await;
    }
    for id in &ids {
        cluster.wait_for_exit(id, 1).await;
    }
    assert_eq!(cluster.containers().len(), ids.len());
    let mut runs: Vec<_> =
        fs::read_to_string(cluster_home(&cluster).join("runs")).unwrap().lines().map(str::to_owned).collect();
    runs.sort_unstable();
    let wanted: Vec<_> = ids.iter().map(InstanceId::to_string).collect();
    assert_eq!(runs, wanted, "each ran once");
    for id in &ids {
        cluster.put(id, 2, Goal::Deleted, &spec()).await;
    }
    cluster.kill_and_start().await;
    for id in &ids {
        cluster.put(id, 2, Goal::Deleted, &spec()).await;
    }
    for id in &ids {
        cluster.wait_for_absent(id, 2).await;
    }
    assert_eq!(cluster.containers().len(), 0);
    assert_eq!(fs::read_dir(cluster.data.path().join("door")).unwrap().count(), 0);
    wait_until("no network is left", async || cluster.networks().is_empty()).await;
}

/// A small disk over a directory, gone with the test.
#[derive(Default)]
struct SmallDisk(Option<PathBuf>);

impl SmallDisk {
    fn mount(&mut self, path: PathBuf) {
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=32m", "tmpfs"]).arg(&path).status();
        assert!(mount.unwrap().success());
        self.0 = Some(path);
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let _ = Command::new("umount").arg("--lazy").arg(&path).status();
            let _ = fs::remove_dir(&path);
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_said_and_passes() {
    // Dropped after the cluster, which has its files there.
    let mut disk = SmallDisk::default();
    let cluster = Cluster::down(None);
    disk.mount(cluster.data.path().to_owned());
    let (cluster, id) = (cluster.up().await, InstanceId::new());
    let ballast = cluster.data.path().join("ballast");
    {
        let mut file = fs::File::create(&ballast).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    let observed = cluster
        .wait_for(&id, "refused", |observed| matches!(observed.observation, Observation::Failed { .. }))
        .await;
    let Observation::Failed { failure, retrying, message } = observed.observation else { unreachable!() };
    assert_eq!((failure, retrying), (Failure::DiskFull, true), "{message}");
    fs::remove_file(&ballast).unwrap();
    cluster.wait_for_running(&id, 1).await;
    assert_eq!(cluster.containers().len(), 1);
}

#[tokio::test]
async fn a_second_envd_on_the_same_data_refuses() {
    let cluster = Cluster::new().await;
    let second = cluster.command().stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && said.contains("another envd is using"), "{said}");
    cluster.client.report().await.unwrap();
}

#[tokio::test]
async fn without_an_engine_it_answers_and_goes_on_when_the_engine_is_there() {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("docker.sock");
    let mut cluster = Cluster::down(Some(&format!("[envd]\ndocker = \"{}\"", socket.display())));
    cluster.start().await;
    let id = InstanceId::new();
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    let observed = cluster
        .wait_for(&id, "failed", |observed| matches!(observed.observation, Observation::Failed { .. }))
        .await;
    let Observation::Failed { failure, retrying, .. } = observed.observation else { unreachable!() };
    assert_eq!((failure, retrying), (Failure::EngineUnreachable, true));
    assert!(matches!(cluster.client.report().await.unwrap().engine, EngineState::Unreachable { .. }));
    assert!(cluster.client.node().await.unwrap().cpus >= 1.0);

    symlink("/var/run/docker.sock", &socket).unwrap();
    cluster.wait_for_running(&id, 1).await;
}
