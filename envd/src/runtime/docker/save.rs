//! What a save needs of the engine: where a container's changes are, what its image is, and archives both ways.

use std::{collections::HashMap, io, path::PathBuf, time::Duration};

use bollard::{
    models::{ChangeType, ContainerConfig, ContainerInspectResponse, ImageConfig, ImageInspect},
    query_parameters::{CommitContainerOptionsBuilder, ImportImageOptionsBuilder, RemoveImageOptionsBuilder},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::time::timeout;

use super::{LOOK, PULL_SILENCE, engine};
use crate::runtime::{
    BaseImage, Change, Container, ImageId, RuntimeError, SaveSource, VISIBLE_CARDS, docker::engine::Engine,
};

const OUR_LABELS: &str = "berth.";
/// On an image of a container: how many of its layers are of the image that the container was first made from.
const BASE_LAYERS: &str = "berth.base-layers";
/// The storage driver whose way of keeping changes is understood.
const OVERLAY: &str = "overlay2";
/// The most that removing a name may take, with the layers that only it held.
const UNTAG: Duration = Duration::from_mins(2);
/// The most that reading all that a container has written may take.
const KEEP: Duration = Duration::from_mins(30);
/// The most that comparing all files of a container with its image may take.
const CHANGES: Duration = Duration::from_mins(10);

pub(super) async fn source(engine: &Engine, container: &Container) -> Result<SaveSource, RuntimeError> {
    let found = engine
        .call("look at a container", LOOK, async |docker| docker.inspect_container(&container.id, None).await)
        .await?;
    let image = engine
        .call_unless("look at an image", LOOK, &[404], async |docker| {
            docker.inspect_image(&container.image.0).await
        })
        .await?;
    let image = image.ok_or_else(|| RuntimeError::ImageNotFound {
        image: container.image.0.clone(),
        why: "the instance was made from it, and it was removed from this machine".to_owned(),
    })?;
    let mounts = found.mounts.iter().flatten().filter_map(|mount| mount.destination.clone()).collect();
    let state = found.state.as_ref();
    let pid = state.filter(|state| state.running == Some(true)).and_then(|state| state.pid);
    let pid = pid.and_then(|pid| u32::try_from(pid).ok()).filter(|&pid| pid > 0);
    let (upper, mut lowers) = directories(found);
    let first = base_layers(&image);
    let mut base = base(image)?;
    // Where they have no directories, what was kept counts as part of the image.
    let first = first.filter(|_| upper.is_some());
    let kept = base.diff_ids.split_off(first.unwrap_or(usize::MAX).min(base.diff_ids.len())).len();
    // The uppermost of them is the engine's own.
    let kept = lowers.drain(1.min(lowers.len())..(1 + kept).min(lowers.len())).rev().collect();
    Ok(SaveSource { upper, kept, lowers, pid, mounts, base })
}

fn base_layers(image: &ImageInspect) -> Option<usize> {
    image.config.as_ref()?.labels.as_ref()?.get(BASE_LAYERS)?.parse().ok()
}

/// Where a container's changes are, and below them the layers of its image.
fn directories(found: ContainerInspectResponse) -> (Option<PathBuf>, Vec<PathBuf>) {
    let Some(mut driver) = found.graph_driver.filter(|driver| driver.name == OVERLAY) else {
        return (None, Vec::new());
    };
    let upper = driver.data.remove("UpperDir").filter(|path| !path.is_empty()).map(Into::into);
    let lowers = driver.data.remove("LowerDir").unwrap_or_default();
    (upper, lowers.split(':').filter(|path| !path.is_empty()).map(Into::into).collect())
}

fn base(image: ImageInspect) -> Result<BaseImage, RuntimeError> {
    let incomplete = || RuntimeError::Engine { why: "an image without id or layers".to_owned() };
    let config = serde_json::to_value(without_ours(image.config.unwrap_or_default()));
    let mut config = config.map_err(|error| RuntimeError::Engine { why: error.to_string() })?;
    if let Some(fields) = config.as_object_mut() {
        // The client reads what is not there as empty.
        fields.retain(|_, value| value.as_object().is_none_or(|map| !map.is_empty()));
    }
    Ok(BaseImage {
        id: image.id.ok_or_else(incomplete)?,
        architecture: image.architecture.unwrap_or_default(),
        os: image.os.unwrap_or_default(),
        variant: image.variant.filter(|variant| !variant.is_empty()),
        config,
        diff_ids: image.root_fs.and_then(|root| root.layers).ok_or_else(incomplete)?,
    })
}

/// An image of a container says also what we told the engine about that.
fn without_ours(mut config: ImageConfig) -> ImageConfig {
    let ours = |labels: &HashMap<String, String>| labels.keys().any(|label| label.starts_with(OUR_LABELS));
    if config.labels.as_ref().is_some_and(ours) {
        config.labels.iter_mut().for_each(|labels| labels.retain(|label, _| !label.starts_with(OUR_LABELS)));
        let is_given = |variable: &str| variable.starts_with(&format!("{VISIBLE_CARDS}="));
        config.env.iter_mut().for_each(|env| env.retain(|variable| !is_given(variable)));
    }
    config
}

pub(super) async fn export_image(
    engine: &Engine,
    image: &str,
) -> Result<impl Stream<Item = Result<Bytes, RuntimeError>> + Send + use<>, RuntimeError> {
    Ok(pumped(engine.docker().await?, image.to_owned(), Exported::Image))
}

/// All files of a container.
pub(super) async fn export_files(
    engine: &Engine,
    container: &Container,
) -> Result<impl Stream<Item = Result<Bytes, RuntimeError>> + Send + 'static + use<>, RuntimeError> {
    Ok(pumped(engine.docker().await?, container.id.clone(), Exported::Container))
}

pub(super) async fn changed_paths(
    engine: &Engine,
    container: &Container,
) -> Result<Vec<(String, Change)>, RuntimeError> {
    let changes = engine
        .call("look for what changed", CHANGES, async |docker| docker.container_changes(&container.id).await)
        .await?;
    let told = changes.unwrap_or_default().into_iter().map(|change| {
        let kind = match change.kind {
            ChangeType::_0 => Change::Modified,
            ChangeType::_1 => Change::Added,
            ChangeType::_2 => Change::Removed,
        };
        (change.path, kind)
    });
    Ok(told.collect())
}

/// Engines do so since this version.
const ZSTD: u32 = 23;

pub(super) async fn unpacks_zstd(engine: &Engine) -> Result<bool, RuntimeError> {
    let version = engine.call("ask for the version", LOOK, async |docker| docker.version().await).await?;
    Ok(is_at_least(ZSTD, version.version.as_deref().unwrap_or_default()))
}

/// Whether a version such as `20.10.24+dfsg1` is that one or a later one.
fn is_at_least(wanted: u32, version: &str) -> bool {
    version.split('.').next().and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major >= wanted)
}

/// What an engine gives out as an archive.
#[derive(Debug, Clone, Copy)]
enum Exported {
    Image,
    Container,
}

/// The stream holds the client, which the client's own streams do not say.
fn pumped(
    docker: bollard::Docker,
    name: String,
    what: Exported,
) -> impl Stream<Item = Result<Bytes, RuntimeError>> + Send {
    let (send, receive) = tokio::sync::mpsc::channel(4);
    let pump = async move {
        let mut pieces = match what {
            Exported::Image => docker.export_image(&name).boxed(),
            Exported::Container => docker.export_container(&name).boxed(),
        };
        loop {
            let piece = match timeout(PULL_SILENCE, pieces.next()).await {
                Ok(Some(piece)) => piece.map_err(engine::runtime_error),
                Ok(None) => return,
                Err(_) => Err(engine::too_slow("export", PULL_SILENCE)),
            };
            let failed = piece.is_err();
            if send.send(piece).await.is_err() || failed {
                return;
            }
        }
    };
    futures_util::stream::select(
        futures_util::stream::once(pump).filter_map(async |()| None),
        futures_util::stream::unfold(receive, async |mut receive| Some((receive.recv().await?, receive))),
    )
}

/// Gives the engine an archive of an image.
pub(super) async fn load(
    engine: &Engine,
    archive: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Result<(), RuntimeError> {
    let docker = engine.docker().await?;
    let options = ImportImageOptionsBuilder::new().quiet(false).build();
    let mut lines = std::pin::pin!(docker.import_image_stream(options, archive, None));
    loop {
        let line =
            timeout(PULL_SILENCE, lines.next()).await.map_err(|_| engine::too_slow("load", PULL_SILENCE))?;
        match line {
            None => return Ok(()),
            Some(Ok(line)) => {
                if let Some(error) = line.error_detail.and_then(|detail| detail.message) {
                    return Err(RuntimeError::Engine { why: error });
                }
            }
            Some(Err(error)) => return Err(engine::runtime_error(error)),
        }
    }
}

/// An image of what is in a container that does not run.
pub(super) async fn keep(engine: &Engine, container: &Container) -> Result<ImageId, RuntimeError> {
    let image = engine
        .call_unless("look at an image", LOOK, &[404], async |docker| {
            docker.inspect_image(&container.image.0).await
        })
        .await?;
    let image = image.unwrap_or_default();
    let layers = image.root_fs.as_ref().and_then(|root| root.layers.as_ref()).map(Vec::len);
    let first = base_layers(&image).or(layers);
    let of = image.config.unwrap_or_default();
    let mut labels = of.labels.unwrap_or_default();
    labels.extend(first.map(|layers| (BASE_LAYERS.to_owned(), layers.to_string())));
    // What is left out here the engine takes from the container.
    let config = ContainerConfig {
        user: of.user,
        env: of.env,
        working_dir: of.working_dir,
        entrypoint: Some(of.entrypoint.unwrap_or_default()),
        cmd: of.cmd,
        labels: Some(labels),
        ..ContainerConfig::default()
    };
    let options = CommitContainerOptionsBuilder::new().container(&container.id).pause(false).build();
    let made = engine
        .call("make an image of a container", KEEP, async |docker| {
            docker.commit_container(options, config).await
        })
        .await?;
    Ok(ImageId(made.id))
}

/// Takes a name away from an image, and the image with it if it has no other and nobody uses it.
pub(super) async fn untag(engine: &Engine, reference: &str) -> Result<(), RuntimeError> {
    let options = RemoveImageOptionsBuilder::new().force(false).noprune(false).build();
    engine
        .call_unless("remove an image", UNTAG, &[404, 409], async |docker| {
            docker.remove_image(reference, Some(options), None).await
        })
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_since_version_23_unpack_zstd() {
        for version in ["23.0.1", "28.1.0-rc.1", "24"] {
            assert!(is_at_least(ZSTD, version), "{version}");
        }
        for version in ["20.10.24+dfsg1", "19.03", "", "dev"] {
            assert!(!is_at_least(ZSTD, version), "{version}");
        }
    }
}
