//! `berth logs`.

use clap::Args;
use futures_util::StreamExt as _;
use gateway_api::client::{ClientError, ProcessEvent, StandardStream};
use tokio::io::{AsyncWriteExt as _, stderr, stdout};

use super::Session;
use crate::failure::Status;

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The instance
    name: String,
    /// Go on until it ends
    #[arg(short, long)]
    follow: bool,
    /// Only the last lines [default: 1000]
    #[arg(short = 'n', long, value_name = "LINES")]
    tail: Option<u32>,
}

pub(crate) async fn logs(arguments: &Logs, session: &Session) -> anyhow::Result<Status> {
    if arguments.follow { follow(arguments, session).await } else { print(arguments, session).await }
}

async fn print(arguments: &Logs, session: &Session) -> anyhow::Result<Status> {
    let mut pieces = match session.client.logs(&arguments.name, arguments.tail).await {
        Ok(pieces) => pieces,
        Err(error) => return Err(session.explain(&arguments.name, error).await),
    };
    let mut out = stdout();
    while let Some(piece) = pieces.next().await {
        out.write_all(&piece?).await?;
    }
    out.flush().await?;
    Ok(Status::DONE)
}

async fn follow(arguments: &Logs, session: &Session) -> anyhow::Result<Status> {
    let mut output = match session.client.follow_logs(&arguments.name, arguments.tail).await {
        Ok(output) => output,
        Err(error) => return Err(session.explain(&arguments.name, error).await),
    };
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
            ProcessEvent::Problem(problem) => {
                return Err(session.explain(&arguments.name, ClientError::Problem(problem)).await);
            }
        }
    }
    Ok(Status::DONE)
}
