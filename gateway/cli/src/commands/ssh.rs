//! `berth ssh`, `config-ssh`, `cp` and `ssh-key`: the system's own `ssh`, told where to go and whom to trust.
//!
//! `berth` keeps a key of its own beside its settings, registers it on first use (the challenge is signed by
//! `ssh-keygen`), and pins the host key that the API tells. So nothing needs to be configured, and nobody is asked
//! whether a fingerprint is right.

use std::{
    fmt::Write as _,
    fs,
    os::unix::{fs::DirBuilderExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use gateway_api::{
    Code, Slug,
    job::Job,
    ssh::{AddSshKey, SIGNATURE_NAMESPACE, SshKey},
};
use jiff::Timestamp;

use super::Session;
use crate::{
    config,
    failure::{self, Said, Status},
    output,
    words::{Title, Words},
};

#[derive(Debug, Args)]
#[command(trailing_var_arg = true)]
pub(crate) struct Ssh {
    /// The instance; the address works before it runs
    name: String,
    /// Print where it is, for other clients, and the host key's fingerprint
    #[arg(long)]
    info: bool,
    /// A command to run instead of a shell
    #[arg(allow_hyphen_values = true)]
    command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigSsh {
    /// Print it instead of writing it
    #[arg(long)]
    print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Copy {
    /// What to copy and, last, where to: a path, or NAME:PATH in an instance
    #[arg(required = true, num_args = 2..)]
    paths: Vec<String>,
    /// Folders too
    #[arg(short, long)]
    recursive: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SshKeyCommand {
    /// List your keys
    Ls(List),
    /// Add a key that you have
    Add(Add),
    /// Make a pair of keys and add the public half
    New(New),
    /// Remove keys, by name or id; what they opened is closed
    Rm(Remove),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The file of the key, with or without `.pub`
    file: PathBuf,
    /// What you call it [default: the key's comment]
    #[arg(long)]
    name: Option<String>,
    /// Without a proof that you have the private half: then `ssh USER+INSTANCE@…` comes first
    #[arg(long)]
    unproved: bool,
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// What you call it
    name: String,
    /// Where the private half goes; the public one goes beside it
    #[arg(long, value_name = "FILE", default_value = "berth_key")]
    out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
}

/// What a client needs to know of the door.
#[derive(Debug)]
struct Door {
    user: String,
    host: String,
    port: u16,
    /// Holds the key, the pinned host key and the configuration.
    folder: PathBuf,
}

// === ssh, cp, config-ssh ===

pub(crate) async fn ssh(arguments: Ssh, session: &Session) -> anyhow::Result<Status> {
    let slug = slug_of(&arguments.name, session).await?;
    if arguments.info {
        return info(slug.as_str(), session).await;
    }
    enter(slug.as_str(), &arguments.command, session).await
}

/// What the door calls it. The name is checked here, where a wrong one can be told from the nearest. A task has its
/// address before it is there, and between two tries of its job.
async fn slug_of(name: &str, session: &Session) -> anyhow::Result<Slug> {
    let error = match session.client.instance(name).await {
        Ok(instance) => return Ok(instance.slug),
        Err(error) => error,
    };
    if error.code() == Some(Code::NotFound)
        && let Some(slug) = Slug::asked_for(name)
    {
        let jobs = session.client.jobs(false).await?;
        if coming(&jobs).any(|task| task == slug) {
            return Ok(slug);
        }
    }
    Err(session.explain(name, error).await)
}

/// Turns into `ssh`.
pub(crate) async fn enter(slug: &str, line: &[String], session: &Session) -> anyhow::Result<Status> {
    let door = Door::ready(session).await?;
    let mut command = Command::new("ssh");
    command.args(door.options()).args(["-p", &door.port.to_string()]);
    command.arg(door.address(slug));
    if !line.is_empty() {
        command.arg("--").args(line);
    }
    Err(became(command, session.words))
}

/// What any other client needs to be told.
async fn info(slug: &str, session: &Session) -> anyhow::Result<Status> {
    let (me, told) = (session.client.me().await?, session.client.ssh_door().await?);
    let host = host(told.host, session)?;
    let rows = [
        (Title::Command, format!("ssh {}+{slug}@{host} -p {}", me.name, told.port)),
        (Title::Host, host),
        (Title::Port, told.port.to_string()),
        (Title::User, format!("{}+{slug}", me.name)),
        (Title::Fingerprint, told.fingerprint),
    ];
    output::data(&output::details(session.words, rows))?;
    Ok(Status::DONE)
}

fn host(told: Option<String>, session: &Session) -> anyhow::Result<String> {
    let host = told.or_else(|| session.client.host_and_port().map(|(host, _)| host));
    host.context("the gateway's address has no host")
}

pub(crate) async fn copy(arguments: Copy, session: &Session) -> anyhow::Result<Status> {
    let door = Door::ready(session).await?;
    let mut command = Command::new("scp");
    command.args(door.options()).args(["-P", &door.port.to_string()]);
    if arguments.recursive {
        command.arg("-r");
    }
    command.arg("--");
    for path in &arguments.paths {
        match in_instance(path) {
            Some((name, path)) => {
                let slug = slug_of(name, session).await?;
                command.arg(format!("{}:{path}", door.address(slug.as_str())))
            }
            None => command.arg(path),
        };
    }
    Err(became(command, session.words))
}

pub(crate) async fn config_ssh(arguments: ConfigSsh, session: &Session) -> anyhow::Result<Status> {
    let door = Door::ready(session).await?;
    let (instances, jobs) = (session.client.instances().await?, session.client.jobs(false).await?);
    let mut slugs: Vec<_> = instances.iter().map(|instance| instance.slug.to_string()).collect();
    slugs.extend(coming(&jobs).map(|slug| slug.to_string()));
    let text = door.configuration(&slugs);
    if arguments.print {
        output::data(text.trim_end())?;
        return Ok(Status::DONE);
    }
    let file = door.folder.join("config");
    fs::write(&file, text).with_context(|| format!("`{}` cannot be written", file.display()))?;
    let home = std::env::home_dir().context("there is no home directory")?;
    include(&home.join(".ssh"), &file)?;
    let first = slugs.first().map_or("NAME", String::as_str);
    output::say(&session.words.ssh_configured(&file.display().to_string(), first));
    Ok(Status::DONE)
}

/// The name and the path of what is in an instance, as `scp` tells it from a path of this machine: by a colon before any
/// slash. `JOB/ROLE/0:PATH` is a task, unless there is a file of that name here.
fn in_instance(path: &str) -> Option<(&str, &str)> {
    let (name, there) = path.split_once(':').filter(|(name, _)| !name.is_empty())?;
    let parts: Vec<_> = name.split('/').collect();
    let is_word = |part: &&str| {
        part.starts_with(|letter: char| letter.is_alphanumeric())
            && part.chars().all(|letter| letter.is_alphanumeric() || "-_.~".contains(letter))
    };
    let is_task = matches!(parts.len(), 2 | 3) && parts.iter().all(is_word) && !Path::new(path).exists();
    (parts.len() == 1 || is_task).then_some((name, there))
}

/// What the tasks of jobs that have not ended are called, also before they are there.
fn coming(jobs: &[Job]) -> impl Iterator<Item = Slug> {
    let roles = jobs.iter().filter(|job| job.ended.is_none());
    let roles = roles.flat_map(|job| job.roles.iter().map(move |role| (job, role)));
    roles.flat_map(|(job, role)| (0..role.tasks).map(|index| Slug::of_task(&job.slug, &role.name, index)))
}

/// Turns into the program. Comes back only when that fails.
fn became(mut command: Command, words: Words) -> anyhow::Error {
    let program = command.get_program().to_string_lossy().into_owned();
    let error = command.exec();
    Said { what: words.program_fails(&program, &error.to_string()), hint: Some(words.hint_openssh()) }.into()
}

/// Makes `~/.ssh/config` include the file, once, at its beginning: an `Include` after a `Host` counts only for that.
fn include(folder: &Path, file: &Path) -> anyhow::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let config = folder.join("config");
    let line = format!("Include \"{}\"", file.display());
    let old = match fs::read_to_string(&config) {
        Ok(old) => old,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("`{}` cannot be read", config.display())),
    };
    if old.lines().any(|known| known.trim() == line) {
        return Ok(());
    }
    config::write_whole(&config, &format!("{line}\n\n{old}"))
        .with_context(|| format!("`{}` cannot be written", config.display()))
}

// === the door ===

impl Door {
    /// Finds out where the door is, and makes sure that the key opens it.
    async fn ready(session: &Session) -> anyhow::Result<Self> {
        let (me, told) = (session.client.me().await?, session.client.ssh_door().await?);
        let host = host(told.host, session)?;
        let folder = config::folder()?.join("ssh");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let door = Self { user: me.name.to_string(), host, port: told.port, folder };
        config::write_whole(&door.known_hosts(), &format!("{} {}\n", door.alias(), told.host_key))?;
        let public = PathBuf::from(format!("{}.pub", door.key().display()));
        if !door.key().is_file() || !public.is_file() {
            // Two machines may have one name.
            let name = format!("berth on {} {:04x}", machine(), rand::random::<u16>());
            make_key(&door.key(), &name, session.words)?;
        }
        let line = fs::read_to_string(&public)?;
        let known = session.client.ssh_keys().await?;
        if !known.iter().any(|key| line.starts_with(&key.public_key)) {
            add_key(session, &door.key(), &line, None, true).await?;
        }
        Ok(door)
    }

    /// One for each user: a key tells who somebody is.
    fn key(&self) -> PathBuf {
        self.folder.join(format!("id_ed25519_{}", self.user))
    }

    /// One file for each gateway, so that two do not fight over one name.
    fn known_hosts(&self) -> PathBuf {
        self.folder.join(format!("known_hosts.{}.{}", self.host.replace(['/', ':'], "_"), self.port))
    }

    fn alias(&self) -> String {
        format!("berth.{}.{}", self.host.replace(':', "_"), self.port)
    }

    fn address(&self, instance: &str) -> String {
        format!("{}+{instance}@{}", self.user, self.host)
    }

    /// What is said to every client: this key, this host and no other, and to notice when it is gone.
    fn settings(&self) -> [(&'static str, String); 6] {
        [
            ("IdentityFile", self.key().display().to_string()),
            ("IdentitiesOnly", "yes".to_owned()),
            ("UserKnownHostsFile", self.known_hosts().display().to_string()),
            ("HostKeyAlias", self.alias()),
            ("StrictHostKeyChecking", "yes".to_owned()),
            ("ServerAliveInterval", "30".to_owned()),
        ]
    }

    fn options(&self) -> Vec<String> {
        let one = |(name, value): (&str, String)| ["-o".to_owned(), format!("{name}=\"{value}\"")];
        self.settings().into_iter().flat_map(one).collect()
    }

    fn configuration(&self, slugs: &[String]) -> String {
        let mut text = String::from(
            "# Written by `berth config-ssh`; run it again when there are new instances or jobs.\n\n",
        );
        for slug in slugs {
            let _ = write!(text, "Host {slug}.berth\n  User {}+{slug}\n\n", self.user);
        }
        let _ = write!(text, "Host *.berth\n  HostName {}\n  Port {}\n", self.host, self.port);
        for (name, value) in self.settings() {
            let _ = writeln!(text, "  {name} \"{value}\"");
        }
        text
    }
}

/// The name of this machine, for people who look at their list of keys.
fn machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().chars().take(32).collect()
}

// === keys ===

pub(crate) async fn ssh_key(command: SshKeyCommand, session: &Session) -> anyhow::Result<Status> {
    match command {
        SshKeyCommand::Ls(list) => {
            let keys = session.client.ssh_keys().await?;
            if list.json {
                output::json(&keys)?;
            } else {
                output::data(&table(&keys, session.words, Timestamp::now()))?;
            }
        }
        SshKeyCommand::Add(add) => {
            let private = add.file.with_extension("");
            let is_public = add.file.extension().is_some_and(|extension| extension == "pub");
            let (key, public) = if is_public {
                (private, add.file)
            } else {
                let mut public = add.file.clone().into_os_string();
                public.push(".pub");
                (add.file, PathBuf::from(public))
            };
            let line = fs::read_to_string(&public)
                .with_context(|| format!("`{}` cannot be read", public.display()))?;
            // Where the private half is in an agent, the public one names it.
            let signer = if key.is_file() { key } else { public };
            let added = add_key(session, &signer, &line, add.name, !add.unproved).await?;
            output::data(added.id.as_str())?;
        }
        SshKeyCommand::New(new) => {
            make_key(&new.out, &new.name, session.words)?;
            let mut public = new.out.clone().into_os_string();
            public.push(".pub");
            let line = fs::read_to_string(&public)?;
            let added = add_key(session, &new.out, &line, Some(new.name), true).await?;
            output::say(&session.words.key_made(&new.out.display().to_string()));
            output::data(added.id.as_str())?;
        }
        SshKeyCommand::Rm(remove) => return remove_keys(&remove.keys, session).await,
    }
    Ok(Status::DONE)
}

async fn remove_keys(keys: &[String], session: &Session) -> anyhow::Result<Status> {
    let own = session.client.ssh_keys().await?;
    let mut status = Status::DONE;
    for wanted in keys {
        let named = own.iter().find(|key| key.name.as_str() == wanted);
        let id = named.map_or(wanted.as_str(), |key| key.id.as_str());
        match session.client.remove_ssh_key(id).await {
            Ok(()) => output::data(wanted)?,
            Err(error) => status = failure::report(&error.into(), session.words, Status::FAILED),
        }
    }
    Ok(status)
}

/// Adds a key, with a signature of the gateway's challenge when it is to be proved.
async fn add_key(
    session: &Session,
    signer: &Path,
    line: &str,
    name: Option<String>,
    prove: bool,
) -> anyhow::Result<SshKey> {
    let signature = if prove {
        let challenge = session.client.ssh_challenge().await?.challenge;
        Some(sign(signer, &challenge, session.words)?)
    } else {
        None
    };
    Ok(session.client.add_ssh_key(&AddSshKey { name, key: line.trim().to_owned(), signature }).await?)
}

/// Signs by `ssh-keygen`, which asks for a passphrase or an agent where that is needed.
fn sign(key: &Path, challenge: &str, words: Words) -> anyhow::Result<String> {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-Y", "sign", "-n", SIGNATURE_NAMESPACE, "-f"]).arg(key);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let missing = |error: std::io::Error| Said {
        what: words.program_fails("ssh-keygen", &error.to_string()),
        hint: Some(words.hint_openssh()),
    };
    let mut child = child.map_err(missing)?;
    if let Some(mut input) = child.stdin.take() {
        std::io::Write::write_all(&mut input, challenge.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Said { what: words.cannot_sign(&key.display().to_string(), &why), hint: None }.into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Makes a pair without a passphrase: it lies beside the token, which opens as much.
fn make_key(path: &Path, comment: &str, words: Words) -> anyhow::Result<()> {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f"]).arg(path).stdin(Stdio::null());
    let output = command.output().map_err(|error| Said {
        what: words.program_fails("ssh-keygen", &error.to_string()),
        hint: Some(words.hint_openssh()),
    })?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        let why = String::from_utf8_lossy(&said).trim().to_owned();
        return Err(
            Said { what: words.cannot_make_key(&path.display().to_string(), &why), hint: None }.into()
        );
    }
    Ok(())
}

fn table(keys: &[SshKey], words: Words, now: Timestamp) -> String {
    let titles = [Title::Name, Title::Kind, Title::Fingerprint, Title::Age, Title::Used, Title::Id];
    let row = |key: &SshKey| {
        [
            key.name.to_string(),
            key.kind.clone(),
            key.fingerprint.clone(),
            output::age(key.created_at, now),
            key.last_used_at.map(|used| output::age(used, now)).unwrap_or_default(),
            key.id.to_string(),
        ]
    };
    output::table(words, titles, keys.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_pins_the_host_and_names_every_instance() {
        let door = Door {
            user: "alice".to_owned(),
            host: "berth.example.org".to_owned(),
            port: 2222,
            folder: PathBuf::from("/home/alice/.config/berth/ssh"),
        };
        insta::assert_snapshot!(door.configuration(&["train".to_owned(), "big-1".to_owned()]));
    }

    #[test]
    fn tasks_and_instances_are_told_from_paths_of_this_machine() {
        for (path, there) in [
            ("train:/data", Some(("train", "/data"))),
            ("train:", Some(("train", ""))),
            ("resnet/main/0:/data", Some(("resnet/main/0", "/data"))),
            ("resnet/main:notes:old", Some(("resnet/main", "notes:old"))),
            ("./train:x", None),
            ("/tmp/train:x", None),
            ("../a/b:x", None),
            ("a/b/c/d:x", None),
            (":x", None),
            ("notes", None),
        ] {
            assert_eq!(in_instance(path), there, "{path}");
        }
    }

    #[test]
    fn the_include_comes_first_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let (ssh, file) = (folder.path().join(".ssh"), folder.path().join("config"));
        fs::create_dir(&ssh).unwrap();
        fs::write(ssh.join("config"), "Host other\n  Port 1\n").unwrap();
        for _ in 0..2 {
            include(&ssh, &file).unwrap();
        }
        let text = fs::read_to_string(ssh.join("config")).unwrap();
        assert_eq!(text, format!("Include \"{}\"\n\nHost other\n  Port 1\n", file.display()));
    }
}
