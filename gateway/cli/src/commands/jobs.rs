//! `berth jobs`, `rerun`, `change`, and what `show`, `stop` and `rm` do with jobs.

use std::time::Duration;

use clap::Args;
use futures_util::StreamExt as _;
use gateway_api::{
    Job,
    job::{ChangeJob, RerunJob},
};
use jiff::Timestamp;
use tokio::io::{AsyncWriteExt as _, stdout};

use super::{Session, lifecycle, list, submit::succeeded};
use crate::{
    failure::{Said, Status},
    output, size,
    words::{Title, Words},
};

#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// Everyone's that you may see
    #[arg(short, long)]
    all: bool,
    /// Print names only; ids with `--all`
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rerun {
    /// The job
    name: String,
    /// The new job's name [default: the old one with a number]
    #[arg(long = "name", value_name = "NAME")]
    new_name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    wait: lifecycle::Wait,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Terms {
    /// How long it may run from its start, such as `90s`, `30m` or `12h`; `0` for as long as it takes
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    time_limit: Option<Duration>,
    /// From 1 to 9, 9 first
    #[arg(long, value_name = "N")]
    priority: Option<u8>,
}

#[derive(Debug, Args)]
pub(crate) struct Change {
    /// The job
    name: String,
    #[command(flatten)]
    terms: Terms,
}

pub(crate) async fn list(arguments: &Jobs, session: &Session) -> anyhow::Result<Status> {
    let jobs = session.client.jobs(arguments.all).await?;
    if arguments.json {
        output::json(&jobs)?;
    } else if arguments.quiet {
        for job in &jobs {
            output::data(if arguments.all { job.id.as_str() } else { &job.name })?;
        }
    } else if jobs.is_empty() {
        output::say(session.words.no_jobs());
    } else {
        output::data(&table(&jobs, arguments.all, session.words, Timestamp::now()))?;
    }
    Ok(Status::DONE)
}

pub(crate) async fn rerun(arguments: Rerun, session: &Session) -> anyhow::Result<Status> {
    let body = RerunJob { name: arguments.new_name };
    let job = match session.client.rerun_job(&arguments.name, &body).await {
        Ok(job) => job,
        Err(error) => return Err(session.explain(&arguments.name, error).await),
    };
    output::say(&session.words.submitted(&job));
    if arguments.json {
        output::json(&job)?;
    } else {
        output::data(&job.name)?;
    }
    if !arguments.wait.wait {
        return Ok(Status::DONE);
    }
    Ok(exit_status(&until_over(&job, arguments.wait.job_limit(), false, session).await?))
}

pub(crate) async fn change(arguments: &Change, session: &Session) -> anyhow::Result<Status> {
    let Terms { time_limit, priority } = arguments.terms;
    let body = ChangeJob { time_limit_seconds: time_limit.map(|limit| limit.as_secs()), priority };
    match session.client.change_job(&arguments.name, &body).await {
        Ok(job) => {
            output::data(&job.name)?;
            Ok(Status::DONE)
        }
        Err(error) => Err(session.explain(&arguments.name, error).await),
    }
}

/// Everything about a job, or its file as it was submitted or as it was understood.
pub(crate) async fn show(job: &Job, wanted: &list::Show, session: &Session) -> anyhow::Result<Status> {
    if wanted.spec {
        output::data(session.client.job_spec(job.id.as_str()).await?.trim_end())?;
    } else if wanted.file {
        let mut pieces = session.client.job_file(job.id.as_str()).await?;
        let mut out = stdout();
        while let Some(piece) = pieces.next().await {
            out.write_all(&piece?).await?;
        }
        out.flush().await?;
    } else if wanted.json {
        output::json(job)?;
    } else {
        output::data(&details(job, session.words))?;
    }
    Ok(Status::DONE)
}

/// Whether it is a job that `verb` can be done with.
pub(super) async fn knows(verb: lifecycle::Verb, name: &str, session: &Session) -> bool {
    matches!(verb, lifecycle::Verb::Stop | lifecycle::Verb::Remove) && session.client.job(name).await.is_ok()
}

/// Stops or deletes a job.
pub(super) async fn end(
    verb: lifecycle::Verb,
    name: &str,
    wait: &lifecycle::Wait,
    session: &Session,
) -> anyhow::Result<String> {
    let remove = matches!(verb, lifecycle::Verb::Remove);
    let job =
        if remove { session.client.delete_job(name).await? } else { session.client.stop_job(name).await? };
    if wait.wait {
        session.client.wait_for_job(&job.id, wait.job_limit(), |job| !remove && job.is_over()).await?;
    }
    if remove {
        output::say(&session.words.deleted(&job.name, wait.wait));
    }
    Ok(job.name)
}

/// Waits until a job is as wanted, and says meanwhile what it waits for.
pub(super) async fn until(
    job: &Job,
    limit: Duration,
    done: impl Fn(&Job) -> bool,
    session: &Session,
) -> anyhow::Result<Job> {
    let mut said = String::new();
    let words = session.words;
    let found = session.client.wait_for_job(&job.id, limit, |now| {
        let line = words.job_progress(now);
        if line != said && !now.is_over() {
            output::say(&output::printable(&line));
            said = line;
        }
        done(now)
    });
    let gone = || Said { what: words.instance_gone(&job.name), hint: None }.into();
    found.await?.ok_or_else(gone)
}

/// Waits until a job has ended, and says so; to one who follows its output not what it wrote last.
pub(super) async fn until_over(
    job: &Job,
    limit: Duration,
    follows: bool,
    session: &Session,
) -> anyhow::Result<Job> {
    let words = session.words;
    let over = until(job, limit, Job::is_over, session).await?;
    output::say(&output::printable(&words.job_progress(&over)));
    if !follows {
        for line in over.ended.iter().flat_map(|end| &end.last_lines) {
            output::say(&format!("  {}", output::printable(line)));
        }
    }
    if !succeeded(&over) {
        output::say(&format!("{}{}", words.hint(), words.hint_logs(&over.name)));
    }
    Ok(over)
}

/// The exit code of whoever waited: the job's own.
pub(super) fn exit_status(job: &Job) -> Status {
    if succeeded(job) {
        return Status::DONE;
    }
    let code = job.ended.as_ref().and_then(|end| end.exit_code).and_then(|code| u8::try_from(code).ok());
    Status(code.filter(|code| *code != 0).unwrap_or(1))
}

/// `90s`, `30m`, `12h`, `2d`, or seconds.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => 0,
    };
    match digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)) {
        Some(seconds) if unit > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err("write it like `90s`, `30m`, `12h` or `2d`".to_owned()),
    }
}

/// Of everyone's also the owner and the id, by which others reach a job.
fn table(jobs: &[Job], all: bool, words: Words, now: Timestamp) -> String {
    let tasks = |job: &Job| job.roles.iter().map(|role| role.tasks).sum::<u32>().to_string();
    let gpus = |job: &Job| job.roles.iter().map(|role| role.tasks * role.gpus).sum::<u32>().to_string();
    let row = |job: &Job| {
        let ran = job.started_at.map(|start| output::age(start, job.ended_at.unwrap_or(now)));
        let user = if all { job.user.to_string() } else { job.priority.to_string() };
        [
            job.name.clone(),
            words.state_of_job(&job.status).to_owned(),
            user,
            tasks(job),
            gpus(job),
            ran.unwrap_or_default(),
            output::age(job.created_at, now),
        ]
    };
    let third = if all { Title::User } else { Title::Priority };
    let titles = [Title::Name, Title::State, third, Title::Tasks, Title::Gpus, Title::Ran, Title::Age];
    let mut more = output::cluster_column(jobs.iter().map(|job| job.cluster.as_str())).to_vec();
    more.extend(all.then_some(Title::Id));
    let cell = |job: &Job, title: &Title| {
        if matches!(title, Title::Cluster) { job.cluster.clone() } else { job.id.to_string() }
    };
    let rows = jobs.iter().map(|job| (row(job), more.iter().map(|title| cell(job, title)).collect()));
    output::table_with(words, titles, rows, &more)
}

fn details(job: &Job, words: Words) -> String {
    let mut rows = vec![
        (Title::Name, job.name.clone()),
        (Title::State, words.job_state(job)),
        (Title::User, job.user.to_string()),
        (Title::Kind, job.dialect.clone()),
        (Title::Priority, job.priority.to_string()),
        (Title::Attempt, job.attempt.to_string()),
        (Title::Cluster, job.cluster.clone()),
    ];
    if !job.description.is_empty() {
        rows.insert(1, (Title::Description, output::printable(&job.description)));
    }
    rows.extend(job.pool.clone().map(|pool| (Title::Pools, pool)));
    rows.extend(job.share.clone().map(|share| (Title::JobShare, share)));
    if let Some(limit) = job.time_limit_seconds {
        rows.push((Title::TimeLimit, format!("{limit} s")));
    }
    for role in &job.roles {
        let line = format!(
            "{} × {}: {} CPU, {}, {} GPU, {}",
            role.name,
            role.tasks,
            role.cpus,
            size::display(role.memory_bytes),
            role.gpus,
            role.image
        );
        rows.push((Title::Role, line));
    }
    for task in &job.tasks {
        let ports = task.ports.iter().map(|(label, ports)| {
            let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
            format!("{label}={}", ports.join(","))
        });
        let line = [
            format!("{}/{}", task.role, task.index),
            words.task_state(task),
            task.address.clone().unwrap_or_default(),
            ports.collect::<Vec<_>>().join(" "),
        ];
        rows.push((
            Title::Task,
            line.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  "),
        ));
    }
    for line in job.ended.iter().flat_map(|end| &end.last_lines) {
        rows.push((Title::LastLine, line.clone()));
    }
    rows.extend(job.kept_until.map(|until| (Title::KeptUntil, format!("{until:.0}"))));
    rows.push((Title::Created, format!("{:.0}", job.created_at)));
    rows.push((Title::Id, job.id.to_string()));
    output::details(words, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    fn job(name: &str, status: &serde_json::Value, ended: &serde_json::Value) -> Job {
        let task = serde_json::json!({"role": "main", "index": 0, "name": format!("{name}-main-0"), "status": status});
        let ended_at = (!ended.is_null()).then_some("2026-01-31T11:30:00Z");
        serde_json::from_value(serde_json::json!({
            "id": "job_0190f2c3a1b27cc09d3e5f60718293a4", "name": name, "slug": name, "user": "alice",
            "description": "", "dialect": "berth", "interactive": false, "priority": 5,
            "keep_on_failure": false, "goal": "running", "status": status, "attempt": 1,
            "roles": [{"name": "main", "tasks": 1, "image": "base", "command": "train", "cpus": 1.0,
                       "memory_bytes": 1 << 30, "shm_bytes": 0, "gpus": 2}],
            "tasks": [task], "actions": [], "created_at": "2026-01-31T11:00:00Z",
            "ended": ended, "ended_at": ended_at,
        }))
        .unwrap()
    }

    /// The words that Chinese users know from such platforms: 等待 运行 完成 错误 终止.
    #[test]
    fn jobs_in_both_languages() {
        use serde_json::{Value::Null, json};

        let since = "2026-01-31T11:00:00Z";
        let jobs = [
            job("late", &json!({"state": "waiting", "reason": "queued", "message": ""}), &Null),
            job("pulls", &json!({"state": "pulling", "done_bytes": 1, "total_bytes": 2}), &Null),
            job("begins", &json!({"state": "starting"}), &Null),
            job("runs", &json!({"state": "running", "since": since}), &Null),
            job("done", &json!({"state": "succeeded"}), &json!({"cause": "succeeded"})),
            job(
                "fails",
                &json!({"state": "failed", "reason": "exit code 3", "exit_code": 3}),
                &json!({"cause": "exit_code", "exit_code": 3, "task": "main/0"}),
            ),
            job(
                "over",
                &json!({"state": "stopped", "exit_code": null}),
                &json!({"cause": "stopped", "by": "bob"}),
            ),
        ];
        let mut text = Vec::new();
        for words in [Language::English, Language::Chinese].map(Words::new) {
            text.push(table(&jobs, false, words, "2026-01-31T12:00:00Z".parse().unwrap()));
            text.extend(jobs.iter().map(|job| words.job_progress(job)));
            text.push(details(&jobs[3], words));
        }
        insta::assert_snapshot!(text.join("\n\n"));
    }

    #[test]
    fn times_are_as_people_write_them() {
        for (text, seconds) in
            [("90s", 90), ("30m", 1800), ("12h", 43_200), ("2d", 172_800), ("5", 5), ("0", 0)]
        {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "m", "1x", "-1s", "1.5h", "99999999999999999999d"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
