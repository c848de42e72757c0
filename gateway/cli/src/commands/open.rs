//! `berth open` and `berth tensorboard`: the tools of an instance, in the browser.

use clap::Args;
use gateway_api::{
    AppName, Status,
    app::{AppState, CreateTensorboard, OpenApp},
};
use jiff::Timestamp;

use super::{Session, lifecycle};
use crate::{
    browser,
    failure::{self, Said},
    output,
};

/// How much of an app's log is shown.
const LOG_LINES: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct Open {
    /// The instance
    name: String,
    /// `lab`, `ide`, `terminal`, `tensorboard`, `desktop`, or the number of a port
    #[arg(value_name = "APP", default_value = "lab", value_parser = app)]
    app: AppName,
    /// The folder to begin in; with `tensorboard` the one to show
    #[arg(long, value_name = "PATH")]
    folder: Option<String>,
    /// Print an address that signs in one browser, once and soon, instead of opening it
    #[arg(long)]
    print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tensorboard {
    /// The folder with the event files, as an instance sees it, such as `/userhome/runs`
    folder: String,
    /// The instance's name [default: made up]
    #[arg(long)]
    name: Option<String>,
    /// The cluster to make it on [default: the site's first]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Wait until it runs and open it in the browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    wait: lifecycle::Wait,
}

fn app(text: &str) -> Result<AppName, String> {
    text.parse().map_err(|_| {
        "use `lab`, `ide`, `terminal`, `tensorboard`, `desktop`, or a port from 1 to 65535".to_owned()
    })
}

pub(crate) async fn open(arguments: Open, session: &Session) -> anyhow::Result<failure::Status> {
    let Open { name, app, folder, print } = arguments;
    if let Some(folder) = &folder {
        check(folder, session)?;
    }
    open_app(&name, app, folder, print, session).await
}

pub(crate) async fn tensorboard(
    arguments: Tensorboard,
    session: &Session,
) -> anyhow::Result<failure::Status> {
    let Tensorboard { folder, name, cluster, open, wait } = arguments;
    check(&folder, session)?;
    let wanted = CreateTensorboard { folder: folder.clone(), name, cluster };
    let mut instance = session.client.create_tensorboard(&wanted).await?;
    if wait.wait || open {
        instance = wait.until_at_rest(session, instance).await?;
    } else {
        output::say(&session.words.board_being_made(instance.name.as_str()));
    }
    output::data(instance.name.as_str())?;
    if !open {
        return Ok(failure::Status::DONE);
    }
    open_app(instance.name.as_str(), AppName::Tensorboard, Some(folder), false, session).await
}

/// Folders are those of the instance: what is relative here would be relative to nothing there.
fn check(folder: &str, session: &Session) -> Result<(), Said> {
    if folder.starts_with('/') {
        return Ok(());
    }
    Err(Said { what: session.words.folder_not_absolute(folder), hint: Some(session.words.hint_folder()) })
}

async fn open_app(
    name: &str,
    app: AppName,
    folder: Option<String>,
    print: bool,
    session: &Session,
) -> anyhow::Result<failure::Status> {
    foretell(name, app, session).await?;
    let place = OpenApp { path: None, folder };
    let opened = match session.client.open_app(name, app, &place).await {
        Ok(opened) => opened,
        Err(error) => return Err(session.explain(name, error).await),
    };
    if !print && browser::open(&opened.url).await {
        output::say(&session.words.opened(name, &app.to_string()));
        return Ok(failure::Status::DONE);
    }
    if !opened.url.contains("ticket=") {
        output::say(&session.words.signs_in_nobody());
    } else if !print {
        let left = opened.expires_at.duration_since(Timestamp::now()).as_secs().max(0);
        output::say(&session.words.no_browser(left));
    }
    output::data(&opened.url)?;
    Ok(failure::Status::DONE)
}

/// Says what the browser is going to show, where that is not the app: the address is good all the same, unless the app
/// cannot be had in this instance at all.
async fn foretell(name: &str, app: AppName, session: &Session) -> anyhow::Result<()> {
    let words = session.words;
    let instance = match session.client.instance(name).await {
        Ok(instance) => instance,
        Err(error) => return Err(session.explain(name, error).await),
    };
    if !matches!(instance.status, Status::Running { .. }) {
        output::say(&words.opens_later(&instance));
        return Ok(());
    }
    if app == AppName::Terminal {
        return Ok(());
    }
    let found = session.client.app(name, app).await?;
    if let (AppName::Port(port), AppState::Stopped) = (app, found.state) {
        output::say(&words.nothing_listens(name, port.get()));
        return Ok(());
    }
    let preparing = found.preparing.as_ref().map(|step| words.app_preparing(step));
    let problem = preparing.or_else(|| found.problem.as_ref().map(|problem| words.app_problem(problem)));
    match (found.state, problem) {
        (AppState::Absent, Some((what, hint))) => {
            let what = words.app_cannot_be_had(name, &app.to_string(), &what);
            return Err(Said { what, hint: Some(hint) }.into());
        }
        (AppState::Failed, Some((what, hint))) => {
            for line in last_lines(&output::printable(&found.log)) {
                output::say(&format!("  {line}"));
            }
            output::say(&words.app_failed(name, &app.to_string(), &what, &hint));
        }
        (AppState::Installable, _) => output::say(&words.app_installable(name, &app.to_string())),
        (
            AppState::Absent
            | AppState::Failed
            | AppState::Stopped
            | AppState::Installing
            | AppState::Starting
            | AppState::Ready,
            _,
        ) => {}
    }
    Ok(())
}

/// The end of a log, as much as helps.
fn last_lines(log: &str) -> Vec<&str> {
    let mut lines: Vec<_> =
        log.lines().rev().filter(|line| !line.trim().is_empty()).take(LOG_LINES).collect();
    lines.reverse();
    lines
}
