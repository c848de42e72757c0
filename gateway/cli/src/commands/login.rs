//! `berth login`, `logout`, `whoami`.

use clap::Args;
use gateway_api::client::Client;

use super::{Session, keys};
use crate::{
    config::{self, Config, variable},
    failure::{Said, Status},
    output, terminal,
    words::Words,
};

/// What a shell says of a program that Ctrl-C ended.
const INTERRUPTED: Status = Status(130);

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The gateway's address, such as `http://localhost:8080` [default: the last one]
    url: Option<String>,
    /// The user's name
    #[arg(short, long, value_name = "NAME")]
    user: Option<String>,
    /// Read the password from standard input instead of asking for it
    #[arg(long)]
    password_stdin: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Whoami {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn login(arguments: Login, words: Words) -> anyhow::Result<Status> {
    let kept = Config::load()?;
    let Some(url) = arguments.url.or_else(|| variable("BERTH_URL")).or(kept.url) else {
        return Err(Said { what: words.no_gateway(), hint: Some(words.hint_login()) }.into());
    };
    let client = Client::new(&url, None)?;
    let attended = terminal::is_attended();
    let user = match arguments.user {
        Some(user) => user,
        None if attended && !arguments.password_stdin => terminal::ask(words.ask_user())?,
        None => return Err(Said { what: words.no_user(), hint: Some(words.hint_user()) }.into()),
    };
    let password = if arguments.password_stdin {
        terminal::line()?
    } else if attended {
        match terminal::ask_secret(words.ask_password()).await? {
            Some(password) => password,
            None => return Ok(INTERRUPTED),
        }
    } else {
        return Err(Said { what: words.no_password(), hint: Some(words.hint_password()) }.into());
    };
    let signed_in = client.sign_in(&user, &password).await?;
    let name = signed_in.me.name.to_string();
    Config { url: Some(url.clone()), user: Some(name.clone()), token: signed_in.token }.save()?;
    output::say(&words.signed_in(&url, &name));
    if signed_in.me.must_change_password {
        output::say(&words.change_password(&url));
        if attended && !arguments.password_stdin {
            let session = Session { client: config::client(words)?, words };
            return keys::choose_password(&session, password).await;
        }
    }
    Ok(Status::DONE)
}

pub(crate) async fn logout(words: Words) -> anyhow::Result<Status> {
    let kept = Config::load()?;
    let (Some(url), Some(token)) = (kept.url.clone(), kept.token.clone()) else {
        output::say(words.signed_out());
        return Ok(Status::DONE);
    };
    Config { token: None, ..kept }.save()?;
    match Client::new(&url, Some(token))?.sign_out().await {
        Ok(()) => output::say(words.signed_out()),
        // Worthless already.
        Err(error) if error.code() == Some(gateway_api::Code::Unauthenticated) => {
            output::say(words.signed_out());
        }
        Err(error) => output::say(&words.token_lives_on(&error.to_string())),
    }
    Ok(Status::DONE)
}

pub(crate) async fn whoami(arguments: &Whoami, session: &Session) -> anyhow::Result<Status> {
    let me = session.client.me().await?;
    if arguments.json {
        output::json(&me)?;
    } else {
        output::data(me.name.as_str())?;
    }
    Ok(Status::DONE)
}
