//! What a task writes is kept up to a limit: one that never stops must not fill the disk of everybody's store.

use tests::{LIMIT, Setup, World, wait_until};

/// Three times the limit.
const WRITES: &str = "i=0; while [ $i -lt 3072 ]; do printf '%01023d\\n' $i; i=$((i+1)); done";

#[tokio::test]
async fn a_log_ends_at_its_limit_and_says_so() {
    const MIB: usize = 1 << 20;
    let config = "[gateway.jobs]\nlog_limit_mib = 1\n".to_owned();
    let mut world = World::start_with(Setup { config, ..Setup::default() }).await;
    world.berth(&["submit", "--name", "flood", "--wait", "--", "sh", "-c", WRITES]).await.succeeded();
    let logs = wait_until("its output is kept", LIMIT, async || {
        let logs = world.berth(&["logs", "flood"]).await.succeeded();
        logs.contains("is not kept").then_some(logs)
    })
    .await;
    let (kept, line) = logs.split_at(MIB);
    assert!(kept.starts_with("000") && kept.ends_with("1023\n"), "{:?}", &kept[MIB - 40..]);
    let end = "\n[berth] the output is longer than 1 MiB; what comes after this line is not kept\n";
    assert_eq!(line, end);
    // Whoever goes on copying finds nothing more to say.
    world.kill_gateway();
    world.start_gateway().await;
    world.wait_for_cluster().await;
    let again = world.berth(&["logs", "flood"]).await.succeeded();
    assert_eq!(again, logs);
}
