//! The gateway: the one door. Holds what should be, decides who may, and carries people into their instances.
//!
//! `lib.rs` reads the settings, builds, serves and drains. `main.rs` adds the commit and calls [`main`].

mod agents;
mod app;
mod auth;
mod clusters;
mod config;
mod error;
mod events;
mod http;
mod listen;
mod lock;
mod memory;
mod metrics;
mod proxy;
mod reconcile;
mod registry;
mod samples;
mod service;
mod ssh;
mod store;
mod task_logs;
mod tasks;

use std::{io::Write as _, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;

use crate::{
    app::{App, NewAdmin},
    config::Config,
    listen::Doors,
    lock::LockError,
    proxy::address::Addresses,
    store::Store,
    tasks::Tasks,
};

/// How long open connections may take to end when the process stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// The exit code for wrong usage or settings.
const USAGE: u8 = 64;
/// Those of `check-registry`.
const UNWELL: u8 = 3;
const REFUSED: u8 = 4;
const NO_REGISTRY: u8 = 5;

const HELP: &str = "\
usage: gateway [COMMAND]

  (no command)           serve the console and the API
  check-config           read the settings; say what is wrong with them, or what is in effect
  check-registry         say whether the registry answers and lets the gateway in; exit code 3: it does not
                         answer, 4: it refuses the login (or there is no password), 5: there is none
  reset-password USER    give a user a new random password and end their sessions
  openapi                print the API's description

Settings: the table [gateway] of berth.toml in the data directory. BERTH_DATA, BERTH_HTTP, BERTH_APPS, BERTH_SSH,
BERTH_METRICS and BERTH_LOG win over it. deploy/berth.example.toml has every key.
";

/// Runs the command that the process's arguments ask for. `commit` is what the program was built from, if known.
pub fn main(commit: Option<&str>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["openapi"] => say(&format!("{}\n", http::openapi_json())),
        ["--version" | "version"] => say(&format!("gateway {}\n", gateway_api::version(commit))),
        ["--help" | "help"] => say(HELP),
        [] => with_config(serve),
        ["check-config"] => with_config(|config| Ok(say(&effective(&config)))),
        ["check-registry"] => with_config(check_registry),
        ["reset-password", user] => with_config(|config| reset_password(config, user)),
        [..] => {
            complain(HELP);
            ExitCode::from(USAGE)
        }
    }
}

fn with_config(run: impl FnOnce(Config) -> anyhow::Result<ExitCode>) -> ExitCode {
    let config = match Config::read() {
        Ok(config) => config,
        Err(mistakes) => {
            complain(&format!("{mistakes}\n"));
            return ExitCode::from(USAGE);
        }
    };
    run(config).unwrap_or_else(|error| {
        complain(&format!("error: {error:#}\n"));
        ExitCode::FAILURE
    })
}

fn serve(config: Config) -> anyhow::Result<ExitCode> {
    memory::share_between_threads();
    run(config)
}

#[tokio::main]
async fn run(config: Config) -> anyhow::Result<ExitCode> {
    envd_api::log::start("BERTH_LOG", "info,sqlx=warn");
    let _lock = prepare(&config)?;
    let tasks = Tasks::default();
    let store = Store::open(&config.data.join("store.db")).await.context("the store cannot be opened")?;
    let app = App::build(config, store, tasks.clone())?;
    let doors = Doors::bind(&app.config, &tasks).await?;
    if let Some(certificates) = &doors.certificates {
        let _ = app.certificates.set(certificates.clone());
    }
    let ssh = ssh::Ssh::bind(&app.config).await?;
    let _ = app.ssh.set(ssh.door.clone());
    let address = doors.site.listener.local_addr()?;
    let apps = doors.apps.as_ref().and_then(|door| door.listener.local_addr().ok());
    let addresses = Addresses::new(&app.config, app.config.console(address), apps);
    let _ = app.addresses.set(addresses);
    if let Some(listener) = doors.metrics {
        metrics::serve(listener, &app)?;
    }
    let admin = app.ensure_admin().await?;
    tasks.spawn("news", events::run(Arc::clone(&app)));
    for cluster in app.clusters.iter() {
        tasks.spawn("place", reconcile::place::run(Arc::clone(&app), Arc::clone(cluster)));
    }
    tasks.spawn("images", reconcile::images::run(Arc::clone(&app)));
    tasks.spawn("queue", reconcile::queue::run(Arc::clone(&app)));
    tasks.spawn("jobs", reconcile::jobs::run(Arc::clone(&app)));
    tasks.spawn("logs", task_logs::run(Arc::clone(&app)));
    tasks.spawn("samples", samples::run(Arc::clone(&app)));
    app.start_chores();
    for (door, target) in doors.redirects {
        let answer = move |request: ::http::Request<_>, _| std::future::ready(target.answer(&request));
        tasks.spawn("redirect", door.serve(tasks.clone(), answer));
    }
    let told = welcome(&app.config.console(address), &ssh, admin);
    ssh.serve(&app)?;
    say(&told);
    tracing::info!(%address, "ready");
    http::serve(doors.site, doors.apps, Arc::clone(&app)).await?;
    tasks.stop(SHUTDOWN_GRACE).await;
    app.store.close().await;
    Ok(ExitCode::SUCCESS)
}

#[tokio::main(flavor = "current_thread")]
async fn reset_password(config: Config, user: &str) -> anyhow::Result<ExitCode> {
    let user = user.parse()?;
    let file = config.data.join("store.db");
    // Whoever has the lock brings the tables up to date; a gateway that runs is not to find others than it knows.
    let lock = prepare(&config);
    let store = match &lock {
        Ok(_) => Store::open(&file).await,
        Err(error) if error.downcast_ref::<LockError>().is_some_and(LockError::is_held) => {
            Store::open_beside(&file).await
        }
        Err(_) => return lock.map(|_| ExitCode::FAILURE),
    };
    let store = store.context("the store cannot be opened")?;
    let app = App::build(config, store, Tasks::default())?;
    let password = app.reset_password(&user).await?;
    Ok(say(&format!("User     {user}\nPassword {password}\n")))
}

/// As the gateway itself asks, with its settings and its login.
#[tokio::main(flavor = "current_thread")]
async fn check_registry(config: Config) -> anyhow::Result<ExitCode> {
    let Some(registry) = registry::Registry::new(&config) else {
        complain("no registry is set\n");
        return Ok(ExitCode::from(NO_REGISTRY));
    };
    let address = config.registry.unwrap_or_default();
    Ok(match registry.check().await {
        Ok(()) => say(&format!("{address} answers and lets the gateway in\n")),
        Err(error) => {
            complain(&format!("{address}: {}\n", error::chain(&error)));
            let refused = matches!(error, registry::NoAnswer::Login | registry::NoAnswer::Password(_));
            ExitCode::from(if refused { REFUSED } else { UNWELL })
        }
    })
}

/// Makes the data directory and takes it for this process alone, before anything binds.
fn prepare(config: &Config) -> anyhow::Result<lock::Lock> {
    // The store and the keys are nobody else's affair, whatever the shell that started us thinks.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    std::fs::create_dir_all(&config.data)
        .with_context(|| format!("cannot make the data directory {}", config.data.display()))?;
    Ok(lock::Lock::take(&config.data.join("gateway.lock"))?)
}

/// The lines that `make up` ends with. The password is shown this once.
fn welcome(console: &str, ssh: &ssh::Ssh, admin: Option<NewAdmin>) -> String {
    let port = ssh.port;
    match admin {
        Some(NewAdmin { name, password }) => {
            format!("Console  {console}\nSSH      port {port}\nUser     {name}\nPassword {password}\n")
        }
        None => format!("Console  {console}\nSSH      port {port}\nUser     admin\n"),
    }
}

/// Every setting and where it comes from. None of them is a secret: those are in files of their own.
fn effective(config: &Config) -> String {
    let settings: Vec<_> = config.settings.iter().map(|setting| format!("  {setting}\n")).collect();
    format!("the settings are fine; those of {}:\n{}", config.data.display(), settings.concat())
}

/// Writes to standard output, which may be closed: nobody to tell then.
fn say(text: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

fn complain(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
