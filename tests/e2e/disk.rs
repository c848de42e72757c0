//! A full disk: what needs room is refused in plain words, nothing is half made, and it passes with the shortage.

use gateway_api::{Code, Goal, Status};
use tests::{LIMIT, OrFail as _, Setup, World, wait_until, wanted};

const DISK_BYTES: u64 = 16 << 20;

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
    wait_until("`a1` runs", LIMIT, async || {
        let instance = world.client().instance("a1").await.or_fail("show an instance");
        matches!(instance.status, Status::Running { .. }).then_some(())
    })
    .await;
    world.only_container();
}
