//! `berth terminals`: the terminals of an instance that go on without anybody watching.

use clap::Args;
use gateway_api::stream::Terminal;
use jiff::Timestamp;

use super::Session;
use crate::{
    failure::Status,
    output,
    words::{Title, Words},
};

#[derive(Debug, Args)]
pub(crate) struct Terminals {
    /// The instance
    name: String,
    /// Close this terminal: its shell is hung up, as when a window is closed
    #[arg(long, value_name = "TERMINAL")]
    close: Vec<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "close")]
    json: bool,
}

pub(crate) async fn terminals(arguments: &Terminals, session: &Session) -> anyhow::Result<Status> {
    let Terminals { name, close, json } = arguments;
    for terminal in close {
        if let Err(error) = session.client.close_terminal(name, terminal).await {
            return Err(session.explain(name, error).await);
        }
        output::say(&session.words.terminal_closed(terminal));
    }
    if !close.is_empty() {
        return Ok(Status::DONE);
    }
    let terminals = match session.client.terminals(name).await {
        Ok(terminals) => terminals,
        Err(error) => return Err(session.explain(name, error).await),
    };
    if *json {
        output::json(&terminals)?;
    } else if terminals.is_empty() {
        output::say(&session.words.no_terminals(name));
    } else {
        output::data(&table(&terminals, session.words, Timestamp::now()))?;
    }
    Ok(Status::DONE)
}

fn table(terminals: &[Terminal], words: Words, now: Timestamp) -> String {
    let titles = [Title::Terminal, Title::Viewers, Title::Age];
    let row = |terminal: &Terminal| {
        [terminal.name.clone(), terminal.viewers.to_string(), output::age(terminal.since, now)]
    };
    output::table(words, titles, terminals.iter().map(row))
}
