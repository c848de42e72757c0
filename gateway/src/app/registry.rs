//! The site's registry for people with `docker`: what each of them may pull and push.
//!
//! A user pushes below their own `home`, and there is nothing that they cannot pull there. Of what belongs to others
//! they get what the images that they may use are made of, and nothing else: the manifests by the digests that the store
//! knows, whatever the registry's own tags say, and the blobs that those manifests name. Everything else is not there.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use gateway_api::{ImageId, image::ImageState};

use super::{App, saved::check_name};
use crate::{
    auth::{Caller, policy},
    error::Error,
    registry::{
        NoAnswer, Registry,
        manifest::{Blob, Manifest},
        path::Reference,
    },
    store::{ImageRoom, ImageRow, NoRoom, Pushed, PushedImage, QuotaOwner},
};

/// Images in an index that are looked at.
const INDEX_MAX: usize = 64;
/// The largest image that is believed in: sums of these fit a column.
const BYTES_MAX: u64 = 1 << 50;
/// Manifests whose contents are remembered.
const REMEMBERED_MAX: usize = 512;

/// What manifests are made of: it never changes, since they are known by their digests.
#[derive(Debug, Default)]
pub(super) struct Contents(Mutex<HashMap<String, Arc<HashSet<String>>>>);

/// Why a registry does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error(transparent)]
    Error(#[from] Error),
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    #[error("the manifest cannot be read: {0}")]
    BadManifest(String),
    #[error(
        "your images are below `{yours}`: push to `{yours}/NAME:TAG`, and `berth image share NAME:TAG group` lets your group use it"
    )]
    NotYours { yours: String },
    #[error("an image of that name is being saved or deleted; try again when that is done")]
    Busy,
    /// Not there, or not for this caller.
    #[error("there is nothing of that name for you")]
    Nothing,
}

impl From<NoRoom> for Refused {
    fn from(refused: NoRoom) -> Self {
        Self::Error(refused.into())
    }
}

impl From<crate::store::StoreError> for Refused {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Error(error.into())
    }
}

impl App {
    pub(crate) fn site_registry(&self) -> Result<&Registry, Error> {
        self.registry.as_ref().ok_or(Error::NoRegistry)
    }

    /// The digest of a manifest that the caller may pull.
    pub(crate) async fn may_pull_manifest(
        &self,
        caller: &Caller,
        repository: &str,
        reference: Reference<'_>,
    ) -> Result<String, Refused> {
        match reference {
            Reference::Digest(digest) => {
                if !self.reaches(caller, repository, digest).await? {
                    return Err(Refused::Nothing);
                }
                Ok(digest.to_owned())
            }
            Reference::Tag(tag) => {
                let rows = self.usable(caller, repository).await?;
                let row = rows.into_iter().find(|row| row.tag == tag);
                row.and_then(|row| row.digest).ok_or(Refused::Nothing)
            }
        }
    }

    pub(crate) async fn may_pull_blob(
        &self,
        caller: &Caller,
        repository: &str,
        digest: &str,
    ) -> Result<(), Refused> {
        if self.reaches(caller, repository, digest).await? { Ok(()) } else { Err(Refused::Nothing) }
    }

    /// Whether a manifest or blob is in a repository of the caller's own, or is of an image there that they may use.
    async fn reaches(&self, caller: &Caller, repository: &str, digest: &str) -> Result<bool, Refused> {
        if own_name(caller, repository).is_some() {
            return Ok(true);
        }
        for row in self.usable(caller, repository).await? {
            let Some(manifest) = &row.digest else { continue };
            if manifest == digest || self.contents_of(repository, manifest).await?.contains(digest) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The images in a repository that the caller may use.
    async fn usable(&self, caller: &Caller, repository: &str) -> Result<Vec<ImageRow>, Error> {
        let mut rows = self.store.images_in(repository).await?;
        rows.retain(|row| row.state == ImageState::Ready && policy::may_use_image(caller, row));
        Ok(rows)
    }

    /// Everything that a manifest leads to.
    pub(super) async fn contents_of(
        &self,
        repository: &str,
        digest: &str,
    ) -> Result<Arc<HashSet<String>>, Refused> {
        if let Some(known) = self.contents.get(digest) {
            return Ok(known);
        }
        let registry = self.site_registry()?;
        let Some(manifest) = registry.manifest(repository, digest).await? else { return Ok(Arc::default()) };
        let mut all = HashSet::new();
        match manifest {
            Manifest::Image { blobs } => all.extend(blobs.into_iter().map(|blob| blob.digest)),
            Manifest::Index { manifests } => {
                for digest in manifests.into_iter().take(INDEX_MAX) {
                    if let Some(Manifest::Image { blobs }) = registry.manifest(repository, &digest).await? {
                        all.extend(blobs.into_iter().map(|blob| blob.digest));
                        all.insert(digest);
                    }
                }
            }
        }
        let all = Arc::new(all);
        self.contents.keep(digest, Arc::clone(&all));
        Ok(all)
    }

    /// The manifests that images of a repository need, without those of one that is to go.
    pub(crate) async fn needed_manifests(
        &self,
        repository: &str,
        without: &ImageId,
    ) -> Result<Vec<String>, Refused> {
        let rows = self.store.images_in(repository).await?;
        let stays = |row: &ImageRow| row.id != *without && row.state != ImageState::Deleting;
        let mut needed = Vec::new();
        for digest in rows.into_iter().filter(stays).filter_map(|row| row.digest) {
            // An index is nothing without the images that it names.
            if let Some(Manifest::Index { manifests }) =
                self.site_registry()?.manifest(repository, &digest).await?
            {
                needed.extend(manifests);
            }
            needed.push(digest);
        }
        Ok(needed)
    }

    /// Lets an upload into a repository begin.
    pub(crate) fn may_push(&self, caller: &Caller, repository: &str) -> Result<(), Refused> {
        let name = own_name(caller, repository).ok_or_else(|| self.not_yours(caller))?;
        check_name(repository, name, "latest")?;
        Ok(())
    }

    /// The most bytes that an upload may have, and why it cannot have more; `None` where nobody limits it. What has
    /// been uploaded is counted by [`App::uploaded`]: this keeps what is too much from being sent at all.
    pub(crate) async fn upload_room(&self, caller: &Caller) -> Result<Option<(u64, NoRoom)>, Refused> {
        let user = self.store.image_room(QuotaOwner::User(caller.user.id), self.config.image_quota_bytes);
        let group = self.store.image_room(QuotaOwner::Group(caller.user.group_id), None);
        let rooms = [(None, user.await?), (Some(caller.user.group.to_string()), group.await?)];
        let left = rooms.into_iter().filter_map(|(group, ImageRoom { used, limit })| {
            let (limit, left) = (limit?, limit?.saturating_sub(used));
            Some((left, NoRoom { group, wanted: left.saturating_add(1), used, limit, largest: Vec::new() }))
        });
        Ok(left.min_by_key(|(left, _)| *left))
    }

    /// Counts a blob that the registry has taken for the caller. One for which there is no room is not theirs.
    pub(crate) async fn uploaded(
        &self,
        caller: &Caller,
        repository: &str,
        digest: &str,
    ) -> Result<(), Refused> {
        let registry = self.site_registry()?;
        let bytes = registry.blob_bytes(repository, digest).await?;
        let site = self.config.image_quota_bytes;
        match self.store.add_upload(caller.user.id, digest, bytes, site).await? {
            None => Ok(()),
            Some(refused) => {
                registry.forget_blob(repository, digest).await?;
                Err(refused.into())
            }
        }
    }

    /// What a manifest is about, before the registry gets it.
    pub(crate) async fn check_manifest(
        &self,
        caller: &Caller,
        repository: &str,
        tag: &str,
        bytes: &[u8],
    ) -> Result<Size, Refused> {
        let name = own_name(caller, repository).ok_or_else(|| self.not_yours(caller))?;
        check_name(repository, name, tag)?;
        let before = self.store.images_in(repository).await?.into_iter().find(|row| row.tag == tag);
        if before.as_ref().is_some_and(|row| row.state.is_passing()) {
            return Err(Refused::Busy);
        }
        let manifest = Manifest::read(bytes).map_err(|error| Refused::BadManifest(error.to_string()))?;
        self.size_of(repository, manifest).await
    }

    pub(super) async fn size_of(&self, repository: &str, manifest: Manifest) -> Result<Size, Refused> {
        // An image that holds a blob twice is stored once.
        let size = |blobs: Vec<Blob>| {
            let layers = u32::try_from(blobs.len().saturating_sub(1)).unwrap_or(u32::MAX);
            (layers, blobs.into_iter().map(|blob| (blob.digest, blob.size_bytes)).collect::<HashMap<_, _>>())
        };
        let (layers, blobs) = match manifest {
            Manifest::Image { blobs } => size(blobs),
            Manifest::Index { manifests } => {
                if manifests.len() > INDEX_MAX {
                    return Err(Refused::BadManifest(format!("it names more than {INDEX_MAX} images")));
                }
                let (mut most, mut all) = (0, HashMap::new());
                for digest in manifests {
                    let Some(Manifest::Image { blobs }) =
                        self.site_registry()?.manifest(repository, &digest).await?
                    else {
                        return Err(Refused::BadManifest(format!("`{digest}` was not pushed before")));
                    };
                    let (layers, blobs) = size(blobs);
                    most = most.max(layers);
                    all.extend(blobs);
                }
                (most, all)
            }
        };
        let bytes = blobs.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        if bytes > BYTES_MAX {
            return Err(Refused::BadManifest("it is larger than anything can be".to_owned()));
        }
        Ok(Size { bytes, layers, blobs: blobs.into_iter().collect() })
    }

    /// Lists an image that the registry has taken; to be called with [`App::listing`] held since before it was asked.
    pub(crate) async fn pushed(
        &self,
        caller: &Caller,
        repository: &str,
        tag: &str,
        digest: &str,
        size: Size,
    ) -> Result<(), Refused> {
        let name = own_name(caller, repository).ok_or_else(|| self.not_yours(caller))?;
        let new = PushedImage {
            user: caller.user.id,
            repository,
            name,
            tag,
            digest,
            size_bytes: size.bytes,
            layers: size.layers,
            blobs: &size.blobs,
        };
        let line = caller.line("image.push", format!("{repository}:{tag}")).with("digest", digest);
        match self.store.put_pushed_image(&new, self.config.image_quota_bytes, &line).await? {
            Pushed::Yes(id) => {
                if let Some(row) = self.store.image(&id).await? {
                    self.announce_image(&row);
                }
                Ok(())
            }
            Pushed::NoRoom(refused) => Err(refused.into()),
            Pushed::Busy => Err(Refused::Busy),
            Pushed::UserGone => Err(Error::Unauthenticated.into()),
        }
    }

    /// Deletes the images of a manifest, as the console does.
    pub(crate) async fn delete_manifest(
        &self,
        caller: &Caller,
        repository: &str,
        reference: Reference<'_>,
    ) -> Result<(), Refused> {
        own_name(caller, repository).ok_or_else(|| self.not_yours(caller))?;
        let mut rows = self.store.images_in(repository).await?;
        rows.retain(|row| match reference {
            Reference::Tag(tag) => row.tag == tag,
            Reference::Digest(digest) => row.digest.as_deref() == Some(digest),
        });
        if rows.is_empty() {
            return Err(Refused::Nothing);
        }
        for row in rows {
            self.delete_image(caller, row.id.as_str()).await?;
        }
        Ok(())
    }

    /// The tags in a repository that the caller may use.
    pub(crate) async fn tags(&self, caller: &Caller, repository: &str) -> Result<Vec<String>, Refused> {
        let tags: Vec<_> = self.usable(caller, repository).await?.into_iter().map(|row| row.tag).collect();
        if tags.is_empty() { Err(Refused::Nothing) } else { Ok(tags) }
    }

    /// The repositories of which the caller may use something, in order.
    pub(crate) async fn repositories(&self, caller: &Caller) -> Result<Vec<String>, Error> {
        let mut rows = self.store.saved_images().await?;
        rows.retain(|row| row.state == ImageState::Ready && policy::may_use_image(caller, row));
        let mut names: Vec<_> = rows.into_iter().map(|row| row.repository).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn not_yours(&self, caller: &Caller) -> Refused {
        Refused::NotYours { yours: format!("{}/{}", self.registry_name(), caller.user.home) }
    }
}

/// What an image takes in the registry.
#[derive(Debug, Clone)]
pub(crate) struct Size {
    bytes: u64,
    layers: u32,
    blobs: Vec<(String, u64)>,
}

/// The image's name in a repository of the caller's own.
fn own_name<'a>(caller: &Caller, repository: &'a str) -> Option<&'a str> {
    let (home, name) = repository.split_once('/')?;
    (home == caller.user.home && !name.contains('/')).then_some(name)
}

impl Contents {
    fn get(&self, digest: &str) -> Option<Arc<HashSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(digest).cloned()
    }

    fn keep(&self, digest: &str, contents: Arc<HashSet<String>>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(digest.to_owned(), contents);
    }
}
