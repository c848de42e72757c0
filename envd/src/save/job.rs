//! One save, from the first look to the last check. Killed anywhere, it goes on from what its journal says.

use std::{
    fs::File,
    io::{self, BufWriter},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use envd_api::save::{PutSave, SaveState, SavedImage};
use gateway_api::packages::Packages;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    SaveError, base,
    image::{self, Blob, Document},
    journal::{Journal, Journals, Known, Last, Written},
    layer::{Layer, content_bytes},
    load::{self, Bundle},
    pack::Packer,
    packages,
    registry::Registry,
    rules::Rules,
    snapshot::{Difference, Snapshot},
    still::Still,
    walk::{self, Listing},
};
use crate::{
    node::World,
    runtime::{BaseImage, Container, Phase, Runtime, SaveSource},
};

/// Engines refuse images with more layers than about this many. A save that would come near starts over from the base.
const LAYERS_MAX: usize = 100;

/// All that a save needs.
#[derive(Debug)]
pub(super) struct Job<R> {
    pub(super) world: Arc<World<R>>,
    pub(super) registry: Registry,
    pub(super) journals: Journals,
    pub(super) journal: Journal,
    pub(super) request: PutSave,
    pub(super) state: watch::Sender<SaveState>,
    pub(super) cancelled: CancellationToken,
}

/// What the container is read with, off the threads that everyone shares.
struct Reading {
    upper: PathBuf,
    kept: Vec<PathBuf>,
    lowers: Vec<PathBuf>,
    pid: Option<u32>,
    rules: Rules,
    earlier: Option<(Last, Snapshot)>,
    journal: Journal,
    base: BaseImage,
    container: String,
    state: watch::Sender<SaveState>,
    cancelled: CancellationToken,
}

impl<R: Runtime> Job<R> {
    pub(super) async fn run(self) -> Result<SavedImage, SaveError> {
        if let Some(done) = self.journal.done()? {
            return Ok(done);
        }
        let written = match self.journal.written()? {
            Some(written) => written,
            None => self.read().await?,
        };
        let layers = self.push_layers(&written).await?;
        let config = image::config(&written.base, &layers, written.created);
        let manifest = image::manifest(&config, &layers, &self.request.provenance, written.created);
        let PutSave { repository, tag, .. } = &self.request;
        self.registry.push_bytes(repository, config.bytes.clone(), &config.digest).await?;
        self.check_not_cancelled()?;
        self.registry.push_manifest(repository, tag, manifest.bytes.clone()).await?;
        self.state.send_replace(SaveState::Verifying);
        self.verify(&layers, &config, &manifest).await?;
        self.tell_engine(&written, &layers, &config).await;
        self.journals.note_config(&manifest.digest, &config.digest)?;
        self.finish(written, &layers, &config, &manifest)
    }

    fn check_not_cancelled(&self) -> Result<(), SaveError> {
        if self.cancelled.is_cancelled() { Err(SaveError::Cancelled) } else { Ok(()) }
    }

    /// Reads the container's changes into the journal.
    async fn read(&self) -> Result<Written, SaveError> {
        self.state.send_replace(SaveState::Looking);
        let container = self.container().await?;
        let SaveSource { upper, kept, lowers, pid, mounts, base } =
            self.world.runtime.save_source(&container).await?;
        let upper = upper.ok_or(SaveError::NoUpper)?;
        let rules = Rules::new(&mounts, &self.request.exclude)?;
        let earlier = self.earlier(&container.id, base.diff_ids.len()).await?;
        let reading = Reading {
            upper,
            kept,
            lowers,
            pid,
            rules,
            earlier,
            journal: self.journal.clone(),
            base,
            container: container.id.clone(),
            state: self.state.clone(),
            cancelled: self.cancelled.clone(),
        };
        let written = self.world.tasks.blocking(move || reading.run()).await;
        let written = written.unwrap_or_else(|| Err(io::Error::other("it panicked").into()))?;
        // A removal that began before the save takes files away while they are read: they would be missing unsaid.
        if self.container().await?.id != container.id {
            return Err(SaveError::InstanceGone);
        }
        self.journal.write_layer(&written)?;
        Ok(written)
    }

    /// The container that is saved, unless it is on its way out.
    async fn container(&self) -> Result<Container, SaveError> {
        let found = self.world.runtime.find(&self.request.instance).await?;
        found.filter(|container| container.phase != Phase::Broken).ok_or(SaveError::InstanceGone)
    }

    /// The last save of the same container, if the next one can lie on top of it.
    async fn earlier(
        &self,
        container: &str,
        base_layers: usize,
    ) -> Result<Option<(Last, Snapshot)>, SaveError> {
        let instance = &self.request.instance;
        let Some(last) = self.journals.last(instance) else { return Ok(None) };
        let is_same = last.container == container && last.exclude == self.request.exclude;
        if !is_same || base_layers + last.layers.len() + 1 > LAYERS_MAX {
            return Ok(None);
        }
        for layer in &last.layers {
            let PutSave { repository, .. } = &self.request;
            if base::find(&self.registry, &self.journals, repository, &layer.diff_id).await?.is_none() {
                return Ok(None);
            }
        }
        let files = self.journals.last_path(instance).with_extension("files");
        let read = self.world.tasks.blocking(move || Snapshot::read(&files)).await;
        Ok(read.and_then(Result::ok).map(|snapshot| (last, snapshot)))
    }

    async fn push_layers(&self, written: &Written) -> Result<Vec<Blob>, SaveError> {
        let PutSave { repository, .. } = &self.request;
        let new = self.new_layers(written);
        let total_bytes = new.iter().map(|(blob, ..)| blob.size_bytes).sum();
        self.state.send_replace(SaveState::Pushing { done_bytes: 0, total_bytes });
        let (registry, journals) = (&self.registry, &self.journals);
        let base = base::ensure(&self.world, registry, journals, &self.journal, repository, &written.base);
        let mut layers = self.unless_cancelled(base).await?;
        for earlier in &written.earlier {
            let found = base::find(registry, journals, repository, &earlier.diff_id).await?;
            layers.push(
                found.ok_or_else(|| SaveError::Engine("a layer of an earlier save is gone".to_owned()))?,
            );
        }
        let mut before = 0;
        for (layer, file, _) in new {
            if !registry.has_blob(repository, &layer.digest).await? {
                let state = self.state.clone();
                let progress = move |done_bytes| {
                    state.send_replace(SaveState::Pushing { done_bytes: before + done_bytes, total_bytes });
                };
                let push = registry.push_file(repository, &file, &layer.digest, layer.size_bytes, progress);
                self.unless_cancelled(async { Ok(push.await?) }).await?;
            }
            before += layer.size_bytes;
            journals.note(&Known { blob: layer.clone(), repository: repository.clone() })?;
            layers.push(layer);
        }
        Ok(layers)
    }

    /// The layers that are whole in the journal: each with its file and its bytes before compression, the lowest first.
    fn new_layers(&self, written: &Written) -> Vec<(Blob, PathBuf, u64)> {
        let kept = written.kept.iter().enumerate();
        let kept =
            kept.map(|(number, (blob, raw_bytes))| (blob.clone(), self.journal.kept(number), *raw_bytes));
        let own = written.layer.iter().map(|blob| (blob.clone(), self.journal.blob(), written.raw_bytes));
        kept.chain(own).collect()
    }

    async fn unless_cancelled<T>(
        &self,
        work: impl Future<Output = Result<T, SaveError>>,
    ) -> Result<T, SaveError> {
        tokio::select! {
            done = work => done,
            () = self.cancelled.cancelled() => Err(SaveError::Cancelled),
        }
    }

    /// Asks for all of it again, as whoever pulls it will.
    async fn verify(&self, layers: &[Blob], config: &Document, manifest: &Document) -> Result<(), SaveError> {
        let PutSave { repository, .. } = &self.request;
        let found = self.registry.manifest(repository, &manifest.digest).await?;
        if found != manifest.bytes {
            return Err(SaveError::Engine("the registry has another manifest than it was given".to_owned()));
        }
        for digest in layers.iter().map(|layer| &layer.digest).chain([&config.digest]) {
            if !self.registry.has_blob(repository, digest).await? {
                return Err(SaveError::Engine(format!("the registry has lost `{digest}`")));
            }
        }
        Ok(())
    }

    /// Best effort: an engine that cannot be told so downloads the image when it is first used.
    async fn tell_engine(&self, written: &Written, layers: &[Blob], config: &Document) {
        let PutSave { repository, tag, .. } = &self.request;
        let bundle = Bundle {
            config: config.clone(),
            layers: layers.to_vec(),
            new: self.new_layers(written),
            reference: format!("{}/{repository}:{tag}", self.registry.address()),
        };
        let (archive, fill) = load::archive(bundle);
        let (filled, loaded) =
            tokio::join!(self.world.tasks.blocking(fill), self.world.runtime.load(archive));
        let filled = filled.unwrap_or_else(|| Err(io::Error::other("it panicked")));
        if let Err(error) = loaded {
            tracing::warn!(%error, ?filled, image = config.digest, "the engine will download the image itself");
        }
    }

    fn finish(
        self,
        written: Written,
        layers: &[Blob],
        config: &Document,
        manifest: &Document,
    ) -> Result<SavedImage, SaveError> {
        let own = &layers[written.base.diff_ids.len()..];
        let done = SavedImage {
            digest: manifest.digest.clone(),
            config: config.digest.clone(),
            size_bytes: layers.iter().map(|layer| layer.size_bytes).sum(),
            added_bytes: self.new_layers(&written).iter().map(|(blob, ..)| blob.size_bytes).sum(),
            layers: u32::try_from(layers.len()).unwrap_or(u32::MAX),
            frozen_ms: written.frozen_ms,
            packages: written.packages,
        };
        let last = Last {
            container: written.container,
            exclude: self.request.exclude.clone(),
            layers: own.to_vec(),
            repository: self.request.repository.clone(),
        };
        self.journal.finish(&done, &self.request.instance, &last)?;
        Ok(done)
    }
}

impl Reading {
    fn run(self) -> Result<Written, SaveError> {
        let root = walk::open_root(&self.upper)?;
        let (begun, listing, frozen_ms) = self.list(&root)?;
        let (difference, earlier) = self.difference(&listing);
        let (kept, mut packages) = self.kept(earlier.is_none())?;
        packages::add(&mut packages, packages::packages(&root, &listing, &self.lowers));
        let mut written = Written {
            layer: None,
            raw_bytes: 0,
            kept,
            base: self.base.clone(),
            earlier: earlier.unwrap_or_default(),
            container: self.container.clone(),
            created: Timestamp::now(),
            frozen_ms,
            packages,
        };
        let mut snapshot = Snapshot::of(&listing, begun);
        if !difference.is_empty() {
            let (blob, raw_bytes, gone) = self.pack(&self.journal.blob(), &root, &listing, &difference)?;
            (written.layer, written.raw_bytes) = (Some(blob), raw_bytes);
            // What was away for a moment may be back unchanged: the next save must not take it for saved.
            for path in &gone {
                snapshot.forget(path);
            }
        }
        snapshot.write(&self.journal.files())?;
        Ok(written)
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
                let (blob, raw_bytes, _) = self.pack(&file, &root, &listing, &Snapshot::all(&listing))?;
                layers.push((blob, raw_bytes));
            }
        }
        Ok((layers, all))
    }

    /// Lists the files as they are at one moment, when that can be done quickly enough. The first walk only brings what
    /// the second one needs into memory.
    fn list(&self, root: &OwnedFd) -> Result<(SystemTime, Listing, u64), SaveError> {
        let mut still = None;
        if let Some(pid) = self.pid {
            walk::walk(root, &self.rules, false)?;
            still = Still::hold(pid, &self.container).unwrap_or_else(|error| {
                tracing::warn!(%error, "the instance cannot be held still");
                None
            });
        }
        let begun = SystemTime::now();
        let listing = walk::walk(root, &self.rules, false);
        let frozen = still.map(Still::release).transpose()?.unwrap_or_default();
        Ok((begun, listing?, u64::try_from(frozen.as_millis()).unwrap_or(u64::MAX)))
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
        root: &OwnedFd,
        listing: &Listing,
        difference: &Difference,
    ) -> Result<(Blob, u64, Vec<Vec<u8>>), SaveError> {
        let total_bytes = content_bytes(listing, difference);
        // Holes are free here and nowhere else.
        let space = rustix::fs::fstatvfs(root).map_err(io::Error::from)?;
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
        let packer = Packer::new(BufWriter::new(File::create(file)?))?;
        let (packer, gone) = Layer::new(packer, root, progress).write(listing, difference)?;
        let (out, done) = packer.finish()?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        let blob = Blob { diff_id: done.diff_id, digest: done.digest, size_bytes: done.size_bytes };
        Ok((blob, done.raw_bytes, gone))
    }
}
