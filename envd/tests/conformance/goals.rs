//! Goals and what comes of them.

use std::fs;

use bytes::Bytes;
use envd_api::{client::ClientError, control::Observation};
use gateway_api::{
    Goal, InstanceId,
    stream::{STDERR, STDOUT},
};

use crate::cluster::{Cluster, all, docker, inspect, name, spec, spec_with_command, start_of, wait_until};

#[tokio::test]
async fn asking_twice_is_asking_once() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    assert!(cluster.door(&id).join("link").is_dir(), "the door is there as soon as the put is answered");
    cluster.wait_for_running(&id, 1).await;
    let start = start_of(&id);
    for _ in 0..3 {
        cluster.put(&id, 1, Goal::Running, &spec()).await;
    }
    cluster.wait_for_running(&id, 1).await;
    assert_eq!((start_of(&id), cluster.containers().len()), (start, 1));
}

#[tokio::test]
async fn stopping_and_deleting_the_absent_is_fine() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Stopped, &spec()).await;
    cluster.wait_for_absent(&id, 1).await;
    cluster.put(&id, 2, Goal::Deleted, &spec()).await;
    cluster.wait_for_absent(&id, 2).await;
    assert_eq!(cluster.containers().len(), 0);
}

#[tokio::test]
async fn a_stop_keeps_the_files_and_a_start_finds_them() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    docker(&["exec", &name(&id), "sh", "-c", "echo kept >/opt/y; echo home >/userhome/x"]);
    cluster.put(&id, 2, Goal::Stopped, &spec()).await;
    cluster.wait_for_exit(&id, 2).await;
    cluster.put(&id, 3, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 3).await;
    assert_eq!(docker(&["exec", &name(&id), "cat", "/opt/y", "/userhome/x"]), "kept\nhome\n");
}

#[tokio::test]
async fn a_new_generation_is_a_restart_of_the_same_container() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    let (container, start) = (inspect(&id, "{{.Id}}"), start_of(&id));
    cluster.put(&id, 2, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 2).await;
    assert_eq!(inspect(&id, "{{.Id}}"), container);
    assert_ne!(start_of(&id), start);
}

#[tokio::test]
async fn a_deleted_instance_leaves_its_home_and_nothing_else() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    let home = cluster.data.path().join("home/alice");
    fs::write(home.join("thesis"), b"years").unwrap();
    cluster.put(&id, 2, Goal::Deleted, &spec()).await;
    cluster.wait_for_absent(&id, 2).await;
    assert_eq!((cluster.containers().len(), cluster.door(&id).exists()), (0, false));
    assert_eq!(fs::read(home.join("thesis")).unwrap(), b"years");
}

#[tokio::test]
async fn an_instance_that_ends_by_itself_is_started_again() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    let start = start_of(&id);
    docker(&["kill", &name(&id)]);
    cluster
        .wait_for(&id, "started again", |observed| {
            matches!(observed.observation, Observation::Running { .. }) && start_of(&id) != start
        })
        .await;
}

#[tokio::test]
async fn a_container_that_nobody_asked_for_is_reported_and_left() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    let labels = [format!("--label={}", cluster.label()), format!("--label=berth.instance={id}")];
    let container = name(&id);
    docker(&["create", "--name", &container, &labels[0], &labels[1], "localhost/berth/base:latest", "sh"]);
    // A creation is no event that matters; being started and ending is.
    docker(&["start", &container]);
    cluster
        .wait_for(&id, "reported", |observed| {
            observed.generation.is_none() && matches!(observed.observation, Observation::Exited { .. })
        })
        .await;
    assert_eq!(inspect(&id, "{{.State.Status}}"), "exited");
    docker(&["rm", &container]);
    wait_until("it is gone from the report", async || {
        cluster.client.report().await.unwrap().instances.is_empty()
    })
    .await;
}

#[tokio::test]
async fn logs_keep_streams_apart_and_end_with_the_container() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    let absent = all(cluster.client.logs(&id, None, None, false)).await;
    assert!(
        matches!(&absent[..], [Err(ClientError::Refused { status, .. })] if status.as_u16() == 404),
        "{absent:?}"
    );

    let put = spec_with_command("echo one; echo two >&2; printf 'thr\\377ee\\n'; exit 3");
    cluster.put(&id, 1, Goal::Running, &put).await;
    let exited = cluster.wait_for_exit(&id, 1).await;
    assert_eq!(exited.observation, Observation::Exited { exit_code: 3, out_of_memory: false });
    let stream = |records: &[Result<(u8, Bytes), ClientError>], wanted: u8| -> Vec<u8> {
        let records = records.iter().map(|record| record.as_ref().unwrap());
        records.filter(|(stream, _)| *stream == wanted).flat_map(|(_, bytes)| bytes.to_vec()).collect()
    };
    for follow in [false, true] {
        let records = all(cluster.client.logs(&id, None, None, follow)).await;
        assert_eq!(stream(&records, STDOUT), b"one\nthr\xffee\n");
        assert_eq!(stream(&records, STDERR), b"two\n");
    }
    // The engine reads the two streams at its own pace, so the last line may be of either.
    assert_eq!(all(cluster.client.logs(&id, Some(1), None, false)).await.len(), 1);
}
