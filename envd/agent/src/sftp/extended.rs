//! The extensions of OpenSSH that clients use.

use std::{
    ffi::OsString,
    fs,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::FileExt as _,
    },
    path::{Path, PathBuf},
};

use super::{
    Answer, DATA_MAX, HANDLES_MAX, PACKET_MAX, Refused, Server,
    attributes::{self, Whose},
    files,
    packet::{Fields, Reply, Status, kind},
};

impl Server {
    pub(super) fn extended(&self, id: u32, fields: &mut Fields) -> Answer {
        match &fields.bytes()?[..] {
            b"posix-rename@openssh.com" => {
                let (old, new) = (fields.path()?, fields.path()?);
                fs::rename(old, new)?;
                Ok(Reply::done(id))
            }
            b"hardlink@openssh.com" => {
                let (old, new) = (fields.path()?, fields.path()?);
                fs::hard_link(old, new)?;
                Ok(Reply::done(id))
            }
            b"fsync@openssh.com" => {
                self.file(fields)?.sync_all()?;
                Ok(Reply::done(id))
            }
            b"statvfs@openssh.com" => Ok(space(id, &rustix::fs::statvfs(fields.path()?)?)),
            b"fstatvfs@openssh.com" => Ok(space(id, &rustix::fs::fstatvfs(self.file(fields)?)?)),
            b"lsetstat@openssh.com" => {
                let (path, wanted) = (fields.path()?, fields.attributes()?);
                attributes::set(Whose::Link(&path), &wanted)?;
                Ok(Reply::done(id))
            }
            b"limits@openssh.com" => {
                let limits = [PACKET_MAX, DATA_MAX, DATA_MAX, HANDLES_MAX];
                let reply = Reply::new(kind::EXTENDED_REPLY, id);
                Ok(limits.into_iter().fold(reply, |reply, limit| reply.long(number(limit))))
            }
            b"expand-path@openssh.com" => files::real_path(id, &expanded(&fields.path()?)?),
            b"copy-data" => self.copy(id, fields),
            _ => Err(Refused::Status(Status::Unsupported)),
        }
    }

    /// Bytes from one open file into another, on the server alone. A length of 0 is all that there is.
    fn copy(&self, id: u32, fields: &mut Fields) -> Answer {
        let (from, mut offset, length) = (self.file(fields)?, fields.long()?, fields.long()?);
        let (to, mut target) = (self.file(fields)?, fields.long()?);
        if std::ptr::eq(from, to) {
            return Err(Refused::Words("a file cannot be copied into itself"));
        }
        let mut left = if length == 0 { u64::MAX } else { length };
        let mut piece = vec![0; DATA_MAX];
        while left > 0 {
            let at_once = usize::try_from(left).unwrap_or(DATA_MAX).min(DATA_MAX);
            let got = from.read_at(&mut piece[..at_once], offset)?;
            if got == 0 {
                break;
            }
            to.write_all_at(&piece[..got], target)?;
            let got = number(got);
            (left, offset, target) = (left - got, offset.saturating_add(got), target.saturating_add(got));
        }
        Ok(Reply::done(id))
    }
}

fn space(id: u32, found: &rustix::fs::StatVfs) -> Reply {
    let numbers = [
        found.f_bsize,
        found.f_frsize,
        found.f_blocks,
        found.f_bfree,
        found.f_bavail,
        found.f_files,
        found.f_ffree,
        found.f_favail,
        found.f_fsid,
        found.f_flag.bits(),
        found.f_namemax,
    ];
    let reply = Reply::new(kind::EXTENDED_REPLY, id);
    numbers.into_iter().fold(reply, Reply::long)
}

/// `~` and `~/x` are the user's home, which is where this process began.
fn expanded(path: &Path) -> Result<PathBuf, Refused> {
    match path.as_os_str().as_bytes().strip_prefix(b"~") {
        None => Ok(path.to_owned()),
        Some(rest) if rest.is_empty() || rest.starts_with(b"/") => {
            let mut whole = std::env::var_os("HOME").unwrap_or_default();
            whole.push(OsString::from_vec(rest.to_vec()));
            Ok(whole.into())
        }
        Some(_) => Err(Refused::Words("only one's own home is known here")),
    }
}

fn number(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}
