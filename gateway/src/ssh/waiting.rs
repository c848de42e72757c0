//! The waiting room: an address is valid from submission on. Who comes to an instance that does not run yet sees what
//! goes on, and is in its shell as soon as there is one; of one that is stopped they are asked whether to start it,
//! unless they have said so before (`auto_start`).
//!
//! Where nobody sits at a terminal there is nobody to ask and nowhere to show anything: one line, unless the instance is
//! one that starts when it is needed.

use std::time::Duration;

use bytes::BytesMut;
use gateway_api::{Action, Instance, Status, job::Job, stream::Size};
use tokio::{sync::broadcast::Receiver, time::timeout};

use super::{
    connection::Shared,
    inbox::{Inbox, Input},
    relay::Outbox,
    words::Words,
};
use crate::{auth::policy::Grant, error::Error, events::News};

/// How often it is looked, whatever is heard meanwhile.
const CLOCK: Duration = Duration::from_secs(1);
/// How long a program waits for an instance that starts because it is needed.
const PATIENCE: Duration = Duration::from_mins(5);
/// What may be typed ahead, as much as a terminal keeps.
const AHEAD_MAX: usize = 4096;
const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;

/// Whether there is a way in.
#[derive(Debug)]
pub(super) enum Entry {
    Open(Box<Grant>),
    /// The owner would rather not.
    Declined,
    Refused(String),
}

/// How things are.
enum Now {
    Runs(Grant),
    /// It changes by itself.
    Passes(Instance),
    /// It is a task of a job that waits in the line.
    Comes(Box<Job>),
    /// Somebody has to start it.
    Rests(Instance),
    /// It has ended, and nobody can start it again.
    Over(Instance),
}

async fn look(shared: &Shared, target: &str) -> Result<Now, Error> {
    match look_once(shared, target).await {
        // A job may have come out of the line between the look at its tasks and the one at itself.
        Err(Error::NotFound { .. } | Error::Hidden { .. }) => look_once(shared, target).await,
        result => result,
    }
}

async fn look_once(shared: &Shared, target: &str) -> Result<Now, Error> {
    let signed = shared.signed().ok_or(Error::Unauthenticated)?;
    match shared.app.grant(&signed.caller, target, Action::Exec).await {
        Ok(grant) => return Ok(Now::Runs(grant)),
        Err(Error::WrongState { .. }) => {}
        Err(error @ (Error::NotFound { .. } | Error::Hidden { .. })) => {
            let job = shared.app.job_of_coming_task(&signed.caller, target).await?;
            return job.map(|job| Now::Comes(Box::new(job))).ok_or(error);
        }
        Err(error) => return Err(error),
    }
    let instance = shared.app.instance(&signed.caller, target).await?;
    // One that runs has begun to since it was asked.
    Ok(if instance.status.is_passing() || matches!(instance.status, Status::Running { .. }) {
        Now::Passes(instance)
    } else if instance.actions.contains(&Action::Start) {
        Now::Rests(instance)
    } else {
        Now::Over(instance)
    })
}

async fn start(shared: &Shared, target: &str) -> Result<(), Error> {
    let signed = shared.signed().ok_or(Error::Unauthenticated)?;
    match shared.app.start_instance(&signed.caller, target, None).await {
        // Somebody else was quicker.
        Ok(_) | Err(Error::WrongState { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Waits until it is worth looking again: there is news of what is the user's own or everyone's, or it is time.
async fn heard(news: &mut Receiver<News>, shared: &Shared) {
    let own = shared.signed().map(|signed| signed.caller.user.id);
    let heard = async {
        // Who has missed some looks again as well.
        while let Ok(News { owner: Some(owner), .. }) = news.recv().await
            && Some(owner) != own
        {}
    };
    let _or_not = timeout(CLOCK, heard).await;
}

/// Waits at a terminal until the instance runs.
pub(super) async fn enter(
    shared: &Shared,
    target: &str,
    words: Words,
    inbox: &Inbox<'_>,
    outbox: &Outbox<'_>,
) -> Result<Entry, Error> {
    let mut news = shared.app.events.listen();
    let mut shown = String::new();
    let mut ahead = Ahead::default();
    let mut started = false;
    loop {
        let now = match look(shared, target).await? {
            Now::Runs(grant) => {
                ahead.put_back(inbox);
                let quiet = shown.is_empty() || outbox.stdout("\r\n").await.is_ok();
                return Ok(if quiet { Entry::Open(Box::new(grant)) } else { Entry::Declined });
            }
            Now::Over(instance) => return Ok(Entry::Refused(words.is_over(&instance))),
            // It was started, and has ended or failed at once: again and again would be no better.
            Now::Rests(instance) if started => return Ok(Entry::Refused(words.not_running(&instance))),
            Now::Rests(instance) => {
                if !instance.auto_start && !ask(&words.start_it(&instance), words, inbox, outbox).await {
                    return Ok(Entry::Declined);
                }
                start(shared, target).await?;
                started = true;
                shown.clear();
                continue;
            }
            Now::Passes(instance) => words.describe(&instance),
            Now::Comes(job) => words.describe_job(&job),
        };
        if now != shown {
            // The same line over and over, as long as only its numbers change.
            let begin = if shown.is_empty() { "" } else { "\r\x1b[K" };
            if outbox.stdout(format!("{begin}berth: {now} ")).await.is_err() {
                return Ok(Entry::Declined);
            }
            shown = now;
        }
        tokio::select! {
            () = heard(&mut news, shared) => {}
            gave_up = wants_out(inbox, &mut ahead) => if gave_up {
                let _ = outbox.stdout("\r\n").await;
                return Ok(Entry::Declined);
            },
        }
    }
}

/// For a program: in at once or not at all, unless the instance starts when it is needed.
pub(super) async fn enter_quietly(shared: &Shared, target: &str, words: Words) -> Result<Entry, Error> {
    let mut news = shared.app.events.listen();
    let begun = tokio::time::Instant::now();
    let mut started = false;
    loop {
        let instance = match look(shared, target).await? {
            Now::Runs(grant) => return Ok(Entry::Open(Box::new(grant))),
            Now::Over(instance) => return Ok(Entry::Refused(words.is_over(&instance))),
            Now::Comes(job) => return Ok(Entry::Refused(words.not_there_yet(&job))),
            Now::Rests(instance) if instance.auto_start && !started => {
                start(shared, target).await?;
                started = true;
                instance
            }
            Now::Passes(instance) | Now::Rests(instance) => {
                if started && !instance.status.is_passing() || !instance.auto_start {
                    return Ok(Entry::Refused(words.not_running(&instance)));
                }
                instance
            }
        };
        if begun.elapsed() >= PATIENCE {
            return Ok(Entry::Refused(words.took_too_long(&instance)));
        }
        heard(&mut news, shared).await;
    }
}

/// What came for the shell before there was one.
#[derive(Debug, Default)]
struct Ahead {
    keys: BytesMut,
    size: Option<Size>,
}

impl Ahead {
    fn put_back(self, inbox: &Inbox<'_>) {
        inbox.put_back(self.keys.freeze());
        if let Some(size) = self.size {
            inbox.put_first(Input::Resize(size));
        }
    }
}

/// Ctrl-C, Ctrl-D or the end of input. What else is typed is for the shell, as at any terminal. Cancel-safe.
async fn wants_out(inbox: &Inbox<'_>, ahead: &mut Ahead) -> bool {
    match inbox.next().await {
        Input::Data(keys) => {
            if ahead.keys.len() + keys.len() <= AHEAD_MAX {
                ahead.keys.extend_from_slice(&keys);
            }
            keys.contains(&INTERRUPT) || keys.contains(&END)
        }
        Input::End => true,
        Input::Resize(size) => {
            ahead.size = Some(size);
            false
        }
        Input::Signal(_) => false,
    }
}

/// Asks and waits for one key; Enter is yes.
async fn ask(question: &str, words: Words, inbox: &Inbox<'_>, outbox: &Outbox<'_>) -> bool {
    if outbox.stdout(question.to_owned()).await.is_err() {
        return false;
    }
    loop {
        let keys = match inbox.next().await {
            Input::Data(keys) => keys,
            Input::End => return false,
            Input::Resize(_) | Input::Signal(_) => continue,
        };
        let (answer, shown) = match keys.first().copied() {
            Some(b'y' | b'Y' | b'\r' | b'\n') => (true, words.yes()),
            Some(b'n' | b'N' | b'q' | INTERRUPT | END) => (false, words.no()),
            Some(_) | None => continue,
        };
        inbox.put_back(keys.slice(1..));
        return outbox.stdout(format!("{shown}\r\n")).await.is_ok() && answer;
    }
}
