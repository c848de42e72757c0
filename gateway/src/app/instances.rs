//! Instances: what users do with them. Acts write the goal and return; the loops do the rest.

mod check;

use envd_api::control::{InstanceSpec, STORAGE_HOME, StorageMount};
use gateway_api::{
    Action, CreateInstance, Goal, Instance, InstanceId, InstanceName, Slug, Status,
    instance::{SHM_DEFAULT_BYTES, WaitReason},
};

use super::App;
use crate::{
    auth::policy::{self, Grant},
    error::Error,
    events::What,
    store::{InstanceRow, NewInstance, StoreError, User},
};

impl App {
    /// The caller's own instances, newest first.
    pub(crate) async fn instances(&self, caller: &User) -> Result<Vec<Instance>, Error> {
        let rows = self.store.instances_of(caller.id).await?;
        Ok(rows.into_iter().map(|row| self.view(row)).collect())
    }

    pub(crate) async fn instance(&self, caller: &User, name: &str) -> Result<Instance, Error> {
        Ok(self.view(self.find(caller, name).await?))
    }

    pub(crate) async fn create_instance(
        &self,
        caller: &User,
        wanted: CreateInstance,
    ) -> Result<Instance, Error> {
        let name: InstanceName = wanted.name.parse().map_err(Error::BadName)?;
        let slug = name.slug();
        let image = wanted.image.clone().unwrap_or_else(|| self.config.default_image.clone());
        check::image(&image)?;
        check::request(&wanted, self.cluster.node().as_ref())?;
        self.check_image_is_here(&image).await?;
        let spec = InstanceSpec {
            hostname: slug.to_string(),
            image,
            cpus: wanted.cpus,
            memory_bytes: wanted.memory_bytes,
            shm_bytes: wanted.shm_bytes.unwrap_or(SHM_DEFAULT_BYTES),
            gpus: wanted.gpus,
            env: wanted.env,
            command: wanted.command,
            mounts: vec![StorageMount { storage: STORAGE_HOME.to_owned(), key: caller.name.to_string() }],
        };
        let id = InstanceId::new();
        let new = NewInstance {
            id: &id,
            user: caller.id,
            name: &name,
            slug: &slug,
            spec: &spec,
            status: &on_its_way(),
        };
        self.store.add_instance(new).await.map_err(|error| match error {
            StoreError::Taken => Error::NameTaken { name: name.to_string() },
            StoreError::DiskFull(_) | StoreError::Database(_) | StoreError::Unreadable(_) => error.into(),
        })?;
        tracing::info!(user = %caller.name, instance = %id, %name, "created");
        self.wake.notify_one();
        let row = self.store.instance(&id).await?.ok_or_else(|| not_found(name.as_str()))?;
        Ok(self.announce(row))
    }

    pub(crate) async fn start_instance(&self, caller: &User, name: &str) -> Result<Instance, Error> {
        self.act(caller, name, Action::Start, Goal::Running, on_its_way()).await
    }

    pub(crate) async fn stop_instance(&self, caller: &User, name: &str) -> Result<Instance, Error> {
        self.act(caller, name, Action::Stop, Goal::Stopped, Status::Stopping).await
    }

    /// A new generation of the same goal: the cluster stops what was started for an earlier one first.
    pub(crate) async fn restart_instance(&self, caller: &User, name: &str) -> Result<Instance, Error> {
        self.act(caller, name, Action::Restart, Goal::Running, Status::Starting).await
    }

    pub(crate) async fn delete_instance(&self, caller: &User, name: &str) -> Result<Instance, Error> {
        self.act(caller, name, Action::Delete, Goal::Deleted, Status::Deleting).await
    }

    /// Finds an instance and grants an action on it.
    pub(crate) async fn grant(&self, caller: &User, name: &str, action: Action) -> Result<Grant, Error> {
        policy::grant(caller, self.find(caller, name).await?, action)
    }

    /// An instance as users see it.
    pub(crate) fn view(&self, row: InstanceRow) -> Instance {
        let status = self.cluster.seen(row.status);
        Instance {
            id: row.id,
            name: row.name,
            slug: row.slug,
            user: row.user,
            image: row.spec.image,
            cpus: row.spec.cpus,
            memory_bytes: row.spec.memory_bytes,
            shm_bytes: row.spec.shm_bytes,
            gpus: row.spec.gpus,
            env: row.spec.env,
            command: row.spec.command,
            goal: row.goal,
            actions: status.actions(),
            status,
            created_at: row.created_at,
        }
    }

    /// Tells listeners of a changed row and answers with what they see.
    pub(crate) fn announce(&self, row: InstanceRow) -> Instance {
        let owner = row.user_id;
        let instance = self.view(row);
        self.events.tell(owner, What::Changed(Box::new(instance.clone())));
        instance
    }

    async fn act(
        &self,
        caller: &User,
        name: &str,
        action: Action,
        goal: Goal,
        status: Status,
    ) -> Result<Instance, Error> {
        loop {
            let grant = self.grant(caller, name, action).await?;
            if goal == Goal::Deleted && grant.instance().goal == Goal::Deleted {
                return Ok(self.view(grant.instance().clone()));
            }
            // Somebody may have acted between the look and the write: look again.
            if self.store.set_goal(grant.id(), grant.instance().generation, goal, &status).await? {
                self.wake.notify_one();
                let row = self.store.instance(grant.id()).await?.ok_or_else(|| not_found(name))?;
                return Ok(self.announce(row));
            }
        }
    }

    /// By name, slug or id; what the caller may not see is not there.
    async fn find(&self, caller: &User, name: &str) -> Result<InstanceRow, Error> {
        let row = if let Ok(id) = name.parse::<InstanceId>() {
            self.store.instance(&id).await?
        } else if let Some(slug) = slug_of(name) {
            self.store.instance_by_slug(caller.id, &slug).await?
        } else {
            None
        };
        row.filter(|row| policy::may_see(caller, row)).ok_or_else(|| not_found(name))
    }

    /// Local images cannot be pulled: one that is missing is a mistake that can be told at once.
    async fn check_image_is_here(&self, image: &str) -> Result<(), Error> {
        if !image.starts_with("localhost/") {
            return Ok(());
        }
        match self.cluster.envd.images().await {
            Ok(images) if images.iter().all(|local| local.reference != image) => Err(Error::ImageNotFound {
                reference: image.to_owned(),
                why: "it is not on this machine, and images under `localhost/` are never pulled".to_owned(),
            }),
            // When the cluster does not answer, the instance waits for it and is checked there.
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

fn slug_of(name: &str) -> Option<Slug> {
    name.parse::<InstanceName>().map(|name| name.slug()).or_else(|_| name.parse::<Slug>()).ok()
}

fn not_found(name: &str) -> Error {
    let name = name.chars().filter(|letter| !letter.is_control()).take(64).collect();
    Error::NotFound { kind: "instance", name }
}

fn on_its_way() -> Status {
    Status::Waiting { reason: WaitReason::StartingUp, message: "the cluster has been told".to_owned() }
}
