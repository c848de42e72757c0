//! What users read of errors.

use envd_api::control::{FindImage, Finding, InstanceSpec, Observation};
use gateway_api::{Goal, InstanceId};

use crate::cluster::{Cluster, spec};

#[tokio::test]
async fn errors_name_no_address_inside_the_site() {
    let cluster = Cluster::down(Some("[envd]\nregistry = \"127.0.0.1:1\"")).up().await;
    let id = InstanceId::new();
    let spec = InstanceSpec { image: "127.0.0.1:1/alice/train:1".to_owned(), ..spec() };
    cluster.put(&id, 1, Goal::Running, &spec).await;
    let observed = cluster
        .wait_for(&id, "refused", |observed| matches!(observed.observation, Observation::Failed { .. }))
        .await;
    let Observation::Failed { message, .. } = observed.observation else { unreachable!() };
    assert!(message.starts_with("cannot download `alice/train:1`: "), "{message}");
    assert!(message.contains("connection refused") && !message.contains("127.0.0.1"), "{message}");
    assert!(cluster.log().contains("dial tcp 127.0.0.1:1: "), "the operator finds it in the log");

    // Whichever name server says so.
    let find = FindImage { reference: "no-such-registry.invalid/team/image:1".to_owned(), login: None };
    let Finding::NoAnswer { registry, why } = cluster.client.find_image(&find).await.unwrap() else {
        panic!("such a registry is there");
    };
    assert_eq!(registry, "no-such-registry.invalid");
    let servers = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    for server in servers.lines().filter_map(|line| line.strip_prefix("nameserver ")) {
        assert!(!why.contains(server.trim()), "{why}");
    }
    assert!(why.contains("lookup no-such-registry.invalid"), "{why}");
}
