//! What is in the directory that holds a container's changes.
//!
//! The tree belongs to a user, who may change it meanwhile: it is walked through open directories, no link is ever
//! followed, and no other file system is entered. What a walk finds is a list, parents before what is in them.

use std::{
    collections::BTreeMap,
    ffi::CString,
    io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat},
    io::Errno,
};

use super::rules::{Rules, Verdict};

/// What stands before the name of what is gone, in a layer.
pub(super) const GONE: &[u8] = b".wh.";
/// The longest path that the kernel takes in one call.
const PATH_MAX: usize = 4000;
/// More files than this are not listed.
const ENTRIES_MAX: usize = 2_000_000;

/// Something that is in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Relative to the root of the container's files, without `/` at either end; empty for the root itself.
    pub(super) path: Vec<u8>,
    pub(super) kind: Kind,
    pub(super) about: About,
    /// Which of several directories it is in, where the listing is of more than one.
    pub(super) root: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `opaque`: what the image has in it does not count.
    Directory {
        opaque: bool,
    },
    File,
    Symlink,
    Fifo,
    /// It is in the image and was removed.
    Gone,
}

/// What is known of a file besides its content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct About {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) size: u64,
    pub(super) blocks: u64,
    pub(super) modified: (i64, u32),
    pub(super) changed: (i64, u32),
    pub(super) inode: u64,
    pub(super) links: u64,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) found: Vec<Found>,
    /// What was left out because the request says so, with the bytes in it.
    pub(super) excluded: BTreeMap<Vec<u8>, u64>,
    /// What cannot be in an image: sockets, devices, names that mean something else in a layer.
    pub(super) odd: u64,
}

impl Listing {
    /// Parents before what is in them: depth first, as it was walked, would put a directory's files after its
    /// subdirectories.
    pub(super) fn sort(&mut self) {
        self.found.sort_by(|one, other| parts(&one.path).cmp(parts(&other.path)));
    }
}

/// Why a walk did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WalkError {
    /// The file system refers to the image's files in ways that a layer cannot express.
    #[error("the changes refer to other files of the image")]
    Refers,
    #[error("directories are nested too deeply, or there are too many files")]
    TooMuch,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Opens a directory by its path on this machine.
pub(super) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty())?)
}

pub(super) const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens what is at `path` below `root`, without leaving it and without following a link.
pub(super) fn open_below(root: &OwnedFd, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let path = if path.is_empty() { b"." } else { path };
    let opened = rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?;
    Ok(opened)
}

/// Lists all below `root` that `rules` let into an image. `measure` also counts what they do not.
pub(super) fn walk(root: &OwnedFd, rules: &Rules, measure: bool) -> Result<Listing, WalkError> {
    let mut listing = Listing::default();
    let about = About::of(&rustix::fs::fstat(root).map_err(io::Error::from)?);
    listing.found.push(Found { path: Vec::new(), kind: Kind::Directory { opaque: false }, about, root: 0 });
    walk_all(root, rules, measure, Check::Now, &mut listing, vec![(Vec::new(), None)])?;
    listing.sort();
    Ok(listing)
}

/// Lists what is in all that is `open`, and below.
pub(super) fn walk_all(
    root: &OwnedFd,
    rules: &Rules,
    measure: bool,
    check: Check,
    listing: &mut Listing,
    mut open: Open,
) -> Result<(), WalkError> {
    // Deepest last: a directory's own entries come right after it.
    while let Some((path, excluded_by)) = open.pop() {
        if path.len() > PATH_MAX {
            return Err(WalkError::TooMuch);
        }
        let directory = match open_below(root, &path, DIRECTORY) {
            Ok(directory) => directory,
            Err(error) if is_gone(&error) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(by) = excluded_by {
            measure_directory(&directory, &path, &by, listing, &mut open)?;
        } else {
            list_directory(&directory, &path, rules, measure, check, listing, &mut open)?;
        }
    }
    Ok(())
}

/// Directories that are to be looked into, and by what those are left out that are only measured.
pub(super) type Open = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// When a file is asked whether it refers to one of the image. For a file the answer is as good later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Now,
    Later,
}

pub(super) fn list_directory(
    directory: &OwnedFd,
    path: &[u8],
    rules: &Rules,
    measure: bool,
    check: Check,
    listing: &mut Listing,
    open: &mut Open,
) -> Result<(), WalkError> {
    for name in names(directory, ENTRIES_MAX.saturating_sub(listing.found.len()))? {
        let below = join(path, name.to_bytes());
        let verdict = rules.verdict(&below);
        if verdict == Verdict::Never {
            continue;
        }
        let Some(stat) = stat(directory, name.to_bytes())? else { continue };
        let file_type = FileType::from_raw_mode(stat.st_mode);
        let is_file = file_type != FileType::Directory;
        if verdict == Verdict::Excluded || (is_file && rules.is_named(&below)) {
            *listing.excluded.entry(below.clone()).or_default() += size(&stat);
            if measure && file_type == FileType::Directory {
                open.push((below.clone(), Some(below)));
            }
            continue;
        }
        let Some(kind) = kind(directory, name.to_bytes(), &stat, check)? else {
            listing.odd += 1;
            continue;
        };
        if let Kind::Directory { .. } = kind {
            if rules.is_emptied(&below) {
                // The directory stays, what is in it does not.
                listing.excluded.entry(below.clone()).or_default();
                if measure {
                    open.push((below.clone(), Some(below.clone())));
                }
            } else {
                open.push((below.clone(), None));
            }
        }
        listing.found.push(Found { path: below, kind, about: About::of(&stat), root: 0 });
    }
    Ok(())
}

fn measure_directory(
    directory: &OwnedFd,
    path: &[u8],
    by: &[u8],
    listing: &mut Listing,
    open: &mut Open,
) -> Result<(), WalkError> {
    for name in names(directory, ENTRIES_MAX)? {
        let Some(stat) = stat(directory, name.to_bytes())? else { continue };
        *listing.excluded.entry(by.to_vec()).or_default() += size(&stat);
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            open.push((join(path, name.to_bytes()), Some(by.to_vec())));
        }
    }
    Ok(())
}

fn names(directory: &OwnedFd, most: usize) -> Result<Vec<CString>, WalkError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory).map_err(io::Error::from)? {
        let entry = entry.map_err(io::Error::from)?;
        if names.len() > most {
            return Err(WalkError::TooMuch);
        }
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

pub(super) fn stat(directory: &OwnedFd, name: &[u8]) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What an entry is to an image; `None` if it cannot be in one.
pub(super) fn kind(
    directory: &OwnedFd,
    name: &[u8],
    stat: &Stat,
    check: Check,
) -> Result<Option<Kind>, WalkError> {
    // In a layer the name would remove another file.
    if name.starts_with(GONE) {
        return Ok(None);
    }
    let attribute = |which: &str| attribute(directory, name, which);
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice if stat.st_rdev == 0 => Some(Kind::Gone),
        FileType::Directory => {
            if attribute("trusted.overlay.redirect")?.is_some() {
                return Err(WalkError::Refers);
            }
            let opaque = attribute("trusted.overlay.opaque")?.as_deref() == Some(b"y");
            Some(Kind::Directory { opaque })
        }
        FileType::RegularFile => {
            if check == Check::Now && refers(directory, name)? {
                return Err(WalkError::Refers);
            }
            Some(Kind::File)
        }
        FileType::Symlink => Some(Kind::Symlink),
        FileType::Fifo => Some(Kind::Fifo),
        FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => None,
    })
}

/// Whether a file has its content in the image.
pub(super) fn refers(directory: &OwnedFd, name: &[u8]) -> io::Result<bool> {
    Ok(attribute(directory, name, "trusted.overlay.metacopy")?.is_some())
}

/// The path of something in an open directory by which calls that take no descriptor can name it. The directory is
/// fixed by its descriptor, and the calls that this is for do not follow its last part.
pub(super) fn by_descriptor(directory: BorrowedFd<'_>, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", directory.as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    path
}

fn attribute(directory: &OwnedFd, name: &[u8], which: &str) -> io::Result<Option<Vec<u8>>> {
    use std::os::fd::AsFd as _;
    let path = by_descriptor(directory.as_fd(), name);
    let mut value = vec![0; 256];
    match rustix::fs::lgetxattr(path, which, &mut value[..]) {
        Ok(length) => {
            value.truncate(length);
            Ok(Some(value))
        }
        Err(Errno::NODATA | Errno::NOTSUP | Errno::NOENT) => Ok(None),
        // Longer than any that means something here.
        Err(Errno::RANGE) => Ok(Some(value)),
        Err(error) => Err(error.into()),
    }
}

impl About {
    #[expect(clippy::cast_possible_truncation, reason = "less than a second")]
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: size(stat),
            blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime, stat.st_ctime_nsec as u32),
            inode: stat.st_ino,
            links: stat.st_nlink,
        }
    }
}

fn size(stat: &Stat) -> u64 {
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        u64::try_from(stat.st_size).unwrap_or(0)
    } else {
        0
    }
}

pub(super) fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = path.to_vec();
    if !joined.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// The directory that something is in, and its name there.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
}

/// Whether something went away, or became something else, since it was seen.
pub(super) fn is_gone(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV))
}
