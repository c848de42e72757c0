//! SFTP on a user's storages with no instance around it: envd starts this program on its own machine, and it first goes
//! into a room where nothing is but these storages, each where it appears in instances.
//!
//! What is in a storage was put there by its user, links too. So the way to each is walked without following any, and
//! only then, in a mount namespace of its own whose root is the room, are paths of the user's looked at: a link can lead
//! nowhere but to another place in the room. Nothing here ever leaves it, and the machine's own tree is unmounted.
//!
//! It goes on as the owner of the user's own storage, with the rights over files that root has in an instance and no
//! other.

use std::{
    ffi::OsString,
    fs::DirBuilder,
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    },
    process::ExitCode,
};

use envd_api::agent::{Refusal, Reply, Room, RoomPlace, encode};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change,
        mount_remount, move_mount, open_tree, unmount,
    },
    process::{Gid, Uid},
    thread::{CapabilitySet, CapabilitySets, UnshareFlags},
};

use crate::sftp::{self, Special};

/// The directories that lead to the places, and nothing else, are in it.
const ROOM_OPTIONS: &std::ffi::CStr = c"mode=755,size=256k,nr_inodes=1k";
/// What root in an instance may do with files that are not its own.
const CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// A storage that was found, without a name in the machine's tree.
struct Found<'a> {
    tree: OwnedFd,
    place: &'a RoomPlace,
}

/// Goes into the room that `wanted` (a [`Room`] as JSON) describes, says how that went, and serves.
pub(crate) fn serve(wanted: &OsString) -> ExitCode {
    let made =
        serde_json::from_slice(wanted.as_bytes()).map_err(io::Error::from).and_then(|room| enter(&room));
    let reply = match &made {
        Ok(()) => Reply::Stream,
        Err(error) => {
            let message = format!("your storage cannot be opened: {error}");
            Reply::Refused { refusal: Refusal::Other, message }
        }
    };
    let told = encode(&reply).map_err(io::Error::other).and_then(|reply| {
        let mut gateway = std::fs::File::from(rustix::stdio::stdout().try_clone_to_owned()?);
        gateway.write_all(&reply)
    });
    if made.and(told).is_err() {
        return ExitCode::FAILURE;
    }
    sftp::serve(Special::Refuse)
}

pub(crate) fn enter(room: &Room) -> io::Result<()> {
    apart()?;
    let mut found: Vec<_> = room.places.iter().map(find).collect::<io::Result<_>>()?;
    // One that is below another comes after it.
    found.sort_by_key(|found| found.place.at.len());
    let home = room.places.iter().find(|place| place.at == room.home).ok_or(io::ErrorKind::NotFound)?;
    // Any directory would do to be covered.
    mount("berth", &home.root, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, ROOM_OPTIONS)?;
    rustix::process::chdir(&home.root)?;
    // The old root goes under the new one and from there away.
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    for found in &found {
        furnish(found)?;
    }
    // What is not in a storage would be lost.
    mount_remount("/", MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY, "")?;
    become_owner(&home.at)?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    Ok(rustix::process::chdir(home.at.as_str())?)
}

/// What is mounted from here on is seen by this process alone.
fn apart() -> io::Result<()> {
    #[expect(deprecated, reason = "its replacement is unsafe for the sake of another flag")]
    let made = rustix::thread::unshare(UnshareFlags::NEWNS);
    made?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Walks to a storage without following a link, and takes what is there.
fn find(place: &RoomPlace) -> io::Result<Found<'_>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut directory = rustix::fs::openat(CWD, &place.root, flags, Mode::empty())?;
    if let Some(key) = &place.key {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        directory = rustix::fs::openat2(&directory, key, flags, Mode::empty(), resolve)?;
    }
    let mut flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    // What is mounted below one that is only to be read would not become so with it.
    if !place.read_only {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(Found { tree: open_tree(&directory, "", flags)?, place })
}

/// Puts a storage where it belongs. This is in the room already, whatever links lead there.
fn furnish(found: &Found<'_>) -> io::Result<()> {
    let at = &found.place.at;
    DirBuilder::new().recursive(true).mode(0o755).create(at)?;
    move_mount(found.tree.as_fd(), "", CWD, at.as_str(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    let mut flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV;
    if found.place.read_only {
        flags |= MountFlags::RDONLY;
    }
    Ok(mount_remount(at.as_str(), flags, "")?)
}

/// Files that are made belong to whom the storage belongs to.
fn become_owner(directory: &str) -> io::Result<()> {
    let owner = rustix::fs::stat(directory)?;
    let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    rustix::thread::set_no_new_privs(true)?;
    rustix::thread::set_keep_capabilities(true)?;
    // One thread, so what is set for the thread is set for the process.
    rustix::thread::set_thread_groups(&[gid])?;
    rustix::thread::set_thread_gid(gid)?;
    rustix::thread::set_thread_uid(uid)?;
    let (all, none) = (CAPABILITIES, CapabilitySet::empty());
    let sets = CapabilitySets { effective: all, permitted: all, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}
