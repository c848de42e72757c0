//! Saving an instance as an image.
//!
//! Never the engine's own commit: that stops the instance for as long as it takes, writes everything again after each
//! small change, and keeps the container's variables in the image. Instead the container's changes are read where the
//! engine keeps them (or gives them out, where it keeps no directory of them), packed as a layer on all cores, and pushed to the site's registry with a config and a manifest of
//! our own. The instance goes on meanwhile.

mod again;
mod base;
mod changes;
mod collect;
pub(crate) mod compression;
mod exported;
mod image;
mod job;
mod journal;
mod layer;
mod load;
mod mapped;
mod merge;
mod pack;
mod packages;
mod reading;
pub(crate) mod registry;
mod rules;
mod snapshot;
pub(crate) mod still;
mod tagged;
mod walk;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use envd_api::save::{PutSave, RemoveImage, SaveState};
use gateway_api::{
    ImageId, InstanceId,
    image::{Changes, SaveFailure},
};
use tokio::{
    sync::{OnceCell, Semaphore, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use self::{
    compression::Compression,
    job::Job,
    journal::Journals,
    load::Loads,
    registry::{Registry, RegistryError},
    rules::NotAPath,
    walk::WalkError,
};
use crate::{
    for_users::Names,
    node::World,
    runtime::{self, Runtime, RuntimeError},
    storage::is_full,
};

/// Saves at once; more wait for their turn.
const SAVES_AT_ONCE: usize = 2;
/// The same for looking at what a save would hold.
const LOOKS_AT_ONCE: usize = 2;
/// How long whoever asks how far a save is waits for its end.
const STATE_WAIT: Duration = Duration::from_millis(250);
/// How long whoever removes an image waits for the engine to have it.
const LOAD_WAIT: Duration = Duration::from_secs(1);

/// All saves of this process.
#[derive(Debug)]
pub(crate) struct Saves {
    registry: Option<Registry>,
    /// Where the registry keeps its files, if it is our own.
    files: Option<PathBuf>,
    /// The most layers that an image gets.
    layers_max: usize,
    /// How layers are compressed; by what the engine understands if it is `None`.
    compression: Option<Compression>,
    journals: Journals,
    loads: Loads,
    turns: Arc<Semaphore>,
    looks: Semaphore,
    known: Mutex<HashMap<ImageId, Saving>>,
}

#[derive(Debug)]
struct Saving {
    instance: InstanceId,
    state: watch::Sender<SaveState>,
    cancel: CancellationToken,
}

/// Why an instance was not saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    #[error("this site has no registry to save images in")]
    NoRegistry,
    #[error("the instance has no container any more")]
    InstanceGone,
    #[error("instance `{0}` is being saved already")]
    Busy(InstanceId),
    #[error("the engine is still being told of the image")]
    Loading,
    #[error("a layer of an earlier save is gone")]
    Baseless,
    #[error("it was given up")]
    Cancelled,
    #[error(
        "its files would unpack to more than the {} GiB that are free on this machine; remove large files, \
         also those with holes", free >> 30
    )]
    TooLarge { free: u64 },
    #[error("{0}")]
    BadName(String),
    #[error(transparent)]
    BadPath(#[from] NotAPath),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error("{0}")]
    Engine(String),
    #[error("{0}")]
    Walk(#[source] WalkError),
    #[error("the instance's files cannot be read, or the copy cannot be written: {0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for SaveError {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(error) => Self::Io(error),
        }
    }
}

impl From<WalkError> for SaveError {
    fn from(error: WalkError) -> Self {
        match error {
            WalkError::Io(error) => error.into(),
            other @ (WalkError::Refers | WalkError::TooMuch) => Self::Walk(other),
        }
    }
}

impl SaveError {
    /// What is told of a save that this has ended.
    pub(crate) fn into_state(self, names: &Names) -> SaveState {
        SaveState::Failed { failure: self.failure(), message: names.in_words(&self.to_string(), "") }
    }

    pub(crate) fn failure(&self) -> SaveFailure {
        match self {
            Self::NoRegistry => SaveFailure::NoRegistry,
            Self::InstanceGone => SaveFailure::InstanceGone,
            Self::Cancelled => SaveFailure::Cancelled,
            Self::Registry(RegistryError::Unreachable { .. }) => SaveFailure::RegistryUnreachable,
            Self::Registry(RegistryError::Refused { .. }) => SaveFailure::RegistryRefused,
            Self::Registry(RegistryError::Full { .. }) => SaveFailure::RegistryFull,
            Self::Runtime(RuntimeError::Unreachable { .. }) => SaveFailure::EngineUnreachable,
            Self::Runtime(RuntimeError::DiskFull) => SaveFailure::DiskFull,
            Self::Io(error) if is_full(error) => SaveFailure::DiskFull,
            Self::Registry(_)
            | Self::Runtime(_)
            | Self::Baseless
            | Self::Loading
            | Self::Busy(_)
            | Self::BadName(_)
            | Self::BadPath(_)
            | Self::Engine(_)
            | Self::Walk(_)
            | Self::TooLarge { .. }
            | Self::Io(_) => SaveFailure::Other,
        }
    }
}

impl Saves {
    pub(crate) fn new(
        registry: Option<Registry>,
        files: Option<PathBuf>,
        layers_max: usize,
        compression: Option<Compression>,
        data: &Path,
    ) -> Self {
        let journals = Journals::new(data);
        journals.thaw_all();
        Self {
            registry,
            files,
            layers_max,
            compression,
            journals,
            loads: Loads::default(),
            turns: Arc::new(Semaphore::new(SAVES_AT_ONCE)),
            looks: Semaphore::new(LOOKS_AT_ONCE),
            known: Mutex::default(),
        }
    }

    /// Begins to save, or goes on; the same again answers how far it is.
    pub(crate) fn put<R: Runtime>(
        &self,
        world: &Arc<World<R>>,
        image: &ImageId,
        request: PutSave,
    ) -> Result<SaveState, SaveError> {
        let registry = self.registry.clone().ok_or(SaveError::NoRegistry)?;
        check(&request)?;
        let mut known = self.known();
        if let Some(saving) = known.get(image) {
            return Ok(saving.state.borrow().clone());
        }
        let is_busy =
            |saving: &Saving| saving.instance == request.instance && !is_over(&saving.state.borrow());
        if known.values().any(is_busy) {
            return Err(SaveError::Busy(request.instance));
        }
        // What failed before this one, and was not tried again, is not wanted any more.
        let is_over = |other: &ImageId| other != image && !known.contains_key(other);
        self.journals.forget_all(Some(&request.instance), is_over);
        let journal = self.journals.of(image);
        // What was asked for first counts: a layer may have been written for it.
        let request = if let Some(before) = journal.request()? {
            before
        } else {
            journal.begin(&request)?;
            request
        };
        let (state, cancel) = (watch::Sender::new(SaveState::Looking), CancellationToken::new());
        let saving =
            Saving { instance: request.instance.clone(), state: state.clone(), cancel: cancel.clone() };
        known.insert(image.clone(), saving);
        drop(known);
        let job = Job {
            world: Arc::clone(world),
            registry,
            journals: self.journals.clone(),
            layers_max: self.layers_max,
            compression: OnceCell::new_with(self.compression),
            loads: self.loads.clone(),
            asked: base::Asked::default(),
            journal,
            request,
            state: state.clone(),
            cancelled: cancel,
        };
        let (turns, image) = (Arc::clone(&self.turns), image.clone());
        world.tasks.spawn(async move {
            let (instance, cancelled) = (job.request.instance.clone(), job.cancelled.clone());
            let names = job.world.names.clone();
            let turn = tokio::select! {
                turn = turns.acquire() => Some(turn),
                () = cancelled.cancelled() => None,
            };
            let ended = if turn.is_some() { job.run().await } else { Err(SaveError::Cancelled) };
            state.send_replace(match ended {
                Ok(done) => {
                    tracing::info!(%image, %instance, digest = done.digest, bytes = done.added_bytes, frozen_ms = done.frozen_ms, "saved");
                    SaveState::Saved(done)
                }
                Err(error) => {
                    tracing::warn!(%image, %instance, %error, "not saved");
                    error.into_state(&names)
                }
            });
        });
        Ok(SaveState::Looking)
    }

    /// Whether a save still has to read the files of an instance. One that is deleted meanwhile would be saved without
    /// what is already gone.
    pub(crate) fn is_reading(&self, instance: &InstanceId) -> bool {
        let reads = |state: &SaveState| matches!(state, SaveState::Looking | SaveState::Packing { .. });
        self.known().values().any(|saving| saving.instance == *instance && reads(&saving.state.borrow()))
    }

    /// By what the engine may know a saved image, whose reference has a digest, without asking the registry; once it has
    /// been told of it.
    pub(crate) async fn local(&self, reference: &str) -> Option<runtime::ImageId> {
        let (name, digest) = reference.rsplit_once('@')?;
        let registry = self.registry.as_ref()?;
        name.strip_prefix(registry.address())?.strip_prefix('/')?;
        let config = self.journals.config_of(digest)?;
        self.loads.ended(&config).await;
        Some(runtime::ImageId(config))
    }

    /// Forgets what an instance that is gone was last saved as.
    pub(crate) fn forget_instance(&self, instance: &InstanceId) {
        self.journals.forget_instance(instance);
    }

    /// How far a save is: at once if it is over, else in a moment, or when it is.
    pub(crate) async fn state(&self, image: &ImageId) -> Option<SaveState> {
        let mut state = self.known().get(image)?.state.subscribe();
        let _ = timeout(STATE_WAIT, state.wait_for(is_over)).await;
        Some(state.borrow().clone())
    }

    /// Gives a save up and waits until it has ended, or forgets a finished one.
    pub(crate) async fn forget<R>(&self, world: &Arc<World<R>>, image: &ImageId) -> io::Result<()>
    where
        R: Send + Sync + 'static,
    {
        let ended = self.known().get(image).map(|saving| {
            saving.cancel.cancel();
            saving.state.subscribe()
        });
        if let Some(mut state) = ended {
            let _ = state.wait_for(is_over).await;
        }
        self.known().remove(image);
        let journal = self.journals.of(image);
        let gone = world.tasks.blocking(move || journal.forget()).await;
        gone.unwrap_or_else(|| Err(io::Error::other("it panicked")))
    }

    /// Forgets that a save failed: asked for again, it goes on from what its journal has. Without a whole layer that is
    /// nothing.
    pub(crate) async fn rest<R>(&self, world: &Arc<World<R>>, image: &ImageId) -> io::Result<()>
    where
        R: Send + Sync + 'static,
    {
        if self.journals.of(image).written()?.is_none() {
            return self.forget(world, image).await;
        }
        let has_failed = |saving: &Saving| matches!(*saving.state.borrow(), SaveState::Failed { .. });
        let mut known = self.known();
        if known.get(image).is_some_and(has_failed) {
            known.remove(image);
        }
        Ok(())
    }

    /// What a save would put into an image.
    pub(crate) async fn changes<R: Runtime>(
        &self,
        world: &Arc<World<R>>,
        instance: &InstanceId,
        exclude: &[String],
    ) -> Result<Changes, SaveError> {
        let _look = self.looks.acquire().await;
        let container = world.runtime.find(instance).await?.ok_or(SaveError::InstanceGone)?;
        let source = world.runtime.save_source(&container).await?;
        let rules = rules::Rules::new(&source.mounts, exclude)?;
        let Some(upper) = source.upper.clone() else {
            return exported_changes(world, &container, source.mounts, rules).await;
        };
        let last = self.journals.last(instance);
        let is_same = last.is_some_and(|last| last.container == container.id && last.exclude == exclude);
        let files = is_same.then(|| self.journals.last_path(instance).with_extension("files"));
        let look = move || {
            let last = files.and_then(|files| snapshot::Snapshot::read(&files).ok());
            changes::changes(&upper, source, &rules, last.as_ref())
        };
        world.tasks.blocking(look).await.unwrap_or_else(|| Err(io::Error::other("it panicked").into()))
    }

    /// Takes an image out of the registry and off the engine.
    pub(crate) async fn remove<R: Runtime>(
        &self,
        world: &World<R>,
        image: &RemoveImage,
    ) -> Result<(), SaveError> {
        let registry = self.registry.as_ref().ok_or(SaveError::NoRegistry)?;
        check_name(&image.repository, &image.tag)?;
        let known = image.digest.as_ref().and_then(|digest| self.journals.config_of(digest));
        if let Some(config) = known {
            // It would have the name again.
            timeout(LOAD_WAIT, self.loads.ended(&config)).await.map_err(|_| SaveError::Loading)?;
        }
        // One that was given up may have come as far as its manifest.
        let digest = match &image.digest {
            Some(digest) => Some(digest.clone()),
            None => registry.digest(&image.repository, &image.tag).await?,
        };
        if let Some(digest) = digest.filter(|digest| !image.keep.contains(digest)) {
            registry.remove(&image.repository, &digest).await?;
            self.journals.forget_image(&digest);
        }
        let reference = format!("{}/{}:{}", registry.address(), image.repository, image.tag);
        Ok(world.runtime.untag(&reference).await?)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ImageId, Saving>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same where the engine keeps no directory of the changes.
async fn exported_changes<R: Runtime>(
    world: &Arc<World<R>>,
    container: &runtime::Container,
    mounts: Vec<String>,
    rules: rules::Rules,
) -> Result<Changes, SaveError> {
    let changed = exported::Changed::new(world.runtime.changed_paths(container).await?, rules, false)?;
    let archive = exported::readable(world.runtime.export_files(container).await?);
    let look = move || {
        let told = changed.write(archive, io::sink(), |_| Ok(()))?;
        Ok(changes::of_listing(&told.listing, mounts))
    };
    world.tasks.blocking(look).await.unwrap_or_else(|| Err(io::Error::other("it panicked").into()))
}

fn is_over(state: &SaveState) -> bool {
    matches!(state, SaveState::Saved(_) | SaveState::Failed { .. })
}

fn check(request: &PutSave) -> Result<(), SaveError> {
    check_name(&request.repository, &request.tag)?;
    rules::Rules::new(&[], &request.exclude)?;
    Ok(())
}

/// They become parts of addresses: nothing else than a name will do.
fn check_name(repository: &str, tag: &str) -> Result<(), SaveError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric())
            && part.bytes().all(plain)
            && part.len() <= 128
    };
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_tag = (1..=128).contains(&tag.len()) && !tag.starts_with(['.', '-']) && tag.bytes().all(word);
    if repository.split('/').all(is_part) && is_tag {
        Ok(())
    } else {
        Err(SaveError::BadName(format!("`{repository}:{tag}` is not the name of an image")))
    }
}
