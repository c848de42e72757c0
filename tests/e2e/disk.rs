//! A full disk: what needs room is refused in plain words, nothing is half made, and it passes with the shortage.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

use gateway_api::{Code, Goal, Status, instance::WaitReason};
use tests::{LIMIT, OrFail as _, Setup, SmallDisk, World, engine::PrivateEngine, wait_until_agreed, wanted};

const DISK_BYTES: u64 = 16 << 20;
/// Enough for an engine with a small image.
const ENGINE_DISK_BYTES: u64 = 128 << 20;

/// Waits until an instance says that it waits for room on a disk.
async fn waits_for_room(world: &World, name: &str) {
    wait_until_agreed(&format!("`{name}` says that there is no room"), LIMIT, async || {
        let status = world.client().instance(name).await.or_fail("show an instance").status;
        let says_so = matches!(
            &status, Status::Waiting { reason: WaitReason::Retrying, message } if message.contains("full")
        );
        if says_so { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    // And not only to programs. Between two tries it is on its way again for a moment.
    wait_until_agreed(&format!("`berth show {name}` says so too"), LIMIT, async || {
        let shown = world.berth(&["show", name]).await.succeeded();
        if shown.contains("full") { Ok(()) } else { Err(shown) }
    })
    .await;
}

async fn runs(world: &World, name: &str) {
    wait_until_agreed(&format!("`{name}` runs"), LIMIT, async || {
        let status = world.client().instance(name).await.or_fail("show an instance").status;
        if matches!(status, Status::Running { .. }) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_full_disk_refuses_and_leaves_nothing_half_made() {
    let world = World::start_with(Setup { disk_bytes: Some(DISK_BYTES), ..Setup::default() }).await;
    let client = world.client();
    world.berth(&["create", "before", "--wait"]).await.succeeded();

    world.disk().fill();
    assert_eq!(world.unwell().await.or_fail("ask how it is"), ["disk"]);
    let (_, said) = world.berth(&["create", "refused"]).await.ended(1);
    assert!(said.contains("disk is full"), "{said}");
    let refused = client.create_instance(&wanted("refused_too")).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::DiskFull), "{refused}");
    // An act is a write as well; the goal stays what it was.
    let refused = client.stop_instance("before").await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::DiskFull), "{refused}");

    // Reading needs no room, nor does using what is there.
    let instances = client.instances().await.or_fail("list instances");
    let [before] = &instances[..] else { panic!("{instances:?}") };
    assert_eq!(before.goal, Goal::Running);
    assert!(matches!(before.status, Status::Running { .. }), "{:?}", before.status);
    let doors = || std::fs::read_dir(world.data().join("door")).or_fail("look at the doors").count();
    assert_eq!((world.containers().len(), doors()), (1, 1));
    assert_eq!(world.berth(&["exec", "before", "--", "echo", "here"]).await.succeeded(), "here\n");

    world.disk().free();
    world.berth(&["create", "refused", "--wait"]).await.succeeded();
    world.berth(&["stop", "before", "--wait"]).await.succeeded();
    assert_eq!((world.containers().len(), doors()), (2, 2));
    world.berth(&["rm", "before", "refused", "--wait"]).await.succeeded();
    assert_eq!((world.containers().len(), doors()), (0, 0));
}

#[tokio::test]
async fn what_was_acknowledged_before_the_disk_was_full_is_carried_out_when_it_is_not() {
    let mut world = World::start_with(Setup { disk_bytes: Some(DISK_BYTES), ..Setup::default() }).await;
    // The goal is on disk, and envd has made nothing yet.
    world.kill_envd();
    world.client().create_instance(&wanted("a1")).await.or_fail("create an instance");
    world.disk().fill();
    world.start_envd().await;
    world.wait_for_cluster().await;
    let instance = world.client().instance("a1").await.or_fail("show an instance");
    assert!(!matches!(instance.status, Status::Running { .. }), "{:?}", instance.status);

    world.disk().free();
    runs(&world, "a1").await;
    world.only_container();
}

#[tokio::test]
async fn an_engine_without_room_makes_nothing_by_halves_and_goes_on_when_there_is() {
    let engine = PrivateEngine::start_on_disk(ENGINE_DISK_BYTES).await;
    let image = engine.import_busybox("tiny");
    let config = format!("[gateway]\ndefault_image = \"{image}\"\n");
    let world = World::start_with(Setup { config, engine: Some(engine.socket()), ..Setup::default() }).await;
    world.berth(&["create", "before", "--wait"]).await.succeeded();

    engine.disk().fill();
    world.client().create_instance(&wanted("late")).await.or_fail("create an instance");
    waits_for_room(&world, "late").await;
    // Who is inside is not disturbed, and sees the same.
    let (_, said) = world.berth(&["exec", "before", "--", "sh", "-c", "echo more > /more"]).await.ended(1);
    assert!(said.contains("No space left"), "{said}");

    engine.disk().free();
    runs(&world, "late").await;
    assert_eq!(engine.listed(&world.cluster()).len(), 2, "one for each");
    assert_eq!(world.berth(&["exec", "late", "--", "echo", "here"]).await.succeeded(), "here\n");
    world.berth(&["rm", "before", "late", "--wait"]).await.succeeded();
    assert_eq!(engine.listed(&world.cluster()).len(), 0);
}

#[tokio::test]
async fn a_full_storage_is_waited_for_and_nothing_is_left_in_it() {
    let directory = tempfile::tempdir().or_fail("make a directory");
    let root = directory.path().join("nas");
    let disk = SmallDisk::mount(root.clone(), DISK_BYTES);
    std::fs::set_permissions(&root, Permissions::from_mode(0o700)).or_fail("close a directory");
    let config = format!("[envd.storage.home]\nroot = \"{}\"\n", root.display());
    let world = World::start_with(Setup { config, ..Setup::default() }).await;

    disk.fill();
    world.client().create_instance(&wanted("late")).await.or_fail("create an instance");
    waits_for_room(&world, "late").await;
    // Checked between two attempts: one may be under way.
    wait_until_agreed("nothing is there but what fills it", LIMIT, async || {
        let made = std::fs::read_dir(&root).or_fail("look into a storage").count();
        let there = (made, world.containers().len());
        if there == (1, 0) { Ok(()) } else { Err(format!("{there:?}")) }
    })
    .await;

    disk.free();
    runs(&world, "late").await;
    let run = ["exec", "late", "--", "sh", "-c", "echo kept > /userhome/x; cat /userhome/x"];
    assert_eq!(world.berth(&run).await.succeeded(), "kept\n");
}
