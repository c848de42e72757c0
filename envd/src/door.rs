//! The door of an instance on the host: the directory where the gateway listens and where the agent finds its
//! instructions.
//!
//! The instance sees it read-only. envd owns it, the gateway owns `link/` in it. The instructions are also envd's
//! memory of starts: see [`Start`].

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use envd_api::agent::{self, AgentSpec};
use gateway_api::InstanceId;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Uid};
use serde::{Deserialize, Serialize};

use crate::{
    data::{make_directory, write_whole},
    runtime::Container,
};

/// All doors of this cluster.
#[derive(Debug, Clone)]
pub(crate) struct Doors {
    data: PathBuf,
    gateway: Option<u32>,
}

/// What one start of a container is for: written before the start, read by the agent, and kept.
///
/// A container was started for a generation when the newest record is of that generation and the container has been
/// started since the record was written. That holds across a kill of envd at any instruction, without a database and
/// without trust in clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Start {
    #[serde(flatten)]
    pub(crate) spec: AgentSpec,
    /// The container's own id.
    pub(crate) container: String,
    /// The container's last start when this was written.
    pub(crate) before: String,
    /// What the container was made from: another one in its place is made from the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
    /// The image that holds what was in an earlier container of this instance: it is nobody else's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kept: Option<String>,
    /// The boot of this machine that it was made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) boot: Option<String>,
    /// Set before the container is stopped for the room that its files take, so that it stays stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) over_limit: Option<OverLimit>,
    /// What its files took when it was last stopped for it: this start is there to remove some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) over_before: Option<u64>,
}

/// Why a container was stopped that should run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OverLimit {
    pub(crate) bytes: u64,
    pub(crate) message: String,
}

impl Doors {
    /// `gateway` is the user whose process listens in the doors, when it is not envd's own.
    pub(crate) fn new(data: PathBuf, gateway: Option<u32>) -> Self {
        Self { data, gateway }
    }

    pub(crate) fn path(&self, id: &InstanceId) -> PathBuf {
        agent::door(&self.data, id)
    }

    /// Makes the door of an instance if it is not there.
    pub(crate) fn make(&self, id: &InstanceId) -> io::Result<()> {
        let door = self.path(id);
        make_directory(door.parent().unwrap_or(&self.data), 0o755)?;
        make_directory(&door, 0o755)?;
        let link = door.join(Path::new(agent::SOCKET).parent().unwrap_or(Path::new("link")));
        make_directory(&link, 0o700)?;
        if let Some(uid) = self.gateway {
            let directory = rustix::fs::openat(
                CWD,
                &link,
                OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            rustix::fs::chownat(&directory, "", Some(Uid::from_raw(uid)), None, AtFlags::EMPTY_PATH)?;
        }
        Ok(())
    }

    /// Removes the door of an instance; fine if there is none.
    pub(crate) fn remove(&self, id: &InstanceId) -> io::Result<()> {
        // The walk does not follow links, also not those that appear meanwhile.
        match fs::remove_dir_all(self.path(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// The newest start; `None` if there was none, or what is there cannot be understood.
    pub(crate) fn last_start(&self, id: &InstanceId) -> io::Result<Option<Start>> {
        match fs::read(self.path(id).join(agent::SPEC)) {
            Ok(content) => Ok(serde_json::from_slice(&content).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn record(&self, id: &InstanceId, start: &Start) -> io::Result<()> {
        // It holds the user's variables: for the agent, which is root, and nobody else on this machine.
        write_whole(&self.path(id).join(agent::SPEC), &serde_json::to_vec(start)?, 0o600)
    }
}

impl Start {
    /// Whether `container` has been started for `generation`.
    pub(crate) fn was_made(&self, container: &Container, generation: u64) -> bool {
        self.spec.generation == generation
            && self.container == container.id
            && (container.is_running() || self.before != container.last_start)
    }

    /// Whether the machine was started anew since, which `exit_code` is the trace of: the engine's own word for a
    /// container that was gone when it came back, or the signal of an orderly end.
    pub(crate) fn ended_with_the_machine(&self, exit_code: i32) -> bool {
        const BY_THE_MACHINE: [i32; 3] = [255, 128 + 9, 128 + 15];
        BY_THE_MACHINE.contains(&exit_code) && self.boot.is_some() && self.boot != boot()
    }
}

/// The name that the kernel gives to the time since this machine was started.
pub(crate) fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, os::unix::fs::symlink, time::Duration};

    use super::*;
    use envd_api::control::Takes;

    use crate::runtime::{ImageId, Phase};

    fn container(id: &InstanceId, phase: Phase, last_start: &str) -> Container {
        Container {
            instance: id.clone(),
            id: "c1".to_owned(),
            image: ImageId("sha256:1".to_owned()),
            phase,
            last_start: last_start.to_owned(),
            user: None,
            network: None,
            address: None,
            binds: Vec::new(),
            takes: Takes::default(),
            own_files: Vec::new(),
        }
    }

    #[test]
    fn a_start_counts_once_the_container_has_been_started_since() {
        let directory = tempfile::tempdir().unwrap();
        let (doors, id) = (Doors::new(directory.path().to_owned(), None), InstanceId::new());
        doors.make(&id).unwrap();
        doors.make(&id).unwrap();
        assert_eq!(doors.last_start(&id).unwrap(), None);
        let spec = AgentSpec {
            generation: 2,
            command: vec!["true".to_owned()],
            env: BTreeMap::new(),
            user: String::new(),
            cwd: String::new(),
            links: BTreeMap::new(),
            aliases: BTreeMap::new(),
            code: None,
            hold: false,
        };
        let start = Start {
            spec,
            container: "c1".to_owned(),
            before: "never".to_owned(),
            image: None,
            kept: None,
            boot: Some("first".to_owned()),
            over_limit: None,
            over_before: None,
        };
        doors.record(&id, &start).unwrap();
        assert_eq!(doors.last_start(&id).unwrap(), Some(start.clone()));

        let ended = Phase::Exited { exit_code: 0, out_of_memory: false, ran_for: Duration::ZERO };
        assert!(!start.was_made(&container(&id, Phase::Created, "never"), 2));
        assert!(start.was_made(&container(&id, ended.clone(), "at noon"), 2));
        assert!(!start.was_made(&container(&id, ended, "at noon"), 3));
        assert!(start.ended_with_the_machine(255) && !start.ended_with_the_machine(1));
        assert!(!Start { boot: boot(), ..start }.ended_with_the_machine(255));
    }

    #[test]
    fn removing_a_door_leaves_what_it_points_to() {
        let directory = tempfile::tempdir().unwrap();
        let (doors, id) = (Doors::new(directory.path().to_owned(), None), InstanceId::new());
        let precious = directory.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), b"kept").unwrap();
        doors.make(&id).unwrap();
        symlink(&precious, doors.path(&id).join("link/elsewhere")).unwrap();
        doors.remove(&id).unwrap();
        doors.remove(&id).unwrap();
        assert!(precious.join("file").exists() && !doors.path(&id).exists());
    }
}
