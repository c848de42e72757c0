//! Subnets for the networks of users. Only arithmetic: what is taken is found out elsewhere.

use std::{fs, io, net::Ipv4Addr};

use ipnet::Ipv4Net;

/// 256 addresses for each user, of which the network itself takes three. The engine's own choice would be used up after
/// some thirty networks.
pub(crate) const PREFIX: u8 = 24;

/// The first subnet of `pool` that overlaps with nothing that is taken.
pub(crate) fn first_free(pool: Ipv4Net, taken: &[Ipv4Net]) -> Option<Ipv4Net> {
    let overlap = |one: &Ipv4Net, other: &Ipv4Net| one.contains(other) || other.contains(one);
    pool.subnets(PREFIX).ok()?.find(|subnet| !taken.iter().any(|one| overlap(one, subnet)))
}

/// Where this machine already sends packets to, the default route apart.
pub(crate) fn routes() -> io::Result<Vec<Ipv4Net>> {
    Ok(routes_of(&fs::read_to_string("/proc/net/route")?))
}

/// The kernel's table: destination and mask are the second and the eighth column, as it keeps them in memory.
fn routes_of(table: &str) -> Vec<Ipv4Net> {
    let address = |hex: &str| u32::from_str_radix(hex, 16).ok().map(|raw| Ipv4Addr::from(raw.to_ne_bytes()));
    let routes = table.lines().skip(1).filter_map(|line| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let (destination, mask) = (address(columns.get(1)?)?, address(columns.get(7)?)?);
        Ipv4Net::with_netmask(destination, mask).ok()
    });
    routes.filter(|route| route.prefix_len() > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_one_that_nobody_has() {
        let pool = net("10.97.0.0/22");
        let free = |taken: &[&str]| {
            let taken: Vec<_> = taken.iter().map(|one| net(one)).collect();
            first_free(pool, &taken).map(|subnet| subnet.to_string())
        };
        assert_eq!(free(&[]).as_deref(), Some("10.97.0.0/24"));
        assert_eq!(free(&["10.97.0.0/26", "172.17.0.0/16"]).as_deref(), Some("10.97.1.0/24"));
        assert_eq!(free(&["10.97.0.0/23", "10.97.2.130/32"]).as_deref(), Some("10.97.3.0/24"));
        assert_eq!(free(&["10.0.0.0/8"]), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn routes_as_the_kernel_prints_them() {
        let table = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
                     bt\t40FE610A\t00000000\t0001\t0\t0\t0\tC0FFFFFF\t0\t0\t0\n";
        assert_eq!(routes_of(table), [net("172.17.0.0/16"), net("10.97.254.64/26")]);
    }
}
