//! A container's changes where the engine keeps no directory of them.
//!
//! The engine says which paths have changed, and gives out all of the container's files as an archive: what is in it of
//! those paths becomes the layer, as it came. There is no moment at which all of it is true, so what is written
//! meanwhile may be in the layer or not, and each save is of all changes.

mod archive;
mod read;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    io::{self, Read, Write},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use tar::EntryType;
use tokio_util::io::{StreamReader, SyncIoBridge};

use self::archive::{Archive, Entry};
use super::{
    SaveError,
    layer::{Layer, pad},
    rules::{Rules, Verdict},
    snapshot::Snapshot,
    walk::{About, Found, GONE, Kind, Listing, split},
};
use crate::runtime::{Change, RuntimeError};

/// What has changed in a container, by paths as the engine spells them.
#[derive(Debug, Clone)]
pub(super) struct Changed {
    rules: Rules,
    /// The image is to lie on no other: all files are in it.
    all: bool,
    /// What is there now, and whether the image has something there too.
    present: HashMap<String, bool>,
    gone: BTreeSet<String>,
    /// Content that stands in the archive at a name which is left out, and the name that it gets instead.
    moved: HashMap<Vec<u8>, Vec<u8>>,
}

/// What of an archive was written.
#[derive(Debug)]
pub(super) struct Told<W> {
    pub(super) out: W,
    pub(super) listing: Listing,
    /// Names in the layer, and other names of the same files that are not in it: they have to be added, and all be
    /// written again.
    pub(super) missing: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Changed {
    /// `all`: whatever has changed, everything that is there.
    pub(super) fn new(paths: Vec<(String, Change)>, rules: Rules, all: bool) -> Result<Self, SaveError> {
        let (present, gone, moved) = (HashMap::new(), BTreeSet::new(), HashMap::new());
        let mut changed = Self { rules, all, present, gone, moved };
        for (path, change) in paths {
            let path = path.trim_matches('/');
            if !changed.is_kept(path.as_bytes()) {
                continue;
            }
            if change != Change::Removed {
                changed.present.insert(path.to_owned(), change == Change::Modified);
            } else if path.contains(char::REPLACEMENT_CHARACTER) {
                // Names that are not text reach us spoilt. Of a file that is gone there is no other source.
                return Err(SaveError::Engine(format!(
                    "the engine cannot spell the name of a file that was removed: `/{path}`"
                )));
            } else {
                changed.gone.insert(path.to_owned());
            }
        }
        Ok(changed)
    }

    /// Adds what has appeared since; tells whether there is any. What was carried from one place to another while the
    /// archive was made may be in it at neither.
    pub(super) fn add_new(&mut self, changes: Vec<(String, Change)>) -> bool {
        let before = self.present.len();
        for (path, change) in changes.into_iter().filter(|(_, change)| *change != Change::Removed) {
            let path = path.trim_matches('/');
            if self.is_kept(path.as_bytes()) {
                self.present.entry(path.to_owned()).or_insert(change == Change::Modified);
            }
        }
        self.present.len() > before
    }

    /// Adds other names of files. What stands at a name that is left out gets the first one that is not.
    pub(super) fn add_names(&mut self, missing: Vec<(Vec<u8>, Vec<u8>)>) {
        for (name, other) in missing {
            if !self.is_kept(&other) || self.is_excluded_file(&other) {
                self.moved.entry(other).or_insert(name);
                continue;
            }
            // With the directories that it is in: a layer without them would make them anew, with other owners.
            let mut path = other.as_slice();
            while !path.is_empty() {
                self.present.entry(spelt(path)).or_insert(true);
                (path, _) = split(path);
            }
        }
    }

    /// Writes what is wanted of an archive, and the end of the layer.
    pub(super) fn write<W: Write>(
        &self,
        archive: impl Read,
        mut out: W,
        mut progress: impl FnMut(u64) -> io::Result<()>,
    ) -> io::Result<Told<W>> {
        let mut archive = Archive::new(archive);
        let (mut listing, mut missing, mut seen) = (Listing::default(), Vec::new(), HashSet::new());
        let mut folders = HashSet::from([Vec::new()]);
        while let Some(entry) = archive.next()? {
            progress(0)?;
            let is_wanted = self.wants(&entry);
            seen.extend(is_wanted.then(|| spelt(&entry.path)));
            let Some((entry, kind)) = self.taken(entry, is_wanted, &mut missing, &mut archive)? else {
                continue;
            };
            entry.write_head(&mut out)?;
            archive.content(&entry, |piece| {
                out.write_all(piece)?;
                progress(piece.len() as u64)
            })?;
            out.write_all(pad(entry.size))?;
            folders.extend(matches!(kind, Kind::Directory { .. }).then(|| entry.path.clone()));
            let about = About { size: entry.size, ..About::default() };
            listing.found.push(Found { path: entry.path, kind, about, root: 0 });
        }
        let gone = self.gone(&seen, &folders);
        let (out, _) = Layer::new(out, &[], |_| Ok(())).write(&gone, &Snapshot::all(&gone))?;
        listing.found.extend(gone.found);
        Ok(Told { out, listing, missing })
    }

    /// An entry as it goes into the layer; `None` if it does not, and its content is passed over.
    fn taken(
        &self,
        entry: Entry,
        is_wanted: bool,
        missing: &mut Vec<(Vec<u8>, Vec<u8>)>,
        archive: &mut Archive<impl Read>,
    ) -> io::Result<Option<(Entry, Kind)>> {
        let kind = kind(entry.kind());
        let link = (entry.kind() == EntryType::Link).then(|| entry.link.clone());
        let content = link.as_ref().unwrap_or(&entry.path);
        let taken = match (kind, self.moved.get(content)) {
            (Some(kind), Some(to)) if link.is_none() => Some((entry.named(to.clone()), kind)),
            // It has its content already.
            (Some(_), Some(to)) if *to == entry.path => None,
            (Some(kind), Some(to)) if is_wanted => Some((entry.linked(to.clone()), kind)),
            (Some(kind), None) if is_wanted => {
                if let Some(content) = link.filter(|content| !self.wants_path(content)) {
                    missing.push((entry.path.clone(), content));
                }
                Some((entry, kind))
            }
            _ => {
                let is_other_name = self.is_kept(&entry.path) && !self.is_excluded_file(&entry.path);
                if let Some(content) = link.filter(|content| is_other_name && self.wants_path(content)) {
                    missing.push((content, entry.path.clone()));
                }
                archive.content(&entry, |_| Ok(()))?;
                None
            }
        };
        Ok(taken)
    }

    fn wants(&self, entry: &Entry) -> bool {
        let is_folder = entry.kind() == EntryType::Directory;
        !entry.path.is_empty()
            && (self.present.contains_key(&spelt(&entry.path)) || (self.all && self.is_kept(&entry.path)))
            && (is_folder || !self.is_excluded_file(&entry.path))
    }

    /// Whether there is content of a file at this name in the layer.
    fn wants_path(&self, path: &[u8]) -> bool {
        (self.present.contains_key(&spelt(path)) || (self.all && self.is_kept(path)))
            && !self.is_excluded_file(path)
    }

    fn is_kept(&self, path: &[u8]) -> bool {
        // In a layer such a name would remove another file.
        let is_odd = path.split(|&byte| byte == b'/').any(|part| part.starts_with(GONE));
        !path.is_empty() && !is_odd && self.rules.verdict(path) == Verdict::Kept
    }

    fn is_excluded_file(&self, path: &[u8]) -> bool {
        self.rules.is_named(path)
    }

    /// What the layer has to remove of the image: what the engine says is gone, and what went while the archive was
    /// made. Below what is no directory any more nothing needs to be said.
    fn gone(&self, seen: &HashSet<String>, folders: &HashSet<Vec<u8>>) -> Listing {
        let went = self.present.iter().filter(|(path, of_image)| **of_image && !seen.contains(*path));
        let went = went.map(|(path, _)| path).filter(|path| !path.contains(char::REPLACEMENT_CHARACTER));
        let all: BTreeSet<_> =
            self.gone.iter().chain(went).filter(|_| !self.all).map(String::as_bytes).collect();
        let is_told = |path: &&[u8]| folders.contains(split(path).0) && !self.is_excluded_file(path);
        let found = all.into_iter().filter(is_told).map(|path| Found {
            path: path.to_vec(),
            kind: Kind::Gone,
            about: About::default(),
            root: 0,
        });
        Listing { found: found.collect(), ..Listing::default() }
    }
}

/// A stream of an engine's as threads read it.
pub(super) fn readable(
    archive: impl Stream<Item = Result<Bytes, RuntimeError>> + Send + 'static,
) -> impl Read + Send + 'static {
    SyncIoBridge::new(StreamReader::new(archive.map_err(io::Error::other).boxed()))
}

/// A path as the engine's answers in JSON spell it: each byte that is no text becomes a mark.
fn spelt(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// What an entry is to an image; `None` if it cannot be in one.
#[expect(clippy::wildcard_enum_match_arm, reason = "nothing else can be in an image")]
fn kind(kind: EntryType) -> Option<Kind> {
    match kind {
        EntryType::Regular | EntryType::Continuous | EntryType::Link => Some(Kind::File),
        EntryType::Directory => Some(Kind::Directory { opaque: false }),
        EntryType::Symlink => Some(Kind::Symlink),
        EntryType::Fifo => Some(Kind::Fifo),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(archive: &mut tar::Builder<Vec<u8>>, path: &str, content: &str) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(if path.ends_with('/') { EntryType::Directory } else { EntryType::Regular });
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, content.as_bytes()).unwrap();
    }

    fn add_link(archive: &mut tar::Builder<Vec<u8>>, path: &str, content: &str) {
        let mut link = tar::Header::new_gnu();
        link.set_entry_type(EntryType::Link);
        link.set_size(0);
        archive.append_link(&mut link, path, content).unwrap();
    }

    fn long() -> String {
        format!("d/{}", "x".repeat(150))
    }

    fn archive() -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        add(&mut archive, "cache/a", "cached");
        add(&mut archive, "d/", "");
        for (path, content) in [("d/.wh.odd", "no"), ("d/kept", "old"), ("d/new", "new"), (&long(), "long")] {
            add(&mut archive, path, content);
        }
        add(&mut archive, "file", "was a folder");
        add_link(&mut archive, "d/linked", "d/kept");
        add_link(&mut archive, "d/of-cache", "cache/a");
        add_link(&mut archive, "d/of-cache-too", "cache/a");
        add(&mut archive, "old/", "");
        add_link(&mut archive, "old/new", "d/new");
        add(&mut archive, "tmp/x", "out");
        archive.into_inner().unwrap()
    }

    fn rules() -> Rules {
        Rules::new(&[], &["/tmp".to_owned(), "/cache".to_owned()]).unwrap()
    }

    fn write(changed: &Changed) -> Told<Vec<u8>> {
        changed.write(&archive()[..], Vec::new(), |_| Ok(())).unwrap()
    }

    fn read(layer: &[u8]) -> Vec<String> {
        let mut read = tar::Archive::new(layer);
        let entries = read.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let link = entry.link_name().unwrap().map(|link| format!(" -> {}", link.display()));
            let text = path + &link.unwrap_or_default();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            if content.is_empty() { text } else { format!("{text}: {content}") }
        });
        entries.collect()
    }

    #[test]
    fn what_changed_as_it_came_and_the_content_of_links() {
        let long = format!("/{}", long());
        let added = ["/d/new", &long, "/d/linked", "/d/of-cache", "/d/of-cache-too", "/d/.wh.odd", "/tmp/x"];
        let mut paths: Vec<_> = added.map(|path| (path.to_owned(), Change::Added)).into();
        paths.extend(["/d", "/file", "/d/went"].map(|path| (path.to_owned(), Change::Modified)));
        paths.extend(["/d/gone", "/file/below", "/tmp/gone"].map(|path| (path.to_owned(), Change::Removed)));
        let mut changed = Changed::new(paths, rules(), false).unwrap();
        let missing = write(&changed).missing;
        assert_eq!(missing.len(), 4, "{missing:?}");
        changed.add_names(missing);
        let told = write(&changed);
        assert!(told.missing.is_empty(), "{:?}", told.missing);
        let long = format!("{}: long", &long[1..]);
        let wanted = [
            "d/of-cache: cached",
            "d/",
            "d/kept: old",
            "d/new: new",
            &long,
            "file: was a folder",
            "d/linked -> d/kept",
            "d/of-cache-too -> d/of-cache",
            "old/",
            "old/new -> d/new",
            "d/.wh.gone",
            "d/.wh.went",
        ];
        assert_eq!(read(&told.out), wanted);
    }

    #[test]
    fn all_of_it_for_an_image_that_lies_on_no_other() {
        let mut changed = Changed::new(vec![("/d/gone".to_owned(), Change::Removed)], rules(), true).unwrap();
        changed.add_names(write(&changed).missing);
        let read = read(&write(&changed).out);
        assert!(read.contains(&"d/kept: old".to_owned()), "{read:?}");
        assert!(read.contains(&"d/of-cache-too -> d/of-cache".to_owned()), "{read:?}");
        assert!(!read.iter().any(|path| path.contains(".wh.") || path.starts_with("tmp/x")), "{read:?}");
    }

    #[test]
    fn an_archive_that_just_stops_is_no_archive() {
        let changed = Changed::new(Vec::new(), rules(), true).unwrap();
        let archive = archive();
        for length in [0, 512, 700, archive.len() - 1024] {
            assert!(changed.write(&archive[..length], Vec::new(), |_| Ok(())).is_err(), "{length}");
        }
    }

    #[test]
    fn names_that_are_not_text_are_found_as_the_engine_spells_them() {
        assert_eq!(spelt(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
        assert_eq!(spelt(b"\xe4\xb8x"), "\u{fffd}\u{fffd}x");
        let removed = vec![("/a\u{fffd}".to_owned(), Change::Removed)];
        assert!(Changed::new(removed, rules(), false).is_err());
    }
}
