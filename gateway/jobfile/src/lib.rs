//! Job files: what people bring from elsewhere, and our own.
//!
//! [`read`] recognises the language of a file (OpenPAI v1 JSON, OpenPAI protocol v2 YAML, DLC's `key=value`
//! parameters, Determined's YAML, our own YAML), and answers with one [`JobSpec`] and [`Note`]s: every mistake at once,
//! each with its line, its field and what to write instead. [`write`] writes any spec in our own language, and reading
//! that gives the same spec. [`variables`] are what a task sees in its environment, [`outcome`] says when a job is
//! over and whether it is tried again.
//!
//! No I/O, no clock, no user, no policy: the gateway, the command line and the tests ask the same functions. A site's
//! tables (storages, registries, shares) come in as [`Site`].

mod dialect;
mod fields;
pub mod note;
pub mod outcome;
pub mod spec;
mod tree;
pub mod variables;
mod writer;

pub use dialect::parse_duration;
pub use note::{Code, Level, Note, Place};
pub use spec::{Dialect, JobSpec, Site};
pub use tree::LARGEST_BYTES;
pub use writer::write;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use fields::{Context, Fields};
use note::Notes;
use tree::Syntax;

/// What came of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// `None` if the file's language is not known.
    pub dialect: Option<Dialect>,
    /// There is one exactly if no note is an error.
    pub spec: Option<JobSpec>,
    /// In the order of the file.
    pub notes: Vec<Note>,
}

/// Reads a job file in whichever language it is.
pub fn read(bytes: &[u8], site: &Site) -> Reading {
    let notes = Notes::default();
    let (dialect, spec) = read_with(bytes, site, &notes);
    let spec = if notes.any_error() { None } else { spec };
    Reading { dialect, spec, notes: notes.sorted() }
}

/// `text` with every `<% $secrets.NAME %>` that is known replaced, in one pass: what a secret holds is not looked at.
pub fn reveal<'a>(text: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    dialect::template::render(text, |name| value(name.strip_prefix("secrets.")?).map(str::to_owned))
}

/// The names of the secrets that a text names.
pub fn named_secrets(text: &str) -> BTreeSet<String> {
    let names = RefCell::new(BTreeSet::new());
    dialect::template::render(text, |name| {
        names.borrow_mut().insert(name.strip_prefix("secrets.")?.to_owned());
        None
    });
    names.into_inner()
}

fn read_with(bytes: &[u8], site: &Site, notes: &Notes) -> (Option<Dialect>, Option<JobSpec>) {
    let whole = |code, limit: String| notes.add(Level::Error, code, None, "", [("limit", limit)]);
    if bytes.len() > LARGEST_BYTES {
        whole(Code::FileTooLarge, format!("{} MiB", LARGEST_BYTES >> 20));
        return (None, None);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        whole(Code::NotUtf8, String::new());
        return (None, None);
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        whole(Code::NothingInIt, String::new());
        return (None, None);
    }
    let (syntax, root) = if text.trim_start().starts_with('{') {
        (Syntax::Json, tree::json::read(text, notes))
    } else if tree::params::looks_like(text) {
        (Syntax::Params, Some(tree::params::read(text, notes)))
    } else {
        (Syntax::Yaml, tree::yaml::read(text, notes))
    };
    let Some(root) = root else {
        // Nothing but comments.
        if !notes.any_error() {
            whole(Code::NothingInIt, String::new());
        }
        return (None, None);
    };
    let found = if syntax == Syntax::Params { Some(Dialect::Dlc) } else { dialect::recognise(&root) };
    let Some(found) = found else {
        whole(Code::UnknownFormat, String::new());
        return (None, None);
    };
    let context = Context { notes, site, syntax, kept: RefCell::new(BTreeMap::new()) };
    let fields = Fields::of(&root, &context);
    let spec = match found {
        Dialect::Berth => dialect::berth::read(fields),
        Dialect::OpenpaiV1 => dialect::openpai_v1::read(fields),
        Dialect::OpenpaiV2 => dialect::openpai_v2::read(fields),
        Dialect::Dlc => dialect::dlc::read(fields),
        Dialect::Determined => dialect::determined::read(fields),
    };
    (Some(found), Some(spec))
}
