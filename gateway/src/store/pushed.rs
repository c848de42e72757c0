//! Images that users pushed to the registry themselves, in the table of images. They are whole when they come here.

use gateway_api::{ImageId, image::ImageState, packages::Packages};
use sqlx::Row as _;

use super::{
    ImageRow, Line, NoRoom, Store, StoreError, UserId, audit,
    image_room::{Rooms, count_pushed},
    images::{image, select},
    now, readable,
};

/// An image that the registry has.
#[derive(Debug)]
pub(crate) struct PushedImage<'a> {
    pub(crate) user: UserId,
    pub(crate) repository: &'a str,
    pub(crate) name: &'a str,
    pub(crate) tag: &'a str,
    pub(crate) digest: &'a str,
    pub(crate) size_bytes: u64,
    pub(crate) layers: u32,
    /// What it is made of, each with its bytes.
    pub(crate) blobs: &'a [(String, u64)],
}

/// What became of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pushed {
    Yes(ImageId),
    /// One of that name is being saved or deleted.
    Busy,
    NoRoom(NoRoom),
    UserGone,
}

impl Store {
    /// Lists a pushed image, in the place of one of that name. What was shared stays shared; what an admin has put on
    /// the platform's list was another image, if this one differs.
    pub(crate) async fn put_pushed_image(
        &self,
        new: &PushedImage<'_>,
        site_limit: Option<u64>,
        line: &Line,
    ) -> Result<Pushed, StoreError> {
        let mut change = self.change().await?;
        let rooms = Rooms::of(&mut change, new.user, site_limit).await?;
        let before = sqlx::query("select id, phase from images where user_id = ? and name = ? and tag = ?")
            .bind(new.user.0)
            .bind(new.name)
            .bind(new.tag)
            .fetch_optional(&mut *change)
            .await?;
        let id = match before {
            None => ImageId::new(),
            Some(row) if matches!(row.try_get("phase")?, "saving" | "deleting") => return Ok(Pushed::Busy),
            Some(row) => readable(row.try_get::<&str, _>("id")?.parse())?,
        };
        let done = sqlx::query(
            "insert into images (id, user_id, repository, name, tag, message, parent, exclude, share, stop, state,
                                 phase, settled, digest, size_bytes, added_bytes, layers, created_at)
             select ?1, id, ?3, ?4, ?5, '', '', '[]', 'me', 0, ?6, 'ready', 1, ?7, ?8, ?8, ?9, ?10
             from users where id = ?2 and removed_at is null
             on conflict do update set
                 platform = platform and digest is excluded.digest,
                 proposed = proposed and digest is excluded.digest,
                 message = '', packages = null, frozen_ms = 0, instance_id = null, instance_name = null, parent = '', exclude = '[]', stop = 0,
                 kept_until = null,
                 state = excluded.state, phase = 'ready', settled = 1, digest = excluded.digest,
                 size_bytes = excluded.size_bytes, added_bytes = excluded.added_bytes, layers = excluded.layers,
                 created_at = excluded.created_at",
        )
        .bind(id.as_str())
        .bind(new.user.0)
        .bind(new.repository)
        .bind(new.name)
        .bind(new.tag)
        .bind(readable(serde_json::to_string(&ImageState::Ready))?)
        .bind(new.digest)
        .bind(new.size_bytes.cast_signed())
        .bind(new.layers)
        .bind(now())
        .execute(&mut *change)
        .await?;
        if done.rows_affected() == 0 {
            return Ok(Pushed::UserGone);
        }
        count_pushed(&mut change, new.user, &id, new.blobs).await?;
        if let Some(refused) = rooms.refuses(&mut change, site_limit).await? {
            return Ok(Pushed::NoRoom(refused));
        }
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(Pushed::Yes(id))
    }

    /// All images of one repository.
    pub(crate) async fn images_in(&self, repository: &str) -> Result<Vec<ImageRow>, StoreError> {
        let rows = sqlx::query(select!("where repository = ? order by tag"))
            .bind(repository)
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(image).collect()
    }

    /// What was installed in an image beyond its parent, if somebody looked.
    pub(crate) async fn packages_of(&self, id: &ImageId) -> Result<Option<Packages>, StoreError> {
        let row = sqlx::query("select packages from images where id = ?")
            .bind(id.as_str())
            .fetch_optional(&self.pool)
            .await?;
        let text: Option<String> = row.map(|row| row.try_get("packages")).transpose()?.flatten();
        text.map(|text| readable(serde_json::from_str(&text))).transpose()
    }
}
