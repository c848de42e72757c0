//! Saving an instance as an image.
//!
//! Never the engine's own commit: that stops the instance for as long as it takes, writes everything again after each
//! small change, and keeps the container's variables in the image. Instead the container's changes are read where the
//! engine keeps them, packed as a layer on all cores, and pushed to the site's registry with a config and a manifest of
//! our own. The instance goes on meanwhile.

mod base;
mod changes;
mod image;
mod job;
mod journal;
mod layer;
mod load;
mod pack;
mod packages;
pub(crate) mod registry;
mod rules;
mod snapshot;
pub(crate) mod still;
mod walk;

use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use envd_api::save::{PutSave, RemoveImage, SaveState};
use gateway_api::{
    ImageId, InstanceId,
    image::{Changes, SaveFailure},
};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use self::{
    job::Job,
    journal::Journals,
    registry::{Registry, RegistryError},
    rules::NotAPath,
    walk::WalkError,
};
use crate::{
    node::World,
    runtime::{self, Runtime, RuntimeError},
    storage::is_full,
};

/// Saves at once; more wait for their turn.
const SAVES_AT_ONCE: usize = 2;
/// The same for looking at what a save would hold.
const LOOKS_AT_ONCE: usize = 2;

/// All saves of this process.
#[derive(Debug)]
pub(crate) struct Saves {
    registry: Option<Registry>,
    journals: Journals,
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
    #[error("the engine does not say where the instance's files are")]
    NoUpper,
    #[error("instance `{0}` is being saved already")]
    Busy(InstanceId),
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
    pub(crate) fn into_state(self) -> SaveState {
        SaveState::Failed { failure: self.failure(), message: self.to_string() }
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
            | Self::NoUpper
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
    pub(crate) fn new(registry: Option<Registry>, data: &Path) -> Self {
        Self {
            registry,
            journals: Journals::new(data),
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
        let is_busy = |saving: &Saving| {
            saving.instance == request.instance
                && !matches!(*saving.state.borrow(), SaveState::Saved(_) | SaveState::Failed { .. })
        };
        if known.values().any(is_busy) {
            return Err(SaveError::Busy(request.instance));
        }
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
            journal,
            request,
            state: state.clone(),
            cancelled: cancel,
        };
        let (turns, image) = (Arc::clone(&self.turns), image.clone());
        world.tasks.spawn(async move {
            let (instance, cancelled) = (job.request.instance.clone(), job.cancelled.clone());
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
                    error.into_state()
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

    /// By what the engine may know a saved image, whose reference has a digest, without asking the registry.
    pub(crate) fn local(&self, reference: &str) -> Option<runtime::ImageId> {
        let (name, digest) = reference.rsplit_once('@')?;
        let registry = self.registry.as_ref()?;
        name.strip_prefix(registry.address())?.strip_prefix('/')?;
        self.journals.config_of(digest).map(runtime::ImageId)
    }

    /// Forgets what an instance that is gone was last saved as.
    pub(crate) fn forget_instance(&self, instance: &InstanceId) {
        self.journals.forget_instance(instance);
    }

    pub(crate) fn state(&self, image: &ImageId) -> Option<SaveState> {
        self.known().get(image).map(|saving| saving.state.borrow().clone())
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
            let is_over = |state: &SaveState| matches!(state, SaveState::Saved(_) | SaveState::Failed { .. });
            let _ = state.wait_for(is_over).await;
        }
        self.known().remove(image);
        let journal = self.journals.of(image);
        let gone = world.tasks.blocking(move || journal.forget()).await;
        gone.unwrap_or_else(|| Err(io::Error::other("it panicked")))
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
        let upper = source.upper.clone().ok_or(SaveError::NoUpper)?;
        let rules = rules::Rules::new(&source.mounts, exclude)?;
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
        // One that was given up may have come as far as its manifest.
        let digest = match &image.digest {
            Some(digest) => Some(digest.clone()),
            None => registry.digest(&image.repository, &image.tag).await?,
        };
        if let Some(digest) = digest.filter(|digest| !image.keep.contains(digest)) {
            registry.remove(&image.repository, &digest).await?;
        }
        let reference = format!("{}/{}:{}", registry.address(), image.repository, image.tag);
        Ok(world.runtime.untag(&reference).await?)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ImageId, Saving>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
