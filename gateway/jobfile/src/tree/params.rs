//! `key=value` lines, as DLC's parameter files have them, to a map of texts.
//!
//! Split at the first `=`; the value is kept as it is, quotes and all. Blank lines and lines that begin with `#` are
//! passed over. A key that comes twice counts the last time.

use super::{Entries, Key, Node, small};
use crate::note::{Code, Level, Notes, Place};

/// Whether a text looks like parameters: its first line with something in it is `word=…`.
pub(crate) fn looks_like(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let word = |key: &str| {
        !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    first.and_then(|line| line.split_once('=')).is_some_and(|(key, _)| word(key.trim()))
}

pub(crate) fn read(text: &str, notes: &Notes) -> Node {
    let mut entries = Entries::default();
    for (number, line) in text.lines().enumerate() {
        let place = Place { line: small(number + 1), column: 1 };
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let Some((key, value)) = trimmed.split_once('=') else {
            let what = "a line must be `key=value`".to_owned();
            notes.add(Level::Error, Code::Syntax, Some(place), "", [("what", what)]);
            continue;
        };
        let column = line.find('=').map_or(0, |at| line[..at].chars().count() + 2);
        let value = Node::scalar(Place { column: small(column), ..place }, value.trim(), false);
        let key = Key { place, text: key.trim().to_owned() };
        entries.put(key, value, Level::Warning, notes);
    }
    Node { place: Place { line: 1, column: 1 }, value: entries.into_map() }
}
