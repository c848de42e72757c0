//! The tables of announcements and of the rules.

use gateway_api::notice::{AddAnnouncement, Announcement, Bilingual, Level, Rules};
use jiff::Timestamp;
use sqlx::{Row as _, sqlite::SqliteRow};

use super::{Line, Store, StoreError, UserId, audit, now, time};

// === announcements ===

impl Store {
    /// Those in force now, or all; newest first.
    pub(crate) async fn announcements(&self, all: bool) -> Result<Vec<Announcement>, StoreError> {
        let rows = sqlx::query(
            "select * from announcements
             where ?1 or (starts_at <= ?2 and (ends_at is null or ends_at > ?2)) order by id desc",
        )
        .bind(all)
        .bind(now())
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(announcement).collect()
    }

    pub(crate) async fn add_announcement(
        &self,
        wanted: &AddAnnouncement,
        starts_at: Timestamp,
        line: &Line,
    ) -> Result<Announcement, StoreError> {
        let mut change = self.change().await?;
        let row = sqlx::query(
            "insert into announcements (level, chinese, english, starts_at, ends_at, created_at)
             values (?, ?, ?, ?, ?, ?) returning *",
        )
        .bind(wanted.level.word())
        .bind(&wanted.text.chinese)
        .bind(&wanted.text.english)
        .bind(starts_at.as_millisecond())
        .bind(wanted.ends_at.map(Timestamp::as_millisecond))
        .bind(now())
        .fetch_one(&mut *change)
        .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        announcement(&row)
    }

    /// Whether it was there.
    pub(crate) async fn remove_announcement(&self, id: i64, line: &Line) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let done =
            sqlx::query("delete from announcements where id = ?").bind(id).execute(&mut *change).await?;
        let there = done.rows_affected() > 0;
        if there {
            audit::append(&mut change, line).await?;
            change.commit().await?;
        }
        Ok(there)
    }
}

fn announcement(row: &SqliteRow) -> Result<Announcement, StoreError> {
    let level = match row.try_get("level")? {
        "warning" => Level::Warning,
        _ => Level::Info,
    };
    let ends_at: Option<i64> = row.try_get("ends_at")?;
    Ok(Announcement {
        id: row.try_get("id")?,
        level,
        text: text(row)?,
        starts_at: time(row.try_get("starts_at")?)?,
        ends_at: ends_at.map(time).transpose()?,
        created_at: time(row.try_get("created_at")?)?,
    })
}

fn text(row: &SqliteRow) -> Result<Bilingual, StoreError> {
    Ok(Bilingual { chinese: row.try_get("chinese")?, english: row.try_get("english")? })
}

// === rules ===

impl Store {
    /// The rules, and whether that user has agreed to them as they are now.
    pub(crate) async fn rules(&self, user: UserId) -> Result<Rules, StoreError> {
        let row = sqlx::query(
            "select rules.*, (select version from rules_accepted where user_id = ?) as accepted from rules",
        )
        .bind(user.0)
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else {
            return Ok(Rules { text: Bilingual::default(), version: 0, changed_at: None, accepted: true });
        };
        let (text, version): (_, i64) = (text(&row)?, row.try_get("version")?);
        let accepted: Option<i64> = row.try_get("accepted")?;
        let nothing = text.chinese.is_empty() && text.english.is_empty();
        Ok(Rules {
            accepted: nothing || accepted == Some(version),
            text,
            version,
            changed_at: Some(time(row.try_get("changed_at")?)?),
        })
    }

    pub(crate) async fn set_rules(&self, text: &Bilingual, line: &Line) -> Result<(), StoreError> {
        let set = sqlx::query(
            "insert into rules (only_one, version, chinese, english, changed_at) values (1, 1, ?1, ?2, ?3)
             on conflict (only_one) do update set version = version + 1, chinese = ?1, english = ?2, changed_at = ?3
             where chinese <> ?1 or english <> ?2",
        )
        .bind(&text.chinese)
        .bind(&text.english)
        .bind(now());
        self.audited(set, line).await.map(drop)
    }

    /// Only for the version that is in force.
    pub(crate) async fn accept_rules(
        &self,
        user: UserId,
        version: i64,
        line: &Line,
    ) -> Result<(), StoreError> {
        let accept = sqlx::query(
            "insert into rules_accepted (user_id, version, accepted_at)
             select ?1, version, ?3 from rules where version = ?2
             on conflict (user_id) do update set version = excluded.version, accepted_at = excluded.accepted_at
             where rules_accepted.version <> excluded.version",
        )
        .bind(user.0)
        .bind(version)
        .bind(now());
        self.audited(accept, line).await.map(drop)
    }
}
