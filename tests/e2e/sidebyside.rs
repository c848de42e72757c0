//! Two Berths on one engine: neither sees, or touches, what belongs to the other.

use gateway_api::Status;
use tests::{OrFail as _, World, engine};

#[tokio::test]
async fn two_worlds_leave_each_other_alone() {
    let (mut one, two) = tokio::join!(World::start(), World::start());
    // The same name in both, which is what people do.
    let (first, second) =
        tokio::join!(one.berth(&["create", "a1", "--wait"]), two.berth(&["create", "a1", "--wait"]));
    first.succeeded();
    second.succeeded();
    assert_ne!(one.only_container(), two.only_container());
    let process = engine::inspect(&two.only_container(), ".State.Pid");

    // A starting envd looks at what is there and removes what should not be.
    one.kill_envd();
    one.start_envd().await;
    one.wait_for_cluster().await;
    one.berth(&["rm", "a1", "--wait"]).await.succeeded();
    assert_eq!(one.containers(), [""; 0]);

    assert_eq!(engine::inspect(&two.only_container(), ".State.Pid"), process);
    let instances = two.client().instances().await.or_fail("list instances");
    assert!(
        matches!(instances[..], [ref only] if matches!(only.status, Status::Running { .. })),
        "{instances:?}"
    );
    assert_eq!(two.berth(&["exec", "a1", "--", "echo", "here"]).await.succeeded(), "here\n");
}
