//! The waiting room: an address is valid from submission on. Who comes to an instance that does not run yet sees what
//! goes on, and is in its shell as soon as there is one; of one that is stopped they are asked whether to start it.

use std::time::Duration;

use gateway_api::{Action, Instance, Status};
use tokio::time::timeout;

use super::{
    connection::Shared,
    inbox::{Inbox, Input},
    relay::Outbox,
};
use crate::{auth::policy::Grant, error::Error};

/// How often it is looked, whatever is heard meanwhile.
const CLOCK: Duration = Duration::from_secs(1);
const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;

/// Waits until the instance runs. `None`: its owner would rather not.
pub(super) async fn enter(
    shared: &Shared,
    target: &str,
    inbox: &Inbox<'_>,
    outbox: &Outbox<'_>,
) -> Result<Option<Grant>, Error> {
    let signed = shared.signed().ok_or(Error::Unauthenticated)?;
    let app = &shared.app;
    let mut news = app.events.listen();
    let mut shown = String::new();
    loop {
        match app.grant(&signed.caller, target, Action::Exec).await {
            Err(Error::WrongState { .. }) => {}
            result => {
                if !shown.is_empty() && outbox.stdout("\r\n").await.is_err() {
                    return Ok(None);
                }
                return result.map(Some);
            }
        }
        let instance = app.instance(&signed.caller, target).await?;
        if instance.status.allows(Action::Start) && !instance.status.is_passing() {
            let question = format!("berth: {}. Start it? [Y/n] ", describe(&instance));
            if !ask(&question, inbox, outbox).await {
                return Ok(None);
            }
            app.start_instance(&signed.caller, target).await?;
            shown.clear();
            continue;
        }
        let now = describe(&instance);
        if now != shown {
            // The same line over and over, as long as only its numbers change.
            let begin = if shown.is_empty() { "" } else { "\r\x1b[K" };
            if outbox.stdout(format!("{begin}berth: {now} ")).await.is_err() {
                return Ok(None);
            }
            shown = now;
        }
        tokio::select! {
            _ = timeout(CLOCK, news.recv()) => {}
            gave_up = wants_out(inbox) => if gave_up {
                let _ = outbox.stdout("\r\n").await;
                return Ok(None);
            },
        }
    }
}

/// What goes on, in one line.
pub(super) fn describe(instance: &Instance) -> String {
    let name = &instance.name;
    match &instance.status {
        Status::Waiting { message, .. } => format!("`{name}` waits: {message}"),
        Status::Pulling { done_bytes, total_bytes } => {
            let mib = |bytes: u64| bytes >> 20;
            let total = total_bytes.map(|total| format!(" of {}", mib(total))).unwrap_or_default();
            format!("`{name}` gets its image: {}{total} MiB", mib(*done_bytes))
        }
        Status::Starting => format!("`{name}` starts"),
        Status::Running { .. } => format!("`{name}` runs"),
        Status::Stopping => format!("`{name}` is stopping"),
        Status::Stopped { .. } => format!("`{name}` is stopped"),
        Status::Succeeded => format!("the command of `{name}` has ended"),
        Status::Failed { reason, .. } => format!("`{name}` failed: {reason}"),
        Status::Deleting => format!("`{name}` is being deleted"),
    }
}

/// Ctrl-C, Ctrl-D or the end of input. Cancel-safe.
async fn wants_out(inbox: &Inbox<'_>) -> bool {
    match inbox.next().await {
        Input::Data(keys) => keys.contains(&INTERRUPT) || keys.contains(&END),
        Input::End => true,
        Input::Resize(_) | Input::Signal(_) => false,
    }
}

/// Asks and waits for one key; Enter is yes.
async fn ask(question: &str, inbox: &Inbox<'_>, outbox: &Outbox<'_>) -> bool {
    if outbox.stdout(question.to_owned()).await.is_err() {
        return false;
    }
    loop {
        let key = match inbox.next().await {
            Input::Data(keys) => keys.first().copied(),
            Input::End => return false,
            Input::Resize(_) | Input::Signal(_) => None,
        };
        let (answer, shown) = match key {
            Some(b'y' | b'Y' | b'\r' | b'\n') => (true, "yes\r\n"),
            Some(b'n' | b'N' | b'q' | INTERRUPT | END) => (false, "no\r\n"),
            Some(_) | None => continue,
        };
        return outbox.stdout(shown).await.is_ok() && answer;
    }
}
