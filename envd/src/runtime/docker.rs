//! The runtime on one Docker engine, the only place that names bollard.
//!
//! Every container carries three labels. `berth.cluster` keeps two clusters on one engine apart: nothing here ever
//! looks at a container without it, and every act is on the id of a container whose labels were checked.

mod container;
mod engine;
mod image;

use std::{collections::HashMap, path::Path, time::Duration};

use bollard::{
    container::LogOutput,
    models::{EventMessage, EventMessageTypeEnum},
    query_parameters::{
        CreateContainerOptionsBuilder, EventsOptionsBuilder, ListContainersOptionsBuilder,
        ListImagesOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
        StopContainerOptionsBuilder,
    },
};
use envd_api::control::LocalImage;
use futures_util::{Stream, StreamExt};
use gateway_api::{
    InstanceId,
    stream::{STDERR, STDOUT},
};
use jiff::Timestamp;

use self::engine::Engine;
use super::{
    Container, Defaults, ImageId, Launch, LogRecord, Machine, Progress, Runtime, RuntimeError, Sighting,
};

const LABEL_CLUSTER: &str = "berth.cluster";
const LABEL_INSTANCE: &str = "berth.instance";
const LABEL_GENERATION: &str = "berth.generation";

/// Where our own images live. They are never pulled, and there is no such registry.
const OWN_IMAGES: &str = "localhost/berth/";
/// What our own images are made from; nobody wants to run it.
const OWN_BASE: &str = "localhost/berth/debian";

const LOOK: Duration = Duration::from_secs(10);
const CREATE: Duration = Duration::from_mins(1);
const START: Duration = Duration::from_mins(1);
/// On top of the grace: what killing and cleaning up may take.
const STOP_BEYOND_GRACE: Duration = Duration::from_secs(30);
const REMOVE: Duration = Duration::from_mins(2);
/// Registries can be slow between two words, and so is the unpacking of a large layer.
const PULL_SILENCE: Duration = Duration::from_mins(5);

/// One cluster on one Docker engine.
#[derive(Debug)]
pub(crate) struct Docker {
    engine: Engine,
    cluster: String,
}

impl Docker {
    /// Connects when first used, and again whenever the engine was away.
    pub(crate) fn new(socket: &Path, cluster: String) -> Self {
        Self { engine: Engine::new(socket.display().to_string()), cluster }
    }

    fn cluster_label(&self) -> HashMap<&'static str, Vec<String>> {
        HashMap::from([("label", vec![format!("{LABEL_CLUSTER}={}", self.cluster)])])
    }
}

/// The name of an instance's container: a second one cannot be made.
fn name(id: &InstanceId) -> String {
    format!("berth-{id}")
}

impl Runtime for Docker {
    async fn list(&self) -> Result<Vec<Sighting>, RuntimeError> {
        let options = ListContainersOptionsBuilder::new().all(true).filters(&self.cluster_label()).build();
        let found = self
            .engine
            .call("list of containers", LOOK, async |docker| docker.list_containers(Some(options)).await)
            .await?;
        Ok(found.into_iter().filter_map(container::sighting).collect())
    }

    async fn find(&self, id: &InstanceId) -> Result<Option<Container>, RuntimeError> {
        let name = name(id);
        let found = self
            .engine
            .call_unless("look at a container", LOOK, &[404], async |docker| {
                docker.inspect_container(&name, None).await
            })
            .await?;
        found.map(|found| container::container(id, &self.cluster, found)).transpose()
    }

    async fn image(
        &self,
        reference: &str,
        progress: impl FnMut(Progress) + Send,
    ) -> Result<ImageId, RuntimeError> {
        image::ensure(&self.engine, reference, progress).await
    }

    async fn create(&self, launch: &Launch<'_>) -> Result<(), RuntimeError> {
        let name = name(launch.instance);
        let options = CreateContainerOptionsBuilder::new().name(&name).build();
        let body = container::body(&self.cluster, launch)?;
        let created = self
            .engine
            .call_unless("make a container", CREATE, &[409], async |docker| {
                docker.create_container(Some(options), body).await
            })
            .await?;
        if created.is_none() && self.find(launch.instance).await?.is_none() {
            return Err(RuntimeError::Engine { why: format!("the name `{name}` is taken and not found") });
        }
        Ok(())
    }

    async fn defaults(&self, container: &Container) -> Result<Option<Defaults>, RuntimeError> {
        image::defaults(&self.engine, &container.image).await
    }

    async fn start(&self, container: &Container) -> Result<(), RuntimeError> {
        self.engine
            .call("start a container", START, async |docker| {
                docker.start_container(&container.id, None).await
            })
            .await
    }

    async fn stop(&self, container: &Container, grace: Duration) -> Result<(), RuntimeError> {
        let seconds = i32::try_from(grace.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptionsBuilder::new().t(seconds).build();
        self.engine
            .call_unless("stop a container", grace + STOP_BEYOND_GRACE, &[404], async |docker| {
                docker.stop_container(&container.id, Some(options)).await
            })
            .await
            .map(drop)
    }

    async fn remove(&self, container: &Container) -> Result<(), RuntimeError> {
        // With `v` the anonymous volumes that the image declares go too; named ones and binds never do.
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        // A conflict says that the removal is already under way.
        self.engine
            .call_unless("remove a container", REMOVE, &[404, 409], async |docker| {
                docker.remove_container(&container.id, Some(options)).await
            })
            .await
            .map(drop)
    }

    async fn logs(
        &self,
        container: &Container,
        tail: Option<u64>,
        follow: bool,
    ) -> Result<impl Stream<Item = Result<LogRecord, RuntimeError>> + Send + use<>, RuntimeError> {
        let tail = tail.map_or_else(|| "all".to_owned(), |lines| lines.to_string());
        let options = LogsOptionsBuilder::new().stdout(true).stderr(true).follow(follow).tail(&tail).build();
        let docker = self.engine.docker().await?;
        let records = docker.logs(&container.id, Some(options)).map(|record| match record {
            Ok(LogOutput::StdErr { message }) => Ok(LogRecord { stream: STDERR, bytes: message }),
            Ok(
                LogOutput::StdOut { message } | LogOutput::Console { message } | LogOutput::StdIn { message },
            ) => Ok(LogRecord { stream: STDOUT, bytes: message }),
            Err(error) => Err(engine::runtime_error(error)),
        });
        Ok(records)
    }

    async fn changes(
        &self,
    ) -> Result<impl Stream<Item = Result<InstanceId, RuntimeError>> + Send + use<>, RuntimeError> {
        let mut filters = self.cluster_label();
        filters.insert("type", vec!["container".to_owned()]);
        filters.insert("event", ["start", "die", "destroy"].map(str::to_owned).to_vec());
        let options = EventsOptionsBuilder::new().filters(&filters).build();
        let docker = self.engine.docker().await?;
        Ok(docker.events(Some(options)).filter_map(async |event| match event {
            Ok(event) => instance_of(&event).map(Ok),
            Err(error) => Some(Err(engine::runtime_error(error))),
        }))
    }

    async fn images(&self) -> Result<Vec<LocalImage>, RuntimeError> {
        let options = ListImagesOptionsBuilder::new()
            .filters(&HashMap::from([("reference", vec![format!("{OWN_IMAGES}*")])]))
            .build();
        let found = self
            .engine
            .call("list of images", LOOK, async |docker| docker.list_images(Some(options)).await)
            .await?;
        let mut images: Vec<_> = found
            .iter()
            .flat_map(|image| {
                image.repo_tags.iter().filter(|tag| image::is_offered(tag)).map(|tag| LocalImage {
                    reference: tag.clone(),
                    size_bytes: u64::try_from(image.size).unwrap_or(0),
                    created_at: Timestamp::from_second(image.created).unwrap_or(Timestamp::UNIX_EPOCH),
                })
            })
            .collect();
        images.sort_by(|one, other| one.reference.cmp(&other.reference));
        Ok(images)
    }

    #[expect(clippy::cast_precision_loss, reason = "no machine has that many processors")]
    async fn machine(&self) -> Result<Machine, RuntimeError> {
        let info = self.engine.call("look at the engine", LOOK, async |docker| docker.info().await).await?;
        Ok(Machine {
            name: info.name.unwrap_or_default(),
            cpus: info.ncpu.unwrap_or(0) as f64,
            memory_bytes: info.mem_total.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
        })
    }
}

/// The instance that an event is about.
fn instance_of(event: &EventMessage) -> Option<InstanceId> {
    if event.typ != Some(EventMessageTypeEnum::CONTAINER) {
        return None;
    }
    event.actor.as_ref()?.attributes.as_ref()?.get(LABEL_INSTANCE)?.parse().ok()
}
