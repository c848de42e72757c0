//! Instances: what users do with them. Acts write the goal and return; the loops do the rest.

pub(super) mod check;

use std::collections::BTreeMap;

use envd_api::control::InstanceSpec;
use gateway_api::{
    Action, CreateInstance, Goal, Instance, InstanceId, InstanceName, Slug, Status,
    error::Reason,
    instance::{SHM_DEFAULT_BYTES, StartTimes},
    job::DryRun,
    session::Role,
};
use jiff::Timestamp;
use oci_spec::distribution::Reference;
use queue::Kind;

use super::{App, line};
use crate::{
    auth::{
        Caller,
        policy::{self, Grant},
    },
    clusters::Cluster,
    error::Error,
    events::What,
    store::{InstanceRow, NewInstance, StoreError, Whose},
};
pub(super) use check::readable;

/// The most instances of a page.
const PAGE_MAX: u32 = 1000;

/// A part of a list of instances, newest first; all of it without a limit.
#[derive(Debug, Default)]
pub(crate) struct InstancePage {
    /// The last of the page before.
    pub(crate) after: Option<InstanceId>,
    pub(crate) limit: Option<u32>,
}

impl App {
    /// The caller's own instances or all that they may see (those of the group for its leader, everyone's for an admin),
    /// newest first.
    pub(crate) async fn instances(
        &self,
        caller: &Caller,
        all: bool,
        page: &InstancePage,
    ) -> Result<Vec<Instance>, Error> {
        let whose = if all { seen_by(caller) } else { Whose::User(caller.user.id) };
        let most = page.limit.map(|limit| limit.clamp(1, PAGE_MAX));
        let rows = self.store.shown_instances(whose, page.after.as_ref(), most).await?;
        Ok(rows.into_iter().map(|row| self.view_for(caller, row)).collect())
    }

    pub(crate) async fn instance(&self, caller: &Caller, name: &str) -> Result<Instance, Error> {
        let row = self.find(caller, name).await?;
        Ok(self.view_for(caller, row))
    }

    pub(crate) async fn create_instance(
        &self,
        caller: &Caller,
        wanted: CreateInstance,
    ) -> Result<Instance, Error> {
        let auto_start = wanted.auto_start;
        let cluster = self.clusters.asked(wanted.cluster.as_deref())?;
        let pool = wanted.pool.clone();
        let name: InstanceName = wanted.name.parse().map_err(Error::BadName)?;
        let (id, slug) = (InstanceId::new(), name.slug());
        let mut spec = self.checked(caller, cluster, wanted, slug.to_string()).await?;
        self.refuse(&line::new_instance_work(Kind::Instance, &id, caller, cluster, pool.as_deref(), &spec))
            .await?;
        spec.image = self.pin_image(caller, cluster, &spec.image, None).await?;
        let new = NewInstance {
            id: &id,
            user: caller.user.id,
            name: &name,
            slug: &slug,
            cluster: &cluster.name,
            pool: pool.as_deref(),
            spec: &spec,
            status: &on_its_way(),
            auto_start,
            needs: &self.saved_among([spec.image.as_str()]),
        };
        let line = caller.line("instance.create", id.as_str()).with("name", name.as_str());
        self.store.add_instance(new, &line).await.map_err(|error| {
            if matches!(error, StoreError::Taken) {
                Error::NameTaken { name: name.to_string() }
            } else {
                error.into()
            }
        })?;
        tracing::info!(user = %caller.user.name, instance = %id, %name, "created");
        let row = self.store.instance(&id).await?.ok_or_else(|| not_found(name.as_str()))?;
        let instance = self.announce(row);
        self.line_moves.notify_one();
        Ok(instance)
    }

    /// What would become of a request for an instance, which need not have a name yet.
    pub(crate) async fn dry_run_instance(
        &self,
        caller: &Caller,
        wanted: CreateInstance,
    ) -> Result<DryRun, Error> {
        let cluster = self.clusters.asked(wanted.cluster.as_deref())?;
        let pool = wanted.pool.clone();
        let hostname = match wanted.name.as_str() {
            "" => String::new(),
            name => name.parse::<InstanceName>().map_err(Error::BadName)?.slug().to_string(),
        };
        let spec = self.checked(caller, cluster, wanted, hostname).await?;
        let id = InstanceId::new();
        let work = line::new_instance_work(Kind::Instance, &id, caller, cluster, pool.as_deref(), &spec);
        self.dry_run(&work).await
    }

    /// What a request asks for, if all of it is right.
    async fn checked(
        &self,
        caller: &Caller,
        cluster: &Cluster,
        wanted: CreateInstance,
        hostname: String,
    ) -> Result<InstanceSpec, Error> {
        let image = wanted.image.clone().unwrap_or_else(|| self.config.default_image.clone());
        check::image(&image)?;
        let image = self.authorise_image(caller, &image).await?;
        check::request(&wanted, cluster.node().as_ref())?;
        let secrets = self.used_secrets(caller, &wanted).await?;
        self.check_image_is_here(cluster, &image).await?;
        Ok(InstanceSpec {
            user: caller.user.home.clone(),
            group: caller.user.group.to_string(),
            hostname,
            image,
            cpus: wanted.cpus,
            memory_bytes: wanted.memory_bytes,
            shm_bytes: wanted.shm_bytes.unwrap_or(SHM_DEFAULT_BYTES),
            disk_bytes: None,
            gpus: wanted.gpus,
            gpu_model: wanted.gpu_model.filter(|_| wanted.gpus > 0),
            cards: Vec::new(),
            env: wanted.env,
            command: wanted.command,
            links: [].into(),
            aliases: [].into(),
            code_dir: None,
            work_dir: None,
            task: false,
            secrets,
        })
    }

    /// `gpus` are for what a failed task left, which is opened without any otherwise.
    pub(crate) async fn start_instance(
        &self,
        caller: &Caller,
        name: &str,
        gpus: Option<u32>,
    ) -> Result<Instance, Error> {
        let row = self.find(caller, name).await?;
        if row.job.is_some() {
            return self.open_kept_task(caller, row, gpus.unwrap_or(0)).await;
        }
        if gpus.is_some() {
            return Err(Error::unfit("gpus", Reason::OnlyForTasks));
        }
        self.act(caller, name, Action::Start, Goal::Running, on_its_way()).await
    }

    pub(crate) async fn stop_instance(&self, caller: &Caller, name: &str) -> Result<Instance, Error> {
        self.act(caller, name, Action::Stop, Goal::Stopped, Status::STOPPING).await
    }

    /// A new generation of the same goal: the cluster stops what was started for an earlier one first.
    pub(crate) async fn restart_instance(&self, caller: &Caller, name: &str) -> Result<Instance, Error> {
        self.act(caller, name, Action::Restart, Goal::Running, Status::Starting).await
    }

    pub(crate) async fn delete_instance(&self, caller: &Caller, name: &str) -> Result<Instance, Error> {
        self.act(caller, name, Action::Delete, Goal::Deleted, Status::DELETING).await
    }

    /// Finds an instance and grants an action on it.
    pub(crate) async fn grant(&self, caller: &Caller, name: &str, action: Action) -> Result<Grant, Error> {
        policy::grant(caller, self.find(caller, name).await?, action)
    }

    /// An instance as users see it.
    pub(crate) fn view(&self, row: InstanceRow) -> Instance {
        let waits = matches!(row.status, Status::Waiting { .. });
        // Those that it had last are what it gets first when it starts again, but they are not its own meanwhile.
        let is_held = row.goal == Goal::Running && !waits;
        let starts_again = row.starts_again();
        let status = self.clusters.of(&row.cluster).seen(row.status);
        let mut actions = status.actions();
        if row.job.is_some() {
            actions.retain(|&action| policy::fits_a_task(action));
        }
        if !starts_again {
            actions.retain(|&action| action != Action::Start);
        }
        let start_times = start_times(row.start_times, &status);
        Instance {
            start_times,
            queue: waits.then(|| self.places.of(row.id.as_str())).flatten(),
            job: row.job,
            id: row.id,
            name: row.name,
            slug: row.slug,
            user: row.user,
            image: self.shown_image(&row.spec.image),
            cpus: row.spec.cpus,
            memory_bytes: row.spec.memory_bytes,
            shm_bytes: row.spec.shm_bytes,
            gpus: row.spec.gpus,
            gpu_model: row.spec.gpu_model,
            cluster: row.cluster,
            pool: row.pool,
            cards: if is_held { row.spec.cards } else { Vec::new() },
            env: row.spec.env,
            secrets: row.spec.secrets,
            command: row.spec.command,
            auto_start: row.auto_start,
            goal: row.goal,
            actions,
            status,
            created_at: row.created_at,
        }
    }

    /// The same as one sees it who may be somebody else: only what they may do, and not what may be secret.
    fn view_for(&self, caller: &Caller, row: InstanceRow) -> Instance {
        let may: Vec<_> =
            Action::ALL.into_iter().filter(|&action| policy::may(caller, &row, action)).collect();
        let owner = policy::owns(caller, &row);
        let mut instance = self.view(row);
        instance.actions.retain(|action| may.contains(action));
        if !owner {
            instance.env.clear();
            instance.secrets.clear();
        }
        instance
    }

    /// An instance was told to stop, by the gateway itself.
    pub(crate) fn announce_stop(&self, row: InstanceRow) {
        let (goal, status, generation) = (Goal::Stopped, Status::STOPPING, row.generation + 1);
        self.announce(InstanceRow { goal, generation, status, ..row });
        self.clusters.wake();
        self.line_moves.notify_one();
    }

    /// Tells listeners of a changed row and answers with what they see.
    ///
    /// A task is told of with its job where that changes too, and else only as work of some kind that has changed.
    pub(crate) fn announce(&self, row: InstanceRow) -> Instance {
        let owner = row.user_id;
        let instance = self.view(row);
        if instance.job.is_some() {
            self.jobs_move.notify_one();
            return instance;
        }
        self.events.tell(owner, What::Changed(Box::new(instance.clone())));
        instance
    }

    /// Opens a task whose files were kept: its container starts again without its command, and without cards, to be
    /// looked around in.
    async fn open_kept_task(&self, caller: &Caller, row: InstanceRow, gpus: u32) -> Result<Instance, Error> {
        let grant = policy::grant(caller, row, Action::Start)?;
        let row = grant.instance();
        if !row.starts_again() {
            return Err(Error::Forbidden { why: "the files of this task were not kept" });
        }
        let spec = InstanceSpec {
            command: Vec::new(),
            task: false,
            gpus,
            cards: Vec::new(),
            secrets: Vec::new(),
            ..row.spec.clone()
        };
        let cluster = self.clusters.of(&row.cluster);
        let work = line::new_instance_work(Kind::Debug, &row.id, caller, cluster, row.pool.as_deref(), &spec);
        self.refuse(&work).await?;
        let status = on_its_way();
        let line = caller.line(act_word(Action::Start), row.id.as_str()).with("name", row.name.as_str());
        if !self.store.open_task(&row.id, row.generation, &spec, &status, &line).await? {
            return Err(Error::WrongState {
                name: row.name.to_string(),
                state: row.status.word(),
                action: Action::Start,
            });
        }
        self.line_moves.notify_one();
        let generation = row.generation + 1;
        Ok(self
            .view_for(caller, InstanceRow { goal: Goal::Running, generation, spec, status, ..row.clone() }))
    }

    async fn act(
        &self,
        caller: &Caller,
        name: &str,
        action: Action,
        goal: Goal,
        status: Status,
    ) -> Result<Instance, Error> {
        loop {
            let grant = self.grant(caller, name, action).await?;
            if goal == Goal::Deleted && grant.instance().goal == Goal::Deleted {
                return Ok(self.view_for(caller, grant.instance().clone()));
            }
            let line = caller
                .line(act_word(action), grant.id().as_str())
                .with("name", grant.instance().name.as_str());
            let instance = grant.instance();
            if goal == Goal::Running {
                // Only now: a refusal names secrets of the owner's.
                self.check_used(instance.user_id, &instance.spec.secrets).await?;
            }
            // Somebody may have acted between the look and the write: look again.
            if self.store.set_goal(&instance.id, instance.generation, goal, &status, &line).await? {
                // Not read again, and told before the loop is woken: a moment later the row may be gone for good.
                let generation = instance.generation + 1;
                let row = InstanceRow { goal, generation, status, ..instance.clone() };
                self.announce(row.clone());
                self.clusters.wake();
                self.line_moves.notify_one();
                return Ok(self.view_for(caller, row));
            }
            if !self.store.still_opens(caller.key_hash()).await? {
                return Err(Error::Unauthenticated);
            }
        }
    }

    /// By name, slug or id; what the caller may not see is not there.
    pub(super) async fn find(&self, caller: &Caller, name: &str) -> Result<InstanceRow, Error> {
        let row = if let Ok(id) = name.parse::<InstanceId>() {
            // An id may be anybody's: whether it exists is not to be told by how long the answer takes.
            let row = self.store.instance_of(seen_by(caller), &id).await?;
            Some(row.ok_or_else(|| policy::missing(caller, "instance", name))?)
        } else if let Some(slug) = Slug::asked_for(name) {
            self.store.instance_by_slug(caller.user.id, &slug).await?
        } else {
            None
        };
        match row {
            Some(row) if policy::may_see(caller, &row) => Ok(row),
            Some(_) => Err(Error::hidden("instance", name)),
            None => Err(not_found(name)),
        }
    }

    /// Local images cannot be pulled: one that is missing is a mistake that can be told at once.
    pub(super) async fn check_image_is_here(&self, cluster: &Cluster, image: &str) -> Result<(), Error> {
        let is_own = image.parse::<Reference>().is_ok_and(|name| name.registry() == "localhost");
        // What a digest names is known to the engine alone.
        if !is_own || image.contains('@') {
            return Ok(());
        }
        match cluster.images().await {
            Some(images) if !images.iter().any(|local| same_image(&local.reference, image)) => {
                let reason = if self.is_preparing_image(image) {
                    Reason::ImageBeingPrepared
                } else {
                    Reason::ImageNotOnThisMachine
                };
                Err(Error::NoImage { reference: image.to_owned(), reason })
            }
            // When the cluster does not answer, the instance waits for it and is checked there.
            Some(_) | None => Ok(()),
        }
    }
}

/// Whose instances somebody may see: those of the group for its leader, everyone's for an admin.
fn seen_by(caller: &Caller) -> Whose {
    match caller.user.role {
        Role::Admin => Whose::Everyones,
        Role::Leader => Whose::Group(caller.user.group_id),
        Role::User => Whose::User(caller.user.id),
    }
}

/// Whether two references name the same image: a missing tag is `latest`.
pub(super) fn same_image(one: &str, other: &str) -> bool {
    let whole = |text: &str| text.parse::<Reference>().map(|name| name.whole());
    matches!((whole(one), whole(other)), (Ok(one), Ok(other)) if one == other)
}

fn not_found(name: &str) -> Error {
    Error::not_found("instance", name)
}

/// An act on an instance as the audit log calls it.
fn act_word(action: Action) -> &'static str {
    match action {
        Action::Start => "instance.start",
        Action::Stop => "instance.stop",
        Action::Restart => "instance.restart",
        Action::Delete => "instance.delete",
        Action::Terminal => "instance.terminal",
        Action::Exec => "instance.exec",
        Action::Logs => "instance.logs",
        Action::Open => "instance.open",
        Action::Save => "instance.save",
    }
}

/// The status of what is to run and may have to wait for room.
fn on_its_way() -> Status {
    super::jobs::in_line()
}

/// When each step of the last start began. What the store has not been asked about since is so from now on.
fn start_times(mut times: BTreeMap<String, Timestamp>, status: &Status) -> StartTimes {
    const STARTS: [&str; 3] = ["waiting", "pulling", "starting"];
    let state = status.word();
    if STARTS.contains(&state) && times.keys().any(|state| !STARTS.contains(&state.as_str())) {
        times.clear();
    }
    times.entry(state.to_owned()).or_insert_with(Timestamp::now);
    let at = |state: &str| times.get(state).copied();
    StartTimes {
        waiting: at("waiting"),
        pulling: at("pulling"),
        starting: at("starting"),
        running: at("running"),
        failed: at("failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tag_is_latest() {
        assert!(same_image("localhost/berth/base:latest", "localhost/berth/base"));
        assert!(same_image("debian", "docker.io/library/debian:latest"));
        assert!(!same_image("localhost/berth/base:latest", "localhost/berth/base:1"));
        assert!(!same_image("localhost/berth/base:latest", "localhost/berth/lab"));
        assert!(!same_image("", ""));
    }
}
