//! What an instance is not given, and what is refused.

use std::collections::BTreeMap;

use envd_api::{
    client::ClientError,
    control::{EngineState, Failure, InstanceSpec, Observation, PutInstance, StorageMount},
};
use gateway_api::{Goal, InstanceId};

use crate::cluster::{Cluster, docker, inspect, name, spec};

#[tokio::test]
async fn a_container_has_limits_and_no_more_rights_than_it_needs() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    let host = |field: &str| inspect(&id, &format!("{{{{json .HostConfig.{field}}}}}"));
    let expected = [
        ("NanoCpus", "500000000"),
        ("Memory", "268435456"),
        ("MemorySwap", "268435456"),
        ("ShmSize", "67108864"),
        ("PidsLimit", "4096"),
        ("Privileged", "false"),
        ("CapAdd", "null"),
        ("CapDrop", r#"["MKNOD","NET_RAW"]"#),
        ("SecurityOpt", r#"["no-new-privileges"]"#),
        ("PidMode", r#""""#),
        ("NetworkMode", r#""default""#),
        ("PortBindings", "null"),
        ("Binds", "null"),
    ];
    for (field, value) in expected {
        assert_eq!(host(field), value, "{field}");
    }
    let mounts = inspect(&id, "{{range .Mounts}}{{.Destination}} {{.RW}}\n{{end}}");
    let mut mounts: Vec<_> = mounts.lines().collect();
    mounts.sort_unstable();
    assert_eq!(mounts, ["/.berth/agent false", "/.berth/door false", "/userhome true"]);
    let environment = inspect(&id, "{{json .Config.Env}}");
    assert!(!environment.contains("COLOUR"), "the user's variables are the agent's affair: {environment}");
    let inside = docker(&["exec", &name(&id), "sh", "-c", "grep NoNewPrivs /proc/1/status; hostname"]);
    assert_eq!(inside, "NoNewPrivs:\t1\nbox\n");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let cluster = Cluster::new().await;
    let id = "d202ce692b9ed202ce692b9ed202ce692b9ed202ce692b9ed202ce692b9ed202";
    let cases = [
        (
            InstanceSpec { image: "localhost/berth/nothing".to_owned(), ..spec() },
            Failure::ImageNotFound,
            "nothing",
        ),
        (InstanceSpec { image: format!("sha256:{id}"), ..spec() }, Failure::BadImage, "not accepted"),
        (InstanceSpec { image: id.to_owned(), ..spec() }, Failure::BadImage, "not accepted"),
        (InstanceSpec { image: "No Image".to_owned(), ..spec() }, Failure::BadImage, "No Image"),
        (InstanceSpec { gpus: 1, ..spec() }, Failure::Refused, "no GPUs"),
        (InstanceSpec { cpus: 1e4, ..spec() }, Failure::Refused, "CPUs"),
        (InstanceSpec { cpus: f64::MAX, ..spec() }, Failure::Refused, "processors"),
    ];
    for (spec, wanted, words) in cases {
        let id = InstanceId::new();
        cluster.put(&id, 1, Goal::Running, &spec).await;
        let observed = cluster
            .wait_for(&id, words, |observed| matches!(observed.observation, Observation::Failed { .. }))
            .await;
        let Observation::Failed { failure, message, retrying } = observed.observation else { unreachable!() };
        assert_eq!((failure, retrying), (wanted, false), "{message}");
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(cluster.containers().len(), 0);
}

#[tokio::test]
async fn stale_and_malformed_goals_are_refused() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    let refused = async |generation: u64, spec: InstanceSpec| {
        let put = PutInstance { generation, goal: Goal::Stopped, spec };
        match cluster.client.put(&id, &put).await {
            Err(ClientError::Refused { status, .. }) => Some(status.as_u16()),
            other => other.map(|()| None).unwrap(),
        }
    };
    assert_eq!(refused(5, spec()).await, None);
    assert_eq!(refused(4, spec()).await, Some(409));
    assert_eq!(refused(5, spec()).await, None);
    let mount = |storage: &str, key: &str| StorageMount { storage: storage.to_owned(), key: key.to_owned() };
    for mounts in [
        vec![mount("home", "../../etc")],
        vec![mount("home", "a/b")],
        vec![mount("home", "..")],
        vec![mount("disk", "alice")],
        vec![mount("home", "alice"), mount("home", "bob")],
    ] {
        assert_eq!(refused(6, InstanceSpec { mounts, ..spec() }).await, Some(422));
    }
    assert_eq!(refused(6, InstanceSpec { hostname: "a b".to_owned(), ..spec() }).await, Some(422));
    let large = BTreeMap::from([("X".to_owned(), "x".repeat(2 << 20))]);
    assert_eq!(refused(6, InstanceSpec { env: large, ..spec() }).await, Some(413));
}

#[tokio::test]
async fn the_machine_and_its_images_are_told() {
    let cluster = Cluster::new().await;
    let node = cluster.client.node().await.unwrap();
    assert!(node.cpus >= 1.0 && node.memory_bytes > 1 << 28 && !node.name.is_empty(), "{node:?}");
    assert_eq!((node.gpus, node.engine), (0, EngineState::Ready));
    let images = cluster.client.images().await.unwrap();
    let references: Vec<_> = images.iter().map(|image| image.reference.as_str()).collect();
    assert!(references.contains(&"localhost/berth/base:latest"), "{references:?}");
    assert!(
        references.iter().all(|reference| !reference.contains("<none>") && !reference.contains("debian"))
    );
}
