//! Users are kept apart from each other and from this machine.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::{Command, Stdio},
    thread,
};

use envd_api::control::{Failure, InstanceSpec, Observation, Tenants};
use gateway_api::{Goal, InstanceId};

use crate::cluster::{Cluster, docker, inspect, name, spec, wait_until};

fn of(user: &str) -> InstanceSpec {
    InstanceSpec { user: user.to_owned(), ..spec() }
}

async fn run(cluster: &Cluster, spec: &InstanceSpec) -> InstanceId {
    let id = InstanceId::new();
    cluster.put(&id, 1, Goal::Running, spec).await;
    cluster.wait_for_running(&id, 1).await;
    id
}

/// An instance that serves at port 8000, once it does.
async fn serving(cluster: &Cluster, user: &str) -> InstanceId {
    let command = ["python3", "-m", "http.server", "8000"].map(str::to_owned).to_vec();
    let id = run(cluster, &InstanceSpec { command, ..of(user) }).await;
    wait_until("it serves", async || reaches(&id, "127.0.0.1", 8000)).await;
    id
}

/// Whether an instance gets through to an address.
fn reaches(id: &InstanceId, address: &str, port: u16) -> bool {
    let line = format!("exec 3<>/dev/tcp/{address}/{port}");
    let command = ["exec", &name(id), "timeout", "3", "bash", "-c", &line];
    let status = Command::new("docker").args(command).stderr(Stdio::null()).status();
    status.unwrap().success()
}

fn address(id: &InstanceId) -> String {
    inspect(id, "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}")
}

fn host_address(id: &InstanceId) -> String {
    inspect(id, "{{range .NetworkSettings.Networks}}{{.Gateway}}{{end}}")
}

/// The rules that name something of this cluster.
fn rules(cluster: &Cluster) -> Vec<String> {
    let bridges = docker(&[
        "network",
        "ls",
        "--filter",
        &format!("label={}", cluster.label()),
        "--format",
        "{{.Name}}",
    ]);
    let short = bridges.lines().next().and_then(|name| name.split('-').nth(1)).unwrap_or("-").to_owned();
    rules_with(&short)
}

fn rules_with(short: &str) -> Vec<String> {
    let all = ["filter", "mangle"]
        .map(|table| Command::new("iptables").args(["-w", "10", "-t", table, "-S"]).output().unwrap().stdout);
    String::from_utf8_lossy(&all.concat())
        .lines()
        .filter(|rule| rule.contains(short))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn a_user_reaches_their_own_instances_and_nobody_elses() {
    let cluster = Cluster::new().await;
    let server = serving(&cluster, "alice").await;
    let (own, other) = (run(&cluster, &of("alice")).await, run(&cluster, &of("bob")).await);
    assert_eq!(cluster.networks().len(), 2);
    wait_until("one's own is reached", async || reaches(&own, &address(&server), 8000)).await;
    assert!(!reaches(&other, &address(&server), 8000), "somebody else's");
    assert_eq!(
        docker(&["exec", &name(&own), "cat", "/proc/net/if_inet6"]),
        "",
        "the rules know nothing of IPv6"
    );
    assert_eq!(cluster.client.node().await.unwrap().tenants, Tenants::Apart);
}

#[tokio::test]
async fn nobody_reaches_this_machine_or_the_metadata() {
    let cluster = Cluster::new().await;
    let id = run(&cluster, &of("alice")).await;
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().for_each(|stream| drop(stream.unwrap().write_all(b"hello"))));
    // The engine's own bridge has the first address of its network; a new engine does not name it.
    let bridge = docker(&["network", "inspect", "bridge", "-f", "{{(index .IPAM.Config 0).Subnet}}"]);
    let bridge: ipnet::Ipv4Net = bridge.trim().parse().unwrap();
    let own = bridge.hosts().next().unwrap().to_string();
    for address in [host_address(&id), own] {
        let address = address.as_str();
        let by_host = std::net::TcpStream::connect((address, port));
        assert!(by_host.is_ok(), "the listener is there: {address}:{port}");
        assert!(!reaches(&id, address, port), "{address}:{port}");
    }
    assert!(!reaches(&id, "169.254.169.254", 80));
    let chain = rules(&cluster);
    assert!(chain.iter().any(|rule| rule.contains("169.254.0.0/16 -j DROP")), "{chain:?}");
}

/// A machine beyond this one, at a link-local address as clouds have their metadata, with a server on it.
struct Beyond {
    namespace: String,
    server: std::process::Child,
}

impl Beyond {
    const ADDRESS: &str = "169.254.77.2";

    async fn new() -> Self {
        let namespace = format!("berth-{}", std::process::id());
        let ours = format!("bth{}", std::process::id());
        for line in [
            format!("netns add {namespace}"),
            format!("link add {ours} type veth peer name beyond netns {namespace}"),
            format!("addr add 169.254.77.1/30 dev {ours}"),
            format!("link set {ours} up"),
            format!("-n {namespace} addr add {}/30 dev beyond", Self::ADDRESS),
            format!("-n {namespace} link set beyond up"),
            format!("-n {namespace} route add default via 169.254.77.1"),
        ] {
            let done = Command::new("ip").args(line.split(' ')).status().unwrap();
            assert!(done.success(), "ip {line}");
        }
        let serve = ["netns", "exec", &namespace, "python3", "-m", "http.server", "8000"];
        let server = Command::new("ip").args(serve).stderr(Stdio::null()).stdout(Stdio::null()).spawn();
        let beyond = Self { server: server.unwrap(), namespace };
        let is_there = async || std::net::TcpStream::connect((Self::ADDRESS, 8000)).is_ok();
        wait_until("the machine beyond serves", is_there).await;
        beyond
    }
}

impl Drop for Beyond {
    fn drop(&mut self) {
        let _ended = self.server.kill().and_then(|()| self.server.wait());
        let _gone = Command::new("ip").args(["netns", "del", &self.namespace]).status();
    }
}

/// The engine writes its own rules anew for each network; ours hold meanwhile.
#[tokio::test]
async fn nobody_gets_through_while_networks_are_made() {
    // Connects every few milliseconds until its input ends. Prints `knocks` once it has begun, and at its end the number
    // of connections that succeeded.
    const KNOCK: &str = "
import select, socket, sys
knocks, opened, begun = [], 0, False
while not select.select([sys.stdin], [], [], 0.004)[0]:
    knock = socket.socket()
    knock.setblocking(False)
    knock.connect_ex((sys.argv[1], 8000))
    knocks.append(knock)
    if not begun: print('knocks', flush=True)
    begun = True
    opened += sum(1 for one in select.select([], knocks, [], 0)[1] if not one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    if len(knocks) == 500:
        for knock in knocks: knock.close()
        knocks = []
print(opened)
";
    let cluster = Cluster::new().await;
    let id = run(&cluster, &of("alice")).await;
    let beyond = Beyond::new().await;
    let mut knocking = Command::new("docker")
        .args(["exec", "-i", &name(&id), "python3", "-c", KNOCK, Beyond::ADDRESS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(knocking.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "knocks");
    for number in 0..12 {
        let network = format!("{}-{number}", beyond.namespace);
        docker(&["network", "create", &network]);
        docker(&["network", "rm", &network]);
    }
    drop(knocking.stdin.take());
    assert_eq!(said.next().unwrap().unwrap(), "0");
    knocking.wait().unwrap();
}

#[tokio::test]
async fn networks_and_rules_go_with_the_last_instance() {
    let cluster = Cluster::new().await;
    let (one, two) = (run(&cluster, &of("alice")).await, run(&cluster, &of("alice")).await);
    let short = docker(&["network", "inspect", "-f", "{{.Name}}", &cluster.networks()[0]]);
    let short = short.split('-').nth(1).unwrap();
    cluster.put(&one, 2, Goal::Deleted, &of("alice")).await;
    cluster.wait_for_absent(&one, 2).await;
    assert_eq!(cluster.networks().len(), 1, "somebody still needs it");
    cluster.put(&two, 2, Goal::Stopped, &of("alice")).await;
    cluster.wait_for_exit(&two, 2).await;
    assert_eq!(cluster.networks().len(), 1, "a stopped instance wants it back");
    assert_ne!(rules_with(short), [""; 0]);

    cluster.put(&two, 3, Goal::Deleted, &of("alice")).await;
    cluster.wait_for_absent(&two, 3).await;
    wait_until("no network is left", async || cluster.networks().is_empty()).await;
    wait_until("no rule is left", async || rules_with(short).is_empty()).await;
}

#[tokio::test]
async fn a_network_that_somebody_removed_and_rules_that_somebody_flushed_come_back() {
    let (mut cluster, user) = (Cluster::new().await, of("alice"));
    let id = run(&cluster, &user).await;
    cluster.put(&id, 2, Goal::Stopped, &user).await;
    cluster.wait_for_exit(&id, 2).await;
    let short = docker(&["network", "inspect", "-f", "{{.Name}}", &cluster.networks()[0]]);
    let chain = format!("BERTH-{}", short.split('-').nth(1).unwrap());
    let before = rules(&cluster);
    docker(&["network", "rm", &cluster.networks()[0]]);
    cluster.put(&id, 3, Goal::Running, &user).await;
    cluster.wait_for_running(&id, 3).await;
    assert!(!address(&id).is_empty());

    for table in ["filter", "mangle"] {
        let chain = if table == "filter" { format!("{chain}-HOST") } else { chain.clone() };
        let flush = Command::new("iptables").args(["-w", "10", "-t", table, "-F", &chain]).status();
        assert!(flush.unwrap().success(), "{table} {chain}");
    }
    cluster.kill_and_start().await;
    wait_until("the rules are back", async || rules(&cluster) == before).await;
}

#[tokio::test]
async fn purge_leaves_nothing_on_the_network_and_all_the_rest() {
    let mut cluster = Cluster::new().await;
    let id = run(&cluster, &of("alice")).await;
    let (networks, before) = (cluster.networks(), rules(&cluster));
    let short = docker(&["network", "inspect", "-f", "{{.Name}}", &networks[0]]);
    let refused = cluster.command().arg("purge").status().unwrap();
    assert!(!refused.success(), "not while envd runs");
    cluster.kill();
    // One that runs keeps its network, and with it the rules that keep it apart.
    assert!(!cluster.command().arg("purge").status().unwrap().success(), "an instance still uses it");
    assert!(cluster.log().contains("nothing was removed, since instances"), "{}", cluster.log());
    assert_eq!((cluster.networks(), rules(&cluster)), (networks, before));
    docker(&["stop", "-t", "0", &name(&id)]);
    assert!(cluster.command().arg("purge").status().unwrap().success(), "{}", cluster.log());
    assert_eq!(cluster.networks(), [""; 0]);
    assert_eq!(rules_with(short.split('-').nth(1).unwrap()), [""; 0]);
    assert!(cluster.containers().len() == 1 && cluster.data.path().join("home/alice").is_dir());
    cluster.start().await;
    cluster.put(&id, 2, Goal::Running, &of("alice")).await;
    cluster.wait_for_running(&id, 2).await;
}

#[tokio::test]
async fn without_a_firewall_nothing_is_started_unless_the_site_says_so() {
    // Root without the right to change rules.
    const CONFINED: [&str; 2] = ["--bounding-set=-net_admin", "--inh-caps=-net_admin"];
    for (config, starts) in [("", false), ("[envd]\ndangerous_no_firewall = true", true)] {
        let mut cluster = Cluster::down(Some(config));
        cluster.start_under("setpriv", &CONFINED).await;
        let id = InstanceId::new();
        cluster.put(&id, 1, Goal::Running, &of("alice")).await;
        if starts {
            cluster.wait_for_running(&id, 1).await;
        } else {
            let observed = cluster
                .wait_for(&id, "refused", |observed| {
                    matches!(observed.observation, Observation::Failed { .. })
                })
                .await;
            let Observation::Failed { failure, message, retrying } = observed.observation else {
                unreachable!()
            };
            assert_eq!((failure, retrying), (Failure::Refused, true), "{message}");
            assert!(message.starts_with("tenants are not kept apart: `iptables"), "{message}");
            assert_eq!(cluster.containers().len(), 0);
        }
        let tenants = cluster.client.node().await.unwrap().tenants;
        assert!(matches!(tenants, Tenants::NotApart { .. }), "{tenants:?}");
    }
}
