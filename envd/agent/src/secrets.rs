//! Files with secrets, in memory alone: a directory that envd has mounted for them and that goes with the run.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, fchown},
    path::Path,
};

use envd_api::agent::{Refusal, SECRETS};

use crate::{Agent, link::Refused};

/// `TMPFS_MAGIC`
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// Writes each file, for the image's user to read and for nobody to change. Never onto a disk.
pub(crate) fn put(agent: &Agent, files: &BTreeMap<String, String>) -> Result<(), Refused> {
    if files.is_empty() {
        return Ok(());
    }
    let account = agent.surroundings(&BTreeMap::new())?.account;
    let folder = Path::new(SECRETS);
    let put = || -> io::Result<()> {
        if rustix::fs::statfs(folder)?.f_type != TMPFS {
            return Err(io::Error::other("it is not in memory"));
        }
        for (name, value) in files {
            if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
                return Err(io::Error::other("this is not the name of a file"));
            }
            let path = folder.join(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let mut file = std::fs::File::options().write(true).create_new(true).mode(0o400).open(&path)?;
            file.write_all(value.as_bytes())?;
            fchown(&file, Some(account.uid), Some(account.gid))?;
        }
        Ok(())
    };
    put().map_err(|error| {
        Refused::new(Refusal::Other, &format!("its secrets cannot be put into {SECRETS}: {error}"))
    })
}
