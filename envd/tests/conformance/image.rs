//! What a name meant when an instance was made stays what the instance runs.

use envd_api::control::{Failure, InstanceSpec, Observation};
use gateway_api::{Goal, InstanceId};

use crate::cluster::{Cluster, docker, inspect, name, spec};

const BASE: &str = "localhost/berth/base:latest";

fn id_of(image: &str) -> String {
    docker(&["image", "inspect", "-f", "{{.Id}}", image]).trim().to_owned()
}

/// A name of our own for an image, gone with the test.
struct Tag(String);

impl Tag {
    fn new(id: &InstanceId) -> Self {
        let tag = Self(format!("localhost/berth/moving:{}", id.as_str().replace('_', "-")));
        docker(&["tag", BASE, &tag.0]);
        tag
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        docker(&["rmi", "-f", &self.0]);
    }
}

#[tokio::test]
async fn a_tag_that_moves_changes_nothing_for_an_instance() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    let tag = Tag::new(&id);
    let (first, spec) = (id_of(&tag.0), InstanceSpec { image: tag.0.clone(), ..spec() });
    cluster.put(&id, 1, Goal::Running, &spec).await;
    let observed = cluster.wait_for_running(&id, 1).await;
    assert_eq!(observed.image_id.as_ref(), Some(&first));
    assert_eq!(inspect(&id, "{{.Config.Image}}"), first, "by id and not by name");

    let changed = docker(&["commit", "--message", "moved", &name(&id), &tag.0]);
    assert_ne!(changed.trim(), first);
    cluster.put(&id, 2, Goal::Running, &spec).await;
    assert_eq!(cluster.wait_for_running(&id, 2).await.image_id.as_ref(), Some(&first), "a restart");
    // Also when somebody removes the container: the one in its place is of the same content.
    docker(&["rm", "-fv", &name(&id)]);
    cluster.put(&id, 3, Goal::Running, &spec).await;
    assert_eq!(cluster.wait_for_running(&id, 3).await.image_id.as_ref(), Some(&first), "made again");

    let other = InstanceId::new();
    cluster.put(&other, 1, Goal::Running, &spec).await;
    assert_eq!(cluster.wait_for_running(&other, 1).await.image_id.as_deref(), Some(changed.trim()));
}

#[tokio::test]
async fn only_registries_of_the_sites_choice_are_asked() {
    let cluster = Cluster::down(Some("[envd]\nregistries = [\"docker.io\"]")).up().await;
    let id = InstanceId::new();
    let spec = InstanceSpec { image: "registry.example.org/team/image:1".to_owned(), ..spec() };
    cluster.put(&id, 1, Goal::Running, &spec).await;
    let observed = cluster
        .wait_for(&id, "refused", |observed| matches!(observed.observation, Observation::Failed { .. }))
        .await;
    let Observation::Failed { failure, message, retrying } = observed.observation else { unreachable!() };
    assert_eq!((failure, retrying), (Failure::Refused, false));
    assert_eq!(message, "images from `registry.example.org` are not allowed here; use one from `docker.io`");

    let own = InstanceId::new();
    cluster.put(&own, 1, Goal::Running, &InstanceSpec { image: BASE.to_owned(), ..spec }).await;
    cluster.wait_for_running(&own, 1).await;
}
