//! `berth secret`: values that instances and jobs use by name, and logins of registries.

use std::io::Read as _;

use clap::{Args, Subcommand};
use gateway_api::{
    client::SecretsOf,
    secret::{SECRET_MAX_BYTES, Secret, SecretRegistry, SetSecret},
};
use jiff::Timestamp;

use super::Session;
use crate::{
    failure::{self, Status},
    output, terminal,
    words::{Title, Words},
};

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// List your secrets; values are never shown
    Ls(List),
    /// Set a secret, new or not; its value is asked for, or read from standard input
    ///
    /// With `--registry` and `--user` it is the password of a registry, which is given to that registry alone when an
    /// image comes from there.
    Set(Set),
    /// Remove secrets
    Rm(Remove),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// The site's, for admins
    #[arg(long)]
    site: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// What you call it, such as `HF_TOKEN`
    name: String,
    /// The registry that it is the password of, such as `registry.example.org:5000`
    #[arg(long, value_name = "HOST", requires = "user")]
    registry: Option<String>,
    /// Who signs in to that registry
    #[arg(long, value_name = "USER", requires = "registry")]
    user: Option<String>,
    /// For everyone's images, by an admin; only with `--registry`
    #[arg(long)]
    site: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[arg(required = true, value_name = "SECRET")]
    names: Vec<String>,
    /// The site's, for admins
    #[arg(long)]
    site: bool,
}

pub(crate) async fn secret(command: SecretCommand, session: &Session) -> anyhow::Result<Status> {
    let client = &session.client;
    match command {
        SecretCommand::Ls(list) => {
            let secrets = client.secrets(keeper(list.site)).await?;
            if list.json {
                output::json(&secrets)?;
            } else {
                output::data(&table(&secrets, session.words, Timestamp::now()))?;
            }
            Ok(Status::DONE)
        }
        SecretCommand::Set(set) => {
            let Some(value) = value(&set.name, session.words).await? else { return Ok(Status(130)) };
            let registry = set.registry.zip(set.user).map(|(host, user)| SecretRegistry { host, user });
            let kept = client.set_secret(keeper(set.site), &set.name, &SetSecret { value, registry }).await?;
            output::data(kept.name.as_str())?;
            Ok(Status::DONE)
        }
        SecretCommand::Rm(remove) => {
            let mut status = Status::DONE;
            for name in &remove.names {
                match client.remove_secret(keeper(remove.site), name).await {
                    Ok(()) => output::data(name)?,
                    Err(error) => status = failure::report(&error.into(), session.words, Status::FAILED),
                }
            }
            Ok(status)
        }
    }
}

fn keeper(site: bool) -> SecretsOf {
    if site { SecretsOf::Site } else { SecretsOf::Me }
}

/// Never from the command line, which others on the machine can read.
async fn value(name: &str, words: Words) -> anyhow::Result<Option<String>> {
    if terminal::is_attended() {
        return Ok(terminal::ask_secret(&words.ask_secret_value(name)).await?);
    }
    let mut value = String::new();
    // One byte more than there may be: the gateway says what is too long.
    std::io::stdin().lock().take(SECRET_MAX_BYTES as u64 + 2).read_to_string(&mut value)?;
    // What `echo` and editors add.
    let end =
        value.strip_suffix('\n').map_or(value.len(), |rest| rest.strip_suffix('\r').unwrap_or(rest).len());
    value.truncate(end);
    Ok(Some(value))
}

fn table(secrets: &[Secret], words: Words, now: Timestamp) -> String {
    let row = |secret: &Secret| {
        let (host, user) =
            secret.registry.as_ref().map_or(("", ""), |registry| (&registry.host, &registry.user));
        [secret.name.to_string(), host.to_owned(), user.to_owned(), output::age(secret.changed_at, now)]
    };
    output::table(words, [Title::Name, Title::Registry, Title::User, Title::Changed], secrets.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn secrets_in_both_languages() {
        let at: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let registry = SecretRegistry { host: "registry.example.org".to_owned(), user: "alice".to_owned() };
        let secret = |name: &str, registry| Secret { name: name.parse().unwrap(), registry, changed_at: at };
        let secrets = [secret("HF_TOKEN", None), secret("lab", Some(registry))];
        let text = [Language::English, Language::Chinese]
            .map(Words::new)
            .map(|words| format!("{}\n{}", table(&secrets, words, at), words.ask_secret_value("HF_TOKEN")));
        insta::assert_snapshot!(text.join("\n\n"));
    }
}
