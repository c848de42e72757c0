//! The gateway's settings: one struct, one file (`berth.toml` in the data directory, table `[gateway]`), every key
//! documented in `deploy/berth.example.toml`. Environment variables win over the file. All mistakes are reported at
//! once, and `gateway check-config` says of each setting where it comes from.

mod parts;
mod reader;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use ipnet::IpNet;

use self::reader::Reader;
pub(crate) use self::{
    parts::{ClusterSetting, DEFAULT_SHARE, PoolSetting, ShareSetting},
    reader::Setting,
};
use crate::listen;

/// What the gateway runs with.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `BERTH_DATA`: the data directory, shared with envd.
    pub(crate) data: PathBuf,
    /// `BERTH_HTTP`: where the console and the API listen.
    pub(crate) http: SocketAddr,
    /// `BERTH_SSH`: where SSH listens.
    pub(crate) ssh: SocketAddr,
    /// Where people reach SSH, if that is not where it listens: host and port.
    pub(crate) ssh_public: Option<(String, u16)>,
    /// The address that people type, without a slash at the end.
    pub(crate) url: Option<String>,
    /// Earlier addresses of the same site; they lead to `url`.
    pub(crate) old_addresses: Vec<SocketAddr>,
    /// The proxies that are believed who they speak for.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// `BERTH_METRICS`: where Prometheus may ask; nowhere else are the figures shown.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: Limits,
    pub(crate) apps: Apps,
    pub(crate) jobs: Jobs,
    /// `[[gateway.cluster]]`: at least one; what names none goes to the first.
    pub(crate) clusters: Vec<ClusterSetting>,
    /// `[[gateway.pool]]`
    pub(crate) pools: Vec<PoolSetting>,
    /// `[[gateway.share]]`: the shares that job files may name, `default` among them.
    pub(crate) shares: Vec<ShareSetting>,
    /// The image of an instance whose creator names none.
    pub(crate) default_image: String,
    /// The image with JupyterLab and TensorBoard, for what the site starts by itself.
    pub(crate) lab_image: String,
    /// Lets browsers sign in over plain HTTP from another machine. Anyone on the way can then take the session.
    pub(crate) dangerous_plain_http: bool,
    /// What the saved images of one user may take; nobody counts if it is `None`.
    pub(crate) image_quota_bytes: Option<u64>,
    /// Where saved images are: host and port of the site's own registry.
    pub(crate) registry: Option<String>,
    /// How the gateway signs in there: a name and the file with the password.
    pub(crate) registry_login: Option<(String, PathBuf)>,
    /// For how many days a removed user can be restored; after that their instances are deleted. Files never are.
    pub(crate) keep_removed_days: u32,
    /// Every setting in words, for `check-config`.
    pub(crate) settings: Vec<Setting>,
}

/// `[gateway.apps]`: where the pages of instances are. They are code that users wrote, so never at the console's own
/// origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Apps {
    pub(crate) mode: AppsMode,
    /// What the hosts of apps end with.
    pub(crate) domain: Option<String>,
    /// `BERTH_APPS`: where path mode listens.
    pub(crate) http: SocketAddr,
}

/// `[gateway.jobs]`: the line in which jobs and instances wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Jobs {
    /// How many times over the processors of a machine are given out: a limit to each, a possession of none.
    pub(crate) cpu_overcommit: u64,
    /// For how long the files of a failed job are kept whose owner wants that.
    pub(crate) keep_failed_hours: u64,
    /// For how long those who hold graphics processors may do nothing before they are stopped.
    pub(crate) idle_stop: Option<Duration>,
    /// Whether `idle_stop` is for jobs that run a command too.
    pub(crate) idle_stop_batch: bool,
    /// The highest priority that users may give; admins may give any.
    pub(crate) priority_max: u8,
    /// Whether what is over its user's quota is refused; else it waits.
    pub(crate) refuse_over_quota: bool,
    /// Whether everyone sees who has which graphics processor.
    pub(crate) show_holders: bool,
    /// The most that is kept of what one task writes.
    pub(crate) log_bytes_max: u64,
    /// `[gateway.aliases.paths]`: paths that only old job files know, and the storage (and the path in it) that has
    /// their files now. `{user}` in a path is the submitter's name.
    pub(crate) old_paths: BTreeMap<String, String>,
    /// `[gateway.aliases.registries]`: registries of old job files, or paths in one, and where
    /// their images are now.
    pub(crate) old_registries: BTreeMap<String, String>,
}

/// How apps are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppsMode {
    /// Each has a host of its own, and with it an origin of its own.
    Host,
    /// All share one host, each has a path: they can reach into each other.
    Path,
}

/// `[gateway.tls]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) certificate: Certificate,
    /// Where plain HTTP is answered with the `https` address.
    pub(crate) redirect_http: Option<SocketAddr>,
}

/// Where the certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Certificate {
    Files {
        cert: PathBuf,
        key: PathBuf,
    },
    /// Made once and kept in the data directory, for these names, those of the site among them.
    SelfSigned {
        names: Vec<String>,
    },
    Acme {
        domains: Vec<String>,
        email: String,
        directory: String,
    },
}

/// What one client, and all of them, may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Connections at once, those of WebSockets too.
    pub(crate) connections_max: usize,
    /// The head of a request.
    pub(crate) headers_max_bytes: u32,
    /// How long a client may take over the head of a request, and stay silent between two.
    pub(crate) headers_limit: Duration,
    /// How long a client may take over the TLS handshake.
    pub(crate) handshake_limit: Duration,
}

/// All that is wrong with the settings.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Mistakes(Vec<String>);

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            headers_max_bytes: 32 << 10,
            headers_limit: Duration::from_secs(15),
            handshake_limit: Duration::from_secs(10),
        }
    }
}

impl Config {
    const HTTP: &str = "127.0.0.1:8080";
    const APPS: &str = "127.0.0.1:8081";
    const SSH: &str = "127.0.0.1:2222";
    const DEFAULT_IMAGE: &str = "localhost/berth/base:latest";
    const LAB_IMAGE: &str = "localhost/berth/lab:latest";
    const ACME_DIRECTORY: &str = "https://acme-v02.api.letsencrypt.org/directory";

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

    pub(crate) fn from_parts(
        data: &Path,
        text: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Mistakes> {
        let mut reader = Reader::new(text, &variable);
        let config = Self::take(data, &mut reader);
        reader.finish().map(|settings| Self { settings, ..config })
    }

    /// Every key that there is. What is wrong is noted in the reader, and something stands in for it meanwhile.
    fn take(data: &Path, reader: &mut Reader<'_>) -> Self {
        let http = reader.address("http", Some("BERTH_HTTP"), Some(Self::HTTP));
        let ssh = reader.address("ssh", Some("BERTH_SSH"), Some(Self::SSH));
        let clusters = parts::take_clusters(data, reader);
        let mut config = Self {
            data: data.to_owned(),
            http: http.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))),
            ssh: ssh.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))),
            ssh_public: take_ssh_public(reader),
            url: take_url(reader),
            old_addresses: reader.addresses("old_addresses"),
            trusted_proxies: take_proxies(reader),
            metrics: reader.address("metrics", Some("BERTH_METRICS"), None),
            limits: take_limits(reader),
            apps: take_apps(reader),
            jobs: take_jobs(reader),
            pools: parts::take_pools(&clusters, reader),
            shares: parts::take_shares(reader),
            clusters,
            default_image: reader.text("default_image", None, Some(Self::DEFAULT_IMAGE)).unwrap_or_default(),
            lab_image: reader.text("lab_image", None, Some(Self::LAB_IMAGE)).unwrap_or_default(),
            image_quota_bytes: Some(reader.number("image_quota_gib", 0, 0..=1 << 20) << 30)
                .filter(|&bytes| bytes > 0),
            registry: reader.text("registry", Some("BERTH_REGISTRY"), None),
            registry_login: take_registry_login(data, reader),
            dangerous_plain_http: reader.flag("dangerous_plain_http"),
            keep_removed_days: u32::try_from(reader.number("keep_removed_days", 30, 1..=36_500))
                .unwrap_or(30),
            tls: take_tls(data, reader),
            settings: Vec::new(),
        };
        if config.dangerous_plain_http && config.tls.is_some() {
            reader.mistake(
                "`gateway.dangerous_plain_http` does not go with `[gateway.tls]`; remove one of them",
            );
        }
        if config.apps.mode == AppsMode::Path && config.tls.is_none() && !config.dangerous_plain_http {
            reader.mistake(
                "`gateway.apps.mode = \"path\"` without `[gateway.tls]` needs `gateway.dangerous_plain_http = true`",
            );
        }
        if !config.old_addresses.is_empty() && config.url.is_none() {
            reader.mistake("`gateway.old_addresses` lead to `gateway.url`, which is not set");
        }
        config.check_distinct(reader);
        config.check_wildcard(reader);
        let hosts = config.hosts();
        if let Some(Tls { certificate: Certificate::SelfSigned { names }, .. }) = &mut config.tls {
            names.extend(hosts);
        }
        config
    }

    /// Two listeners on one address is a mistake of writing, not of the machine.
    fn check_distinct(&self, reader: &mut Reader<'_>) {
        let redirect = self.tls.as_ref().and_then(|tls| tls.redirect_http);
        let apps = (self.apps.mode == AppsMode::Path).then_some(self.apps.http);
        let mut all: Vec<_> = [Some(self.http), Some(self.ssh), self.metrics, redirect, apps]
            .into_iter()
            .flatten()
            .chain(self.old_addresses.clone())
            .collect();
        all.retain(|address| address.port() != 0);
        all.sort_unstable();
        for pair in all.windows(2).filter(|pair| pair[0] == pair[1]) {
            reader.mistake(&format!("the address {} is given twice", pair[0]));
        }
    }

    /// The authority looks at the port of each name (TLS-ALPN-01), and a wildcard has none.
    fn check_wildcard(&self, reader: &mut Reader<'_>) {
        let Some(Tls { certificate: Certificate::Acme { domains, .. }, .. }) = &self.tls else { return };
        for domain in domains.iter().filter(|domain| domain.contains('*')) {
            reader.mistake(&format!(
                "`gateway.tls.acme.domains`: `{domain}` cannot be had by TLS-ALPN-01; name single hosts, or give files with `cert` and `key` in `[gateway.tls]`"
            ));
        }
        if let (AppsMode::Host, Some(domain)) = (self.apps.mode, &self.apps.domain) {
            reader.mistake(&format!(
                "`gateway.apps.domain` needs a certificate for `*.{domain}`, which `[gateway.tls.acme]` cannot get (TLS-ALPN-01); give files for it and the console with `cert` and `key` in `[gateway.tls]`, or set `gateway.apps.mode = \"path\"`"
            ));
        }
    }

    /// The names of this site: the console's, and those of apps.
    fn hosts(&self) -> Vec<String> {
        let url = self.url.as_deref().and_then(|url| url.parse::<http::Uri>().ok());
        let console = url.and_then(|url| url.host().map(|host| host.trim_matches(['[', ']']).to_owned()));
        let apps = self.apps.domain.as_ref().map(|domain| format!("*.{domain}"));
        console.into_iter().chain(apps).collect()
    }

    /// Whether TLS is ours, with a certificate that browsers trust: a host once promised to have one can be reached in no
    /// other way.
    pub(crate) fn keeps_to_tls(&self) -> bool {
        let certificate = self.tls.as_ref().map(|tls| &tls.certificate);
        matches!(certificate, Some(Certificate::Files { .. } | Certificate::Acme { .. }))
    }

    /// The address to tell people, given where the gateway listens in the end.
    pub(crate) fn console(&self, listening: SocketAddr) -> String {
        if let Some(url) = &self.url {
            return url.clone();
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        if listening.ip().is_loopback() || listening.ip().is_unspecified() {
            format!("{scheme}://localhost:{}", listening.port())
        } else {
            format!("{scheme}://{listening}")
        }
    }
}

fn take_registry_login(data: &Path, reader: &mut Reader<'_>) -> Option<(String, PathBuf)> {
    let user = reader.text("registry_user", Some("BERTH_REGISTRY_USER"), None);
    let file = reader.text("registry_password_file", Some("BERTH_REGISTRY_PASSWORD_FILE"), None);
    match (user, file) {
        (Some(user), Some(file)) => Some((user, data.join(file))),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            reader.mistake("`gateway.registry_user` and `gateway.registry_password_file` only go together");
            None
        }
    }
}

fn take_proxies(reader: &mut Reader<'_>) -> Vec<IpNet> {
    let mut proxies = Vec::new();
    for text in reader.texts("trusted_proxies") {
        match text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)) {
            Ok(net) => proxies.push(net),
            Err(_) => reader.mistake(&format!(
                "`gateway.trusted_proxies`: `{text}` is neither an address nor a network; write it like `10.0.0.7` or `10.0.0.0/24`"
            )),
        }
    }
    proxies
}

fn take_url(reader: &mut Reader<'_>) -> Option<String> {
    let url = reader.text("url", None, None)?;
    let right = url.parse::<http::Uri>().is_ok_and(|parsed| {
        matches!(parsed.scheme_str(), Some("http" | "https"))
            && parsed.authority().is_some_and(|authority| !authority.as_str().contains('@'))
            && matches!(parsed.path_and_query().map(http::uri::PathAndQuery::as_str), None | Some("/"))
    });
    if !right {
        reader.mistake(&format!(
            "`gateway.url` is `{url}`; write it like `https://berth.example.org`, with nothing after the name"
        ));
    }
    Some(url.trim_end_matches('/').to_owned())
}

fn take_ssh_public(reader: &mut Reader<'_>) -> Option<(String, u16)> {
    let text = reader.text("ssh_public", None, None)?;
    let parsed = text.parse::<http::uri::Authority>().ok().filter(|public| !public.as_str().contains('@'));
    let host = parsed.as_ref().map(|public| public.host().trim_matches(['[', ']']).to_owned());
    let port = parsed.as_ref().and_then(http::uri::Authority::port_u16).filter(|port| *port != 0);
    let public = host.filter(|host| !host.is_empty()).zip(port);
    if public.is_none() {
        reader.mistake(&format!(
            "`gateway.ssh_public` is `{text}`; write a host and a port, such as `ssh.example.org:22`"
        ));
    }
    public
}

fn take_apps(reader: &mut Reader<'_>) -> Apps {
    let mode = match reader.text("apps.mode", None, Some("host")).as_deref() {
        Some("path") => AppsMode::Path,
        Some("host") | None => AppsMode::Host,
        Some(other) => {
            reader.mistake(&format!("`gateway.apps.mode` is `{other}`; it must be `host` or `path`"));
            AppsMode::Host
        }
    };
    let domain = reader.text("apps.domain", None, None);
    if let Some(domain) = domain.as_ref().filter(|domain| !is_domain(domain)) {
        reader.mistake(&format!(
            "`gateway.apps.domain` is `{domain}`; write it like `apps.example.org`, in lower case and without a port"
        ));
    }
    let http = reader.address("apps.http", Some("BERTH_APPS"), Some(Config::APPS));
    Apps { mode, domain, http: http.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))) }
}

/// The engine has the last 4 GiB of what a task wrote, a good part of it the engine's own marks: a gateway that was away
/// goes on where it was only while all is still there.
const LOG_LIMIT_MAX_MIB: u64 = 2048;

fn take_jobs(reader: &mut Reader<'_>) -> Jobs {
    Jobs {
        cpu_overcommit: reader.number("jobs.cpu_overcommit", 4, 1..=64),
        keep_failed_hours: reader.number("jobs.keep_failed_hours", 24, 1..=8760),
        idle_stop: take_idle_stop(reader),
        idle_stop_batch: reader.flag("jobs.idle_stop_batch"),
        priority_max: take_priority_max(reader),
        refuse_over_quota: reader.flag("jobs.refuse_over_quota"),
        show_holders: !reader.flag("jobs.hide_holders"),
        log_bytes_max: reader.number("jobs.log_limit_mib", 1024, 1..=LOG_LIMIT_MAX_MIB) << 20,
        old_paths: take_old_paths(reader),
        old_registries: take_old_registries(reader),
    }
}

fn take_priority_max(reader: &mut Reader<'_>) -> u8 {
    let (least, most) = (queue::PRIORITY_MIN, queue::PRIORITY_MAX);
    let number = reader.number("jobs.priority_max", most.into(), least.into()..=most.into());
    u8::try_from(number).unwrap_or(most)
}

fn take_idle_stop(reader: &mut Reader<'_>) -> Option<Duration> {
    let text = reader.text("jobs.idle_stop", None, None)?;
    // A bare number would be so many of what nobody said: it is no time at all.
    let time = jobfile::parse_duration(&text, Duration::ZERO).filter(|time| *time >= Duration::from_secs(10));
    if time.is_none() {
        reader.mistake(&format!(
            "`gateway.jobs.idle_stop` is `{text}`; write a time of at least ten seconds, such as `4h` or `90m`"
        ));
    }
    time
}

fn take_old_paths(reader: &mut Reader<'_>) -> BTreeMap<String, String> {
    let paths = reader.pairs("aliases.paths");
    for (path, storage) in &paths {
        let parts = |text: &str| text.split('/').all(|part| part != "." && part != "..");
        if !path.starts_with('/') || path.len() == 1 || !parts(path) {
            reader.mistake(&format!(
                "`gateway.aliases.paths`: `{path}` is not an absolute path, such as `/home/{{user}}`"
            ));
        }
        if storage.is_empty() || storage.starts_with('/') || !parts(storage) {
            reader.mistake(&format!(
                "`gateway.aliases.paths`: `{storage}` is not a storage, such as `home` or `nas/old`"
            ));
        }
    }
    paths
}

fn take_old_registries(reader: &mut Reader<'_>) -> BTreeMap<String, String> {
    let registries = reader.pairs("aliases.registries");
    // A colon is that of a port: a name has its tag in the job file.
    let fits = |text: &str| {
        let (_host, path) = text.split_once('/').unwrap_or((text, ""));
        let unfit = |letter: char| letter.is_whitespace() || letter.is_control() || letter == '@';
        !text.contains(unfit) && !path.contains(':') && text.split('/').all(|part| !part.is_empty())
    };
    for text in registries.iter().flat_map(|(old, now)| [old, now]).filter(|text| !fits(text)) {
        reader.mistake(&format!(
            "`gateway.aliases.registries`: `{text}` is no registry, nor a path in one; write it like \
             `registry.example.org:5000` or `registry.example.org/team`, without `https://` and without a tag"
        ));
    }
    registries
}

fn is_domain(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let label = |label: &str| !label.is_empty() && label.len() <= 63 && label.bytes().all(letter);
    text.len() <= 180 && text.split('.').all(label)
}

fn take_limits(reader: &mut Reader<'_>) -> Limits {
    let Limits { connections_max, headers_max_bytes, headers_limit, handshake_limit } = Limits::default();
    let connections = u64::try_from(connections_max).unwrap_or(u64::MAX);
    let connections = reader.number("connections_max", connections, 16..=1_000_000);
    let bytes = reader.number("headers_max_bytes", u64::from(headers_max_bytes), 8192..=1 << 20);
    Limits {
        connections_max: usize::try_from(connections).unwrap_or(connections_max),
        headers_max_bytes: u32::try_from(bytes).unwrap_or(headers_max_bytes),
        headers_limit: reader.seconds("headers_seconds", headers_limit),
        handshake_limit: reader.seconds("handshake_seconds", handshake_limit),
    }
}

fn take_tls(data: &Path, reader: &mut Reader<'_>) -> Option<Tls> {
    let wanted = reader.has_table("tls");
    // All keys are taken whatever they say, so that none of them is unknown.
    let files = (reader.text("tls.cert", None, None), reader.text("tls.key", None, None));
    let self_signed = reader.flag("tls.self_signed");
    let names = reader.texts("tls.names");
    let redirect_http = reader.address("tls.redirect_http", None, None);
    let acme = reader.has_table("tls.acme");
    let domains = reader.texts("tls.acme.domains");
    let email = reader.text("tls.acme.email", None, None);
    let directory = reader.text("tls.acme.directory", None, Some(Config::ACME_DIRECTORY)).unwrap_or_default();
    if !wanted {
        return None;
    }
    let certificate = match (files, self_signed, acme) {
        ((Some(cert), Some(key)), false, false) => {
            // A relative path is meant from where the file is that names it.
            let (cert, key) = (data.join(cert), data.join(key));
            if let Err(error) = listen::tls::read_files(&cert, &key) {
                reader.mistake(&format!("`gateway.tls`: {error}"));
            }
            Certificate::Files { cert, key }
        }
        ((None, None), true, false) => Certificate::SelfSigned { names: names.clone() },
        ((None, None), false, true) => {
            if domains.is_empty() {
                reader.mistake("`gateway.tls.acme.domains` is empty; name the domain that people type");
            }
            if !directory.starts_with("https://") {
                reader.mistake(&format!(
                    "`gateway.tls.acme.directory` is `{directory}`; it must begin with `https://`"
                ));
            }
            let email = email.filter(|email| email.contains('@')).unwrap_or_else(|| {
                reader.mistake(
                    "`gateway.tls.acme.email` is not set; the authority writes to it when something is wrong",
                );
                String::new()
            });
            Certificate::Acme { domains, email, directory }
        }
        ((Some(_), None) | (None, Some(_)), _, _) => {
            reader.mistake(
                "`gateway.tls.cert` and `gateway.tls.key` go together: the one is useless without the other",
            );
            return None;
        }
        ((Some(_), Some(_)) | (None, None), _, _) => {
            reader.mistake(
                "`[gateway.tls]` wants exactly one of: `cert` and `key`, `self_signed = true`, or `[gateway.tls.acme]`",
            );
            return None;
        }
    };
    if !names.is_empty() && !self_signed {
        reader.mistake("`gateway.tls.names` is for `self_signed = true` only");
    }
    Some(Tls { certificate, redirect_http })
}
