//! What instances cannot reach: other users' instances, this machine's own services, and the cloud's metadata.
//!
//! Two chains of our own, one for what passes through this machine and one for what is meant for it, hooked in for our
//! bridges alone; no rule of anybody else is touched. They are written whole each time, in one step, so it does not
//! matter what was there. Everything else on the network, the Internet above all, stays reachable.
//!
//! The first is in the table `mangle`, which is asked before `filter` and which the engine leaves alone. In `filter` the
//! engine has a chain for rules of the site's own, `DOCKER-USER`, but takes the way to it out for a moment whenever a
//! network is made: whoever knocked in that moment got through.
//!
//! The engine's name server is inside each instance and asks those of this machine from there. These are let through
//! by address and port, since some clouds have theirs among the metadata.

use std::{
    env,
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use envd_api::control::Tenants;
use ipnet::Ipv4Net;
use tokio::{io::AsyncWriteExt, process::Command, sync::watch, time::timeout};

use super::network::Names;
use crate::for_users::without_addresses;

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
const MANGLE: [&str; 2] = ["-t", "mangle"];
const FILTER: [&str; 2] = ["-t", "filter"];
const FORWARD: &str = "FORWARD";
const INPUT: &str = "INPUT";
/// Where earlier versions hooked in what passes through.
const EARLIER: [&str; 2] = ["DOCKER-USER", FORWARD];
/// Addresses that mean this link only; the metadata of clouds is at one of them.
const LINK_LOCAL: &str = "169.254.0.0/16";

#[derive(Debug)]
pub(super) struct Firewall {
    names: Names,
    pool: Ipv4Net,
    /// What the last try led to.
    tenants: watch::Sender<Tenants>,
    /// What an earlier version left in other places is gone.
    tidied: AtomicBool,
}

impl Firewall {
    pub(super) fn new(names: Names, pool: Ipv4Net) -> Self {
        Self { names, pool, tenants: watch::Sender::default(), tidied: AtomicBool::new(false) }
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
            Err(why) => Tenants::NotApart {
                message: without_addresses(&format!("tenants are not kept apart: {why}"), ""),
            },
        });
        kept
    }

    async fn write(&self, bridges: &[String]) -> Result<(), String> {
        let rules = rules(&self.names, self.pool, bridges, &name_servers());
        call(RESTORE, &["--wait", WAIT, "--noflush"], Some(&rules)).await?;
        self.hook(MANGLE, FORWARD, &self.names.chain()).await?;
        self.hook(FILTER, INPUT, &self.names.chain_to_host()).await?;
        if !self.tidied.load(Ordering::Relaxed) {
            self.take_out(FILTER, &EARLIER, &self.names.chain()).await?;
            self.tidied.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn hook(&self, table: [&str; 2], at: &str, chain: &str) -> Result<(), String> {
        let bridges = self.names.bridges();
        let rule = ["-i", &bridges, "-j", chain];
        if run(&[&table[..], &["-C", at], &rule].concat()).await.is_ok() {
            return Ok(());
        }
        run(&[&table[..], &["-I", at, "1"], &rule].concat()).await.map(drop)
    }

    /// Removes all that [`Self::keep`] made.
    pub(super) async fn remove(&self) -> Result<(), String> {
        self.take_out(MANGLE, &[FORWARD], &self.names.chain()).await?;
        self.take_out(FILTER, &[INPUT], &self.names.chain_to_host()).await?;
        self.take_out(FILTER, &EARLIER, &self.names.chain()).await
    }

    /// Removes a chain, wherever of these places it was hooked in.
    async fn take_out(&self, table: [&str; 2], hooked: &[&str], chain: &str) -> Result<(), String> {
        if run(&[&table[..], &["-S", chain]].concat()).await.is_err() {
            return Ok(()); // there is none
        }
        let bridges = self.names.bridges();
        for at in hooked {
            for _ in 0..HOOKED_MAX {
                if run(&[&table[..], &["-D", at, "-i", &bridges, "-j", chain]].concat()).await.is_err() {
                    break;
                }
            }
        }
        run(&[&table[..], &["-F", chain]].concat()).await?;
        run(&[&table[..], &["-X", chain]].concat()).await.map(drop)
    }
}

/// Both chains, in the words of `iptables-restore`.
fn rules(names: &Names, pool: Ipv4Net, bridges: &[String], name_servers: &[Ipv4Addr]) -> String {
    let (through, to_host, all) = (names.chain(), names.chain_to_host(), names.bridges());
    let mut to_host_rules = vec!["-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN".to_owned()];
    for server in name_servers {
        for protocol in ["udp", "tcp"] {
            to_host_rules.push(format!("-d {server}/32 -p {protocol} -m {protocol} --dport 53 -j RETURN"));
        }
    }
    let mut through_rules = to_host_rules.clone();
    to_host_rules.push("-j DROP".to_owned());
    through_rules.extend(bridges.iter().map(|bridge| format!("-i {bridge} -o {bridge} -j RETURN")));
    for dropped in [format!("-o {all}"), format!("-d {pool}"), format!("-d {LINK_LOCAL}")] {
        through_rules.push(format!("{dropped} -j DROP"));
    }
    let mut text = String::new();
    for (table, chain, rules) in [("mangle", through, through_rules), ("filter", to_host, to_host_rules)] {
        let _ = writeln!(text, "*{table}\n:{chain} - [0:0]");
        for rule in rules {
            let _ = writeln!(text, "-A {chain} {rule}");
        }
        text.push_str("COMMIT\n");
    }
    text
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
            "*mangle\n:{chain} - [0:0]\n\
             -A {chain} -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN\n\
             -A {chain} -d 10.0.0.53/32 -p udp -m udp --dport 53 -j RETURN\n\
             -A {chain} -d 10.0.0.53/32 -p tcp -m tcp --dport 53 -j RETURN\n\
             -A {chain} -i {bridge} -o {bridge} -j RETURN\n\
             -A {chain} -o {all} -j DROP\n\
             -A {chain} -d 10.97.0.0/16 -j DROP\n\
             -A {chain} -d 169.254.0.0/16 -j DROP\n\
             COMMIT\n\
             *filter\n:{host} - [0:0]\n\
             -A {host} -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN\n\
             -A {host} -d 10.0.0.53/32 -p udp -m udp --dport 53 -j RETURN\n\
             -A {host} -d 10.0.0.53/32 -p tcp -m tcp --dport 53 -j RETURN\n\
             -A {host} -j DROP\n\
             COMMIT\n"
        );
        assert_eq!(text, expected);
    }
}
