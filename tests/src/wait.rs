//! Waiting for something to become so.

use std::time::{Duration, Instant};

/// Far longer than anything takes, for a machine that is busy with other tests.
pub const LIMIT: Duration = Duration::from_mins(1);

const PAUSE: Duration = Duration::from_millis(50);

/// Asks `look` until it finds something, and fails the test when it has not within `limit`.
///
/// `what` is the sentence that the reader of a failure gets, such as "the instance runs".
pub async fn wait_until<T>(what: &str, limit: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < limit, "not within {} s: {what}", limit.as_secs());
        tokio::time::sleep(PAUSE).await;
    }
}

/// Asks `look` until it agrees, and fails the test with its last objection when it has not within `limit`.
pub async fn wait_until_agreed<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(objection) => {
                assert!(begun.elapsed() < limit, "not within {} s: {what}\n{objection}", limit.as_secs());
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
