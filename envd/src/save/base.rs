//! The layers of the image that an instance was made from: a saved image needs them in its own repository.
//!
//! Most often the registry has them already, from an earlier save or as the image itself. What it lacks is taken from
//! the engine, which gives an image out as an archive of its layers; which of them is which, their digests tell.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, BufWriter, Read},
    path::PathBuf,
    sync::Arc,
};

use futures_util::TryStreamExt as _;
use tokio::sync::mpsc;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::{
    SaveError,
    image::Blob,
    journal::{Journal, Journals, Known},
    pack::{Packed, Packer},
    registry::Registry,
};
use crate::{
    node::World,
    runtime::{BaseImage, Runtime},
};

/// Layers that are packed and not pushed yet.
const AHEAD: usize = 2;

/// Makes sure that `repository` has all layers of `base`, and says which blobs they are.
pub(super) async fn ensure<R: Runtime>(
    world: &Arc<World<R>>,
    registry: &Registry,
    journals: &Journals,
    journal: &Journal,
    repository: &str,
    base: &BaseImage,
) -> Result<Vec<Blob>, SaveError> {
    let mut blobs = HashMap::new();
    let mut missing = HashSet::new();
    for diff_id in &base.diff_ids {
        match find(registry, journals, repository, diff_id).await? {
            Some(blob) => drop(blobs.insert(diff_id.clone(), blob)),
            None => drop(missing.insert(diff_id.clone())),
        }
    }
    if !missing.is_empty() {
        tracing::info!(image = base.id, layers = missing.len(), "the registry lacks layers of the image");
        fetch(world, registry, journals, journal, repository, base, missing, &mut blobs).await?;
    }
    let blob = |diff_id: &String| {
        blobs.get(diff_id).cloned().ok_or_else(|| {
            SaveError::Engine(format!("the engine does not give out layer `{diff_id}` of the image"))
        })
    };
    base.diff_ids.iter().map(blob).collect()
}

/// A layer that `repository` has, or can take over.
pub(super) async fn find(
    registry: &Registry,
    journals: &Journals,
    repository: &str,
    diff_id: &str,
) -> Result<Option<Blob>, SaveError> {
    let Some(known) = journals.known(diff_id) else { return Ok(None) };
    let digest = &known.blob.digest;
    let is_there = registry.has_blob(repository, digest).await?
        || (known.repository != repository && registry.mount(repository, &known.repository, digest).await?);
    if is_there && known.repository != repository {
        // The other repository may be emptied one day.
        let _ = journals.note(&Known { repository: repository.to_owned(), ..known.clone() });
    }
    Ok(is_there.then_some(known.blob))
}

#[expect(clippy::too_many_arguments, reason = "one caller, above")]
async fn fetch<R: Runtime>(
    world: &Arc<World<R>>,
    registry: &Registry,
    journals: &Journals,
    journal: &Journal,
    repository: &str,
    base: &BaseImage,
    missing: HashSet<String>,
    blobs: &mut HashMap<String, Blob>,
) -> Result<(), SaveError> {
    let archive = world.runtime.export_image(&base.id).await?;
    let archive = SyncIoBridge::new(StreamReader::new(Box::pin(archive.map_err(io::Error::other))));
    let (packed, mut ready) = mpsc::channel(AHEAD);
    let place = journal.clone();
    let unpack = world.tasks.blocking(move || unpack(archive, &missing, &place, &packed));
    let push = async {
        while let Some((file, packed)) = ready.recv().await {
            let Packed { diff_id, digest, size_bytes, .. } = packed;
            registry.push_file(repository, &file, &digest, size_bytes, |_| {}).await?;
            let _ = tokio::fs::remove_file(&file).await;
            let blob = Blob { diff_id: diff_id.clone(), digest, size_bytes };
            journals.note(&Known { blob: blob.clone(), repository: repository.to_owned() })?;
            blobs.insert(diff_id, blob);
        }
        // So that the other side notices if this one has failed.
        drop(ready);
        Ok::<_, SaveError>(())
    };
    let (unpacked, pushed) = tokio::join!(unpack, push);
    pushed?;
    unpacked.unwrap_or_else(|| Err(io::Error::other("it panicked")))?;
    Ok(())
}

/// Packs each layer of an archive that is wanted, and hands it on.
fn unpack(
    archive: impl Read,
    missing: &HashSet<String>,
    journal: &Journal,
    ready: &mpsc::Sender<(PathBuf, Packed)>,
) -> io::Result<()> {
    let mut archive = tar::Archive::new(archive);
    let mut left = missing.len();
    for (number, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        let is_document = entry.path_bytes().ends_with(b".json") || entry.path_bytes().ends_with(b"VERSION");
        if left == 0 || !entry.header().entry_type().is_file() || is_document {
            continue;
        }
        let file = journal.path(&format!("base-{number}"));
        let mut packer = Packer::new(BufWriter::new(File::create(&file)?))?;
        io::copy(&mut entry, &mut packer)?;
        let (_, done) = packer.finish()?;
        if missing.contains(&done.diff_id) {
            left -= 1;
            ready.blocking_send((file, done)).map_err(|_| io::Error::other("nobody pushes"))?;
        } else {
            std::fs::remove_file(&file)?;
        }
    }
    Ok(())
}
