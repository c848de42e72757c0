//! A session: the shell, a command, or SFTP, in the instance that was named at sign-in.

use std::{collections::BTreeMap, sync::Arc};

use envd_api::{
    agent::{Listen, Raw, Session, SessionTty},
    client::ClientError,
};
use gateway_api::stream::Exit;
use http::StatusCode;
use russh::{
    Channel, ChannelMsg, ChannelReadHalf,
    server::{Handle, Msg},
};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    connection::Shared,
    forward::{self, Opened},
    inbox::{self, Inbox},
    menu,
    relay::{self, Marked, Outbox},
    waiting::{self, Entry},
    words::Words,
};
use crate::{
    agents::AgentError,
    auth::policy::Grant,
    error::{Error, chain},
};

/// The one subsystem that there is.
pub(super) const SFTP: &str = "sftp";
/// The exit code when it was not the command that failed, as `ssh` itself has it.
const NOT_RUN: i32 = 255;
/// Variables of one session, and the longest of them.
const VARIABLES_MAX: usize = 64;
const VARIABLE_MAX_BYTES: usize = 4096;
/// The longest name of a kind of terminal.
const TERM_MAX_BYTES: usize = 64;
/// The longest command: more than a kernel takes for one argument.
const COMMAND_MAX_BYTES: usize = 128 << 10;

/// What a client may set for its session. Never what changes how programs are loaded or found.
pub(super) fn may_set(name: &str) -> bool {
    let locale =
        |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    matches!(name, "LANG" | "LANGUAGE" | "TERM" | "COLORTERM" | "TZ" | "NO_COLOR")
        || name.strip_prefix("LC_").is_some_and(locale)
}

/// What a client wants of a session.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) what: What,
    pub(super) tty: Option<SessionTty>,
    env: BTreeMap<String, String>,
    agent: bool,
}

#[derive(Debug)]
pub(super) enum What {
    Shell,
    Command(Vec<u8>),
    Sftp,
}

/// Carries a session from its requests to its end.
pub(super) async fn run(
    shared: Arc<Shared>,
    channel: Channel<Msg>,
    handle: Handle,
    _place: OwnedSemaphorePermit,
) {
    let number = channel.id().number();
    let (mut read, write) = channel.split();
    let Some(wanted) = requests(&mut read).await else { return };
    let inbox = Inbox::new(&shared.pressure, number);
    let outbox = Outbox { write, handle: handle.clone(), pressure: &shared.pressure };
    tokio::select! {
        () = inbox.fill(&mut read) => {}
        () = serve(&shared, &handle, wanted, &inbox, &outbox) => {}
        () = shared.over.cancelled() => {}
    }
}

/// Reads requests until one of them starts something.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "russh's messages grow; all else was answered where it arrived"
)]
async fn requests(channel: &mut ChannelReadHalf) -> Option<Wanted> {
    let (mut tty, mut env, mut agent) = (None, BTreeMap::new(), false);
    let what = loop {
        match channel.wait().await? {
            ChannelMsg::RequestPty { term, col_width, row_height, terminal_modes, .. } => {
                let term = term.chars().filter(char::is_ascii_graphic).take(TERM_MAX_BYTES).collect();
                let modes = terminal_modes.into_iter().map(|(mode, value)| (mode as u8, value)).collect();
                tty = Some(SessionTty { term, size: inbox::size(col_width, row_height), modes });
            }
            ChannelMsg::WindowChange { col_width, row_height, .. } => {
                if let Some(tty) = &mut tty {
                    tty.size = inbox::size(col_width, row_height);
                }
            }
            ChannelMsg::SetEnv { variable_name, variable_value, .. } => {
                let fits = env.len() < VARIABLES_MAX && variable_value.len() <= VARIABLE_MAX_BYTES;
                if fits && may_set(&variable_name) {
                    env.insert(variable_name, variable_value);
                }
            }
            ChannelMsg::AgentForward { .. } => agent = true,
            ChannelMsg::RequestShell { .. } => break What::Shell,
            ChannelMsg::Exec { command, .. } => break What::Command(command),
            ChannelMsg::RequestSubsystem { name, .. } if name == SFTP => break What::Sftp,
            ChannelMsg::Close => return None,
            _ => {}
        }
    };
    Some(Wanted { what, tty, env, agent })
}

async fn serve(
    shared: &Arc<Shared>,
    handle: &Handle,
    wanted: Wanted,
    inbox: &Inbox<'_>,
    outbox: &Outbox<'_>,
) {
    let chosen = shared.signed().and_then(|signed| signed.caller.user.language);
    let words = Words::of(chosen, &wanted.env);
    if matches!(wanted.what, What::Sftp) && shared.signed().is_some_and(|signed| signed.target.is_none()) {
        return own_storage(shared, words, inbox, outbox).await;
    }
    let entered = match enter(shared, &wanted, words, inbox, outbox).await {
        Ok(entered) => entered,
        Err(error) => {
            shared.note_refusal(&error).await;
            return refuse(outbox, &words.refusal(&error)).await;
        }
    };
    let started = match entered {
        Entry::Open(grant) => start(shared, handle, &grant, wanted, words, inbox, outbox).await,
        Entry::Declined => return outbox.exit(Exit::Code(NOT_RUN)).await,
        Entry::Refused(sentence) => Err(sentence),
    };
    if let Err(sentence) = started {
        refuse(outbox, &sentence).await;
    }
}

/// The way into the instance that was named, or chosen now.
async fn enter(
    shared: &Shared,
    wanted: &Wanted,
    words: Words,
    inbox: &Inbox<'_>,
    outbox: &Outbox<'_>,
) -> Result<Entry, Error> {
    let interactive = matches!(wanted.what, What::Shell) && wanted.tty.is_some();
    let signed = shared.admitted()?;
    let target = match (&signed.target, &wanted.what) {
        (Some(target), _) => target.clone(),
        (None, What::Shell) if interactive => match menu::choose(shared, words, inbox, outbox).await {
            Some(target) => target,
            None => return Ok(Entry::Declined),
        },
        (None, What::Shell | What::Command(_) | What::Sftp) => {
            return Ok(Entry::Refused(words.name_one(signed.caller.user.name.as_str())));
        }
    };
    if interactive {
        waiting::enter(shared, &target, words, inbox, outbox).await
    } else {
        waiting::enter_quietly(shared, &target, words).await
    }
}

/// A user's own storage needs no instance.
async fn own_storage(shared: &Shared, words: Words, inbox: &Inbox<'_>, outbox: &Outbox<'_>) {
    let signed = match shared.admitted() {
        Ok(signed) => signed,
        Err(error) => return refuse(outbox, &words.refusal(&error)).await,
    };
    match shared.app.own_storage(&signed.caller).await {
        Ok(stream) => relay::stream(stream, inbox, outbox, Some(Exit::Code(0))).await,
        Err(ClientError::Refused { message, .. }) => refuse(outbox, &words.storage_refused(&message)).await,
        Err(error @ (ClientError::Unreachable { .. } | ClientError::Protocol(_))) => {
            refuse(outbox, &words.refusal(&Error::ClusterUnreachable(error.into()))).await;
        }
    }
}

/// Enters an instance that runs, or says why not.
async fn start(
    shared: &Arc<Shared>,
    handle: &Handle,
    grant: &Grant,
    wanted: Wanted,
    words: Words,
    inbox: &Inbox<'_>,
    outbox: &Outbox<'_>,
) -> Result<(), String> {
    let agents = &shared.app.agents;
    let told = |error: AgentError| {
        tracing::debug!(instance = %grant.id(), error = chain(&error), "a session was refused");
        words.no_session(&error)
    };
    let command = match wanted.what {
        What::Sftp => {
            let stream = agents.sftp(grant.id()).await.map_err(told)?;
            relay::stream(stream, inbox, outbox, Some(Exit::Code(0))).await;
            return Ok(());
        }
        What::Command(command) if command.len() > COMMAND_MAX_BYTES => {
            let what = format!(" with a command of {} bytes", command.len());
            shared.note(&what, StatusCode::PAYLOAD_TOO_LARGE).await;
            return Err(words.command_too_long().to_owned());
        }
        What::Command(command) => Some(Raw::new(&command)),
        What::Shell => None,
    };
    let mut env = wanted.env;
    add_addresses(shared, &mut env);
    let _agent = if wanted.agent { forward_agent(shared, handle, grant, &mut env).await } else { None };
    let mark = rand::random();
    let session = Session { command, env, tty: wanted.tty, mark };
    let process = agents.session(grant.id(), session).await.map_err(told)?;
    let process = Marked { process, mark, instance: grant.id(), agents };
    relay::process(process, words, inbox, outbox).await;
    Ok(())
}

/// A socket in the instance that leads to the client's own key agent, for as long as the guard is kept. Where none can
/// be made, such as in an image without a place for it, the session does without, as `sshd` has it.
async fn forward_agent(
    shared: &Arc<Shared>,
    handle: &Handle,
    grant: &Grant,
    env: &mut BTreeMap<String, String>,
) -> Option<DropGuard> {
    let listener = match shared.app.agents.listen(grant.id(), Listen::Private {}).await {
        Ok(listener) => listener,
        Err(error) => {
            tracing::info!(instance = %grant.id(), error = chain(&error), "a key agent is not forwarded");
            return None;
        }
    };
    env.insert("SSH_AUTH_SOCK".to_owned(), listener.path.clone());
    let stop = CancellationToken::new();
    let work = forward::accept(Arc::clone(shared), handle.clone(), listener, Opened::Agent, stop.clone());
    shared.app.tasks.spawn("ssh agent", work);
    Some(stop.drop_guard())
}

/// What `sshd` tells of the connection.
fn add_addresses(shared: &Shared, env: &mut BTreeMap<String, String>) {
    let peer = (shared.peer.ip().to_canonical(), shared.peer.port());
    if let Some(local) = shared.local {
        let local_ip = local.ip().to_canonical();
        env.insert("SSH_CLIENT".to_owned(), format!("{} {} {}", peer.0, peer.1, local.port()));
        env.insert("SSH_CONNECTION".to_owned(), format!("{} {} {local_ip} {}", peer.0, peer.1, local.port()));
    }
}

/// One clear line on standard error, and the exit code that `ssh` gives when it could not connect.
async fn refuse(outbox: &Outbox<'_>, sentence: &str) {
    if outbox.stderr(format!("berth: {sentence}\r\n")).await.is_ok() {
        outbox.exit(Exit::Code(NOT_RUN)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_change_programs_are_not_taken() {
        for name in ["LANG", "LC_ALL", "LC_CTYPE", "TERM", "COLORTERM"] {
            assert!(may_set(name), "{name}");
        }
        for name in
            ["LD_PRELOAD", "PATH", "HOME", "LC_", "LC_a", "BASH_ENV", "ENV", "PYTHONPATH", "", "LC_=X"]
        {
            assert!(!may_set(name), "{name}");
        }
    }
}
