//! The layers of the image that an instance was made from: a saved image needs them in its own repository.
//!
//! Most often the registry has them already, from an earlier save or as the image itself. What it lacks is taken from
//! the engine, which gives an image out as an archive of its layers; which of them is which, their digests tell.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Read, Write},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::{TryStreamExt as _, future::try_join_all};
use tokio::sync::mpsc;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::{
    SaveError,
    compression::Compression,
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
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

/// The longest that an answer of the registry counts: within one save nobody removes a layer that is in use.
const RECENT: Duration = Duration::from_secs(10);

/// What the registry was asked for in one save, and had, and when that was.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<HashMap<String, Instant>>);

impl Asked {
    fn note(&self, digest: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(digest.to_owned(), Instant::now());
    }

    /// Whether it said a moment ago that it has this.
    pub(super) fn is_recent(&self, digest: &str) -> bool {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(digest).is_some_and(|then| then.elapsed() < RECENT)
    }
}

/// Makes sure that `repository` has all layers of `base`, and says which blobs they are.
#[expect(clippy::too_many_arguments, reason = "one caller, for one save")]
pub(super) async fn ensure<R: Runtime>(
    world: &Arc<World<R>>,
    registry: &Registry,
    journals: &Journals,
    journal: &Journal,
    repository: &str,
    base: &BaseImage,
    compression: Compression,
    asked: &Asked,
) -> Result<Vec<Blob>, SaveError> {
    let mut blobs = HashMap::new();
    let mut missing = HashSet::new();
    let found = find_all(registry, journals, repository, &base.diff_ids, compression, asked).await?;
    for (diff_id, found) in base.diff_ids.iter().zip(found) {
        match found {
            Some(blob) => drop(blobs.insert(diff_id.clone(), blob)),
            None => drop(missing.insert(diff_id.clone())),
        }
    }
    if !missing.is_empty() {
        tracing::info!(image = base.id, layers = missing.len(), "the registry lacks layers of the image");
        fetch(world, registry, journals, journal, repository, base, missing, &mut blobs, compression).await?;
    }
    let blob = |diff_id: &String| {
        blobs.get(diff_id).cloned().ok_or_else(|| {
            SaveError::Engine(format!("the engine does not give out layer `{diff_id}` of the image"))
        })
    };
    base.diff_ids.iter().map(blob).collect()
}

/// The layers that `repository` has, or can take over, compressed in a way that will do.
pub(super) async fn find_all<'a>(
    registry: &Registry,
    journals: &Journals,
    repository: &str,
    diff_ids: impl IntoIterator<Item = &'a String>,
    compression: Compression,
    asked: &Asked,
) -> Result<Vec<Option<Blob>>, SaveError> {
    let one = |diff_id: &'a String| find(registry, journals, repository, diff_id, compression, asked);
    try_join_all(diff_ids.into_iter().map(one)).await
}

async fn find(
    registry: &Registry,
    journals: &Journals,
    repository: &str,
    diff_id: &str,
    compression: Compression,
    asked: &Asked,
) -> Result<Option<Blob>, SaveError> {
    let known = journals.known(diff_id).filter(|known| compression.takes(known.blob.compression));
    let Some(known) = known else { return Ok(None) };
    let digest = &known.blob.digest;
    if asked.is_recent(digest) {
        return Ok(Some(known.blob));
    }
    let is_there = registry.has_blob(repository, digest).await?
        || (known.repository != repository && registry.mount(repository, &known.repository, digest).await?);
    if is_there && known.repository != repository {
        // The other repository may be emptied one day.
        let _ = journals.note(&Known { repository: repository.to_owned(), ..known.clone() });
    }
    if is_there {
        asked.note(digest);
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
    compression: Compression,
) -> Result<(), SaveError> {
    let archive = world.runtime.export_image(&base.id).await?;
    let archive = SyncIoBridge::new(StreamReader::new(Box::pin(archive.map_err(io::Error::other))));
    let (packed, mut ready) = mpsc::channel(AHEAD);
    let place = journal.clone();
    let unpack = world.tasks.blocking(move || unpack(archive, &missing, &place, &packed, compression));
    let push = async {
        while let Some((file, packed)) = ready.recv().await {
            let (blob, _) = packed.into_blob();
            registry.push_file(repository, &file, &blob.digest, blob.size_bytes, |_| {}).await?;
            let _ = tokio::fs::remove_file(&file).await;
            journals.note(&Known { blob: blob.clone(), repository: repository.to_owned() })?;
            blobs.insert(blob.diff_id.clone(), blob);
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
    compression: Compression,
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
        let mut packer = Packer::create(&file, compression)?;
        copy(&mut entry, &mut packer, ready)?;
        let done = packer.finish()?;
        if missing.contains(&done.diff_id) {
            left -= 1;
            ready.blocking_send((file, done)).map_err(|_| io::Error::other("nobody pushes"))?;
        } else {
            std::fs::remove_file(&file)?;
        }
    }
    Ok(())
}

/// Copies a layer as long as somebody waits for it: a save that was given up must not go on to write.
fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    ready: &mpsc::Sender<(PathBuf, Packed)>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        if ready.is_closed() {
            return Err(io::Error::other("nobody pushes"));
        }
        to.write_all(&piece[..read])?;
    }
}
