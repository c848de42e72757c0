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
//! # What an instance's own files may take, the image and the storages apart.
//! disk_limit = "50G"
//! # The registries that images may come from; any with a public name if it is left out. One inside the site's network
//! # has to be named here. Images of this machine's own are always allowed.
//! registries = ["docker.io", "ghcr.io"]
//! # Where images of Docker Hub come from instead: a registry that has them, or fetches and keeps them.
//! hub_relay = "relay.example.org"
//! # The site's own registry, where saved images are: host and port. Without TLS only on this machine's loopback.
//! registry = "127.0.0.1:5000"
//! # Its login, where it asks for one, and the file that holds the password.
//! registry_user = "berth"
//! registry_password_file = "keys/registry-password"
//! # Where it keeps its files, if it is Berth's own: the room of images that are gone is given back there.
//! registry_files = "registry"
//! # The most layers of a saved image: before a save has more, the uppermost are merged. Engines take about 125.
//! image_layers_max = 100
//! # How layers of saved images are compressed: `gzip`, `zstd`, or `auto`, by what the engine understands.
//! image_compression = "auto"
//! # Where the networks of users get their addresses from: 256 for each user.
//! network_pool = "10.97.0.0/16"
//! # The tools that instances mount for apps that their image lacks.
//! tools = "$BERTH_DATA/tools"
//! # Certificates, in PEM, that instances trust instead of their image's own.
//! instance_ca = "/etc/ssl/certs/ca-certificates.crt"
//! # NVIDIA's management library, where the linker does not find it by itself.
//! nvml = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
//! # Start instances also when users cannot be kept apart on the network.
//! dangerous_no_firewall = false
//!
//! # One table for each storage. `home` is always there: these are its defaults.
//! [envd.storage.home]
//! root = "$BERTH_DATA/home"
//! # Where it appears in instances; `{user}` and `{group}` stand for their names.
//! at = "/userhome"
//! # What of it: the directory of the `user` or of the `group`, or the root itself, `shared` by all.
//! key = "user"
//! read_only = false
//! # Whom new directories belong to: `root` (open to any user of an image), a `uid:gid`, or `keep` if the site makes
//! # them. Files belong to whoever makes them, unless the host's mount or the file server says otherwise.
//! owner = "root"
//! # Only for these groups; for all if it is left out.
//! groups = []
//! ```
//!
//! `BERTH_DATA` is the data directory (default `./.berth`), `BERTH_AGENT` the agent's static binary (default:
//! `envd-agent` beside envd itself), `BERTH_TOOLS`, `BERTH_INSTANCE_CA`, `BERTH_NVML` and `BERTH_REGISTRY` (with `_USER`
//! `_PASSWORD_FILE` and `_FILES`) win over `tools`, `instance_ca`, `nvml` and `registry`, `BERTH_LOG` says what to log (default
//! `info`).

mod storage;

use std::{
    env, fmt, fs, io,
    path::{Path, PathBuf},
};

use ipnet::Ipv4Net;
use serde::de::DeserializeOwned;

use crate::{
    save::{compression::Compression, registry},
    storage::Storage,
    subnet,
};

const DATA_DEFAULT: &str = "./.berth";
const DOCKER_DEFAULT: &str = "unix:///var/run/docker.sock";
/// The longest path of a unix socket that the kernel takes.
const SOCKET_PATH_MAX: usize = 107;
const DISK_LIMIT_DEFAULT: u64 = 50 << 30;
/// Less than this and no command would run.
const DISK_LIMIT_MIN: u64 = 1 << 20;
const NETWORK_POOL_DEFAULT: &str = "10.97.0.0/16";

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) data: PathBuf,
    /// The path of the engine's socket.
    pub(crate) docker: PathBuf,
    pub(crate) gateway_user: Option<u32>,
    pub(crate) disk_limit_bytes: u64,
    /// All with a public name if it is `None`.
    pub(crate) registries: Option<Vec<String>>,
    /// Where images of Docker Hub come from instead.
    pub(crate) hub_relay: Option<String>,
    /// Where saved images are.
    pub(crate) registry: Option<registry::Settings>,
    /// Where the registry keeps its files, if it is our own.
    pub(crate) registry_files: Option<PathBuf>,
    /// The most layers of a saved image.
    pub(crate) image_layers_max: usize,
    /// How layers are compressed; by what the engine understands if it is `None`.
    pub(crate) image_compression: Option<Compression>,
    pub(crate) network_pool: Ipv4Net,
    pub(crate) dangerous_no_firewall: bool,
    pub(crate) storages: Vec<Storage>,
    pub(crate) agent: PathBuf,
    /// A directory; empty on a site without.
    pub(crate) tools: PathBuf,
    pub(crate) instance_ca: Option<PathBuf>,
    /// NVIDIA's management library, where the linker does not find it.
    pub(crate) nvml: Option<PathBuf>,
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
        let storages = storage::table(&data, file.storage, &mut mistakes);
        let agent = variable("BERTH_AGENT").map_or_else(beside_envd, PathBuf::from);
        let agent = absolute(&agent, &mut mistakes);
        if !agent.is_file() {
            mistakes.push(format!("no agent at `{}`; set `BERTH_AGENT` to its path", agent.display()));
        }
        let tools = variable("BERTH_TOOLS")
            .or(file.tools)
            .map_or_else(|| data.join("tools"), |named| data.join(named));
        let instance_ca = variable("BERTH_INSTANCE_CA").or(file.instance_ca).map(|named| data.join(named));
        if let Some(path) = instance_ca.as_ref().filter(|path| !path.is_file()) {
            mistakes
                .push(format!("`instance_ca` is `{}`, which is not a file of this machine", path.display()));
        }
        let nvml = variable("BERTH_NVML").or(file.nvml).map(|named| data.join(named));
        if let Some(path) = nvml.as_ref().filter(|path| !path.is_file()) {
            mistakes.push(format!("`nvml` is `{}`, which is not a file of this machine", path.display()));
        }
        let address = variable("BERTH_REGISTRY").or(file.registry);
        let password = variable("BERTH_REGISTRY_PASSWORD_FILE").or(file.registry_password);
        let login = variable("BERTH_REGISTRY_USER").or(file.registry_user).map(|user| (user, password));
        let registry = take_registry(&data, address, login, &mut mistakes);
        let registry_files =
            variable("BERTH_REGISTRY_FILES").or(file.registry_files).map(|path| data.join(path));
        let config = Self {
            data,
            docker,
            gateway_user: file.gateway_user,
            disk_limit_bytes: disk_limit(file.disk_limit.as_ref(), &mut mistakes),
            registries: file.registries,
            hub_relay: hub_relay(file.hub_relay, &mut mistakes),
            registry,
            registry_files,
            image_layers_max: layers_max(file.image_layers_max, &mut mistakes),
            image_compression: compression(file.image_compression.as_deref(), &mut mistakes),
            network_pool: network_pool(file.network_pool.as_deref(), &mut mistakes),
            dangerous_no_firewall: file.dangerous_no_firewall.unwrap_or(false),
            storages,
            agent,
            tools,
            instance_ca,
            nvml,
        };
        if config.socket().as_os_str().len() > SOCKET_PATH_MAX {
            mistakes.push(format!(
                "the data directory `{}` is too deep: the path of a socket in it has more than {SOCKET_PATH_MAX} bytes",
                config.data.display()
            ));
        }
        if mistakes.is_empty() { Ok(config) } else { Err(Mistakes(mistakes)) }
    }
}

const LAYERS_DEFAULT: usize = 100;
const LAYERS: std::ops::RangeInclusive<usize> = 3..=120;

/// The keys of the file, before they are checked.
#[derive(Debug, Default)]
struct File {
    docker: Option<String>,
    gateway_user: Option<u32>,
    disk_limit: Option<toml::Value>,
    registries: Option<Vec<String>>,
    hub_relay: Option<String>,
    registry: Option<String>,
    registry_user: Option<String>,
    registry_password: Option<String>,
    registry_files: Option<String>,
    image_layers_max: Option<u32>,
    image_compression: Option<String>,
    network_pool: Option<String>,
    dangerous_no_firewall: Option<bool>,
    tools: Option<String>,
    instance_ca: Option<String>,
    nvml: Option<String>,
    storage: toml::Table,
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
                "disk_limit" => file.disk_limit = Some(value),
                "hub_relay" => file.hub_relay = typed("envd.hub_relay", value, mistakes),
                "registries" => file.registries = typed("envd.registries", value, mistakes),
                "registry" => file.registry = typed("envd.registry", value, mistakes),
                "image_layers_max" => {
                    file.image_layers_max = typed("envd.image_layers_max", value, mistakes);
                }
                "image_compression" => {
                    file.image_compression = typed("envd.image_compression", value, mistakes);
                }
                "registry_files" => file.registry_files = typed("envd.registry_files", value, mistakes),
                "registry_user" => file.registry_user = typed("envd.registry_user", value, mistakes),
                "registry_password_file" => {
                    file.registry_password = typed("envd.registry_password_file", value, mistakes);
                }
                "network_pool" => file.network_pool = typed("envd.network_pool", value, mistakes),
                "dangerous_no_firewall" => {
                    file.dangerous_no_firewall = typed("envd.dangerous_no_firewall", value, mistakes);
                }
                "tools" => file.tools = typed("envd.tools", value, mistakes),
                "instance_ca" => file.instance_ca = typed("envd.instance_ca", value, mistakes),
                "nvml" => file.nvml = typed("envd.nvml", value, mistakes),
                "storage" => file.storage = typed("envd.storage", value, mistakes).unwrap_or_default(),
                _ => mistakes.push(format!("unknown key `envd.{key}`")),
            }
        }
        mistakes.extend(table.keys().map(|key| format!("unknown key `{key}`")));
        file
    }
}

/// It becomes the beginning of references: nothing but a host will do.
fn hub_relay(wanted: Option<String>, mistakes: &mut Vec<String>) -> Option<String> {
    let wanted = wanted?;
    let reference = format!("{wanted}/library/debian").parse::<oci_spec::distribution::Reference>();
    if reference.is_ok_and(|reference| reference.registry() == wanted) {
        return Some(wanted);
    }
    mistakes.push(format!(
        "`hub_relay` is `{wanted}`; it must be a host, with a port if need be, such as `relay.example.org`"
    ));
    None
}

fn compression(wanted: Option<&str>, mistakes: &mut Vec<String>) -> Option<Compression> {
    match wanted.unwrap_or("auto") {
        "auto" => None,
        "gzip" => Some(Compression::Gzip),
        "zstd" => Some(Compression::Zstd),
        other => {
            mistakes.push(format!("`image_compression` is `{other}`; it must be `auto`, `gzip` or `zstd`"));
            None
        }
    }
}

/// Engines have a limit of their own, and fewer than a few leave nothing to merge into.
fn layers_max(wanted: Option<u32>, mistakes: &mut Vec<String>) -> usize {
    let wanted = wanted.map_or(LAYERS_DEFAULT, |layers| usize::try_from(layers).unwrap_or(usize::MAX));
    if !LAYERS.contains(&wanted) {
        mistakes.push(format!(
            "`image_layers_max` is {wanted}; it must be one of {} to {}",
            LAYERS.start(),
            LAYERS.end()
        ));
    }
    wanted
}

fn take_registry(
    data: &Path,
    address: Option<String>,
    login: Option<(String, Option<String>)>,
    mistakes: &mut Vec<String>,
) -> Option<registry::Settings> {
    let address = address?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:[]".contains(&byte);
    let is_one = address.contains(['.', ':']) || address == "localhost";
    if !address.bytes().all(plain) || !is_one {
        mistakes.push(format!(
            "`registry` is `{address}`; it must be a host and a port, such as `127.0.0.1:5000` or `registry.example.org`"
        ));
    }
    let login = match login {
        None => None,
        Some((user, Some(file))) => Some((user, data.join(file))),
        Some(_) => {
            mistakes.push("`registry_user` needs `registry_password_file`".to_owned());
            None
        }
    };
    Some(registry::Settings { address, login })
}

/// A number of bytes, or a number with `K`, `M`, `G` or `T`.
fn disk_limit(value: Option<&toml::Value>, mistakes: &mut Vec<String>) -> u64 {
    let Some(value) = value else { return DISK_LIMIT_DEFAULT };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    let shift = match &text[digits.len()..] {
        "" => Some(0),
        "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        "T" => Some(40),
        _ => None,
    };
    let number =
        digits.parse::<u64>().ok().zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    match number {
        Some(bytes) if bytes >= DISK_LIMIT_MIN => bytes,
        Some(_) | None => {
            mistakes
                .push(format!("`disk_limit` is `{text}`; it must be a size of at least 1M, such as `50G`"));
            DISK_LIMIT_DEFAULT
        }
    }
}

fn network_pool(text: Option<&str>, mistakes: &mut Vec<String>) -> Ipv4Net {
    const WIDEST: u8 = 8;
    let text = text.unwrap_or(NETWORK_POOL_DEFAULT);
    match text.parse::<Ipv4Net>() {
        Ok(pool) if (WIDEST..=subnet::PREFIX).contains(&pool.prefix_len()) => pool.trunc(),
        Ok(_) | Err(_) => {
            mistakes.push(format!(
                "`network_pool` is `{text}`; it must be a range of private addresses with room for subnets of /{}, such as `{NETWORK_POOL_DEFAULT}`",
                subnet::PREFIX
            ));
            Ipv4Net::default()
        }
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

    const EXAMPLE: &str = include_str!("../../deploy/berth.example.toml");

    /// The example with every setting in it switched on.
    fn switched_on() -> String {
        let line = |line: &'static str| match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(|first: char| first.is_ascii_lowercase() || first == '[') => rest,
            Some(_) | None => line,
        };
        EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_example_is_understood_and_changes_nothing() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(read(data.path(), EXAMPLE, &[]).unwrap(), read(data.path(), "", &[]).unwrap());
        // NVIDIA's library is not on every machine.
        let agent = data.path().join("the-agent").display().to_string();
        read(data.path(), &switched_on(), &[("BERTH_NVML", &agent)]).unwrap();
    }

    #[test]
    fn the_example_documents_every_key() {
        let mut mistakes = Vec::new();
        let file = File::of(switched_on().parse().unwrap(), &mut mistakes);
        assert_eq!(mistakes, [""; 0]);
        // Without `..`: who adds a key does not get past here.
        let File {
            docker,
            gateway_user,
            disk_limit,
            registries,
            hub_relay,
            registry,
            registry_user,
            registry_password,
            registry_files,
            image_layers_max,
            image_compression,
            network_pool,
            dangerous_no_firewall,
            tools,
            instance_ca,
            nvml,
            storage,
        } = file;
        let documented = [
            ("docker", docker.is_some()),
            ("gateway_user", gateway_user.is_some()),
            ("disk_limit", disk_limit.is_some()),
            ("registries", registries.is_some()),
            ("hub_relay", hub_relay.is_some()),
            ("registry", registry.is_some()),
            ("registry_user", registry_user.is_some()),
            ("registry_password_file", registry_password.is_some()),
            ("registry_files", registry_files.is_some()),
            ("image_layers_max", image_layers_max.is_some()),
            ("image_compression", image_compression.is_some()),
            ("network_pool", network_pool.is_some()),
            ("dangerous_no_firewall", dangerous_no_firewall.is_some()),
            ("tools", tools.is_some()),
            ("instance_ca", instance_ca.is_some()),
            ("nvml", nvml.is_some()),
        ];
        for (key, is_there) in documented {
            assert!(is_there, "`envd.{key}` is not in deploy/berth.example.toml");
        }
        let home = storage["home"].as_table().unwrap();
        for key in keys_of_storages() {
            assert!(home.contains_key(&key), "`envd.storage.home.{key}` is not in deploy/berth.example.toml");
        }
    }

    /// As the refusal of one that there is not names them.
    fn keys_of_storages() -> Vec<String> {
        let mut mistakes = Vec::new();
        let odd = toml::toml! { [home]
        odd = 1 };
        storage::table(Path::new("/data"), odd, &mut mistakes);
        let (_, known) = mistakes[0].split_once("expected one of ").unwrap();
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_file_wins_over_the_variable_and_the_gateway_keeps_its_table() {
        let data = tempfile::tempdir().unwrap();
        let file = "[gateway]\nanything = 1\n[envd]\ndocker = '/run/a.sock'\ngateway_user = 990\ndisk_limit = '2G'\nnetwork_pool = '10.9.8.0/20'";
        let config = read(data.path(), file, &[("DOCKER_HOST", "unix:///run/b.sock")]).unwrap();
        assert_eq!(config.docker, Path::new("/run/a.sock"));
        assert_eq!((config.gateway_user, config.disk_limit_bytes), (Some(990), 2 << 30));
        assert_eq!(config.network_pool.to_string(), "10.9.0.0/20");
        let config = read(data.path(), "", &[("DOCKER_HOST", "unix:///run/b.sock")]).unwrap();
        assert_eq!(config.docker, Path::new("/run/b.sock"));
        assert_eq!((config.registries, config.dangerous_no_firewall), (None, false));
        assert_eq!((config.tools, config.instance_ca), (data.path().join("tools"), None));
        let config = read(data.path(), "[envd]\ntools = 'a'", &[("BERTH_TOOLS", "/b")]).unwrap();
        assert_eq!(config.tools, Path::new("/b"));
        let [home] = &config.storages[..] else { panic!("{:?}", config.storages) };
        assert_eq!((home.root.clone(), home.at.as_str()), (data.path().join("home"), "/userhome"));
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let data = tempfile::tempdir().unwrap();
        let file = "colour = 1\n[envd]\ndocker = 'tcp://10.0.0.1'\ngateway_user = 'me'\nspeed = 2\ndisk_limit = '5 GB'\nnetwork_pool = '10.0.0.0/30'\ninstance_ca = '/no/ca'\nhub_relay = 'https://relay'\nimage_compression = 'lz4'\n[envd.storage.home]\nroot = 'here'";
        let Mistakes(mistakes) = read(data.path(), file, &[("BERTH_AGENT", "/nowhere")]).unwrap_err();
        let about = [
            "gateway_user",
            "speed",
            "disk_limit",
            "network_pool",
            "colour",
            "docker",
            "storage.home",
            "/nowhere",
            "/no/ca",
            "hub_relay",
            "image_compression",
        ];
        for word in about {
            assert!(mistakes.iter().any(|mistake| mistake.contains(word)), "{word}: {mistakes:?}");
        }
        assert_eq!(mistakes.len(), about.len(), "{mistakes:?}");
    }
}
