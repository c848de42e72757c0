//! The code of a job: a folder of its user's that is copied to where the instance sees it read-only.
//!
//! envd starts this program to make the copy ([`fetch`]). It goes into the [room](crate::room) of the user's storages
//! first, so whatever links are in the way lead to nothing else; the place of the copy is a directory that was open
//! before. In the instance the copy is also found by the folder's name in the working directory ([`show`]).

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
    process::ExitCode,
};

use envd_api::agent::{AgentSpec, CODE, CODE_BYTES_MAX, DOOR, FetchCode};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use crate::{links, room};

/// Files and folders of the code; more of them are no code.
const ENTRIES_MAX: u64 = 100_000;
const DEPTH_MAX: usize = 64;

/// Makes the copy that `wanted` (a [`FetchCode`] as JSON) describes.
pub(crate) fn fetch(wanted: &OsString) -> ExitCode {
    let done =
        serde_json::from_slice(wanted.as_bytes()).map_err(io::Error::from).and_then(|wanted| copy(&wanted));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _nobody_listens = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn copy(wanted: &FetchCode) -> io::Result<()> {
    let into = rustix::stdio::stdin().try_clone_to_owned()?;
    room::enter(&wanted.room)?;
    let wrong = |error: io::Error| io::Error::other(format!("`{}`: {error}", wanted.from));
    copy_folder(Path::new(&wanted.from), &into).map_err(wrong)
}

/// Copies the folder `from` into the open directory `into`, unless it is too large.
fn copy_folder(from: &Path, into: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let from = rustix::fs::open(from, flags, Mode::empty())?;
    let mut found = Sum::default();
    walk(&from, None, &mut found, DEPTH_MAX)?;
    found.check()?;
    // What grows meanwhile is too large as well.
    walk(&from, Some(into), &mut Sum::default(), DEPTH_MAX)
}

/// What was seen of a folder so far.
#[derive(Debug, Default)]
struct Sum {
    bytes: u64,
    entries: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn check(&self) -> io::Result<()> {
        let (mib, most) = (self.bytes.div_ceil(1 << 20), CODE_BYTES_MAX >> 20);
        if self.bytes > CODE_BYTES_MAX {
            return Err(io::Error::other(format!(
                "it takes {mib} MiB, and code may take {most} MiB; keep data in a folder of its own"
            )));
        }
        if self.entries > ENTRIES_MAX {
            return Err(io::Error::other(format!(
                "there are more than {ENTRIES_MAX} files in it; keep data in a folder of its own"
            )));
        }
        Ok(())
    }
}

/// Goes through a folder; with `into` it copies what is there, without it counts only. Links are copied as links, and
/// what is neither file nor folder is left out.
fn walk(from: &OwnedFd, into: Option<&OwnedFd>, sum: &mut Sum, depth: usize) -> io::Result<()> {
    if depth == 0 {
        return Err(io::Error::other(format!("it is nested deeper than {DEPTH_MAX} folders")));
    }
    for entry in Dir::read_from(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        let found = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        let size = if kind == FileType::RegularFile { u64::try_from(found.st_size).unwrap_or(0) } else { 0 };
        sum.add(size);
        // Counting goes on to the end, so that the whole size can be told.
        if into.is_some() || sum.entries > ENTRIES_MAX {
            sum.check()?;
        }
        let below = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match (kind, into) {
            (FileType::Directory, _) => {
                let next = rustix::fs::openat(from, name, below | OFlags::DIRECTORY, Mode::empty())?;
                let made = into.map(|into| {
                    rustix::fs::mkdirat(into, name, Mode::from_raw_mode(0o755))?;
                    rustix::fs::openat(into, name, below | OFlags::DIRECTORY, Mode::empty())
                });
                walk(&next, made.transpose()?.as_ref(), sum, depth - 1)?;
            }
            (FileType::RegularFile, Some(into)) => {
                let executable = found.st_mode & 0o111;
                copy_file(from, into, OsStr::from_bytes(name.to_bytes()), 0o644 | executable, size)?;
            }
            (FileType::Symlink, Some(into)) => {
                let target = rustix::fs::readlinkat(from, name, Vec::new())?;
                rustix::fs::symlinkat(target, into, name)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// No more than was counted is copied.
fn copy_file(from: &OwnedFd, into: &OwnedFd, name: &OsStr, mode: u32, size: u64) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let source = rustix::fs::openat(from, name, flags, Mode::empty())?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let copy = rustix::fs::openat(into, name, flags, Mode::from_raw_mode(mode))?;
    rustix::fs::fchmod(copy.as_fd(), Mode::from_raw_mode(mode))?;
    io::copy(&mut File::from(source).take(size), &mut File::from(copy))?;
    Ok(())
}

/// Puts the copy into the working directory under the folder's own name, as commands of old files have it. What the
/// image has there stays: `PAI_CODE_DIR` leads to the copy all the same.
pub(crate) fn show(spec: &AgentSpec) {
    let Some(name) = spec.code.as_deref().filter(|name| !name.is_empty() && !name.contains('/')) else {
        return;
    };
    let directory = Path::new("/").join(&spec.cwd);
    let (at, to): (PathBuf, _) = (directory.join(name), Path::new(DOOR).join(CODE));
    if fs::symlink_metadata(&at).is_err() {
        let _not_there = links::make_one(&at, &to, Path::new("/"));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn open(path: &Path) -> OwnedFd {
        File::open(path).unwrap().into()
    }

    #[test]
    fn a_folder_is_copied_with_its_links_and_programs() {
        let here = tempfile::tempdir().unwrap();
        let (from, into) = (here.path().join("from"), here.path().join("into"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::create_dir(&into).unwrap();
        fs::write(from.join("a/b/run.sh"), "echo").unwrap();
        fs::set_permissions(from.join("a/b/run.sh"), fs::Permissions::from_mode(0o700)).unwrap();
        symlink("/etc/passwd", from.join("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, from.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        copy_folder(&from, &open(&into)).unwrap();
        assert_eq!(fs::read_to_string(into.join("a/b/run.sh")).unwrap(), "echo");
        assert_eq!(fs::metadata(into.join("a/b/run.sh")).unwrap().permissions().mode() & 0o777, 0o744);
        assert_eq!(fs::read_link(into.join("link")).unwrap(), Path::new("/etc/passwd"));
        assert!(!into.join("pipe").exists());
    }

    #[test]
    fn what_is_too_large_is_refused_with_its_size() {
        let here = tempfile::tempdir().unwrap();
        let (from, into) = (here.path().join("from"), here.path().join("into"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&into).unwrap();
        File::create(from.join("data")).unwrap().set_len(CODE_BYTES_MAX).unwrap();
        fs::write(from.join("more"), "x").unwrap();
        let refused = copy_folder(&from, &open(&into)).unwrap_err().to_string();
        assert!(refused.contains("it takes 201 MiB, and code may take 200 MiB"), "{refused}");
        assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
    }
}
