//! What was saved last time, so that the next save of the same container writes only what has changed since.
//!
//! A file is the same when its inode, its size and the time of its last change are: nobody in a container can set that
//! time. What changed at about the moment of the save may change once more within one tick of the clock, and what is
//! mapped may change without a trace, so these count as changed next time.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    mapped::Mapped,
    walk::{Found, Kind, Listing},
};

/// How long before the save a change must have been, to be known for sure: far longer than a tick of the kernel's clock.
const TICK: Duration = Duration::from_millis(200);
const MAGIC: &[u8; 8] = b"berthsv1";
/// The longest path in a file of snapshots that is believed.
const PATH_MAX: usize = 1 << 16;

/// What was in a container's changes when it was saved.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot(HashMap<Vec<u8>, Mark>);

/// What tells one state of a file from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    kind: u8,
    /// Not to be relied on.
    fresh: bool,
    inode: u64,
    size: u64,
    changed: (i64, u32),
}

/// What to do with what is there now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Whether each of the listing's entries goes into the layer.
    pub(super) wanted: Vec<bool>,
    /// Whether the directory at that place is to hide what earlier layers have in it.
    pub(super) hides: Vec<bool>,
    /// What was there and is not any more.
    pub(super) gone: Vec<Vec<u8>>,
}

const DIRECTORY: u8 = 1;
const OPAQUE: u8 = 2;
const FILE: u8 = 3;
const SYMLINK: u8 = 4;
const FIFO: u8 = 5;
const GONE: u8 = 6;

fn number(kind: Kind) -> u8 {
    match kind {
        Kind::Directory { opaque: false } => DIRECTORY,
        Kind::Directory { opaque: true } => OPAQUE,
        Kind::File => FILE,
        Kind::Symlink => SYMLINK,
        Kind::Fifo => FIFO,
        Kind::Gone => GONE,
    }
}

/// What changed before this moment, and looks as it did at `begun`, has not changed since.
pub(super) fn sure_before(begun: SystemTime) -> (i64, u32) {
    let sure = begun.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(TICK);
    (sure.as_secs().cast_signed(), sure.subsec_nanos())
}

impl Snapshot {
    /// `begun` is when somebody began to look for what is `mapped`; the walk that made the listing was after that.
    pub(super) fn of(listing: &Listing, begun: SystemTime, mapped: &Mapped) -> Self {
        let sure = sure_before(begun);
        let mark = |found: &Found| Mark {
            kind: number(found.kind),
            fresh: found.about.changed >= sure || mapped.has(found.about.inode, &found.path),
            inode: found.about.inode,
            size: found.about.size,
            changed: found.about.changed,
        };
        Self(listing.found.iter().map(|found| (found.path.clone(), mark(found))).collect())
    }

    /// As if it had not been there.
    pub(super) fn forget(&mut self, path: &[u8]) {
        self.0.remove(path);
    }

    /// Everything, as for a first save.
    pub(super) fn all(listing: &Listing) -> Difference {
        let opaque = |found: &Found| found.kind == Kind::Directory { opaque: true };
        Difference {
            wanted: vec![true; listing.found.len()],
            hides: listing.found.iter().map(opaque).collect(),
            gone: Vec::new(),
        }
    }

    /// What a layer on top of the last one has to say; `None` if no layer can say it.
    pub(super) fn difference(&self, listing: &Listing) -> Option<Difference> {
        let mut places = HashMap::with_capacity(listing.found.len());
        let (mut wanted, mut hides) = (Vec::new(), Vec::new());
        for (place, found) in listing.found.iter().enumerate() {
            places.insert(found.path.as_slice(), place);
            let before = self.0.get(&found.path);
            let same = before.is_some_and(|before| {
                !before.fresh
                    && before.kind == number(found.kind)
                    && (before.inode, before.size, before.changed)
                        == (found.about.inode, found.about.size, found.about.changed)
            });
            // Whatever was in a directory of that name before does not count.
            let hidden = found.kind == Kind::Directory { opaque: true }
                && before.is_none_or(|before| before.kind != OPAQUE || before.inode != found.about.inode);
            let (parent, _) = super::walk::split(&found.path);
            let below_hidden = !found.path.is_empty() && places.get(parent).is_some_and(|&at| hides[at]);
            wanted.push(!same || below_hidden);
            // All below it has to be said again, whatever is the same.
            hides.push(hidden || (below_hidden && matches!(found.kind, Kind::Directory { .. })));
        }
        let mut gone = Vec::new();
        for (path, mark) in &self.0 {
            if places.contains_key(path.as_slice()) {
                continue;
            }
            // The image's own file is back: that needs the removal itself to be removed.
            if mark.kind == GONE {
                return None;
            }
            let (parent, _) = super::walk::split(path);
            let is_directory = |&at: &usize| matches!(listing.found[at].kind, Kind::Directory { .. });
            if places.get(parent).is_some_and(is_directory) {
                gone.push(path.clone());
            }
        }
        gone.sort();
        let mut difference = Difference { wanted, hides, gone };
        difference.add_parents(listing, &places);
        Some(difference)
    }

    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(MAGIC)?;
        for (name, mark) in &self.0 {
            let length = u32::try_from(name.len()).map_err(io::Error::other)?;
            out.write_all(&length.to_le_bytes())?;
            out.write_all(name)?;
            out.write_all(&[mark.kind, u8::from(mark.fresh)])?;
            out.write_all(&mark.inode.to_le_bytes())?;
            out.write_all(&mark.size.to_le_bytes())?;
            out.write_all(&mark.changed.0.to_le_bytes())?;
            out.write_all(&mark.changed.1.to_le_bytes())?;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }

    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut from = BufReader::new(File::open(path)?);
        if bytes::<8>(&mut from)? != *MAGIC {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut marks = HashMap::new();
        loop {
            let length = match bytes::<4>(&mut from) {
                Ok(length) => usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Self(marks)),
                Err(error) => return Err(error),
            };
            if length > PATH_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut name = vec![0; length];
            from.read_exact(&mut name)?;
            let [kind, fresh] = bytes::<2>(&mut from)?;
            let mark = Mark {
                kind,
                fresh: fresh != 0,
                inode: u64::from_le_bytes(bytes(&mut from)?),
                size: u64::from_le_bytes(bytes(&mut from)?),
                changed: (i64::from_le_bytes(bytes(&mut from)?), u32::from_le_bytes(bytes(&mut from)?)),
            };
            marks.insert(name, mark);
        }
    }
}

impl Difference {
    /// A layer that has a file without the directory that it is in would make that directory anew, with another owner.
    fn add_parents(&mut self, listing: &Listing, places: &HashMap<&[u8], usize>) {
        let wanted = (0..listing.found.len()).filter(|&at| self.wanted[at]);
        let paths: Vec<_> = wanted
            .map(|at| listing.found[at].path.as_slice())
            .chain(self.gone.iter().map(Vec::as_slice))
            .collect();
        for mut path in paths {
            while !path.is_empty() {
                (path, _) = super::walk::split(path);
                let Some(&at) = places.get(path) else { break };
                self.wanted[at] = true;
            }
        }
    }

    /// Whether there is nothing to say.
    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty() && !self.wanted.contains(&true)
    }
}

fn bytes<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}
