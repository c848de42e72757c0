//! A place that runs containers, in our own nouns.
//!
//! Nothing here names Docker: a second backend must not have to pretend to be one. How bytes reach an instance is the
//! agent's affair, so a runtime only finds, makes, starts, stops, removes and lists.

pub(crate) mod docker;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use bytes::Bytes;
use envd_api::control::{Counts, Failure, InstanceSpec, LocalImage, RegistryLogin, Syscalls, Takes, Tenants};
use futures_util::Stream;
use gateway_api::{InstanceId, node::DiskLimit};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::disk::Measured;

/// A place that runs containers.
///
/// Contract, checked by `tests/conformance`:
/// - `create` of what is there already is `Ok`, and so are `start` of the running and `stop` and `remove` of the absent;
/// - `list` and `find` see what a previous process made, by label, and nothing that another cluster made;
/// - instances of two users never reach each other, and a start is refused where that cannot be made sure of;
/// - dropping a future never leaks a container, at worst `list` still shows it;
/// - nothing waits for ever: each call ends, with [`RuntimeError::Unreachable`] if the engine does not answer.
pub(crate) trait Runtime: Send + Sync + 'static {
    /// All containers of this cluster.
    fn list(&self) -> impl Future<Output = Result<Vec<Sighting>, RuntimeError>> + Send;

    /// The container of one instance.
    fn find(&self, id: &InstanceId) -> impl Future<Output = Result<Option<Container>, RuntimeError>> + Send;

    /// Makes sure that an image is on this machine, with a download if it must be, and says which one it is now: the
    /// one that was used `before` if it is still here, whatever the name means by now. Else the registry is asked, as
    /// whoever `login` is, also when the image is here already: what one user has pulled is not for all.
    fn image(
        &self,
        reference: &str,
        before: Option<ImageId>,
        login: Option<&RegistryLogin>,
        progress: impl FnMut(Progress) + Send,
    ) -> impl Future<Output = Result<ImageId, RuntimeError>> + Send;

    /// The digest that a registry has under a name, for whoever `login` is; `None` for images that no registry is asked
    /// for.
    fn find_image(
        &self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> impl Future<Output = Result<Option<String>, RuntimeError>> + Send;

    /// Makes a container, and answers with it as it is then; `None` if there is one already.
    fn create(
        &self,
        launch: &Launch<'_>,
    ) -> impl Future<Output = Result<Option<Container>, RuntimeError>> + Send;

    /// What the image of a container says about its processes; `None` when the image has been removed since.
    fn defaults(
        &self,
        container: &Container,
    ) -> impl Future<Output = Result<Option<Defaults>, RuntimeError>> + Send;

    /// What [`Self::create`] has just answered with is wired up already.
    fn start(
        &self,
        container: &Container,
        wiring: Wiring,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Asks the container to end and, after `grace`, ends it.
    fn stop(
        &self,
        container: &Container,
        grace: Duration,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// What the running container of an instance has used; `None` if there is none.
    fn count(&self, id: &InstanceId) -> impl Future<Output = Result<Option<Counts>, RuntimeError>> + Send;

    /// Makes an image of a container that does not run, with all that is in it. It has no name, and says of its
    /// processes what the image says that the container was made from.
    fn keep(&self, container: &Container) -> impl Future<Output = Result<ImageId, RuntimeError>> + Send;

    /// Removes the container, running or not, with its own files.
    fn remove(&self, container: &Container) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// The output of a container: its last `tail` lines of those since that second of Unix time, and with `follow` what comes until it ends.
    fn logs(
        &self,
        container: &Container,
        tail: Option<u64>,
        since: Option<i64>,
        follow: bool,
    ) -> impl Future<
        Output = Result<impl Stream<Item = Result<LogRecord, RuntimeError>> + Send + use<Self>, RuntimeError>,
    > + Send;

    /// The instances whose containers change, as they change. It may miss some: `list` is the truth.
    fn changes(
        &self,
    ) -> impl Future<
        Output = Result<
            impl Stream<Item = Result<InstanceId, RuntimeError>> + Send + use<Self>,
            RuntimeError,
        >,
    > + Send;

    /// The images of our own on this machine.
    fn images(&self) -> impl Future<Output = Result<Vec<LocalImage>, RuntimeError>> + Send;

    /// The paths of a container that differ from its image. Names that are not text are spoilt.
    fn changed_paths(
        &self,
        container: &Container,
    ) -> impl Future<Output = Result<Vec<(String, Change)>, RuntimeError>> + Send;

    /// All files of a container, as an archive; nothing that is mounted.
    fn export_files(
        &self,
        container: &Container,
    ) -> impl Future<
        Output = Result<
            impl Stream<Item = Result<Bytes, RuntimeError>> + Send + 'static + use<Self>,
            RuntimeError,
        >,
    > + Send;

    /// Whether it can use images whose layers are compressed with zstd.
    fn unpacks_zstd(&self) -> impl Future<Output = Result<bool, RuntimeError>> + Send;

    /// What is here of a registry's images, each by one of its names.
    fn saved_images(
        &self,
        registry: &str,
    ) -> impl Future<Output = Result<Vec<LocalImage>, RuntimeError>> + Send;

    fn machine(&self) -> impl Future<Output = Result<Machine, RuntimeError>> + Send;

    /// What saving a container needs to know.
    fn save_source(
        &self,
        container: &Container,
    ) -> impl Future<Output = Result<SaveSource, RuntimeError>> + Send;

    /// An archive of an image's layers.
    fn export_image(
        &self,
        image: &str,
    ) -> impl Future<
        Output = Result<impl Stream<Item = Result<Bytes, RuntimeError>> + Send + use<Self>, RuntimeError>,
    > + Send;

    /// Takes an archive of an image in, of which layers that are here already may be missing.
    fn load(
        &self,
        archive: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Takes a name away from an image; of one that is gone too.
    fn untag(&self, reference: &str) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// What a container's own files take, as far as it matters whether that is more than `enough`, and as far as it can
    /// be found out `within` that time.
    fn disk_use(
        &self,
        container: &Container,
        enough: u64,
        within: Duration,
    ) -> impl Future<Output = Result<Measured, RuntimeError>> + Send;

    /// Removes what belongs to no container any more, and puts right what somebody else has changed.
    fn tidy(&self) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Whether users are kept apart, as last made sure of.
    fn tenants(&self) -> Tenants;

    fn disk_limit(&self) -> DiskLimit;
}

/// By this variable NVIDIA's runtime is told which cards to give, and programs see which they have.
pub(crate) const VISIBLE_CARDS: &str = "NVIDIA_VISIBLE_DEVICES";
/// Its value for none.
pub(crate) const NO_CARDS: &str = "void";

/// The state of a container's network and mounted folders. If unknown, envd ensures them before the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wiring {
    Unknown,
    /// Ensured when the container was made a moment ago.
    Fresh,
}

/// The id of an image's content: what a name meant at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageId(pub(crate) String);

/// A container as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub(crate) instance: InstanceId,
    /// The container's own id: another one for each that is made.
    pub(crate) container: String,
    pub(crate) running: bool,
}

/// One container, looked at closely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) instance: InstanceId,
    pub(crate) id: String,
    pub(crate) image: ImageId,
    pub(crate) phase: Phase,
    /// When it was last started, in the runtime's own words: differs for each start.
    pub(crate) last_start: String,
    /// Whose it is.
    pub(crate) user: Option<String>,
    /// The id of the network that it was last in.
    pub(crate) network: Option<String>,
    /// Where its neighbours reach it, while it runs.
    pub(crate) address: Option<String>,
    /// The directories of this machine that it was made with.
    pub(crate) binds: Vec<Bind>,
    /// What it was made with of the machine.
    pub(crate) takes: Takes,
    /// Where its own files are on this machine; empty where that cannot be told.
    pub(crate) own_files: Vec<PathBuf>,
}

/// What a container is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Created,
    Running {
        since: Timestamp,
    },
    Exited {
        exit_code: i32,
        out_of_memory: bool,
        ran_for: Duration,
    },
    /// Half removed, or whatever else it cannot be started from.
    Broken,
}

/// How a path of a container differs from its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Modified,
    Added,
    Removed,
}

/// What saving a container needs to know.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SaveSource {
    /// The directory of this machine that holds the container's changes; `None` where they are kept in another way.
    pub(crate) upper: Option<PathBuf>,
    /// Those that hold what had changed before the container was made anew, the oldest first: changes as well.
    pub(crate) kept: Vec<PathBuf>,
    /// Those that hold the layers of its image, the uppermost first, where they are known.
    pub(crate) lowers: Vec<PathBuf>,
    /// Its first process, if it runs.
    pub(crate) pid: Option<u32>,
    /// Where something else is mounted.
    pub(crate) mounts: Vec<String>,
    pub(crate) base: BaseImage,
}

/// The image that a container was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BaseImage {
    pub(crate) id: String,
    pub(crate) architecture: String,
    pub(crate) os: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) variant: Option<String>,
    /// What it says about its processes, as it stands in images.
    pub(crate) config: serde_json::Value,
    /// The digests of its layers, the lowest first.
    pub(crate) diff_ids: Vec<String>,
}

/// A container to be made.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) instance: &'a InstanceId,
    pub(crate) generation: u64,
    pub(crate) spec: &'a InstanceSpec,
    pub(crate) image: ImageId,
    pub(crate) binds: Vec<Bind>,
    /// What its own files may take.
    pub(crate) disk_bytes: u64,
}

/// A host path inside a container. Made from envd's own tables only, never from what a request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) source: PathBuf,
    pub(crate) target: String,
    pub(crate) read_only: bool,
}

/// What an image says about its processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Defaults {
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) user: String,
    pub(crate) cwd: String,
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) done_bytes: u64,
    pub(crate) total_bytes: Option<u64>,
}

/// A piece of a container's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogRecord {
    /// [`gateway_api::stream::STDOUT`] or [`gateway_api::stream::STDERR`].
    pub(crate) stream: u8,
    pub(crate) bytes: Bytes,
}

/// The machine that the engine runs on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) cpus: f64,
    pub(crate) memory_bytes: u64,
    pub(crate) syscalls: Syscalls,
}

/// Why a runtime did not do what it was told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuntimeError {
    #[error("the container engine does not answer: {why}")]
    Unreachable { why: String },
    #[error("`{image}` is not the name of an image: {why}")]
    BadImage { image: String, why: String },
    #[error("no image named `{image}`: {why}")]
    ImageNotFound { image: String, why: String },
    #[error("cannot download `{image}`: {why}")]
    Download { image: String, why: String },
    #[error("the registry `{registry}` does not give `{image}` to you: {why}")]
    Denied { image: String, registry: String, why: String },
    #[error("the registry `{registry}` cannot be asked for `{image}`: {why}")]
    NoRegistry { image: String, registry: String, why: String },
    #[error("the disk of this machine is full")]
    DiskFull,
    /// The same again gives the same again.
    #[error("the container engine refuses: {why}")]
    Refused { why: String },
    #[error("a container named `{name}` is there already, and this cluster did not make it")]
    Foreign { name: String },
    #[error("images from `{registry}` are not allowed here; use one from {allowed}")]
    RegistryNotAllowed { registry: String, allowed: String },
    /// It would be reachable by others.
    #[error("tenants are not kept apart: {why}")]
    NotApart { why: String },
    /// A start is refused since the run before is not over for the engine.
    #[error("the container engine has not let go of the last run: {why}")]
    Stuck { why: String },
    #[error("the container engine failed: {why}")]
    Engine { why: String },
}

impl RuntimeError {
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Unreachable { .. } => Failure::EngineUnreachable,
            Self::BadImage { .. } => Failure::BadImage,
            Self::ImageNotFound { .. } | Self::Denied { .. } => Failure::ImageNotFound,
            Self::DiskFull => Failure::DiskFull,
            Self::Refused { .. }
            | Self::Foreign { .. }
            | Self::RegistryNotAllowed { .. }
            | Self::NotApart { .. } => Failure::Refused,
            Self::Download { .. } | Self::NoRegistry { .. } | Self::Stuck { .. } | Self::Engine { .. } => {
                Failure::Engine
            }
        }
    }

    /// Whether trying again by itself may help.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::DiskFull
            | Self::NotApart { .. }
            | Self::Stuck { .. }
            | Self::Engine { .. } => true,
            Self::BadImage { .. }
            | Self::ImageNotFound { .. }
            | Self::Download { .. }
            | Self::Denied { .. }
            | Self::NoRegistry { .. }
            | Self::Refused { .. }
            | Self::RegistryNotAllowed { .. }
            | Self::Foreign { .. } => false,
        }
    }
}

impl Container {
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }
}
