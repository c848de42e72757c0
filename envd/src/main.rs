//! envd: one cluster on one container engine. It launches instances and reports what is.
//!
//! It knows no users, passwords or quotas, and keeps no database: the gateway says what should be, labels on the
//! containers say what is. Stopping envd, gently or not, leaves the instances running.

mod board;
mod config;
mod data;
mod door;
mod http;
mod instance;
mod node;
mod runtime;
mod storage;
mod tasks;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use tracing::{error, info};
use tracing_subscriber::EnvFilter;

use crate::{
    board::Board,
    config::Config,
    data::Data,
    door::Doors,
    http::Socket,
    node::{Node, World},
    runtime::docker::Docker,
    storage::Storages,
    tasks::Tasks,
};

const USAGE: &str = "usage: envd [check-config]";
/// The exit code for a command line or a configuration that is wrong.
const EXIT_USAGE: u8 = 64;
/// What open calls may take to end when envd stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let only_check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["check-config"] => true,
        ["--version"] => return say(&format!("envd {}", env!("CARGO_PKG_VERSION")), ExitCode::SUCCESS),
        ["--help" | "-h"] => return say(USAGE, ExitCode::SUCCESS),
        _ => return complain(USAGE, EXIT_USAGE),
    };
    let config = match Config::read() {
        Ok(config) => config,
        Err(mistakes) => return complain(&mistakes.to_string(), EXIT_USAGE),
    };
    if only_check {
        return say("the configuration is fine", ExitCode::SUCCESS);
    }
    log_to_stderr();
    match run(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!(error = format!("{error:#}"), "envd cannot go on");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(config: &Config) -> anyhow::Result<()> {
    let data = Data::take(config.data.clone())?;
    let cluster = data.cluster()?;
    let agent = data.keep_agent(&config.agent)?;
    let storages = Storages::new(config.home.clone());
    storages.make_roots().with_context(|| format!("cannot make `{}`", config.home.display()))?;
    let tasks = Tasks::default();
    let world = World {
        runtime: Docker::new(&config.docker, cluster.clone()),
        board: Board::new(),
        doors: Doors::new(data.path().to_owned(), config.gateway_user),
        storages,
        agent,
        tasks: tasks.clone(),
    };
    let path = config.socket();
    let socket = Socket::bind(&path, config.gateway_user)
        .with_context(|| format!("cannot listen at `{}`", path.display()))?;
    let node = Arc::new(Node::new(Arc::new(world)));
    node.run();
    info!(cluster, socket = %path.display(), "envd is up");

    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut serving = std::pin::pin!(http::serve(socket, node));
    tokio::select! {
        served = &mut serving => served.context("the control socket failed")?,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    info!("stopping; the instances go on");
    let ((), _) = tokio::join!(tasks.drain(SHUTDOWN_GRACE), timeout(SHUTDOWN_GRACE, serving));
    Ok(())
}

/// One line of JSON for each event.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("BERTH_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .init();
}

fn say(text: &str, code: ExitCode) -> ExitCode {
    let _ = writeln!(io::stdout(), "{text}");
    code
}

fn complain(text: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::from(code)
}
