//! Where the name of a registry leads. A public name may be that of an address inside the site's network, and the engine
//! connects to whatever it is told.
//!
//! What is left: the engine looks the name up once more, and may hear another answer; and it follows where a registry
//! sends it for a token or a layer. Who must rule that out names the registries in `registries`, or keeps the engine
//! from the inner network by a proxy.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use tokio::{net::lookup_host, time::timeout};

/// How long a name may take.
const LOOK_UP: Duration = Duration::from_secs(5);
const HTTPS: u16 = 443;

/// Whether a registry, as it stands in the name of an image, is inside the site's network. A name that this machine
/// cannot look up is not: the engine cannot either, or asks a proxy that stands outside.
pub(super) async fn leads_inside(registry: &str) -> bool {
    let (host, port) = match registry.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().unwrap_or(HTTPS)),
        None => (registry, HTTPS),
    };
    match timeout(LOOK_UP, lookup_host((host, port))).await {
        Ok(Ok(found)) => found.into_iter().any(|address| is_inside(address.ip())),
        Ok(Err(_)) | Err(_) => false,
    }
}

fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_inside_v4(address),
        IpAddr::V6(address) => is_inside_v6(address),
    }
}

fn is_inside_v4(address: Ipv4Addr) -> bool {
    // Providers' own, between their customers and the world.
    let is_shared = address.octets()[0] == 100 && address.octets()[1] & 0xc0 == 64;
    address.octets()[0] == 0
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || is_shared
}

fn is_inside_v6(address: Ipv6Addr) -> bool {
    // Addresses of the older kind in the clothes of the newer one, as they are and behind a translator.
    let older = match address.segments() {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let bits = u32::from(high) << 16 | u32::from(low);
            Some(Ipv4Addr::from_bits(bits))
        }
        _ => None,
    };
    older.is_some_and(is_inside_v4)
        || address.is_loopback()
        || address.is_unspecified()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || address.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_inside_in_every_spelling() {
        let inside = [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
        ];
        let outside =
            ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"];
        let check = |text: &str| is_inside(text.parse().unwrap());
        assert_eq!(inside.into_iter().filter(|text| !check(text)).collect::<Vec<_>>(), [""; 0]);
        assert_eq!(outside.into_iter().filter(|text| check(text)).collect::<Vec<_>>(), [""; 0]);
    }

    #[tokio::test]
    async fn names_lead_where_this_machine_says() {
        assert!(leads_inside("localhost").await);
        assert!(leads_inside("localhost:5000").await);
        assert!(!leads_inside("no-such-registry.invalid").await);
    }
}
