//! Storage: the only host paths that an instance's user can reach, apart from the agent and its door.
//!
//! A request says whose an instance is, and this table says what that person gets and where it appears: no request
//! names a path. NFS and CIFS are mounted by the host, so no password of theirs ever comes near an instance.
//!
//! What is below a root belongs to users, who may put links there. So nothing here walks it: the root is opened
//! without following a link, the one directory below it likewise and [beneath the root only](ResolveFlags::BENEATH),
//! and whatever stands there instead of a directory is refused. The engine then resolves the same path by itself;
//! hence a root in which others can rename is not accepted.
//!
//! Binds are plain ones and have the `nosuid,nodev` of what the host has mounted at the root: Docker sets neither for a
//! bind. Instances can use neither kind of file anyway, as `no-new-privileges` is set and MKNOD is dropped; other users
//! of the host could, so envd warns of a root that they can enter.

use std::{
    io,
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use envd_api::{
    agent::{READ_ONLY, RoomPlace},
    control::{Failure, Mounted},
};
use rustix::{
    fs::{CWD, Gid, Mode, OFlags, RenameFlags, ResolveFlags, StatVfsMountFlags, Uid},
    io::Errno,
};

use crate::{data::make_directory, runtime::Bind};

/// The storage that every user has.
pub(crate) const HOME: &str = "home";
/// Where it appears unless the site says otherwise.
pub(crate) const HOME_AT: &str = "/userhome";
/// The longest key.
const KEY_MAX: usize = 64;
/// Two instances of one user may want the same directory at once.
static MAKING: Mutex<()> = Mutex::new(());

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Storage {
    pub(crate) id: String,
    pub(crate) root: PathBuf,
    /// Where it appears in instances: a path that may hold `{user}` and `{group}`.
    pub(crate) at: String,
    pub(crate) key: Key,
    pub(crate) read_only: bool,
    pub(crate) owner: Owner,
    /// Only for these groups; for all if empty.
    pub(crate) groups: Vec<String>,
}

/// What is mounted of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// The directory that bears the user's name.
    User,
    /// The directory that bears the group's name.
    Group,
    /// The root itself, the same for all.
    Shared,
}

/// Whom the directories below a root belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Made for root and open to whatever user an image runs as: all of them are the same person, and nobody else
    /// gets past the root, which is closed.
    Root,
    /// Made for this user and group, closed to others, and new files in it get the group.
    Fixed { uid: u32, gid: u32 },
    /// Never made here: the site makes them.
    Keep,
}

/// The storages of this cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Storages(Vec<Storage>);

/// A storage for one user: what to make sure of, and what to bind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    storage: Storage,
    /// The directory below the root; the root itself when there is none.
    key: Option<String>,
    at: String,
}

/// What cannot be mounted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    #[error("`{0}` is not a key: small letters, digits, `.`, `_` and `-`, not a dot first")]
    BadKey(String),
    #[error("two storages of this cluster appear at `{0}`")]
    SamePlace(String),
    #[error(
        "`{key}` in the storage `{storage}` is a link or a file and not a directory; an administrator has to move it away"
    )]
    NotADirectory { storage: String, key: String },
    #[error(
        "there is no `{key}` in the storage `{storage}`, where the site makes the directories; ask an administrator"
    )]
    NotMade { storage: String, key: String },
    #[error("the storage `{storage}` is full")]
    Full { storage: String },
    #[error("the storage `{storage}` cannot be used: {cause}")]
    Unusable { storage: String, cause: io::Error },
}

// === impl Storages ===

impl Storages {
    pub(crate) fn new(table: Vec<Storage>) -> Self {
        Self(table)
    }

    /// Makes the root of the homes, closed to others. The roots of other storages are the site's: one that is missing
    /// is not mounted, and must not be made on the disk below.
    pub(crate) fn make_home(&self) -> io::Result<()> {
        self.0
            .iter()
            .filter(|storage| storage.id == HOME)
            .try_for_each(|home| make_directory(&home.root, 0o700))
    }

    /// What an instance of `user` in `group` gets, without touching it.
    pub(crate) fn places(&self, user: &str, group: &str) -> Result<Vec<Place>, StorageError> {
        check_key(user)?;
        if !group.is_empty() {
            check_key(group)?;
        }
        let mut places: Vec<Place> = Vec::new();
        for storage in &self.0 {
            let is_for = storage.groups.is_empty() || storage.groups.iter().any(|one| one == group);
            let needs_group = storage.key == Key::Group || storage.at.contains("{group}");
            if !is_for || needs_group && group.is_empty() {
                continue;
            }
            let at = storage.at.replace("{user}", user).replace("{group}", group);
            if places.iter().any(|place| place.at == at) {
                return Err(StorageError::SamePlace(at));
            }
            let key = match storage.key {
                Key::User => Some(user.to_owned()),
                Key::Group => Some(group.to_owned()),
                Key::Shared => None,
            };
            places.push(Place { storage: storage.clone(), key, at });
        }
        Ok(places)
    }

    /// Whether a container with `bind` sees of one of these storages what is not among `places`. What is below no root
    /// that there is now says nothing about anybody's rights: the site may have moved its files.
    pub(crate) fn is_lost(&self, places: &[Place], bind: &Bind) -> bool {
        let is_ours = self.0.iter().any(|storage| bind.source.starts_with(&storage.root));
        let is_same = |granted: &Bind| {
            granted.source == bind.source
                && granted.target == bind.target
                && (bind.read_only || !granted.read_only)
        };
        let is_granted = |place: &Place| is_same(&place.bind()) || is_same(&place.read_only_bind());
        is_ours && !places.iter().any(is_granted)
    }

    /// What to tell the operator of.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.0
            .iter()
            .filter_map(|storage| Some(format!("`envd.storage.{}`: {}", storage.id, storage.loose_root()?)))
    }
}

/// Whether `key` can be the name of a directory and of nothing else.
pub(crate) fn check_key(key: &str) -> Result<(), StorageError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    if key.is_empty() || key.len() > KEY_MAX || key.starts_with('.') || !key.bytes().all(allowed) {
        return Err(StorageError::BadKey(key.to_owned()));
    }
    Ok(())
}

// === impl Storage ===

impl Storage {
    /// What is wrong with the root as it stands, if it is there.
    pub(crate) fn unsafe_root(&self) -> Option<String> {
        let found = std::fs::symlink_metadata(&self.root).ok()?;
        let (root, mode) = (self.root.display(), found.permissions().mode() & 0o777);
        if !found.is_dir() {
            return Some(format!("`{root}` is not a directory"));
        }
        match (self.key, self.owner) {
            (Key::User | Key::Group, Owner::Root) if mode & 0o077 != 0 => Some(format!(
                "`{root}` is open to other users of this machine; close it with `chmod 700 {root}`"
            )),
            (Key::User | Key::Group, _) if mode & 0o022 != 0 => Some(format!(
                "other users of this machine can write to `{root}`; close it with `chmod go-w {root}`"
            )),
            (Key::User | Key::Group | Key::Shared, Owner::Root | Owner::Fixed { .. } | Owner::Keep) => None,
        }
    }
}

impl Storage {
    /// What other users of this machine could do with what instances write here, if they can do it.
    pub(crate) fn loose_root(&self) -> Option<String> {
        let is_open = |directory: &Path| {
            std::fs::metadata(directory).is_ok_and(|found| found.permissions().mode() & 0o011 != 0)
        };
        let flags = rustix::fs::statvfs(&self.root).ok()?.f_flag;
        let is_loose = !self.read_only
            && !flags.contains(StatVfsMountFlags::NOSUID)
            && self.root.ancestors().all(is_open);
        is_loose.then(|| {
            format!(
                "other users of this machine can enter `{}`, and it is not mounted `nosuid,nodev`: \
                 programs that instances leave there could run with the rights of others, even root's",
                self.root.display()
            )
        })
    }
}

// === impl Place ===

impl Place {
    pub(crate) fn bind(&self) -> Bind {
        let root = &self.storage.root;
        Bind {
            source: self.key.as_ref().map_or_else(|| root.clone(), |key| root.join(key)),
            target: self.at.clone(),
            read_only: self.storage.read_only,
        }
    }

    /// The same once more, for mounts that are not to be written to.
    pub(crate) fn read_only_bind(&self) -> Bind {
        Bind { target: format!("{READ_ONLY}{}", self.at), read_only: true, ..self.bind() }
    }

    pub(crate) fn in_room(&self) -> RoomPlace {
        let Storage { root, read_only, .. } = &self.storage;
        RoomPlace { root: root.clone(), key: self.key.clone(), at: self.at.clone(), read_only: *read_only }
    }

    pub(crate) fn is_home(&self) -> bool {
        self.storage.id == HOME
    }

    pub(crate) fn mounted(&self) -> Mounted {
        let Storage { id, read_only, .. } = &self.storage;
        Mounted { storage: id.clone(), at: self.at.clone(), read_only: *read_only }
    }

    /// Makes sure that there is a directory behind the [bind](Self::bind), and not something else. Nothing ever
    /// removes it.
    pub(crate) fn make(&self) -> Result<(), StorageError> {
        let unusable = |cause: Errno| {
            let (storage, cause) = (self.storage.id.clone(), io::Error::from(cause));
            if is_full(&cause) {
                StorageError::Full { storage }
            } else {
                StorageError::Unusable { storage, cause }
            }
        };
        let root = open_root(&self.storage.root).map_err(unusable)?;
        let Some(key) = &self.key else { return Ok(()) };
        let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let (storage, name) = (|| self.storage.id.clone(), || key.clone());
        match open_below(&root, key) {
            Ok(_) => Ok(()),
            Err(Errno::NOENT) if self.storage.owner == Owner::Keep => {
                Err(StorageError::NotMade { storage: storage(), key: name() })
            }
            Err(Errno::NOENT) => make_below(&root, key, self.storage.owner).map_err(unusable),
            Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => {
                Err(StorageError::NotADirectory { storage: storage(), key: name() })
            }
            Err(error) => Err(unusable(error)),
        }
    }
}

fn open_root(root: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, root, flags, Mode::empty())
}

fn open_below(root: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(root, name, flags, Mode::empty(), resolve)
}

/// Makes a directory under another name first, so that it is there only once it is as it should be. No key begins
/// with a dot.
fn make_below(root: &OwnedFd, key: &str, owner: Owner) -> Result<(), Errno> {
    let draft = format!(".new-{key}");
    match rustix::fs::mkdirat(root, &draft, Mode::RWXU) {
        // One that a killed envd left is empty: nobody has ever seen it.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    let directory = open_below(root, &draft)?;
    let mode = match owner {
        Owner::Fixed { uid, gid } => {
            rustix::fs::fchown(&directory, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
            0o2770
        }
        Owner::Root | Owner::Keep => 0o777,
    };
    rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode))?;
    match rustix::fs::renameat_with(root, &draft, root, key, RenameFlags::NOREPLACE) {
        // A file system that cannot promise not to replace; an empty directory replaces only an empty one.
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::renameat(root, &draft, root, key),
        done => done,
    }
}

// === impl StorageError ===

impl StorageError {
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Full { .. } => Failure::DiskFull,
            Self::BadKey(_)
            | Self::SamePlace(_)
            | Self::NotADirectory { .. }
            | Self::NotMade { .. }
            | Self::Unusable { .. } => Failure::Refused,
        }
    }

    /// Whether trying again by itself may help.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::NotADirectory { .. } | Self::NotMade { .. } | Self::Full { .. } | Self::Unusable { .. } => {
                true
            }
            Self::BadKey(_) | Self::SamePlace(_) => false,
        }
    }
}

/// Whether an error says that there is no room left.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::symlink,
    };

    use super::*;

    fn storage(id: &str, root: &Path, at: &str, key: Key) -> Storage {
        let (id, root, at) = (id.to_owned(), root.to_owned(), at.to_owned());
        Storage { id, root, at, key, read_only: false, owner: Owner::Root, groups: Vec::new() }
    }

    fn table(root: &Path) -> Storages {
        Storages::new(vec![
            storage(HOME, &root.join("home"), HOME_AT, Key::User),
            storage("nas", &root.join("nas"), "/mnt/user/{user}", Key::User),
            storage("share", &root.join("share"), "/mnt/share/{group}", Key::Group),
            Storage { read_only: true, ..storage("gdata", &root.join("gdata"), "/gdata", Key::Shared) },
            Storage {
                groups: vec!["vision".to_owned()],
                ..storage("mnt2", &root.join("2"), "/mnt2", Key::User)
            },
        ])
    }

    #[test]
    fn who_gets_what_and_where() {
        let storages = table(Path::new("/srv"));
        let shown = |user: &str, group: &str| -> Vec<String> {
            let places = storages.places(user, group).unwrap();
            let shown = places.iter().map(Place::bind).map(|bind| {
                format!(
                    "{} {}{}",
                    bind.target,
                    bind.source.display(),
                    if bind.read_only { " ro" } else { "" }
                )
            });
            shown.collect()
        };
        let always = ["/userhome /srv/home/alice", "/mnt/user/alice /srv/nas/alice"];
        assert_eq!(shown("alice", ""), [&always[..], &["/gdata /srv/gdata ro"]].concat());
        let of_bio = ["/mnt/share/bio /srv/share/bio", "/gdata /srv/gdata ro"];
        assert_eq!(shown("alice", "bio"), [&always[..], &of_bio].concat());
        let of_vision = ["/mnt/share/vision /srv/share/vision", "/gdata /srv/gdata ro", "/mnt2 /srv/2/alice"];
        assert_eq!(shown("alice", "vision"), [&always[..], &of_vision].concat());
    }

    #[test]
    fn keys_stay_below_the_root() {
        let storages = table(Path::new("/srv"));
        assert!(storages.places("a.b_c-1", "g.1").is_ok());
        for key in ["", ".", "..", "../x", "a/b", "/etc", ".ssh", "Alice", "a b", "a\0b", &"x".repeat(65)] {
            assert!(matches!(storages.places(key, "bio"), Err(StorageError::BadKey(_))), "{key}");
            assert!(key.is_empty() || storages.places("alice", key).is_err(), "{key}");
        }
    }

    #[test]
    fn a_directory_is_made_once_and_a_link_in_its_place_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let storages = table(directory.path());
        storages.make_home().unwrap();
        let place = storages.places("alice", "").unwrap().remove(0);
        place.make().unwrap();
        let home = directory.path().join("home/alice");
        assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o7777, 0o777);
        fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();
        place.make().unwrap();
        assert_eq!(
            fs::metadata(&home).unwrap().permissions().mode() & 0o7777,
            0o700,
            "the user's choice stays"
        );

        fs::remove_dir(&home).unwrap();
        for target in ["/etc", "../home2", "/proc/self/root"] {
            symlink(target, &home).unwrap();
            assert!(matches!(place.make(), Err(StorageError::NotADirectory { .. })), "{target}");
            fs::remove_file(&home).unwrap();
        }
        fs::write(&home, b"").unwrap();
        assert!(matches!(place.make(), Err(StorageError::NotADirectory { .. })));
        assert!(!directory.path().join("home2").exists());
    }

    #[test]
    fn a_root_that_is_a_link_or_not_mounted_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let place = |root: &Path| {
            let storages = Storages::new(vec![storage("nas", root, "/nas", Key::User)]);
            storages.places("alice", "").unwrap().remove(0)
        };
        let (link, real) = (directory.path().join("link"), directory.path().join("real"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        for root in [&link, &directory.path().join("none")] {
            assert!(matches!(place(root).make(), Err(StorageError::Unusable { .. })), "{}", root.display());
        }
        assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
    }

    #[test]
    fn roots_that_others_can_change_are_not_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let one = |key, owner| Storage { owner, ..storage("nas", directory.path(), "/nas", key) };
        let is_safe = |storage: Storage, mode| {
            fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
            storage.unsafe_root().is_none()
        };
        let fixed = Owner::Fixed { uid: 1, gid: 1 };
        assert!(is_safe(one(Key::User, Owner::Root), 0o700) && !is_safe(one(Key::User, Owner::Root), 0o755));
        assert!(is_safe(one(Key::Group, fixed), 0o755) && !is_safe(one(Key::User, Owner::Keep), 0o775));
        assert!(is_safe(one(Key::Shared, Owner::Keep), 0o777));
    }
}
