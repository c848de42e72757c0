//! What instances cannot reach: other users' instances, this machine's own services, and the cloud's metadata.
//!
//! Two chains of our own, one for what passes through this machine and one for what is meant for it, hooked in for our
//! bridges alone; no rule of anybody else is touched. They are written whole each time, in one step, so it does not
//! matter what was there. Everything else on the network, the Internet above all, stays reachable.
//!
//! The engine's name server is inside each instance and asks those of this machine from there. These are let through
//! by address and port, since some clouds have theirs among the metadata.

use std::{env, fmt::Write as _, fs, net::Ipv4Addr, process::Stdio, time::Duration};

use envd_api::control::Tenants;
use ipnet::Ipv4Net;
use tokio::{io::AsyncWriteExt, process::Command, sync::watch, time::timeout};

use super::network::Names;

const IPTABLES: &str = "iptables";
const RESTORE: &str = "iptables-restore";
/// Seconds to wait for others who change rules.
const WAIT: &str = "10";
/// The most that one call may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The most that is kept of what iptables says.
const TEXT_MAX: usize = 300;
/// A hook that was set more often than this was not set by us.
const HOOKED_MAX: usize = 8;
/// Where a site's own rules go, asked before the engine's.
const DOCKER_USER: &str = "DOCKER-USER";
/// The same for an engine that sets no rules.
const FORWARD: &str = "FORWARD";
const INPUT: &str = "INPUT";
/// Addresses that mean this link only; the metadata of clouds is at one of them.
const LINK_LOCAL: &str = "169.254.0.0/16";

#[derive(Debug)]
pub(super) struct Firewall {
    names: Names,
    pool: Ipv4Net,
    /// What the last try led to.
    tenants: watch::Sender<Tenants>,
}

impl Firewall {
    pub(super) fn new(names: Names, pool: Ipv4Net) -> Self {
        Self { names, pool, tenants: watch::Sender::default() }
    }

    pub(super) fn tenants(&self) -> Tenants {
        self.tenants.borrow().clone()
    }

    /// Makes sure of the rules for these bridges, or, without any, that there could be rules.
    pub(super) async fn keep(&self, bridges: &[String]) -> Result<(), String> {
        let kept =
            if bridges.is_empty() { run(&["-S", INPUT]).await.map(drop) } else { self.write(bridges).await };
        self.tenants.send_replace(match &kept {
            Ok(()) => Tenants::Apart,
            Err(why) => Tenants::NotApart { message: format!("tenants are not kept apart: {why}") },
        });
        kept
    }

    async fn write(&self, bridges: &[String]) -> Result<(), String> {
        let rules = rules(&self.names, self.pool, bridges, &name_servers());
        call(RESTORE, &["--wait", WAIT, "--noflush"], Some(&rules)).await?;
        let through = if run(&["-S", DOCKER_USER]).await.is_ok() { DOCKER_USER } else { FORWARD };
        self.hook(through, &self.names.chain()).await?;
        self.hook(INPUT, &self.names.chain_to_host()).await
    }

    async fn hook(&self, at: &str, chain: &str) -> Result<(), String> {
        let bridges = self.names.bridges();
        let rule = ["-i", &bridges, "-j", chain];
        if run(&[&["-C", at], &rule[..]].concat()).await.is_ok() {
            return Ok(());
        }
        run(&[&["-I", at, "1"], &rule[..]].concat()).await.map(drop)
    }

    /// Removes all that [`Self::keep`] made.
    pub(super) async fn remove(&self) -> Result<(), String> {
        let bridges = self.names.bridges();
        let (chain, chain_to_host) = (self.names.chain(), self.names.chain_to_host());
        for (at, chain) in [(DOCKER_USER, &chain), (FORWARD, &chain), (INPUT, &chain_to_host)] {
            for _ in 0..HOOKED_MAX {
                if run(&["-D", at, "-i", &bridges, "-j", chain]).await.is_err() {
                    break;
                }
            }
        }
        for chain in [&chain, &chain_to_host] {
            if run(&["-S", chain]).await.is_ok() {
                run(&["-F", chain]).await?;
                run(&["-X", chain]).await?;
            }
        }
        Ok(())
    }
}

/// Both chains, in the words of `iptables-restore`.
fn rules(names: &Names, pool: Ipv4Net, bridges: &[String], name_servers: &[Ipv4Addr]) -> String {
    let (through, to_host, all) = (names.chain(), names.chain_to_host(), names.bridges());
    let mut rules = format!("*filter\n:{through} - [0:0]\n:{to_host} - [0:0]\n");
    let mut add = |chain: &str, rule: &str| {
        let _ = writeln!(rules, "-A {chain} {rule}");
    };
    for chain in [&through, &to_host] {
        add(chain, "-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN");
        for server in name_servers {
            add(chain, &format!("-d {server}/32 -p udp -m udp --dport 53 -j RETURN"));
            add(chain, &format!("-d {server}/32 -p tcp -m tcp --dport 53 -j RETURN"));
        }
    }
    for bridge in bridges {
        add(&through, &format!("-i {bridge} -o {bridge} -j RETURN"));
    }
    add(&through, &format!("-o {all} -j DROP"));
    add(&through, &format!("-d {pool} -j DROP"));
    add(&through, &format!("-d {LINK_LOCAL} -j DROP"));
    add(&through, "-j RETURN");
    add(&to_host, "-j DROP");
    rules.push_str("COMMIT\n");
    rules
}

/// The name servers that this machine asks over the network.
fn name_servers() -> Vec<Ipv4Addr> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    // The second is where the engine looks when the first only names the machine itself.
    let text = read("/etc/resolv.conf") + &read("/run/systemd/resolve/resolv.conf");
    let mut servers: Vec<Ipv4Addr> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok())
        .filter(|server: &Ipv4Addr| !server.is_loopback() && !server.is_unspecified())
        .collect();
    servers.sort_unstable();
    servers.dedup();
    servers
}

async fn run(arguments: &[&str]) -> Result<String, String> {
    call(IPTABLES, &[&["--wait", WAIT], arguments].concat(), None).await
}

/// Runs one command to its end; never through a shell. An error is what it said, in bounds.
async fn call(program: &str, arguments: &[&str], input: Option<&str>) -> Result<String, String> {
    // A login shell's is often without the programs of administrators.
    let path = env::var("PATH").unwrap_or_default();
    let work = async {
        let mut child = Command::new(program)
            .args(arguments)
            .env("PATH", format!("{path}:/usr/sbin:/sbin"))
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            stdin.write_all(input.as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let output = timeout(LIMIT, work)
        .await
        .map_err(|_| format!("`{program}` did not end within {} s", LIMIT.as_secs()))?
        .map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said: String = String::from_utf8_lossy(&output.stderr).trim().chars().take(TEXT_MAX).collect();
    Err(format!("`{program}` said: {}", said.replace('\n', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_for_our_own_bridges_alone() {
        let names = Names::new("cls_1");
        let bridge = names.bridge("alice");
        let (pool, server) = ("10.97.0.0/16".parse().unwrap(), Ipv4Addr::new(10, 0, 0, 53));
        let text = rules(&names, pool, std::slice::from_ref(&bridge), &[server]);
        let (chain, host, all) = (names.chain(), names.chain_to_host(), names.bridges());
        let expected = format!(
            "*filter\n:{chain} - [0:0]\n:{host} - [0:0]\n\
             -A {chain} -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN\n\
             -A {chain} -d 10.0.0.53/32 -p udp -m udp --dport 53 -j RETURN\n\
             -A {chain} -d 10.0.0.53/32 -p tcp -m tcp --dport 53 -j RETURN\n\
             -A {host} -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN\n\
             -A {host} -d 10.0.0.53/32 -p udp -m udp --dport 53 -j RETURN\n\
             -A {host} -d 10.0.0.53/32 -p tcp -m tcp --dport 53 -j RETURN\n\
             -A {chain} -i {bridge} -o {bridge} -j RETURN\n\
             -A {chain} -o {all} -j DROP\n\
             -A {chain} -d 10.97.0.0/16 -j DROP\n\
             -A {chain} -d 169.254.0.0/16 -j DROP\n\
             -A {chain} -j RETURN\n\
             -A {host} -j DROP\n\
             COMMIT\n"
        );
        assert_eq!(text, expected);
    }
}
