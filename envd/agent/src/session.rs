//! A session as an SSH server starts one: the login shell of the image's user, or a command in it, in their home.
//!
//! The streams are carried as for [`exec`](crate::exec); the end follows the habits of `sshd`.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStringExt as _,
    path::Path,
};

use envd_api::agent::Session;

use crate::{
    Agent,
    environment::{StartError, Surroundings},
    exec::{Manner, Process},
    link::Refused,
    program, pty,
};

/// Starts the session's process, or says in words why not.
pub(crate) fn start(agent: &Agent, call: &Session) -> Result<Process, Refused> {
    let mut extra = call.env.clone();
    if let Some(tty) = &call.tty {
        extra.insert("TERM".to_owned(), tty.term.clone());
    }
    let mut around = Surroundings::new(&agent.spec, &extra)?;
    let shell = program::shell(around.account.shell.as_deref(), around.path()).map_err(StartError::from)?;
    around.env.insert("SHELL".to_owned(), shell.to_string_lossy().into_owned());
    let system = |error| StartError::System(shell.to_string_lossy().into_owned(), error);

    let terminal = match &call.tty {
        Some(tty) => {
            let opened = pty::open_with(tty.size, around.account.uid, &tty.modes).map_err(system)?;
            let (pty, theirs, name) = opened;
            around.env.insert("SSH_TTY".to_owned(), name);
            Some((pty, theirs))
        }
        None => None,
    };
    let argv = match &call.command {
        Some(command) => {
            vec![shell.clone().into_os_string(), OsString::from("-c"), OsString::from_vec(command.bytes())]
        }
        None => vec![login_name(&shell)],
    };
    let mut command = around.program(&shell, &argv, &around.home_directory(), terminal.is_some());
    Ok(Process::spawn(agent, &mut command, terminal, Manner::Session).map_err(system)?)
}

/// The name that makes a shell a login shell, such as `-bash`.
fn login_name(shell: &Path) -> OsString {
    let mut name = OsString::from("-");
    name.push(shell.file_name().unwrap_or(OsStr::new("sh")));
    name
}
