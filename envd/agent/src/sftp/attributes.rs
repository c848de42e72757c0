//! What is known of a file, as SFTP says it: to a program and, as `ls -l` does, to people.

use std::{
    collections::HashMap,
    fs::{self, File, Metadata},
    io,
    os::{
        fd::AsFd as _,
        unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
    },
    path::Path,
};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid};

/// Of files older than this the year is shown and not the hour.
const HALF_A_YEAR: i64 = 182 * 24 * 3600;

/// The names of users and groups, read once.
#[derive(Debug)]
pub(super) struct Names {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

/// Whose attributes are set.
#[derive(Debug, Clone, Copy)]
pub(super) enum Whose<'a> {
    Path(&'a Path),
    /// The link itself, not what it leads to.
    Link(&'a Path),
    File(&'a File),
}

/// What version 3 can say of a file; when something is set, only what is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) size: Option<u64>,
    /// The user and the group, by number.
    pub(super) owner: Option<(u32, u32)>,
    pub(super) mode: Option<u32>,
    /// When it was last read and last changed, in seconds since 1970.
    pub(super) times: Option<(u32, u32)>,
}

pub(super) fn of(found: &Metadata) -> Attributes {
    Attributes {
        size: Some(found.len()),
        owner: Some((found.uid(), found.gid())),
        mode: Some(found.mode()),
        times: Some((seconds(found.atime()), seconds(found.mtime()))),
    }
}

/// Version 3 has 32 bits for a time.
fn seconds(time: i64) -> u32 {
    u32::try_from(time.max(0)).unwrap_or(u32::MAX)
}

/// Sets all that is given; what went wrong last is what is told.
pub(super) fn set(whose: Whose<'_>, wanted: &Attributes) -> io::Result<()> {
    let mut result = Ok(());
    if let Some(size) = wanted.size {
        result = result.and(match whose {
            Whose::Path(path) => cut(path, size),
            Whose::Link(_) => Err(io::ErrorKind::InvalidInput.into()),
            Whose::File(file) => file.set_len(size),
        });
    }
    if let Some((uid, gid)) = wanted.owner {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        let changed = match whose {
            Whose::Path(path) => rustix::fs::chownat(CWD, path, uid, gid, AtFlags::empty()),
            Whose::Link(path) => rustix::fs::chownat(CWD, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW),
            Whose::File(file) => rustix::fs::fchown(file.as_fd(), uid, gid),
        };
        result = changed.map_err(io::Error::from).and(result);
    }
    // After the owner: a change of owner takes the set-user-ID bit away.
    if let Some(mode) = wanted.mode {
        let mode = fs::Permissions::from_mode(mode & 0o7777);
        let changed = match whose {
            Whose::Path(path) => fs::set_permissions(path, mode),
            Whose::Link(_) => Err(io::ErrorKind::Unsupported.into()),
            Whose::File(file) => file.set_permissions(mode),
        };
        result = changed.and(result);
    }
    if let Some((accessed, modified)) = wanted.times {
        let time = |seconds: u32| Timespec { tv_sec: i64::from(seconds), tv_nsec: 0 };
        let times = Timestamps { last_access: time(accessed), last_modification: time(modified) };
        let changed = match whose {
            Whose::Path(path) => rustix::fs::utimensat(CWD, path, &times, AtFlags::empty()),
            Whose::Link(path) => rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW),
            Whose::File(file) => rustix::fs::futimens(file.as_fd(), &times),
        };
        result = changed.map_err(io::Error::from).and(result);
    }
    result
}

/// A pipe that nobody reads is an error, not a wait without end.
fn cut(path: &Path, size: u64) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    file.set_len(size)
}

impl Names {
    pub(super) fn read() -> Self {
        let table = |path| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let entry = |line: &str| {
                let mut fields = line.split(':');
                let name = fields.next()?.to_owned();
                Some((fields.nth(1)?.parse().ok()?, name))
            };
            // Of several names the first counts.
            text.lines().rev().filter_map(entry).collect()
        };
        Self { users: table("/etc/passwd"), groups: table("/etc/group") }
    }

    /// A line as `ls -l` writes it.
    pub(super) fn line(&self, name: &[u8], found: &Metadata) -> Vec<u8> {
        let known =
            |names: &HashMap<u32, String>, id: u32| names.get(&id).cloned().unwrap_or_else(|| id.to_string());
        let time = jiff::Timestamp::from_second(found.mtime()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let age = jiff::Timestamp::now().duration_since(time).as_secs();
        let form = if (0..HALF_A_YEAR).contains(&age) { "%b %e %H:%M" } else { "%b %e  %Y" };
        let mut line = format!(
            "{} {:>4} {:<8} {:<8} {:>8} {} ",
            mode(found),
            found.nlink(),
            known(&self.users, found.uid()),
            known(&self.groups, found.gid()),
            found.len(),
            time.strftime(form),
        )
        .into_bytes();
        line.extend_from_slice(name);
        line
    }
}

fn mode(found: &Metadata) -> String {
    let kind = found.file_type();
    let letter = if kind.is_dir() {
        'd'
    } else if kind.is_symlink() {
        'l'
    } else if kind.is_fifo() {
        'p'
    } else if kind.is_socket() {
        's'
    } else if kind.is_block_device() {
        'b'
    } else if kind.is_char_device() {
        'c'
    } else {
        '-'
    };
    let mode = found.mode();
    let mut text = String::from(letter);
    for (shift, special, both, alone) in [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')]
    {
        let bits = mode >> shift;
        text.push(if bits & 4 == 0 { '-' } else { 'r' });
        text.push(if bits & 2 == 0 { '-' } else { 'w' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => both,
            (false, true) => alone,
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_set_of_files_and_refused_by_what_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        fs::write(&file, "longer").unwrap();
        let wanted = Attributes { size: Some(4), ..Attributes::default() };
        assert!(set(Whose::Path(&pipe), &wanted).is_err());
        set(Whose::Path(&file), &wanted).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"long");
    }
}
