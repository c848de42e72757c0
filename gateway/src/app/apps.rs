//! Apps of instances: looking at one, starting it, and opening it in a browser.
//!
//! What an agent says of its apps is shown to the user, never acted upon for anybody else: texts are cut and tamed,
//! and the port that it names is dialled by that very agent.

use std::{collections::BTreeMap, time::Duration};

use envd_api::agent::{self, AppCall, AppReport, Refusal};
use gateway_api::{
    Action, AppName, CreateInstance, Instance,
    app::{self, AppAct, CreateTensorboard, OpenApp, Opened},
    error::Reason,
    words::Language,
};
use jiff::Timestamp;

use super::App;
use crate::{
    agents::AgentError,
    auth::{
        Caller, Key, Origin,
        policy::{self, Grant},
        ticket::{CONSOLE, Destination, Pass},
        token::Token,
    },
    error::Error,
    proxy::address::{Addresses, AppAddress},
    store::{InstanceRow, NewAppSession, User},
};

/// How long one stays signed in to an app, if one stays signed in to the console.
pub(crate) const APP_SESSION_LASTS: Duration = Duration::from_hours(30 * 24);
/// The longest path into an app that an address can name.
const PATH_MAX: usize = 4096;
const FOLDER_MAX: usize = 1024;
/// What a TensorBoard of its own is given.
const TENSORBOARD_CPUS: f64 = 1.0;
const TENSORBOARD_MEMORY: u64 = 2 << 30;
/// The variable of an instance that says what its TensorBoard shows.
const TENSORBOARD_FOLDER: &str = "TENSORBOARD_LOGDIR";
/// The code of an app that neither the image nor the tools volume has.
const NO_TOOLS: &str = "no_tools";
/// How many names are tried for one that was given none.
const NAMES_TRIED: usize = 100;

/// Somebody who has come in to an app.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) token: Token,
    /// Where in the app they want to be.
    pub(crate) path: String,
    pub(crate) folder: Option<String>,
    /// The language that they have chosen, if any.
    pub(crate) language: Option<Language>,
}

impl App {
    /// An app as it is now. Looking starts nothing.
    pub(crate) async fn app(
        &self,
        caller: &Caller,
        name: &str,
        app: AppName,
        folder: Option<String>,
    ) -> Result<app::App, Error> {
        let folder = folder.map(|folder| check_folder(&folder)).transpose()?;
        let grant = self.grant(caller, name, Action::Open).await?;
        self.look_at_app(&grant, app, folder).await
    }

    pub(crate) async fn act_on_app(
        &self,
        caller: &Caller,
        name: &str,
        app: AppName,
        act: AppAct,
        folder: Option<String>,
    ) -> Result<app::App, Error> {
        let folder = folder.map(|folder| check_folder(&folder)).transpose()?;
        let grant = self.grant(caller, name, Action::Open).await?;
        if !app.is_started() {
            return Err(Error::unfit("app", Reason::AppNotStarted));
        }
        self.do_with_app(&grant, app, act, folder).await
    }

    /// An address that signs one browser in to an app, once. In whatever state the instance is: the address is good
    /// before the instance is. `asked_at` is the host at which the console was asked.
    pub(crate) async fn open_app(
        &self,
        caller: &Caller,
        name: &str,
        app: AppName,
        wanted: OpenApp,
        asked_at: &str,
    ) -> Result<Opened, Error> {
        let path = check_path(wanted.path.as_deref().unwrap_or("/"))?;
        let folder = wanted.folder.map(|folder| check_folder(&folder)).transpose()?;
        let grant = policy::grant_in_any_state(caller, self.find(caller, name).await?, Action::Open)?;
        let instance = grant.instance();
        let addresses = self.addresses()?;
        if !app.is_page_of_instance() {
            return self.open_console(caller, instance, app);
        }
        let address = AppAddress::of(app, instance);
        let (origin, prefix) = addresses.near(&address, asked_at).ok_or(Error::AppsUnavailable)?;
        let (ticket, expires_at) = self.tickets.give(Pass {
            user: caller.user.clone(),
            key: caller.key.clone(),
            audience: address.label(),
            to: Destination::App { instance: instance.id.clone(), app, path, folder },
        })?;
        Ok(Opened { url: format!("{origin}{prefix}.berth/enter?ticket={ticket}"), expires_at })
    }

    /// The console's page of an app. A token does not sign in a browser: it must not become more than it is.
    fn open_console(&self, caller: &Caller, instance: &InstanceRow, app: AppName) -> Result<Opened, Error> {
        let page = format!("{}/instances/{}/{app}", self.addresses()?.console, instance.name);
        match caller.key {
            Key::Token { .. } | Key::Ssh { .. } => Ok(Opened { url: page, expires_at: Timestamp::now() }),
            Key::Session { .. } => {
                let (ticket, expires_at) = self.tickets.give(Pass {
                    user: caller.user.clone(),
                    key: caller.key.clone(),
                    audience: CONSOLE.to_owned(),
                    to: Destination::Console,
                })?;
                Ok(Opened { url: format!("{page}#ticket={ticket}"), expires_at })
            }
        }
    }

    /// Exchanges a ticket for a session of the console, which ends with the one that asked for the ticket.
    pub(crate) async fn sign_in_by_ticket(
        &self,
        ticket: &str,
        origin: &Origin,
    ) -> Result<(User, Token), Error> {
        let pass = self.tickets.take(ticket, CONSOLE).ok_or(Error::Unauthenticated)?;
        let (Destination::Console, Key::Session { hash }) = (&pass.to, &pass.key) else {
            return Err(Error::Unauthenticated);
        };
        let token = Token::new();
        let line =
            origin.line(pass.user.name.as_str(), "sign_in", pass.user.name.as_str()).with("by", "ticket");
        let user = self.store.add_child_session(&token.hash(), hash, &line).await?;
        Ok((user.ok_or(Error::Unauthenticated)?, token))
    }

    /// Exchanges a ticket for a session of one app. `None`: the ticket is worth nothing here.
    pub(crate) async fn enter_app(
        &self,
        ticket: &str,
        address: &AppAddress,
        origin: &Origin,
    ) -> Result<Option<Entered>, Error> {
        let Some(pass) = self.tickets.take(ticket, &address.label()) else { return Ok(None) };
        let Destination::App { instance, app, path, folder } = pass.to else { return Ok(None) };
        let token = Token::new();
        let new = NewAppSession {
            token_hash: &token.hash(),
            user: pass.user.id,
            instance: &instance,
            app,
            folder: folder.as_deref(),
            key: &pass.key,
            lasts: APP_SESSION_LASTS,
        };
        let line = origin.line(pass.user.name.as_str(), "app.open", instance.as_str());
        match self.store.add_app_session(new, &line.with("app", app.to_string())).await {
            Ok(()) => Ok(Some(Entered { token, path, folder, language: pass.user.language })),
            Err(crate::store::StoreError::UserGone) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// An instance that does nothing but show a folder.
    pub(crate) async fn create_tensorboard(
        &self,
        caller: &Caller,
        wanted: CreateTensorboard,
    ) -> Result<Instance, Error> {
        let folder = check_folder(&wanted.folder)?;
        let made_up = (1..=NAMES_TRIED)
            .map(|n| if n == 1 { "tensorboard".to_owned() } else { format!("tensorboard_{n}") });
        let names: Vec<String> = wanted.name.map_or_else(|| made_up.collect(), |name| vec![name]);
        let mut taken = Error::NameTaken { name: String::new() };
        for name in names {
            let created = self.create_instance(
                caller,
                CreateInstance {
                    name,
                    image: Some(self.config.lab_image.clone()),
                    cpus: TENSORBOARD_CPUS,
                    memory_bytes: TENSORBOARD_MEMORY,
                    shm_bytes: None,
                    gpus: 0,
                    gpu_model: None,
                    cluster: wanted.cluster.clone(),
                    pool: None,
                    env: BTreeMap::from([(TENSORBOARD_FOLDER.to_owned(), folder.clone())]),
                    command: Vec::new(),
                    auto_start: false,
                    secrets: Vec::new(),
                },
            );
            match created.await {
                Err(error @ Error::NameTaken { .. }) => taken = error,
                created => return created,
            }
        }
        Err(taken)
    }

    /// Looks at an app, on behalf of somebody who may.
    pub(crate) async fn look_at_app(
        &self,
        grant: &Grant,
        app: AppName,
        folder: Option<String>,
    ) -> Result<app::App, Error> {
        match app {
            AppName::Port(port) => self.look_at_port(grant, port.get()).await,
            AppName::Lab | AppName::Ide | AppName::Tensorboard | AppName::Desktop => {
                self.ask_agent(grant, app, agent::AppAct::Look, folder).await
            }
            AppName::Terminal => Err(Error::not_found("app", "terminal")),
        }
    }

    /// Starts, installs or stops an app, on behalf of somebody who may.
    pub(crate) async fn do_with_app(
        &self,
        grant: &Grant,
        app: AppName,
        act: AppAct,
        folder: Option<String>,
    ) -> Result<app::App, Error> {
        let act = match act {
            AppAct::Start => agent::AppAct::Start,
            AppAct::Install => agent::AppAct::Install,
            AppAct::Stop => agent::AppAct::Stop,
        };
        self.ask_agent(grant, app, act, folder).await
    }

    async fn ask_agent(
        &self,
        grant: &Grant,
        app: AppName,
        act: agent::AppAct,
        folder: Option<String>,
    ) -> Result<app::App, Error> {
        let instance = grant.instance();
        let prefix = if app.is_page_of_instance() {
            self.addresses()?.prefix(&AppAddress::of(app, instance)).into_owned()
        } else {
            "/".to_owned()
        };
        let shows =
            || instance.spec.env.get(TENSORBOARD_FOLDER).filter(|_| app == AppName::Tensorboard).cloned();
        let call = AppCall { app: app.to_string(), act, prefix, folder: folder.or_else(shows) };
        match self.agents.app(grant.id(), call).await {
            Ok(report) => {
                let found = tamed(app, report, self.app_url(app, instance));
                let lacks_tools = found.problem.as_ref().is_some_and(|problem| problem.code == NO_TOOLS);
                let preparing = if lacks_tools { self.preparing_tools() } else { None };
                Ok(app::App { preparing, ..found })
            }
            Err(AgentError::Refused { refusal: Refusal::UnknownCall, .. }) => Ok(app::App {
                app,
                state: app::AppState::Absent,
                source: None,
                steps: Vec::new(),
                problem: Some(app::AppProblem {
                    code: "old_agent".to_owned(),
                    message: "this instance was started by an older version, which knows no apps".to_owned(),
                    hint: "stop the instance and start it again".to_owned(),
                }),
                preparing: None,
                log: String::new(),
                port: None,
                url: self.app_url(app, instance),
            }),
            Err(error) => Err(unreachable(grant, &error)),
        }
    }

    /// A port is ready when something listens there.
    async fn look_at_port(&self, grant: &Grant, port: u16) -> Result<app::App, Error> {
        let app = AppName::Port(port.try_into().map_err(|_| Error::not_found("app", "0"))?);
        let problem = match self.agents.dial(grant.id(), port).await {
            Ok(_) => None,
            Err(AgentError::Refused { refusal: Refusal::NothingListens, message }) => Some(app::AppProblem {
                code: "nothing_listens".to_owned(),
                message,
                hint: "start your program, and let it listen on that port".to_owned(),
            }),
            Err(error) => return Err(unreachable(grant, &error)),
        };
        Ok(app::App {
            app,
            state: if problem.is_none() { app::AppState::Ready } else { app::AppState::Stopped },
            source: None,
            steps: Vec::new(),
            problem,
            preparing: None,
            log: String::new(),
            port: Some(port),
            url: self.app_url(app, grant.instance()),
        })
    }

    /// The address of an app without a ticket.
    pub(crate) fn app_url(&self, app: AppName, instance: &InstanceRow) -> String {
        let Ok(addresses) = self.addresses() else { return String::new() };
        if app.is_page_of_instance() {
            let address = AppAddress::of(app, instance);
            addresses.of(&address).map(|(origin, prefix)| origin + &prefix).unwrap_or_default()
        } else {
            format!("{}/instances/{}/{app}", addresses.console, instance.name)
        }
    }

    /// The addresses of this site, which are known once it listens.
    pub(crate) fn addresses(&self) -> Result<&Addresses, Error> {
        self.addresses.get().ok_or(Error::AppsUnavailable)
    }
}

/// A report as a user may see it: its sender is a program in the user's own instance.
fn tamed(app: AppName, report: AppReport, url: String) -> app::App {
    const STEPS_MAX: usize = 16;
    let line = |text: &str, max: usize| -> String {
        text.chars().filter(|letter| !letter.is_control()).take(max).collect()
    };
    let keep = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let log: String = report.log.chars().filter(keep).collect();
    let from = log.len().saturating_sub(agent::APP_LOG_MAX);
    let from = (from..=log.len()).find(|&at| log.is_char_boundary(at)).unwrap_or(log.len());
    let step = |step: agent::AppStep| app::AppStep {
        step: line(&step.step, 32),
        seconds: if step.seconds.is_finite() { step.seconds.clamp(0.0, 1e9) } else { 0.0 },
        done: step.done,
    };
    let problem = report.problem.map(|problem| app::AppProblem {
        code: line(&problem.code, 64),
        message: line(&problem.message, 400),
        hint: line(&problem.hint, 400),
    });
    app::App {
        app,
        state: match report.state {
            agent::AppState::Stopped => app::AppState::Stopped,
            agent::AppState::Installable => app::AppState::Installable,
            agent::AppState::Absent => app::AppState::Absent,
            agent::AppState::Installing => app::AppState::Installing,
            agent::AppState::Starting => app::AppState::Starting,
            agent::AppState::Ready => app::AppState::Ready,
            agent::AppState::Failed => app::AppState::Failed,
        },
        source: report.source.map(|source| match source {
            agent::AppSource::Image => app::AppSource::Image,
            agent::AppSource::Tools => app::AppSource::Tools,
            agent::AppSource::Installed => app::AppSource::Installed,
        }),
        steps: report.steps.into_iter().take(STEPS_MAX).map(step).collect(),
        problem,
        preparing: None,
        log: log[from..].to_owned(),
        port: report.port,
        url,
    }
}

fn unreachable(grant: &Grant, error: &AgentError) -> Error {
    Error::AgentUnreachable { name: grant.instance().name.to_string(), why: error.to_string() }
}

/// A place within an app: a path and a query, which cannot lead to another host however it is read.
pub(crate) fn check_path(path: &str) -> Result<String, Error> {
    let bad = |reason| Error::unfit("path", reason);
    if path.len() > PATH_MAX {
        return Err(bad(Reason::PathTooLong));
    }
    let mut letters = path.bytes();
    if letters.next() != Some(b'/') || matches!(letters.next(), Some(b'/' | b'\\')) {
        return Err(bad(Reason::PathNeedsOneSlash));
    }
    if path.bytes().any(|byte| byte <= b' ' || byte >= 0x7f || byte == b'\\' || byte == b'#') {
        return Err(bad(Reason::PathNeedsEscapes));
    }
    let parsed = path.parse::<http::uri::PathAndQuery>().map_err(|_| bad(Reason::NotAPath))?;
    if parsed.as_str() != path {
        return Err(bad(Reason::NotAPath));
    }
    // What is ours there is never where somebody wanted to go.
    Ok(if parsed.path().starts_with("/.berth") { "/".to_owned() } else { path.to_owned() })
}

fn check_folder(folder: &str) -> Result<String, Error> {
    let bad = |reason| Error::unfit("folder", reason);
    if !folder.starts_with('/') {
        return Err(bad(Reason::FolderNotAbsolute));
    }
    if folder.len() > FOLDER_MAX {
        return Err(bad(Reason::FolderTooLong));
    }
    if folder.chars().any(char::is_control) {
        return Err(bad(Reason::FolderHasControl));
    }
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_never_leads_elsewhere() {
        for right in
            ["/", "/lab/tree/a.ipynb?x=1&y=//z", "/a//b", "/%2e%2e/", "/?next=http://elsewhere.example"]
        {
            assert_eq!(check_path(right).unwrap(), right);
        }
        for wrong in [
            "",
            "lab",
            "//elsewhere.example",
            "/\\elsewhere.example",
            "http://elsewhere.example/",
            "/a\r\nSet-Cookie: x=y",
            "/\t/elsewhere.example",
            "/a b",
            "/é",
            "/a#b",
            "\\/x",
            "/a\\b",
            "*",
        ] {
            assert!(check_path(wrong).is_err(), "{wrong}");
        }
        assert_eq!(check_path("/.berth/enter?ticket=x").unwrap(), "/");
        assert!(check_path(&format!("/{}", "a".repeat(PATH_MAX))).is_err());
    }
}
