//! The table of times of which this store has no memory.
//!
//! A store that was put back from a backup does not know what was made since the backup, and cannot tell it from what
//! was deleted. So each opening writes down the time since the last line of the audit log: nothing goes by itself for
//! want of a row that was made in such a time. Where nothing but a restart came to pass, nothing was made in it either.

use envd_api::save::Span;
use sqlx::Row as _;

use super::{Store, StoreError, now, time};

impl Store {
    /// To be called before anything is written.
    pub(super) async fn note_unknown_time(&self) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let last: Option<i64> = sqlx::query_scalar("select at from audit order by id desc limit 1")
            .fetch_optional(&mut *change)
            .await?;
        let (last, now) = (last.unwrap_or(0), now());
        // One that nothing came after goes on.
        let longer = sqlx::query("update unknown_times set until = max(until, ?2) where until >= ?1")
            .bind(last)
            .bind(now)
            .execute(&mut *change)
            .await?;
        if longer.rows_affected() == 0 && last < now {
            sqlx::query("insert into unknown_times (since, until) values (?, ?)")
                .bind(last)
                .bind(now)
                .execute(&mut *change)
                .await?;
        }
        change.commit().await
    }

    pub(crate) async fn unknown_times(&self) -> Result<Vec<Span>, StoreError> {
        let rows = sqlx::query("select since, until from unknown_times").fetch_all(&self.pool).await?;
        let span = |row: &sqlx::sqlite::SqliteRow| {
            Ok(Span { since: time(row.try_get("since")?)?, until: time(row.try_get("until")?)? })
        };
        rows.iter().map(span).collect()
    }
}

#[cfg(test)]
mod tests {
    use gateway_api::{Status, session::Role};
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::store::{GroupId, Line, NewUser};

    #[tokio::test]
    async fn what_came_to_pass_since_a_backup_is_not_known_and_nobody_is_given_up_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let store = Store::open(&file).await.unwrap();
        let before = store.unknown_times().await.unwrap();
        assert_eq!(before.len(), 1, "nothing is known of what was before it");
        let (name, line) = ("alice".parse().unwrap(), Line::by_system("test", ""));
        for (name, role) in [(&"admin".parse().unwrap(), Role::Admin), (&name, Role::User)] {
            let new = NewUser {
                name,
                password_hash: "hash",
                role,
                group: GroupId::DEFAULT,
                must_change_password: false,
            };
            store.add_user(new, &line).await.unwrap();
        }
        let alice = store.user_by_name(&name).await.unwrap().unwrap().id;
        store.remove_user(alice, &Status::STOPPING, &line).await.unwrap();

        // Now it is a backup of forty days ago.
        let (now, day) = (Timestamp::now(), SignedDuration::from_hours(24));
        let then = now - day * 40;
        sqlx::raw_sql("drop trigger audit_is_never_changed").execute(&store.writer).await.unwrap();
        for past in [
            "update audit set at = ?",
            "update users set removed_at = ? where removed_at is not null",
            "update unknown_times set until = ? - 1",
        ] {
            sqlx::query(past).bind(then.as_millisecond()).execute(&store.writer).await.unwrap();
        }
        store.close().await;
        for _ in 0..2 {
            let store = Store::open(&file).await.unwrap();
            let unknown = store.unknown_times().await.unwrap();
            assert_eq!(unknown.len(), 2, "{unknown:?}");
            assert!(unknown[1].holds(then + day) && unknown[1].holds(now) && !unknown[1].holds(then - day));
            let due = store.users_removed_before(now - day * 30).await.unwrap();
            assert!(due.is_empty(), "she may have been restored since: {due:?}");
            assert_eq!(store.users_removed_before(now + day).await.unwrap().len(), 1);
            store.close().await;
        }
    }
}
