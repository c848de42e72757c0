//! Errors as users read them. What the engine and registries say names addresses inside the site: they help the operator,
//! who finds them in the log, and an attacker.

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
};

/// The site's own addresses that have a name which users know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Host and port of the site's registry.
    pub(crate) registry: Option<String>,
    /// Host and port of what stands in for Docker Hub.
    pub(crate) hub_relay: Option<String>,
    /// The registries that the site names: users must know where images may come from.
    pub(crate) registries: Vec<String>,
}

impl Names {
    /// Returns `text` with the names that users know and without inner addresses. Addresses in `known`, which is what the
    /// user wrote, stay.
    pub(crate) fn in_words(&self, text: &str, known: &str) -> String {
        let mut text = Cow::Borrowed(text);
        if let Some(own) = &self.registry {
            let named = text
                .replace(&format!("the registry `{own}`"), "this site's registry")
                .replace(&format!("https://{own}/"), "/")
                .replace(&format!("http://{own}/"), "/")
                .replace(&format!("{own}/"), "")
                .replace(own, "this site's registry");
            text = named.into();
        }
        if let Some(relay) = &self.hub_relay {
            let host = relay.rsplit_once(':').map_or(relay.as_str(), |(host, _)| host);
            let lookup = |host: &str| format!("lookup {host} ");
            text = text.replace(relay, "docker.io").replace(&lookup(host), &lookup("docker.io")).into();
        }
        without_addresses(&text, &format!("{known} {}", self.registries.join(" ")))
    }
}

/// Returns `text` without the addresses that are not in `known`, and without the word that leads to each.
pub(crate) fn without_addresses(text: &str, known: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_of_an_address) {
        let length = rest[start..].find(|letter| !is_of_an_address(letter)).unwrap_or(rest.len() - start);
        let (before, run) = (&rest[..start], &rest[start..start + length]);
        let run = run.trim_end_matches([':', '.']);
        let is_inside_a_word =
            before.ends_with(|letter: char| letter.is_alphanumeric() || "-_".contains(letter));
        let after = &rest[start + run.len()..];
        clean.push_str(before);
        match address(run).filter(|_| !is_inside_a_word) {
            Some(address) if !known.contains(&address.to_string()) => leave_out(&mut clean),
            Some(_) | None => clean.push_str(run),
        }
        // The signs that were trimmed belong to what follows; at least one letter is taken each time.
        let taken = if run.is_empty() { length } else { run.len() };
        if run.is_empty() {
            clean.push_str(&after[..length]);
        }
        rest = &rest[start + taken..];
    }
    clean.push_str(rest);
    clean
}

/// Ends `clean` where an address would follow: without the words that only make sense with it.
fn leave_out(clean: &mut String) {
    // As in `lookup registry.example.org on 10.0.0.2:53: no such host`, `dial tcp 10.0.0.3:443: connection refused`,
    // `read tcp 10.0.0.3:40000->10.0.0.4:443: connection reset`.
    for led_by in [" on ", "->"] {
        if clean.ends_with(led_by) {
            clean.truncate(clean.len() - led_by.len());
            return;
        }
    }
    if ["tcp ", "udp ", "tcp4 ", "tcp6 "].iter().any(|network| clean.ends_with(network)) {
        clean.truncate(clean.len() - 1);
    } else {
        clean.push('…');
    }
}

fn is_of_an_address(letter: char) -> bool {
    letter.is_ascii_hexdigit() || matches!(letter, ':' | '.' | '[' | ']')
}

fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_left_out_with_what_leads_to_them() {
        for (said, shown) in [
            (
                "Get \"https://r.example.org/v2/\": dial tcp: lookup r.example.org on 10.255.255.53:53: no such host",
                "Get \"https://r.example.org/v2/\": dial tcp: lookup r.example.org: no such host",
            ),
            ("dial tcp 10.1.2.3:443: connect: connection refused", "dial tcp: connect: connection refused"),
            ("dial tcp [fd00::1]:443: i/o timeout", "dial tcp: i/o timeout"),
            (
                "read tcp 172.17.0.2:43210->10.0.0.1:443: read: connection reset by peer",
                "read tcp: read: connection reset by peer",
            ),
            ("Get \"https://10.0.0.9:8443/token?a=b\": EOF", "Get \"https://…/token?a=b\": EOF"),
            ("it ended with ::1", "it ended with …"),
            ("127.0.0.1:5000", "…"),
        ] {
            assert_eq!(without_addresses(said, ""), shown);
        }
    }

    #[test]
    fn what_is_no_address_stays() {
        for text in [
            "",
            "manifest unknown: sha256:0123456789abcdef",
            "std::io failed at 12:34:56, see v1.2.3.4 of abc.",
            "1.5 of 2.0 GiB; docker.io/library/python:3.12",
            "a.b.c.d: no such host",
            "::: … ä ::.",
        ] {
            assert_eq!(without_addresses(text, ""), text);
        }
        let known = "192.0.2.7:5000/lab/image:1";
        let said = "dial tcp 192.0.2.7:5000: refused on 10.0.0.1";
        assert_eq!(without_addresses(said, known), "dial tcp 192.0.2.7:5000: refused");
    }

    #[test]
    fn the_sites_own_addresses_have_names() {
        let names = Names {
            registry: Some("127.0.0.1:5000".to_owned()),
            hub_relay: Some("mirror.lab:5001".to_owned()),
            registries: vec!["192.0.2.7:5000".to_owned()],
        };
        let known = "127.0.0.1:5000/alice/train:1@sha256:00";
        for (said, shown) in [
            (
                "cannot download `127.0.0.1:5000/alice/train:1@sha256:00`: dial tcp 127.0.0.1:5000: refused",
                "cannot download `alice/train:1@sha256:00`: dial tcp this site's registry: refused",
            ),
            (
                "the registry `127.0.0.1:5000` does not answer: error sending request for url (http://127.0.0.1:5000/v2/)",
                "this site's registry does not answer: error sending request for url (/v2/)",
            ),
            (
                "the registry `mirror.lab:5001` cannot be asked: dial tcp: lookup mirror.lab on 10.0.0.2:53: no such host",
                "the registry `docker.io` cannot be asked: dial tcp: lookup docker.io: no such host",
            ),
            ("read from 10.0.0.1", "read from …"),
            ("use one from `192.0.2.7:5000`", "use one from `192.0.2.7:5000`"),
        ] {
            assert_eq!(names.in_words(said, known), shown);
        }
        assert_eq!(Names::default().in_words("at 10.0.0.1: gone", "10.0.0.1/x"), "at 10.0.0.1: gone");
    }
}
