//! `berth completion`.

use std::io::{self, Write as _};

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::{Cli, failure::Status};

#[derive(Debug, Args)]
pub(crate) struct Completion {
    /// The shell, as in `source <(berth completion bash)`
    shell: Shell,
}

pub(crate) fn completion(arguments: &Completion) -> anyhow::Result<Status> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "berth", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Status::DONE)
}
