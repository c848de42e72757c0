//! Who is at the other end of a connection that a proxy made.
//!
//! `X-Forwarded-For` is what a client says unless a proxy says it, so it is heard only from addresses that the site names
//! (`trusted_proxies`), and read from its end: each proxy adds whom it heard, and what stands before the first that is
//! not trusted is that one's own invention.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address that a request comes from; the port is that of the connection.
pub(crate) fn address(headers: &HeaderMap, from: SocketAddr, trusted: &[IpNet]) -> SocketAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|net| net.contains(&address.to_canonical()));
    if !is_trusted(from.ip()) {
        return from;
    }
    let mut client = from.ip();
    let values = headers.get_all(FORWARDED_FOR).into_iter().rev();
    let said = values.flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
    for text in said {
        // What cannot be read was not written by a proxy that is trusted.
        let Some(address) = read(text.trim()) else { break };
        client = address;
        if !is_trusted(address) {
            break;
        }
    }
    SocketAddr::new(client, from.port())
}

/// An address, with or without a port.
fn read(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_heard() {
        let check = |from: &str, said: &[&str], expected: &str| {
            let trusted = ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
            let mut headers = HeaderMap::new();
            for value in said {
                headers.append(FORWARDED_FOR, value.parse().unwrap());
            }
            let from = SocketAddr::new(from.parse().unwrap(), 7);
            let found = address(&headers, from, &trusted);
            assert_eq!((found.ip().to_string().as_str(), found.port()), (expected, 7), "{from} {said:?}");
        };
        check("192.0.2.1", &[], "192.0.2.1");
        check("192.0.2.1", &["198.51.100.7"], "192.0.2.1");
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["198.51.100.7"], "198.51.100.7");
        check("::ffff:10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7");
        check("::1", &["[2001:db8::7]:4711"], "2001:db8::7");
        check("::1", &["[2001:db8::7]"], "2001:db8::7");
        // What the client itself said stands before what the proxy adds.
        check("10.0.0.1", &["127.0.0.1, 203.0.113.9", "198.51.100.7, 10.2.2.2"], "198.51.100.7");
        check("10.0.0.1", &["198.51.100.7", "10.2.2.2"], "198.51.100.7");
        check("10.0.0.1", &["nonsense"], "10.0.0.1");
        check("10.0.0.1", &["198.51.100.7, nonsense, 10.2.2.2"], "10.2.2.2");
        check("10.0.0.1", &["10.3.3.3, 10.2.2.2"], "10.3.3.3");
    }
}
