//! What an engine has of one cluster, whichever engine that is.

use std::{path::PathBuf, process::Command};

use super::{LABEL, Listed, command, listed_by, output_of};
use crate::OrFail as _;

/// An engine, and the cluster that is looked for on it.
#[derive(Debug, Clone)]
pub struct EngineView {
    pub(crate) socket: PathBuf,
    pub(crate) cluster: String,
}

/// What all containers that run take together, as the engine was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    pub cpus_milli: u64,
    pub memory_bytes: u64,
}

impl EngineView {
    /// The containers, running or not, with the instances that they are for.
    #[track_caller]
    pub fn listed(&self) -> Vec<Listed> {
        listed_by(&mut self.docker(), &self.cluster)
    }

    /// The users for whom there is a network, one for each network.
    #[track_caller]
    pub fn networks(&self) -> Vec<String> {
        let format = "{{.Label \"berth.network\"}}";
        let found =
            output_of(self.docker().args(["network", "ls", "--filter", &self.label(), "--format", format]));
        found.lines().map(str::to_owned).collect()
    }

    /// The bridges of these networks.
    #[track_caller]
    pub fn bridges(&self) -> Vec<String> {
        let found = output_of(self.docker().args(["network", "ls", "--quiet", "--filter", &self.label()]));
        if found.is_empty() {
            return Vec::new();
        }
        let format = "{{index .Options \"com.docker.network.bridge.name\"}}";
        let mut inspect = self.docker();
        let bridges = output_of(inspect.args(["network", "inspect", "--format", format]).args(found.lines()));
        bridges.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    pub fn taken(&self) -> Taken {
        let running = output_of(self.docker().args(["ps", "--quiet", "--filter", &self.label()]));
        if running.is_empty() {
            return Taken::default();
        }
        let format = "{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}}";
        let mut inspect = self.docker();
        let found = output_of(inspect.args(["inspect", "--format", format]).args(running.lines()));
        let number = |text: &str| text.parse::<u64>().or_fail("read a number");
        let each = found.lines().filter_map(|line| line.split_once(' '));
        each.fold(Taken::default(), |sum, (cpus, memory)| Taken {
            cpus_milli: sum.cpus_milli + number(cpus) / 1_000_000,
            memory_bytes: sum.memory_bytes + number(memory),
        })
    }

    fn label(&self) -> String {
        format!("label={LABEL}={}", self.cluster)
    }

    fn docker(&self) -> Command {
        let mut docker = command();
        docker.arg("--host").arg(format!("unix://{}", self.socket.display()));
        docker
    }
}
