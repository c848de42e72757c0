//! What a container is made with, and what one looks like.
//!
//! The body of a create is where isolation is decided: no privileges, no host namespaces, no devices, nothing
//! published, limits on processor, memory and processes. No request can change any of that.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerState, ContainerStateStatusEnum,
    ContainerSummary, ContainerSummaryStateEnum, DeviceRequest, EndpointSettings, HealthConfig, HostConfig,
    HostConfigLogConfig, Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountPoint,
    MountTmpfsOptions, MountType, NetworkingConfig, RestartPolicy, RestartPolicyNameEnum,
};
use envd_api::control::Takes;
use gateway_api::InstanceId;
use jiff::Timestamp;

use super::{LABEL_CARDS, LABEL_CLUSTER, LABEL_GENERATION, LABEL_INSTANCE, LABEL_NETWORK, name, seccomp};
use crate::runtime::{
    Bind, Container, ImageId, Launch, NO_CARDS, Phase, RuntimeError, Sighting, VISIBLE_CARDS,
};

/// Processes and threads of one instance: a fork bomb ends here.
const PIDS_MAX: i64 = 4096;
/// The least memory that the engine takes as a limit.
const MEMORY_MIN: u64 = 6 << 20;
/// What root in a container gets of Docker's own choice of capabilities, less these: device files, which would open
/// the host's disks from a mount without `nodev`, and raw sockets, with which one instance could pose as another on
/// the bridge. `ping` needs none.
const CAPABILITIES_DROPPED: [&str; 2] = ["MKNOD", "NET_RAW"];
/// The `local` driver keeps bytes as they are and rotates by itself.
const LOG_DRIVER: &str = "local";
const LOG_FILE_BYTES: &str = "50m";
const LOG_FILES: &str = "2";
/// The same for a task of a job, whose output the gateway copies from its first byte up to a limit: with what the driver
/// adds to each line of usual length, more than that limit usually is.
const TASK_LOG_FILE_BYTES: &str = "2g";

/// When the engine says that a container was started which never was.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// What is the engine's to say about a new container, and not the request's.
#[derive(Debug)]
pub(super) struct Ground<'a> {
    pub(super) cluster: &'a str,
    pub(super) network: &'a str,
    /// Whether the file system itself keeps the limit on the container's files.
    pub(super) has_quota: bool,
    /// Whether there are cards to give, and not only a library that tells of some.
    pub(super) has_driver: bool,
}

pub(super) fn body(ground: &Ground<'_>, launch: &Launch<'_>) -> Result<ContainerCreateBody, RuntimeError> {
    let cards = launch.spec.cards.join(",");
    let labels = [
        (LABEL_CLUSTER, ground.cluster.to_owned()),
        (LABEL_NETWORK, launch.spec.user.clone()),
        (LABEL_INSTANCE, launch.instance.to_string()),
        (LABEL_GENERATION, launch.generation.to_string()),
        // Every one of ours, also where it says nothing: what is not set here is what the image says.
        (LABEL_CARDS, cards.clone()),
    ];
    // An image's own wish for all cards would be granted where NVIDIA's runtime is the engine's usual one.
    let visible = if cards.is_empty() { NO_CARDS } else { &cards };
    let env = ground.has_driver.then(|| vec![format!("{VISIBLE_CARDS}={visible}")]);
    Ok(ContainerCreateBody {
        hostname: Some(launch.spec.hostname.clone()),
        user: Some("0".to_owned()),
        working_dir: Some("/".to_owned()),
        entrypoint: Some(vec![envd_api::agent::AGENT.to_owned()]),
        cmd: Some(Vec::new()),
        // The image's own would be run past the agent, and a stop must reach the agent as it expects.
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".to_owned()]), ..HealthConfig::default() }),
        stop_signal: Some("SIGTERM".to_owned()),
        image: Some(launch.image.0.clone()),
        labels: Some(labels.into_iter().map(|(label, value)| (label.to_owned(), value)).collect()),
        env,
        host_config: Some(host_config(ground, launch)?),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(ground.network.to_owned(), endpoint(launch))])),
        }),
        ..ContainerCreateBody::default()
    })
}

fn host_config(ground: &Ground<'_>, launch: &Launch<'_>) -> Result<HostConfig, RuntimeError> {
    let spec = launch.spec;
    // To the engine nothing would mean no limit at all.
    let memory = bytes("memory", spec.memory_bytes.max(MEMORY_MIN))?;
    let log_file_bytes = if spec.task { TASK_LOG_FILE_BYTES } else { LOG_FILE_BYTES };
    let size = |bytes: u64| HashMap::from([("size".to_owned(), bytes.to_string())]);
    Ok(HostConfig {
        network_mode: Some(ground.network.to_owned()),
        storage_opt: ground.has_quota.then(|| size(launch.disk_bytes)),
        nano_cpus: Some(nano_cpus(spec.cpus)?),
        memory: Some(memory),
        // The same as the memory: no swap on top.
        memory_swap: Some(memory),
        shm_size: Some(bytes("shared memory", spec.shm_bytes)?),
        pids_limit: Some(PIDS_MAX),
        oom_kill_disable: Some(false),
        init: Some(false),
        privileged: Some(false),
        publish_all_ports: Some(false),
        cap_drop: Some(CAPABILITIES_DROPPED.map(str::to_owned).to_vec()),
        security_opt: Some(vec!["no-new-privileges".to_owned(), seccomp::OPTION.clone()]),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        log_config: Some(HostConfigLogConfig {
            typ: Some(LOG_DRIVER.to_owned()),
            config: Some(HashMap::from([
                ("max-size".to_owned(), log_file_bytes.to_owned()),
                ("max-file".to_owned(), LOG_FILES.to_owned()),
            ])),
        }),
        device_requests: (ground.has_driver && !spec.cards.is_empty()).then(|| vec![cards(&spec.cards)]),
        mounts: Some(launch.binds.iter().map(mount).chain(secrets(launch)).collect()),
        ..HostConfig::default()
    })
}

/// Whole cards, by what they are and not by their number, which another one may have tomorrow.
fn cards(uuids: &[String]) -> DeviceRequest {
    DeviceRequest {
        driver: Some("nvidia".to_owned()),
        device_ids: Some(uuids.to_vec()),
        capabilities: Some(vec![vec!["gpu".to_owned()]]),
        ..DeviceRequest::default()
    }
}

/// Neighbours find it by its host name.
fn endpoint(launch: &Launch<'_>) -> EndpointSettings {
    EndpointSettings { aliases: Some(vec![launch.spec.hostname.clone()]), ..EndpointSettings::default() }
}

fn mount(bind: &Bind) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(bind.source.display().to_string()),
        target: Some(bind.target.clone()),
        read_only: Some(bind.read_only),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            // Engines before version 25 make only the uppermost mount read-only.
            non_recursive: Some(bind.read_only),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    }
}

/// Memory for files with secrets, which are in nothing that is saved. Others can look up no names there.
fn secrets(launch: &Launch<'_>) -> Option<Mount> {
    const SIZE: i64 = 1 << 20;
    const MODE: i64 = 0o711;
    (!launch.spec.secrets.is_empty()).then(|| Mount {
        typ: Some(MountType::TMPFS),
        target: Some(envd_api::agent::SECRETS.to_owned()),
        tmpfs_options: Some(MountTmpfsOptions {
            size_bytes: Some(SIZE),
            mode: Some(MODE),
            ..MountTmpfsOptions::default()
        }),
        ..Mount::default()
    })
}

fn bytes(what: &str, bytes: u64) -> Result<i64, RuntimeError> {
    i64::try_from(bytes).map_err(|_| RuntimeError::Refused { why: format!("`{bytes}` bytes of {what}") })
}

fn nano_cpus(cpus: f64) -> Result<i64, RuntimeError> {
    const MOST: f64 = 65_536.0;
    if !(cpus > 0.0 && cpus <= MOST) {
        return Err(RuntimeError::Refused { why: format!("`{cpus}` processors") });
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    Ok((cpus * 1e9).round() as i64)
}

/// A container of a listing; `None` for one whose name is not that of its instance: it only has the labels from the
/// image that it was made from.
pub(super) fn sighting(summary: ContainerSummary) -> Option<Sighting> {
    let instance = summary.labels.as_ref()?.get(LABEL_INSTANCE)?.parse().ok()?;
    let name = name(&instance);
    summary.names.as_ref()?.iter().find(|found| found.trim_start_matches('/') == name)?;
    let running = matches!(
        summary.state,
        Some(
            ContainerSummaryStateEnum::RUNNING
                | ContainerSummaryStateEnum::PAUSED
                | ContainerSummaryStateEnum::RESTARTING
        )
    );
    Some(Sighting { instance, container: summary.id?, running })
}

/// A container that bears the name of `instance`, if it is that of this cluster.
pub(super) fn container(
    instance: &InstanceId,
    cluster: &str,
    mut found: ContainerInspectResponse,
) -> Result<Container, RuntimeError> {
    let (own_files, network, binds) = (own_files(&mut found), network(&found), binds(&found));
    let (network, address) = network.map_or((None, None), |there| {
        (there.network_id.clone(), there.ip_address.clone().filter(|address| !address.is_empty()))
    });
    let labels = found.config.take().and_then(|config| config.labels).unwrap_or_default();
    let is = |label: &str, value: &str| labels.get(label).is_some_and(|found| found == value);
    if !is(LABEL_CLUSTER, cluster) || !is(LABEL_INSTANCE, instance.as_str()) {
        return Err(RuntimeError::Foreign { name: name(instance) });
    }
    let incomplete = || RuntimeError::Engine { why: "an answer without id, image or state".to_owned() };
    let state = found.state.ok_or_else(incomplete)?;
    Ok(Container {
        instance: instance.clone(),
        id: found.id.ok_or_else(incomplete)?,
        image: ImageId(found.image.ok_or_else(incomplete)?),
        phase: phase(&state),
        last_start: state.started_at.unwrap_or_default(),
        user: labels.get(LABEL_NETWORK).cloned(),
        binds,
        takes: takes(found.host_config.as_ref(), labels.get(LABEL_CARDS)),
        network,
        address,
        own_files,
    })
}

/// The container that a launch has just led to, as the engine would describe it.
pub(super) fn made(id: String, launch: &Launch<'_>) -> Container {
    let spec = launch.spec;
    Container {
        instance: launch.instance.clone(),
        id,
        image: launch.image.clone(),
        phase: Phase::Created,
        last_start: NEVER.to_owned(),
        user: Some(spec.user.clone()),
        binds: launch.binds.clone(),
        takes: Takes {
            cpus_milli: nano_cpus(spec.cpus).map_or(0, i64::cast_unsigned) / 1_000_000,
            memory_bytes: spec.memory_bytes.max(MEMORY_MIN),
            cards: spec.cards.clone(),
        },
        network: None,
        address: None,
        // Nobody measures what does not run.
        own_files: Vec::new(),
    }
}

fn binds(found: &ContainerInspectResponse) -> Vec<Bind> {
    let bind = |mount: &MountPoint| {
        let (source, target) = (mount.source.clone()?, mount.destination.clone()?);
        let read_only = !mount.rw.unwrap_or(true);
        (mount.typ.as_deref() == Some("bind")).then(|| Bind { source: source.into(), target, read_only })
    };
    found.mounts.iter().flatten().filter_map(bind).collect()
}

/// The engine's own numbers, whoever gave them.
fn takes(host: Option<&HostConfig>, cards: Option<&String>) -> Takes {
    let number = |of: fn(&HostConfig) -> Option<i64>| {
        host.and_then(of).and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    };
    let cards = cards.map_or("", String::as_str).split(',').filter(|card| !card.is_empty());
    Takes {
        cpus_milli: number(|host| host.nano_cpus) / 1_000_000,
        memory_bytes: number(|host| host.memory),
        cards: cards.map(str::to_owned).collect(),
    }
}

/// All that a container can write to on this machine's disk, apart from our mounts: its layer, the volumes that its
/// image declares, and the three files that the engine puts over the image's.
fn own_files(found: &mut ContainerInspectResponse) -> Vec<PathBuf> {
    let layer = found.graph_driver.take().and_then(|mut driver| driver.data.remove("UpperDir"));
    let Some(layer) = layer else { return Vec::new() };
    let volume =
        |mount: &MountPoint| (mount.typ.as_deref() == Some("volume")).then(|| mount.source.clone())?;
    let volumes = found.mounts.iter().flatten().filter_map(volume);
    let files = [found.hosts_path.clone(), found.hostname_path.clone(), found.resolv_conf_path.clone()];
    let paths = std::iter::once(layer).chain(volumes).chain(files.into_iter().flatten());
    paths.filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

fn network(found: &ContainerInspectResponse) -> Option<EndpointSettings> {
    let mode = found.host_config.as_ref()?.network_mode.as_ref()?;
    found.network_settings.as_ref()?.networks.as_ref()?.get(mode).cloned()
}

fn phase(state: &ContainerState) -> Phase {
    match state.status {
        // A start that failed leaves `created` with an exit code of its own.
        Some(ContainerStateStatusEnum::CREATED) => Phase::Created,
        Some(
            ContainerStateStatusEnum::RUNNING
            | ContainerStateStatusEnum::PAUSED
            | ContainerStateStatusEnum::RESTARTING
            | ContainerStateStatusEnum::STOPPING,
        ) => Phase::Running { since: time(state.started_at.as_deref()).unwrap_or(Timestamp::UNIX_EPOCH) },
        Some(ContainerStateStatusEnum::EXITED) => Phase::Exited {
            exit_code: state.exit_code.and_then(|code| i32::try_from(code).ok()).unwrap_or(-1),
            out_of_memory: state.oom_killed.unwrap_or(false),
            ran_for: ran_for(state).unwrap_or_default(),
        },
        Some(
            ContainerStateStatusEnum::REMOVING
            | ContainerStateStatusEnum::DEAD
            | ContainerStateStatusEnum::EMPTY,
        )
        | None => Phase::Broken,
    }
}

fn ran_for(state: &ContainerState) -> Option<Duration> {
    let (started, finished) = (time(state.started_at.as_deref())?, time(state.finished_at.as_deref())?);
    finished.duration_since(started).try_into().ok()
}

fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}
