//! What files take on disk.
//!
//! The trees that are measured belong to users, who may change them meanwhile: every step is relative to an open
//! directory and follows no link. Blocks are counted, not lengths: a file full of holes takes nothing. Depth, time and
//! the number of open directories have bounds, and what cannot be measured within them says so.

use std::{collections::HashSet, ffi::CString, io, os::fd::OwnedFd, path::PathBuf, time::Instant};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat},
    io::Errno,
};

/// Directories that are open at once: a tree cannot use up the descriptors of this process.
const OPEN_MAX: usize = 512;
/// Files with several names that are told apart; more of them count once for each name.
const LINKED_MAX: usize = 1 << 20;
/// The unit of `st_blocks`, whatever the file system's own is.
const BLOCK: u64 = 512;
/// What the least file counts: file systems run out of places for files before they run out of blocks.
const ENTRY_MIN: u64 = 4096;
/// What each further name of a file counts: it takes room in its directory, and time to be seen.
const NAME_MIN: u64 = 512;
/// In one directory the time is looked at once in so many entries.
const ENTRIES_BETWEEN_LOOKS: u64 = 1024;

/// How far a measurement came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measured {
    /// All of it, or more than was asked for.
    Bytes(u64),
    /// It took too long; so much was found until then.
    Late(u64),
    /// Nested too deeply to be measured.
    TooDeep,
}

/// A directory whose subdirectories are still to be looked at.
#[derive(Debug)]
struct Frame {
    directory: OwnedFd,
    below: Vec<CString>,
}

#[derive(Debug)]
struct Sum {
    enough: u64,
    until: Instant,
    bytes: u64,
    /// Files with several names that were counted.
    linked: HashSet<(u64, u64)>,
}

/// Measures files and trees until all is seen, `enough` is found, or it is `until`. What vanishes meanwhile, or was
/// never there, takes nothing.
pub(crate) fn measure(roots: &[PathBuf], enough: u64, until: Instant) -> io::Result<Measured> {
    let mut sum = Sum { enough, until, bytes: 0, linked: HashSet::new() };
    for root in roots {
        let found = match rustix::fs::statat(CWD, root, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            found => found?,
        };
        sum.add(&found);
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            continue;
        }
        let directory = rustix::fs::openat(CWD, root, flags(), Mode::empty())?;
        let mut stack = vec![sum.frame(directory)?];
        while let Some(frame) = stack.last_mut() {
            if sum.bytes > enough {
                return Ok(Measured::Bytes(sum.bytes));
            }
            if Instant::now() >= until {
                return Ok(Measured::Late(sum.bytes));
            }
            let Some(name) = frame.below.pop() else {
                stack.pop();
                continue;
            };
            let opened = rustix::fs::openat(&frame.directory, &name, flags(), Mode::empty());
            if frame.below.is_empty() {
                // Nobody comes back to it, so a long chain of directories takes no more than a short one.
                stack.pop();
            }
            match opened {
                Ok(directory) => stack.push(sum.frame(directory)?),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(error.into()),
            }
            if stack.len() > OPEN_MAX {
                return Ok(Measured::TooDeep);
            }
        }
    }
    Ok(Measured::Bytes(sum.bytes))
}

fn flags() -> OFlags {
    OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

impl Sum {
    /// Adds all that is in a directory, and answers with what is below it: as far as there is time, and no further than
    /// enough.
    fn frame(&mut self, directory: OwnedFd) -> io::Result<Frame> {
        let mut below = Vec::new();
        for (entry, seen) in Dir::read_from(&directory)?.zip(1_u64..) {
            let is_late = || seen.is_multiple_of(ENTRIES_BETWEEN_LOOKS) && Instant::now() >= self.until;
            if self.bytes > self.enough || is_late() {
                break;
            }
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let found = match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                found => found?,
            };
            self.add(&found);
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                below.push(name.to_owned());
            }
        }
        Ok(Frame { directory, below })
    }

    fn add(&mut self, found: &Stat) {
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if !is_directory && found.st_nlink > 1 && self.linked.len() < LINKED_MAX {
            let is_new = self.linked.insert((found.st_dev, found.st_ino));
            if !is_new {
                self.bytes = self.bytes.saturating_add(NAME_MIN);
                return;
            }
        }
        let bytes = u64::try_from(found.st_blocks).unwrap_or(0) * BLOCK;
        self.bytes = self.bytes.saturating_add(bytes.max(ENTRY_MIN));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::symlink,
        path::Path,
        time::Duration,
    };

    use super::*;

    const MIB: u64 = 1 << 20;
    const DEPTH: u64 = 800;

    fn weigh(root: &Path, enough: u64) -> Measured {
        measure(&[root.to_owned()], enough, Instant::now() + Duration::from_mins(1)).unwrap()
    }

    #[test]
    fn blocks_are_counted_once_and_links_are_not_followed() {
        let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("large"), vec![1; 64 << 20]).unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::write(root.join("a/b/c/two"), vec![1; 2 << 20]).unwrap();
        fs::hard_link(root.join("a/b/c/two"), root.join("again")).unwrap();
        File::create(root.join("holes")).unwrap().set_len(1 << 40).unwrap();
        symlink(elsewhere.path(), root.join("a/link")).unwrap();
        symlink("/", root.join("slash")).unwrap();
        let Measured::Bytes(bytes) = weigh(root, u64::MAX) else { panic!() };
        assert!((2 * MIB..3 * MIB).contains(&bytes), "{bytes}");
        assert_eq!(weigh(&root.join("nothing"), u64::MAX), Measured::Bytes(0));
        assert!(matches!(measure(&[root.to_owned()], u64::MAX, Instant::now()).unwrap(), Measured::Late(_)));
    }

    #[test]
    fn names_are_counted_too_and_one_directory_does_not_hold_everyone_up() {
        const NAMES: u64 = 5000;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("one"), [1]).unwrap();
        for number in 0..NAMES {
            fs::hard_link(root.join("one"), root.join(number.to_string())).unwrap();
        }
        let Measured::Bytes(bytes) = weigh(root, u64::MAX) else { panic!() };
        assert!(bytes >= NAMES * NAME_MIN, "{bytes}");
        let Measured::Bytes(enough) = weigh(root, MIB) else { panic!() };
        assert!((MIB..2 * MIB).contains(&enough), "no more is looked at than has to be: {enough}");
        let Measured::Late(some) = measure(&[root.to_owned()], u64::MAX, Instant::now()).unwrap() else {
            panic!()
        };
        assert!(some < bytes / 2, "{some} of {bytes}");
    }

    #[test]
    fn depth_alone_is_fine_and_a_tree_that_would_use_up_descriptors_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let make = |name: &str, branches: bool| {
            let flags = flags() | OFlags::RDONLY;
            let mut at = rustix::fs::openat(CWD, directory.path(), flags, Mode::empty()).unwrap();
            rustix::fs::mkdirat(&at, name, Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, name, flags, Mode::empty()).unwrap();
            for _ in 0..DEPTH {
                rustix::fs::mkdirat(&at, "deeper", Mode::RWXU).unwrap();
                if branches {
                    rustix::fs::mkdirat(&at, "aside", Mode::RWXU).unwrap();
                }
                at = rustix::fs::openat(&at, "deeper", flags, Mode::empty()).unwrap();
            }
            directory.path().join(name)
        };
        assert!(
            matches!(weigh(&make("chain", false), u64::MAX), Measured::Bytes(bytes) if bytes >= DEPTH * 4096)
        );
        // Which of two siblings is looked at first is the file system's choice, so it may be lucky.
        let tree = make("tree", true);
        assert!(matches!(weigh(&tree, u64::MAX), Measured::TooDeep | Measured::Bytes(_)));
        assert!(
            matches!(weigh(&tree, MIB), Measured::Bytes(bytes) if bytes > MIB)
                || weigh(&tree, MIB) == Measured::TooDeep
        );
    }
}
