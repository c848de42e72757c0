//! One instance: a task that closes the difference between its goal and its container.
//!
//! It is woken by a new goal, by the engine's events, by a sighting that is not what it last saw, and by a clock. Each
//! turn looks at the container and does the one next thing, until there is nothing left to do; so it does not matter
//! at which instruction an earlier envd was killed. What must survive that is in the container's labels and in the
//! [record of starts](crate::door::Start).

mod anew;
mod trouble;

use std::{
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use envd_api::{
    agent::{AGENT, AgentSpec, DOOR, READ_ONLY},
    control::{Failure, Observation, Observed, PutInstance, Takes},
};
use gateway_api::{Goal, InstanceId};
use tokio::{
    sync::{Notify, watch},
    time::sleep,
};
use tracing::{info, warn};

use self::trouble::{Crashes, Trouble, back_off, failed, jittered};
use crate::{
    code,
    door::{OverLimit, Start, boot},
    node::{PutError, World},
    runtime::{
        Bind, Container, Defaults, ImageId, Launch, NO_CARDS, Phase, Progress, Runtime, RuntimeError,
        Sighting, VISIBLE_CARDS, Wiring,
    },
    storage::{HOME, Place, StorageError},
};

/// From asking a container to end to ending it.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// A look at what seems settled, in case all else failed to tell.
const RECHECK: Duration = Duration::from_mins(1);
/// What is gone stays gone: only a new goal or a sighting makes it worth a look. This is merely not for ever.
const RECHECK_GONE: Duration = Duration::from_hours(24);
/// Between two looks at a removal that somebody else began.
const REMOVED_AGAIN: Duration = Duration::from_secs(1);
/// Between two reports of a download's progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// Acts in one turn; more than a restart from nothing needs.
const ACTS_MAX: usize = 8;

/// The way to an instance's task. Dropping it ends the task, not the instance.
#[derive(Debug)]
pub(crate) struct Handle {
    goal: watch::Sender<PutInstance>,
    sighting: watch::Sender<Option<Sighting>>,
    over: watch::Sender<Option<Over>>,
    wake: Arc<Notify>,
}

/// A container that takes more room than it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Over {
    /// The start of the container that was measured.
    pub(crate) last_start: String,
    pub(crate) limit: OverLimit,
}

#[derive(Debug)]
pub(crate) struct Instance<R> {
    id: InstanceId,
    world: Arc<World<R>>,
    goal: watch::Receiver<PutInstance>,
    sighting: watch::Receiver<Option<Sighting>>,
    over: watch::Receiver<Option<Over>>,
    wake: Arc<Notify>,
    /// What the last look showed.
    seen: Option<Sighting>,
    /// The content that the container was made from, and whose it is.
    image_id: Option<String>,
    user: Option<String>,
    /// Where its neighbours reach it.
    address: Option<String>,
    /// What its container takes of the machine.
    takes: Option<Takes>,
    /// The goal that cannot be reached.
    given_up: Option<PutInstance>,
    failures: u32,
    /// How often the engine said that it has not let go of the container's last run.
    stuck: u32,
    crashes: Crashes,
}

/// Where a turn ended.
#[derive(Debug)]
enum Turn {
    /// Nothing more to do for now.
    Settled(Observation),
    /// Something to do, later.
    Waiting(Observation, Duration),
    /// The goal changed on the way.
    Superseded,
}

/// What came of making a container.
#[derive(Debug)]
enum Created {
    /// The container, and the last start of the one before it.
    Made(Box<(Container, Option<Start>)>),
    /// It was there already.
    There,
    /// The goal changed on the way.
    Superseded,
}

/// What a container's phase says by itself.
pub(crate) fn observation(phase: &Phase) -> Observation {
    match *phase {
        Phase::Created => Observation::Exited { exit_code: 0, out_of_memory: false },
        Phase::Running { since } => Observation::Running { since },
        Phase::Exited { exit_code, out_of_memory, .. } => Observation::Exited { exit_code, out_of_memory },
        Phase::Broken => failed(&Trouble::Broken),
    }
}

// === impl Handle ===

impl Handle {
    pub(crate) fn put(&self, put: PutInstance) -> Result<(), PutError> {
        self.refuse_stale(put.generation)?;
        self.goal.send_if_modified(|goal| {
            let differs = *goal != put;
            *goal = put;
            differs
        });
        Ok(())
    }

    pub(crate) fn refuse_stale(&self, put: u64) -> Result<(), PutError> {
        let seen = self.goal.borrow().generation;
        if put < seen { Err(PutError::Stale { put, seen }) } else { Ok(()) }
    }

    /// The goal as it was last put.
    pub(crate) fn goal(&self) -> PutInstance {
        self.goal.borrow().clone()
    }

    pub(crate) fn is_over(&self, over: Over) {
        self.over.send_replace(Some(over));
    }

    pub(crate) fn is_to_be_deleted(&self) -> bool {
        self.goal.borrow().goal == Goal::Deleted
    }

    pub(crate) fn sight(&self, sighting: Option<Sighting>) {
        self.sighting.send_replace(sighting);
    }

    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }
}

// === impl Instance ===

impl<R: Runtime> Instance<R> {
    pub(crate) fn new(id: InstanceId, put: PutInstance, world: Arc<World<R>>) -> (Self, Handle) {
        let (goal, (sighting, sightings), (over, overs), wake) =
            (watch::Sender::new(put), watch::channel(None), watch::channel(None), Arc::default());
        let instance = Self {
            id,
            world,
            goal: goal.subscribe(),
            sighting: sightings,
            over: overs,
            wake: Arc::clone(&wake),
            seen: None,
            image_id: None,
            user: None,
            address: None,
            takes: None,
            given_up: None,
            failures: 0,
            stuck: 0,
            crashes: Crashes::default(),
        };
        (instance, Handle { goal, sighting, over, wake })
    }

    pub(crate) async fn run(mut self) {
        loop {
            let put = self.goal.borrow_and_update().clone();
            let pause = self.turn(&put).await;
            if !self.wait(pause).await {
                return;
            }
        }
    }

    /// Waits until there may be something to do; `false` when nobody holds the handle any more.
    async fn wait(&mut self, pause: Duration) -> bool {
        let mut clock = std::pin::pin!(sleep(pause));
        loop {
            tokio::select! {
                changed = self.goal.changed() => return changed.is_ok(),
                changed = self.over.changed() => return changed.is_ok(),
                () = self.wake.notified() => return true,
                () = &mut clock => return true,
                changed = self.sighting.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                    if *self.sighting.borrow_and_update() != self.seen {
                        return true;
                    }
                }
            }
        }
    }

    /// One turn, and how long to wait after it.
    async fn turn(&mut self, put: &PutInstance) -> Duration {
        if self.given_up.as_ref() == Some(put) {
            return RECHECK;
        }
        match self.converge(put).await {
            Ok(Turn::Settled(observation)) => {
                self.failures = 0;
                self.observe(put, observation);
                jittered(RECHECK)
            }
            Ok(Turn::Waiting(observation, pause)) => {
                self.observe(put, observation);
                pause
            }
            Ok(Turn::Superseded) => Duration::ZERO,
            Err(trouble) => self.fail(put, &trouble),
        }
    }

    fn fail(&mut self, put: &PutInstance, trouble: &Trouble) -> Duration {
        // What was seen last is still the best guess while the engine is away, and the report says that it is.
        let known = self.world.board.observed(&self.id);
        let keeps = trouble.is_engine_away()
            && known.is_some_and(|known| {
                known.generation == Some(put.generation)
                    && matches!(
                        known.observation,
                        Observation::Running { .. } | Observation::Exited { .. } | Observation::Absent
                    )
            });
        if !keeps && self.observe(put, self.told(put, trouble)) {
            warn!(instance = %self.id, generation = put.generation, error = %trouble, "not at its goal");
        }
        if put.goal == Goal::Running && !trouble.passes() {
            self.given_up = Some(put.clone());
            return RECHECK;
        }
        self.failures = self.failures.saturating_add(1);
        back_off(self.failures)
    }

    /// The same as users read it: addresses inside the site are for the log.
    fn told(&self, put: &PutInstance, trouble: &Trouble) -> Observation {
        let mut told = failed(trouble);
        if let Observation::Failed { message, .. } = &mut told {
            *message = self.world.names.in_words(message, &put.spec.image);
        }
        told
    }

    fn observe(&self, put: &PutInstance, observation: Observation) -> bool {
        let (image_id, user) = (self.image_id.clone(), self.user.clone());
        let (id, generation) = (self.id.clone(), Some(put.generation));
        let (address, group) = (self.address.clone(), Some(put.spec.group.clone()));
        self.world.board.observe(Observed {
            id,
            generation,
            observation,
            image_id,
            user,
            address,
            group,
            takes: self.takes.clone(),
        })
    }

    async fn look(&mut self) -> Result<Option<Container>, RuntimeError> {
        let container = self.world.runtime.find(&self.id).await?;
        self.see(container.as_ref());
        Ok(container)
    }

    fn see(&mut self, container: Option<&Container>) {
        self.seen = container.map(|container| Sighting {
            instance: self.id.clone(),
            container: container.id.clone(),
            running: container.is_running(),
        });
        self.image_id = container.map(|container| container.image.0.clone());
        self.user = container.and_then(|container| container.user.clone());
        self.address = container.and_then(|container| container.address.clone());
        self.takes = container.map(|container| container.takes.clone());
    }

    async fn converge(&mut self, put: &PutInstance) -> Result<Turn, Trouble> {
        match put.goal {
            Goal::Running => self.toward_running(put).await,
            Goal::Stopped => self.toward_stopped(put).await,
            Goal::Deleted => self.toward_deleted(put).await,
        }
    }

    async fn toward_running(&mut self, put: &PutInstance) -> Result<Turn, Trouble> {
        for _ in 0..ACTS_MAX {
            let Some(container) = self.look().await? else {
                if put.spec.task && self.has_begun(put).await? {
                    return Err(Trouble::Lost);
                }
                match self.create(put).await? {
                    Created::Superseded => return Ok(Turn::Superseded),
                    // It is as it was made: there is nothing to look at.
                    Created::Made(made) => {
                        let (container, last) = *made;
                        self.start(put, &container, last, Wiring::Fresh).await?;
                    }
                    Created::There => {}
                }
                continue;
            };
            let last = self.disk(|world, id| world.doors.last_start(id)).await?;
            let is_started = last.as_ref().is_some_and(|start| start.was_made(&container, put.generation));
            let over = last.as_ref().filter(|_| is_started).and_then(|start| start.over_limit.clone());
            let (has_lost, has_gained) = self.compare_storages(put, &container)?;
            let fits = same_cards(&container, put) && !has_lost && !has_gained;
            match container.phase {
                // It sees what is its user's no longer, and a container cannot be told to close its eyes.
                Phase::Running { .. } if has_lost => self.stop(put, &container).await?,
                Phase::Running { .. } if over.is_some() => self.stop(put, &container).await?,
                Phase::Running { since } if is_started => match (self.is_over(&container), last) {
                    (Some(limit), Some(last)) => self.note_over(limit, last).await?,
                    (None | Some(_), _) => return Ok(Turn::Settled(Observation::Running { since })),
                },
                Phase::Running { .. } => self.stop(put, &container).await?,
                Phase::Exited { .. } if let Some(OverLimit { message, .. }) = over => {
                    let failure = Failure::OverDiskLimit;
                    return Ok(Turn::Settled(Observation::Failed { failure, message, retrying: false }));
                }
                Phase::Exited { exit_code, .. }
                    if is_started
                        && put.spec.task
                        && last.as_ref().is_some_and(|last| last.ended_with_the_machine(exit_code)) =>
                {
                    return Err(Trouble::Lost);
                }
                Phase::Exited { .. } if is_started && !put.spec.command.is_empty() => {
                    return Ok(Turn::Settled(observation(&container.phase)));
                }
                Phase::Exited { ran_for, exit_code, .. } if is_started && fits && !self.is_stuck() => {
                    if let Some(pause) = self.crashes.pause(&container.last_start, ran_for) {
                        let message =
                            format!("it ended by itself with exit code {exit_code}; starting it again");
                        let observation =
                            Observation::Failed { failure: Failure::Engine, message, retrying: true };
                        return Ok(Turn::Waiting(observation, pause));
                    }
                    self.start(put, &container, last, Wiring::Unknown).await?;
                }
                Phase::Created | Phase::Exited { .. }
                    if (!fits || self.is_stuck()) && self.world.saves.is_reading(&self.id) =>
                {
                    return Ok(Turn::Waiting(Observation::Starting, jittered(REMOVED_AGAIN)));
                }
                Phase::Created | Phase::Exited { .. } if !fits || self.is_stuck() => {
                    self.make_way(put, &container, last).await?;
                    self.stuck = 0;
                }
                Phase::Created | Phase::Exited { .. } => {
                    self.start(put, &container, last, Wiring::Unknown).await?;
                }
                Phase::Broken => return Err(Trouble::Broken),
            }
        }
        Err(Trouble::Restless)
    }

    /// Whether a container has storages that are its user's no longer, of a group that was left; and whether one that
    /// has run before lacks some that came since. These can wait for a start, so nobody looks while it runs.
    fn compare_storages(&self, put: &PutInstance, container: &Container) -> Result<(bool, bool), Trouble> {
        let places = self.world.storages.places(&put.spec.user, &put.spec.group)?;
        let has_lost = container.binds.iter().any(|bind| self.world.storages.is_lost(&places, bind));
        let is_missing = |place: &Place| !container.binds.contains(&place.bind());
        let has_run = matches!(container.phase, Phase::Exited { .. });
        Ok((has_lost, has_run && places.iter().any(is_missing)))
    }

    /// Whether a container was started for this generation, whatever became of it.
    async fn has_begun(&self, put: &PutInstance) -> Result<bool, Trouble> {
        let last = self.disk(|world, id| world.doors.last_start(id)).await?;
        Ok(last.is_some_and(|start| start.spec.generation == put.generation))
    }

    /// Whether this very run was found to take too much room.
    fn is_over(&self, container: &Container) -> Option<OverLimit> {
        let over = self.over.borrow();
        over.as_ref().filter(|over| over.last_start == container.last_start).map(|over| over.limit.clone())
    }

    async fn note_over(&self, limit: OverLimit, last: Start) -> Result<(), Trouble> {
        warn!(instance = %self.id, bytes = limit.bytes, "its files take more room than they may");
        let start = Start { over_limit: Some(limit), ..last };
        self.disk(move |world, id| world.doors.record(id, &start)).await
    }

    async fn toward_stopped(&mut self, put: &PutInstance) -> Result<Turn, Trouble> {
        for _ in 0..ACTS_MAX {
            match self.look().await? {
                None => return Ok(Turn::Settled(Observation::Absent)),
                Some(container) if container.is_running() => self.stop(put, &container).await?,
                Some(container) => return Ok(Turn::Settled(observation(&container.phase))),
            }
        }
        Err(Trouble::Restless)
    }

    async fn toward_deleted(&mut self, put: &PutInstance) -> Result<Turn, Trouble> {
        let container = match self.look().await {
            // A container of somebody else with that name is none of ours to remove.
            Err(RuntimeError::Foreign { .. }) => None,
            found => found?,
        };
        if let Some(container) = container {
            self.observe(put, Observation::Deleting);
            if self.world.saves.is_reading(&self.id) {
                return Ok(Turn::Waiting(Observation::Deleting, jittered(REMOVED_AGAIN)));
            }
            info!(instance = %self.id, generation = put.generation, "removing");
            self.world.runtime.remove(&container).await?;
            if self.look().await?.is_some() {
                // An earlier removal is still under way.
                return Ok(Turn::Waiting(Observation::Deleting, jittered(REMOVED_AGAIN)));
            }
        }
        let last = self.disk(|world, id| world.doors.last_start(id)).await?;
        if let Some(kept) = last.and_then(|start| start.kept) {
            self.world.runtime.untag(&kept).await?;
        }
        // Only now: while there is a container, a start must find its door. The storage stays, always.
        self.disk(|world, id| {
            world.saves.forget_instance(id);
            world.doors.remove(id)
        })
        .await?;
        self.failures = 0;
        Ok(Turn::Waiting(Observation::Absent, RECHECK_GONE))
    }

    /// Makes the container, unless the goal changes while its image is on its way.
    async fn create(&mut self, put: &PutInstance) -> Result<Created, Trouble> {
        self.check_cards(put)?;
        self.observe(put, Observation::Starting);
        let mut told: Option<Instant> = None;
        let progress = |Progress { done_bytes, total_bytes }| {
            if told.is_none_or(|then| then.elapsed() >= PROGRESS_EVERY) {
                told = Some(Instant::now());
                let (id, generation) = (self.id.clone(), Some(put.generation));
                let observation = Observation::Pulling { done_bytes, total_bytes };
                self.world.board.observe(Observed {
                    id,
                    generation,
                    observation,
                    image_id: None,
                    user: None,
                    address: None,
                    group: Some(put.spec.group.clone()),
                    takes: None,
                });
            }
        };
        let last = self.disk(|world, id| world.doors.last_start(id)).await?;
        let before = last.as_ref().and_then(|start| start.image.clone()).map(ImageId);
        let find = async {
            let before = match before {
                None => self.world.saves.local(&put.spec.image).await,
                before => before,
            };
            self.world.runtime.image(&put.spec.image, before, put.login.as_ref(), progress).await
        };
        let mut goal = self.goal.clone();
        // Of all acts only a download may take long, and be given up half way.
        let image = tokio::select! {
            image = find => image?,
            _ = goal.changed() => return Ok(Created::Superseded),
        };
        self.observe(put, Observation::Starting);
        let binds = self.binds(put).await?;
        if let Some(from) = &put.spec.code_dir {
            let places = self.world.storages.places(&put.spec.user, &put.spec.group)?;
            let door = self.world.doors.path(&self.id);
            tokio::select! {
                fetched = code::fetch(&self.world.agent, &places, from, &door) => fetched?,
                _ = goal.changed() => return Ok(Created::Superseded),
            }
        }
        info!(instance = %self.id, generation = put.generation, image = put.spec.image, "making");
        let launch = Launch {
            instance: &self.id,
            generation: put.generation,
            spec: &put.spec,
            image,
            binds,
            disk_bytes: self.world.disk_limit(&put.spec),
        };
        let Some(container) = self.world.runtime.create(&launch).await? else { return Ok(Created::There) };
        self.see(Some(&container));
        Ok(Created::Made(Box::new((container, last))))
    }

    /// That the cards are here which it was given.
    fn check_cards(&self, put: &PutInstance) -> Result<(), Trouble> {
        let known = self.world.cards.known();
        let given = put.spec.cards.len();
        if usize::try_from(put.spec.gpus).is_ok_and(|wanted| wanted > given) {
            return Err(Trouble::NoGpu(put.spec.gpus));
        }
        match put.spec.cards.iter().find(|card| !known.iter().any(|known| known.uuid == **card)) {
            Some(missing) => Err(Trouble::NoSuchCard(missing.clone())),
            None => Ok(()),
        }
    }

    async fn binds(&self, put: &PutInstance) -> Result<Vec<Bind>, Trouble> {
        let (agent, door) = (self.world.agent.clone(), self.world.doors.path(&self.id));
        let mut binds = vec![
            Bind { source: agent, target: AGENT.to_owned(), read_only: true },
            Bind { source: door, target: DOOR.to_owned(), read_only: true },
        ];
        binds.extend(self.world.extras.binds());
        let places = self.world.storages.places(&put.spec.user, &put.spec.group)?;
        binds.extend(places.iter().map(Place::bind));
        if put.spec.links.values().any(|to| Path::new(to).starts_with(READ_ONLY)) {
            binds.extend(places.iter().map(Place::read_only_bind));
        }
        let made = self.world.tasks.blocking(move || places.iter().try_for_each(Place::make)).await;
        made.unwrap_or_else(|| Err(StorageError::Unusable { storage: HOME.to_owned(), cause: panicked() }))?;
        Ok(binds)
    }

    async fn start(
        &mut self,
        put: &PutInstance,
        container: &Container,
        last: Option<Start>,
        wiring: Wiring,
    ) -> Result<(), Trouble> {
        self.observe(put, Observation::Starting);
        let Defaults { mut env, user, mut cwd } = match self.world.runtime.defaults(container).await? {
            Some(defaults) => defaults,
            // The container outlives its image: the last start knows.
            None => last.clone().map(|Start { spec, .. }| of_spec(spec)).ok_or(Trouble::ImageRemoved)?,
        };
        if put.spec.cards.is_empty() {
            // Images for graphics processors ask for all that there are.
            env.entry(VISIBLE_CARDS.to_owned()).and_modify(|cards| NO_CARDS.clone_into(cards));
        } else {
            env.insert(VISIBLE_CARDS.to_owned(), put.spec.cards.join(","));
        }
        env.extend(put.spec.env.clone());
        if let Some(work_dir) = &put.spec.work_dir {
            cwd.clone_from(work_dir);
        }
        if wiring == Wiring::Unknown {
            // A directory that somebody removed would keep the container from starting.
            self.binds(put).await?;
        }
        let hold = put.spec.task || !put.spec.secrets.is_empty();
        let (command, links) = (put.spec.command.clone(), put.spec.links.clone());
        let aliases = put.spec.aliases.clone();
        let code = put.spec.code_dir.as_deref().map(code::name);
        let spec =
            AgentSpec { generation: put.generation, command, env, user, cwd, links, aliases, code, hold };
        let start = Start {
            spec,
            container: container.id.clone(),
            before: container.last_start.clone(),
            image: Some(container.image.0.clone()),
            kept: last.as_ref().and_then(|last| last.kept.clone()),
            boot: boot(),
            over_limit: None,
            over_before: last.and_then(|last| last.over_limit.map(|over| over.bytes).or(last.over_before)),
        };
        self.disk(move |world, id| {
            world.doors.make(id)?;
            world.doors.record(id, &start)
        })
        .await?;
        info!(instance = %self.id, generation = put.generation, "starting");
        let started = self.world.runtime.start(container, wiring).await;
        self.note_start(&started);
        Ok(started?)
    }

    async fn stop(&self, put: &PutInstance, container: &Container) -> Result<(), Trouble> {
        self.observe(put, Observation::Stopping);
        info!(instance = %self.id, generation = put.generation, "stopping");
        Ok(self.world.runtime.stop(container, STOP_GRACE).await?)
    }

    /// Work on files, off the threads that everyone shares.
    async fn disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&World<R>, &InstanceId) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Trouble> {
        let (world, id) = (Arc::clone(&self.world), self.id.clone());
        let done = self.world.tasks.blocking(move || work(&world, &id)).await;
        Ok(done.unwrap_or_else(|| Err(panicked()))?)
    }
}

fn same_cards(container: &Container, put: &PutInstance) -> bool {
    container.takes.cards == put.spec.cards
}

fn panicked() -> io::Error {
    io::Error::other("it panicked")
}

fn of_spec(spec: AgentSpec) -> Defaults {
    Defaults { env: spec.env, user: spec.user, cwd: spec.cwd }
}
