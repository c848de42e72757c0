//! One save, from the first look to the last check. Killed anywhere, it goes on from what its journal says.

use std::{fs::File, io, path::PathBuf, sync::Arc, time::Duration};

use envd_api::save::{PutSave, SaveState, SavedImage, SavedLayer};
use futures_util::future::try_join_all;
use tokio::{
    sync::{OnceCell, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    SaveError,
    base::{self, Asked},
    compression::Compression,
    image::{self, Blob, Document},
    journal::{Journal, Journals, Known, Last, Written},
    load::{self, Bundle, Loads},
    pack,
    reading::Reading,
    registry::Registry,
    rules::Rules,
    snapshot::Snapshot,
};
use crate::{
    node::World,
    runtime::{Container, Phase, Runtime, SaveSource},
};

/// How long a save waits for what it has asked the registry ahead of time.
const AHEAD: Duration = Duration::from_secs(1);

/// All that a save needs.
#[derive(Debug)]
pub(super) struct Job<R> {
    pub(super) world: Arc<World<R>>,
    pub(super) registry: Registry,
    pub(super) journals: Journals,
    /// The most layers that the image gets.
    pub(super) layers_max: usize,
    /// How layers are compressed; by what the engine understands if nobody has said it.
    pub(super) compression: OnceCell<Compression>,
    pub(super) loads: Loads,
    /// What the registry said of the layers below the new ones.
    pub(super) asked: Asked,
    pub(super) journal: Journal,
    pub(super) request: PutSave,
    pub(super) state: watch::Sender<SaveState>,
    pub(super) cancelled: CancellationToken,
}

impl<R: Runtime> Job<R> {
    pub(super) async fn run(self) -> Result<SavedImage, SaveError> {
        if let Some(done) = self.journal.done()? {
            return Ok(done);
        }
        let (mut written, mut is_new) = match self.whole().await? {
            Some(written) => (written, false),
            None => (self.read().await?, true),
        };
        let layers = match self.layers(&written).await {
            // What it lies on was removed since it was read.
            Err(SaveError::Baseless) => {
                (written, is_new) = (self.read().await?, true);
                self.layers(&written).await?
            }
            layers => layers?,
        };
        let config = image::config(&written.base, &layers, written.created);
        let manifest = image::manifest(&config, &layers, &self.request.provenance, written.created);
        let PutSave { repository, tag, .. } = &self.request;
        let push_config =
            async { Ok(self.registry.push_bytes(repository, config.bytes.clone(), &config.digest).await?) };
        let push = async { tokio::try_join!(self.push_layers(&written, is_new), push_config) };
        self.unless_cancelled(Box::pin(push)).await?;
        self.check_not_cancelled()?;
        self.registry.push_manifest(repository, tag, manifest.bytes.clone()).await?;
        self.state.send_replace(SaveState::Verifying);
        self.verify(&layers, &config, &manifest).await?;
        self.tell_engine(&written, &layers, &config)?;
        self.journals.note_config(&manifest.digest, &config.digest)?;
        self.finish(written, &layers, &config, &manifest)
    }

    fn check_not_cancelled(&self) -> Result<(), SaveError> {
        if self.cancelled.is_cancelled() { Err(SaveError::Cancelled) } else { Ok(()) }
    }

    /// What an interrupted save has made, if it is as it was written: nobody waits for the disk to have it, so a machine that
    /// loses its power may lose some of it.
    async fn whole(&self) -> Result<Option<Written>, SaveError> {
        let Some(written) = self.journal.written()? else { return Ok(None) };
        let layers = self.new_layers(&written);
        let is_whole = move || {
            layers
                .iter()
                .all(|(blob, file, _)| pack::digest_of(file).is_ok_and(|digest| digest == blob.digest))
        };
        let is_whole = self.world.tasks.blocking(is_whole).await.unwrap_or(false);
        Ok(is_whole.then_some(written))
    }

    /// Reads the container's changes into the journal.
    async fn read(&self) -> Result<Written, SaveError> {
        self.state.send_replace(SaveState::Looking);
        let container = self.container().await?;
        let SaveSource { upper, kept, lowers, pid, mounts, base } =
            self.world.runtime.save_source(&container).await?;
        let rules = Rules::new(&mounts, &self.request.exclude)?;
        let Some(upper) = upper else {
            let written = self.read_exported(&container, base, rules).await?;
            return self.keep(written).await;
        };
        let earlier = self.earlier(&container.id, base.diff_ids.len()).await?;
        let below = base.diff_ids.clone();
        let reading = Reading {
            upper,
            kept,
            lowers,
            pid,
            rules,
            earlier,
            journal: self.journal.clone(),
            base,
            layers_max: self.layers_max,
            compression: self.compression().await,
            container: container.id.clone(),
            state: self.state.clone(),
            cancelled: self.cancelled.clone(),
        };
        let ahead = self.ask_ahead(&below);
        let (written, ()) = tokio::join!(self.world.tasks.blocking(move || reading.run()), ahead);
        let written = written.unwrap_or_else(|| Err(io::Error::other("it panicked").into()))?;
        self.keep(written).await
    }

    /// Asks the registry for the layers of the base while others read. Where it does not answer it is asked once more, when
    /// that matters.
    async fn ask_ahead(&self, diff_ids: &[String]) {
        let (compression, repository) = (self.compression().await, &self.request.repository);
        let (registry, journals) = (&self.registry, &self.journals);
        let found = base::find_all(registry, journals, repository, diff_ids, compression, &self.asked);
        let _ = timeout(AHEAD, found).await;
    }

    /// Writes down that the layer is whole.
    async fn keep(&self, written: Written) -> Result<Written, SaveError> {
        // A removal that began before the save takes files away while they are read: they would be missing unsaid.
        if self.container().await?.id != written.container {
            return Err(SaveError::InstanceGone);
        }
        self.journal.write_layer(&written)?;
        Ok(written)
    }

    /// How layers are compressed. Where the engine does not say what it is, in the way that all understand.
    pub(super) async fn compression(&self) -> Compression {
        let ask = || async {
            match self.world.runtime.unpacks_zstd().await {
                Ok(true) => Compression::Zstd,
                Ok(false) => Compression::Gzip,
                Err(error) => {
                    tracing::warn!(%error, "layers are compressed with gzip");
                    Compression::Gzip
                }
            }
        };
        *self.compression.get_or_init(ask).await
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
        let below = last.base_layers.unwrap_or(base_layers) + last.layers.len();
        if !is_same || below + 1 > self.layers_max {
            return Ok(None);
        }
        if self.find(&last.layers).await?.is_none() {
            return Ok(None);
        }
        let files = self.journals.last_path(instance).with_extension("files");
        let read = self.world.tasks.blocking(move || Snapshot::read(&files)).await;
        Ok(read.and_then(Result::ok).map(|snapshot| (last, snapshot)))
    }

    /// Layers of earlier saves as the registry has them; `None` if it lacks one.
    async fn find(&self, layers: &[Blob]) -> Result<Option<Vec<Blob>>, SaveError> {
        let (diff_ids, compression) = (layers.iter().map(|layer| &layer.diff_id), self.compression().await);
        let PutSave { repository, .. } = &self.request;
        let found =
            base::find_all(&self.registry, &self.journals, repository, diff_ids, compression, &self.asked);
        Ok(found.await?.into_iter().collect())
    }

    /// All layers of the image. The registry has them, apart from the new ones.
    async fn layers(&self, written: &Written) -> Result<Vec<Blob>, SaveError> {
        let PutSave { repository, .. } = &self.request;
        let new = self.new_layers(written);
        let total_bytes = new.iter().map(|(blob, ..)| blob.size_bytes).sum();
        self.state.send_replace(SaveState::Pushing { done_bytes: 0, total_bytes });
        let base = base::ensure(
            &self.world,
            &self.registry,
            &self.journals,
            &self.journal,
            repository,
            &written.base,
            self.compression().await,
            &self.asked,
        );
        let mut layers = self.unless_cancelled(base).await?;
        layers.extend(self.find(&written.earlier).await?.ok_or(SaveError::Baseless)?);
        layers.extend(new.into_iter().map(|(blob, ..)| blob));
        Ok(layers)
    }

    /// What was read just now is new to the registry, and it is not asked whether it has it.
    async fn push_layers(&self, written: &Written, is_new: bool) -> Result<(), SaveError> {
        let PutSave { repository, .. } = &self.request;
        let (registry, new) = (&self.registry, self.new_layers(written));
        let total_bytes = new.iter().map(|(blob, ..)| blob.size_bytes).sum();
        let mut before = 0;
        for (layer, file, _) in new {
            let is_own = file == self.journal.blob();
            if (is_own && is_new) || !registry.has_blob(repository, &layer.digest).await? {
                let state = self.state.clone();
                let progress = move |done_bytes| {
                    state.send_replace(SaveState::Pushing { done_bytes: before + done_bytes, total_bytes });
                };
                registry.push_file(repository, &file, &layer.digest, layer.size_bytes, progress).await?;
            }
            before += layer.size_bytes;
            self.journals.note(&Known { blob: layer, repository: repository.clone() })?;
        }
        Ok(())
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

    /// Asks for all of it, as whoever pulls it will: for what lies below only where this save has not done so just now.
    async fn verify(&self, layers: &[Blob], config: &Document, manifest: &Document) -> Result<(), SaveError> {
        let PutSave { repository, .. } = &self.request;
        let blob = async |digest: &String| {
            if self.registry.has_blob(repository, digest).await? {
                return Ok(());
            }
            Err(SaveError::Engine(format!("the registry has lost `{digest}`")))
        };
        let layers = layers.iter().map(|layer| &layer.digest).filter(|digest| !self.asked.is_recent(digest));
        let blobs = try_join_all(layers.chain([&config.digest]).map(blob));
        let found = async { Ok(self.registry.manifest(repository, &manifest.digest).await?) };
        let (found, _) = tokio::try_join!(found, blobs)?;
        if found != manifest.bytes {
            return Err(SaveError::Engine("the registry has another manifest than it was given".to_owned()));
        }
        Ok(())
    }

    /// Begins to tell the engine of the image, which others may have by now. Best effort: an engine that cannot be told so
    /// downloads the image when it is first used.
    fn tell_engine(&self, written: &Written, layers: &[Blob], config: &Document) -> io::Result<()> {
        let PutSave { repository, tag, instance, .. } = &self.request;
        // Open, they outlive the journal.
        let open = |(blob, file, raw_bytes)| Ok((blob, File::open(file)?, raw_bytes));
        let bundle = Bundle {
            config: config.clone(),
            layers: layers.to_vec(),
            new: self.new_layers(written).into_iter().map(open).collect::<io::Result<_>>()?,
            reference: format!("{}/{repository}:{tag}", self.registry.address()),
        };
        let loading = self.loads.begin(instance.clone(), config.digest.clone());
        let world = Arc::clone(&self.world);
        self.world.tasks.spawn(async move {
            loading.turn().await;
            let (archive, fill) = load::archive(bundle);
            let (filled, loaded) = tokio::join!(world.tasks.blocking(fill), world.runtime.load(archive));
            let filled = filled.unwrap_or_else(|| Err(io::Error::other("it panicked")));
            if let Err(error) = loaded {
                tracing::warn!(%error, ?filled, image = loading.image(), "the engine will download the image itself");
            }
        });
        Ok(())
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
            blobs: layers
                .iter()
                .enumerate()
                .map(|(at, layer)| SavedLayer {
                    digest: layer.digest.clone(),
                    size_bytes: layer.size_bytes,
                    of_base: at < written.base.diff_ids.len(),
                })
                .collect(),
        };
        let last = Last {
            container: written.container,
            exclude: self.request.exclude.clone(),
            layers: own.to_vec(),
            base_layers: Some(written.base.diff_ids.len()),
            repository: self.request.repository.clone(),
            manifest: Some(manifest.digest.clone()),
        };
        self.journal.finish(&done, &self.request.instance, &last)?;
        Ok(done)
    }
}
