//! Names of machines, resolved inside the instance. A static program has no name services of its own: addresses,
//! `localhost` and the image's `/etc/hosts` are looked at here, all else is asked of the image's own `getent`, which
//! knows its name servers and whatever else its owner has set up.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    process::Stdio,
    time::Duration,
};

use tokio::{io::AsyncReadExt as _, net::unix::pipe, time::timeout};

use crate::{Agent, children::Streams};

/// The longest name that DNS knows.
const NAME_MAX: usize = 253;

/// How long name servers may take.
const ASK_LIMIT: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const ANSWER_MAX: u64 = 16 << 10;

/// The addresses of a name, best first.
pub(crate) async fn look_up(agent: &Agent, host: &str) -> io::Result<Vec<IpAddr>> {
    match known(host)? {
        Some(addresses) => Ok(addresses),
        None => timeout(ASK_LIMIT, ask(agent, host))
            .await
            .map_err(|_| io::Error::other("the name servers do not answer"))?,
    }
}

/// What needs nobody else.
fn known(host: &str) -> io::Result<Option<Vec<IpAddr>>> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse() {
        return Ok(Some(vec![address]));
    }
    if host.is_empty() || host == "localhost" {
        return Ok(Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]));
    }
    // A name that begins with a hyphen would be an option of `getent`.
    if host.len() > NAME_MAX
        || host.starts_with('-')
        || host.contains(|letter: char| letter.is_control() || letter.is_whitespace())
    {
        return Err(io::Error::other("this is not a name"));
    }
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    Ok(Some(from_hosts(&hosts, host)).filter(|addresses| !addresses.is_empty()))
}

async fn ask(agent: &Agent, host: &str) -> io::Result<Vec<IpAddr>> {
    let around = agent.surroundings(&BTreeMap::new()).map_err(io::Error::other)?;
    let argv = ["getent", "ahosts", host].map(str::to_owned);
    let mut command = around.command(&argv, &around.home_directory(), false).map_err(io::Error::other)?;
    let streams = Streams { stdin: Stdio::null(), stdout: Stdio::piped(), stderr: Stdio::null(), tty: false };
    let mut child = agent.children.spawn(&mut command, streams)?;
    let stdout = child.pipes.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut text = String::new();
    pipe::Receiver::from_owned_fd(stdout.into())?.take(ANSWER_MAX).read_to_string(&mut text).await?;
    let addresses = from_getent(&text);
    if addresses.is_empty() { Err(io::Error::other("no name server knows it")) } else { Ok(addresses) }
}

/// Each address comes once for each kind of socket.
fn from_getent(text: &str) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for address in text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

fn from_hosts(hosts: &str, host: &str) -> Vec<IpAddr> {
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let found = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_this_machine_need_nobody() {
        let check = |host: &str, first: &str| {
            let found = known(host).unwrap().unwrap();
            assert_eq!(found[0], first.parse::<IpAddr>().unwrap(), "{host}");
        };
        check("127.0.0.1", "127.0.0.1");
        check("::1", "::1");
        check("[::1]", "::1");
        check("localhost", "127.0.0.1");
        assert!(known("a b").is_err());
        assert!(known("--help").is_err());
        assert!(known(&"x".repeat(300)).is_err());
    }

    #[test]
    fn what_getent_says_is_read_once_each() {
        let text = "10.1.2.3     STREAM box.lan\n10.1.2.3     DGRAM\nfd00::1  STREAM\nnonsense\n";
        assert_eq!(from_getent(text), ["10.1.2.3".parse::<IpAddr>().unwrap(), "fd00::1".parse().unwrap()]);
    }

    #[test]
    fn hosts_are_read_as_everyone_reads_them() {
        let hosts = "127.0.0.1 localhost\n# 9.9.9.9 no\n10.0.0.7  Box box.lan # mine\nfe80::1%eth0 odd\n";
        assert_eq!(from_hosts(hosts, "box"), ["10.0.0.7".parse::<IpAddr>().unwrap()]);
        assert_eq!(from_hosts(hosts, "box.lan").len(), 1);
        assert_eq!(from_hosts(hosts, "no").len(), 0);
    }
}
