//! What a process finds around it: environment, user, directory, program; and how it is started.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use envd_api::agent::{AgentSpec, CERTIFICATES};

use crate::{
    account::{self, Account, AccountError},
    enter::{self, Entry, Helper},
    program::{self, ProgramError},
};

/// Each user's own storage, in every instance.
const LASTING: &str = "/userhome";
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// `TERM` where nothing else is said: what the console's terminal and nearly all others speak.
pub(crate) const DEFAULT_TERM: &str = "xterm-256color";
/// What the engine set for the agent itself and not for the image's user.
const OWN: [&str; 7] = ["HOME", "LOGNAME", "PWD", "SHELL", "SHLVL", "TERM", "USER"];

/// What programs look for certificates by, each in its own way.
const CERTIFICATE_VARIABLES: [&str; 6] = [
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
];

/// The surroundings of every process of this instance.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) account: Account,
    pub(crate) env: BTreeMap<String, String>,
    directory: String,
}

/// Why a process cannot be started. The text is for the user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("`{0}` cannot be started: {1}")]
    System(String, std::io::Error),
}

// === impl Surroundings ===

impl Surroundings {
    /// The image's surroundings with `extra` on top. Looked up anew each time: users change `/etc/passwd`.
    pub(crate) fn new(spec: &AgentSpec, extra: &BTreeMap<String, String>) -> Result<Self, StartError> {
        let account = account::look_up(&spec.user)?;
        let engine = std::env::vars().filter(|(name, _)| !OWN.contains(&name.as_str()));
        let certificates = Path::new(CERTIFICATES).is_file().then_some(CERTIFICATES);
        let env = environment(engine, spec, extra, &account, certificates);
        Ok(Self { account, env, directory: spec.cwd.clone() })
    }

    pub(crate) fn path(&self) -> &str {
        self.env.get("PATH").map_or(DEFAULT_PATH, String::as_str)
    }

    pub(crate) fn home(&self) -> &str {
        self.env.get("HOME").map_or("/", String::as_str)
    }

    /// The image's `WORKDIR`, made for the image's user if it is missing; `/` when that cannot be.
    pub(crate) fn workdir(&self) -> PathBuf {
        let workdir = Path::new("/").join(&self.directory);
        if workdir.is_dir() {
            return workdir;
        }
        if std::fs::create_dir_all(&workdir).is_err() {
            return PathBuf::from("/");
        }
        let (uid, gid) = (self.account.uid, self.account.gid);
        // Where that cannot be, it can still be read.
        let _as_it_is = std::os::unix::fs::chown(&workdir, Some(uid), Some(gid));
        workdir
    }

    /// The directory of a terminal: the image's `WORKDIR`, else the user's home.
    pub(crate) fn terminal_directory(&self) -> PathBuf {
        if self.directory.is_empty() || self.directory == "/" {
            self.home_directory()
        } else {
            self.workdir()
        }
    }

    /// The user's home, or `/` when it is not there.
    pub(crate) fn home_directory(&self) -> PathBuf {
        let home = Path::new("/").join(self.home());
        if home.is_dir() { home } else { PathBuf::from("/") }
    }

    /// Where what is made outlives the instance: apps begin here. The home where there is no such folder.
    pub(crate) fn lasting_directory(&self) -> PathBuf {
        let lasting = PathBuf::from(LASTING);
        if lasting.is_dir() { lasting } else { self.home_directory() }
    }

    /// A folder as people name it: from the user's home, with or without `~`. `None` if it is not there.
    pub(crate) fn folder(&self, named: &str) -> Option<PathBuf> {
        let home = self.home_directory();
        let folder = match named.strip_prefix("~") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            Some(_) | None => home.join(named),
        };
        folder.is_dir().then_some(folder)
    }

    /// A part of this program that runs as the image's user.
    pub(crate) fn helper(&self, helper: Helper, argument: &str, directory: &Path) -> Command {
        let argv = [OsString::from("berth"), OsString::from(argument)];
        self.program(Path::new(helper.word()), &argv, directory, false)
    }

    /// A directory that the user named. It must be there.
    pub(crate) fn directory(&self, named: &str) -> Result<PathBuf, StartError> {
        let directory = self.workdir().join(named);
        if directory.is_dir() {
            Ok(directory)
        } else {
            Err(ProgramError::NoDirectory(named.to_owned()).into())
        }
    }

    /// The command that runs `argv` in `directory`, by way of [`enter`].
    pub(crate) fn command(
        &self,
        argv: &[String],
        directory: &Path,
        tty: bool,
    ) -> Result<Command, StartError> {
        let name = argv.first().ok_or(ProgramError::Nothing)?;
        let program = program::find(name, self.path(), directory)?;
        let argv: Vec<_> = argv.iter().map(OsString::from).collect();
        Ok(self.program(&program, &argv, directory, tty))
    }

    /// As [`Self::command`], for a program that was found already.
    pub(crate) fn program(&self, program: &Path, argv: &[OsString], directory: &Path, tty: bool) -> Command {
        let entry = Entry { account: &self.account, tty, directory, program, argv };
        let mut command = enter::command(&entry);
        command.env_clear().envs(&self.env);
        command
    }
}

/// What the engine set (such as `HOSTNAME` and the GPUs), then the image's and the user's own, then the call's, then
/// what a login would set where all of them are silent.
fn environment(
    engine: impl Iterator<Item = (String, String)>,
    spec: &AgentSpec,
    extra: &BTreeMap<String, String>,
    account: &Account,
    certificates: Option<&str>,
) -> BTreeMap<String, String> {
    let mut env: BTreeMap<_, _> = engine.collect();
    env.extend(spec.env.clone());
    env.extend(extra.clone());
    env.retain(|name, value| !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'));
    let mut default = |name: &str, value: Option<&str>| {
        if let Some(value) = value
            && !env.contains_key(name)
        {
            env.insert(name.to_owned(), value.to_owned());
        }
    };
    default("PATH", Some(DEFAULT_PATH));
    default("HOME", Some(&account.home));
    default("USER", account.name.as_deref());
    default("LOGNAME", account.name.as_deref());
    default("SHELL", account.shell.as_deref());
    for name in CERTIFICATE_VARIABLES {
        default(name, certificates);
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_outdoes_the_image_and_the_image_outdoes_the_defaults() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let account = Account {
            uid: 1,
            gid: 1,
            groups: vec![1],
            name: Some("alice".to_owned()),
            home: "/home/alice".to_owned(),
            shell: None,
        };
        let spec = AgentSpec {
            generation: 1,
            command: Vec::new(),
            env: map(&[("A", "image"), ("B", "image"), ("USER", "someone")]),
            user: String::new(),
            cwd: String::new(),
            links: BTreeMap::new(),
            aliases: BTreeMap::new(),
            code: None,
            hold: false,
        };
        let engine = map(&[("A", "engine"), ("HOSTNAME", "box")]);
        let env = environment(
            engine.into_iter(),
            &spec,
            &map(&[("B", "call"), ("SSL_CERT_FILE", "call"), ("", "x"), ("C=", "x")]),
            &account,
            Some("/ca"),
        );
        assert_eq!(
            env,
            map(&[
                ("A", "image"),
                ("B", "call"),
                ("CURL_CA_BUNDLE", "/ca"),
                ("GIT_SSL_CAINFO", "/ca"),
                ("HOME", "/home/alice"),
                ("HOSTNAME", "box"),
                ("LOGNAME", "alice"),
                ("NODE_EXTRA_CA_CERTS", "/ca"),
                ("PATH", DEFAULT_PATH),
                ("PIP_CERT", "/ca"),
                ("REQUESTS_CA_BUNDLE", "/ca"),
                ("SSL_CERT_FILE", "call"),
                ("USER", "someone"),
            ])
        );
    }
}
