//! Secrets are put into texts at the start of a task, in any spelling, once.

use std::collections::BTreeMap;

use jobfile::{named_secrets, reveal};

#[test]
fn a_secret_is_put_in_once_however_its_place_is_spelt() {
    let secrets = BTreeMap::from([("key", "k<% $secrets.other %>"), ("other", "o")]);
    for (text, expected) in [
        ("<% $secrets.key %>", "k<% $secrets.other %>"),
        ("<%$secrets.other%>,<%  $secrets.other  %>", "o,o"),
        ("<% $secrets.unknown %> <% $other %>", "<% $secrets.unknown %> <% $other %>"),
    ] {
        assert_eq!(reveal(text, |name| secrets.get(name).copied()), expected, "{text}");
    }
}

#[test]
fn a_text_names_its_secrets() {
    let text = "login <% $secrets.A_1 %> && echo <% $parameters.x %><%$secrets.b%> <% $secrets.c";
    assert_eq!(Vec::from_iter(named_secrets(text)), ["A_1", "b"]);
}
