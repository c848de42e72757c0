//! The runtime on one Docker engine, the only place that names bollard.
//!
//! Every container and network carries labels. `berth.cluster` keeps two clusters on one engine apart: nothing here ever
//! looks at anything without it, and every act is on the id of something whose labels were checked.

mod container;
mod counts;
mod engine;
mod firewall;
mod image;
mod network;
mod quota;
mod reach;
mod save;

mod seccomp;
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::OnceLock,
    time::{Duration, Instant},
};

use bollard::{
    container::LogOutput,
    models::{EventMessage, EventMessageTypeEnum},
    query_parameters::{
        CreateContainerOptionsBuilder, EventsOptionsBuilder, InspectContainerOptionsBuilder,
        ListContainersOptionsBuilder, ListImagesOptionsBuilder, LogsOptionsBuilder,
        RemoveContainerOptionsBuilder, StopContainerOptionsBuilder,
    },
};
use bytes::Bytes;
use envd_api::control::{Counts, LocalImage, RegistryLogin, Syscalls, Tenants};
use futures_util::{Stream, StreamExt};
use gateway_api::{
    InstanceId,
    node::DiskLimit,
    stream::{STDERR, STDOUT},
};
use ipnet::Ipv4Net;
use jiff::Timestamp;
use tokio::{
    sync::{Mutex, RwLock},
    task::spawn_blocking,
};
use tracing::warn;

use self::{
    container::Ground,
    engine::Engine,
    firewall::Firewall,
    network::{Networks, Removed},
};
use super::{
    Change, Container, Defaults, ImageId, Launch, LogRecord, Machine, Progress, Runtime, RuntimeError,
    SaveSource, Sighting, Wiring,
};
use crate::{
    cards,
    disk::{self, Measured},
    save::registry,
};

const LABEL_CLUSTER: &str = "berth.cluster";
const LABEL_INSTANCE: &str = "berth.instance";
const LABEL_GENERATION: &str = "berth.generation";
/// The cards that it was made with, with commas between.
const LABEL_CARDS: &str = "berth.cards";
/// The user whose network it is, or who uses it.
const LABEL_NETWORK: &str = "berth.network";

/// Where our own images live. They are never pulled, and there is no such registry.
const OWN_IMAGES: &str = "localhost/berth/";
/// What our own images are made from, and what is mounted into all: nobody wants to run them.
const OWN_PARTS: [&str; 2] = ["localhost/berth/debian", "localhost/berth/tools"];

const LOOK: Duration = Duration::from_secs(10);
const NETWORK: Duration = Duration::from_secs(30);
const CREATE: Duration = Duration::from_mins(1);
const START: Duration = Duration::from_mins(1);
/// On top of the grace: what killing and cleaning up may take.
const STOP_BEYOND_GRACE: Duration = Duration::from_secs(30);
const REMOVE: Duration = Duration::from_mins(2);
/// Registries can be slow between two words, and so is the unpacking of a large layer.
const PULL_SILENCE: Duration = Duration::from_mins(5);
/// What the engine hands over of a longer line at once.
const LINE_PIECE: usize = 16 << 10;
/// How long the engine may take to count a container's files itself.
const MEASURE: Duration = Duration::from_secs(30);

/// What a site decides about its engine.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) socket: PathBuf,
    /// All with a public name if it is `None`.
    pub(crate) registries: Option<Vec<String>>,
    /// Where images of Docker Hub come from instead.
    pub(crate) hub_relay: Option<String>,
    /// The site's own: always allowed.
    pub(crate) registry: Option<registry::Settings>,
    pub(crate) network_pool: Ipv4Net,
    /// Whether instances start also when users cannot be kept apart.
    pub(crate) dangerous_no_firewall: bool,
}

/// One cluster on one Docker engine.
#[derive(Debug)]
pub(crate) struct Docker {
    engine: Engine,
    cluster: String,
    settings: Settings,
    networks: Networks,
    firewall: Firewall,
    /// Shared from making sure of a network until there is a container that needs it; nobody else's while unused ones are
    /// removed.
    wiring: RwLock<()>,
    /// One network at a time is made, with the rules that keep it apart.
    making: Mutex<()>,
    disk_limit: OnceLock<DiskLimit>,
    known_images: image::KnownImages,
}

/// Why a cluster's networks and rules are still there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PurgeError {
    #[error("nothing was removed, since instances of this cluster still run ({0}): stop them first")]
    Running(usize),
    #[error("not all could be removed")]
    Runtime(#[from] RuntimeError),
}

impl Docker {
    /// Connects when first used, and again whenever the engine was away.
    pub(crate) fn new(settings: Settings, cluster: String) -> Self {
        let networks = Networks::new(&cluster, settings.network_pool);
        Self {
            engine: Engine::new(settings.socket.display().to_string()),
            firewall: Firewall::new(networks.names.clone(), networks.pool()),
            networks,
            cluster,
            settings,
            wiring: RwLock::default(),
            making: Mutex::default(),
            disk_limit: OnceLock::new(),
            known_images: image::KnownImages::default(),
        }
    }

    /// Removes the networks and the firewall's chains of this cluster. Containers and files stay. While an instance runs
    /// nothing is removed: it would be left on its network without the rules that keep it apart.
    pub(crate) async fn purge(&self) -> Result<(), PurgeError> {
        let running = self.list().await?.iter().filter(|sighting| sighting.running).count();
        if running > 0 {
            return Err(PurgeError::Running(running));
        }
        let removed = self.networks.remove_unused(&self.engine, true).await;
        self.firewall.remove().await.map_err(|why| RuntimeError::Engine { why })?;
        let why = match removed? {
            Removed { left: 0, .. } => return Ok(()),
            Removed { left, miscounted, .. } if left == miscounted => format!(
                "it holds on to {left} networks that nothing uses; restart it and run this again to remove them"
            ),
            Removed { left, .. } => format!("{left} networks are still in use"),
        };
        Err(RuntimeError::Engine { why }.into())
    }

    /// The network of a user, behind the firewall; to be called with [`Self::wiring`] held.
    async fn network(&self, user: &str) -> Result<String, RuntimeError> {
        let _making = self.making.lock().await;
        let network = self.networks.ensure(&self.engine, user).await?;
        if network.is_new || self.firewall.tenants() != Tenants::Apart {
            self.keep_apart().await?;
        }
        Ok(network.id)
    }

    async fn keep_apart(&self) -> Result<(), RuntimeError> {
        let bridges = self.networks.bridges(&self.engine).await?;
        match self.firewall.keep(&bridges).await {
            Err(why) if !self.settings.dangerous_no_firewall => Err(RuntimeError::NotApart { why }),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    async fn remove_unused_networks(&self) -> Result<(), RuntimeError> {
        match self.networks.remove_unused(&self.engine, false).await? {
            Removed { left: 0, .. } => {
                if let Err(error) = self.firewall.remove().await {
                    warn!(error, "the firewall's chains cannot be removed");
                }
                Ok(())
            }
            Removed { gone: 0, .. } => Ok(()),
            // No rule for a bridge that is gone; the others are as safe with it as without.
            Removed { .. } => {
                if let Err(error) = self.keep_apart().await {
                    warn!(%error, "the firewall's rules cannot be written anew");
                }
                Ok(())
            }
        }
    }

    /// Asked once: it is a matter of how the engine's disk was mounted.
    async fn find_disk_limit(&self) -> Result<DiskLimit, RuntimeError> {
        if let Some(known) = self.disk_limit.get() {
            return Ok(*known);
        }
        let info = self.engine.call("look at the engine", LOOK, async |docker| docker.info().await).await?;
        Ok(*self.disk_limit.get_or_init(|| quota::limit(&info)))
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
        before: Option<ImageId>,
        login: Option<&RegistryLogin>,
        progress: impl FnMut(Progress) + Send,
    ) -> Result<ImageId, RuntimeError> {
        image::ensure(&self.engine, &self.known_images, reference, before, self.places(), login, progress)
            .await
    }

    async fn find_image(
        &self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<Option<String>, RuntimeError> {
        image::find(&self.engine, reference, self.places(), login).await
    }

    async fn create(&self, launch: &Launch<'_>) -> Result<Option<Container>, RuntimeError> {
        let name = name(launch.instance);
        let options = CreateContainerOptionsBuilder::new().name(&name).build();
        let has_quota = self.find_disk_limit().await? == DiskLimit::Hard;
        let _wiring = self.wiring.read().await;
        self.network(&launch.spec.user).await?;
        // By name and not by id: it may have to be made again before a later start.
        let network = self.networks.names.network(&launch.spec.user);
        let has_driver = cards::has_driver();
        let ground = Ground { cluster: &self.cluster, network: &network, has_quota, has_driver };
        let body = container::body(&ground, launch)?;
        let created = self
            .engine
            .call_unless("make a container", CREATE, &[409], async |docker| {
                docker.create_container(Some(options), body).await
            })
            .await?;
        match created {
            Some(created) => Ok(Some(container::made(created.id, launch))),
            None if self.find(launch.instance).await?.is_some() => Ok(None),
            None => Err(RuntimeError::Engine { why: format!("the name `{name}` is taken and not found") }),
        }
    }

    async fn defaults(&self, container: &Container) -> Result<Option<Defaults>, RuntimeError> {
        image::defaults(&self.engine, &self.known_images, &container.image).await
    }

    async fn start(&self, container: &Container, wiring: Wiring) -> Result<(), RuntimeError> {
        let is_sure = wiring == Wiring::Fresh && self.firewall.tenants() == Tenants::Apart;
        if let Some(user) = container.user.as_ref().filter(|_| !is_sure) {
            let _wiring = self.wiring.read().await;
            let network = self.network(user).await?;
            // The engine remembers the id of a network that is no more.
            if container.network.as_ref().is_some_and(|last| !last.is_empty() && *last != network) {
                self.networks.attach(&self.engine, container, &network).await?;
            }
        }
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

    async fn count(&self, id: &InstanceId) -> Result<Option<Counts>, RuntimeError> {
        counts::count(&self.engine, &name(id)).await
    }

    async fn keep(&self, container: &Container) -> Result<ImageId, RuntimeError> {
        save::keep(&self.engine, container).await
    }

    async fn remove(&self, container: &Container) -> Result<(), RuntimeError> {
        // With `v` the anonymous volumes that the image declares go too; named ones and binds never do.
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        // A conflict says that the removal is already under way.
        self.engine
            .call_unless("remove a container", REMOVE, &[404, 409], async |docker| {
                docker.remove_container(&container.id, Some(options)).await
            })
            .await?;
        let _wiring = self.wiring.write().await;
        self.remove_unused_networks().await
    }

    async fn logs(
        &self,
        container: &Container,
        tail: Option<u64>,
        since: Option<i64>,
        follow: bool,
    ) -> Result<impl Stream<Item = Result<LogRecord, RuntimeError>> + Send + use<>, RuntimeError> {
        let tail = tail.map_or_else(|| "all".to_owned(), |lines| lines.to_string());
        let since = since.map_or(0, |second| i32::try_from(second).unwrap_or(i32::MAX));
        let options = LogsOptionsBuilder::new().stdout(true).stderr(true).follow(follow).tail(&tail);
        let options = options.since(since).build();
        let docker = self.engine.docker().await?;
        let records = docker.logs(&container.id, Some(options)).map(|record| match record {
            Ok(LogOutput::StdErr { message }) => {
                Ok(LogRecord { stream: STDERR, bytes: with_line_end(message) })
            }
            Ok(
                LogOutput::StdOut { message } | LogOutput::Console { message } | LogOutput::StdIn { message },
            ) => Ok(LogRecord { stream: STDOUT, bytes: with_line_end(message) }),
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

    async fn changed_paths(&self, container: &Container) -> Result<Vec<(String, Change)>, RuntimeError> {
        save::changed_paths(&self.engine, container).await
    }

    async fn export_files(
        &self,
        container: &Container,
    ) -> Result<impl Stream<Item = Result<Bytes, RuntimeError>> + Send + 'static + use<>, RuntimeError> {
        save::export_files(&self.engine, container).await
    }

    async fn unpacks_zstd(&self) -> Result<bool, RuntimeError> {
        save::unpacks_zstd(&self.engine).await
    }

    async fn saved_images(&self, registry: &str) -> Result<Vec<LocalImage>, RuntimeError> {
        let options = ListImagesOptionsBuilder::new().build();
        let found = self
            .engine
            .call("list of images", LOOK, async |docker| docker.list_images(Some(options)).await)
            .await?;
        let prefix = format!("{registry}/");
        let local = |image: &bollard::models::ImageSummary| {
            let all = image.repo_tags.iter().chain(&image.repo_digests);
            let own = all.filter(|name| name.starts_with(&prefix)).map(|name| LocalImage {
                reference: name.clone(),
                size_bytes: u64::try_from(image.size).unwrap_or(0),
                created_at: Timestamp::from_second(image.created).unwrap_or(Timestamp::UNIX_EPOCH),
            });
            own.collect::<Vec<_>>()
        };
        Ok(found.iter().flat_map(local).collect())
    }

    #[expect(clippy::cast_precision_loss, reason = "no machine has that many processors")]
    async fn machine(&self) -> Result<Machine, RuntimeError> {
        let info = self.engine.call("look at the engine", LOOK, async |docker| docker.info().await).await?;
        Ok(Machine {
            name: info.name.unwrap_or_default(),
            cpus: info.ncpu.unwrap_or(0) as f64,
            memory_bytes: info.mem_total.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
            syscalls: syscalls(&info.security_options.unwrap_or_default()),
        })
    }

    async fn save_source(&self, container: &Container) -> Result<SaveSource, RuntimeError> {
        save::source(&self.engine, container).await
    }

    async fn export_image(
        &self,
        image: &str,
    ) -> Result<impl Stream<Item = Result<Bytes, RuntimeError>> + Send + use<>, RuntimeError> {
        save::export_image(&self.engine, image).await
    }

    async fn load(
        &self,
        archive: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    ) -> Result<(), RuntimeError> {
        save::load(&self.engine, archive).await
    }

    async fn untag(&self, reference: &str) -> Result<(), RuntimeError> {
        save::untag(&self.engine, reference).await
    }

    async fn disk_use(
        &self,
        container: &Container,
        enough: u64,
        within: Duration,
    ) -> Result<Measured, RuntimeError> {
        if container.own_files.is_empty() {
            return self.engines_own_count(container).await;
        }
        let (roots, until) = (container.own_files.clone(), Instant::now() + within);
        let measured = spawn_blocking(move || disk::measure(&roots, enough, until)).await;
        measured
            .unwrap_or_else(|_| Err(std::io::Error::other("it panicked")))
            .map_err(|error| RuntimeError::Engine { why: format!("cannot measure its files: {error}") })
    }

    async fn tidy(&self) -> Result<(), RuntimeError> {
        self.find_disk_limit().await?;
        let _wiring = self.wiring.write().await;
        self.remove_unused_networks().await?;
        self.keep_apart().await
    }

    fn tenants(&self) -> Tenants {
        self.firewall.tenants()
    }

    fn disk_limit(&self) -> DiskLimit {
        self.disk_limit.get().copied().unwrap_or_default()
    }
}

impl Docker {
    /// Where images may come from.
    fn places(&self) -> image::Places<'_> {
        let Settings { registries, registry, hub_relay, .. } = &self.settings;
        image::Places {
            registries: registries.as_deref(),
            own: registry.as_ref(),
            hub_relay: hub_relay.as_deref(),
        }
    }

    /// For engines that do not say where a container's files are.
    async fn engines_own_count(&self, container: &Container) -> Result<Measured, RuntimeError> {
        let options = InspectContainerOptionsBuilder::new().size(true).build();
        let found = self
            .engine
            .call("measure a container", MEASURE, async |docker| {
                docker.inspect_container(&container.id, Some(options)).await
            })
            .await?;
        Ok(Measured::Bytes(found.size_rw.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)))
    }
}

/// Whether the engine can filter, as it says by `name=seccomp,profile=default`. The profile is that of containers that bring
/// none; ours do.
fn syscalls(options: &[String]) -> Syscalls {
    let filters = options.iter().any(|option| option.split(',').any(|part| part == "name=seccomp"));
    if filters { Syscalls::Filtered } else { Syscalls::Unfiltered }
}

/// The instance that an event is about.
fn instance_of(event: &EventMessage) -> Option<InstanceId> {
    if event.typ != Some(EventMessageTypeEnum::CONTAINER) {
        return None;
    }
    event.actor.as_ref()?.attributes.as_ref()?.get(LABEL_INSTANCE)?.parse().ok()
}

/// Docker's `local` logs forget the end of a line that was long enough to come in pieces, at least those of 20.10: the
/// next line went on where it stood. All pieces but the last are whole, and all else ends with its line.
fn with_line_end(output: Bytes) -> Bytes {
    if output.ends_with(b"\n") || output.len() >= LINE_PIECE {
        return output;
    }
    [&output, &b"\n"[..]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_says_whether_it_filters_system_calls() {
        let check = |options: &[&str], expected: Syscalls| {
            let options: Vec<_> = options.iter().map(|&option| option.to_owned()).collect();
            assert_eq!(syscalls(&options), expected, "{options:?}");
        };
        check(&["name=apparmor", "name=seccomp,profile=default"], Syscalls::Filtered);
        check(&["name=seccomp,profile=builtin", "name=cgroupns"], Syscalls::Filtered);
        check(&["name=seccomp,profile=/etc/docker/seccomp.json"], Syscalls::Filtered);
        check(&["name=seccomp,profile=unconfined"], Syscalls::Filtered);
        check(&["name=apparmor"], Syscalls::Unfiltered);
        check(&[], Syscalls::Unfiltered);
    }
}
