//! How far each save is, on disk: a directory for each, removed when the gateway has taken note of its end.
//!
//! `request` is written before anything is done. `layer` is written once the layer is whole in `blob`: from then on the
//! instance is not needed any more, and a save that was interrupted goes on from there. `done` is written once the
//! registry has everything. Beside the directories, `last/` holds what the last save of each instance was, and
//! `layers/` which blob of the registry is which layer.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use envd_api::save::{PutSave, SavedImage};
use gateway_api::{ImageId, InstanceId, packages::Packages};
use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{image::Blob, still};
use crate::{
    data::{make_directory, write_whole},
    runtime::BaseImage,
};

/// All journals.
#[derive(Debug, Clone)]
pub(super) struct Journals {
    root: PathBuf,
}

/// The journal of one save.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    root: PathBuf,
    directory: PathBuf,
}

/// A layer that is whole in the journal's blob, and what it lies on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Written {
    /// `None` if nothing has changed since the layers below.
    pub(super) layer: Option<Blob>,
    pub(super) raw_bytes: u64,
    /// What lies below it and is whole in the journal too, with its bytes before compression: what had changed before
    /// the container was made anew.
    #[serde(default)]
    pub(super) kept: Vec<(Blob, u64)>,
    pub(super) base: BaseImage,
    /// Layers of earlier saves of the same container, on top of the base's.
    pub(super) earlier: Vec<Blob>,
    /// The container that was read, and what was left out.
    pub(super) container: String,
    pub(super) created: Timestamp,
    pub(super) frozen_ms: u64,
    #[serde(default)]
    pub(super) packages: Packages,
}

/// What the last save of an instance was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Last {
    pub(super) container: String,
    pub(super) exclude: Vec<String>,
    /// On top of the base's.
    pub(super) layers: Vec<Blob>,
    /// How many of the base's layers they lie on; all, if it is not said.
    #[serde(default)]
    pub(super) base_layers: Option<usize>,
    /// The repository that has them.
    pub(super) repository: String,
    /// The image's manifest.
    #[serde(default)]
    pub(super) manifest: Option<String>,
}

/// Where a layer is known to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) blob: Blob,
    pub(super) repository: String,
}

impl Journals {
    pub(super) fn new(data: &Path) -> Self {
        Self { root: data.join("save") }
    }

    pub(super) fn of(&self, image: &ImageId) -> Journal {
        Journal { root: self.root.clone(), directory: self.root.join(image.as_str()) }
    }

    pub(super) fn known(&self, diff_id: &str) -> Option<Known> {
        read(&self.layer_path(diff_id)?).ok().flatten()
    }

    pub(super) fn note(&self, known: &Known) -> io::Result<()> {
        let Some(path) = self.layer_path(&known.blob.diff_id) else { return Ok(()) };
        make_directory(&self.root, 0o700)?;
        make_directory(&self.root.join("layers"), 0o700)?;
        write(&path, known)
    }

    fn layer_path(&self, diff_id: &str) -> Option<PathBuf> {
        Some(self.root.join("layers").join(digits(diff_id)?))
    }

    /// By what the engine knows the image of that manifest, if it was told of it here.
    pub(super) fn config_of(&self, manifest: &str) -> Option<String> {
        read(&self.root.join("images").join(digits(manifest)?)).ok().flatten()
    }

    pub(super) fn note_config(&self, manifest: &str, config: &str) -> io::Result<()> {
        let Some(digits) = digits(manifest) else { return Ok(()) };
        make_directory(&self.root.join("images"), 0o700)?;
        write(&self.root.join("images").join(digits), &config)
    }

    /// The image of that manifest is gone. What was last saved as that is saved anew next time: its layers are counted for
    /// nobody any more, and go one day.
    pub(super) fn forget_image(&self, manifest: &str) {
        if let Some(digits) = digits(manifest) {
            let _ = fs::remove_file(self.root.join("images").join(digits));
        }
        let Ok(entries) = fs::read_dir(self.root.join("last")) else { return };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let instances = names.filter_map(|name| name.strip_suffix(".json")?.parse::<InstanceId>().ok());
        for instance in instances {
            if self.last(&instance).is_some_and(|last| last.manifest.as_deref() == Some(manifest)) {
                self.forget_instance(&instance);
            }
        }
    }

    pub(super) fn last(&self, instance: &InstanceId) -> Option<Last> {
        read(&self.last_path(instance).with_extension("json")).ok().flatten()
    }

    pub(super) fn last_path(&self, instance: &InstanceId) -> PathBuf {
        self.root.join("last").join(instance.as_str())
    }

    /// The saves that have one.
    pub(super) fn all(&self) -> Vec<ImageId> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// Lets instances go on that stood still when the process before this one was killed.
    pub(super) fn thaw_all(&self) {
        for mark in self.all().iter().map(|image| self.of(image).still()).filter(|mark| mark.exists()) {
            tracing::warn!(mark = %mark.display(), "an instance was left frozen, and goes on");
            if let Err(error) = still::thaw_marked(&mark) {
                tracing::error!(mark = %mark.display(), %error, "an instance is left frozen");
            }
        }
    }

    /// Removes the journals of saves that `is_over` is true of: of one instance, or of any.
    pub(super) fn forget_all(&self, instance: Option<&InstanceId>, is_over: impl Fn(&ImageId) -> bool) {
        let request = |journal: &Journal| journal.request().ok().flatten();
        for image in self.all().into_iter().filter(is_over) {
            let journal = self.of(&image);
            let is_its =
                |wanted: &InstanceId| request(&journal).is_some_and(|request| request.instance == *wanted);
            if instance.is_none_or(is_its)
                && let Err(error) = journal.forget()
            {
                tracing::warn!(%image, %error, "the journal of a save cannot be removed");
            }
        }
    }

    /// Forgets what is of no use any more: what instances that are gone were last saved as.
    pub(super) fn forget_instance(&self, instance: &InstanceId) {
        let path = self.last_path(instance);
        for file in [path.with_extension("json"), path.with_extension("files")] {
            let _ = fs::remove_file(file);
        }
    }
}

impl Journal {
    pub(super) fn begin(&self, request: &PutSave) -> io::Result<()> {
        make_directory(&self.root, 0o700)?;
        make_directory(&self.directory, 0o700)?;
        write(&self.path("request"), request)
    }

    pub(super) fn request(&self) -> io::Result<Option<PutSave>> {
        read(&self.path("request"))
    }

    pub(super) fn blob(&self) -> PathBuf {
        self.path("blob")
    }

    /// The layer at that place among what was kept.
    pub(super) fn kept(&self, number: usize) -> PathBuf {
        self.path(&format!("kept-{number}"))
    }

    pub(super) fn files(&self) -> PathBuf {
        self.path("files")
    }

    /// What says that the instance stands still, as long as it does.
    pub(super) fn still(&self) -> PathBuf {
        self.path("still")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(super) fn written(&self) -> io::Result<Option<Written>> {
        read(&self.path("layer"))
    }

    pub(super) fn write_layer(&self, written: &Written) -> io::Result<()> {
        write(&self.path("layer"), written)
    }

    pub(super) fn done(&self) -> io::Result<Option<SavedImage>> {
        read(&self.path("done"))
    }

    /// Everything is in the registry: from now on this is what the instance was last saved as.
    pub(super) fn finish(&self, done: &SavedImage, instance: &InstanceId, last: &Last) -> io::Result<()> {
        write(&self.path("done"), done)?;
        let path = Journals { root: self.root.clone() }.last_path(instance);
        make_directory(path.parent().unwrap_or(&self.root), 0o700)?;
        // Without the one the other means nothing: the list of files first, and both are of one save.
        let _ = fs::remove_file(path.with_extension("json"));
        if self.files().exists() {
            fs::rename(self.files(), path.with_extension("files"))?;
            write(&path.with_extension("json"), last)?;
        }
        remove(&self.blob())
    }

    pub(super) fn forget(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The digits of a digest, which can be the name of a file.
fn digits(digest: &str) -> Option<&str> {
    let digits = digest.strip_prefix("sha256:")?;
    (digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What cannot be understood counts as not written: the step is done again. A save that ended with an error each time it
/// is looked at would never end.
fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text)
            .inspect_err(
                |error| tracing::warn!(path = %path.display(), %error, "a record of a save is spoilt"),
            )
            .ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_whole(path, &serde_json::to_vec(value).map_err(io::Error::other)?, 0o600)
}
