//! The requests of version 3 that touch files.

use std::{
    fs::{self, File, ReadDir},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, FileExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, RenameFlags},
    io::Errno,
};

use super::{
    Answer, DATA_MAX, HANDLES_MAX, Refused, Server, Special,
    attributes::{self, Attributes},
    packet::{Fields, Reply, Status, kind},
};

/// Entries of a directory in one answer, as OpenSSH sends them.
const ENTRIES: u32 = 100;

/// How a file is to be opened: bits that clients send.
const OPEN_READ: u32 = 1;
const OPEN_WRITE: u32 = 2;
const OPEN_FLAGS: [(u32, OFlags); 4] =
    [(4, OFlags::APPEND), (8, OFlags::CREATE), (16, OFlags::TRUNC), (32, OFlags::EXCL)];

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
        let handle = self.next;
        self.next += 1;
        self.open.insert(handle, open);
        Ok(Reply::handle(id, handle))
    }

    pub(super) fn file(&self, fields: &mut Fields) -> Result<&File, Refused> {
        match self.open.get(&fields.handle()?) {
            Some(Open::File(file)) => Ok(file),
            Some(Open::Directory { .. }) | None => Err(Refused::Words("no such file handle")),
        }
    }

    pub(super) fn open_file(&mut self, id: u32, fields: &mut Fields) -> Answer {
        let (path, wanted, attributes) = (fields.path()?, fields.number()?, fields.attributes()?);
        let mode = Mode::from_raw_mode(attributes.mode.unwrap_or(0o666) & 0o7777);
        let mut flags = flags(wanted);
        if self.special == Special::Refuse {
            flags |= OFlags::NONBLOCK;
        }
        let file = rustix::fs::open(path, flags, mode)?;
        self.keep(id, Open::File(file.into()))
    }

    pub(super) fn close(&mut self, id: u32, fields: &mut Fields) -> Answer {
        self.open.remove(&fields.handle()?).ok_or(Refused::Words("no such handle"))?;
        Ok(Reply::done(id))
    }

    pub(super) fn read(&self, id: u32, fields: &mut Fields) -> Answer {
        let (file, offset, wanted) = (self.file(fields)?, fields.long()?, fields.number()?);
        let wanted = usize::try_from(wanted).unwrap_or(DATA_MAX).min(DATA_MAX);
        let (reply, got) = Reply::data(id, wanted, |data| match file.read_at(data, offset) {
            // What has no places, such as a pipe, is read as it comes.
            Err(error) if is(&error, Errno::SPIPE) => io::Read::read(&mut &*file, data),
            result => result,
        })?;
        if got == 0 && wanted > 0 { Err(Refused::Status(Status::Eof)) } else { Ok(reply) }
    }

    pub(super) fn write(&self, id: u32, fields: &mut Fields) -> Answer {
        let (file, offset, data) = (self.file(fields)?, fields.long()?, fields.bytes()?);
        match file.write_all_at(&data, offset) {
            Err(error) if is(&error, Errno::SPIPE) => io::Write::write_all(&mut &*file, &data)?,
            result => result?,
        }
        Ok(Reply::done(id))
    }

    pub(super) fn stat_handle(&self, id: u32, fields: &mut Fields) -> Answer {
        let found = match self.open.get(&fields.handle()?).ok_or(Refused::Words("no such handle"))? {
            Open::File(file) => file.metadata()?,
            Open::Directory { path, .. } => fs::metadata(path)?,
        };
        Ok(Reply::new(kind::ATTRS, id).attributes(&attributes::of(&found)))
    }

    pub(super) fn open_directory(&mut self, id: u32, fields: &mut Fields) -> Answer {
        let path = fields.path()?;
        let entries = fs::read_dir(&path)?;
        self.keep(id, Open::Directory { path, entries })
    }

    pub(super) fn read_directory(&mut self, id: u32, fields: &mut Fields) -> Answer {
        let Some(Open::Directory { entries, .. }) = self.open.get_mut(&fields.handle()?) else {
            return Err(Refused::Words("no such directory handle"));
        };
        let mut found = Vec::new();
        while found.len() < ENTRIES as usize
            && let Some(entry) = entries.next()
        {
            let entry = entry?;
            // It may be gone by now.
            if let Ok(metadata) = entry.metadata() {
                found.push((entry.file_name(), metadata));
            }
        }
        let count = u32::try_from(found.len()).unwrap_or(ENTRIES);
        if count == 0 {
            return Err(Refused::Status(Status::Eof));
        }
        let reply = Reply::new(kind::NAME, id).number(count);
        Ok(found.into_iter().fold(reply, |reply, (name, metadata)| {
            let name = name.as_bytes();
            let line = self.names.line(name, &metadata);
            reply.bytes(name).bytes(&line).attributes(&attributes::of(&metadata))
        }))
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

fn flags(wanted: u32) -> OFlags {
    let mut flags = match (wanted & OPEN_READ != 0, wanted & OPEN_WRITE != 0) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (true | false, false) => OFlags::RDONLY,
    };
    for (wish, flag) in OPEN_FLAGS {
        if wanted & wish != 0 {
            flags |= flag;
        }
    }
    flags | OFlags::CLOEXEC | OFlags::NOCTTY
}

pub(super) fn stat(id: u32, path: &Path, follow: bool) -> Answer {
    let found = if follow { fs::metadata(path)? } else { fs::symlink_metadata(path)? };
    Ok(Reply::new(kind::ATTRS, id).attributes(&attributes::of(&found)))
}

pub(super) fn make_directory(id: u32, fields: &mut Fields) -> Answer {
    let (path, attributes) = (fields.path()?, fields.attributes()?);
    let mode = attributes.mode.unwrap_or(0o777) & 0o7777;
    fs::DirBuilder::new().mode(mode).create(path)?;
    Ok(Reply::done(id))
}

/// The whole path of what may not be there yet.
pub(super) fn real_path(id: u32, path: &Path) -> Answer {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
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
    Ok(named(id, &real))
}

/// Fails when the new name is taken, as version 3 wants it.
pub(super) fn rename(id: u32, fields: &mut Fields) -> Answer {
    let (old, new) = (fields.path()?, fields.path()?);
    match rustix::fs::renameat_with(CWD, &old, CWD, &new, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        // Some file systems cannot say it in one step.
        Err(Errno::INVAL | Errno::NOSYS) => {
            if fs::symlink_metadata(&new).is_ok() {
                return Err(Errno::EXIST.into());
            }
            fs::rename(old, new)?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Reply::done(id))
}

/// An answer that is one name and nothing about it.
pub(super) fn named(id: u32, name: &Path) -> Reply {
    let name = name.as_os_str().as_bytes();
    Reply::new(kind::NAME, id).number(1).bytes(name).bytes(name).attributes(&Attributes::default())
}
