//! Reading what an instance has changed into the journal of its save, off the threads that everyone shares.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use envd_api::save::SaveState;
use gateway_api::packages::Packages;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    SaveError,
    again::Plan,
    compression::Compression,
    image::Blob,
    journal::{Journal, Last, Written},
    layer::{Layer, content_bytes},
    mapped::Mapped,
    merge::merge,
    pack::Packer,
    packages,
    rules::Rules,
    snapshot::{Difference, Snapshot},
    still::{self, Still},
    walk::{self, Listing},
};
use crate::runtime::BaseImage;

/// How long the walk may take for which an instance stands still, and how often it is tried.
const QUICK: Duration = Duration::from_millis(30);
const TRIES: u32 = 2;

/// What a container is read with.
pub(super) struct Reading {
    pub(super) upper: PathBuf,
    pub(super) kept: Vec<PathBuf>,
    pub(super) lowers: Vec<PathBuf>,
    pub(super) pid: Option<u32>,
    pub(super) rules: Rules,
    pub(super) earlier: Option<(Last, Snapshot)>,
    pub(super) journal: Journal,
    pub(super) base: BaseImage,
    pub(super) layers_max: usize,
    pub(super) compression: Compression,
    pub(super) container: String,
    pub(super) state: watch::Sender<SaveState>,
    pub(super) cancelled: CancellationToken,
}

/// The instance's files as they were at one moment.
struct Moment {
    begun: SystemTime,
    mapped: Mapped,
    listing: Listing,
    frozen_ms: u64,
}

impl Reading {
    pub(super) fn run(self) -> Result<Written, SaveError> {
        let root = walk::open_root(&self.upper)?;
        let Moment { begun, mapped, listing, frozen_ms } = self.list(&root)?;
        let (difference, earlier) = self.difference(&listing);
        let base_layers = self.base_layers(earlier.is_some());
        let is_merge = earlier.is_none() && base_layers < self.base.diff_ids.len();
        let (kept, mut packages) = self.kept(earlier.is_none() && !is_merge)?;
        packages::add(&mut packages, packages::packages(&root, &listing, &self.lowers));
        let mut base = self.base.clone();
        base.diff_ids.truncate(base_layers);
        let mut written = Written {
            layer: None,
            raw_bytes: 0,
            kept,
            base,
            earlier: earlier.unwrap_or_default(),
            container: self.container.clone(),
            created: Timestamp::now(),
            frozen_ms,
            packages,
        };
        let mut snapshot = Snapshot::of(&listing, begun, &mapped);
        if is_merge || !difference.is_empty() {
            let file = self.journal.blob();
            let (blob, raw_bytes, gone) = if is_merge {
                let (roots, merged) = self.merged(root, listing, base_layers)?;
                self.pack(&file, &roots, &merged, &Snapshot::all(&merged))?
            } else {
                self.pack(&file, &[root], &listing, &difference)?
            };
            (written.layer, written.raw_bytes) = (Some(blob), raw_bytes);
            // What was away for a moment may be back unchanged: the next save must not take it for saved.
            for path in &gone {
                snapshot.forget(path);
            }
        }
        snapshot.write(&self.journal.files())?;
        Ok(written)
    }

    /// How many of the base's layers the image lies on: those that an earlier save does, or as many as leave room.
    fn base_layers(&self, on_earlier: bool) -> usize {
        let all = self.base.diff_ids.len();
        if on_earlier {
            return self.earlier.as_ref().and_then(|(last, _)| last.base_layers).unwrap_or(all);
        }
        // Where the engine does not say which directory is which layer, nothing can be merged.
        let is_known = self.lowers.len() == all + 1;
        if is_known && all + self.kept.len() + 1 > self.layers_max {
            all.min(self.layers_max / 2)
        } else {
            all
        }
    }

    /// What the base's layers above so many, and all that has changed since, say together.
    fn merged(
        &self,
        root: OwnedFd,
        listing: Listing,
        base_layers: usize,
    ) -> Result<(Vec<OwnedFd>, Listing), SaveError> {
        let (mut roots, mut listings) = (Vec::new(), Vec::new());
        let merged = self.base.diff_ids.len() - base_layers;
        // The first of them is the engine's own.
        for directory in self.lowers[1..=merged].iter().rev() {
            let root = walk::open_root(directory)?;
            listings.push(walk::walk(&root, &Rules::none(), false)?);
            roots.push(root);
        }
        for directory in &self.kept {
            let root = walk::open_root(directory)?;
            listings.push(walk::walk(&root, &self.rules, false)?);
            roots.push(root);
        }
        roots.push(root);
        listings.push(listing);
        Ok((roots, merge(listings)))
    }

    /// What had changed before the container was made anew, by the same rules; as layers if these are `wanted`, and not
    /// in an earlier save.
    fn kept(&self, wanted: bool) -> Result<(Vec<(Blob, u64)>, Packages), SaveError> {
        let (mut layers, mut all) = (Vec::new(), Packages::default());
        for (number, directory) in self.kept.iter().enumerate() {
            let root = walk::open_root(directory)?;
            let listing = walk::walk(&root, &self.rules, false)?;
            packages::add(&mut all, packages::packages(&root, &listing, &self.lowers));
            if wanted {
                let file = self.journal.kept(number);
                let (blob, raw_bytes, _) = self.pack(&file, &[root], &listing, &Snapshot::all(&listing))?;
                layers.push((blob, raw_bytes));
            }
        }
        Ok((layers, all))
    }

    /// Lists the files as they are at one moment, when that can be done quickly enough: a first walk takes its time, and
    /// a second one that relies on it is made while the instance stands still. Where that takes too long the instance goes
    /// on, and both are made once more; the last try comes to its end also when the instance goes on before.
    fn list(&self, root: &OwnedFd) -> Result<Moment, SaveError> {
        let Some(pid) = self.pid else {
            let begun = SystemTime::now();
            let listing = walk::walk(root, &self.rules, false)?;
            return Ok(Moment { begun, mapped: Mapped::default(), listing, frozen_ms: 0 });
        };
        let (mut tries, mut frozen_ms) = (0, 0);
        loop {
            tries += 1;
            let walked = SystemTime::now();
            let before = walk::walk(root, &self.rules, false)?;
            let plan = Plan::new(&self.rules, &before, walked);
            let begun = SystemTime::now();
            let mapped = if let Some(group) = still::group(pid, &self.container)? {
                Mapped::by(&group)?
            } else {
                // Without knowing who has what mapped: what is on the disk cannot change without a trace.
                rustix::fs::syncfs(root).map_err(io::Error::from)?;
                Mapped::default()
            };
            let still = self.hold(pid);
            let until = still.as_ref().filter(|_| tries < TRIES).map(|_| Instant::now() + QUICK);
            let sight = plan.look(root, until);
            let frozen = still.map(Still::release).transpose()?.unwrap_or_default();
            frozen_ms = u64::try_from(frozen.as_millis()).unwrap_or(u64::MAX).max(frozen_ms);
            if let Some(sight) = sight? {
                return Ok(Moment { begun, mapped, listing: sight.listing(root)?, frozen_ms });
            }
            tracing::info!(files = before.found.len(), "listing an instance takes long, and is tried again");
        }
    }

    fn hold(&self, pid: u32) -> Option<Still> {
        match Still::hold(pid, &self.container, self.journal.still()) {
            Ok(Some(still)) => return Some(still),
            Ok(None) => {
                tracing::warn!("the instance is not held still: its control group is not to be seen");
            }
            Err(error) => tracing::warn!(%error, "the instance cannot be held still"),
        }
        None
    }

    /// What a layer has to say, and the layers of earlier saves that it lies on, if it does.
    fn difference(&self, listing: &Listing) -> (Difference, Option<Vec<Blob>>) {
        let on_top = self
            .earlier
            .as_ref()
            .and_then(|(last, snapshot)| Some((snapshot.difference(listing)?, Some(last.layers.clone()))));
        on_top.unwrap_or_else(|| (Snapshot::all(listing), None))
    }

    fn pack(
        &self,
        file: &Path,
        roots: &[OwnedFd],
        listing: &Listing,
        difference: &Difference,
    ) -> Result<(Blob, u64, Vec<Vec<u8>>), SaveError> {
        let total_bytes = content_bytes(listing, difference);
        // Holes are free here and nowhere else.
        let space = rustix::fs::fstatvfs(&roots[0]).map_err(io::Error::from)?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        if total_bytes > free {
            return Err(SaveError::TooLarge { free });
        }
        let mut done_bytes = 0;
        let progress = |bytes: u64| {
            if self.cancelled.is_cancelled() {
                return Err(io::Error::other(SaveError::Cancelled));
            }
            done_bytes += bytes;
            if done_bytes > free {
                return Err(io::Error::other(SaveError::TooLarge { free }));
            }
            self.state
                .send_replace(SaveState::Packing { done_bytes: done_bytes.min(total_bytes), total_bytes });
            Ok(())
        };
        let packer = Packer::create(file, self.compression)?;
        let (packer, gone) = Layer::new(packer, roots, progress).write(listing, difference)?;
        let (blob, raw_bytes) = packer.finish()?.into_blob();
        Ok((blob, raw_bytes, gone))
    }
}
