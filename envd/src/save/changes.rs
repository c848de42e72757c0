//! What a save would put into an image, for whoever is about to save.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gateway_api::{
    image::{ChangedPath, Changes, Since},
    packages::Packages,
};

use super::{
    SaveError,
    layer::content_bytes,
    packages,
    rules::Rules,
    snapshot::{Difference, Snapshot},
    walk::{self, Kind, Listing},
};
use crate::runtime::SaveSource;

/// The most paths of each kind that are told.
const TOLD_MAX: usize = 20;
/// How many parts of a path are summed up by: `/usr/local/lib`.
const DEPTH: usize = 3;

/// Looks through all that changed, since `last` if there was a save.
pub(super) fn changes(
    upper: &Path,
    source: SaveSource,
    rules: &Rules,
    last: Option<&Snapshot>,
) -> Result<Changes, SaveError> {
    let mut newest = of_directory(upper, &source.lowers, rules, last)?;
    for kept in source.kept.iter().rev() {
        let older = of_directory(kept, &source.lowers, rules, None)?;
        newest = if newest.since == Since::Image { sum(older, newest) } else { with_contents(older, newest) };
    }
    Ok(Changes { mounts: shown_mounts(source.mounts), ..newest })
}

/// Both, one after the other.
fn sum(older: Changes, newer: Changes) -> Changes {
    let added = |one: Vec<ChangedPath>, other: Vec<ChangedPath>| {
        let mut sums = BTreeMap::new();
        for ChangedPath { path, bytes } in one.into_iter().chain(other) {
            *sums.entry(path).or_default() += bytes;
        }
        let mut all: Vec<_> = sums.into_iter().map(|(path, bytes)| ChangedPath { path, bytes }).collect();
        all.sort_by_key(|one: &ChangedPath| std::cmp::Reverse(one.bytes));
        all.truncate(TOLD_MAX);
        all
    };
    let newer = Changes {
        files: older.files + newer.files,
        bytes: older.bytes + newer.bytes,
        deleted: older.deleted + newer.deleted,
        largest: added(older.largest.clone(), newer.largest),
        excluded: added(older.excluded.clone(), newer.excluded),
        ..newer
    };
    with_contents(older, newer)
}

/// With what is in the image in any case, whatever it is compared with.
fn with_contents(older: Changes, newer: Changes) -> Changes {
    let mut packages = older.packages;
    packages::add(&mut packages, newer.packages);
    let mut secrets = [newer.secrets, older.secrets].concat();
    secrets.sort();
    secrets.dedup();
    secrets.truncate(TOLD_MAX);
    Changes { packages, secrets, ..newer }
}

fn of_directory(
    directory: &Path,
    lowers: &[PathBuf],
    rules: &Rules,
    last: Option<&Snapshot>,
) -> Result<Changes, SaveError> {
    let root = walk::open_root(directory)?;
    let listing = walk::walk(&root, rules, true)?;
    let on_top = last.and_then(|last| last.difference(&listing));
    let since = if on_top.is_some() { Since::LastSave } else { Since::Image };
    let difference = on_top.unwrap_or_else(|| Snapshot::all(&listing));
    let packages = packages::packages(&root, &listing, lowers);
    Ok(told(&listing, &difference, since, packages))
}

/// The same of changes that are listed already: all of them, as far as a list tells.
pub(super) fn of_listing(listing: &Listing, mounts: Vec<String>) -> Changes {
    let told = told(listing, &Snapshot::all(listing), Since::Image, Packages::default());
    Changes { mounts: shown_mounts(mounts), ..told }
}

fn told(listing: &Listing, difference: &Difference, since: Since, packages: Packages) -> Changes {
    let wanted: Vec<_> = listing
        .found
        .iter()
        .enumerate()
        .filter(|(at, _)| difference.wanted[*at])
        .map(|(_, found)| found)
        .collect();
    let count = |is: fn(Kind) -> bool| wanted.iter().filter(|found| is(found.kind)).count() as u64;
    let mut sums: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for found in wanted.iter().filter(|found| found.kind == Kind::File) {
        *sums.entry(summed_by(&found.path)).or_default() += found.about.size;
    }
    // Also what an earlier save has put into the image already.
    let secrets = listing.found.iter().filter(|found| found.kind == Kind::File && looks_secret(&found.path));
    Changes {
        files: count(|kind| matches!(kind, Kind::File | Kind::Symlink | Kind::Fifo)),
        bytes: content_bytes(listing, difference),
        deleted: count(|kind| kind == Kind::Gone) + difference.gone.len() as u64,
        largest: largest(sums),
        mounts: Vec::new(),
        excluded: largest(excluded(listing)),
        packages,
        secrets: secrets.take(TOLD_MAX).map(|found| shown(&found.path)).collect(),
        since,
    }
}

fn excluded(listing: &Listing) -> BTreeMap<Vec<u8>, u64> {
    // What a directory holds is told at the directory.
    let mut sums: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for (path, bytes) in &listing.excluded {
        *sums.entry(summed_by(path)).or_default() += bytes;
    }
    sums
}

fn largest(sums: BTreeMap<Vec<u8>, u64>) -> Vec<ChangedPath> {
    let mut all: Vec<_> = sums.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    all.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    all.truncate(TOLD_MAX);
    all.into_iter().map(|(path, bytes)| ChangedPath { path: shown(&path), bytes }).collect()
}

fn summed_by(path: &[u8]) -> Vec<u8> {
    path.split(|&byte| byte == b'/').take(DEPTH).collect::<Vec<_>>().join(&b'/')
}

fn shown(path: &[u8]) -> String {
    format!("/{}", String::from_utf8_lossy(path))
}

/// Of our own mounts nobody needs to know.
fn shown_mounts(mut mounts: Vec<String>) -> Vec<String> {
    mounts.retain(|path| !path.starts_with("/.berth"));
    mounts.sort();
    mounts
}

/// By the names that programs give to files with keys, tokens and passwords.
fn looks_secret(path: &[u8]) -> bool {
    const NAMES: [&str; 14] = [
        ".env",
        ".netrc",
        ".pgpass",
        ".pypirc",
        ".npmrc",
        ".git-credentials",
        "credentials",
        "credentials.json",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "kubeconfig",
        ".htpasswd",
    ];
    const ENDS: [&str; 5] = [".pem", ".key", ".p12", ".pfx", ".kdbx"];
    const FOLDERS: [&str; 4] =
        [".docker/config.json", ".huggingface/token", "huggingface/token", ".kube/config"];
    // Below `.ssh`: what says whom to trust, and nothing that opens anything.
    const NOT_KEYS: [&str; 3] = ["known_hosts", "config", "authorized_keys"];
    // What comes with programs: certificates of authorities, and examples.
    const NOT_BELOW: [&str; 3] = ["usr/share/", "usr/lib/", "etc/ssl/certs/"];
    let path = String::from_utf8_lossy(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_key = (path.starts_with(".ssh/") || path.contains("/.ssh/"))
        && Path::new(name).extension().is_none_or(|end| end != "pub")
        && !NOT_KEYS.contains(&name);
    let is_one = NAMES.contains(&name)
        || name.starts_with(".env.")
        || is_key
        || ENDS.iter().any(|end| name.ends_with(end))
        || FOLDERS.iter().any(|folder| path.ends_with(folder));
    is_one && !NOT_BELOW.iter().any(|above| path.starts_with(above)) && !path.contains("/site-packages/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for secret in [
            "root/.ssh/id_ed25519",
            "root/.ssh/deploy",
            "work/.env",
            "work/.env.production",
            "root/.docker/config.json",
            "a/server.key",
        ] {
            assert!(looks_secret(secret.as_bytes()), "{secret}");
        }
        for other in [
            "root/.ssh/id_ed25519.pub",
            "root/.ssh/known_hosts",
            "root/.ssh/authorized_keys",
            "root/.ssh/config",
            "etc/ssl/certs/a.pem",
            "environment",
            "work/.environment",
            "usr/lib/x/test.pem",
        ] {
            assert!(!looks_secret(other.as_bytes()), "{other}");
        }
    }
}
