//! Saved images: what users do with them. Acts write a row and return; `reconcile::images` does the rest.

use envd_api::{client::ClientError, save::AskChanges};
use gateway_api::{
    Action, Goal, ImageId, UserName,
    error::Reason,
    image::{
        ChangeImage, Changes, EXCLUDE_DEFAULT, EXCLUDE_MAX, Image, ImageState, MESSAGE_MAX_BYTES,
        SaveInstance, Saved,
    },
};
use jiff::Timestamp;
use oci_spec::distribution::Reference;

use super::{
    App,
    foreign::unpinned,
    instances::{check, readable},
};
use crate::{
    auth::{Caller, policy},
    error::{Error, chain},
    events::What,
    store::{Added, ImageChange, ImageRow, InstanceRow, JobRow, NeededImage, NewImage, NoRoom, QuotaOwner},
};

impl App {
    /// Begins to save an instance as an image.
    pub(crate) async fn save_instance(
        &self,
        caller: &Caller,
        name: &str,
        wanted: SaveInstance,
    ) -> Result<Image, Error> {
        let grant = self.grant(caller, name, Action::Save).await?;
        let instance = grant.instance();
        if self.config.registry.is_none() {
            return Err(Error::NoRegistry);
        }
        let image = wanted.name.unwrap_or_else(|| instance.slug.to_string());
        let repository = format!("{}/{image}", caller.user.home);
        let tag = match wanted.tag {
            Some(tag) => tag,
            None => self.tag_of_now(&repository).await?,
        };
        check_name(&repository, &image, &tag)?;
        check_message(&wanted.message)?;
        let exclude = exclude(wanted.exclude)?;
        let wanted_bytes = self.save_wants(caller, instance, &exclude).await?;
        let id = ImageId::new();
        let parent = self.shown_image(&instance.spec.image);
        let new = NewImage {
            id: &id,
            user: caller.user.id,
            repository: &repository,
            name: &image,
            tag: &tag,
            message: &wanted.message,
            instance: (&instance.id, &instance.name),
            parent: &parent,
            exclude: &exclude,
            share: wanted.share,
            stop: wanted.stop,
            wanted_bytes,
        };
        let line = caller
            .line("instance.save", instance.id.as_str())
            .with("image", id.as_str())
            .with("name", format!("{image}:{tag}"))
            .with("share", wanted.share.word());
        // The lists and the registry are compared only while nobody begins to save.
        let listing = self.listing.read().await;
        let failed = match self.store.add_image(new, self.config.image_quota_bytes, &line).await? {
            Added::Yes(failed) => failed,
            Added::Taken => {
                return Err(Error::AlreadyExists { kind: "image", name: format!("{image}:{tag}") });
            }
            Added::NoRoom(refused) => return Err(refused.into()),
            Added::Busy => return Err(Error::BeingSaved { name: instance.name.to_string() }),
            Added::UserGone => return Err(Error::Unauthenticated),
        };
        drop(listing);
        if let Some((failed, cluster)) = failed
            && let Err(error) = self.clusters.of(&cluster).envd.forget_save(&failed).await
        {
            tracing::warn!(image = %failed, error = chain(&error), "what a failed save has made is not forgotten yet");
        }
        let row = self.store.image(&id).await?.ok_or_else(|| not_found(&image))?;
        self.announce_image(&row);
        self.wake_images.notify_one();
        Ok(self.view_image(&row, Vec::new()))
    }

    /// The moment as a tag, with a number where there is an image of that very second.
    async fn tag_of_now(&self, repository: &str) -> Result<String, Error> {
        let moment = Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
        let mut tag = moment.clone();
        for number in 2.. {
            if self.store.image_by_name(repository, Some(&tag)).await?.is_none() {
                break;
            }
            tag = format!("{moment}-{number}");
        }
        Ok(tag)
    }

    /// What a save may take at most, compression apart; looked for only where somebody limits it.
    async fn save_wants(
        &self,
        caller: &Caller,
        instance: &InstanceRow,
        exclude: &[String],
    ) -> Result<u64, Error> {
        let user = self.store.image_room(QuotaOwner::User(caller.user.id), self.config.image_quota_bytes);
        let group = self.store.image_room(QuotaOwner::Group(caller.user.group_id), None);
        if user.await?.limit.or(group.await?.limit).is_none() {
            return Ok(0);
        }
        Ok(self.changes_of(instance, exclude.to_vec()).await?.bytes)
    }

    /// Tries a save again that failed, from what was made before it did.
    pub(crate) async fn retry_image(&self, caller: &Caller, name: &str) -> Result<Image, Error> {
        let row = self.find_image(caller, name).await?;
        policy::retry_image(caller, &row)?;
        let line = caller.line("image.retry", row.id.as_str()).with("name", full_name(&row));
        let listing = self.listing.read().await;
        match self.store.retry_image(&row, self.config.image_quota_bytes, &line).await? {
            Added::Yes(_) => {}
            Added::NoRoom(refused) => return Err(refused.into()),
            Added::Taken => return Err(Error::unfit("image", Reason::ImageNotFailed)),
            Added::Busy => {
                let name = row.instance.map(|(_, name)| name.to_string()).unwrap_or_default();
                return Err(Error::BeingSaved { name });
            }
            Added::UserGone => return Err(Error::Unauthenticated),
        }
        drop(listing);
        let row = self.store.image(&row.id).await?.ok_or_else(|| not_found(name))?;
        self.announce_image(&row);
        self.wake_images.notify_one();
        Ok(self.view_image(&row, Vec::new()))
    }

    /// What a save would put into an image.
    pub(crate) async fn changes(
        &self,
        caller: &Caller,
        name: &str,
        exclude_paths: Option<Vec<String>>,
    ) -> Result<Changes, Error> {
        let grant = self.grant(caller, name, Action::Save).await?;
        self.changes_of(grant.instance(), exclude(exclude_paths)?).await
    }

    async fn changes_of(&self, instance: &InstanceRow, exclude: Vec<String>) -> Result<Changes, Error> {
        let changes =
            self.clusters.of(&instance.cluster).envd.changes(&instance.id, &AskChanges { exclude }).await;
        changes.map_err(|error| match error {
            ClientError::Refused { message, .. } => Error::SaveRefused { why: message },
            error @ (ClientError::Unreachable { .. } | ClientError::Protocol(_)) => {
                Error::ClusterUnreachable(error.into())
            }
        })
    }

    /// The saved images that the caller may use or see, newest first.
    pub(super) async fn saved_images(&self, caller: &Caller) -> Result<Vec<Image>, Error> {
        let mut rows = self.store.saved_images().await?;
        rows.retain(|row| policy::may_see_image(caller, row));
        let users = self.image_users().await?;
        Ok(rows.iter().map(|row| self.view_image(row, users.of(caller, row))).collect())
    }

    pub(super) async fn saved_image(&self, caller: &Caller, name: &str) -> Result<Image, Error> {
        let row = self.find_image(caller, name).await?;
        let users = self.image_users().await?;
        Ok(self.view_image(&row, users.of(caller, &row)))
    }

    pub(crate) async fn change_image(
        &self,
        caller: &Caller,
        name: &str,
        wanted: ChangeImage,
    ) -> Result<Image, Error> {
        let row = self.find_image(caller, name).await?;
        policy::change_image(caller, &row, &wanted)?;
        if wanted == ChangeImage::default() {
            return Err(Error::unfit("", Reason::NothingToChange));
        }
        if let Some(message) = &wanted.message {
            check_message(message)?;
        }
        self.rename_image(caller, &row, wanted.name.as_deref(), wanted.tag.as_deref()).await?;
        let mut line = caller.line("image.change", row.id.as_str()).with("name", full_name(&row));
        if let Some(share) = wanted.share {
            line = line.with("share", share.word());
        }
        for (key, value) in [("proposed", wanted.proposed), ("platform", wanted.platform)] {
            if let Some(value) = value {
                line = line.with(key, value.to_string());
            }
        }
        let ChangeImage { share, message, proposed, platform, name: _, tag: _ } = wanted;
        let change = ImageChange { share, message, proposed, platform };
        if change != ImageChange::default() {
            self.store.change_image(&row.id, &change, &line).await?;
        }
        let row = self.store.image(&row.id).await?.ok_or_else(|| not_found(name))?;
        self.announce_image(&row);
        self.saved_image(caller, row.id.as_str()).await
    }

    /// Deletes an image, or gives up saving it.
    pub(crate) async fn delete_image(&self, caller: &Caller, name: &str) -> Result<Image, Error> {
        let row = self.find_image(caller, name).await?;
        policy::delete_image(caller, &row)?;
        let line = caller.line("image.delete", row.id.as_str()).with("name", full_name(&row));
        if !self.store.delete_image(&row.id, &line).await? {
            let by = self.image_users().await?.of(caller, &row).join(", ");
            return Err(Error::ImageInUse { name: full_name(&row), by });
        }
        let row = ImageRow { state: ImageState::Deleting, ..row };
        self.announce_image(&row);
        self.wake_images.notify_one();
        Ok(self.view_image(&row, Vec::new()))
    }

    /// The reference that the cluster is told, for one that a user gave: a saved image by its digest, if they may use
    /// it, whatever becomes of the tag; any other as it is.
    pub(crate) async fn authorise_image(&self, caller: &Caller, text: &str) -> Result<String, Error> {
        let Some(registry) = &self.config.registry else { return Ok(text.to_owned()) };
        let Ok(reference) = text.parse::<Reference>() else { return Ok(text.to_owned()) };
        if reference.registry() != registry && reference.registry() != self.registry_name() {
            return Ok(text.to_owned());
        }
        let missing = |reason| Error::NoImage { reference: text.to_owned(), reason };
        // Several tags may have one digest, and each its own users.
        let mut rows =
            self.store.images_by_name(reference.repository(), reference.tag(), reference.digest()).await?;
        rows.retain(|row| policy::may_use_image(caller, row));
        let ready = rows.iter().position(|row| row.state == ImageState::Ready).unwrap_or(0);
        let row = rows.get(ready).ok_or_else(|| missing(Reason::ImageNotSavedForYou))?;
        match (&row.state, &row.digest) {
            (ImageState::Ready, Some(digest)) => {
                Ok(format!("{registry}/{}:{}@{digest}", row.repository, row.tag))
            }
            (ImageState::Saving { .. }, _) => Err(missing(Reason::ImageBeingSaved)),
            (ImageState::Ready | ImageState::Failed { .. } | ImageState::Deleting, _) => {
                Err(missing(Reason::ImageNotSaved))
            }
        }
    }

    /// Those of these images that were saved, by what [`App::authorise_image`] gave for them.
    pub(super) fn saved_among<'a>(&self, images: impl IntoIterator<Item = &'a str>) -> Vec<NeededImage<'a>> {
        let own = self.config.registry.as_deref();
        let saved = |image: &'a str| {
            image.strip_prefix(own?)?.strip_prefix('/')?;
            Some(NeededImage { reference: self.shown_image(image), digest: image.rsplit_once('@')?.1 })
        };
        images.into_iter().filter_map(saved).collect()
    }

    /// An image's reference as users know it.
    pub(crate) fn shown_image(&self, image: &str) -> String {
        let own = self.config.registry.as_ref().and_then(|registry| {
            let rest = image.strip_prefix(registry.as_str())?.strip_prefix('/')?;
            Some(rest.split_once('@').map_or(rest, |(name, _)| name))
        });
        own.map_or_else(|| unpinned(image).to_owned(), |name| format!("{}/{name}", self.registry_name()))
    }

    async fn image_users(&self) -> Result<Users, Error> {
        let mut jobs = self.store.jobs_under_way().await?;
        jobs.retain(|job| job.ended_at.is_none() && job.goal == Goal::Running);
        Ok(Users { instances: self.store.instances().await?, jobs })
    }

    /// What stands for the registry in references: where this gateway is.
    pub(crate) fn registry_name(&self) -> &str {
        let console = self.addresses.get().map_or("localhost", |addresses| addresses.console.as_str());
        console.split_once("://").map_or(console, |(_, authority)| authority)
    }

    pub(crate) fn announce_image(&self, row: &ImageRow) {
        self.events.tell(row.user_id, What::Image(Box::new(self.view_image(row, Vec::new()))));
    }

    fn view_image(&self, row: &ImageRow, used_by: Vec<String>) -> Image {
        Image {
            reference: format!("{}/{}:{}", self.registry_name(), row.repository, row.tag),
            size_bytes: row.size_bytes,
            created_at: row.created_at,
            default: false,
            saved: Some(Saved {
                id: row.id.clone(),
                user: row.user.clone(),
                name: row.name.clone(),
                tag: row.tag.clone(),
                message: row.message.clone(),
                instance: row.instance.as_ref().map(|(_, name)| name.clone()),
                parent: row.parent.clone(),
                digest: row.digest.clone(),
                added_bytes: row.added_bytes,
                layers: row.layers,
                frozen_ms: row.frozen_ms,
                share: row.share,
                platform: row.platform,
                proposed: row.proposed,
                state: row.state.clone(),
                used_by,
            }),
        }
    }

    /// By id, `NAME:TAG` of one's own, `USER/NAME:TAG`, or the whole reference.
    pub(super) async fn find_image(&self, caller: &Caller, text: &str) -> Result<ImageRow, Error> {
        let row = if let Ok(id) = text.parse::<ImageId>() {
            self.store.image(&id).await?
        } else {
            let whole = format!("{}/", self.registry_name());
            let name = text.strip_prefix(&whole).unwrap_or(text);
            let (name, tag) = name.rsplit_once(':').map_or((name, None), |(name, tag)| (name, Some(tag)));
            let repository =
                if name.contains('/') { name.to_owned() } else { format!("{}/{name}", caller.user.home) };
            self.store.image_by_name(&repository, tag).await?
        };
        match row {
            Some(row) if policy::may_see_image(caller, &row) => Ok(row),
            Some(_) => Err(Error::hidden("image", text)),
            None => Err(policy::missing(caller, "image", text)),
        }
    }
}

/// All that may be made from saved images: instances, and jobs that are not over.
struct Users {
    instances: Vec<InstanceRow>,
    jobs: Vec<JobRow>,
}

impl Users {
    /// Those of one image: by name those that the caller may see, the others by their user.
    fn of(&self, caller: &Caller, row: &ImageRow) -> Vec<String> {
        let Some(digest) = &row.digest else { return Vec::new() };
        let is_it = |image: &str| image.ends_with(digest.as_str());
        let shown = |user: &UserName, name: &str, seen: bool| {
            if seen || policy::owns_image(caller, row) { format!("{user}/{name}") } else { user.to_string() }
        };
        let instances = self.instances.iter().filter(|instance| is_it(&instance.spec.image));
        let instances = instances
            .map(|instance| shown(&instance.user, instance.name.as_str(), policy::may_see(caller, instance)));
        let needs = |job: &&JobRow| job.spec.roles.iter().filter_map(|role| role.image.as_deref()).any(is_it);
        let jobs = self.jobs.iter().filter(needs);
        let jobs = jobs.map(|job| shown(&job.user, &job.name, policy::may_see_job(caller, job)));
        instances.chain(jobs).collect()
    }
}

pub(super) fn full_name(row: &ImageRow) -> String {
    format!("{}:{}", row.repository, row.tag)
}

fn not_found(name: &str) -> Error {
    Error::not_found("image", name)
}

impl From<NoRoom> for Error {
    fn from(refused: NoRoom) -> Self {
        let NoRoom { group, wanted, used, limit, largest } = refused;
        let [wanted, used, limit] = [wanted, used, limit].map(readable);
        let largest = largest.into_iter().map(|(name, bytes)| format!("{name} ({})", readable(bytes)));
        Self::ImageQuota { wanted, used, limit, group, images: largest.collect::<Vec<_>>().join(", ") }
    }
}

/// The names must do in any registry and any client.
pub(super) fn check_name(repository: &str, name: &str, tag: &str) -> Result<(), Error> {
    let bad = |reason| {
        let reference: String =
            format!("{name}:{tag}").chars().filter(|letter| !letter.is_control()).take(128).collect();
        Error::BadImage { reference, reason }
    };
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
        return Err(bad(Reason::ImageNameUnfit));
    }
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if tag.is_empty() || tag.len() > 128 || tag.starts_with(['.', '-']) || !tag.bytes().all(word) {
        return Err(bad(Reason::ImageTagNotAllowed));
    }
    let whole = format!("registry.example.org/{repository}:{tag}");
    whole.parse::<Reference>().map(drop).map_err(|error| bad(check::unreadable(&whole, &error)))
}

fn check_message(message: &str) -> Result<(), Error> {
    if message.len() > MESSAGE_MAX_BYTES || message.contains('\0') {
        return Err(Error::unfit("message", Reason::MessageTooLong));
    }
    Ok(())
}

fn exclude(wanted: Option<Vec<String>>) -> Result<Vec<String>, Error> {
    let exclude = wanted.unwrap_or_else(|| EXCLUDE_DEFAULT.map(str::to_owned).to_vec());
    let bad = |reason| Err(Error::unfit("exclude", reason));
    if exclude.len() > EXCLUDE_MAX {
        return bad(Reason::ExcludeTooMany);
    }
    for path in &exclude {
        let odd = |part: &str| matches!(part, "." | "..");
        let is_path = path.len() > 1 && path.len() < 4096 && path.starts_with('/') && !path.contains('\0');
        if !is_path || path.split('/').any(odd) {
            return bad(Reason::ExcludeNotAbsolute);
        }
    }
    Ok(exclude)
}

#[cfg(test)]
mod tests {
    use gateway_api::InstanceName;

    use super::*;

    #[test]
    fn names_of_images_must_do_everywhere() {
        let check = |name: &str, tag: &str| check_name(&format!("alice/{name}"), name, tag);
        for (name, tag) in [("train", "1"), ("train-1", "20260131-120000"), ("a.b_c", "V1.0")] {
            check(name, tag).unwrap();
        }
        for (name, tag) in [
            ("", "1"),
            ("Train", "1"),
            ("a/b", "1"),
            ("../b", "1"),
            ("a", ""),
            ("a", "x y"),
            ("a", ".1"),
            ("-a", "1"),
        ] {
            assert!(matches!(check(name, tag), Err(Error::BadImage { .. })), "{name}:{tag}");
        }
    }

    #[test]
    fn only_absolute_paths_are_left_out() {
        assert_eq!(exclude(None).unwrap().len(), EXCLUDE_DEFAULT.len());
        assert!(exclude(Some(Vec::new())).unwrap().is_empty());
        for wrong in ["tmp", "/", "", "/a/../b", "/a\0"] {
            assert!(exclude(Some(vec![wrong.to_owned()])).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_instance_name_is_fit_for_an_image() {
        let name: InstanceName = "Train_1".parse().unwrap();
        check_name("alice/x", name.slug().as_str(), "1").unwrap();
    }
}
