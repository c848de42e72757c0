//! The way into every process: the agent, executed once more, turns into the program that is asked for.
//!
//! It makes a session of its own, takes the terminal if there is one, becomes the image's user, goes to the directory
//! and executes. Handlers and the signal mask end with `exec`, and the standard library gives `SIGPIPE` back its
//! default, so the program starts as from a shell. No descriptor but the three streams gets here.
//!
//! What the agent does itself but with the user's rights ([`Helper`]) begins the same way and then stays in this program.

use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, ExitCode},
    str::FromStr,
};

use rustix::{
    process::{Gid, Uid},
    thread::{set_thread_gid, set_thread_groups, set_thread_uid},
};

use crate::{
    account::Account,
    complain, listen,
    sftp::{self, Special},
};

/// The first argument that makes the agent one of these.
pub(crate) const ARGUMENT: &str = "--enter";
/// The running agent's own file: there even when the path it was started from is not.
const SELF: &str = "/proc/self/exe";
/// The exit codes that shells give.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// What this program does itself as the image's user. Standard input is the answer's connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Helper {
    Sftp,
    ConnectUnix,
    Listen,
}

/// What to turn into.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) account: &'a Account,
    /// Standard input is the terminal that shall control the new session.
    pub(crate) tty: bool,
    pub(crate) directory: &'a Path,
    pub(crate) program: &'a Path,
    pub(crate) argv: &'a [OsString],
}

/// The command that starts an entry. Its environment is the program's.
pub(crate) fn command(entry: &Entry<'_>) -> Command {
    let groups: Vec<_> = entry.account.groups.iter().map(u32::to_string).collect();
    let mut command = Command::new(SELF);
    command
        .arg0("berth-enter")
        .arg(ARGUMENT)
        .arg(entry.account.uid.to_string())
        .arg(entry.account.gid.to_string())
        .arg(groups.join(","))
        .arg(if entry.tty { "tty" } else { "no-tty" })
        .arg(entry.directory)
        .arg(entry.program)
        .args(entry.argv);
    command
}

impl Helper {
    const ALL: [Self; 3] = [Self::Sftp, Self::ConnectUnix, Self::Listen];

    /// In the place of a program's path, which is absolute.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Sftp => "sftp",
            Self::ConnectUnix => "connect",
            Self::Listen => "listen",
        }
    }

    fn run(self, argument: &OsString) -> ExitCode {
        match self {
            Self::Sftp => sftp::serve(Special::Wait),
            Self::ConnectUnix => listen::connect_unix(argument),
            Self::Listen => listen::serve(argument),
        }
    }
}

/// Turns this process into the program. Comes back only when that fails.
pub(crate) fn enter(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut next = || arguments.next().unwrap_or_default();
    let (uid, gid, groups) = (next(), next(), next());
    let tty = next() == "tty";
    let (directory, program, name) = (next(), next(), next());

    let prepared = prepare(&uid, &gid, &groups, tty, Path::new(&directory));
    let helper = Helper::ALL.into_iter().find(|helper| program == helper.word());
    if let (Ok(()), Some(helper)) = (&prepared, helper) {
        return helper.run(&arguments.next().unwrap_or_default());
    }
    let failed = match prepared {
        Ok(()) => Command::new(&program).arg0(&name).args(arguments).exec(),
        Err(error) => error,
    };
    complain(&format!("`{}` cannot be run: {failed}", name.display()));
    ExitCode::from(if failed.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN })
}

fn prepare(uid: &OsString, gid: &OsString, groups: &OsString, tty: bool, directory: &Path) -> io::Result<()> {
    rustix::process::setsid()?;
    if tty {
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
    }
    // Once as root and once as the user: either may be the one who may go there.
    let entered = std::env::set_current_dir(directory);
    become_user(number(uid)?, number(gid)?, groups)?;
    entered.or_else(|_| std::env::set_current_dir(directory))
}

fn become_user(uid: u32, gid: u32, groups: &OsString) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    if !rustix::process::geteuid().is_root() {
        // Only root can become somebody else; an agent that is not root stays who it is.
        return Ok(());
    }
    let groups: Vec<_> = groups
        .to_string_lossy()
        .split(',')
        .filter_map(|group| group.parse().ok())
        .map(Gid::from_raw)
        .collect();
    // One thread, so what is set for the thread is set for the process.
    set_thread_groups(&groups)?;
    set_thread_gid(gid)?;
    set_thread_uid(uid)?;
    Ok(())
}

fn number(text: &OsString) -> io::Result<u32> {
    text.to_str().and_then(|text| u32::from_str(text).ok()).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
