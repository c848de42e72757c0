//! The container engine as its own command shows it: the second opinion on what Berth says of its instances.

mod local_image;
mod private;
mod signed_in;
mod valve;
mod view;

use std::{path::Path, process::Command};

pub use self::{
    local_image::{LocalImage, put_busybox},
    private::PrivateEngine,
    signed_in::SignedIn,
    valve::{Pending, Valve},
    view::{EngineView, Taken},
};
use crate::OrFail as _;

/// The socket of this machine's own engine.
pub const SOCKET: &str = "/var/run/docker.sock";

/// Containers of one cluster bear this label; its value is in the file `cluster` of the data directory.
const LABEL: &str = "berth.cluster";

/// A container as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The instance that its label names.
    pub instance: String,
    /// The engine's own word, such as `running`, `exited` or `created`.
    pub state: String,
}

/// Runs `docker` and gives its output back.
#[track_caller]
pub fn docker(arguments: &[&str]) -> String {
    output_of(command().args(arguments))
}

/// The containers of a cluster, running or not, by name.
#[track_caller]
pub fn containers(cluster: &str) -> Vec<String> {
    let filter = format!("label={LABEL}={cluster}");
    docker(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"])
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The containers of a cluster, running or not, with the instances that they are for.
#[track_caller]
pub fn listed(cluster: &str) -> Vec<Listed> {
    listed_by(&mut command(), cluster)
}

/// The first process of an instance, by its number on this machine.
#[track_caller]
pub fn first_process(instance: &str) -> u32 {
    inspect(&container_of(instance), ".State.Pid").parse().or_fail("read a number")
}

/// The address of an instance that runs, in its user's network.
#[track_caller]
pub fn address_of(instance: &str) -> String {
    inspect(&container_of(instance), "range .NetworkSettings.Networks}}{{.IPAddress}}{{end")
}

fn container_of(instance: &str) -> String {
    let filter = format!("label=berth.instance={instance}");
    docker(&["ps", "--filter", &filter, "--format", "{{.Names}}"])
}

/// The firewall's rules that name any of this.
#[track_caller]
pub fn rules_with(names: &str) -> Vec<String> {
    let mut found = Vec::new();
    for table in ["filter", "mangle"] {
        let list = ["--wait", "10", "-t", table, "-S"];
        let all = Command::new("iptables").args(list).output().or_fail("run iptables");
        assert!(all.status.success(), "iptables: {}", String::from_utf8_lossy(&all.stderr));
        let all = String::from_utf8_lossy(&all.stdout).into_owned();
        found.extend(all.lines().filter(|rule| rule.contains(names)).map(str::to_owned));
    }
    found
}

/// The users for whom a cluster has a network, one for each network.
#[track_caller]
pub fn networks(cluster: &str) -> Vec<String> {
    let label = format!("label={LABEL}={cluster}");
    let format = "{{.Label \"berth.network\"}}";
    let found = docker(&["network", "ls", "--filter", &label, "--format", format]);
    found.lines().map(str::to_owned).collect()
}

/// One value of a container, such as `.State.Pid`.
#[track_caller]
pub fn inspect(container: &str, what: &str) -> String {
    docker(&["inspect", "--format", &format!("{{{{{what}}}}}"), container])
}

/// Removes all containers of a cluster, on the engine that listens at `socket`, and gives back what is still there
/// afterwards.
#[track_caller]
pub fn remove_all(socket: &Path, cluster: &str) -> Vec<String> {
    // What a killed envd had asked for can still appear after the first look.
    const ROUNDS: usize = 3;
    let docker = || {
        let mut docker = command();
        docker.arg("--host").arg(format!("unix://{}", socket.display()));
        docker
    };
    let filter = format!("label={LABEL}={cluster}");
    let look = || -> Vec<String> {
        let found = output_of(docker().args(["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]));
        found.lines().map(str::to_owned).collect()
    };
    for _ in 0..ROUNDS {
        let found = look();
        if found.is_empty() {
            break;
        }
        // Several at once, and one that goes by itself meanwhile, are fine: what counts is the look afterwards.
        let _ = docker().args(["rm", "--force", "--volumes"]).args(&found).output();
    }
    look()
}

/// Takes every name away that images have from one registry, such as `127.0.0.1:5000`. One that is in use stays.
pub fn forget_images_of(registry: &str) {
    let filter = format!("reference={registry}/*/*");
    let format = "{{.Repository}} {{.Tag}} {{.Digest}}";
    let found = command().args(["images", "--digests", "--filter", &filter, "--format", format]).output();
    let found = found.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    for line in found.lines() {
        let mut words = line.split(' ');
        let (Some(name), Some(tag), Some(digest)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        for (mark, word) in [(':', tag), ('@', digest)] {
            if word != "<none>" {
                let _ = command().args(["rmi", "--force", &format!("{name}{mark}{word}")]).output();
            }
        }
    }
}

#[track_caller]
fn listed_by(docker: &mut Command, cluster: &str) -> Vec<Listed> {
    let format = "{{.Label \"berth.instance\"}} {{.State}}";
    docker.args(["ps", "--all", "--filter", &format!("label={LABEL}={cluster}"), "--format", format]);
    output_of(docker)
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(instance, state)| Listed { instance: instance.to_owned(), state: state.to_owned() })
        .collect()
}

#[track_caller]
fn output_of(docker: &mut Command) -> String {
    let output = docker.output().or_fail("run docker");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{docker:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The distribution's client, where there are two.
fn command() -> Command {
    let distribution = Path::new("/usr/bin/docker");
    Command::new(if distribution.exists() { distribution } else { Path::new("docker") })
}
