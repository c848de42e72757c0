//! Asking a file's values for what they mean: every dialect reads through this.
//!
//! [`Fields`] is a map whose keys are taken one by one; what nobody took is unknown, warned about and kept. A
//! [`Field`] knows its pointer and place, so each wrong value is told with both, and reading goes on: all mistakes of
//! a file are found at once.

use std::{cell::RefCell, collections::BTreeMap};

use crate::{
    note::{Code, Kind, Level, Notes, Place},
    spec::{Site, Source},
    tree::{Key, Node, Syntax, Value},
};

/// What a reader of a file works with.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) notes: &'a Notes,
    pub(crate) site: &'a Site,
    pub(crate) syntax: Syntax,
    pub(crate) kept: RefCell<BTreeMap<String, serde_json::Value>>,
}

/// A map, and which of its keys were asked for.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    context: &'a Context<'a>,
    pointer: String,
    place: Place,
    entries: &'a [(Key, Node)],
    known: RefCell<Vec<&'static str>>,
}

/// One value with its name.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    context: &'a Context<'a>,
    pub(crate) pointer: String,
    key: String,
    place: Place,
    pub(crate) node: &'a Node,
}

// === impl Fields ===

impl<'a> Fields<'a> {
    /// The file's own map.
    pub(crate) fn of(root: &'a Node, context: &'a Context<'a>) -> Self {
        let entries = match &root.value {
            Value::Map(entries) => entries.as_slice(),
            Value::List(_) | Value::Scalar { .. } => &[],
        };
        Self {
            context,
            pointer: String::new(),
            place: Place { line: 1, column: 1 },
            entries,
            known: RefCell::default(),
        }
    }

    pub(crate) fn context(&self) -> &'a Context<'a> {
        self.context
    }

    /// The value of a key, also if it is `null`.
    pub(crate) fn take_even_null(&self, key: &'static str) -> Option<Field<'a>> {
        self.known.borrow_mut().push(key);
        self.entries.iter().find(|(there, _)| there.text == key).map(|(_, node)| self.field(key, node))
    }

    /// The value of a key; `null` counts as not there.
    pub(crate) fn take(&self, key: &'static str) -> Option<Field<'a>> {
        self.take_even_null(key).filter(|field| !field.node.is_nothing())
    }

    /// The value of a key that must be there. `example` is its value in JSON.
    pub(crate) fn required(&self, key: &'static str, example: &str) -> Option<Field<'a>> {
        let found = self.take(key);
        if found.is_none() {
            self.missing(key, example);
        }
        found
    }

    pub(crate) fn missing(&self, key: &str, example: &str) {
        let blank = self.entries.iter().find(|(there, _)| there.text == key);
        let (code, place) = match blank {
            Some((_, node)) => (Code::Blank, node.place),
            None => (Code::Missing, self.place),
        };
        let example = self.context.syntax.example(key, example);
        let pointer = self.pointer_to(key);
        self.context.notes.add(Level::Error, code, Some(place), &pointer, [("example", example)]);
    }

    /// Every key with its value: for maps whose keys are the user's own.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'a Key, Field<'a>)> + use<'a, '_> {
        self.entries.iter().map(|(key, node)| (key, self.field(&key.text, node)))
    }

    /// Keys that are accepted and do nothing.
    pub(crate) fn ignore(&self, keys: &[&'static str], why: &str) {
        for &key in keys {
            if let Some(field) = self.take(key) {
                field.warn(Code::Ignored, [("why", why.to_owned())]);
                field.keep();
            }
        }
    }

    /// Keys that are kept without a word.
    pub(crate) fn keep(&self, keys: &[&'static str]) {
        for &key in keys {
            if let Some(field) = self.take(key) {
                field.keep();
            }
        }
    }

    /// Warns about what nobody asked for, and keeps it.
    pub(crate) fn finish(self) {
        let known = self.known.borrow();
        for (key, node) in self.entries.iter().filter(|(key, _)| !known.contains(&key.text.as_str())) {
            let distance =
                |known: &str| strsim::damerau_levenshtein(&key.text.to_lowercase(), &known.to_lowercase());
            let nearest = known.iter().min_by_key(|known| distance(known));
            let nearest = nearest.filter(|known| distance(known) <= 2 && key.text.len() > 3);
            let nearest = nearest.map_or_else(String::new, |near| (*near).to_owned());
            let field = self.field(&key.text, node);
            let place = Some(key.place);
            let params = [("nearest", nearest)];
            self.context.notes.add(Level::Warning, Code::UnknownKey, place, &field.pointer, params);
            field.keep();
        }
    }

    fn field(&self, key: &str, node: &'a Node) -> Field<'a> {
        Field {
            context: self.context,
            pointer: self.pointer_to(key),
            key: key.to_owned(),
            place: node.place,
            node,
        }
    }

    fn pointer_to(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, key.replace('~', "~0").replace('/', "~1"))
    }
}

// === impl Field ===

impl<'a> Field<'a> {
    pub(crate) fn error<const N: usize>(&self, code: Code, params: [(&str, String); N]) {
        self.context.notes.add(Level::Error, code, Some(self.place), &self.pointer, params);
    }

    pub(crate) fn warn<const N: usize>(&self, code: Code, params: [(&str, String); N]) {
        self.context.notes.add(Level::Warning, code, Some(self.place), &self.pointer, params);
    }

    /// The same where its key stands: what is said then is about the name.
    pub(crate) fn at(&self, key: &Key) -> Self {
        Self { place: key.place, ..self.clone() }
    }

    pub(crate) fn keep(&self) {
        self.context.kept.borrow_mut().insert(self.pointer.clone(), self.node.to_json());
    }

    /// This field as it could be written; `value` is in JSON.
    pub(crate) fn example(&self, value: &str) -> String {
        self.context.syntax.example(&self.key, value)
    }

    fn wrong(&self, expected: Kind, example: &str) {
        let found = self.node.kind();
        let example = self.example(example);
        let params = [("expected", expected.word()), ("found", found.word())].map(|(k, v)| (k, v.to_owned()));
        let [expected, found] = params;
        self.error(Code::WrongType, [expected, found, ("example", example)]);
    }

    /// Any scalar as it is written: names that look like numbers are names.
    pub(crate) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Scalar { text, .. } if text.contains('\0') => {
                self.error(Code::BadText, []);
                None
            }
            Value::Scalar { text, .. } => Some(text),
            Value::List(_) | Value::Map(_) => {
                self.wrong(Kind::Text, "\"…\"");
                None
            }
        }
    }

    /// Text with something in it.
    pub(crate) fn filled(&self, example: &str) -> Option<&'a str> {
        let text = self.text()?;
        if text.trim().is_empty() {
            self.error(Code::Blank, [("example", self.example(example))]);
            return None;
        }
        Some(text)
    }

    /// Text, where an empty one means that there is none.
    pub(crate) fn optional(&self) -> Option<String> {
        self.text().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        match self.scalar()?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => {
                self.wrong(Kind::Boolean, "true");
                None
            }
        }
    }

    /// A whole number in a range. Text of digits is taken for a number, since forms write such files.
    pub(crate) fn integer(&self, least: i64, most: i64, example: i64) -> Option<i64> {
        let text = self.scalar()?.trim();
        // `4.0` is what some programs write for 4.
        let whole = text.strip_suffix(".0").unwrap_or(text);
        let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            self.wrong(Kind::WholeNumber, &example.to_string());
            return None;
        }
        let number = whole.parse::<i64>().ok();
        let fits = number.filter(|number| (least..=most).contains(number));
        if fits.is_none() {
            let below = number.is_some_and(|number| number < least);
            let most = if below { String::new() } else { most.to_string() };
            self.out_of_range(text, &least.to_string(), &most, &example.to_string());
        }
        fits
    }

    /// The same as an unsigned number of 32 bits.
    pub(crate) fn count(&self, least: u32, most: u32, example: u32) -> Option<u32> {
        self.integer(least.into(), most.into(), example.into()).and_then(|number| number.try_into().ok())
    }

    /// The same as an unsigned number of 64 bits.
    pub(crate) fn amount(&self, least: u64, most: u64, example: u64) -> Option<u64> {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.integer(signed(least), signed(most), signed(example)).and_then(|number| number.try_into().ok())
    }

    /// A number that may have a fraction.
    pub(crate) fn number(&self, least: f64, most: f64, example: f64) -> Option<f64> {
        let text = self.scalar()?.trim();
        let Some(number) = text.parse::<f64>().ok().filter(|number| number.is_finite()) else {
            self.wrong(Kind::Number, &example.to_string());
            return None;
        };
        if (least..=most).contains(&number) {
            Some(number)
        } else {
            let most = if number < least { String::new() } else { most.to_string() };
            self.out_of_range(text, &least.to_string(), &most, &example.to_string());
            None
        }
    }

    fn scalar(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Scalar { text, .. } => Some(text),
            Value::List(_) | Value::Map(_) => self.text(),
        }
    }

    fn out_of_range(&self, value: &str, least: &str, most: &str, example: &str) {
        let [value, least, most] = [value, least, most].map(str::to_owned);
        let example = ("example", self.example(example));
        self.error(Code::OutOfRange, [("value", value), ("least", least), ("most", most), example]);
    }

    /// The items of a list.
    pub(crate) fn list(&self) -> Option<Vec<Field<'a>>> {
        let Value::List(items) = &self.node.value else {
            self.wrong(Kind::List, "[…]");
            return None;
        };
        let item = |(at, node): (usize, &'a Node)| Field {
            context: self.context,
            pointer: format!("{}/{at}", self.pointer),
            key: self.key.clone(),
            place: node.place,
            node,
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    pub(crate) fn fields(&self) -> Option<Fields<'a>> {
        let Value::Map(entries) = &self.node.value else {
            self.wrong(Kind::Map, "{…}");
            return None;
        };
        Some(Fields {
            context: self.context,
            pointer: self.pointer.clone(),
            place: self.node.place,
            entries,
            known: RefCell::default(),
        })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.node.kind()
    }

    /// A name by one of our rules.
    pub(crate) fn name(&self, rule: &NameRule) -> Option<String> {
        let text = self.filled(&format!("\"{}\"", rule.example))?;
        if rule.accepts(text) {
            return Some(text.to_owned());
        }
        self.bad_name(text, rule);
        None
    }

    pub(crate) fn bad_name(&self, text: &str, rule: &NameRule) {
        let params = [("value", text), ("of", rule.of), ("rule", rule.letters)];
        let [value, of, letters] = params.map(|(key, value)| (key, value.to_owned()));
        self.error(Code::BadName, [value, of, letters, ("example", rule.nearest(text))]);
    }

    /// A folder: in `/userhome`, or in a storage of the site.
    pub(crate) fn source(&self) -> Option<Source> {
        let text = self.text()?.trim();
        if text.is_empty() {
            return None;
        }
        let example = ("example", self.example("\"/userhome/data\""));
        let value = ("value", text.to_owned());
        if text.starts_with("hdfs:") || text.starts_with("webhdfs:") {
            self.error(Code::Hdfs, [value, example]);
            return None;
        }
        let path = text.strip_prefix("file://").unwrap_or(text);
        let variable = ["$PAI_DEFAULT_FS_URI", "${PAI_DEFAULT_FS_URI}"];
        let path = match variable.into_iter().find_map(|name| path.strip_prefix(name)) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("/userhome{rest}"),
            Some(_) | None => path.to_owned(),
        };
        let unfit = path.contains("://") || path.split('/').any(|part| part == "..");
        if unfit || path.chars().any(char::is_control) {
            self.error(Code::BadPath, [value, example]);
            return None;
        }
        self.resolve(&path)
    }

    fn resolve(&self, path: &str) -> Option<Source> {
        let site = self.context.site;
        let value = || ("value", path.to_owned());
        if let Some(below) = path.strip_prefix("/userhome").filter(|b| b.is_empty() || b.starts_with('/')) {
            return Some(Source::Home(below.trim_matches('/').to_owned()));
        }
        let known = |storages: &[crate::spec::StoragePath]| {
            storages.iter().map(|known| known.path.clone()).collect::<Vec<_>>().join(", ")
        };
        if path.starts_with('/') {
            return match (site.storage_of(path), &site.storages) {
                (Some(source), _) => Some(source),
                (None, Some(storages)) => {
                    self.error(Code::OutsideStorage, [value(), ("known", known(storages))]);
                    None
                }
                (None, None) => {
                    self.warn(Code::PathUnchecked, [value()]);
                    Some(Source::Path(path.to_owned()))
                }
            };
        }
        // `name/path`, as our own files have it.
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        let there = site.storages.as_ref().is_none_or(|all| all.iter().any(|known| known.name == name));
        if there && NameRule::STORAGE.accepts(name) {
            Some(Source::Storage { name: name.to_owned(), path: rest.trim_matches('/').to_owned() })
        } else {
            let known = site.storages.as_deref().map_or_else(String::new, known);
            self.error(Code::OutsideStorage, [value(), ("known", known)]);
            None
        }
    }
}

/// What a name may be.
#[derive(Debug)]
pub(crate) struct NameRule {
    of: &'static str,
    letters: &'static str,
    example: &'static str,
    longest: usize,
    digit_first: bool,
    allowed: fn(char) -> bool,
}

impl NameRule {
    /// OpenPAI's rule and the signs that its forks add.
    pub(crate) const JOB: Self = Self {
        of: "job",
        letters: "letters, digits, `-`, `.`, `_` and `~`, at most 255 of them",
        example: "train-1",
        longest: 255,
        digit_first: true,
        allowed: |letter| letter.is_ascii_alphanumeric() || "-._~".contains(letter),
    };
    /// A role stands in names of variables and of hosts.
    pub(crate) const ROLE: Self = Self {
        of: "role",
        letters: "letters, digits and `_`, at most 40 of them",
        example: "worker",
        longest: 40,
        digit_first: true,
        allowed: |letter| letter.is_ascii_alphanumeric() || letter == '_',
    };
    /// OpenPAI's second file is stricter.
    pub(crate) const ROLE_V2: Self = Self {
        letters: "letters, digits and `_`, not beginning with a digit, at most 40 of them",
        digit_first: false,
        ..Self::ROLE
    };
    pub(crate) const LABEL: Self = Self {
        of: "port",
        letters: "letters, digits, `.`, `_`, `-` and `~`, at most 40 of them",
        example: "http",
        longest: 40,
        digit_first: true,
        allowed: |letter| letter.is_ascii_alphanumeric() || "._~-".contains(letter),
    };
    const STORAGE: Self = Self {
        of: "storage",
        letters: "lower-case letters, digits, `_` and `-`",
        example: "datasets",
        longest: 63,
        digit_first: true,
        allowed: |letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter),
    };

    pub(crate) fn accepts(&self, text: &str) -> bool {
        !text.is_empty()
            && text.len() <= self.longest
            && text.chars().all(self.allowed)
            && (self.digit_first || !text.starts_with(|letter: char| letter.is_ascii_digit()))
    }

    /// `text` with what does not fit replaced.
    fn nearest(&self, text: &str) -> String {
        let fitting = text.chars().map(|letter| if (self.allowed)(letter) { letter } else { '_' });
        let mut near: String = fitting.take(self.longest).collect();
        if !self.digit_first && near.starts_with(|letter: char| letter.is_ascii_digit()) {
            near.insert(0, '_');
        }
        if near.chars().any(|letter| letter.is_ascii_alphanumeric()) { near } else { self.example.to_owned() }
    }
}
