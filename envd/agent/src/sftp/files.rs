//! The requests of version 3 that touch files.

use std::{
    fs::{self, File, ReadDir},
    io,
    os::unix::fs::{DirBuilderExt as _, FileExt as _},
    path::{Path, PathBuf},
};

use russh_sftp::protocol::{
    self as sftp, Attrs, Data, File as Entry, FileAttributes, Fstat, Handle, MkDir, Name, OpenDir, OpenFlags,
    Packet, Rename, StatusCode,
};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags};

use super::{Answer, DATA_MAX, HANDLES_MAX, Refused, Server, attributes, done};

/// Entries of a directory in one answer, as OpenSSH sends them.
const ENTRIES: usize = 100;

/// What a handle stands for.
#[derive(Debug)]
pub(super) enum Open {
    File(File),
    Directory { path: PathBuf, entries: ReadDir },
}

impl Server {
    fn keep(&mut self, id: u32, open: Open) -> Answer {
        if self.open.len() >= HANDLES_MAX {
            return Err(Refused::Words("too many files are open"));
        }
        let handle = self.next.to_string();
        self.next += 1;
        self.open.insert(handle.clone(), open);
        Ok(Handle { id, handle }.into())
    }

    pub(super) fn file(&self, handle: &str) -> Result<&File, Refused> {
        match self.open.get(handle) {
            Some(Open::File(file)) => Ok(file),
            Some(Open::Directory { .. }) | None => Err(Refused::Words("no such file handle")),
        }
    }

    pub(super) fn open_file(&mut self, open: &sftp::Open) -> Answer {
        let mode = Mode::from_raw_mode(open.attrs.permissions.unwrap_or(0o666) & 0o7777);
        let file = rustix::fs::open(open.filename.as_str(), flags(open.pflags), mode)?;
        self.keep(open.id, Open::File(file.into()))
    }

    pub(super) fn read(&self, read: &sftp::Read) -> Answer {
        let file = self.file(&read.handle)?;
        let wanted = usize::try_from(read.len).unwrap_or(DATA_MAX).min(DATA_MAX);
        let mut data = vec![0; wanted];
        let got = match file.read_at(&mut data, read.offset) {
            // What has no places, such as a pipe, is read as it comes.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SPIPE.raw_os_error()) => {
                io::Read::read(&mut &*file, &mut data)?
            }
            result => result?,
        };
        if got == 0 && wanted > 0 {
            return Err(Refused::Code(StatusCode::Eof));
        }
        data.truncate(got);
        Ok(Data { id: read.id, data }.into())
    }

    pub(super) fn write(&self, write: &sftp::Write) -> Answer {
        let file = self.file(&write.handle)?;
        match file.write_all_at(&write.data, write.offset) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SPIPE.raw_os_error()) => {
                io::Write::write_all(&mut &*file, &write.data)?;
            }
            result => result?,
        }
        Ok(done(write.id))
    }

    pub(super) fn fstat(&self, stat: &Fstat) -> Answer {
        let found = match self.open.get(&stat.handle).ok_or(Refused::Words("no such handle"))? {
            Open::File(file) => file.metadata()?,
            Open::Directory { path, .. } => fs::metadata(path)?,
        };
        Ok(Attrs { id: stat.id, attrs: attributes::of(&found) }.into())
    }

    pub(super) fn open_directory(&mut self, open: &OpenDir) -> Answer {
        let path = PathBuf::from(&open.path);
        let entries = fs::read_dir(&path)?;
        self.keep(open.id, Open::Directory { path, entries })
    }

    pub(super) fn read_directory(&mut self, read: &sftp::ReadDir) -> Answer {
        let Some(Open::Directory { entries, .. }) = self.open.get_mut(&read.handle) else {
            return Err(Refused::Words("no such directory handle"));
        };
        let mut files = Vec::new();
        while files.len() < ENTRIES
            && let Some(entry) = entries.next()
        {
            let entry = entry?;
            let filename = entry.file_name().to_string_lossy().into_owned();
            // It may be gone by now.
            if let Ok(found) = entry.metadata() {
                let longname = self.names.line(&filename, &found);
                files.push(Entry { filename, longname, attrs: attributes::of(&found) });
            }
        }
        if files.is_empty() {
            return Err(Refused::Code(StatusCode::Eof));
        }
        Ok(Name { id: read.id, files }.into())
    }
}

fn flags(wanted: OpenFlags) -> OFlags {
    let mut flags = match (wanted.contains(OpenFlags::READ), wanted.contains(OpenFlags::WRITE)) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (true | false, false) => OFlags::RDONLY,
    };
    let pairs = [
        (OpenFlags::APPEND, OFlags::APPEND),
        (OpenFlags::CREATE, OFlags::CREATE),
        (OpenFlags::TRUNCATE, OFlags::TRUNC),
        (OpenFlags::EXCLUDE, OFlags::EXCL),
    ];
    for (wish, flag) in pairs {
        if wanted.contains(wish) {
            flags |= flag;
        }
    }
    flags | OFlags::CLOEXEC | OFlags::NOCTTY
}

pub(super) fn stat(id: u32, path: &str, follow: bool) -> Answer {
    let found = if follow { fs::metadata(path)? } else { fs::symlink_metadata(path)? };
    Ok(Attrs { id, attrs: attributes::of(&found) }.into())
}

pub(super) fn make_directory(make: &MkDir) -> Answer {
    let mode = make.attrs.permissions.unwrap_or(0o777) & 0o7777;
    fs::DirBuilder::new().mode(mode).create(&make.path)?;
    Ok(done(make.id))
}

/// The whole path of what may not be there yet.
pub(super) fn real_path(id: u32, path: &str) -> Answer {
    let path = Path::new(if path.is_empty() { "." } else { path });
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let whole = std::path::absolute(path)?;
            let parent = whole.parent().map(fs::canonicalize).transpose()?;
            let name = whole.file_name().ok_or(error)?;
            parent.unwrap_or_else(|| PathBuf::from("/")).join(name)
        }
        Err(error) => return Err(error.into()),
    };
    Ok(named(id, &real.to_string_lossy()))
}

/// Fails when the new name is taken, as version 3 wants it.
pub(super) fn rename(rename: &Rename) -> Answer {
    let (old, new) = (rename.oldpath.as_str(), rename.newpath.as_str());
    match rustix::fs::renameat_with(CWD, old, CWD, new, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        // Some file systems cannot say it in one step.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            if fs::symlink_metadata(new).is_ok() {
                return Err(rustix::io::Errno::EXIST.into());
            }
            fs::rename(old, new)?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(done(rename.id))
}

pub(super) fn read_link(read: &sftp::ReadLink) -> Answer {
    let target = fs::read_link(&read.path)?;
    Ok(named(read.id, &target.to_string_lossy()))
}

/// An answer that is one name and nothing about it.
pub(super) fn named(id: u32, name: &str) -> Packet {
    let file = Entry { filename: name.to_owned(), longname: name.to_owned(), attrs: FileAttributes::empty() };
    Name { id, files: vec![file] }.into()
}
