//! What a file says before anybody asks what it means: values with their places.
//!
//! Three syntaxes come to this one form: [`yaml`], [`json`] and [`params`]. Scalars keep their text as written, so
//! that a variable's `1.10` stays `1.10`; what they are is asked by whoever needs a number. All of it is bounded: the
//! file's size, the depth, and the count of values after aliases are written out.

pub(crate) mod json;
pub(crate) mod params;
pub(crate) mod yaml;

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::note::{Code, Kind, Level, Notes, Place};

/// The largest file. A job file says what to run; a megabyte of that is far beyond reason.
pub const LARGEST_BYTES: usize = 1 << 20;
/// The deepest nesting; the deepest dialect needs six.
pub(crate) const DEEPEST: usize = 32;
/// The most values, aliases written out.
pub(crate) const MOST_VALUES: usize = 100_000;

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// As written; `quoted` is text whatever it looks like.
    Scalar {
        text: String,
        quoted: bool,
    },
    List(Vec<Node>),
    /// In the file's order, each key once.
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    pub(crate) place: Place,
    pub(crate) text: String,
}

/// How a file is written: what an example of a field looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    Json,
    Yaml,
    Params,
}

// === impl Syntax ===

impl Syntax {
    /// A field as it is written; `value` is in JSON.
    pub(crate) fn example(self, key: &str, value: &str) -> String {
        match self {
            Self::Json => format!("\"{key}\": {value}"),
            Self::Yaml => format!("{key}: {}", value.trim_matches('"')),
            Self::Params => format!("{key}={}", value.trim_matches('"')),
        }
    }
}

// === impl Node ===

impl Node {
    pub(crate) fn scalar(place: Place, text: &str, quoted: bool) -> Self {
        Self { place, value: Value::Scalar { text: text.to_owned(), quoted } }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.kind() == Kind::Nothing
    }

    /// What it is, by YAML's core schema.
    pub(crate) fn kind(&self) -> Kind {
        match &self.value {
            Value::List(_) => Kind::List,
            Value::Map(_) => Kind::Map,
            Value::Scalar { quoted: true, .. } => Kind::Text,
            Value::Scalar { text, .. } => match text.as_str() {
                "" | "~" | "null" | "Null" | "NULL" => Kind::Nothing,
                "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Kind::Boolean,
                text if is_whole(text) => Kind::WholeNumber,
                text if is_number(text) => Kind::Number,
                _ => Kind::Text,
            },
        }
    }

    /// The value of `key`, where this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(k, _)| k.text == key).map(|(_, node)| node),
            Value::Scalar { .. } | Value::List(_) => None,
        }
    }

    /// For keeping what is not understood.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => {
                entries.iter().map(|(key, node)| (key.text.clone(), node.to_json())).collect()
            }
            Value::Scalar { text, .. } => match self.kind() {
                Kind::Nothing => Json::Null,
                Kind::Boolean => Json::Bool(text.eq_ignore_ascii_case("true")),
                Kind::WholeNumber => {
                    text.parse::<i64>().map_or_else(|_| Json::String(text.clone()), Json::from)
                }
                Kind::Number => {
                    // Only what comes back as the same text is kept as a number.
                    let number = text.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
                    number
                        .filter(|n| n.to_string() == *text)
                        .map_or_else(|| Json::String(text.clone()), Json::Number)
                }
                Kind::Text | Kind::List | Kind::Map => Json::String(text.clone()),
            },
        }
    }
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(text: &str) -> bool {
    let start = text.strip_prefix(['-', '+']).unwrap_or(text);
    start.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.')
        && start.contains(|letter: char| letter.is_ascii_digit())
        && text.parse::<f64>().is_ok()
}

/// A map while it is read: it notices keys that come twice.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    list: Vec<(Key, Node)>,
    index: HashMap<String, usize>,
}

impl Entries {
    /// The last of two counts; `level` says how bad two are.
    pub(crate) fn put(&mut self, key: Key, node: Node, level: Level, notes: &Notes) {
        if let Some(&at) = self.index.get(&key.text) {
            let code = if level == Level::Error { Code::Twice } else { Code::Repeated };
            let of = ("of", "key".to_owned());
            notes.add(level, code, Some(key.place), "", [("value", key.text.clone()), of]);
            self.list[at] = (key, node);
        } else {
            self.index.insert(key.text.clone(), self.list.len());
            self.list.push((key, node));
        }
    }

    /// Puts what is not there yet.
    pub(crate) fn merge(&mut self, more: Vec<(Key, Node)>) {
        for (key, node) in more {
            if !self.index.contains_key(&key.text) {
                self.index.insert(key.text.clone(), self.list.len());
                self.list.push((key, node));
            }
        }
    }

    pub(crate) fn into_map(self) -> Value {
        Value::Map(self.list)
    }
}

/// The places of bytes of a text.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    pub(crate) fn place(&self, at: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let column = self.text.get(start..at).map_or(0, |before| before.chars().count()) + 1;
        Place { line: small(line), column: small(column) }
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
