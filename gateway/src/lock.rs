//! The data directory belongs to one gateway: an exclusive lock that ends with the process.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

/// Held for as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Why the lock was not got.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("another gateway runs on {}; stop it first, or set BERTH_DATA to another directory", .0.display())]
    Held(PathBuf),
    #[error("cannot lock {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
}

impl LockError {
    pub(crate) fn is_held(&self) -> bool {
        matches!(self, Self::Held(_))
    }
}

impl Lock {
    pub(crate) fn take(path: &Path) -> Result<Self, LockError> {
        let io = |cause| LockError::Io { path: path.to_owned(), cause };
        let file = File::options().create(true).truncate(false).write(true).open(path).map_err(io)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                Err(LockError::Held(path.parent().unwrap_or(path).to_owned()))
            }
            Err(errno) => Err(io(errno.into())),
        }
    }
}
