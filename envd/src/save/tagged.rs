//! What a registry's own tags name.
//!
//! Tags mean what the gateway's store says, as long as the store has seen them written. Of those that were written in a
//! time that it does not know, the registry is the only one who can tell what they are.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use envd_api::save::Span;
use jiff::Timestamp;
use serde::Deserialize;

use super::collect::{BLOBS, directories};

const REPOSITORIES: &str = "docker/registry/v2/repositories";

/// Images, and all that they are made of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tagged {
    /// By how their references end: `/alice/train:1`.
    pub(super) references: Vec<String>,
    pub(super) digests: HashSet<String>,
}

/// What a manifest is made of, of an image or of an index.
#[derive(Debug, Deserialize)]
struct Parts {
    config: Option<Part>,
    #[serde(default)]
    layers: Vec<Part>,
    #[serde(default)]
    manifests: Vec<Part>,
}

#[derive(Debug, Deserialize)]
struct Part {
    digest: String,
}

/// What the tags name that were written in one of these times. A manifest that cannot be read is an error: nobody can
/// tell what it needs.
pub(super) fn tagged(files: &Path, times: &[Span]) -> io::Result<Tagged> {
    let root = files.join(REPOSITORIES);
    let (mut found, mut folders) = (Tagged::default(), directories(&root)?);
    while let Some(folder) = folders.pop() {
        let is_ours =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"_"));
        folders.extend(directories(&folder)?.into_iter().filter(|path| !is_ours(path)));
        let repository = folder.strip_prefix(&root).unwrap_or(&folder).display().to_string();
        for tag in directories(&folder.join("_manifests/tags"))? {
            let Some(digest) = written_in(&tag.join("current/link"), times)? else { continue };
            let name = tag.file_name().unwrap_or_default().to_string_lossy();
            found.references.push(format!("/{repository}:{name}"));
            add(files, digest, &mut found.digests)?;
        }
    }
    Ok(found)
}

/// What a link leads to, if it was written in one of these times.
fn written_in(link: &Path, times: &[Span]) -> io::Result<Option<String>> {
    let about = match fs::symlink_metadata(link) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        about => about?,
    };
    let written = Timestamp::try_from(about.modified()?).map_err(io::Error::other)?;
    if !times.iter().any(|time| time.holds(written)) {
        return Ok(None);
    }
    Ok(Some(fs::read_to_string(link)?.trim().to_owned()))
}

/// Adds a manifest and what it leads to.
fn add(files: &Path, digest: String, digests: &mut HashSet<String>) -> io::Result<()> {
    let mut manifests = vec![digest];
    while let Some(digest) = manifests.pop() {
        let digits = digest.strip_prefix("sha256:").unwrap_or_default();
        let Some(shelf) = digits.get(..2) else { continue };
        let bytes = match fs::read(files.join(BLOBS).join(shelf).join(digits).join("data")) {
            // It was removed, and its tags were forgotten.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            bytes => bytes?,
        };
        let parts: Parts = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        let blobs = parts.config.into_iter().chain(parts.layers).map(|part| part.digest);
        digests.extend(blobs);
        if digests.insert(digest) {
            manifests.extend(parts.manifests.into_iter().map(|part| part.digest));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn put(files: &Path, digit: &str, bytes: &str) -> String {
        let digits = digit.repeat(64);
        let directory = files.join(BLOBS).join(&digits[..2]).join(&digits);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("data"), bytes).unwrap();
        format!("sha256:{digits}")
    }

    fn tag(files: &Path, name: &str, digest: &str, written: Timestamp) {
        let link = files.join(REPOSITORIES).join(name).join("current/link");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::write(&link, digest).unwrap();
        let file = fs::File::options().write(true).open(&link).unwrap();
        file.set_modified(SystemTime::from(written)).unwrap();
    }

    #[test]
    fn all_of_an_image_that_was_tagged_in_an_unknown_time_and_of_no_other() {
        let root = tempfile::tempdir().unwrap();
        let files = root.path();
        let layer = put(files, "1", "a layer");
        let image = format!(
            r#"{{"config": {{"digest": "{}"}}, "layers": [{{"digest": "{layer}"}}]}}"#,
            put(files, "2", "{}")
        );
        let image = put(files, "3", &image);
        let index = put(files, "4", &format!(r#"{{"manifests": [{{"digest": "{image}"}}]}}"#));
        let known = put(files, "5", "not even a manifest");
        let now = Timestamp::now();
        let ago = |hours| now - Duration::from_hours(hours);
        tag(files, "alice/train/_manifests/tags/1", &index, ago(5));
        tag(files, "alice/train/_manifests/tags/2", &known, ago(1));
        tag(files, "alice/train/_manifests/tags/3", &known, ago(9));
        let unknown = [Span { since: ago(6), until: ago(4) }];
        let found = tagged(files, &unknown).unwrap();
        assert_eq!(found.references, ["/alice/train:1"]);
        let all = ["1", "2", "3", "4"].map(|digit| format!("sha256:{}", digit.repeat(64)));
        assert_eq!(found.digests, HashSet::from(all));
        assert_eq!(tagged(files, &[]).unwrap(), Tagged::default());
        assert!(
            tagged(files, &[Span { since: ago(10), until: now }]).is_err(),
            "what it needs cannot be told"
        );
    }
}
