//! Ports that stay free for one test, also while its program is restarted.

use std::{
    fmt,
    net::TcpListener,
    ops::Range,
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener},
    },
};

use crate::OrFail as _;

/// Below the kernel's ephemeral ports, which begin at 32768 by default.
const PORTS: Range<u16> = 20_000..32_768;
const TRIES: usize = 1000;

/// A port of 127.0.0.1 that no other test gets as long as this lives.
///
/// An ephemeral port could be taken by any connection between two starts of a program.
#[derive(Debug)]
pub struct Port {
    pub number: u16,
    /// An abstract socket, which the kernel removes with the process.
    _lock: UnixListener,
}

impl Port {
    #[track_caller]
    pub fn reserve() -> Self {
        let found = (0..TRIES).find_map(|_| Self::try_reserve(rand::random_range(PORTS)));
        found.or_fail("find a free port")
    }

    fn try_reserve(number: u16) -> Option<Self> {
        let name = SocketAddr::from_abstract_name(format!("berth-test-port-{number}")).ok()?;
        let lock = UnixListener::bind_addr(&name).ok()?;
        TcpListener::bind(("127.0.0.1", number)).ok()?;
        Some(Self { number, _lock: lock })
    }
}

impl fmt::Display for Port {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(formatter)
    }
}
