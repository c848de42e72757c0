//! The table of the audit log: appended to, in the transaction of the act where there is one, and never changed.

use std::{collections::BTreeMap, net::IpAddr};

use gateway_api::audit::{AuditEntry, AuditQuery, AuditResult};
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{Store, StoreError, now, readable, time};

/// The longest text in a line: whoever fills the log with their own words fills it slowly.
const FIELD_MAX: usize = 256;
/// The most details in a line.
const DETAILS_MAX: usize = 8;

/// A line that is not written yet.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) actor: String,
    pub(crate) source: Option<IpAddr>,
    pub(crate) act: &'static str,
    pub(crate) object: String,
    pub(crate) result: AuditResult,
    pub(crate) request_id: String,
    pub(crate) details: Vec<(&'static str, String)>,
}

impl Line {
    /// What the gateway does by itself.
    pub(crate) fn by_system(act: &'static str, object: impl Into<String>) -> Self {
        Self {
            actor: "system".to_owned(),
            source: None,
            act,
            object: object.into(),
            result: AuditResult::Done,
            request_id: String::new(),
            details: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.details.push((key, value.into()));
        self
    }

    pub(crate) fn refused(mut self) -> Self {
        self.result = AuditResult::Refused;
        self
    }
}

/// Appends `line` within the transaction of `connection`.
pub(super) async fn append(connection: &mut SqliteConnection, line: &Line) -> Result<(), StoreError> {
    let details: BTreeMap<_, _> =
        line.details.iter().take(DETAILS_MAX).map(|(key, value)| (*key, bounded(value))).collect();
    sqlx::query(
        "insert into audit (at, actor, source, act, object, result, request_id, details)
         values (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(now())
    .bind(bounded(&line.actor))
    .bind(line.source.map(|source| source.to_canonical().to_string()).unwrap_or_default())
    .bind(line.act)
    .bind(bounded(&line.object))
    .bind(line.result.word())
    .bind(bounded(&line.request_id))
    .bind(readable(serde_json::to_string(&details))?)
    .execute(connection)
    .await?;
    Ok(())
}

impl Store {
    /// Appends a line about something that changed nothing else.
    pub(crate) async fn audit(&self, line: &Line) -> Result<(), StoreError> {
        let mut connection = self.writer.acquire().await?;
        append(&mut connection, line).await
    }

    /// At most `limit` lines, newest first.
    pub(crate) async fn audit_page(
        &self,
        query: &AuditQuery,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = sqlx::query(
            "select * from audit
             where (?1 is null or actor = ?1) and (?2 is null or act = ?2) and (?3 is null or at >= ?3)
               and (?4 is null or id < ?4) and (?6 is null or object = ?6)
             order by id desc limit ?5",
        )
        .bind(query.actor.as_deref())
        .bind(query.act.as_deref())
        .bind(query.since.map(jiff::Timestamp::as_millisecond))
        .bind(query.before)
        .bind(limit)
        .bind(query.object.as_deref())
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(entry).collect()
    }
}

fn entry(row: &SqliteRow) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        id: row.try_get("id")?,
        at: time(row.try_get("at")?)?,
        actor: row.try_get("actor")?,
        source: row.try_get("source")?,
        act: row.try_get("act")?,
        object: row.try_get("object")?,
        result: match row.try_get("result")? {
            "done" => AuditResult::Done,
            "refused" => AuditResult::Refused,
            other => return readable(Err(format!("the result `{other}`"))),
        },
        request_id: row.try_get("request_id")?,
        details: readable(serde_json::from_str(row.try_get("details")?))?,
    })
}

/// What of a text goes into the log: no control characters, at most [`FIELD_MAX`] bytes.
fn bounded(text: &str) -> String {
    let mut kept = String::new();
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if kept.len() + letter.len_utf8() > FIELD_MAX {
            break;
        }
        kept.push(letter);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded_cannot_be_changed_and_outlive_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let store = Store::open(&file).await.unwrap();
        let line = Line::by_system("test", "名".repeat(500)).with("key", "a\nb\u{1b}[31m\0");
        store.audit(&line).await.unwrap();
        for change in ["update audit set actor = 'x'", "delete from audit"] {
            assert!(sqlx::query(change).execute(&store.writer).await.is_err(), "{change}");
        }
        // Not closed: another process finds what was acknowledged, as after a kill.
        let other = Store::open(&file).await.unwrap();
        let lines = other.audit_page(&AuditQuery::default(), 10).await.unwrap();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].object, "名".repeat(85));
        assert_eq!(lines[0].details["key"], "ab[31m");
    }

    #[tokio::test]
    async fn pages_and_filters() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).await.unwrap();
        for n in 0..5 {
            store.audit(&Line::by_system("even", n.to_string())).await.unwrap();
            store.audit(&Line::by_system("odd", n.to_string())).await.unwrap();
        }
        let ask = AuditQuery { act: Some("odd".to_owned()), ..AuditQuery::default() };
        let first = store.audit_page(&ask, 2).await.unwrap();
        let next = AuditQuery { before: Some(first[1].id), ..ask };
        let second = store.audit_page(&next, 10).await.unwrap();
        let objects: Vec<_> = first.iter().chain(&second).map(|line| line.object.as_str()).collect();
        assert_eq!(objects, ["4", "3", "2", "1", "0"]);
    }
}
