//! Giving back the room of images that are gone.
//!
//! What is needed is what the images that are listed are made of, what instances and jobs were made from, and what
//! somebody has uploaded and not named yet. While the cluster removes the rest, nobody lists an image, saves one or
//! renames one: so nothing that is needed a moment later is among what goes. It can be cut off anywhere.
//!
//! Images that were made in times of which the store has no memory are not for it to give up: it was put back from a
//! backup. They go only when an admin says so.

use std::collections::HashSet;

use envd_api::save::{Collect, Collected, Span};
use gateway_api::image::{CollectImages, CollectedImages, ImageState};
use jiff::{SignedDuration, Timestamp};
use oci_spec::distribution::Reference;

use super::App;
use crate::{
    auth::{Caller, policy},
    error::Error,
    store::Line,
};

/// What was written later than this may be part of a push that goes on.
const OLD: SignedDuration = SignedDuration::from_hours(24);

impl App {
    pub(crate) async fn collect_images(
        &self,
        caller: &Caller,
        wanted: &CollectImages,
    ) -> Result<CollectedImages, Error> {
        policy::administer(caller)?;
        let older_than = wanted
            .older_than_seconds
            .map_or(OLD, |seconds| SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)));
        let line = caller.line("image.collect", "registry");
        let line = if wanted.unknown { line.with("unknown", "true") } else { line };
        let spare = if wanted.unknown { Vec::new() } else { self.store.unknown_times().await? };
        self.collect(older_than, spare, wanted.dry_run, line).await
    }

    /// What is done by itself from time to time.
    pub(super) async fn collect_old_images(&self) -> Result<(), Error> {
        if self.config.registry.is_none() {
            return Ok(());
        }
        let spare = self.store.unknown_times().await?;
        self.collect(OLD, spare, false, Line::by_system("image.collect", "registry")).await.map(drop)
    }

    async fn collect(
        &self,
        older_than: SignedDuration,
        spare: Vec<Span>,
        dry_run: bool,
        line: Line,
    ) -> Result<CollectedImages, Error> {
        let _alone = self.listing.write().await;
        if !dry_run {
            let then = Timestamp::now().saturating_sub(older_than).unwrap_or(Timestamp::MIN);
            self.store.forget_uploads(then).await?;
        }
        let rows = self.store.saved_images().await?;
        if let Some(row) = rows.iter().find(|row| matches!(row.state, ImageState::Saving { .. })) {
            let name = row.instance.as_ref().map(|(_, name)| name.to_string()).unwrap_or_default();
            return Err(Error::BeingSaved { name });
        }
        let mut places: HashSet<(String, String)> = self.images_in_use().await?;
        let listed = rows.iter().filter(|row| row.state != ImageState::Deleting);
        places.extend(listed.clone().filter_map(|row| Some((row.repository.clone(), row.digest.clone()?))));
        let references = listed.map(|row| format!("/{}:{}", row.repository, row.tag)).collect();
        let mut needed: HashSet<_> = self.store.uploads().await?.into_iter().collect();
        needed.extend(self.store.counted_blobs().await?);
        for (repository, digest) in places {
            let contents = self.contents_of(&repository, &digest).await;
            needed.extend(contents.map_err(|refused| self.no_answer(&repository, refused))?.iter().cloned());
            needed.insert(digest);
        }
        let needed: Vec<_> = needed.into_iter().collect();
        let older_than_seconds = older_than.as_secs().unsigned_abs();
        let failed = rows.iter().filter(|row| matches!(row.state, ImageState::Failed { .. }));
        let saves = Some(failed.map(|row| row.id.clone()).collect());
        let collect = Collect { needed, references, older_than_seconds, saves, spare, dry_run };
        let mut collected = Collected::default();
        for cluster in self.clusters.iter() {
            let one = cluster.envd.collect(&collect).await;
            let one = one.map_err(|error| Error::ClusterUnreachable(error.into()))?;
            collected.blobs += one.blobs;
            collected.blob_bytes += one.blob_bytes;
            collected.images.extend(one.images);
            collected.image_bytes += one.image_bytes;
            collected.has_files |= one.has_files;
        }
        if !dry_run && collected.blobs + collected.images.len() as u64 > 0 {
            let line = line.with("blobs", collected.blobs.to_string());
            self.store.audit(&line.with("bytes", collected.blob_bytes.to_string())).await?;
        }
        Ok(CollectedImages {
            blobs: collected.blobs,
            blob_bytes: collected.blob_bytes,
            images: collected.images,
            image_bytes: collected.image_bytes,
            own_registry: collected.has_files,
        })
    }

    /// What instances, and jobs that are not over, were made from: where it is in the site's registry, and its digest.
    async fn images_in_use(&self) -> Result<HashSet<(String, String)>, Error> {
        let instances = self.store.instances().await?;
        let jobs = self.store.jobs_under_way().await?;
        let of_jobs = jobs.iter().flat_map(|job| &job.spec.roles).filter_map(|role| role.image.as_deref());
        let all = instances.iter().map(|instance| instance.spec.image.as_str()).chain(of_jobs);
        let own = self.config.registry.as_deref();
        let place = |image: &str| {
            let reference = image.parse::<Reference>().ok()?;
            let digest = reference.digest()?.to_owned();
            (Some(reference.registry()) == own).then(|| (reference.repository().to_owned(), digest))
        };
        Ok(all.filter_map(place).collect())
    }
}
