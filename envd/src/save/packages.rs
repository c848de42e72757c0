//! What package managers have installed in a container beyond its image, by the records that they keep.
//!
//! The records are the user's files: they are read without following a link, in bounds, and a name or version with an
//! odd letter in it is none.

use std::{collections::BTreeMap, fs::File, io::Read as _, os::fd::OwnedFd, path::PathBuf};

use gateway_api::packages::{Package, Packages};
use rustix::fs::OFlags;

use super::walk::{self, Kind, Listing};

/// The most of a record that is read.
const RECORD_MAX: u64 = 64 << 10;
const STATUS_MAX: u64 = 32 << 20;
/// The most packages of each kind that are told.
const TOLD_MAX: usize = 5000;

const STATUS: &[u8] = b"var/lib/dpkg/status";

/// Compares the records in `root`, the container's changes, with those of the image, whose layers are at `lowers`, the
/// uppermost first.
pub(super) fn packages(root: &OwnedFd, listing: &Listing, lowers: &[PathBuf]) -> Packages {
    let mut all = Packages::default();
    for found in &listing.found {
        let Some(path) = std::str::from_utf8(&found.path).ok() else { continue };
        if found.kind == Kind::File && found.path == STATUS {
            let now = installed(&read(root, STATUS, STATUS_MAX).unwrap_or_default());
            let before = installed(&in_image(lowers, STATUS).unwrap_or_default());
            (all.apt, all.removed) = dpkg(&now, &before);
        } else if let Some(record) = path.strip_suffix("/METADATA").filter(|_| found.kind == Kind::File) {
            all.pip.extend(pip(root, record));
        } else if found.kind == Kind::File {
            all.conda.extend(conda(path));
        }
    }
    for kind in [&mut all.apt, &mut all.pip, &mut all.conda] {
        kind.sort_unstable();
        kind.dedup();
        kind.truncate(TOLD_MAX);
    }
    all.removed.truncate(TOLD_MAX);
    all
}

/// Adds what was found in newer changes: they say last what apt has installed, and which version of a package it is.
pub(super) fn add(all: &mut Packages, newer: Packages) {
    if !newer.apt.is_empty() || !newer.removed.is_empty() {
        (all.apt, all.removed) = (newer.apt, newer.removed);
    }
    for (all, newer) in [(&mut all.pip, newer.pip), (&mut all.conda, newer.conda)] {
        all.retain(|one| !newer.iter().any(|other| (&other.name, &other.at) == (&one.name, &one.at)));
        all.extend(newer);
        all.sort_unstable();
        all.truncate(TOLD_MAX);
    }
}

fn dpkg(now: &BTreeMap<String, String>, before: &BTreeMap<String, String>) -> (Vec<Package>, Vec<String>) {
    let new = now.iter().filter(|(name, version)| before.get(*name) != Some(version));
    let new = new.map(|(name, version)| Package { name: name.clone(), version: version.clone(), at: None });
    let removed = before.keys().filter(|name| !now.contains_key(*name)).cloned();
    (new.collect(), removed.collect())
}

/// The packages that dpkg's own list says are installed.
fn installed(status: &str) -> BTreeMap<String, String> {
    let packages = status.split("\n\n").filter_map(|paragraph| {
        let field = |name: &str| {
            paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim)
        };
        let is_installed = field("Status").is_some_and(|status| status.ends_with(" installed"));
        let (name, version) = (field("Package")?, field("Version")?);
        (is_installed && is_plain(name) && is_plain(version)).then(|| (name.to_owned(), version.to_owned()))
    });
    packages.collect()
}

/// A package by the directory of its record, `…/site-packages/NAME-VERSION.dist-info`.
fn pip(root: &OwnedFd, record: &str) -> Option<Package> {
    let (folder, directory) = record.rsplit_once('/')?;
    directory.strip_suffix(".dist-info")?;
    let (library, last) = folder.rsplit_once('/')?;
    let is_library = matches!(last, "site-packages" | "dist-packages");
    // What apt installs is below the one folder, and apt's.
    if !is_library || folder == "usr/lib/python3/dist-packages" {
        return None;
    }
    let text = |name: &str| read(root, format!("{record}/{name}").as_bytes(), RECORD_MAX);
    if text("INSTALLER").is_some_and(|installer| installer.trim() == "conda") {
        return None;
    }
    let metadata = text("METADATA")?;
    let head = metadata.split("\n\n").next()?;
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let (name, version) = (field("Name")?.trim(), field("Version")?.trim());
    let at = library.split_once("/lib/").map_or("", |(at, _)| at);
    let at = Some(format!("/{at}")).filter(|at| !matches!(at.as_str(), "/" | "/usr" | "/usr/local"));
    package(name, version, at)
}

/// A package by its record, `…/conda-meta/NAME-VERSION-BUILD.json`.
fn conda(path: &str) -> Option<Package> {
    let (folder, record) = path.rsplit_once('/')?;
    let at = folder.strip_suffix("/conda-meta")?;
    let (rest, build) = record.strip_suffix(".json")?.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    package(name, &format!("{version}={build}"), Some(format!("/{at}")))
}

fn package(name: &str, version: &str, at: Option<String>) -> Option<Package> {
    let is_right = is_plain(name)
        && version.split('=').all(is_plain)
        && at.as_deref().is_none_or(|at| at.split('/').skip(1).all(is_plain));
    is_right.then(|| Package { name: name.to_owned(), version: version.to_owned(), at })
}

/// Letters that mean nothing to a shell or to a Dockerfile.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+:~-!".contains(&byte);
    (1..=200).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-')
}

fn in_image(lowers: &[PathBuf], path: &[u8]) -> Option<String> {
    lowers.iter().find_map(|lower| read(&walk::open_root(lower).ok()?, path, STATUS_MAX))
}

fn read(root: &OwnedFd, path: &[u8], limit: u64) -> Option<String> {
    let opened = walk::open_below(root, path, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let file = File::from(opened);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::save::rules::Rules;

    fn put(root: &std::path::Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn status(packages: &[(&str, &str, &str)]) -> String {
        let one = |(name, version, state): &(&str, &str, &str)| {
            format!("Package: {name}\nStatus: install ok {state}\nVersion: {version}\nDescription: x\n y\n\n")
        };
        packages.iter().map(one).collect()
    }

    #[test]
    fn what_each_manager_wrote_down_and_nothing_odd() {
        let (upper, lower) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dpkg = "var/lib/dpkg/status";
        put(lower.path(), dpkg, &status(&[("bash", "5.2", "installed"), ("vim", "9", "installed")]));
        let now =
            [("bash", "5.3", "installed"), ("git", "1:2.39", "installed"), ("tmux", "3", "config-files")];
        put(upper.path(), dpkg, &status(&now));
        let site = "usr/local/lib/python3.11/dist-packages";
        put(
            upper.path(),
            &format!("{site}/numpy-2.1.dist-info/METADATA"),
            "Name: numpy\nVersion: 2.1\n\nVersion: 3",
        );
        put(
            upper.path(),
            &format!("{site}/evil-1.dist-info/METADATA"),
            "Name: x\"; rm -rf /\nVersion: 1\n\n",
        );
        put(
            upper.path(),
            "root/venv/lib/python3.11/site-packages/six-1.dist-info/METADATA",
            "Name: six\nVersion: 1\n",
        );
        put(
            upper.path(),
            "usr/lib/python3/dist-packages/apt-1.dist-info/METADATA",
            "Name: apt\nVersion: 1\n",
        );
        put(upper.path(), "opt/conda/conda-meta/zlib-1.3-h4ab18f5_1.json", "{}");
        put(upper.path(), "opt/conda/conda-meta/history", "");
        let root = walk::open_root(upper.path()).unwrap();
        let listing = walk::walk(&root, &Rules::new(&[], &[]).unwrap(), false).unwrap();
        let found = packages(&root, &listing, &[lower.path().to_owned()]);
        let told = |packages: &[Package]| -> Vec<String> {
            let told =
                |one: &Package| format!("{} {} {}", one.name, one.version, one.at.as_deref().unwrap_or("-"));
            packages.iter().map(told).collect()
        };
        assert_eq!(told(&found.apt), ["bash 5.3 -", "git 1:2.39 -"]);
        assert_eq!(found.removed, ["vim"]);
        assert_eq!(told(&found.pip), ["numpy 2.1 -", "six 1 /root/venv"]);
        assert_eq!(told(&found.conda), ["zlib 1.3=h4ab18f5_1 /opt/conda"]);
    }
}
