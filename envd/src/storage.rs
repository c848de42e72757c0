//! Storage: the only host paths that an instance's user can write to.
//!
//! A request names a storage and a key, and this table says where that is: no request names a path. The root of a
//! storage is closed to all other users of this machine, so what is below it needs no protection of its own.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use envd_api::control::{STORAGE_HOME, StorageMount};

use crate::{data::make_directory, runtime::Bind};

/// Where the home storage appears in an instance.
const HOME_TARGET: &str = "/userhome";
/// The longest key.
const KEY_MAX: usize = 64;

/// The storages of this cluster.
#[derive(Debug, Clone)]
pub(crate) struct Storages {
    home: PathBuf,
}

/// What cannot be mounted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StorageError {
    #[error("this cluster has no storage named `{0}`")]
    Unknown(String),
    #[error("`{0}` is not a key: small letters, digits, `.`, `_` and `-`, not a dot first")]
    BadKey(String),
}

impl Storages {
    pub(crate) fn new(home: PathBuf) -> Self {
        Self { home }
    }

    /// Makes the roots, closed to others.
    pub(crate) fn make_roots(&self) -> io::Result<()> {
        make_directory(&self.home, 0o700)
    }

    /// Whether `root`, if it is there, is one that other users of this machine cannot enter.
    pub(crate) fn is_closed(root: &Path) -> bool {
        fs::metadata(root).map_or(true, |found| found.permissions().mode() & 0o777 | 0o700 == 0o700)
    }

    /// The place that a mount means, without touching it.
    pub(crate) fn bind(&self, mount: &StorageMount) -> Result<Bind, StorageError> {
        if mount.storage != STORAGE_HOME {
            return Err(StorageError::Unknown(mount.storage.clone()));
        }
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let key = &mount.key;
        if key.is_empty() || key.len() > KEY_MAX || key.starts_with('.') || !key.bytes().all(allowed) {
            return Err(StorageError::BadKey(key.clone()));
        }
        Ok(Bind { source: self.home.join(key), target: HOME_TARGET, read_only: false })
    }

    /// Makes the directory behind a [`Self::bind`]. Nothing ever removes it.
    pub(crate) fn make(bind: &Bind) -> io::Result<()> {
        // Open to whatever user an image runs as: all of them are the same person, and nobody else gets past the root.
        make_directory(&bind.source, 0o777)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_below_the_root() {
        let storages = Storages::new("/srv/home".into());
        let bind = |storage: &str, key: &str| {
            storages.bind(&StorageMount { storage: storage.to_owned(), key: key.to_owned() })
        };
        assert_eq!(bind("home", "alice").unwrap().source, Path::new("/srv/home/alice"));
        assert_eq!(bind("home", "a.b_c-1").unwrap().source, Path::new("/srv/home/a.b_c-1"));
        for key in ["", ".", "..", "../x", "a/b", "/etc", ".ssh", "Alice", "a b", "a\0b", &"x".repeat(65)] {
            assert_eq!(bind("home", key), Err(StorageError::BadKey(key.to_owned())), "{key}");
        }
        assert_eq!(bind("scratch", "alice"), Err(StorageError::Unknown("scratch".to_owned())));
    }
}
