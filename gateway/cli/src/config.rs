//! What `berth login` keeps: the gateway's address, the user and the token.
//!
//! The file is readable by its owner alone and replaced as a whole, so that two shells signing in at once leave one
//! whole file. A token is only ever sent to the gateway that gave it.

use std::{
    env,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use gateway_api::client::Client;
use serde::{Deserialize, Serialize};

use crate::{failure::Said, words::Words};

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Config {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

impl Config {
    pub(crate) fn load() -> anyhow::Result<Self> {
        let path = path()?;
        match fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).with_context(|| format!("`{}` cannot be read", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("`{}` cannot be read", path.display())),
        }
    }

    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let path = path()?;
        self.save_to(&path).with_context(|| format!("`{}` cannot be written", path.display()))
    }

    fn save_to(&self, path: &Path) -> anyhow::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(write_whole(path, &toml::to_string(self)?)?)
    }

    /// The gateway and the token to speak with: the environment's before the file's.
    fn address(self, url: Option<String>, token: Option<String>) -> Option<(String, Option<String>)> {
        let url = url.or_else(|| self.url.clone())?;
        let same = self.url.is_some_and(|kept| canonical(&kept) == canonical(&url));
        Some((url, token.or(self.token.filter(|_| same))))
    }
}

/// Writes a file that is there as it was, or whole: never a part of it. What a link leads to is written, not the link.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(format!(".{}", std::process::id()));
    // One that a killed process of the same number left behind is in the way.
    let _ = fs::remove_file(&unfinished);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// A client for the gateway that is signed in to.
pub(crate) fn client(words: Words) -> anyhow::Result<Client> {
    let Some((url, token)) = Config::load()?.address(variable("BERTH_URL"), variable("BERTH_TOKEN")) else {
        return Err(Said { what: words.no_gateway(), hint: Some(words.hint_login()) }.into());
    };
    Ok(Client::new(&url, token)?)
}

/// The folder of the file, for what else is kept.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(path()?)?;
    Ok(path.parent().unwrap_or(Path::new("/")).to_owned())
}

fn path() -> anyhow::Result<PathBuf> {
    if let Some(path) = env::var_os("BERTH_CONFIG").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    // A relative XDG_CONFIG_HOME is to be ignored, says its specification.
    let folder = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = match folder {
        Some(folder) => folder,
        None => env::home_dir().context("there is no home directory; set `BERTH_CONFIG`")?.join(".config"),
    };
    Ok(folder.join("berth").join("config.toml"))
}

pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn canonical(url: &str) -> &str {
    url.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn kept() -> Config {
        let text = |text: &str| Some(text.to_owned());
        Config { url: text("http://a:8080"), user: text("alice"), token: text("kept") }
    }

    #[test]
    fn a_kept_token_goes_only_to_its_own_gateway() {
        let check = |url: Option<&str>, token: Option<&str>, expected: (&str, Option<&str>)| {
            let (to, with) = kept().address(url.map(str::to_owned), token.map(str::to_owned)).unwrap();
            assert_eq!((to.as_str(), with.as_deref()), expected);
        };
        check(None, None, ("http://a:8080", Some("kept")));
        check(Some("http://a:8080/"), None, ("http://a:8080/", Some("kept")));
        check(Some("http://b:8080"), None, ("http://b:8080", None));
        check(Some("http://b:8080"), Some("mine"), ("http://b:8080", Some("mine")));
        check(None, Some("mine"), ("http://a:8080", Some("mine")));
        assert_eq!(Config::default().address(None, None), None);
    }

    #[test]
    fn the_file_is_its_owners_alone_and_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/berth/config.toml");
        for _ in 0..2 {
            kept().save_to(&path).unwrap();
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(toml::from_str::<Config>(&fs::read_to_string(&path).unwrap()).unwrap(), kept());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }
}
