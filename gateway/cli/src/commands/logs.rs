//! `berth logs`.

use clap::Args;
use futures_util::{Stream, StreamExt as _};
use gateway_api::{
    Code, Job, JobId, Status as State,
    client::{ClientError, LogPart, Process, ProcessEvent, ProcessOutput, StandardStream},
};
use jiff::Timestamp;
use tokio::io::{AsyncWriteExt as _, stderr, stdout};

use super::{Session, jobs, lifecycle};
use crate::{attach, failure::Status, output};

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The instance, the job, or a task of it: `JOB/ROLE/0`
    name: String,
    /// Go on until it ends
    #[arg(short, long)]
    follow: bool,
    /// Only the last lines [default: 1000 for an instance, all for a job]
    #[arg(short = 'n', long, value_name = "LINES")]
    tail: Option<u32>,
    /// Only what came since, such as `10m` ago or `2026-01-31T12:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<Timestamp>,
    /// Only lines that hold this text
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// For a job: which try, from 1 [default: the last]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
}

pub(crate) async fn logs(arguments: &Logs, session: &Session) -> anyhow::Result<Status> {
    let (job, task) = match arguments.name.split_once('/') {
        Some((job, task)) => (job, Some(task.to_owned())),
        None => (arguments.name.as_str(), None),
    };
    // Most jobs are asked for by their own name, and so are instances: whichever is there.
    let is_job = task.is_some() || {
        let instance = session.client.instance(job).await;
        instance.err().and_then(|error| error.code()) == Some(Code::NotFound)
            && session.client.job(job).await.is_ok()
    };
    if is_job {
        return of_job(arguments, job, task, session).await;
    }
    let part = part(arguments, None);
    if arguments.follow {
        let output = session.client.follow_logs(&arguments.name, &part).await;
        follow(explained(output, arguments, session).await?).await
    } else {
        let pieces = session.client.logs(&arguments.name, &part).await;
        print(explained(pieces, arguments, session).await?).await
    }
}

fn part(arguments: &Logs, task: Option<String>) -> LogPart {
    LogPart {
        task,
        attempt: arguments.attempt,
        tail: arguments.tail,
        since: arguments.since,
        grep: arguments.grep.clone(),
        ..LogPart::default()
    }
}

/// What happened to the job to standard error, what its task wrote to standard output.
async fn of_job(
    arguments: &Logs,
    job: &str,
    task: Option<String>,
    session: &Session,
) -> anyhow::Result<Status> {
    let part = part(arguments, task);
    for happened in explained(session.client.job_events(job).await, arguments, session).await? {
        let line = format!("{:.0}  {}", happened.at, session.words.job_event(&happened.event));
        output::say(&output::printable(&line));
    }
    if arguments.follow {
        let found = explained(session.client.job(job).await, arguments, session).await?;
        if found.is_over() || arguments.attempt.is_some() {
            let output = session.client.follow_job_logs(job, &part).await;
            return follow(explained(output, arguments, session).await?).await;
        }
        follow_tries(&found.id, &part, session).await?;
        jobs::until_over(&found, lifecycle::JOB_LIMIT, true, session).await?;
        Ok(Status::DONE)
    } else {
        let pieces = session.client.job_logs(job, &part).await;
        print(explained(pieces, arguments, session).await?).await
    }
}

/// Says where the job is until it runs, then prints what its task writes, in each of its tries.
pub(super) async fn follow_tries(id: &JobId, part: &LogPart, session: &Session) -> anyhow::Result<()> {
    let (mut seen, mut said) = (0, String::new());
    loop {
        let begun = |job: &Job| {
            let line = session.words.job_progress(job);
            let waits = matches!(job.status, State::Waiting { .. } | State::Pulling { .. } | State::Starting);
            if line != said && !job.is_over() {
                output::say(&output::printable(&line));
                said = line;
            }
            job.is_over() || job.attempt > seen + 1 || (job.attempt > seen && !waits)
        };
        let now = session.client.wait_for_job(id, lifecycle::JOB_LIMIT, begun).await?;
        let Some(now) = now.filter(|now| now.attempt > seen) else { return Ok(()) };
        let last = if now.tasks.is_empty() { now.attempt - 1 } else { now.attempt };
        for attempt in seen + 1..=last {
            let part = LogPart { attempt: Some(attempt), ..part.clone() };
            follow(session.client.follow_job_logs(id.as_str(), &part).await?).await?;
        }
        seen = now.attempt;
        if now.is_over() {
            return Ok(());
        }
    }
}

async fn explained<T>(
    answer: Result<T, ClientError>,
    arguments: &Logs,
    session: &Session,
) -> anyhow::Result<T> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(error) => Err(session.explain(&arguments.name, error).await),
    }
}

async fn print(
    mut pieces: impl Stream<Item = Result<impl AsRef<[u8]>, ClientError>> + Unpin,
) -> anyhow::Result<Status> {
    let mut out = stdout();
    while let Some(piece) = pieces.next().await {
        out.write_all(piece?.as_ref()).await?;
    }
    out.flush().await?;
    Ok(Status::DONE)
}

async fn follow(process: Process) -> anyhow::Result<Status> {
    let Process { input, output } = process;
    attach::patiently(input, hear(output)).await
}

async fn hear(mut output: ProcessOutput) -> anyhow::Result<Status> {
    while let Some(event) = output.next().await {
        match event? {
            ProcessEvent::Output { stream: StandardStream::Stdout, bytes } => {
                let mut out = stdout();
                out.write_all(&bytes).await?;
                out.flush().await?;
            }
            ProcessEvent::Output { stream: StandardStream::Stderr, bytes } => {
                stderr().write_all(&bytes).await?;
            }
            ProcessEvent::Exit(_) => break,
            ProcessEvent::Problem(problem) => return Err(ClientError::Problem(problem).into()),
        }
    }
    Ok(Status::DONE)
}

/// A time, or how long ago.
fn parse_since(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let ago =
        jobs::parse_time(text).map_err(|_| "write it like `10m` or `2026-01-31T12:00:00Z`".to_owned())?;
    Timestamp::now().checked_sub(ago).map_err(|error| error.to_string())
}
