//! `berth token`, `audit`, `passwd`: keys, and what was done with them.

use clap::{Args, Subcommand, ValueEnum};
use gateway_api::{
    audit::{AUDIT_PAGE_MAX, AuditEntry, AuditQuery, AuditResult},
    session::ChangePassword,
    token::{AddToken, ApiToken, Scope},
};
use jiff::Timestamp;

use super::Session;
use crate::{
    failure::{self, Said, Status},
    output, terminal,
    words::{Title, Words},
};

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// List your tokens
    Ls(List),
    /// Make a token and print its secret, which is shown this once
    New(New),
    /// Make tokens worthless, by name or id
    Rm(Remove),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Whose, for admins
    #[arg(long)]
    user: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// What you call it
    name: String,
    /// What it opens
    #[arg(long, value_enum, default_value_t = ScopeWord::All)]
    scope: ScopeWord,
    /// For how long: 1 to 366 days [default: 90]
    #[arg(long)]
    days: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[arg(required = true, value_name = "TOKEN")]
    tokens: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeWord {
    /// All that you may do, but for making tokens
    All,
    /// Lists, details and logs only
    Read,
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only what is not older: a moment such as `2026-01-31T12:00:00Z`, or a time span such as `2h` or `7d`
    #[arg(long, value_parser = moment)]
    since: Option<Timestamp>,
    /// Only what this user did
    #[arg(long, value_name = "USER")]
    actor: Option<String>,
    /// Only this act, such as `sign_in` or `user.remove`
    #[arg(long)]
    act: Option<String>,
    /// The most lines
    #[arg(short = 'n', long, default_value_t = 100)]
    lines: usize,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

pub(crate) async fn token(command: TokenCommand, session: &Session) -> anyhow::Result<Status> {
    let client = &session.client;
    match command {
        TokenCommand::Ls(list) => {
            let tokens = match &list.user {
                Some(user) => client.tokens_of(user).await?,
                None => client.tokens().await?,
            };
            if list.json {
                output::json(&tokens)?;
            } else {
                output::data(&token_table(&tokens, session.words, Timestamp::now()))?;
            }
        }
        TokenCommand::New(new) => {
            let scope = match new.scope {
                ScopeWord::All => Scope::All,
                ScopeWord::Read => Scope::Read,
            };
            let made = client.add_token(&AddToken { name: new.name, scope, days: new.days }).await?;
            if new.json {
                output::json(&made)?;
            } else {
                output::say(&session.words.new_token(made.token.expires_at));
                output::data(&made.secret)?;
            }
        }
        TokenCommand::Rm(remove) => return remove_tokens(&remove.tokens, session).await,
    }
    Ok(Status::DONE)
}

async fn remove_tokens(tokens: &[String], session: &Session) -> anyhow::Result<Status> {
    let own = session.client.tokens().await?;
    let mut status = Status::DONE;
    for wanted in tokens {
        let named = own.iter().find(|token| token.name.as_str() == wanted);
        let id = named.map_or(wanted.as_str(), |token| token.id.as_str());
        match session.client.remove_token(id).await {
            Ok(()) => output::data(wanted)?,
            Err(error) => status = failure::report(&error.into(), session.words, Status::FAILED),
        }
    }
    Ok(status)
}

/// Prints the newest lines, oldest first, so that the end of the screen is now.
pub(crate) async fn audit(arguments: Audit, session: &Session) -> anyhow::Result<Status> {
    let mut lines = Vec::new();
    let mut query = AuditQuery {
        actor: arguments.actor,
        act: arguments.act,
        since: arguments.since,
        ..AuditQuery::default()
    };
    while lines.len() < arguments.lines {
        let left = u32::try_from(arguments.lines - lines.len()).unwrap_or(u32::MAX);
        query.limit = Some(left.min(AUDIT_PAGE_MAX));
        let page = session.client.audit(&query).await?;
        lines.extend(page.items);
        query.before = page.next;
        if page.next.is_none() {
            break;
        }
    }
    lines.reverse();
    if arguments.json {
        for line in &lines {
            output::data(&serde_json::to_string(line)?)?;
        }
    } else {
        output::data(&audit_table(&lines, session.words))?;
    }
    Ok(Status::DONE)
}

/// Changes one's own password.
pub(crate) async fn passwd(session: &Session) -> anyhow::Result<Status> {
    let words = session.words;
    if !terminal::is_attended() {
        // The old one and the new one, a line each.
        let change = ChangePassword { old: terminal::line()?, new: terminal::line()? };
        session.client.change_password(&change).await?;
        return Ok(Status::DONE);
    }
    match terminal::ask_secret(words.ask_old_password()).await? {
        Some(old) => choose_password(session, old).await,
        None => Ok(Status(130)),
    }
}

/// Asks for a new password in place of `old`.
pub(super) async fn choose_password(session: &Session, old: String) -> anyhow::Result<Status> {
    let words = session.words;
    let ask = async |question| terminal::ask_secret(question).await;
    let (Some(new), Some(again)) =
        (ask(words.ask_new_password()).await?, ask(words.ask_password_again()).await?)
    else {
        return Ok(Status(130));
    };
    if new != again {
        return Err(Said { what: words.passwords_differ(), hint: None }.into());
    }
    session.client.change_password(&ChangePassword { old, new }).await?;
    output::say(words.password_changed());
    Ok(Status::DONE)
}

fn token_table(tokens: &[ApiToken], words: Words, now: Timestamp) -> String {
    let titles = [Title::Name, Title::Scope, Title::Age, Title::Used, Title::Expires, Title::Id];
    let row = |token: &ApiToken| {
        [
            token.name.to_string(),
            token.scope.word().to_owned(),
            output::age(token.created_at, now),
            token.last_used_at.map(|used| output::age(used, now)).unwrap_or_default(),
            format!("{:.0}", token.expires_at),
            token.id.to_string(),
        ]
    };
    output::table(words, titles, tokens.iter().map(row))
}

fn audit_table(lines: &[AuditEntry], words: Words) -> String {
    let titles = [Title::Time, Title::User, Title::Source, Title::Act, Title::Object, Title::Outcome];
    let row = |line: &AuditEntry| {
        let details: Vec<_> = line.details.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let object = if details.is_empty() { String::new() } else { format!(" ({})", details.join(" ")) };
        [
            format!("{:.0}", line.at),
            line.actor.clone(),
            line.source.clone(),
            line.act.clone(),
            format!("{}{object}", line.object),
            match line.result {
                AuditResult::Done => words.done_word().to_owned(),
                AuditResult::Refused => words.refused_word().to_owned(),
            },
        ]
    };
    output::table(words, titles, lines.iter().map(row))
}

/// A moment, or how long ago.
fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let wrong = || "write it like `2026-01-31T12:00:00Z`, `30m`, `2h` or `7d`".to_owned();
    let unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86400,
        Some(_) | None => return Err(wrong()),
    };
    let count: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let ago = count.checked_mul(unit).filter(|ago| *ago >= 0).ok_or_else(wrong)?;
    Timestamp::now().checked_sub(jiff::SignedDuration::from_secs(ago)).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn moments_are_absolute_or_ago() {
        assert_eq!(moment("2026-01-31T12:00:00Z").unwrap().to_string(), "2026-01-31T12:00:00Z");
        let day = jiff::SignedDuration::from_hours(24);
        let (before, ago, after) = (Timestamp::now(), moment("1d").unwrap(), Timestamp::now());
        assert!((before - day..=after - day).contains(&ago), "{ago}");
        for wrong in ["", "d", "-1d", "7w", "yesterday", "9223372036854775807d", "七d"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_in_both_languages() {
        let at: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let token = ApiToken {
            id: "tok_0190f2c3a1b27cc09d3e5f60718293a4".parse().unwrap(),
            name: "nightly backup".parse().unwrap(),
            scope: Scope::Read,
            created_at: at,
            expires_at: at,
            last_used_at: Some(at),
        };
        let line = AuditEntry {
            id: 1,
            at,
            actor: "alice".to_owned(),
            source: "127.0.0.1".to_owned(),
            act: "user.change".to_owned(),
            object: "bob\u{1b}[31m".to_owned(),
            result: AuditResult::Refused,
            request_id: String::new(),
            details: [("role".to_owned(), "admin".to_owned())].into(),
        };
        let mut text = Vec::new();
        for words in [Language::English, Language::Chinese].map(Words::new) {
            text.push(token_table(std::slice::from_ref(&token), words, at));
            text.push(audit_table(std::slice::from_ref(&line), words));
            text.push(words.new_token(at));
            text.push(words.passwords_differ());
            text.push(words.password_changed().to_owned());
        }
        insta::assert_snapshot!(text.join("\n\n"));
    }
}
