//! Secrets of a file are put into texts at the start of a task, in any spelling, once.

use std::collections::BTreeMap;

use jobfile::{reveal, spec::Secret};

#[test]
fn a_secret_is_put_in_once_however_its_place_is_spelt() {
    let secret = |name: &str, text: &str| (name.to_owned(), Secret::new(text));
    let secrets: BTreeMap<_, _> = [secret("key", "k<% $secrets.other %>"), secret("other", "o")].into();
    for (text, expected) in [
        ("<% $secrets.key %>", "k<% $secrets.other %>"),
        ("<%$secrets.other%>,<%  $secrets.other  %>", "o,o"),
        ("<% $secrets.unknown %> <% $other %>", "<% $secrets.unknown %> <% $other %>"),
    ] {
        assert_eq!(reveal(text, &secrets), expected, "{text}");
    }
}
