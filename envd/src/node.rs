//! This machine: who was asked for, who is there, and one task for each.
//!
//! The loop here takes no input. It lists what carries this cluster's label, hands each instance's task its sighting,
//! and reports the containers that nobody asked for, which nothing ever touches. Events of the engine only make it all
//! quicker: what they miss, the next listing shows. Two more loops, by the clock alone, tidy up and measure files.

mod measure;
mod weigh;

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use envd_api::control::{Counted, EngineState, InstanceSpec, Observation, Observed, PutInstance};
use futures_util::StreamExt;
use gateway_api::{Goal, InstanceId};
use tokio::{
    sync::{Notify, Semaphore},
    time::sleep,
};
use tracing::{info, warn};

use crate::{
    board::Board,
    cards::{self, Cards},
    door::Doors,
    extras::Extras,
    for_users::{Names, without_addresses},
    instance::{Handle, Instance, observation},
    room::Rooms,
    runtime::{Runtime, RuntimeError, Sighting},
    save::Saves,
    storage::{StorageError, Storages},
    tasks::Tasks,
};

/// Between two listings.
const LIST_EVERY: Duration = Duration::from_secs(5);
/// The same while the engine is away.
const LIST_EVERY_AWAY: Duration = Duration::from_secs(2);
/// Between two tries to hear the engine's events.
const LISTEN_AGAIN: Duration = Duration::from_secs(2);
/// Between two rounds of tidying up.
const TIDY_EVERY: Duration = Duration::from_mins(1);
/// The same while that fails.
const TIDY_AGAIN: Duration = Duration::from_secs(5);
/// Instances that were asked for, at most.
const INSTANCES_MAX: usize = 10_000;
/// Of these, deleted ones that are still reported as such.
const DELETED_MAX: usize = 1_000;
/// Logs that are read at once: each is a connection to the engine.
const LOG_READERS_MAX: usize = 256;

/// What all tasks share.
#[derive(Debug)]
pub(crate) struct World<R> {
    pub(crate) runtime: R,
    pub(crate) board: Board,
    pub(crate) doors: Doors,
    pub(crate) storages: Storages,
    /// The agent that new containers mount.
    pub(crate) agent: PathBuf,
    /// What else of this machine new containers mount.
    pub(crate) extras: Extras,
    /// What the files of an instance may take whose spec does not say.
    pub(crate) disk_limit_bytes: u64,
    pub(crate) tasks: Tasks,
    pub(crate) saves: Saves,
    pub(crate) cards: Arc<Cards>,
    pub(crate) names: Names,
}

impl<R> World<R> {
    pub(crate) fn disk_limit(&self, spec: &InstanceSpec) -> u64 {
        spec.disk_bytes.unwrap_or(self.disk_limit_bytes)
    }
}

#[derive(Debug)]
pub(crate) struct Node<R> {
    pub(crate) world: Arc<World<R>>,
    /// One permit for each log that is being read.
    pub(crate) log_readers: Arc<Semaphore>,
    /// Who reads and writes storages with no instance.
    pub(crate) rooms: Rooms,
    instances: Mutex<BTreeMap<InstanceId, Handle>>,
    counted: Mutex<Vec<Counted>>,
    look: Notify,
}

/// Why a goal is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PutError {
    #[error("generation {put} is stale: {seen} was put before")]
    Stale { put: u64, seen: u64 },
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("`{0}` is not a host name")]
    BadHostname(String),
    #[error("this cluster holds {INSTANCES_MAX} instances and takes no more")]
    Full,
    #[error("cannot make the door of the instance")]
    Door(#[source] io::Error),
}

impl<R: Runtime> Node<R> {
    pub(crate) fn new(world: Arc<World<R>>) -> Self {
        let log_readers = Arc::new(Semaphore::new(LOG_READERS_MAX));
        Self {
            world,
            log_readers,
            rooms: Rooms::default(),
            instances: Mutex::default(),
            counted: Mutex::default(),
            look: Notify::new(),
        }
    }

    /// Starts the loops.
    pub(crate) fn run(self: &Arc<Self>) {
        let (looking, listening) = (Arc::clone(self), Arc::clone(self));
        let (tidying, weighing) = (Arc::clone(self), Arc::clone(self));
        self.world.tasks.spawn(async move { looking.look_for_ever().await });
        self.world.tasks.spawn(async move { listening.listen_for_ever().await });
        self.world.tasks.spawn(async move { tidying.tidy_for_ever().await });
        self.world.tasks.spawn(async move { weighing.weigh_for_ever().await });
        let (counting, measuring) = (Arc::clone(self), Arc::clone(self));
        self.world.tasks.spawn(async move { counting.look_at_cards_for_ever().await });
        self.world.tasks.spawn(measuring.measure_for_ever());
    }

    /// What running instances have used, as of the last round.
    pub(crate) fn counted(&self) -> MutexGuard<'_, Vec<Counted>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_at_cards_for_ever(&self) {
        let stopping = self.world.tasks.stopping();
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = sleep(cards::LOOK_EVERY) => {}
            }
            let cards = Arc::clone(&self.world.cards);
            self.world.tasks.blocking(move || cards.look()).await;
        }
    }

    /// Takes the goal for one instance. When this returns, its door is there if it is to run.
    pub(crate) async fn put(&self, id: InstanceId, put: PutInstance) -> Result<(), PutError> {
        // To end something it must not have to be fit to run.
        if put.goal == Goal::Running {
            self.check(&put.spec)?;
        }
        self.refuse_stale(&id, put.generation).await?;
        if put.goal == Goal::Running {
            let (world, id) = (Arc::clone(&self.world), id.clone());
            let made = self.world.tasks.blocking(move || world.doors.make(&id)).await;
            made.unwrap_or_else(|| Err(io::Error::other("it panicked"))).map_err(PutError::Door)?;
        }
        let mut instances = self.instances();
        if let Some(handle) = instances.get(&id) {
            return handle.put(put);
        }
        if instances.len() >= INSTANCES_MAX {
            return Err(PutError::Full);
        }
        let (instance, handle) = Instance::new(id.clone(), put, Arc::clone(&self.world));
        self.world.tasks.spawn(instance.run());
        instances.insert(id, handle);
        self.forget_deleted(&mut instances);
        Ok(())
    }

    fn check(&self, spec: &InstanceSpec) -> Result<(), PutError> {
        self.world.storages.places(&spec.user, &spec.group)?;
        let name = &spec.hostname;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || name.len() > 63 || name.starts_with('-') || !name.bytes().all(allowed) {
            return Err(PutError::BadHostname(name.clone()));
        }
        Ok(())
    }

    /// Compares with what was put before and, for an instance that was not put since envd started, with the record of
    /// its last start.
    async fn refuse_stale(&self, id: &InstanceId, generation: u64) -> Result<(), PutError> {
        if let Some(known) = self.instances().get(id).map(|handle| handle.refuse_stale(generation)) {
            return known;
        }
        let (world, id) = (Arc::clone(&self.world), id.clone());
        let last = self.world.tasks.blocking(move || world.doors.last_start(&id)).await;
        let last = last.unwrap_or_else(|| Err(io::Error::other("it panicked"))).map_err(PutError::Door)?;
        match last.map(|start| start.spec.generation) {
            Some(seen) if generation < seen => Err(PutError::Stale { put: generation, seen }),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether an instance's container runs, if that is known.
    pub(crate) fn is_running(&self, id: &InstanceId) -> Option<bool> {
        if self.world.board.engine() != EngineState::Ready {
            return None;
        }
        let observed = self.world.board.observed(id);
        Some(observed.is_some_and(|observed| matches!(observed.observation, Observation::Running { .. })))
    }

    /// Keeps the number of deleted instances that are still reported in bounds; the oldest go first.
    fn forget_deleted(&self, instances: &mut BTreeMap<InstanceId, Handle>) {
        let is_gone = |(id, handle): (&InstanceId, &Handle)| {
            let observed = self.world.board.observed(id)?;
            (handle.is_to_be_deleted() && observed.observation == Observation::Absent).then(|| id.clone())
        };
        let gone: Vec<_> = instances.iter().filter_map(is_gone).collect();
        for id in gone.iter().take(gone.len().saturating_sub(DELETED_MAX)) {
            instances.remove(id);
            self.world.board.forget(id);
        }
    }

    async fn look_for_ever(&self) {
        // The containers that nobody asked for.
        let mut strangers = BTreeMap::new();
        loop {
            let pause = match self.look_once(&mut strangers).await {
                Ok(()) => {
                    if self.world.board.set_engine(EngineState::Ready) {
                        info!("the container engine answers");
                        self.instances().values().for_each(Handle::wake);
                    }
                    LIST_EVERY
                }
                Err(error) => {
                    let message = without_addresses(&error.to_string(), "");
                    if self.world.board.set_engine(EngineState::Unreachable { message }) {
                        warn!(%error, "the container engine is away");
                    }
                    LIST_EVERY_AWAY
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = self.look.notified() => {}
            }
        }
    }

    async fn look_once(&self, strangers: &mut BTreeMap<InstanceId, Sighting>) -> Result<(), RuntimeError> {
        let list = self.world.runtime.list().await?;
        let mut sightings: BTreeMap<_, _> =
            list.into_iter().map(|sighting| (sighting.instance.clone(), sighting)).collect();
        {
            let instances = self.instances();
            for (id, handle) in instances.iter() {
                handle.sight(sightings.remove(id));
            }
            strangers.retain(|id, _| {
                let is_stranger = !instances.contains_key(id);
                if is_stranger && !sightings.contains_key(id) {
                    self.world.board.forget(id);
                }
                is_stranger && sightings.contains_key(id)
            });
        }
        for (id, sighting) in sightings {
            if strangers.get(&id) == Some(&sighting) {
                continue;
            }
            let Some(container) = self.world.runtime.find(&id).await? else { continue };
            let instances = self.instances();
            if !instances.contains_key(&id) {
                let observation = observation(&container.phase);
                let (image_id, user) = (Some(container.image.0), container.user);
                let (address, takes) = (container.address, Some(container.takes));
                self.world.board.observe(Observed {
                    id: id.clone(),
                    generation: None,
                    observation,
                    image_id,
                    user,
                    address,
                    group: None,
                    takes,
                });
                strangers.insert(id, sighting);
            }
        }
        Ok(())
    }

    async fn tidy_for_ever(&self) {
        let mut last = None;
        loop {
            let failed = self.world.runtime.tidy().await.err();
            if let Some(error) = &failed
                && failed != last
            {
                warn!(%error, "cannot tidy up");
            }
            sleep(if failed.is_none() { TIDY_EVERY } else { TIDY_AGAIN }).await;
            last = failed;
        }
    }

    async fn listen_for_ever(&self) {
        loop {
            if let Ok(changes) = self.world.runtime.changes().await {
                let mut changes = std::pin::pin!(changes);
                while let Some(Ok(id)) = changes.next().await {
                    match self.instances().get(&id) {
                        Some(handle) => handle.wake(),
                        None => self.look.notify_one(),
                    }
                }
                // The engine went away: see at once.
                self.look.notify_one();
            }
            sleep(LISTEN_AGAIN).await;
        }
    }

    fn instances(&self) -> MutexGuard<'_, BTreeMap<InstanceId, Handle>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
