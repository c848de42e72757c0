//! `berth exec` and `berth terminal`: a process there, as if it were here.

use std::collections::BTreeMap;

use clap::Args;
use gateway_api::{
    Code, Problem,
    client::ClientError,
    stream::{ExecStart, Exit, Size, Tty},
};

use super::{Session, create};
use crate::{
    attach::{Ended, Joint, attach, signal_number},
    config::variable,
    failure::{self, Status},
    output, terminal,
};

/// The size of a terminal that nobody looks at.
const UNSEEN: Size = Size { cols: 80, rows: 24 };

#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// Give the command a terminal
    #[arg(short, long)]
    tty: bool,
    /// As in docker; standard input is always passed on
    #[arg(short, long)]
    interactive: bool,
    /// Pass no standard input on
    #[arg(short, long, conflicts_with = "interactive")]
    no_stdin: bool,
    /// Set a variable in its environment; without `=VALUE` it is taken from this shell
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// The directory to run it in
    #[arg(short, long, value_name = "PATH")]
    workdir: Option<String>,
    /// The instance
    name: String,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Terminal {
    /// The instance
    name: String,
    /// The terminal: lower-case letters, digits and hyphens; the first use makes it
    #[arg(default_value = "main")]
    terminal: String,
}

pub(crate) async fn exec(arguments: Exec, session: &Session) -> anyhow::Result<Status> {
    let env = create::environment(&arguments.env, session.words, |name| std::env::var(name).ok())?;
    let ended = join(&arguments, env, session).await;
    let error = match ended {
        Ok(ended) => return Ok(status(&ended)),
        Err(error) => error,
    };
    let own = match error.downcast_ref::<ClientError>() {
        Some(error) => why_not_run(error),
        None => Status::BERTH_FAILED,
    };
    let error = match error.downcast::<ClientError>() {
        Ok(error) => session.explain(&arguments.name, error).await,
        Err(error) => error,
    };
    Ok(failure::report(&error, session.words, own))
}

async fn join(arguments: &Exec, env: BTreeMap<String, String>, session: &Session) -> anyhow::Result<Ended> {
    let tty = arguments.tty.then(|| {
        let Size { cols, rows } = terminal::size().unwrap_or(UNSEEN);
        Tty { cols, rows, term: variable("TERM") }
    });
    let joint = Joint { tty: tty.is_some(), stdin: !arguments.no_stdin, detach: false };
    let start = ExecStart { argv: arguments.command.clone(), env, cwd: arguments.workdir.clone(), tty };
    attach(session.client.exec(&arguments.name, &start).await?, joint).await
}

pub(crate) async fn terminal(arguments: &Terminal, session: &Session) -> anyhow::Result<Status> {
    let Terminal { name, terminal } = arguments;
    let size = terminal::size().unwrap_or(UNSEEN);
    let process = match session.client.terminal(name, terminal, size).await {
        Ok(process) => process,
        Err(error) => return Err(session.explain(name, error).await),
    };
    if terminal::is_attended() {
        output::say(session.words.how_to_detach());
    }
    let joint = Joint { tty: true, stdin: true, detach: true };
    let ended = match attach(process, joint).await {
        Ok(ended) => ended,
        Err(error) => {
            return Err(match error.downcast::<ClientError>() {
                Ok(error) => session.explain(name, error).await,
                Err(error) => error,
            });
        }
    };
    if ended == Ended::Detached {
        output::say(&format!("\n{}", session.words.detached(name, terminal)));
    }
    Ok(status(&ended))
}

fn status(ended: &Ended) -> Status {
    match ended {
        Ended::Exit(Exit::Code(code)) => Status(u8::try_from(*code).unwrap_or(u8::MAX)),
        Ended::Exit(Exit::Signal(name)) => Status(128 + signal_number(name).unwrap_or(127)),
        Ended::Signal(number) => Status(128 + number),
        Ended::Detached => Status::DONE,
    }
}

/// As docker has it: 127 when the command is not there, 125 for everything of our own.
fn why_not_run(error: &ClientError) -> Status {
    let about_command = |problem: &Problem| {
        problem.code == Code::BadValue && problem.params.get("field").is_some_and(|field| field == "argv")
    };
    if error.problem().is_some_and(about_command) { Status::NO_SUCH_COMMAND } else { Status::BERTH_FAILED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_the_commands_own() {
        for (ended, expected) in [
            (Ended::Exit(Exit::Code(0)), 0),
            (Ended::Exit(Exit::Code(42)), 42),
            (Ended::Exit(Exit::Code(-1)), 255),
            (Ended::Exit(Exit::Signal("KILL".to_owned())), 137),
            (Ended::Exit(Exit::Signal("RTMIN".to_owned())), 255),
            (Ended::Signal(15), 143),
            (Ended::Detached, 0),
        ] {
            assert_eq!(status(&ended), Status(expected), "{ended:?}");
        }
    }
}
