//! The container engine as its own command shows it: the second opinion on what Berth says of its instances.

use std::{path::Path, process::Command};

use crate::OrFail as _;

/// Containers of one cluster bear this label; its value is in the file `cluster` of the data directory.
const LABEL: &str = "berth.cluster";

/// Runs `docker` and gives its output back.
#[track_caller]
pub fn docker(arguments: &[&str]) -> String {
    let output = command().args(arguments).output().or_fail("run docker");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {}: {said}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
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

/// One value of a container, such as `.State.Pid`.
#[track_caller]
pub fn inspect(container: &str, what: &str) -> String {
    docker(&["inspect", "--format", &format!("{{{{{what}}}}}"), container])
}

/// Removes all containers of a cluster and gives back what is still there afterwards.
#[track_caller]
pub fn remove_all(cluster: &str) -> Vec<String> {
    // What a killed envd had asked for can still appear after the first look.
    const ROUNDS: usize = 3;
    for _ in 0..ROUNDS {
        let found = containers(cluster);
        if found.is_empty() {
            break;
        }
        // Several at once, and one that goes by itself meanwhile, are fine: what counts is the look afterwards.
        let _ = command().args(["rm", "--force", "--volumes"]).args(&found).output();
    }
    containers(cluster)
}

/// The distribution's client, where there are two.
fn command() -> Command {
    let distribution = Path::new("/usr/bin/docker");
    Command::new(if distribution.exists() { distribution } else { Path::new("docker") })
}
