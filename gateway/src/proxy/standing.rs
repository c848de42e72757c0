//! How an app stands: at which port it answers, or why it does not.
//!
//! A page makes a hundred requests at once, and the agent is asked for one of them: what it said is believed for a few
//! seconds, and until the port no longer answers.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gateway_api::{
    AppName, InstanceId, Status,
    app::{AppAct, AppState},
    words::Language,
};

use super::{Proxy, Visit, page::View, session::Visitor, upstream::NoAnswer};
use crate::{auth::policy, error::Error};

/// How long the port of an app is believed.
const BELIEVED_FOR: Duration = Duration::from_secs(5);
const KNOWN_MAX: usize = 10_000;

/// The ports of apps that answered a moment ago.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<(InstanceId, AppName), Answered>>);

#[derive(Debug)]
struct Answered {
    port: u16,
    /// The folder that it shows, as whoever looked wanted it.
    shows: Option<String>,
    at: Instant,
}

impl Known {
    /// The port, if it is worth trying. Of those who ask when it has become old, one is sent to look again.
    fn port(&self, of: &(InstanceId, AppName), shows: Option<&str>) -> Option<u16> {
        let mut known = self.lock();
        let answered = known.get_mut(of).filter(|answered| answered.shows.as_deref() == shows)?;
        if answered.at.elapsed() < BELIEVED_FOR {
            return Some(answered.port);
        }
        answered.at = Instant::now();
        None
    }

    fn note(&self, of: (InstanceId, AppName), shows: Option<&str>, port: u16) {
        let mut known = self.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(of, Answered { port, shows: shows.map(str::to_owned), at: Instant::now() });
    }

    pub(super) fn forget(&self, of: &(InstanceId, AppName)) {
        self.lock().remove(of);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(InstanceId, AppName), Answered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// The port to send a request to. An app that is stopped is started: that is what a visit means. But of two tabs
    /// that show different folders the one would end the other's with every poll, so there only a page does it.
    pub(super) async fn port(&self, visit: &Visit, visitor: &Visitor) -> Result<Result<u16, View>, Error> {
        let instance = &visitor.session.instance;
        if !matches!(instance.status, Status::Running { .. }) {
            return Ok(Err(self.of_instance(visit.language, visitor)));
        }
        let app = visitor.session.app;
        if let AppName::Port(port) = app {
            return Ok(Ok(port.get()));
        }
        let key = (instance.id.clone(), app);
        let shows = shows(visitor);
        if let Some(port) = self.known.port(&key, shows) {
            return Ok(Ok(port));
        }
        let start = visit.wants_page || shows.is_none();
        Ok(match Box::pin(self.look(visit.language, visitor, start)).await? {
            Ok(port) => {
                self.known.note(key, shows, port);
                Ok(port)
            }
            Err(view) => {
                self.known.forget(&key);
                Err(view)
            }
        })
    }

    /// The port at which an app is now, if that is not the one that was believed.
    pub(super) async fn moved_from(
        &self,
        port: u16,
        language: Language,
        visitor: &Visitor,
    ) -> Result<Option<u16>, Error> {
        let app = visitor.session.app;
        if matches!(app, AppName::Port(_)) {
            return Ok(None);
        }
        let now = self.look(language, visitor, false).await?.ok().filter(|&now| now != port);
        if let Some(now) = now {
            self.known.note((visitor.session.instance.id.clone(), app), shows(visitor), now);
        }
        Ok(now)
    }

    /// What to say when an app did not answer.
    pub(super) async fn why_not(
        &self,
        language: Language,
        visitor: &Visitor,
        no_answer: &NoAnswer,
    ) -> Result<View, Error> {
        let app = visitor.session.app;
        self.known.forget(&(visitor.session.instance.id.clone(), app));
        match no_answer {
            NoAnswer::Agent(error) => Ok(View::agent_unreachable(language, &error.to_string())),
            // What the visitor sent broke off, or its end was in doubt.
            NoAnswer::Broken(error) if error.is_user() => Ok(View::malformed(language)),
            NoAnswer::Broken(error) => Ok(View::broken(language, app, &error.to_string())),
            NoAnswer::Ended => Ok(View::trouble(language)),
            NoAnswer::TooSlow => Ok(View::too_slow(language)),
            NoAnswer::NothingListens => Ok(match self.look(language, visitor, false).await? {
                Ok(_) => View::broken(language, app, "it closed the connection"),
                Err(view) => view,
            }),
        }
    }

    /// What a page says now.
    pub(super) async fn view(&self, language: Language, visitor: &Visitor) -> Result<View, Error> {
        if !matches!(visitor.session.instance.status, Status::Running { .. }) {
            return Ok(self.of_instance(language, visitor));
        }
        Ok(self.look(language, visitor, false).await?.err().unwrap_or_else(View::ready))
    }

    fn of_instance(&self, language: Language, visitor: &Visitor) -> View {
        let instance = &visitor.session.instance;
        let status = self.app.clusters.of(&instance.cluster).seen(instance.status.clone());
        let place = self.app.places.of(instance.id.as_str());
        View::of_instance(language, &status, place.as_ref(), instance.starts_again())
    }

    /// Asks the agent; `start` starts what is stopped.
    async fn look(
        &self,
        language: Language,
        visitor: &Visitor,
        start: bool,
    ) -> Result<Result<u16, View>, Error> {
        let session = &visitor.session;
        let grant = policy::grant_by_app_session(session);
        let looked = self.app.look_at_app(&grant, session.app, session.folder.clone()).await;
        let looked = match looked {
            Ok(app) if start && app.state == AppState::Stopped && session.app.is_started() => {
                self.app.do_with_app(&grant, session.app, AppAct::Start, session.folder.clone()).await
            }
            looked => looked,
        };
        match looked {
            Ok(app) => Ok(match app.port {
                Some(port) if app.state == AppState::Ready => Ok(port),
                Some(_) | None => Err(View::of_app(language, &app)),
            }),
            Err(Error::AgentUnreachable { why, .. }) => Ok(Err(View::agent_unreachable(language, &why))),
            Err(error) => Err(error),
        }
    }
}

/// The folder that an app is to show, for one that is another with another folder.
fn shows(visitor: &Visitor) -> Option<&str> {
    visitor.session.folder.as_deref().filter(|_| visitor.session.app == AppName::Tensorboard)
}
