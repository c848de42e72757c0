//! `berth`, the user's command: docker-like, because its users know docker.
//!
//! It knows the public contract (`gateway-api`), job files (`jobfile`), and nothing of the gateway's inside. Data goes to standard output,
//! everything that is said about it to standard error, so that pipes stay clean. Every sentence of its own lives in
//! [`words`], in English and Chinese; the help is written at the commands and translated there.

mod amount;
mod attach;
mod browser;
mod commands;
mod config;
#[cfg(test)]
mod docs_tests;
mod failure;
mod output;
mod size;
mod spelling;
mod terminal;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, error::ErrorKind};

use crate::{failure::Status, words::Words};

const AFTER_HELP: &str = "\
Exit codes:
  0    done
  1    it did not work; the reason is on standard error
  2    the command line is wrong
  125  `exec`: berth itself failed
  127  `exec`: the command is not there, or is not a program
  else `exec`: the command's own exit code, or 128 and the number of the signal that ended it

Environment:
  BERTH_URL, BERTH_TOKEN  the gateway and a token, instead of what `berth login` has kept
  BERTH_CONFIG            the file in which `berth login` keeps them [~/.config/berth/config.toml]
  BERTH_LANG              language of messages: `en` or `zh` [from LC_ALL, LC_MESSAGES, LANG]
  NO_COLOR                no colours";

/// Machines of your own behind one door
#[derive(Debug, Parser)]
#[command(name = "berth", version, propagate_version = false, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sign in to a gateway
    Login(commands::login::Login),
    /// Sign out and forget the token
    Logout,
    /// Say who is signed in
    Whoami(commands::login::Whoami),
    /// Submit a job: a file from here or elsewhere, or a command
    ///
    /// The format of a file is recognised: OpenPAI v1 and v2, DLC parameters, Determined, our own. With `--wait` the
    /// exit code is the job's: 0 if it succeeded, that of the task that failed, or 1 if it was stopped.
    Submit(Box<commands::submit::Submit>),
    /// List your jobs
    Jobs(commands::jobs::Jobs),
    /// Submit the file of a job once more
    Rerun(commands::jobs::Rerun),
    /// Change the time limit or the priority of a job
    Change(commands::jobs::Change),
    /// Make an instance and start it
    Create(commands::create::Create),
    /// List your instances
    #[command(visible_alias = "ps")]
    Ls(commands::list::Ls),
    /// Show everything about an instance or a job
    #[command(visible_alias = "inspect")]
    Show(commands::list::Show),
    /// Start stopped instances; their files are as they were
    Start(commands::lifecycle::Start),
    /// Stop instances, whose files stay, and jobs
    Stop(commands::lifecycle::Names),
    /// Stop and start instances
    Restart(commands::lifecycle::Names),
    /// Delete instances and their files, and jobs; /userhome is kept
    Rm(commands::lifecycle::Names),
    /// Print what an instance's command, or a job's task, has written
    ///
    /// A task is named `JOB/ROLE/0`; `JOB` alone is its first. What a task wrote is kept after its end.
    Logs(commands::logs::Logs),
    /// Run a command in a running instance
    Exec(commands::exec::Exec),
    /// Attach to a terminal that goes on without you
    ///
    /// Ctrl-] detaches. The terminal and what runs in it stay; attaching again, here or in the console, shows the
    /// same.
    Terminal(commands::exec::Terminal),
    /// List an instance's terminals, or close some
    Terminals(commands::terminals::Terminals),
    /// Open a tool of an instance, or a port of it, in the browser
    ///
    /// The browser is signed in by the address itself, which works once and for less than a minute. `$BROWSER` names
    /// the browser; where there is none the address is printed.
    Open(commands::open::Open),
    /// Make ports of an instance ports of this machine
    PortForward(commands::forward::PortForward),
    /// Show a folder in TensorBoard, in an instance of its own
    Tensorboard(commands::open::Tensorboard),
    /// Open a shell in an instance by SSH, or run a command there
    ///
    /// Nothing needs to be configured: a key is made and registered on first use, and the host key is known from the
    /// gateway. Of an instance that is not running yet one sees what goes on.
    Ssh(commands::ssh::Ssh),
    /// Submit a job to work in, as a file describes it, and open a shell in it
    ///
    /// The job stays when the shell ends: `berth ssh NAME/main/0` opens another one, `berth stop` ends it.
    Shell(commands::shell::Shell),
    /// Copy files to and from instances, as `scp` does
    Cp(commands::ssh::Copy),
    /// Let `ssh NAME.berth`, editors and all other SSH clients find your instances
    ConfigSsh(commands::ssh::ConfigSsh),
    /// Manage the keys that you sign in with over SSH
    #[command(subcommand)]
    SshKey(commands::ssh::SshKeyCommand),
    /// Save an instance's files as an image; it goes on meanwhile
    ///
    /// Mounted folders such as /userhome are never in it, and caches and /tmp are not unless you say so. Whoever may use
    /// the image can read all files in it.
    Save(commands::images::Save),
    /// List the images that instances can be made from
    Images(commands::list::Json),
    /// Show, share and delete saved images
    #[command(subcommand)]
    Image(commands::images::ImageCommand),
    /// List the machines that run instances
    Nodes(commands::list::Json),
    /// List the graphics processors: who has which, since when, and how busy each is
    Gpus(commands::list::Json),
    /// Sum up what was held over time: GPU hours and CPU hours
    Usage(commands::usage::Arguments),
    /// Show what a job file from elsewhere becomes here
    ///
    /// The format is recognised. The job is printed as Berth's own YAML; what is wrong with the file is said with its
    /// line and what to write instead, all at once. Whoever is signed in gets what the site makes of it.
    Convert(commands::convert::Convert),
    /// Look for what stands between you and your instances
    Doctor(commands::doctor::Doctor),
    /// Manage users
    #[command(subcommand)]
    User(commands::people::UserCommand),
    /// Manage groups: every user is in one
    #[command(subcommand)]
    Group(commands::people::GroupCommand),
    /// Manage workspaces: a user can be in many
    #[command(subcommand)]
    Workspace(commands::people::WorkspaceCommand),
    /// See and set what users and groups may hold at a time
    #[command(subcommand)]
    Quota(commands::quota::QuotaCommand),
    /// Manage tokens for scripts
    #[command(subcommand)]
    Token(commands::keys::TokenCommand),
    /// Manage secrets: values that are used by name, and logins of registries
    #[command(subcommand)]
    Secret(commands::secrets::SecretCommand),
    /// Print the audit log
    Audit(commands::keys::Audit),
    /// Change your password
    ///
    /// Without a terminal the current password and the new one are read from standard input, a line each.
    Passwd,
    /// Print a completion script for a shell
    Completion(commands::completion::Completion),
    /// Print the version
    Version,
}

/// Reads the command line. Ends the process if it is wrong, or asks for help or the version.
fn read(words: Words, version: &'static str) -> Cli {
    let command = Cli::command().version(version);
    let command = if words.is_english() { command } else { words::help::in_chinese(command) };
    let cli = command.try_get_matches().and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    cli.unwrap_or_else(|error| {
        if words.is_english() {
            error.exit();
        }
        if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            output::say(&words::help::mistake(&error));
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// Runs the command that the process's arguments ask for. `commit` is what the program was built from, if known.
pub fn main(commit: Option<&str>) -> ExitCode {
    let words = Words::from_environment();
    // Clap keeps it as long as the process runs.
    let version: &'static str = gateway_api::version(commit).leak();
    let cli = read(words, version);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failure::report(&error.into(), words, Status::FAILED).into(),
    };
    let failed = if matches!(cli.command, Command::Exec(_)) { Status::BERTH_FAILED } else { Status::FAILED };
    let status = match runtime.block_on(commands::run(cli.command, version, words)) {
        Ok(status) => status,
        Err(error) => failure::report(&error, words, failed),
    };
    // A read of the keyboard may be under way, and nobody will press that key.
    runtime.shutdown_background();
    status.into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help() {
        let mut whole = Cli::command().term_width(100);
        whole.build();
        let mut text = whole.render_long_help().to_string();
        for command in whole.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            text.push_str("\n\n================================\n");
            text.push_str(&command.render_long_help().to_string());
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn docker_habits_work() {
        for line in [
            "berth exec a1 ls -l /",
            "berth exec -it a1 -- bash -l",
            "berth create a1 --cpus -1 -m -1G --shm=-1 --gpus -1",
            "berth create a1 -e A=1 --env B=2 -m 8G --shm-size 1G -- python train.py --lr 0.1",
            "berth ps",
            "berth rm a b c",
            "berth logs -f --tail 10 a1",
            "berth open a1",
            "berth open a1 3000 --print",
            "berth port-forward a1 8888 0:8080",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
    }
}
