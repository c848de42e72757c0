//! One file per family of commands. Each takes its arguments and the [`Session`], and answers with an exit status.

pub(crate) mod completion;
pub(crate) mod convert;
pub(crate) mod create;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod forward;
pub(crate) mod images;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod lifecycle;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod logs;
pub(crate) mod nodes;
pub(crate) mod open;
pub(crate) mod people;
pub(crate) mod quota;
pub(crate) mod secrets;
pub(crate) mod shell;
pub(crate) mod ssh;
pub(crate) mod submit;
pub(crate) mod terminals;
pub(crate) mod usage;

use gateway_api::{
    Code,
    client::{Client, ClientError},
};

use crate::{
    Command, config,
    failure::{Said, Status},
    output, spelling,
    words::Words,
};

/// A signed-in user at a gateway.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) words: Words,
}

pub(crate) async fn run(command: Command, version: &str, words: Words) -> anyhow::Result<Status> {
    let session = || Ok::<_, anyhow::Error>(Session { client: config::client(words)?, words });
    match command {
        Command::Login(arguments) => login::login(arguments, words).await,
        Command::Logout => login::logout(words).await,
        Command::Whoami(arguments) => login::whoami(&arguments, &session()?).await,
        Command::Submit(arguments) => submit::submit(*arguments, &session()?).await,
        Command::Jobs(arguments) => jobs::list(&arguments, &session()?).await,
        Command::Rerun(arguments) => jobs::rerun(arguments, &session()?).await,
        Command::Change(arguments) => jobs::change(&arguments, &session()?).await,
        Command::Create(arguments) => create::create(arguments, &session()?).await,
        Command::Ls(arguments) => list::ls(&arguments, &session()?).await,
        Command::Show(arguments) => list::show(&arguments, &session()?).await,
        Command::Start(lifecycle::Start { names, gpus }) => {
            lifecycle::run(lifecycle::Verb::Start { gpus }, &names, &session()?).await
        }
        Command::Stop(names) => lifecycle::run(lifecycle::Verb::Stop, &names, &session()?).await,
        Command::Restart(names) => lifecycle::run(lifecycle::Verb::Restart, &names, &session()?).await,
        Command::Rm(names) => lifecycle::run(lifecycle::Verb::Remove, &names, &session()?).await,
        Command::Logs(arguments) => logs::logs(&arguments, &session()?).await,
        Command::Exec(arguments) => exec::exec(arguments, &session()?).await,
        Command::Terminal(arguments) => exec::terminal(&arguments, &session()?).await,
        Command::Terminals(arguments) => terminals::terminals(&arguments, &session()?).await,
        Command::Open(arguments) => open::open(arguments, &session()?).await,
        Command::PortForward(arguments) => forward::port_forward(&arguments, &session()?).await,
        Command::Tensorboard(arguments) => open::tensorboard(arguments, &session()?).await,
        Command::Save(arguments) => images::save(arguments, &session()?).await,
        Command::Images(arguments) => images::images(&arguments, &session()?).await,
        Command::Image(command) => images::image(command, &session()?).await,
        Command::Nodes(arguments) => nodes::nodes(&arguments, &session()?).await,
        Command::Gpus(arguments) => nodes::gpus(&arguments, &session()?).await,
        Command::Usage(arguments) => usage::usage(&arguments, &session()?).await,
        Command::Doctor(arguments) => doctor::doctor(&arguments, words).await,
        Command::User(command) => people::user(command, &session()?).await,
        Command::Group(command) => people::group(command, &session()?).await,
        Command::Workspace(command) => people::workspace(command, &session()?).await,
        Command::Quota(command) => quota::quota(command, &session()?).await,
        Command::Token(command) => keys::token(command, &session()?).await,
        Command::Secret(command) => secrets::secret(command, &session()?).await,
        Command::Audit(arguments) => keys::audit(arguments, &session()?).await,
        Command::Passwd => keys::passwd(&session()?).await,
        Command::Convert(arguments) => convert::convert(&arguments, words).await,
        Command::Shell(arguments) => shell::shell(arguments, &session()?).await,
        Command::Ssh(arguments) => ssh::ssh(arguments, &session()?).await,
        Command::Cp(arguments) => ssh::copy(arguments, &session()?).await,
        Command::ConfigSsh(arguments) => ssh::config_ssh(arguments, &session()?).await,
        Command::SshKey(command) => ssh::ssh_key(command, &session()?).await,
        Command::Completion(arguments) => completion::completion(&arguments),
        Command::Version => {
            output::data(&format!("berth {version}"))?;
            Ok(Status::DONE)
        }
    }
}

impl Session {
    /// Makes the error of a call about instance `name` as helpful as it can be.
    pub(crate) async fn explain(&self, name: &str, error: ClientError) -> anyhow::Error {
        if error.code() != Some(Code::NotFound) {
            return error.into();
        }
        let instances = self.client.instances().await.unwrap_or_default();
        let jobs = self.client.jobs(false).await.unwrap_or_default();
        let names = instances.iter().map(|instance| instance.name.as_str());
        let nearest = spelling::nearest(name, names.chain(jobs.iter().map(|job| job.name.as_str())));
        let hint = match nearest {
            // It is there after all: something else was not found.
            Some(same) if same == name => return error.into(),
            Some(near) => self.words.hint_nearest(near),
            None => self.words.hint_list(),
        };
        Said { what: self.words.no_instance(name), hint: Some(hint) }.into()
    }
}
