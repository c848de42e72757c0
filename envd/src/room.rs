//! SFTP on a user's storages with no instance: the agent's own server, in a room that it makes for itself (see
//! `envd/agent/src/room.rs`). It speaks with the gateway over the connection that it is given, so that it outlives envd
//! and ends with that connection.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use envd_api::agent::{ROOM, Room};
use tokio::{net::UnixStream, process::Command};

use crate::storage::Place;

/// Conversations of one user at once.
const GUESTS_MAX: usize = 16;

/// How many conversations each user holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rooms(Arc<Mutex<HashMap<String, usize>>>);

/// One conversation among those of its user.
#[derive(Debug)]
pub(crate) struct Guest {
    rooms: Rooms,
    user: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RoomError {
    #[error("the connection was not given over")]
    NotGiven,
    #[error("the agent cannot be started: {0}")]
    Start(#[from] io::Error),
    #[error("the room cannot be described: {0}")]
    Describe(#[from] serde_json::Error),
}

impl Rooms {
    /// Lets one more in, unless there are too many of that user.
    pub(crate) fn admit(&self, user: &str) -> Option<Guest> {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = guests.entry(user.to_owned()).or_default();
        if *count >= GUESTS_MAX {
            return None;
        }
        *count += 1;
        Some(Guest { rooms: self.clone(), user: user.to_owned() })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut guests = self.rooms.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = guests.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                guests.remove(&self.user);
            }
        }
    }
}

/// The room with these places in it.
pub(crate) fn describe(places: &[Place]) -> Room {
    let home = places.iter().find(|place| place.is_home()).map(|place| place.bind().target);
    Room { home: home.unwrap_or_default(), places: places.iter().map(Place::in_room).collect() }
}

/// Holds one conversation to its end.
pub(crate) async fn serve(agent: &Path, places: &[Place], stream: UnixStream) -> Result<(), RoomError> {
    let room = describe(places);
    let stream = stream.into_std()?;
    // It is shared with the process, which reads and writes it plainly.
    stream.set_nonblocking(false)?;
    let stream = OwnedFd::from(stream);
    let mut command = Command::new(agent);
    command.arg0("berth-sftp").arg(ROOM).arg(serde_json::to_string(&room)?);
    command.env_clear().env("HOME", &room.home);
    command.stdin(stream.try_clone()?).stdout(stream).stderr(Stdio::null());
    let mut process = command.spawn()?;
    drop(command);
    process.wait().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_keeps_nobody_else_out() {
        let rooms = Rooms::default();
        let mut guests: Vec<_> = std::iter::from_fn(|| rooms.admit("alice")).collect();
        assert_eq!(guests.len(), GUESTS_MAX);
        assert!(rooms.admit("bob").is_some());
        guests.pop();
        assert!(rooms.admit("alice").is_some());
        guests.clear();
        assert!(rooms.0.lock().unwrap().is_empty());
    }
}
