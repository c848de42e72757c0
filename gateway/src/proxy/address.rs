//! Where apps are: the address of each, and what an address that a browser sent means.
//!
//! Nothing here is decoded or searched for: a host is split into labels and a path into segments, and each is compared
//! whole. `lab--train--alice` is an app, an instance's slug and a user's name; neither of the first two holds `--`.
//! Where the name of the user does not fit into a host name, the instance's id stands for both: `lab--0190f2c3…`.

use std::{borrow::Cow, fmt, sync::Arc};

use gateway_api::{AppName, InstanceId, Slug, UserName};

use crate::{
    config::{Apps, AppsMode, Config},
    store::InstanceRow,
};

/// The longest label of a host name.
const LABEL_MAX: usize = 63;
/// The domain of apps on one's own machine, which needs no DNS.
const LOCAL: &str = "localhost";
/// The console's name there, of which apps in its frames are neighbours. Browsers take `localhost` and each host right
/// below it for sites of their own, and many keep nothing for a framed page of another site; this name and all below it
/// are one site.
pub(crate) const NEAR: &str = "berth.localhost";

/// Which app of which instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AppAddress {
    pub(crate) app: AppName,
    pub(crate) whose: Whose,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Whose {
    Named { slug: Slug, user: UserName },
    Id(InstanceId),
}

/// The addresses of this site.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    /// The console's origin, such as `https://berth.example.org`.
    pub(crate) console: String,
    apps: Place,
}

#[derive(Debug, Clone)]
enum Place {
    /// `scheme://LABEL.domain` and perhaps a port.
    Hosts {
        scheme: &'static str,
        domain: String,
        port: String,
        /// For want of a domain this is the machine's own: [`LOCAL`], and [`NEAR`] beside it.
        is_local: bool,
    },
    /// An origin for all of them.
    Paths {
        origin: String,
    },
    Nowhere,
}

/// What a host is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Console,
    App(Arc<AppAddress>),
    /// Below the domain of apps, but none.
    NoApp,
}

impl AppAddress {
    /// The address of an app of `instance`.
    pub(crate) fn of(app: AppName, instance: &InstanceRow) -> Self {
        let named =
            Self { app, whose: Whose::Named { slug: instance.slug.clone(), user: instance.user.clone() } };
        if named.fits_a_host() { named } else { Self { app, whose: Whose::Id(instance.id.clone()) } }
    }

    /// The label of the app's host.
    pub(crate) fn label(&self) -> String {
        self.to_string()
    }

    /// Reads what [`Self::label`] wrote, and nothing else.
    pub(crate) fn from_label(label: &str) -> Option<Self> {
        let (app, rest) = label.split_once("--")?;
        let app: AppName = app.parse().ok()?;
        let whose = match rest.split_once("--") {
            Some((slug, user)) => Whose::Named { slug: slug.parse().ok()?, user: user.parse().ok()? },
            None => Whose::Id(format!("ins_{rest}").parse().ok()?),
        };
        let address = Self { app, whose };
        (app.is_page_of_instance() && address.is_plain() && label.len() <= LABEL_MAX).then_some(address)
    }

    /// Whether an instance is the one that this speaks of.
    pub(crate) fn is_of(&self, app: AppName, instance: &InstanceRow) -> bool {
        self.app == app
            && match &self.whose {
                Whose::Named { slug, user } => *slug == instance.slug && *user == instance.user,
                Whose::Id(id) => *id == instance.id,
            }
    }

    fn fits_a_host(&self) -> bool {
        self.is_plain() && self.label().len() <= LABEL_MAX
    }

    /// Whether its letters are those of a host.
    fn is_plain(&self) -> bool {
        match &self.whose {
            Whose::Named { user, .. } => !user.as_str().contains(['.', '_']) && !user.as_str().ends_with('-'),
            Whose::Id(_) => true,
        }
    }

    /// The path of the app in path mode, which begins and ends with `/`.
    fn path(&self) -> String {
        match &self.whose {
            Whose::Named { slug, user } => format!("/{user}/{slug}/{}/", self.app),
            Whose::Id(id) => format!("/-/{}/{}/", id.as_str(), self.app),
        }
    }
}

impl fmt::Display for AppAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Piece by piece: it stands in the line of every request, and a format would be read anew for each.
        fmt::Display::fmt(&self.app, to)?;
        to.write_str("--")?;
        match &self.whose {
            Whose::Named { slug, user } => {
                to.write_str(slug.as_str())?;
                to.write_str("--")?;
                to.write_str(user.as_str())
            }
            Whose::Id(id) => to.write_str(id.as_str().trim_start_matches("ins_")),
        }
    }
}

impl Addresses {
    /// `listening` is where the console is to be found, `apps` where the listener of path mode is, if there is one.
    pub(crate) fn new(config: &Config, console: String, apps: Option<std::net::SocketAddr>) -> Self {
        let scheme = if console.starts_with("https:") { "https" } else { "http" };
        let authority = console.split_once("://").map_or("", |(_, authority)| authority);
        let (host, port) = split_port(authority);
        let Apps { mode, domain, http } = &config.apps;
        let apps = match mode {
            AppsMode::Path => {
                let port = apps.map_or(http.port(), |address| address.port());
                Place::Paths { origin: format!("{scheme}://{host}:{port}") }
            }
            AppsMode::Host => {
                let is_local = domain.is_none();
                // No certificate covers all that is right below `localhost`.
                let local = if scheme == "https" { NEAR } else { LOCAL };
                let domain = domain.clone().or_else(|| is_loopback(host).then(|| local.to_owned()));
                let port = port.map(|port| format!(":{port}")).unwrap_or_default();
                domain.map_or(Place::Nowhere, |domain| Place::Hosts { scheme, domain, port, is_local })
            }
        };
        Self { console, apps }
    }

    /// What a page of the console may frame, as a content security policy says it.
    pub(crate) fn frames(&self) -> String {
        match &self.apps {
            Place::Hosts { scheme, domain, port, .. } => format!("{scheme}://*.{domain}{port}"),
            Place::Paths { origin } => origin.clone(),
            Place::Nowhere => "'none'".to_owned(),
        }
    }

    /// The origins of the console, as a content security policy says who may frame.
    pub(crate) fn consoles(&self) -> String {
        match &self.apps {
            Place::Hosts { scheme, port, is_local: true, .. } => {
                let others = [LOCAL, NEAR, "127.0.0.1"].map(|host| format!("{scheme}://{host}{port}"));
                others.join(" ")
            }
            Place::Hosts { .. } | Place::Paths { .. } | Place::Nowhere => self.console.clone(),
        }
    }

    /// Where a browser that asked `host` for the console does better: apps can be framed there in any browser.
    pub(crate) fn better_console(&self, host: &str) -> Option<String> {
        let Place::Hosts { scheme, port, is_local: true, .. } = &self.apps else { return None };
        let (name, asked) = split_port(host);
        let is_ours = asked == port.strip_prefix(':');
        (is_ours && is_loopback(name)).then(|| format!("{scheme}://{NEAR}{port}"))
    }

    /// Whether apps are told apart by their path.
    pub(crate) fn by_path(&self) -> bool {
        matches!(self.apps, Place::Paths { .. })
    }

    /// Whether browsers reach the site by `https`.
    pub(crate) fn is_secure(&self) -> bool {
        self.console.starts_with("https:")
    }

    /// Where an app begins, without a slash at the end, and the path that all its pages share.
    pub(crate) fn of(&self, address: &AppAddress) -> Option<(String, String)> {
        self.near(address, "")
    }

    /// The same, as a neighbour of the console at `host` if there is such an address.
    pub(crate) fn near(&self, address: &AppAddress, host: &str) -> Option<(String, String)> {
        match &self.apps {
            Place::Hosts { scheme, domain, port, is_local } => {
                let is_near = *is_local && split_port(host).0.eq_ignore_ascii_case(NEAR);
                let domain = if is_near { NEAR } else { domain.as_str() };
                Some((format!("{scheme}://{address}.{domain}{port}"), self.prefix(address).into_owned()))
            }
            Place::Paths { origin } => Some((origin.clone(), self.prefix(address).into_owned())),
            Place::Nowhere => None,
        }
    }

    /// The path that all pages of an app share.
    pub(crate) fn prefix(&self, address: &AppAddress) -> Cow<'static, str> {
        if self.by_path() { address.path().into() } else { "/".into() }
    }

    /// What the console's listener was asked for, given the `Host` of a request.
    pub(crate) fn host(&self, host: &str) -> Host {
        let Place::Hosts { domain, is_local, .. } = &self.apps else { return Host::Console };
        let (name, _) = split_port(host);
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let below = |domain: &str| name.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.'));
        if *is_local && name == NEAR {
            return Host::Console;
        }
        let near = below(NEAR).filter(|_| *is_local);
        let Some(label) = near.or_else(|| below(domain)) else { return Host::Console };
        AppAddress::from_label(label).map_or(Host::NoApp, |address| Host::App(Arc::new(address)))
    }

    /// What the listener of path mode was asked for, and how long the part of the path is that says so.
    pub(crate) fn path(path: &str) -> Option<(AppAddress, usize)> {
        let mut segments = path.strip_prefix('/')?.splitn(4, '/');
        let (first, second, app) = (segments.next()?, segments.next()?, segments.next()?);
        let app: AppName = app.parse().ok()?;
        let whose = if first == "-" {
            Whose::Id(second.parse().ok()?)
        } else {
            Whose::Named { user: first.parse().ok()?, slug: second.parse().ok()? }
        };
        let address = AppAddress { app, whose };
        let length = address.path().len() - 1;
        app.is_page_of_instance().then_some((address, length))
    }
}

fn is_loopback(host: &str) -> bool {
    host == LOCAL || host.starts_with("127.") || host == "[::1]"
}

/// A host and its port.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, Some(port)),
        Some(_) | None => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn addresses(text: &str, console: &str) -> Addresses {
        let config = Config::from_parts(Path::new("/data"), text, |_| None).unwrap();
        Addresses::new(&config, console.to_owned(), None)
    }

    #[test]
    fn hosts_are_compared_label_by_label() {
        let local = addresses("", "http://localhost:8080");
        let app = |label: &str| Host::App(Arc::new(AppAddress::from_label(label).unwrap()));
        for (host, expected) in [
            ("localhost:8080", Host::Console),
            ("127.0.0.1:8080", Host::Console),
            ("lab--train--alice.localhost:8080", app("lab--train--alice")),
            ("LAB--Train--alice.LocalHost", app("lab--train--alice")),
            ("lab--train--alice.localhost.:8080", app("lab--train--alice")),
            ("3000--train-1--a--b.localhost", app("3000--train-1--a--b")),
            ("lab--0190f2c3a1b27cc09d3e5f60718293a4.localhost", app("lab--0190f2c3a1b27cc09d3e5f60718293a4")),
            ("x.lab--train--alice.localhost", Host::NoApp),
            ("lab--train--alice.x.localhost", Host::NoApp),
            ("lab--train--alice%2elocalhost", Host::Console),
            ("lab--train--alicelocalhost", Host::Console),
            ("notlocalhost", Host::Console),
            ("app.localhost", Host::NoApp),
            (".localhost", Host::NoApp),
            ("lab--tr%61in--alice.localhost", Host::NoApp),
            ("terminal--train--alice.localhost", Host::NoApp),
            ("desktop--train--alice.localhost", Host::NoApp),
            ("0--train--alice.localhost", Host::NoApp),
            ("080--train--alice.localhost", Host::NoApp),
            ("65536--train--alice.localhost", Host::NoApp),
            ("lab--train--li.lei.localhost", Host::NoApp),
            ("lab--train.localhost", Host::NoApp),
            ("lab----alice.localhost", Host::NoApp),
            ("berth.localhost:8080", Host::Console),
            ("lab--train--alice.berth.localhost:8080", app("lab--train--alice")),
            ("lab--train--alice.berth.berth.localhost", Host::NoApp),
            ("x.berth.localhost", Host::NoApp),
        ] {
            assert_eq!(local.host(host), expected, "{host}");
        }
        let far = addresses("[gateway.apps]\ndomain = 'apps.example.org'", "https://berth.example.org");
        assert_eq!(far.host("lab--train--alice.apps.example.org"), app("lab--train--alice"));
        assert_eq!(far.host("lab--train--alice.evil-apps.example.org"), Host::Console);
        assert_eq!(far.host("lab--train--alice.apps.example.org.evil.org"), Host::Console);
        assert_eq!(far.host("lab--train--alice.berth.localhost"), Host::Console);
        let nowhere = addresses("", "https://berth.example.org");
        assert_eq!(nowhere.of(&AppAddress::from_label("lab--train--alice").unwrap()), None);
    }

    #[test]
    fn on_ones_own_machine_the_console_has_a_name_that_apps_are_neighbours_of() {
        let local = addresses("", "http://localhost:8080");
        let near = Some("http://berth.localhost:8080".to_owned());
        assert_eq!(local.better_console("localhost:8080"), near);
        assert_eq!(local.better_console("127.0.0.1:8080"), near);
        for other in ["berth.localhost:8080", "localhost:9090", "localhost", "10.0.0.5:8080"] {
            assert_eq!(local.better_console(other), None, "{other}");
        }
        let lab = AppAddress::from_label("lab--train--alice").unwrap();
        let at = |host: &str| local.near(&lab, host).unwrap().0;
        assert_eq!(at("berth.localhost:8080"), "http://lab--train--alice.berth.localhost:8080");
        assert_eq!(at("localhost:8080"), "http://lab--train--alice.localhost:8080");
        assert_eq!(at("evil.example"), "http://lab--train--alice.localhost:8080");

        let secure = addresses("", "https://localhost:8443");
        assert_eq!(secure.of(&lab).unwrap().0, "https://lab--train--alice.berth.localhost:8443");

        let far = addresses("[gateway.apps]\ndomain = 'apps.example.org'", "https://berth.example.org");
        assert_eq!(far.better_console("localhost:8080"), None);
        assert_eq!(
            far.near(&lab, "berth.localhost").unwrap().0,
            "https://lab--train--alice.apps.example.org"
        );
        assert_eq!(far.consoles(), "https://berth.example.org");
    }

    #[test]
    fn every_address_leads_back() {
        let address = |user: &str, app: &str| AppAddress {
            app: app.parse().unwrap(),
            whose: Whose::Named { slug: "train-1".parse().unwrap(), user: user.parse().unwrap() },
        };
        let local = addresses("", "http://localhost:8080");
        assert_eq!(local.frames(), "http://*.localhost:8080");
        let (origin, prefix) = local.of(&address("alice", "lab")).unwrap();
        assert_eq!((origin.as_str(), prefix.as_str()), ("http://lab--train-1--alice.localhost:8080", "/"));
        assert!(!address("li.lei", "lab").fits_a_host() && !address("a-", "lab").fits_a_host());

        let paths = addresses(
            "[gateway]\ndangerous_plain_http = true\n[gateway.apps]\nmode = 'path'",
            "http://10.0.0.5:8080",
        );
        assert_eq!(paths.frames(), "http://10.0.0.5:8081");
        let (origin, prefix) = paths.of(&address("li.lei", "lab")).unwrap();
        assert_eq!((origin.as_str(), prefix.as_str()), ("http://10.0.0.5:8081", "/li.lei/train-1/lab/"));
        assert_eq!(paths.host("lab--train-1--alice.localhost"), Host::Console);
    }

    #[test]
    fn paths_are_compared_segment_by_segment() {
        let named = |path: &str| Addresses::path(path).map(|(address, length)| (address.path(), length));
        for right in ["/alice/train/lab", "/alice/train/lab/", "/alice/train/lab/a/b", "/alice/train/lab//x"]
        {
            assert_eq!(named(right), Some(("/alice/train/lab/".to_owned(), 16)), "{right}");
        }
        for wrong in [
            "/",
            "/alice",
            "/alice/train",
            "//alice/train/lab",
            "/alice//train/lab",
            "/alice/train%2flab/x",
            "/alice/train/%6cab/",
            "/alice/../lab/",
            "/alice/train/labx",
            "/alice/train/lab;x/",
            "/alice/train/terminal/",
            "/Alice/train/lab/",
            "/alice/train/0/",
            "/-/train/lab/",
            "alice/train/lab",
        ] {
            assert_eq!(named(wrong), None, "{wrong}");
        }
    }
}
