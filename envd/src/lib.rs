//! envd: one cluster on one container engine. It launches instances and reports what is.
//!
//! It knows no users, passwords or quotas, and keeps no database: the gateway says what should be, labels on the
//! containers say what is. Stopping envd, gently or not, leaves the instances running.

mod board;
mod cards;
mod code;
mod config;
mod data;
mod disk;
mod door;
mod extras;
mod for_users;
mod http;
mod instance;
mod node;
mod room;
mod runtime;
mod save;
mod storage;
mod subnet;
mod tasks;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use sd_notify::NotifyState;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use tracing::{error, info, warn};

use crate::{
    board::Board,
    cards::Cards,
    config::Config,
    data::Data,
    door::Doors,
    extras::Extras,
    for_users::Names,
    http::Socket,
    node::{Node, World},
    runtime::docker::{Docker, Settings},
    save::{Saves, registry::Registry},
    storage::Storages,
    tasks::Tasks,
};

const USAGE: &str = "\
usage: envd [COMMAND]

  (no command)    launch instances and report what is
  check-config    read the settings and say what is wrong with them
  purge           remove this cluster's networks and firewall rules, with envd stopped; containers and files stay";
/// The exit code for a command line or a configuration that is wrong.
const EXIT_USAGE: u8 = 64;
/// What the first look at the graphics processors may take.
const FIRST_LOOK: Duration = Duration::from_secs(20);
/// What open calls may take to end when envd stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// What the command line asks for.
#[derive(Debug, Clone, Copy)]
enum Command {
    Run,
    CheckConfig,
    Purge,
}

/// Runs the command that the process's arguments ask for. `commit` is what the program was built from, if known.
pub fn main(commit: Option<&str>) -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let command = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Command::Run,
        ["check-config"] => Command::CheckConfig,
        ["purge"] => Command::Purge,
        [save::still::COMMAND, file, freeze, thaw] => {
            return match save::still::hold_still(file, freeze, thaw) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => complain(&error.to_string(), 1),
            };
        }
        ["--version"] => return say(&format!("envd {}", gateway_api::version(commit)), ExitCode::SUCCESS),
        ["--help" | "-h"] => return say(USAGE, ExitCode::SUCCESS),
        _ => return complain(USAGE, EXIT_USAGE),
    };
    let config = match Config::read() {
        Ok(config) => config,
        Err(mistakes) => return complain(&mistakes.to_string(), EXIT_USAGE),
    };
    envd_api::log::start("BERTH_LOG", "info");
    let done = match command {
        Command::CheckConfig => {
            let storages = Storages::new(config.storages);
            let warnings = storages.warnings().map(|warning| format!("warning: {warning}"));
            let all: Vec<_> = warnings.chain(["the configuration is fine".to_owned()]).collect();
            return say(&all.join("\n"), ExitCode::SUCCESS);
        }
        Command::Run => run(&config),
        Command::Purge => purge(&config),
    };
    match done {
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
    let path = config.socket();
    let storages = Storages::new(config.storages.clone());
    storages.make_home().context("cannot make the directory of the homes")?;
    storages.warnings().for_each(|warning| warn!(warning, "a storage is open to others"));
    let tasks = Tasks::default();
    // A second provider among the dependencies would otherwise leave the choice open.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let registry = config.registry.clone().map(Registry::new).transpose()?;
    let cards = Arc::new(Cards::new(config.nvml.clone()));
    let looking = Arc::clone(&cards);
    // Before anyone asks: a machine that seems to have none would have jobs refused.
    if timeout(FIRST_LOOK, tasks.blocking(move || looking.look())).await.is_err() {
        warn!("the graphics processors take long to answer");
    }
    let world = World {
        cards,
        board: Board::new(),
        doors: Doors::new(data.path().to_owned(), config.gateway_user),
        storages,
        agent,
        extras: Extras { tools: config.tools.clone(), certificates: config.instance_ca.clone() },
        disk_limit_bytes: config.disk_limit_bytes,
        tasks: tasks.clone(),
        saves: Saves::new(
            registry,
            config.registry_files.clone(),
            config.image_layers_max,
            config.image_compression,
            data.path(),
        ),
        names: names(config),
        runtime: Docker::new(settings(config), cluster.clone()),
    };
    let socket = Socket::bind(&path, config.gateway_user)
        .with_context(|| format!("cannot listen at `{}`", path.display()))?;
    let node = Arc::new(Node::new(Arc::new(world)));
    node.run();
    // Whoever hears that it is ready may tell it to stop.
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    info!(cluster, socket = %path.display(), "envd is up");
    tell_service_manager(NotifyState::Ready);

    let mut serving = std::pin::pin!(http::serve(socket, node));
    tokio::select! {
        served = &mut serving => served.context("the control socket failed")?,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    info!("stopping; the instances go on");
    tell_service_manager(NotifyState::Stopping);
    let ((), _) = tokio::join!(tasks.drain(SHUTDOWN_GRACE), timeout(SHUTDOWN_GRACE, serving));
    Ok(())
}

/// For an uninstall, and for tests: what is left on this machine when the containers are gone.
#[tokio::main(flavor = "current_thread")]
async fn purge(config: &Config) -> anyhow::Result<()> {
    if !config.data.join("cluster").exists() {
        return Ok(());
    }
    let data = Data::take(config.data.clone())?;
    Ok(Docker::new(settings(config), data.cluster()?).purge().await?)
}

fn settings(config: &Config) -> Settings {
    Settings {
        socket: config.docker.clone(),
        registries: config.registries.clone(),
        hub_relay: config.hub_relay.clone(),
        registry: config.registry.clone(),
        network_pool: config.network_pool,
        dangerous_no_firewall: config.dangerous_no_firewall,
    }
}

fn names(config: &Config) -> Names {
    Names {
        registry: config.registry.as_ref().map(|registry| registry.address.clone()),
        hub_relay: config.hub_relay.clone(),
        registries: config.registries.clone().unwrap_or_default(),
    }
}

/// Without one, nothing happens.
fn tell_service_manager(news: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[news]) {
        warn!(%error, "the service manager cannot be told");
    }
}

fn say(text: &str, code: ExitCode) -> ExitCode {
    let _ = writeln!(io::stdout(), "{text}");
    code
}

fn complain(text: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::from(code)
}
