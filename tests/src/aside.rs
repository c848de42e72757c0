//! A network apart, for a browser.
//!
//! A browser drops what it loads when the machine's networks change, as they do whenever some test makes an instance for
//! a new user. In a network namespace of its own nothing changes but what is done there, so that walks in a browser run
//! beside other tests. The doors of a site are found in it where they are outside: each connection is handed through.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    net::TcpListener,
    os::fd::AsFd as _,
    process::{Command, ExitStatus, Stdio},
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::{io::copy_bidirectional, net::TcpStream, task::JoinSet};

use crate::{OrFail as _, Stream};

/// A program in a network apart, which is handed through as long as this is there.
#[derive(Debug)]
pub struct Aside {
    child: tokio::process::Child,
    _doors: JoinSet<()>,
}

impl Aside {
    /// Starts `command` in a network that has only a loopback, and on it `ports` of the loopback outside. Its output goes
    /// where `command` says.
    pub fn start(mut command: Command, ports: &[u16]) -> Self {
        let ports = ports.to_vec();
        let runtime = tokio::runtime::Handle::current();
        // A thread of its own: it never comes back from there.
        let inside = std::thread::spawn(move || {
            let network = new_network();
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
                .or_fail("go into a network");
            let doors: Vec<_> = ports.into_iter().map(|port| (port, listen(port))).collect();
            let _runtime = runtime.enter();
            command.stdin(Stdio::null());
            let mut command = tokio::process::Command::from(command);
            (command.kill_on_drop(true).spawn().or_fail("start a program"), doors)
        });
        let (child, doors) = inside.join().ok().or_fail("start a program in a network apart");
        let mut work = JoinSet::new();
        for (port, listener) in doors {
            let listener = tokio::net::TcpListener::from_std(listener).or_fail("watch a door");
            work.spawn(hand_through(listener, move || connect(port)));
        }
        Self { child, _doors: work }
    }

    /// Waits until it has ended. Dropping this kills it.
    pub async fn ended(mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }
}

async fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A network with a loopback, and with a wire that leads nowhere: without one a browser takes itself for offline.
const NETWORK: &str = "set -e
ip link set lo up
ip link add wire type veth peer name end
for name in /proc/sys/net/ipv6/conf/*/disable_ipv6; do
  case $name in */lo/* | */all/* | */default/*) ;; *) echo 1 >\"$name\" ;; esac
done
ip address add 192.0.2.1/30 dev wire
ip link set wire up
ip link set end up
echo up
read -r _";

fn new_network() -> File {
    let mut holder = Command::new("unshare")
        .args(["--net", "sh", "-c", NETWORK])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .or_fail("make a network");
    let mut line = String::new();
    let stdout = holder.stdout.take().or_fail("hear of a network");
    BufReader::new(stdout).read_line(&mut line).or_fail("hear of a network");
    assert_eq!(line, "up\n", "a network cannot be made: it takes root and `ip`");
    let network = File::open(format!("/proc/{}/ns/net", holder.id())).or_fail("open a network");
    drop(holder.stdin.take());
    holder.wait().or_fail("wait for what held the network");
    network
}

fn listen(port: u16) -> TcpListener {
    let listener = TcpListener::bind(("127.0.0.1", port)).or_fail("listen in a network apart");
    listener.set_nonblocking(true).or_fail("listen in a network apart");
    listener
}

/// Relays each connection to one that `connect` makes. If `connect` fails, closes the connection, as a program that has
/// just ended would.
pub(crate) async fn hand_through<S, F>(listener: tokio::net::TcpListener, connect: impl Fn() -> F)
where
    S: Stream,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    while let Ok((mut inside, _)) = listener.accept().await {
        let connecting = connect();
        connections.spawn(async move {
            if let Ok(mut outside) = connecting.await {
                let _ = inside.set_nodelay(true);
                let _ = copy_bidirectional(&mut inside, &mut outside).await;
            }
        });
    }
}
