//! Which kinds of things have changed: told by `SQLite` itself, so that no writer can forget to tell.
//!
//! Each connection notes the tables that its transaction writes to; with the commit they become news. Tables without
//! row numbers tell nothing, but none of them changes without one that does: quotas and members with their line in the
//! audit log, cards with reservations, events of jobs with their job.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use sqlx::sqlite::{LockedSqliteHandle, SqliteConnection};
use tokio::sync::Notify;

use super::{Store, StoreError};

/// A kind of things that views show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// Instances, jobs, and what they hold.
    Work,
    Images,
    /// Users, groups, workspaces, quotas.
    People,
    /// Announcements and rules.
    Notices,
    Site,
    Audit,
    /// SSH keys, tokens, secrets.
    Keys,
}

impl Topic {
    /// The word as it stands in events.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Images => "images",
            Self::People => "people",
            Self::Notices => "notices",
            Self::Site => "site",
            Self::Audit => "audit",
            Self::Keys => "keys",
        }
    }

    /// What is shown of a table. Sessions are nobody's view.
    fn of(table: &str) -> &'static [Self] {
        match table {
            "instances" | "jobs" | "tasks" | "reservations" => &[Self::Work],
            "images" => &[Self::Images],
            "users" | "groups" | "workspaces" => &[Self::People],
            "announcements" | "rules" => &[Self::Notices],
            "site" => &[Self::Site],
            "audit" => &[Self::Audit, Self::People],
            "ssh_keys" | "tokens" | "secrets" => &[Self::Keys],
            _ => &[],
        }
    }
}

/// What has changed since somebody asked last. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    topics: Mutex<BTreeSet<Topic>>,
    more: Notify,
}

impl Changes {
    /// From now on tells of what `connection` commits.
    pub(super) async fn watch(self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        self.hook(&mut connection.lock_handle().await?);
        Ok(())
    }

    fn hook(self, handle: &mut LockedSqliteHandle<'_>) {
        let begun = Arc::new(Mutex::new(BTreeSet::new()));
        let (written, undone) = (Arc::clone(&begun), Arc::clone(&begun));
        handle.set_update_hook(move |update| lock(&written).extend(Topic::of(update.table)));
        handle.set_rollback_hook(move || lock(&undone).clear());
        handle.set_commit_hook(move || {
            let mut begun = lock(&begun);
            if !begun.is_empty() {
                lock(&self.0.topics).append(&mut begun);
                self.0.more.notify_one();
            }
            true
        });
    }
}

fn lock(topics: &Mutex<BTreeSet<Topic>>) -> std::sync::MutexGuard<'_, BTreeSet<Topic>> {
    topics.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Waits until something has changed, and says what. For one reader.
    pub(crate) async fn changed(&self) -> Result<BTreeSet<Topic>, StoreError> {
        loop {
            self.changes.0.more.notified().await;
            // Commits are told of just before they are done: once it is this one's turn to write, they are.
            drop((self.writer.acquire().await?, self.reports.acquire().await?));
            let topics = std::mem::take(&mut *lock(&self.changes.0.topics));
            if !topics.is_empty() {
                return Ok(topics);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Line;

    #[tokio::test]
    async fn what_is_committed_is_told_and_what_is_undone_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).await.unwrap();
        store.audit(&Line::by_system("test", "begun")).await.unwrap();
        store.changed().await.unwrap();

        let mut change = store.change().await.unwrap();
        sqlx::query("insert into site values (1, '', 1, 1)").execute(&mut *change).await.unwrap();
        drop(change);
        store.audit(&Line::by_system("test", "done")).await.unwrap();
        let told = store.changed().await.unwrap();
        assert_eq!(told.into_iter().collect::<Vec<_>>(), [Topic::People, Topic::Audit]);
    }
}
