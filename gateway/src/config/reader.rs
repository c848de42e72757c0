//! Takes settings out of the file and the environment, and remembers each with where it came from and all that was
//! wrong. A key that nobody took is unknown.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::SocketAddr,
    ops::RangeInclusive,
    time::Duration,
};

use gateway_api::setting::{EffectiveSetting, SettingSource};
use serde::{Serialize, de::DeserializeOwned};

use super::Mistakes;

/// One setting as it is in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    /// As it would stand in the file; `None` is not set.
    pub(crate) value: Option<String>,
    pub(crate) source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File,
    Environment(&'static str),
}

impl From<&Setting> for EffectiveSetting {
    fn from(setting: &Setting) -> Self {
        let (source, variable) = match setting.source {
            Source::Default => (SettingSource::Default, None),
            Source::File => (SettingSource::File, None),
            Source::Environment(name) => (SettingSource::Environment, Some(name.to_owned())),
        };
        Self { key: setting.key.to_owned(), value: setting.value.clone(), source, variable }
    }
}

pub(super) struct Reader<'a> {
    /// What is left of `[gateway]`, by dotted key.
    left: BTreeMap<String, toml::Value>,
    /// The tables within it.
    tables: BTreeSet<String>,
    variable: &'a dyn Fn(&str) -> Option<String>,
    settings: Vec<Setting>,
    mistakes: Vec<String>,
}

impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.as_deref().unwrap_or("not set");
        match self.source {
            Source::Default => write!(out, "{} = {value} (default)", self.key),
            Source::File => write!(out, "{} = {value} (berth.toml)", self.key),
            Source::Environment(name) => write!(out, "{} = {value} ({name})", self.key),
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &str, variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        let mut reader = Self {
            left: BTreeMap::new(),
            tables: BTreeSet::new(),
            variable,
            settings: Vec::new(),
            mistakes: Vec::new(),
        };
        let mut file = text.parse::<toml::Table>().unwrap_or_else(|error| {
            reader.mistake(&format!("berth.toml is not TOML: {}", error.to_string().trim_end()));
            toml::Table::new()
        });
        match file.remove("gateway") {
            None => {}
            Some(toml::Value::Table(table)) => reader.spread("", table),
            Some(_) => reader.mistake("`gateway` is a table: write its settings below `[gateway]`"),
        }
        // envd's own table is envd's affair; any other is a mistake.
        for other in file.keys().filter(|key| *key != "envd") {
            reader
                .mistake(&format!("berth.toml: there is no table `[{other}]`; use `[gateway]` or `[envd]`"));
        }
        reader
    }

    fn spread(&mut self, prefix: &str, table: toml::Table) {
        for (key, value) in table {
            let key = format!("{prefix}{key}");
            if let toml::Value::Table(inner) = value {
                self.spread(&format!("{key}."), inner);
                self.tables.insert(key);
            } else {
                self.left.insert(key, value);
            }
        }
    }

    pub(super) fn mistake(&mut self, what: &str) {
        self.mistakes.push(what.to_owned());
    }

    pub(super) fn has_table(&self, name: &str) -> bool {
        self.tables.contains(name)
    }

    pub(super) fn text(
        &mut self,
        key: &'static str,
        variable: Option<&'static str>,
        default: Option<&str>,
    ) -> Option<String> {
        let in_file: Option<String> = self.in_file(key);
        let set = variable.and_then(|name| Some((name, (self.variable)(name)?)));
        let (value, source) = match (set, in_file) {
            (Some((name, value)), _) => (Some(value), Source::Environment(name)),
            (None, Some(value)) => (Some(value), Source::File),
            (None, None) => (default.map(str::to_owned), Source::Default),
        };
        self.note(key, value.as_ref().map(|value| toml::Value::from(value.clone()).to_string()), source);
        value
    }

    pub(super) fn texts(&mut self, key: &'static str) -> Vec<String> {
        let in_file: Option<Vec<String>> = self.in_file(key);
        self.noted(key, in_file, Vec::new(), |value| toml::Value::from(value.clone()).to_string())
    }

    /// Tables that are written one after the other.
    pub(super) fn tables<T: DeserializeOwned + Serialize>(&mut self, key: &'static str) -> Vec<T> {
        let in_file: Option<Vec<T>> = self.in_file(key);
        let show =
            |value: &Vec<T>| toml::Value::try_from(value).map(|value| value.to_string()).unwrap_or_default();
        self.noted(key, in_file, Vec::new(), show)
    }

    /// A table whose keys are the site's own.
    pub(super) fn pairs(&mut self, key: &'static str) -> BTreeMap<String, String> {
        let below = format!("{key}.");
        self.tables.retain(|table| table != key && !table.starts_with(&below));
        let names: Vec<_> = self.left.keys().filter(|name| name.starts_with(&below)).cloned().collect();
        let mut pairs = BTreeMap::new();
        for name in names {
            if let Some(value) = self.in_file::<String>(&name) {
                pairs.insert(name[below.len()..].to_owned(), value);
            }
        }
        let in_file = (!pairs.is_empty()).then_some(pairs);
        self.noted(key, in_file, BTreeMap::new(), |pairs| toml::Value::from(pairs.clone()).to_string())
    }

    pub(super) fn flag(&mut self, key: &'static str) -> bool {
        let in_file = self.in_file(key);
        self.noted(key, in_file, false, ToString::to_string)
    }

    pub(super) fn number(&mut self, key: &'static str, default: u64, range: RangeInclusive<u64>) -> u64 {
        let in_file: Option<u64> = self.in_file(key);
        let value = self.noted(key, in_file, default, ToString::to_string);
        if range.contains(&value) {
            return value;
        }
        self.mistake(&format!("`gateway.{key}` is {value}; it must be {} to {}", range.start(), range.end()));
        default
    }

    pub(super) fn seconds(&mut self, key: &'static str, default: Duration) -> Duration {
        Duration::from_secs(self.number(key, default.as_secs(), 1..=3600))
    }

    pub(super) fn address(
        &mut self,
        key: &'static str,
        variable: Option<&'static str>,
        default: Option<&str>,
    ) -> Option<SocketAddr> {
        let text = self.text(key, variable, default)?;
        self.parse_address(key, variable, &text)
    }

    pub(super) fn addresses(&mut self, key: &'static str) -> Vec<SocketAddr> {
        let texts = self.texts(key);
        texts.iter().filter_map(|text| self.parse_address(key, None, text)).collect()
    }

    fn parse_address(&mut self, key: &str, variable: Option<&str>, text: &str) -> Option<SocketAddr> {
        let address = text.parse().ok();
        if address.is_none() {
            let or = variable.map(|name| format!(" (or {name})")).unwrap_or_default();
            self.mistake(&format!(
                "`gateway.{key}`{or}: `{text}` is not an address; write it like {}",
                super::Config::HTTP
            ));
        }
        address
    }

    /// All settings, or all mistakes.
    pub(super) fn finish(mut self) -> Result<Vec<Setting>, Mistakes> {
        for key in std::mem::take(&mut self.left).into_keys() {
            self.mistake(&format!("berth.toml: unknown key `gateway.{key}`"));
        }
        let known: Vec<_> = self.settings.iter().map(|setting| setting.key).collect();
        for table in std::mem::take(&mut self.tables) {
            if !known
                .iter()
                .any(|key| key.strip_prefix(table.as_str()).is_some_and(|rest| rest.starts_with('.')))
            {
                self.mistake(&format!("berth.toml: there is no table `[gateway.{table}]`"));
            }
        }
        if self.mistakes.is_empty() { Ok(self.settings) } else { Err(Mistakes(self.mistakes)) }
    }

    #[cfg(test)]
    pub(super) fn settings(&self) -> &[Setting] {
        &self.settings
    }

    fn in_file<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.left.remove(key)?;
        value
            .try_into()
            .map_err(|error| self.mistake(&format!("`gateway.{key}`: {}", error.to_string().trim())))
            .ok()
    }

    fn noted<T>(&mut self, key: &'static str, in_file: Option<T>, default: T, show: fn(&T) -> String) -> T {
        let source = if in_file.is_some() { Source::File } else { Source::Default };
        let value = in_file.unwrap_or(default);
        self.note(key, Some(show(&value)), source);
        value
    }

    fn note(&mut self, key: &'static str, value: Option<String>, source: Source) {
        self.settings.push(Setting { key, value, source });
    }
}
