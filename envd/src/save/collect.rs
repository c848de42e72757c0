//! Giving back the room of what no image needs any more.
//!
//! A registry of our own keeps each blob as a file of its own, below `docker/registry/v2/blobs`. The gateway says which
//! are needed, while it lets nobody push or save; a file that is not among them, and was not written lately, goes. One
//! that somebody wants again is uploaded again: a registry whose file is gone says that it does not have the blob.

use std::{
    collections::HashSet,
    fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

use envd_api::save::{Collect, Collected};
use gateway_api::ImageId;
use tokio_util::sync::CancellationToken;

use super::{SaveError, Saves, tagged};
use crate::{node::World, runtime::Runtime};

pub(super) const BLOBS: &str = "docker/registry/v2/blobs/sha256";
const DIGITS: usize = 64;

impl Saves {
    /// Removes what is not needed, or only says what it would remove.
    pub(crate) async fn collect<R: Runtime>(
        &self,
        world: &World<R>,
        mut wanted: Collect,
    ) -> Result<Collected, SaveError> {
        let registry = self.registry.as_ref().ok_or(SaveError::NoRegistry)?;
        let mut collected = Collected::default();
        if let Some(files) = self.files.clone().filter(|_| !wanted.spare.is_empty()) {
            let spare = wanted.spare.clone();
            let tagged = world.tasks.blocking(move || tagged::tagged(&files, &spare)).await;
            let tagged = tagged.unwrap_or_else(|| Err(io::Error::other("it panicked")))?;
            wanted.needed.extend(tagged.digests);
            wanted.references.extend(tagged.references);
        }
        for image in world.runtime.saved_images(registry.address()).await? {
            let is_needed = |needed: &String| image.reference.ends_with(needed.as_str());
            if wanted.references.iter().any(is_needed) || wanted.needed.iter().any(is_needed) {
                continue;
            }
            if !wanted.dry_run {
                world.runtime.untag(&image.reference).await?;
            }
            collected.images.push(image.reference);
            collected.image_bytes += image.size_bytes;
        }
        if let Some(saves) = wanted.saves.as_ref().filter(|_| !wanted.dry_run) {
            let is_over = |other: &ImageId| !saves.contains(other) && !self.known().contains_key(other);
            self.journals.forget_all(None, is_over);
        }
        if let Some(files) = self.files.clone() {
            // Whoever asked may be gone, and then others push again.
            let asked = CancellationToken::new();
            let (alive, _gone) = (asked.clone(), asked.drop_guard());
            let swept = world.tasks.blocking(move || sweep(&files, &wanted, &alive)).await;
            let (blobs, bytes) = swept.unwrap_or_else(|| Err(io::Error::other("it panicked")))?;
            (collected.blobs, collected.blob_bytes, collected.has_files) = (blobs, bytes, true);
        }
        Ok(collected)
    }
}

fn sweep(files: &Path, wanted: &Collect, asked: &CancellationToken) -> io::Result<(u64, u64)> {
    let needed: HashSet<_> =
        wanted.needed.iter().filter_map(|digest| digest.strip_prefix("sha256:")).collect();
    let before = SystemTime::now().checked_sub(Duration::from_secs(wanted.older_than_seconds));
    let (mut blobs, mut bytes) = (0, 0);
    for shelf in directories(&files.join(BLOBS))? {
        for blob in directories(&shelf)? {
            let name = blob.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_digest = name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            let Ok(about) = fs::symlink_metadata(blob.join("data")) else { continue };
            let is_old = before.is_some_and(|before| about.modified().is_ok_and(|written| written <= before));
            if !is_digest || !is_old || needed.contains(name) {
                continue;
            }
            if asked.is_cancelled() {
                return Err(io::Error::other("nobody waits for it any more"));
            }
            if !wanted.dry_run {
                fs::remove_file(blob.join("data"))?;
                // Should this not come about, the registry sees an empty directory, which is no blob.
                let _ = fs::remove_dir(&blob);
            }
            blobs += 1;
            bytes += about.len();
        }
    }
    Ok((blobs, bytes))
}

pub(super) fn directories(path: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(needed: &[String], older_than_seconds: u64, dry_run: bool) -> Collect {
        Collect { needed: needed.to_vec(), older_than_seconds, dry_run, ..Collect::default() }
    }

    #[test]
    fn only_old_files_that_nobody_needs_and_none_for_who_has_gone() {
        let root = tempfile::tempdir().unwrap();
        let put = |digits: &str| {
            let directory = root.path().join(BLOBS).join(&digits[..2]).join(digits);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("data"), b"12345").unwrap();
            directory
        };
        let (needed, other) = (put(&"a".repeat(DIGITS)), put(&"b".repeat(DIGITS)));
        put("not-a-digest");
        let keep = [format!("sha256:{}", "a".repeat(DIGITS))];
        let asked = CancellationToken::new();
        let run = |wanted: Collect| sweep(root.path(), &wanted, &asked);
        assert_eq!(run(collect(&keep, 3600, false)).unwrap(), (0, 0), "it was written just now");
        assert_eq!(run(collect(&keep, 0, true)).unwrap(), (1, 5));
        assert!(other.exists(), "nothing goes when it is only asked what would");
        assert_eq!(run(collect(&keep, 0, false)).unwrap(), (1, 5));
        assert!(needed.exists() && !other.exists() && root.path().join(BLOBS).join("no").exists());
        put(&"c".repeat(DIGITS));
        asked.cancel();
        assert!(sweep(root.path(), &collect(&keep, 0, false), &asked).is_err());
    }
}
