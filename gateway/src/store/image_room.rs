//! What images take of the room that users and groups have for them.
//!
//! Every act that takes room is checked in the transaction that writes it down: two at once cannot both have what is
//! left. A blob counts once for each user, however many of their images have it. A save counts with the most that it may
//! take until it is known what it took; an upload counts from when it has ended.

use envd_api::save::SavedLayer;
use gateway_api::{ImageId, UserName};
use jiff::Timestamp;
use sqlx::{Row as _, SqliteConnection};

use super::{QuotaOwner, Store, StoreError, UserId, Whose, now, readable, reservations};

/// How much room somebody has for images, and how much of it is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageRoom {
    pub(crate) used: u64,
    /// `None`: no limit.
    pub(crate) limit: Option<u64>,
}

/// There is not room enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoRoom {
    /// Whose room it is, if it is the group's.
    pub(crate) group: Option<String>,
    pub(crate) wanted: u64,
    pub(crate) used: u64,
    pub(crate) limit: u64,
    /// The user's own images that take the most, each with its bytes.
    pub(crate) largest: Vec<(String, u64)>,
}

/// How many images are named to whoever has no room.
const LARGEST: i64 = 3;

/// What counts for the users that `members` selects.
const USED: &str = "
    with members as (select id from users where iif(?1 = 'user', id, group_id) = ?2),
         blobs as (
             select user_id, image_blobs.digest, image_blobs.size_bytes
             from image_blobs join images on images.id = image_id
             where user_id in members
             union all
             select user_id, digest, size_bytes from uploads where user_id in members)
    select (select coalesce(sum(size_bytes), 0)
            from (select max(size_bytes) as size_bytes from blobs group by user_id, digest))
         + (select coalesce(sum(wanted_bytes), 0) from images where phase = 'saving' and user_id in members)
        as bytes";

impl Store {
    /// `site` is the limit of a user who has none of their own.
    pub(crate) async fn image_room(
        &self,
        owner: QuotaOwner,
        site: Option<u64>,
    ) -> Result<ImageRoom, StoreError> {
        room(&mut *self.pool.acquire().await?, owner, site).await
    }

    /// Counts a blob that a user has uploaded, if there is room for it.
    pub(crate) async fn add_upload(
        &self,
        user: UserId,
        digest: &str,
        bytes: u64,
        site: Option<u64>,
    ) -> Result<Option<NoRoom>, StoreError> {
        let mut change = self.change().await?;
        let before = Rooms::of(&mut change, user, site).await?;
        sqlx::query(
            "insert or replace into uploads (user_id, digest, size_bytes, uploaded_at) values (?, ?, ?, ?)",
        )
        .bind(user.0)
        .bind(digest)
        .bind(bytes.cast_signed())
        .bind(now())
        .execute(&mut *change)
        .await?;
        if let Some(refused) = before.refuses(&mut change, site).await? {
            return Ok(Some(refused));
        }
        change.commit().await?;
        Ok(None)
    }

    /// What the images of each user take, with the user's group; of those who have any.
    pub(crate) async fn image_bytes(&self, whose: Whose) -> Result<Vec<(UserName, String, u64)>, StoreError> {
        let (user, group) = whose.ids();
        let rows = sqlx::query(
            "select users.name as user_name, groups.name as group_name, sum(b.size_bytes) as bytes
             from (select user_id, max(image_blobs.size_bytes) as size_bytes
                   from image_blobs join images on images.id = image_id
                   group by user_id, image_blobs.digest) as b
             join users on users.id = b.user_id join groups on groups.id = users.group_id
             where (?1 is null or users.id = ?1) and (?2 is null or users.group_id = ?2)
             group by users.id order by bytes desc, user_name",
        )
        .bind(user)
        .bind(group)
        .fetch_all(&self.pool)
        .await?;
        let one = |row: &sqlx::sqlite::SqliteRow| {
            let user = readable(row.try_get::<&str, _>("user_name")?.parse())?;
            Ok((user, row.try_get("group_name")?, row.try_get::<i64, _>("bytes")?.cast_unsigned()))
        };
        rows.iter().map(one).collect()
    }

    /// Forgets uploads of which nothing came.
    pub(crate) async fn forget_uploads(&self, before: Timestamp) -> Result<(), StoreError> {
        sqlx::query("delete from uploads where uploaded_at < ?")
            .bind(before.as_millisecond())
            .execute(&self.writer)
            .await?;
        Ok(())
    }

    /// The blobs of all images that count for somebody.
    pub(crate) async fn counted_blobs(&self) -> Result<Vec<String>, StoreError> {
        let rows = sqlx::query("select distinct image_blobs.digest from image_blobs join images on images.id = image_id where phase <> 'deleting'")
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(|row| Ok(row.try_get("digest")?)).collect()
    }

    /// The blobs that somebody uploaded and may still name.
    pub(crate) async fn uploads(&self) -> Result<Vec<String>, StoreError> {
        let rows = sqlx::query("select distinct digest from uploads").fetch_all(&self.pool).await?;
        rows.iter().map(|row| Ok(row.try_get("digest")?)).collect()
    }
}

/// The rooms that an act of a user takes from, as they were before it.
#[derive(Debug)]
pub(super) struct Rooms {
    user: UserId,
    group: (i64, String),
    before: [ImageRoom; 2],
}

impl Rooms {
    pub(super) async fn of(
        change: &mut SqliteConnection,
        user: UserId,
        site: Option<u64>,
    ) -> Result<Self, StoreError> {
        let row = sqlx::query(
            "select groups.id, groups.name from users join groups on groups.id = group_id where users.id = ?",
        )
        .bind(user.0)
        .fetch_one(&mut *change)
        .await?;
        let group = (row.try_get("id")?, row.try_get("name")?);
        let before = both(change, user, group.0, site).await?;
        Ok(Self { user, group, before })
    }

    /// Why what has been written since cannot stay. What takes no more room than before always can.
    pub(super) async fn refuses(
        self,
        change: &mut SqliteConnection,
        site: Option<u64>,
    ) -> Result<Option<NoRoom>, StoreError> {
        let after = both(change, self.user, self.group.0, site).await?;
        for (is_group, (before, after)) in [false, true].into_iter().zip(self.before.into_iter().zip(after)) {
            let Some(limit) = after.limit.filter(|limit| after.used > *limit) else { continue };
            if after.used > before.used {
                let largest = largest(change, self.user).await?;
                let group = is_group.then_some(self.group.1);
                let wanted = after.used - before.used;
                return Ok(Some(NoRoom { group, wanted, used: before.used, limit, largest }));
            }
        }
        Ok(None)
    }
}

async fn both(
    change: &mut SqliteConnection,
    user: UserId,
    group: i64,
    site: Option<u64>,
) -> Result<[ImageRoom; 2], StoreError> {
    let own = room(change, QuotaOwner::User(user), site).await?;
    Ok([own, room(change, QuotaOwner::Group(super::GroupId(group)), None).await?])
}

async fn room(
    connection: &mut SqliteConnection,
    owner: QuotaOwner,
    site: Option<u64>,
) -> Result<ImageRoom, StoreError> {
    let (word, id) = owner.words();
    let row = sqlx::query(USED).bind(word).bind(id).fetch_one(&mut *connection).await?;
    let quota = reservations::quota(connection, owner).await?;
    let limit = quota.and_then(|quota| quota.in_force(Timestamp::now()).image_bytes);
    Ok(ImageRoom { used: row.try_get::<i64, _>("bytes")?.cast_unsigned(), limit: limit.or(site) })
}

async fn largest(connection: &mut SqliteConnection, user: UserId) -> Result<Vec<(String, u64)>, StoreError> {
    let rows = sqlx::query(
        "select name || ':' || tag as name, added_bytes from images
         where user_id = ? and phase = 'ready' and added_bytes > 0 order by added_bytes desc limit ?",
    )
    .bind(user.0)
    .bind(LARGEST)
    .fetch_all(connection)
    .await?;
    let one = |row: &sqlx::sqlite::SqliteRow| {
        Ok((row.try_get("name")?, row.try_get::<i64, _>("added_bytes")?.cast_unsigned()))
    };
    rows.iter().map(one).collect()
}

/// What of a saved image counts for its user: its own layers, and those of the image below that count already.
pub(super) async fn count_saved(
    change: &mut SqliteConnection,
    image: &ImageId,
    layers: &[SavedLayer],
) -> Result<(), StoreError> {
    for layer in layers {
        sqlx::query(
            "insert or ignore into image_blobs (image_id, digest, size_bytes)
             select ?1, ?2, ?3 where not ?4 or exists (
                 select 1 from image_blobs as blobs join images as other on other.id = blobs.image_id
                 where blobs.digest = ?2 and other.user_id = (select user_id from images where id = ?1))",
        )
        .bind(image.as_str())
        .bind(&layer.digest)
        .bind(layer.size_bytes.cast_signed())
        .bind(layer.of_base)
        .execute(&mut *change)
        .await?;
    }
    Ok(())
}

/// What of a pushed image counts for its user: all of it, in the place of what was uploaded for it. How large a blob is
/// the registry has said when it came; what the image says of it counts only where nobody has looked.
pub(super) async fn count_pushed(
    change: &mut SqliteConnection,
    user: UserId,
    image: &ImageId,
    blobs: &[(String, u64)],
) -> Result<(), StoreError> {
    let digests: Vec<_> = blobs.iter().map(|(digest, _)| digest).collect();
    sqlx::query(
        "delete from image_blobs where image_id = ? and digest not in (select value from json_each(?))",
    )
    .bind(image.as_str())
    .bind(readable(serde_json::to_string(&digests))?)
    .execute(&mut *change)
    .await?;
    for (digest, bytes) in blobs {
        sqlx::query(
            "insert or ignore into image_blobs (image_id, digest, size_bytes) values (?1, ?2, coalesce(
                 (select size_bytes from uploads where user_id = ?3 and digest = ?2),
                 (select max(blobs.size_bytes) from image_blobs as blobs join images on images.id = image_id
                  where user_id = ?3 and blobs.digest = ?2), ?4))",
        )
        .bind(image.as_str())
        .bind(digest)
        .bind(user.0)
        .bind(bytes.cast_signed())
        .execute(&mut *change)
        .await?;
        sqlx::query("delete from uploads where user_id = ? and digest = ?")
            .bind(user.0)
            .bind(digest)
            .execute(&mut *change)
            .await?;
    }
    Ok(())
}
