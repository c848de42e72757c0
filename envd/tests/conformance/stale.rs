//! A store that is older than the cluster: a backup was restored.

use envd_api::{
    client::{ClientError, EnvdClient},
    control::{Observation, PutInstance, Stale},
};
use gateway_api::{Goal, InstanceId};

use crate::cluster::{Cluster, spec, start_of, wait_until};

async fn refused(client: &EnvdClient, id: &InstanceId, generation: u64, goal: Goal) -> Option<Stale> {
    match client.put(id, &PutInstance { generation, goal, spec: spec(), login: None }).await {
        Ok(()) => None,
        Err(ClientError::Refused { status, stale, .. }) => {
            assert_eq!(status.as_u16(), 409);
            stale
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn goals_of_a_restored_store_change_nothing() {
    let mut cluster = Cluster::new().await;
    let (running, stopped) = (InstanceId::new(), InstanceId::new());
    for (id, generation) in [(&running, 5), (&stopped, 4)] {
        cluster.put(id, generation, Goal::Running, &spec()).await;
        cluster.wait_for_running(id, generation).await;
    }
    cluster.put(&stopped, 5, Goal::Stopped, &spec()).await;
    cluster.wait_for_exit(&stopped, 5).await;
    let starts = (start_of(&running), start_of(&stopped));

    // The gateway of the restored store, first with the envd that saw it all, then with one that knows the record only.
    let restored = EnvdClient::new(cluster.data.path().join("envd.sock"));
    for restarted in [false, true] {
        if restarted {
            cluster.kill_and_start().await;
            wait_until("both are seen", async || restored.orphans().await.unwrap().instances.len() == 2)
                .await;
        }
        for goal in [Goal::Deleted, Goal::Stopped, Goal::Running] {
            let stale = refused(&restored, &running, 2, goal).await;
            assert_eq!(stale, Some(Stale { known: 5, running: Some(true) }), "{goal:?}");
            let stale = refused(&restored, &stopped, 2, goal).await;
            let known = if restarted { 4 } else { 5 };
            assert_eq!(stale, Some(Stale { known, running: Some(false) }), "{goal:?}");
        }
        assert_eq!((start_of(&running), start_of(&stopped)), starts);
    }

    // It takes over what is on record, and nothing moves.
    assert_eq!(refused(&restored, &running, 5, Goal::Running).await, None);
    assert_eq!(refused(&restored, &stopped, 4, Goal::Stopped).await, None);
    cluster.wait_for_running(&running, 5).await;
    cluster.wait_for_exit(&stopped, 4).await;
    assert_eq!((start_of(&running), start_of(&stopped)), starts);
    assert_eq!(cluster.containers().len(), 2);
    // The next act counts.
    assert_eq!(refused(&restored, &running, 6, Goal::Deleted).await, None);
    cluster.wait_for_absent(&running, 6).await;
}

#[tokio::test]
async fn containers_that_the_store_does_not_know_are_listed_and_left() {
    let (mut cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    let image = cluster.wait_for_running(&id, 1).await.image_id;
    let start = start_of(&id);
    assert_eq!(cluster.client.orphans().await.unwrap().instances.len(), 0);
    cluster.kill_and_start().await;
    wait_until("it is listed", async || !cluster.client.orphans().await.unwrap().instances.is_empty()).await;
    let orphans = cluster.client.orphans().await.unwrap().instances;
    let [orphan] = &orphans[..] else { panic!("{orphans:?}") };
    assert_eq!((&orphan.id, &orphan.image_id, orphan.user.as_deref()), (&id, &image, Some("alice")));
    assert!(matches!(orphan.observation, Observation::Running { .. }));
    assert_eq!(start_of(&id), start);
}
