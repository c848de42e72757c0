//! The extensions of OpenSSH that clients use.

use std::{fs, path::Path};

use bytes::Bytes;
use russh_sftp::{
    de,
    extensions::{
        ExpandPathExtension, FsyncExtension, HardlinkExtension, LimitsExtension, Statvfs, StatvfsExtension,
    },
    protocol::{Extended, ExtendedReply, FileAttributes, StatusCode},
    ser,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    Answer, DATA_MAX, HANDLES_MAX, PACKET_MAX, Refused, Server,
    attributes::{self, Whose},
    done, files,
};

/// `copy-data`: bytes from one open file into another, on the server alone.
#[derive(Debug, Deserialize)]
struct CopyData {
    from: String,
    from_offset: u64,
    /// 0: all that there is.
    length: u64,
    to: String,
    to_offset: u64,
}

#[derive(Debug, Deserialize)]
struct LinkAttributes {
    path: String,
    attrs: FileAttributes,
}

impl Server {
    pub(super) fn extended(&self, extended: &Extended) -> Answer {
        let id = extended.id;
        match extended.request.as_str() {
            "posix-rename@openssh.com" => {
                let names: HardlinkExtension = read(extended)?;
                fs::rename(names.oldpath, names.newpath)?;
                Ok(done(id))
            }
            "hardlink@openssh.com" => {
                let names: HardlinkExtension = read(extended)?;
                fs::hard_link(names.oldpath, names.newpath)?;
                Ok(done(id))
            }
            "fsync@openssh.com" => {
                let wanted: FsyncExtension = read(extended)?;
                self.file(&wanted.handle)?.sync_all()?;
                Ok(done(id))
            }
            "statvfs@openssh.com" => {
                let wanted: StatvfsExtension = read(extended)?;
                reply(id, &space(&rustix::fs::statvfs(wanted.path)?))
            }
            "fstatvfs@openssh.com" => {
                let wanted: FsyncExtension = read(extended)?;
                reply(id, &space(&rustix::fs::fstatvfs(self.file(&wanted.handle)?)?))
            }
            "lsetstat@openssh.com" => {
                let wanted: LinkAttributes = read(extended)?;
                attributes::set(Whose::Link(Path::new(&wanted.path)), &wanted.attrs)?;
                Ok(done(id))
            }
            "limits@openssh.com" => reply(
                id,
                &LimitsExtension {
                    max_packet_len: number(PACKET_MAX),
                    max_read_len: number(DATA_MAX),
                    max_write_len: number(DATA_MAX),
                    max_open_handles: number(HANDLES_MAX),
                },
            ),
            "expand-path@openssh.com" => {
                let wanted: ExpandPathExtension = read(extended)?;
                files::real_path(id, &expanded(&wanted.path)?)
            }
            "copy-data" => self.copy(id, &read(extended)?),
            _ => Err(Refused::Code(StatusCode::OpUnsupported)),
        }
    }

    fn copy(&self, id: u32, wanted: &CopyData) -> Answer {
        if wanted.from == wanted.to {
            return Err(Refused::Words("a file cannot be copied into itself"));
        }
        let (from, to) = (self.file(&wanted.from)?, self.file(&wanted.to)?);
        let mut left = if wanted.length == 0 { u64::MAX } else { wanted.length };
        let (mut offset, mut target) = (wanted.from_offset, wanted.to_offset);
        let mut piece = vec![0; DATA_MAX];
        while left > 0 {
            let at_once = usize::try_from(left).unwrap_or(DATA_MAX).min(DATA_MAX);
            let got = std::os::unix::fs::FileExt::read_at(from, &mut piece[..at_once], offset)?;
            if got == 0 {
                break;
            }
            std::os::unix::fs::FileExt::write_all_at(to, &piece[..got], target)?;
            let got = number(got);
            (left, offset, target) = (left - got, offset + got, target + got);
        }
        Ok(done(id))
    }
}

fn read<T: DeserializeOwned>(extended: &Extended) -> Result<T, Refused> {
    de::from_bytes(&mut Bytes::copy_from_slice(&extended.data))
        .map_err(|_| Refused::Code(StatusCode::BadMessage))
}

fn reply(id: u32, value: &impl Serialize) -> Answer {
    let data = ser::to_bytes(value).map_err(|_| Refused::Code(StatusCode::Failure))?.to_vec();
    Ok(ExtendedReply { id, data }.into())
}

fn space(found: &rustix::fs::StatVfs) -> Statvfs {
    Statvfs {
        block_size: found.f_bsize,
        fragment_size: found.f_frsize,
        blocks: found.f_blocks,
        blocks_free: found.f_bfree,
        blocks_avail: found.f_bavail,
        inodes: found.f_files,
        inodes_free: found.f_ffree,
        inodes_avail: found.f_favail,
        fs_id: found.f_fsid,
        flags: found.f_flag.bits(),
        name_max: found.f_namemax,
    }
}

/// `~` and `~/x` are the user's home, which is where this process began.
fn expanded(path: &str) -> Result<String, Refused> {
    match path.strip_prefix('~') {
        None => Ok(path.to_owned()),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            Ok(format!("{}{rest}", std::env::var("HOME").unwrap_or_default()))
        }
        Some(_) => Err(Refused::Words("only one's own home is known here")),
    }
}

fn number(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}
