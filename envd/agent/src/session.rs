//! A session as an SSH server starts one: the login shell of the image's user, or a command in it, in their home.
//!
//! The streams are carried as for [`exec`](crate::exec); the end follows the habits of `sshd`.
//!
//! Clients that copy files count on a program of theirs on the other side. Where the image has none, `rsync` is lent from
//! the site's tools and [`scp`] is this program itself. An image without any shell still runs commands that need none.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use envd_api::agent::{AGENT, Session, TOOLS};

use crate::{
    Agent,
    environment::{StartError, Surroundings},
    exec::{Manner, Process},
    link::Refused,
    program::{self, ProgramError},
    pty, scp,
};

/// What is lent to images that lack it.
const LENT: &str = "rsync";
const SCP: &str = "scp";
/// The locale where neither the image nor the client names one: text is UTF-8.
const DEFAULT_LANG: &str = "C.UTF-8";
/// What only a shell understands.
const SHELL_SIGNS: &[u8] = b";|&<>$`(){}*?[]#~!\n";

/// Starts the session's process, or says in words why not.
pub(crate) fn start(agent: &Agent, call: &Session) -> Result<Process, Refused> {
    let mut extra = call.env.clone();
    if let Some(tty) = &call.tty {
        extra.insert("TERM".to_owned(), tty.term.clone());
    }
    let mut around = agent.surroundings(&extra)?;
    if !around.env.contains_key("LC_ALL") {
        around.env.entry("LANG".to_owned()).or_insert_with(|| DEFAULT_LANG.to_owned());
    }
    let command = call.command.as_ref().map(|command| OsString::from_vec(command.bytes()));
    if let Some(command) = &command {
        lend(&mut around, command);
    }
    let own = command.as_deref().and_then(|command| own_scp(&around, command));
    let (program, argv) = match own {
        Some(own) => own,
        None => program_and_arguments(&mut around, command)?,
    };
    let system = |error| StartError::System(program.to_string_lossy().into_owned(), error);

    let terminal = match &call.tty {
        Some(tty) => {
            let opened = pty::open_with(tty.size, around.account.uid, &tty.modes).map_err(system)?;
            let (pty, theirs, name) = opened;
            around.env.insert("SSH_TTY".to_owned(), name);
            Some((pty, theirs))
        }
        None => None,
    };
    let mut command = around.program(&program, &argv, &around.home_directory(), terminal.is_some());
    let manner = Manner::Session { mark: call.mark };
    Ok(Process::spawn(agent, &mut command, terminal, manner).map_err(system)?)
}

/// The shell with the command, or the command itself where there is no shell.
fn program_and_arguments(
    around: &mut Surroundings,
    command: Option<OsString>,
) -> Result<(PathBuf, Vec<OsString>), StartError> {
    let shell = match program::shell(around.account.shell.as_deref(), around.path()) {
        Ok(shell) => shell,
        Err(error) => {
            let words = command.and_then(|command| plain_words(command.as_bytes())).ok_or(error)?;
            let name = words.first().and_then(|name| name.to_str()).ok_or(ProgramError::Nothing)?;
            let program = program::find(name, around.path(), &around.home_directory())?;
            return Ok((program, words));
        }
    };
    around.env.insert("SHELL".to_owned(), shell.to_string_lossy().into_owned());
    let argv = match command {
        Some(command) => vec![shell.clone().into_os_string(), OsString::from("-c"), command],
        None => vec![login_name(&shell)],
    };
    Ok((shell, argv))
}

/// Lets the command find a program that the image lacks and the site's tools have, after all that the image has.
fn lend(around: &mut Surroundings, command: &OsStr) {
    let folder = format!("{TOOLS}/current/bin");
    if lacks(around, command, LENT) && program::find(LENT, &folder, Path::new("/")).is_ok() {
        let path = format!("{}:{folder}", around.path());
        around.env.insert("PATH".to_owned(), path);
    }
}

/// Whether the command is this program, and the image has it not.
fn lacks(around: &Surroundings, command: &OsStr, name: &str) -> bool {
    let first = command.as_bytes().split(|byte| *byte == b' ').next();
    first == Some(name.as_bytes()) && program::find(name, around.path(), Path::new("/")).is_err()
}

/// This program in the place of an `scp` that the image lacks. Where the command has signs for a shell in it, the image's
/// shell reads them, to which `scp` is a function.
fn own_scp(around: &Surroundings, command: &OsStr) -> Option<(PathBuf, Vec<OsString>)> {
    if !lacks(around, command, SCP) {
        return None;
    }
    if let Some(mut words) = plain_words(command.as_bytes()) {
        words.insert(1, OsString::from(scp::ARGUMENT));
        return Some((PathBuf::from(AGENT), words));
    }
    let shell = program::find("sh", around.path(), Path::new("/")).ok()?;
    let mut line = OsString::from(format!("{SCP}() {{ {AGENT} {} \"$@\"; }}; ", scp::ARGUMENT));
    line.push(command);
    Some((shell, vec![OsString::from("sh"), OsString::from("-c"), line]))
}

/// The words of a command that a shell would do nothing with but take apart.
fn plain_words(command: &[u8]) -> Option<Vec<OsString>> {
    let mut escaped = false;
    for byte in command {
        if !escaped && SHELL_SIGNS.contains(byte) {
            return None;
        }
        escaped = !escaped && *byte == b'\\';
    }
    let words = shlex::bytes::split(command)?;
    Some(words.into_iter().map(OsString::from_vec).collect())
}

/// The name that makes a shell a login shell, such as `-bash`.
fn login_name(shell: &Path) -> OsString {
    let mut name = OsString::from("-");
    name.push(shell.file_name().unwrap_or(OsStr::new("sh")));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_no_shell_runs_without_one() {
        let words = |command: &str| {
            let words = plain_words(command.as_bytes())?;
            Some(words.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>())
        };
        let plain = |command: &str, expected: &[&str]| {
            assert_eq!(words(command).unwrap(), expected, "{command}");
        };
        plain(
            "rsync --server -vlogDtpre.iLsfxCIvu . /a\\ b/",
            &["rsync", "--server", "-vlogDtpre.iLsfxCIvu", ".", "/a b/"],
        );
        plain("echo 'two words' \\$HOME", &["echo", "two words", "$HOME"]);
        for command in ["a; b", "a | b", "echo $HOME", "a > b", "ls *", "a &", "`a`", "a\nb", "it's"] {
            assert_eq!(words(command), None, "{command}");
        }
    }
}
