//! A store from yesterday: what was made since is left alone, and what it knows obeys again.

use std::{collections::BTreeSet, fs, path::Path};

use gateway_api::{InstanceId, Status};
use tests::{
    LIMIT, OrFail as _, World,
    engine::{self, SignedIn},
    wait_until_agreed,
};

use crate::saving::{Site, gone, saved};

/// Copies the store's files and no others; those that were there are gone afterwards.
fn copy_store(from: &Path, to: &Path) {
    let is_store = |name: &str| name.starts_with("store.db");
    let names = |directory: &Path| -> Vec<String> {
        let entries = fs::read_dir(directory).or_fail("look into a directory");
        let names = entries.map(|entry| entry.or_fail("look into a directory").file_name());
        names.map(|name| name.to_string_lossy().into_owned()).filter(|name| is_store(name)).collect()
    };
    for name in names(to) {
        fs::remove_file(to.join(name)).or_fail("remove a file");
    }
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).or_fail("copy a file");
    }
}

#[tokio::test]
async fn an_older_store_deletes_nothing_and_its_instances_obey() {
    let mut world = World::start().await;
    let kept = tempfile::tempdir().or_fail("make a directory");
    world.berth(&["create", "old", "--wait"]).await.succeeded();
    let old = world.only_container();
    assert!(world.stop_gateway().await.success());
    copy_store(world.data(), kept.path());
    world.start_gateway().await;

    // What the kept store does not know: an instance, and acts on one that it knows.
    world.berth(&["create", "new", "--wait"]).await.succeeded();
    let new = world.containers().into_iter().find(|name| *name != old).or_fail("find a container");
    let new_id = world.client().instance("new").await.or_fail("show an instance").id;
    world.berth(&["stop", "old", "--wait"]).await.succeeded();
    world.berth(&["start", "old", "--wait"]).await.succeeded();
    let process = engine::inspect(&new, ".State.Pid");

    assert!(world.stop_gateway().await.success());
    copy_store(kept.path(), world.data());
    world.start_gateway().await;
    world.wait_for_cluster().await;
    wait_until_agreed("`old` runs", LIMIT, async || {
        let instances = world.client().instances().await.or_fail("list instances");
        match &instances[..] {
            [only] if only.name.as_str() == "old" && matches!(only.status, Status::Running { .. }) => Ok(()),
            others => Err(format!("{others:?}")),
        }
    })
    .await;
    wait_until_agreed("`new` is listed as unknown", LIMIT, async || {
        let nodes = world.client().nodes().await.or_fail("list nodes");
        let unknown: Vec<_> = nodes.iter().flat_map(|node| &node.unknown).map(InstanceId::as_str).collect();
        if unknown == [new_id.as_str()] { Ok(()) } else { Err(format!("{unknown:?}")) }
    })
    .await;
    // What it takes is not there for others, though nobody here knows why.
    let memory = |container: &str| -> u64 {
        engine::inspect(container, ".HostConfig.Memory").parse().or_fail("read a number")
    };
    let taken = memory(&old) + memory(&new);
    wait_until_agreed("what both take is held", LIMIT, async || {
        let cluster = world.client().cluster().await.or_fail("look at the cluster");
        let held: u64 = cluster.nodes.iter().map(|node| node.memory_held_bytes).sum();
        if held == taken { Ok(()) } else { Err(format!("{held} of {taken} bytes")) }
    })
    .await;
    let (_, said) = world.berth(&["nodes"]).await.ended(0);
    assert!(said.contains(new_id.as_str()), "{said}");
    assert_eq!(world.berth(&["exec", "old", "--", "echo", "here"]).await.succeeded(), "here\n");
    world.berth(&["stop", "old", "--wait"]).await.succeeded();
    assert_eq!(engine::inspect(&old, ".State.Status"), "exited");
    world.berth(&["rm", "old", "--wait"]).await.succeeded();
    assert_eq!(world.only_container(), new, "nobody asked for its end");
    assert_eq!(engine::inspect(&new, ".State.Pid"), process);
}

#[tokio::test]
async fn images_and_logs_that_an_older_store_does_not_know_stay_until_an_admin_says_so() {
    let mut site = Site::start().await;
    let kept = tempfile::tempdir().or_fail("make a directory");
    let gc = async |site: &Site, more: &[&str]| {
        let all: Vec<_> = ["image", "gc", "--older-than", "0s"].iter().chain(more).copied().collect();
        site.world.berth(&all).await.succeeded()
    };
    let logs = |site: &Site| -> BTreeSet<_> {
        let files = fs::read_dir(site.world.data().join("logs/tasks")).or_fail("look into a directory");
        files.map(|file| file.or_fail("look into a directory").file_name()).collect()
    };
    let image = site.base.reference().to_owned();
    let job = ["submit", "-m", "128M", "--image", &image, "-f", "--", "echo", "said"];
    site.instance("train").await;
    // The same bytes are in the image that comes after the backup. Nobody writes them again.
    site.exec("train", "echo 1 > /kept").await;
    let first = site.save(&["train", "1"]).await;
    site.world.berth(&["image", "rm", "train:1"]).await.succeeded();
    gone(&site.world.client(), &first).await;
    assert!(site.world.stop_gateway().await.success());
    copy_store(site.world.data(), kept.path());
    site.world.start_gateway().await;

    let second = site.save(&["train", "2"]).await;
    site.world.berth(&job).await.succeeded();
    let before = logs(&site);
    assert!(!before.is_empty(), "the job has a log");

    assert!(site.world.stop_gateway().await.success());
    copy_store(kept.path(), site.world.data());
    site.world.start_gateway().await;
    site.world.wait_for_cluster().await;
    // Once this one's log is there, those that nobody needs are gone.
    site.world.berth(&job).await.succeeded();
    assert!(logs(&site).is_superset(&before), "{before:?} {:?}", logs(&site));
    gc(&site, &[]).await;
    let owner = SignedIn::to_registry(&site.registry).await;
    let saved = saved(&second);
    let name = format!("admin/{}@{}", saved.name, saved.digest.as_deref().or_fail("find a digest"));
    engine::docker(&["rmi", "--force", &owner.reference(&format!("admin/{}:{}", saved.name, saved.tag))]);
    owner.pull(&name).await.succeeded();
    gc(&site, &["--unknown"]).await;
    owner.pull(&name).await.ended(1);
}
