//! `berth doctor`: looks at everything between a user and their instances, and says what to do about what is wrong.
//!
//! From the user's side it sees what any client sees. With `--server` it looks at a data directory on the machine
//! itself ([`server`]). It only looks: nothing is started, changed or mended.

mod server;

use std::{
    error::Error,
    net::IpAddr,
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use gateway_api::{
    Code, Status as State,
    client::{Client, ClientError, LogPart},
    preparing::{PreparingState, PreparingStep},
};
use jiff::Timestamp;
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    config,
    failure::{self, Status},
    output,
    words::{Words, doctor::Check},
};

/// How long news may take to arrive; a proxy that holds it back holds it for longer.
const NEWS_LIMIT: Duration = Duration::from_secs(10);
/// How far two clocks may be apart; certificates and expiry bear this much.
const CLOCK_LIMIT: Duration = Duration::from_mins(1);

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Look at the server in this data directory instead, on its own machine
    #[arg(long, value_name = "DATA_DIR")]
    server: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Ok,
    Warn,
    Fail,
    /// It cannot be said.
    Skip,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Finding {
    check: Check,
    verdict: Verdict,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// The report as it grows.
#[derive(Debug)]
struct Report {
    words: Words,
    findings: Vec<Finding>,
}

impl Report {
    fn ok(&mut self, check: Check, message: impl Into<String>) {
        self.add(check, Verdict::Ok, message.into(), None);
    }

    fn warn(&mut self, check: Check, message: impl Into<String>, hint: impl Into<String>) {
        self.add(check, Verdict::Warn, message.into(), Some(hint.into()));
    }

    fn fail(&mut self, check: Check, message: impl Into<String>, hint: impl Into<String>) {
        self.add(check, Verdict::Fail, message.into(), Some(hint.into()));
    }

    fn skip(&mut self, check: Check, message: impl Into<String>) {
        self.add(check, Verdict::Skip, message.into(), None);
    }

    fn add(&mut self, check: Check, verdict: Verdict, message: String, hint: Option<String>) {
        self.findings.push(Finding { check, verdict, message, hint });
    }

    /// What the gateway or the way to it said.
    fn fail_client(&mut self, check: Check, error: &ClientError) {
        let (message, hint) = failure::explain(error, self.words);
        self.add(check, Verdict::Fail, message, hint);
    }

    fn text(&self) -> String {
        let line = |finding: &Finding| {
            let verdict = self.words.verdict(finding.verdict);
            let check = self.words.check(finding.check);
            let hint = finding.hint.as_ref().map(|hint| format!("\n       {}{hint}", self.words.hint()));
            let (colon, hint) = (self.words.colon(), hint.unwrap_or_default());
            output::printable(&format!("{verdict}  {check}{colon}{}{hint}", finding.message))
        };
        self.findings.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

pub(crate) async fn doctor(arguments: &Doctor, words: Words) -> anyhow::Result<Status> {
    let mut report = Report { words, findings: Vec::new() };
    match &arguments.server {
        Some(data) => server::look(data, &mut report).await,
        None => look(&mut report).await,
    }
    if arguments.json {
        output::json(&report.findings)?;
    } else {
        output::data(&report.text())?;
    }
    let failed = report.findings.iter().any(|finding| finding.verdict == Verdict::Fail);
    Ok(if failed { Status::FAILED } else { Status::DONE })
}

async fn look(report: &mut Report) {
    let words = report.words;
    let client = match config::client(words) {
        Ok(client) => client,
        Err(error) => {
            let (message, hint) = failure::explain_any(&error, words);
            return report.add(Check::Settings, Verdict::Fail, message, hint);
        }
    };
    report.ok(Check::Settings, words.gateway_is(client.base()));
    let Some(local) = look_at_address(&client, report).await else { return };
    if !look_at_gateway(&client, local, report).await {
        return;
    }
    match client.me().await {
        Ok(me) => report.ok(Check::Token, words.you_are(me.name.as_str())),
        Err(error) => return report.fail_client(Check::Token, &error),
    }
    look_at_preparing(&client, report).await;
    look_at_news(&client, report).await;
    look_at_websocket(&client, report).await;
}

/// Whether the name leads anywhere; and whether that is this very machine.
async fn look_at_address(client: &Client, report: &mut Report) -> Option<bool> {
    let words = report.words;
    let (host, port) = client.host_and_port()?;
    match tokio::net::lookup_host((host.as_str(), port)).await {
        Ok(found) => {
            let addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
            let shown: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            report.ok(Check::Address, words.name_leads_to(&host, &shown.join(", ")));
            Some(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback))
        }
        Err(error) => {
            report.fail(
                Check::Address,
                words.name_leads_nowhere(&host, &error.to_string()),
                words.hint_name(),
            );
            None
        }
    }
}

async fn look_at_gateway(client: &Client, local: bool, report: &mut Report) -> bool {
    let words = report.words;
    let encrypted = client.base().starts_with("https://");
    let begun = Instant::now();
    let survey = match client.survey().await {
        Ok(survey) => survey,
        Err(error) => {
            let about = if encrypted && is_about_certificates(&error) { Check::Tls } else { Check::Gateway };
            let (message, hint) = failure::explain(&error, words);
            let hint = if about == Check::Tls { Some(words.hint_certificate()) } else { hint };
            report.add(about, Verdict::Fail, message, hint);
            return false;
        }
    };
    let took = begun.elapsed();
    match (encrypted, local) {
        (true, _) => report.ok(Check::Tls, words.encrypted()),
        (false, true) => report.ok(Check::Tls, words.plain_but_local()),
        (false, false) => report.warn(Check::Tls, words.not_encrypted(), words.hint_not_encrypted()),
    }
    report.ok(Check::Gateway, words.answers_in(took));
    for part in survey.parts.iter().filter(|part| !part.ok) {
        let message = part.message.as_deref().unwrap_or_default();
        report.warn(Check::Health, format!("{}: {message}", part.name), words.hint_unwell());
    }
    if survey.parts.iter().all(|part| part.ok) {
        report.ok(Check::Health, words.all_well());
    }
    match client.version().await {
        Ok(theirs) if theirs == env!("CARGO_PKG_VERSION") => report.ok(Check::Version, theirs),
        Ok(theirs) => report.warn(
            Check::Version,
            words.versions_differ(&theirs, env!("CARGO_PKG_VERSION")),
            words.hint_version(),
        ),
        Err(error) => report.fail_client(Check::Version, &error),
    }
    match survey.time {
        Some(theirs) => {
            let apart = Timestamp::now().duration_since(theirs).unsigned_abs();
            if apart > CLOCK_LIMIT {
                report.warn(Check::Clock, words.clocks_apart(apart.as_secs()), words.hint_clock());
            } else {
                report.ok(Check::Clock, words.clocks_agree());
            }
        }
        None => report.skip(Check::Clock, words.no_time()),
    }
    true
}

fn is_about_certificates(error: &ClientError) -> bool {
    let mut cause = error.source();
    while let Some(deeper) = cause {
        if deeper.to_string().contains("certificate") {
            return true;
        }
        cause = deeper.source();
    }
    false
}

/// Adds one line while something is being prepared or has failed. A gateway without this list is an older version, which
/// the report says already.
async fn look_at_preparing(client: &Client, report: &mut Report) {
    let steps = match client.preparing().await {
        Ok(steps) => steps,
        Err(error) if error.code() == Some(Code::NotFound) => return,
        Err(error) => return report.fail_client(Check::Preparing, &error),
    };
    tell_preparing(steps, report);
}

fn tell_preparing(mut steps: Vec<PreparingStep>, report: &mut Report) {
    let words = report.words;
    steps.retain(|step| step.state != PreparingState::Done);
    if steps.iter().any(|step| step.state == PreparingState::Failed) {
        report.warn(Check::Preparing, words.preparing(&steps), words.hint_preparing());
    } else if !steps.is_empty() {
        report.ok(Check::Preparing, words.preparing(&steps));
    }
}

async fn look_at_news(client: &Client, report: &mut Report) {
    let words = report.words;
    let heard = timeout(NEWS_LIMIT, async { client.events().await?.begun().await.transpose() }).await;
    match heard {
        Ok(Ok(Some(()))) => report.ok(Check::News, words.news_arrives()),
        Ok(Ok(None)) | Err(_) => {
            report.fail(Check::News, words.no_news(NEWS_LIMIT.as_secs()), words.hint_news());
        }
        Ok(Err(error)) => report.fail_client(Check::News, &error),
    }
}

/// Follows a log: a WebSocket that disturbs nothing.
async fn look_at_websocket(client: &Client, report: &mut Report) {
    let words = report.words;
    let instances = match client.instances().await {
        Ok(instances) => instances,
        Err(error) => return report.fail_client(Check::WebSocket, &error),
    };
    let running = instances.iter().find(|instance| matches!(instance.status, State::Running { .. }));
    let Some(instance) = running else {
        return report.skip(Check::WebSocket, words.websocket_needs_instance());
    };
    match client.follow_logs(instance.name.as_str(), &LogPart { tail: Some(0), ..LogPart::default() }).await {
        Ok(_) => report.ok(Check::WebSocket, words.websocket_works()),
        Err(error) => {
            let (message, _) = failure::explain(&error, words);
            report.fail(Check::WebSocket, message, words.hint_websocket());
        }
    }
}

#[cfg(test)]
mod tests {
    use gateway_api::preparing::PreparingWhat;

    use super::*;
    use crate::words::Language;

    #[test]
    fn reports_in_both_languages() {
        let mut text = Vec::new();
        for words in [Language::English, Language::Chinese].map(Words::new) {
            let mut report = Report { words, findings: Vec::new() };
            report.ok(Check::Address, words.name_leads_to("berth.example.org", "192.0.2.7"));
            report.warn(Check::Clock, words.clocks_apart(90), words.hint_clock());
            report.fail(Check::News, words.no_news(10), words.hint_news());
            report.skip(Check::WebSocket, words.websocket_needs_instance());
            let data = std::path::Path::new("/var/lib/berth");
            report.ok(Check::Data, words.owner_and_mode(data, 0, 0o1770));
            report.fail(Check::Data, words.not_sticky(data), "`chmod +t /var/lib/berth`");
            let tools = std::path::Path::new("/var/lib/berth/tools");
            report.warn(Check::Tools, words.no_tools(tools), words.hint_tools(tools));
            report.fail(Check::Disk, words.free("512 MiB", 3), words.hint_disk());
            for tools in [PreparingState::Working, PreparingState::Failed] {
                let step = |what, state, seconds_left| PreparingStep { what, state, seconds_left };
                let steps = vec![
                    step(PreparingWhat::Base, PreparingState::Done, None),
                    step(PreparingWhat::Tools, tools, None),
                    step(PreparingWhat::Lab, PreparingState::Waiting, Some(480)),
                ];
                tell_preparing(steps, &mut report);
            }
            text.push(report.text());
        }
        insta::assert_snapshot!(text.join("\n\n"));
    }
}
