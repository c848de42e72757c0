//! What an instance is not given, and what is refused.

use std::collections::BTreeMap;

use envd_api::{
    client::ClientError,
    control::{EngineState, Failure, InstanceSpec, Observation, Observed, PutInstance},
};
use gateway_api::{Goal, InstanceId, node::DiskLimit};

use crate::cluster::{Cluster, docker, inspect, name, spec};

#[tokio::test]
async fn a_container_has_limits_and_no_more_rights_than_it_needs() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    let host = |field: &str| inspect(&id, &format!("{{{{json .HostConfig.{field}}}}}"));
    let expected = [
        ("NanoCpus", "500000000"),
        ("Memory", "268435456"),
        ("MemorySwap", "268435456"),
        ("ShmSize", "67108864"),
        ("PidsLimit", "4096"),
        ("Privileged", "false"),
        ("ReadonlyRootfs", "false"),
        ("PublishAllPorts", "false"),
        ("CapAdd", "null"),
        ("CapDrop", r#"["MKNOD","NET_RAW"]"#),
        ("PidMode", r#""""#),
        ("IpcMode", r#""private""#),
        ("UTSMode", r#""""#),
        ("UsernsMode", r#""""#),
        ("CgroupParent", r#""""#),
        ("Devices", "null"),
        ("DeviceRequests", "null"),
        ("DeviceCgroupRules", "null"),
        ("VolumesFrom", "null"),
        ("Links", "null"),
        ("ExtraHosts", "null"),
        ("GroupAdd", "null"),
        ("Sysctls", "null"),
        ("Tmpfs", "null"),
        ("PortBindings", "null"),
        ("Binds", "null"),
        ("AutoRemove", "false"),
        ("RestartPolicy.Name", r#""no""#),
        ("LogConfig", r#"{"Type":"local","Config":{"max-file":"2","max-size":"50m"}}"#),
        ("Runtime", r#""runc""#),
    ];
    for (field, value) in expected {
        let found = host(field);
        let is_empty = value == "null" && matches!(found.as_str(), "[]" | "{}");
        assert!(found == value || is_empty, "{field}: {found}");
    }
    let options: Vec<String> = serde_json::from_str(&host("SecurityOpt")).unwrap();
    assert!(options.len() == 2 && options[0] == "no-new-privileges", "{options:?}");
    assert!(options[1].starts_with("seccomp={"), "a profile of our own: {options:?}");
    assert!(host("NetworkMode").starts_with(r#""berth-"#), "{}", host("NetworkMode"));
    for masked in ["MaskedPaths", "ReadonlyPaths"] {
        assert!(host(masked).contains("/proc/"), "{masked}");
    }
    let mounts = inspect(&id, "{{range .Mounts}}{{.Destination}} {{.RW}}\n{{end}}");
    let mut mounts: Vec<_> = mounts.lines().collect();
    mounts.sort_unstable();
    assert_eq!(
        mounts,
        ["/.berth/agent false", "/.berth/door false", "/.berth/tools false", "/userhome true"]
    );
    let environment = inspect(&id, "{{json .Config.Env}}");
    assert!(!environment.contains("COLOUR"), "the user's variables are the agent's affair: {environment}");
    let inside =
        docker(&["exec", &name(&id), "sh", "-c", "grep -E 'NoNewPrivs|Seccomp:' /proc/1/status; hostname"]);
    assert_eq!(inside, "NoNewPrivs:\t1\nSeccomp:\t2\nbox\n");
}

/// Prints what the filter answers: EPERM (1) where it refuses, and else what the kernel makes of nonsense.
const PROBE: &str = r#"
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    done = libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(one) for one in arguments))
    return ctypes.get_errno() if done == -1 else "done"
socket, no_such_type = {"x86_64": 41, "aarch64": 198}[platform.machine()], 0x7fffff
for upper in 0, 1 << 32, 0xdeadbeef << 32:
    answers = [call(socket, upper | family, no_such_type, 0) for family in range(70)]
    print(upper >> 32, [family for family, answer in enumerate(answers) if answer == 1])
print("io_uring", [call(number, 1, 0, 0, 0, 0, 0) for number in (425, 426, 427)])
print("clone3", call(435, 0, 0))
print("perf", call({"x86_64": 298, "aarch64": 241}[platform.machine()], 0, 0, 0, 0, 0))
child = os.fork()
if child == 0:
    os._exit(0 if libc.ptrace(0, 0, 0, 0) == 0 else 1)
print("ptrace", os.waitpid(child, 0)[1])
print("personality", call({"x86_64": 135, "aarch64": 92}[platform.machine()], 0xffffffff))
"#;

#[tokio::test]
async fn calls_that_reach_past_a_container_are_refused_and_others_are_not() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    let said = docker(&["exec", &name(&id), "python3", "-c", PROBE]);
    let lines: Vec<_> = said.lines().collect();
    // AF_ALG and AF_VSOCK, whatever stands in the half of the argument that the kernel ignores.
    assert_eq!(lines[..3], ["0 [38, 40]", "1 [38, 40]", "3735928559 [38, 40]"], "{said}");
    assert_eq!(
        lines[3..],
        ["io_uring [1, 1, 1]", "clone3 38", "perf 1", "ptrace 0", "personality done"],
        "{said}"
    );
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let cluster = Cluster::new().await;
    let id = "d202ce692b9ed202ce692b9ed202ce692b9ed202ce692b9ed202ce692b9ed202";
    let cases = [
        (
            InstanceSpec { image: "localhost/berth/nothing".to_owned(), ..spec() },
            Failure::ImageNotFound,
            "nothing",
        ),
        (InstanceSpec { image: format!("sha256:{id}"), ..spec() }, Failure::BadImage, "not accepted"),
        (InstanceSpec { image: id.to_owned(), ..spec() }, Failure::BadImage, "not accepted"),
        (InstanceSpec { image: "No Image".to_owned(), ..spec() }, Failure::BadImage, "No Image"),
        (InstanceSpec { gpus: 1, ..spec() }, Failure::Refused, "no GPUs"),
        (InstanceSpec { cpus: 1e4, ..spec() }, Failure::Refused, "CPUs"),
        (InstanceSpec { cpus: f64::MAX, ..spec() }, Failure::Refused, "processors"),
    ];
    for (spec, wanted, words) in cases {
        let id = InstanceId::new();
        cluster.put(&id, 1, Goal::Running, &spec).await;
        let observed = cluster
            .wait_for(&id, words, |observed| matches!(observed.observation, Observation::Failed { .. }))
            .await;
        let Observation::Failed { failure, message, retrying } = observed.observation else { unreachable!() };
        assert_eq!((failure, retrying), (wanted, false), "{message}");
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(cluster.containers().len(), 0);
}

#[tokio::test]
async fn stale_and_malformed_goals_are_refused() {
    let (cluster, id) = (Cluster::new().await, InstanceId::new());
    let refused = async |generation: u64, goal: Goal, spec: InstanceSpec| {
        let put = PutInstance { generation, goal, spec, login: None };
        match cluster.client.put(&id, &put).await {
            Err(ClientError::Refused { status, .. }) => Some(status.as_u16()),
            other => other.map(|()| None).unwrap(),
        }
    };
    assert_eq!(refused(5, Goal::Stopped, spec()).await, None);
    assert_eq!(refused(4, Goal::Stopped, spec()).await, Some(409));
    assert_eq!(refused(5, Goal::Stopped, spec()).await, None);
    for key in ["", "..", "../../etc", "a/b", ".ssh", "Alice"] {
        assert_eq!(
            refused(6, Goal::Running, InstanceSpec { user: key.to_owned(), ..spec() }).await,
            Some(422),
            "{key}"
        );
        let group = refused(6, Goal::Running, InstanceSpec { group: key.to_owned(), ..spec() }).await;
        assert_eq!(group, (!key.is_empty()).then_some(422), "{key}");
    }
    assert_eq!(
        refused(6, Goal::Running, InstanceSpec { hostname: "a b".to_owned(), ..spec() }).await,
        Some(422)
    );
    let large = BTreeMap::from([("X".to_owned(), "x".repeat(2 << 20))]);
    assert_eq!(refused(6, Goal::Running, InstanceSpec { env: large, ..spec() }).await, Some(413));
}

#[tokio::test]
async fn the_machine_and_its_images_are_told() {
    let cluster = Cluster::new().await;
    let node = cluster.client.node().await.unwrap();
    assert!(node.cpus >= 1.0 && node.memory_bytes > 1 << 28 && !node.name.is_empty(), "{node:?}");
    assert_eq!((node.gpus, node.engine), (0, EngineState::Ready));
    let images = cluster.client.images().await.unwrap();
    let references: Vec<_> = images.iter().map(|image| image.reference.as_str()).collect();
    assert!(references.contains(&"localhost/berth/base:latest"), "{references:?}");
    assert!(
        references.iter().all(|reference| !reference.contains("<none>") && !reference.contains("debian"))
    );
}

#[tokio::test]
async fn files_over_the_limit_stop_an_instance_and_are_kept() {
    let (mut cluster, id) = (Cluster::new().await, InstanceId::new());
    let spec = InstanceSpec { disk_bytes: Some(4 << 20), ..spec() };
    let is_over = |observed: &Observed, generation: u64| {
        observed.generation == Some(generation)
            && matches!(
                observed.observation,
                Observation::Failed { failure: Failure::OverDiskLimit, retrying: false, .. }
            )
    };
    let run = |line: &str| docker(&["exec", &name(&id), "sh", "-c", line]);
    cluster.put(&id, 1, Goal::Running, &spec).await;
    cluster.wait_for_running(&id, 1).await;
    // A file of holes takes no room, and what is in a storage does not count.
    run(
        "truncate -s 1T /opt/holes; head -c 9000000 /dev/zero >/userhome/large; head -c 8000000 /dev/urandom >/opt/large",
    );
    let observed = cluster.wait_for(&id, "stopped for its files", |observed| is_over(observed, 1)).await;
    let Observation::Failed { message, .. } = observed.observation else { unreachable!() };
    assert!(message.contains("more than the 4 MB"), "{message}");
    assert_eq!(inspect(&id, "{{.State.Running}}"), "false");

    cluster.kill_and_start().await;
    cluster.put(&id, 1, Goal::Running, &spec).await;
    cluster.wait_for(&id, "still stopped", |observed| is_over(observed, 1)).await;
    assert_eq!(inspect(&id, "{{.State.Running}}"), "false");
    // A start is there to clean up, not to write more.
    cluster.put(&id, 2, Goal::Running, &spec).await;
    cluster.wait_for_running(&id, 2).await;
    assert_eq!(run("wc -c </opt/large"), "8000000\n");
    run("head -c 90000000 /dev/urandom >/opt/larger");
    cluster.wait_for(&id, "stopped again", |observed| is_over(observed, 2)).await;
}

#[tokio::test]
async fn files_that_the_engine_puts_over_the_images_count_too() {
    let cluster = Cluster::down(Some("[envd]\ndisk_limit = \"4M\"")).up().await;
    let id = InstanceId::new();
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    docker(&["exec", &name(&id), "sh", "-c", "head -c 8000000 /dev/urandom >>/etc/hosts"]);
    cluster
        .wait_for(&id, "stopped for /etc/hosts", |observed| {
            matches!(observed.observation, Observation::Failed { failure: Failure::OverDiskLimit, .. })
        })
        .await;
    assert_eq!(cluster.client.node().await.unwrap().disk, DiskLimit::Polled);
}
