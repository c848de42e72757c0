//! The gateway's settings: one struct, one file (`berth.toml` in the data directory, table `[gateway]`), every key
//! documented. Environment variables win over the file. All mistakes are reported at once.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use serde::Deserialize;

/// What the gateway runs with.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `BERTH_DATA`: the data directory, shared with envd.
    pub(crate) data: PathBuf,
    /// `BERTH_HTTP`: where the console and the API listen.
    pub(crate) http: SocketAddr,
    /// The image of an instance whose creator names none.
    pub(crate) default_image: String,
    /// Lets browsers sign in over plain HTTP from another machine. Anyone on the way can then take the session.
    pub(crate) dangerous_plain_http: bool,
}

/// The file as it stands.
#[derive(Debug, Default, Deserialize)]
struct File {
    #[serde(default)]
    gateway: Table,
    /// envd's own table is envd's affair; any other is a mistake.
    #[serde(flatten)]
    others: BTreeMap<String, toml::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    http: Option<String>,
    default_image: Option<String>,
    dangerous_plain_http: Option<bool>,
}

/// All that is wrong with the settings.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Mistakes(Vec<String>);

impl Config {
    const HTTP: &str = "127.0.0.1:8080";
    const DEFAULT_IMAGE: &str = "localhost/berth/base:latest";

    /// Reads the environment and the file in the data directory.
    pub(crate) fn read() -> Result<Self, Mistakes> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let data = variable("BERTH_DATA").unwrap_or_else(|| "./.berth".to_owned());
        let data = std::path::absolute(&data)
            .map_err(|_| Mistakes(vec![format!("BERTH_DATA: `{data}` is not a path")]))?;
        let text = match std::fs::read_to_string(data.join("berth.toml")) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(Mistakes(vec![format!("{}: {error}", data.join("berth.toml").display())]));
            }
        };
        Self::from_parts(&data, &text, variable)
    }

    fn from_parts(
        data: &Path,
        text: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Mistakes> {
        let mut mistakes = Vec::new();
        let file: File = toml::from_str(text).unwrap_or_else(|error| {
            mistakes.push(format!("berth.toml: {}", error.to_string().trim_end()));
            File::default()
        });
        for table in file.others.keys().filter(|table| *table != "envd") {
            mistakes.push(format!("berth.toml: there is no table `[{table}]`; use `[gateway]` or `[envd]`"));
        }
        let http = variable("BERTH_HTTP").or(file.gateway.http).unwrap_or_else(|| Self::HTTP.to_owned());
        let http = http.parse().map_err(|_| {
            mistakes.push(format!(
                "BERTH_HTTP (`http`): `{http}` is not an address; write it like {}",
                Self::HTTP
            ));
        });
        match (http, mistakes.is_empty()) {
            (Ok(http), true) => Ok(Self {
                data: data.to_owned(),
                http,
                default_image: file.gateway.default_image.unwrap_or_else(|| Self::DEFAULT_IMAGE.to_owned()),
                dangerous_plain_http: file.gateway.dangerous_plain_http.unwrap_or(false),
            }),
            (Ok(_) | Err(()), _) => Err(Mistakes(mistakes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, http: Option<&str>) -> Result<Config, Mistakes> {
        Config::from_parts(Path::new("/data"), text, |name| {
            (name == "BERTH_HTTP").then_some(http?.to_owned())
        })
    }

    #[test]
    fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
        assert_eq!(read("", None).unwrap().http.port(), 8080);
        assert_eq!(read("[gateway]\nhttp = '127.0.0.1:9'", None).unwrap().http.port(), 9);
        assert_eq!(read("[gateway]\nhttp = '127.0.0.1:9'", Some("[::1]:7")).unwrap().http.port(), 7);
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        let mistakes = read("[gatewy]\n[envd]\nanything = 1", Some("nowhere")).unwrap_err().to_string();
        assert!(mistakes.contains("[gatewy]") && mistakes.contains("nowhere"), "{mistakes}");
        assert!(read("[gateway]\nhtpp = 'x'", None).unwrap_err().to_string().contains("htpp"));
    }
}
