//! `berth open` and `berth tensorboard`: the tools of an instance, in the browser.

use clap::Args;
use gateway_api::{
    AppName,
    app::{CreateTensorboard, OpenApp},
};
use jiff::Timestamp;

use super::{Session, lifecycle};
use crate::{
    browser,
    failure::{Said, Status},
    output,
};

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

pub(crate) async fn open(arguments: Open, session: &Session) -> anyhow::Result<Status> {
    let Open { name, app, folder, print } = arguments;
    if let Some(folder) = &folder {
        check(folder, session)?;
    }
    open_app(&name, app, folder, print, session).await
}

pub(crate) async fn tensorboard(arguments: Tensorboard, session: &Session) -> anyhow::Result<Status> {
    let Tensorboard { folder, name, open, wait } = arguments;
    check(&folder, session)?;
    let wanted = CreateTensorboard { folder: folder.clone(), name };
    let mut instance = session.client.create_tensorboard(&wanted).await?;
    if wait.wait || open {
        instance = wait.until_at_rest(session, instance).await?;
    } else {
        output::say(&session.words.board_being_made(instance.name.as_str()));
    }
    output::data(instance.name.as_str())?;
    if !open {
        return Ok(Status::DONE);
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
) -> anyhow::Result<Status> {
    let place = OpenApp { path: None, folder };
    let opened = match session.client.open_app(name, app, &place).await {
        Ok(opened) => opened,
        Err(error) => return Err(session.explain(name, error).await),
    };
    if print {
        output::data(&opened.url)?;
    } else if browser::open(&opened.url).await {
        output::say(&session.words.opened(name, &app.to_string()));
    } else {
        let left = opened.expires_at.duration_since(Timestamp::now()).as_secs().max(0);
        output::say(&session.words.no_browser(left));
        output::data(&opened.url)?;
    }
    Ok(Status::DONE)
}
