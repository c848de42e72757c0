//! The table of saved images.
//!
//! Users' acts add a row, change who may use it, and mark it for deletion; what the cluster reports about the save moves
//! it from `saving` to `ready` or `failed`. Whatever is not settled is the business of `reconcile::images`.

use std::time::Duration;

use envd_api::save::SavedImage;
use gateway_api::{
    ImageId, InstanceId, InstanceName, UserName,
    image::{ImageState, SaveStep, Share},
};
use jiff::Timestamp;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    GroupId, Line, NoRoom, Store, StoreError, UserId, audit,
    image_room::{Rooms, count_saved},
    now, readable, time,
};

/// For how long the cluster keeps what a failed save has made, for another try.
const KEPT: Duration = Duration::from_hours(24);

/// An image as the store keeps one.
#[derive(Debug, Clone)]
pub(crate) struct ImageRow {
    pub(crate) id: ImageId,
    pub(crate) user_id: UserId,
    pub(crate) user: UserName,
    /// The group that its user is in now.
    pub(crate) group_id: GroupId,
    pub(crate) repository: String,
    pub(crate) name: String,
    pub(crate) tag: String,
    pub(crate) message: String,
    /// What it was saved from; `None` for an image that was pushed.
    pub(crate) instance: Option<(InstanceId, InstanceName)>,
    /// Where that was.
    pub(crate) cluster: String,
    pub(crate) parent: String,
    pub(crate) exclude: Vec<String>,
    pub(crate) share: Share,
    pub(crate) platform: bool,
    pub(crate) proposed: bool,
    pub(crate) stop: bool,
    pub(crate) state: ImageState,
    pub(crate) digest: Option<String>,
    pub(crate) size_bytes: u64,
    pub(crate) added_bytes: u64,
    pub(crate) layers: u32,
    pub(crate) frozen_ms: u64,
    pub(crate) created_at: Timestamp,
}

/// An image that is to be saved.
#[derive(Debug)]
pub(crate) struct NewImage<'a> {
    pub(crate) id: &'a ImageId,
    pub(crate) user: UserId,
    pub(crate) repository: &'a str,
    pub(crate) name: &'a str,
    pub(crate) tag: &'a str,
    pub(crate) message: &'a str,
    pub(crate) instance: (&'a InstanceId, &'a InstanceName),
    pub(crate) parent: &'a str,
    pub(crate) exclude: &'a [String],
    pub(crate) share: Share,
    pub(crate) stop: bool,
    /// What it may take at most.
    pub(crate) wanted_bytes: u64,
}

/// A saved image that something is to be made from.
#[derive(Debug)]
pub(crate) struct NeededImage<'a> {
    /// As users know it.
    pub(crate) reference: String,
    pub(crate) digest: &'a str,
}

/// What changes about an image. What is `None` stays.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ImageChange {
    pub(crate) share: Option<Share>,
    pub(crate) message: Option<String>,
    pub(crate) proposed: Option<bool>,
    pub(crate) platform: Option<bool>,
}

/// What an image that cannot be added stands against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Added {
    /// With the one that failed and made room for it, and the cluster that has what was made of it.
    Yes(Option<(ImageId, String)>),
    /// The user has one of that name and tag.
    Taken,
    NoRoom(NoRoom),
    /// The instance is being saved already.
    Busy,
    UserGone,
}

/// `select` of all that [`image`] reads, with the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select images.*, users.name as user_name, users.group_id
             from images join users on users.id = images.user_id ",
            $rest
        )
    };
}
pub(super) use select;

impl Store {
    /// Adds an image that is to be saved. One of that name that failed makes room for it.
    pub(crate) async fn add_image(
        &self,
        new: NewImage<'_>,
        site_limit: Option<u64>,
        line: &Line,
    ) -> Result<Added, StoreError> {
        let state = ImageState::Saving { step: SaveStep::Waiting, done_bytes: 0, total_bytes: None };
        let mut change = self.change().await?;
        let busy = sqlx::query("select 1 from images where instance_id = ? and phase = 'saving'")
            .bind(new.instance.0.as_str())
            .fetch_optional(&mut *change)
            .await?;
        if busy.is_some() {
            return Ok(Added::Busy);
        }
        let rooms = Rooms::of(&mut change, new.user, site_limit).await?;
        let failed = sqlx::query(
            "delete from images where user_id = ? and name = ? and tag = ? and phase = 'failed' and settled = 1
             returning id, cluster",
        )
        .bind(new.user.0)
        .bind(new.name)
        .bind(new.tag)
        .fetch_optional(&mut *change)
        .await?;
        let done = sqlx::query(
            "insert into images (id, user_id, repository, name, tag, message, instance_id, instance_name, parent,
                                 exclude, share, stop, state, phase, created_at, wanted_bytes, cluster)
             select ?1, id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 'saving', ?14, ?15,
                    coalesce((select cluster from instances where id = ?7), 'default')
             from users where id = ?2 and removed_at is null",
        )
        .bind(new.id.as_str())
        .bind(new.user.0)
        .bind(new.repository)
        .bind(new.name)
        .bind(new.tag)
        .bind(new.message)
        .bind(new.instance.0.as_str())
        .bind(new.instance.1.as_str())
        .bind(new.parent)
        .bind(readable(serde_json::to_string(new.exclude))?)
        .bind(new.share.word())
        .bind(new.stop)
        .bind(readable(serde_json::to_string(&state))?)
        .bind(now())
        .bind(new.wanted_bytes.cast_signed())
        .execute(&mut *change)
        .await
        .map_err(StoreError::from);
        match done {
            Ok(done) if done.rows_affected() == 0 => return Ok(Added::UserGone),
            Ok(_) => {}
            Err(StoreError::Taken) => return Ok(Added::Taken),
            Err(error) => return Err(error),
        }
        if let Some(refused) = rooms.refuses(&mut change, site_limit).await? {
            return Ok(Added::NoRoom(refused));
        }
        audit::append(&mut change, line).await?;
        change.commit().await?;
        let failed = failed.map(|row| -> Result<_, StoreError> {
            Ok((readable(row.try_get::<&str, _>("id")?.parse())?, row.try_get("cluster")?))
        });
        Ok(Added::Yes(failed.transpose()?))
    }

    /// A save that failed is to be tried again.
    pub(crate) async fn retry_image(
        &self,
        image: &ImageRow,
        site_limit: Option<u64>,
        line: &Line,
    ) -> Result<Added, StoreError> {
        let state = ImageState::Saving { step: SaveStep::Waiting, done_bytes: 0, total_bytes: None };
        let mut change = self.change().await?;
        let rooms = Rooms::of(&mut change, image.user_id, site_limit).await?;
        let done = sqlx::query(
            "update images set state = ?2, phase = 'saving', settled = 0, kept_until = null
             where id = ?1 and phase = 'failed'",
        )
        .bind(image.id.as_str())
        .bind(readable(serde_json::to_string(&state))?)
        .execute(&mut *change)
        .await
        .map_err(StoreError::from);
        match done {
            Ok(done) if done.rows_affected() == 0 => return Ok(Added::Taken),
            Ok(_) => {}
            Err(StoreError::Taken) => return Ok(Added::Busy),
            Err(error) => return Err(error),
        }
        if let Some(refused) = rooms.refuses(&mut change, site_limit).await? {
            return Ok(Added::NoRoom(refused));
        }
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(Added::Yes(None))
    }

    /// Failed saves of which the cluster keeps something for nobody any more.
    pub(crate) async fn images_kept_too_long(&self) -> Result<Vec<ImageRow>, StoreError> {
        let rows = sqlx::query(select!("where kept_until < ?")).bind(now()).fetch_all(&self.pool).await?;
        rows.iter().map(image).collect()
    }

    /// The cluster has nothing of a failed save any more.
    pub(crate) async fn keep_image_no_longer(&self, id: &ImageId) -> Result<(), StoreError> {
        // One that was tried again and failed again meanwhile is kept anew.
        sqlx::query("update images set kept_until = null where id = ? and kept_until < ?")
            .bind(id.as_str())
            .bind(now())
            .execute(&self.writer)
            .await?;
        Ok(())
    }

    pub(crate) async fn image(&self, id: &ImageId) -> Result<Option<ImageRow>, StoreError> {
        let row =
            sqlx::query(select!("where images.id = ?")).bind(id.as_str()).fetch_optional(&self.pool).await?;
        row.as_ref().map(image).transpose()
    }

    /// By where they are in the registry, and their tag or digest there; the newest first.
    pub(crate) async fn images_by_name(
        &self,
        repository: &str,
        tag: Option<&str>,
        digest: Option<&str>,
    ) -> Result<Vec<ImageRow>, StoreError> {
        let rows = sqlx::query(select!(
            "where repository = ?1 and (?2 is null or tag = ?2) and (?3 is null or digest = ?3)
             order by images.id desc"
        ))
        .bind(repository)
        .bind(tag)
        .bind(digest)
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(image).collect()
    }

    /// The newest of them.
    pub(crate) async fn image_by_name(
        &self,
        repository: &str,
        tag: Option<&str>,
    ) -> Result<Option<ImageRow>, StoreError> {
        Ok(self.images_by_name(repository, tag, None).await?.into_iter().next())
    }

    /// All, newest first.
    pub(crate) async fn saved_images(&self) -> Result<Vec<ImageRow>, StoreError> {
        let rows = sqlx::query(select!("order by images.id desc")).fetch_all(&self.pool).await?;
        rows.iter().map(image).collect()
    }

    /// Those of users who were given up, but for what is on the platform's list.
    pub(crate) async fn images_of_nobody(&self) -> Result<Vec<ImageRow>, StoreError> {
        let rows = sqlx::query(select!(
            "where users.purged_at is not null and not platform and phase <> 'deleting' order by images.id"
        ))
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(image).collect()
    }

    /// Those about which something is still to be done.
    pub(crate) async fn unsettled_images(&self) -> Result<Vec<ImageRow>, StoreError> {
        let rows = sqlx::query(select!("where settled = 0 order by images.id")).fetch_all(&self.pool).await?;
        rows.iter().map(image).collect()
    }

    pub(crate) async fn change_image(
        &self,
        id: &ImageId,
        wanted: &ImageChange,
        line: &Line,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query(
            "update images set share = coalesce(?2, share), message = coalesce(?3, message),
                               proposed = coalesce(?4, proposed), platform = coalesce(?5, platform)
             where id = ?1",
        )
        .bind(id.as_str())
        .bind(wanted.share.map(Share::word))
        .bind(wanted.message.as_deref())
        .bind(wanted.proposed)
        .bind(wanted.platform)
        .execute(&mut *change)
        .await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(())
    }

    /// Gives an image another name and another place in the registry. `false`: the name is taken, or the image has
    /// changed meanwhile.
    pub(crate) async fn rename_image(
        &self,
        before: &ImageRow,
        repository: &str,
        name: &str,
        tag: &str,
        line: &Line,
    ) -> Result<bool, StoreError> {
        let rename = sqlx::query(
            "update images set repository = ?2, name = ?3, tag = ?4
             where id = ?1 and phase = 'ready' and repository = ?5 and tag = ?6 and digest is ?7",
        )
        .bind(before.id.as_str())
        .bind(repository)
        .bind(name)
        .bind(tag)
        .bind(&before.repository)
        .bind(&before.tag)
        .bind(before.digest.as_deref());
        match self.audited(rename, line).await {
            Err(StoreError::Taken) => Ok(false),
            done => done,
        }
    }

    /// Marks an image for deletion, unless an instance is made from it or a job will be.
    pub(crate) async fn delete_image(&self, id: &ImageId, line: &Line) -> Result<bool, StoreError> {
        let mark = sqlx::query(
            "update images set state = ?2, phase = 'deleting', settled = 0
             where id = ?1 and (digest is null or not exists (
                 select 1 from instances where instr(json_extract(spec, '$.image'), '@' || digest) > 0
                 union all
                 select 1 from jobs, json_each(jobs.spec, '$.roles') as role
                 where ended_at is null and goal = 'running'
                   and instr(json_extract(role.value, '$.image'), '@' || digest) > 0))",
        )
        .bind(id.as_str())
        .bind(readable(serde_json::to_string(&ImageState::Deleting))?);
        self.audited(mark, line).await
    }

    /// How far a save is, as the cluster says; one that failed is settled, and what was made for it is kept for a while.
    /// `false`: it is over already, or is to be deleted.
    pub(crate) async fn set_image_state(&self, id: &ImageId, state: &ImageState) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "update images set state = ?1, phase = ?2, settled = ?2 = 'failed', kept_until = iif(?2 = 'failed', ?4, null)
             where id = ?3 and phase = 'saving'",
        )
        .bind(readable(serde_json::to_string(state))?)
        .bind(state.word())
        .bind(id.as_str())
        .bind(now().saturating_add(i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX)))
        .execute(&self.reports)
        .await?;
        Ok(done.rows_affected() == 1)
    }

    /// The image is whole.
    pub(crate) async fn finish_image(
        &self,
        id: &ImageId,
        saved: &SavedImage,
        line: &Line,
    ) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let done = sqlx::query(
            "update images set state = ?2, phase = 'ready', digest = ?3, size_bytes = ?4, added_bytes = ?5,
                               layers = ?6, packages = ?7, frozen_ms = ?8
             where id = ?1 and phase = 'saving'",
        )
        .bind(id.as_str())
        .bind(readable(serde_json::to_string(&ImageState::Ready))?)
        .bind(&saved.digest)
        .bind(saved.size_bytes.cast_signed())
        .bind(saved.added_bytes.cast_signed())
        .bind(saved.layers)
        .bind(readable(serde_json::to_string(&saved.packages))?)
        .bind(saved.frozen_ms.cast_signed())
        .execute(&mut *change)
        .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        count_saved(&mut change, id, &saved.blobs).await?;
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(true)
    }

    /// Nothing is left to do for an image.
    pub(crate) async fn settle_image(&self, id: &ImageId) -> Result<(), StoreError> {
        sqlx::query("update images set settled = 1, stop = 0 where id = ? and phase in ('ready', 'failed')")
            .bind(id.as_str())
            .execute(&self.writer)
            .await?;
        Ok(())
    }

    /// Nothing is left to stop when this image is whole.
    pub(crate) async fn forget_stop(&self, id: &ImageId) -> Result<(), StoreError> {
        forget_stop(&mut *self.writer.acquire().await?, id).await
    }

    /// Forgets an image that is gone.
    pub(crate) async fn forget_image(&self, id: &ImageId) -> Result<(), StoreError> {
        sqlx::query("delete from images where id = ? and phase = 'deleting'")
            .bind(id.as_str())
            .execute(&self.writer)
            .await?;
        Ok(())
    }
}

pub(super) fn image(row: &SqliteRow) -> Result<ImageRow, StoreError> {
    let text = |column| row.try_get::<&str, _>(column);
    let bytes = |column| row.try_get::<i64, _>(column).map(i64::cast_unsigned);
    Ok(ImageRow {
        id: readable(text("id")?.parse())?,
        user_id: UserId(row.try_get("user_id")?),
        user: readable(text("user_name")?.parse())?,
        group_id: GroupId(row.try_get("group_id")?),
        repository: row.try_get("repository")?,
        name: row.try_get("name")?,
        tag: row.try_get("tag")?,
        message: row.try_get("message")?,
        instance: match (row.try_get::<Option<&str>, _>("instance_id")?, row.try_get("instance_name")?) {
            (Some(id), Some(name)) => Some((readable(id.parse())?, readable(str::parse(name))?)),
            _ => None,
        },
        cluster: row.try_get("cluster")?,
        parent: row.try_get("parent")?,
        exclude: readable(serde_json::from_str(text("exclude")?))?,
        share: match text("share")? {
            "me" => Share::Me,
            "group" => Share::Group,
            "everyone" => Share::Everyone,
            other => return readable(Err(format!("the share `{other}`"))),
        },
        platform: row.try_get("platform")?,
        proposed: row.try_get("proposed")?,
        stop: row.try_get("stop")?,
        state: readable(serde_json::from_str(text("state")?))?,
        digest: row.try_get("digest")?,
        size_bytes: bytes("size_bytes")?,
        added_bytes: bytes("added_bytes")?,
        layers: row.try_get("layers")?,
        frozen_ms: bytes("frozen_ms")?,
        created_at: time(row.try_get("created_at")?)?,
    })
}

/// Refuses what is to be made from saved images if one of them has been deleted since somebody looked.
pub(super) async fn all_ready(
    change: &mut SqliteConnection,
    needed: &[NeededImage<'_>],
) -> Result<(), StoreError> {
    for NeededImage { reference, digest } in needed {
        let ready = sqlx::query("select 1 from images where digest = ? and phase = 'ready'")
            .bind(*digest)
            .fetch_optional(&mut *change)
            .await?;
        if ready.is_none() {
            return Err(StoreError::ImageGone { reference: reference.clone() });
        }
    }
    Ok(())
}

pub(super) async fn forget_stop(connection: &mut SqliteConnection, id: &ImageId) -> Result<(), StoreError> {
    sqlx::query("update images set stop = 0 where id = ?").bind(id.as_str()).execute(connection).await?;
    Ok(())
}
