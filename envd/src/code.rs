//! The code of a job: a folder of its user's, copied once, before the container is made, to where the instance sees it
//! read-only.
//!
//! The folder is looked up in a room (see `envd/agent/src/room.rs`), where a link of a user's leads to nothing but other
//! files of theirs. The copy is in the door's directory, so it goes with the instance and is in no saved image.

use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Stdio,
};

use envd_api::agent::{CODE, FETCH_CODE, FetchCode};
use tokio::process::Command;

use crate::{data::make_directory, room, storage::Place};

/// A copy that is not whole yet.
const DRAFT: &str = "code.new";
/// How much of the agent's reason is repeated.
const REASON_MAX: usize = 1000;

/// Why there is no copy. The text is for the user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    #[error("its code cannot be copied: {0}")]
    Refused(String),
    #[error("its code cannot be copied: {0}")]
    Disk(#[from] io::Error),
    #[error("its code cannot be copied: the room cannot be described: {0}")]
    Describe(#[from] serde_json::Error),
}

/// What the copy is called in the working directory.
pub(crate) fn name(from: &str) -> String {
    from.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
}

/// Makes the copy, unless it is there.
pub(crate) async fn fetch(agent: &Path, places: &[Place], from: &str, door: &Path) -> Result<(), CodeError> {
    let (draft, whole) = (door.join(DRAFT), door.join(CODE));
    if whole.is_dir() {
        return Ok(());
    }
    let into = begin(&draft)?;
    let wanted = FetchCode { room: room::describe(places), from: from.to_owned() };
    let mut command = Command::new(agent);
    command.arg0("berth-code").arg(FETCH_CODE).arg(serde_json::to_string(&wanted)?).env_clear();
    command.stdin(into).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let done = command.output().await?;
    if !done.status.success() {
        let reason: String = String::from_utf8_lossy(&done.stderr).trim().chars().take(REASON_MAX).collect();
        remove(&draft)?;
        return Err(CodeError::Refused(if reason.is_empty() { done.status.to_string() } else { reason }));
    }
    Ok(fs::rename(draft, whole)?)
}

fn begin(draft: &PathBuf) -> io::Result<OwnedFd> {
    remove(draft)?;
    make_directory(draft, 0o755)?;
    Ok(fs::File::open(draft)?.into())
}

fn remove(draft: &PathBuf) -> io::Result<()> {
    match fs::remove_dir_all(draft) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
