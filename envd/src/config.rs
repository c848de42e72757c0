//! The configuration: `$BERTH_DATA/berth.toml`, its table `[envd]`, and a few variables.
//!
//! The file is shared with the gateway, whose table is none of our business. Everything is read before anything is
//! done, and all mistakes are told at once.
//!
//! ```toml
//! [envd]
//! # The engine's socket. Default: $DOCKER_HOST, else unix:///var/run/docker.sock.
//! docker = "unix:///var/run/docker.sock"
//! # The user (a number) that the gateway runs as, when it is not envd's own.
//! gateway_user = 990
//!
//! [envd.storage]
//! # Where the homes of users are kept. Default: $BERTH_DATA/home.
//! home = "/srv/berth/home"
//! ```
//!
//! `BERTH_DATA` is the data directory (default `./.berth`), `BERTH_AGENT` the agent's static binary (default:
//! `envd-agent` beside envd itself), `BERTH_LOG` what to log (default `info`).

use std::{
    env, fmt, fs, io,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use crate::storage::Storages;

const DATA_DEFAULT: &str = "./.berth";
const DOCKER_DEFAULT: &str = "unix:///var/run/docker.sock";
/// The longest path of a unix socket that the kernel takes.
const SOCKET_PATH_MAX: usize = 107;

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) data: PathBuf,
    /// The path of the engine's socket.
    pub(crate) docker: PathBuf,
    pub(crate) gateway_user: Option<u32>,
    pub(crate) home: PathBuf,
    pub(crate) agent: PathBuf,
}

/// All that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Mistakes(Vec<String>);

impl fmt::Display for Mistakes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.join("\n"))
    }
}

impl Config {
    /// Reads the file and the variables of this process.
    pub(crate) fn read() -> Result<Self, Mistakes> {
        Self::read_with(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.data.join("envd.sock")
    }

    fn read_with(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Mistakes> {
        let mut mistakes = Vec::new();
        let data = variable("BERTH_DATA").unwrap_or_else(|| DATA_DEFAULT.to_owned());
        let data = absolute(Path::new(&data), &mut mistakes);
        let mut file = File::read(&data.join("berth.toml"), &mut mistakes);

        let docker = file
            .docker
            .take()
            .or_else(|| variable("DOCKER_HOST"))
            .unwrap_or_else(|| DOCKER_DEFAULT.to_owned());
        let docker = PathBuf::from(docker.strip_prefix("unix://").unwrap_or(&docker));
        if !docker.is_absolute() {
            mistakes.push(format!(
                "`docker` is `{}`; it must be a unix socket such as `{DOCKER_DEFAULT}`, since instances mount directories of this machine",
                docker.display()
            ));
        }
        let home = file.home.take().map_or_else(|| data.join("home"), PathBuf::from);
        if !home.is_absolute() {
            mistakes.push(format!("`storage.home` is `{}`; it must be an absolute path", home.display()));
        } else if !Storages::is_closed(&home) {
            let home = home.display();
            mistakes.push(format!(
                "`{home}` is open to other users of this machine; close it with `chmod 700 {home}`"
            ));
        }
        let agent = variable("BERTH_AGENT").map_or_else(beside_envd, PathBuf::from);
        let agent = absolute(&agent, &mut mistakes);
        if !agent.is_file() {
            mistakes.push(format!("no agent at `{}`; set `BERTH_AGENT` to its path", agent.display()));
        }
        let config = Self { data, docker, gateway_user: file.gateway_user, home, agent };
        if config.socket().as_os_str().len() > SOCKET_PATH_MAX {
            mistakes.push(format!(
                "the data directory `{}` is too deep: the path of a socket in it has more than {SOCKET_PATH_MAX} bytes",
                config.data.display()
            ));
        }
        if mistakes.is_empty() { Ok(config) } else { Err(Mistakes(mistakes)) }
    }
}

/// The keys of the file, before they are checked.
#[derive(Debug, Default)]
struct File {
    docker: Option<String>,
    gateway_user: Option<u32>,
    home: Option<String>,
}

impl File {
    fn read(path: &Path, mistakes: &mut Vec<String>) -> Self {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::default(),
            Err(error) => {
                mistakes.push(format!("cannot read `{}`: {error}", path.display()));
                return Self::default();
            }
        };
        match text.parse::<toml::Table>() {
            Ok(table) => Self::of(table, mistakes),
            Err(error) => {
                mistakes.push(format!("`{}` is not TOML: {}", path.display(), error.to_string().trim()));
                Self::default()
            }
        }
    }

    fn of(mut table: toml::Table, mistakes: &mut Vec<String>) -> Self {
        let mut file = Self::default();
        table.remove("gateway");
        for (key, value) in section(&mut table, "envd", mistakes) {
            match key.as_str() {
                "docker" => file.docker = typed("envd.docker", value, mistakes),
                "gateway_user" => file.gateway_user = typed("envd.gateway_user", value, mistakes),
                "storage" => {
                    let mut storage = toml::Table::from_iter([(key, value)]);
                    for (key, value) in section(&mut storage, "storage", mistakes) {
                        match key.as_str() {
                            "home" => file.home = typed("envd.storage.home", value, mistakes),
                            _ => mistakes.push(format!("unknown key `envd.storage.{key}`")),
                        }
                    }
                }
                _ => mistakes.push(format!("unknown key `envd.{key}`")),
            }
        }
        mistakes.extend(table.keys().map(|key| format!("unknown key `{key}`")));
        file
    }
}

fn section(table: &mut toml::Table, name: &str, mistakes: &mut Vec<String>) -> toml::Table {
    table.remove(name).and_then(|value| typed(name, value, mistakes)).unwrap_or_default()
}

fn typed<T: DeserializeOwned>(name: &str, value: toml::Value, mistakes: &mut Vec<String>) -> Option<T> {
    value.try_into().map_err(|error| mistakes.push(format!("`{name}`: {}", error.to_string().trim()))).ok()
}

fn absolute(path: &Path, mistakes: &mut Vec<String>) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|error| {
        mistakes.push(format!("`{}` is not a path: {error}", path.display()));
        path.to_owned()
    })
}

fn beside_envd() -> PathBuf {
    env::current_exe().map_or_else(|_| "envd-agent".into(), |envd| envd.with_file_name("envd-agent"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &Path, file: &str, more: &[(&str, &str)]) -> Result<Config, Mistakes> {
        fs::write(data.join("berth.toml"), file).unwrap();
        fs::write(data.join("the-agent"), b"").unwrap();
        let agent = data.join("the-agent").display().to_string();
        Config::read_with(|name| {
            let given = more.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            given.or(match name {
                "BERTH_DATA" => Some(data.display().to_string()),
                "BERTH_AGENT" => Some(agent.clone()),
                _ => None,
            })
        })
    }

    #[test]
    fn the_file_wins_over_the_variable_and_the_gateway_keeps_its_table() {
        let data = tempfile::tempdir().unwrap();
        let file = "[gateway]\nanything = 1\n[envd]\ndocker = '/run/a.sock'\ngateway_user = 990\n[envd.storage]\nhome = '/srv/none'";
        let config = read(data.path(), file, &[("DOCKER_HOST", "unix:///run/b.sock")]).unwrap();
        assert_eq!(config.docker, Path::new("/run/a.sock"));
        assert_eq!((config.gateway_user, config.home), (Some(990), "/srv/none".into()));
        let config = read(data.path(), "", &[("DOCKER_HOST", "unix:///run/b.sock")]).unwrap();
        assert_eq!(config.docker, Path::new("/run/b.sock"));
        assert_eq!(config.home, data.path().join("home"));
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let data = tempfile::tempdir().unwrap();
        let file = "colour = 1\n[envd]\ndocker = 'tcp://10.0.0.1'\ngateway_user = 'me'\nspeed = 2\n[envd.storage]\nhome = 'here'\nscratch = '/s'";
        let Mistakes(mistakes) = read(data.path(), file, &[("BERTH_AGENT", "/nowhere")]).unwrap_err();
        let about = ["gateway_user", "envd.speed", "scratch", "colour", "docker", "storage.home", "/nowhere"];
        for word in about {
            assert!(mistakes.iter().any(|mistake| mistake.contains(word)), "{word}: {mistakes:?}");
        }
        assert_eq!(mistakes.len(), about.len(), "{mistakes:?}");
    }
}
