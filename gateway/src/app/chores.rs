//! What the gateway does by itself: giving up users who were removed long ago, giving back the room of images that are
//! gone, looking whether the registry is well, and writing down refusals.

use std::{net::IpAddr, num::NonZeroU32, sync::Arc, time::Duration};

use gateway_api::{Status, UserName, audit::AuditResult};
use jiff::{SignedDuration, Timestamp};

use super::{App, saved::full_name};
use crate::{
    auth::live,
    error::{Error, chain},
    reconcile::idle,
    store::Line,
};

/// For how long it is known who held what.
const USAGE_LASTS: SignedDuration = SignedDuration::from_hours(24 * 400);
/// How often the room of images that are gone is given back, and how soon after a start or a failure.
const COLLECTION: Duration = Duration::from_hours(24);
const SOON: Duration = Duration::from_mins(10);
/// How often it is looked whether the registry is well.
const REGISTRY_LOOK: Duration = Duration::from_secs(5);
/// How often it looks.
const CLOCK: Duration = Duration::from_hours(1);

impl App {
    /// Starts the loops that belong to people rather than to clusters.
    pub(crate) fn start_chores(self: &Arc<Self>) {
        self.tasks.spawn("live", live::run(Arc::clone(self)));
        self.tasks.spawn("removed users", run(Arc::clone(self)));
        self.tasks.spawn("images that are gone", collect(Arc::clone(self)));
        self.tasks.spawn("registry", watch_registry(Arc::clone(self)));
        if let Some(limit) = self.config.jobs.idle_stop {
            self.tasks.spawn("idle instances", idle::run(Arc::clone(self), limit));
        }
    }

    /// Gives up all whose time is over at `now`: their instances, secrets and images are deleted, their name is free.
    /// Their files stay.
    pub(crate) async fn purge_removed(&self, now: Timestamp) -> Result<(), Error> {
        let then = now.saturating_sub(self.keep_removed()).unwrap_or(Timestamp::MIN);
        for user in self.store.users_removed_before(then).await? {
            let line = Line::by_system("user.purge", user.name.as_str());
            if self.store.purge_user(user.id, &Status::DELETING, &line).await? {
                tracing::info!(user = %user.name, home = %user.home, "a removed user was given up; the files stay");
                self.clusters.wake();
            }
        }
        self.delete_images_of_nobody().await
    }

    /// Deletes the images of users who were given up. What an instance or a job is made from waits until it is not; the
    /// platform's list is the admins'.
    async fn delete_images_of_nobody(&self) -> Result<(), Error> {
        for row in self.store.images_of_nobody().await? {
            let line = Line::by_system("image.delete", row.id.as_str()).with("name", full_name(&row));
            if self.store.delete_image(&row.id, &line).await? {
                tracing::info!(image = full_name(&row), "an image of a user who was given up goes");
                self.wake_images.notify_one();
            }
        }
        Ok(())
    }
}

/// How many refusals of one user are written down in a minute. A program that runs wild must not fill the disk.
pub(super) const REFUSALS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(60).unwrap();

impl App {
    /// Writes down that somebody was refused something. What has been answered cannot fail any more.
    pub(crate) async fn note_refusal(
        &self,
        actor: &UserName,
        source: Option<IpAddr>,
        request_id: &str,
        what: String,
        status: u16,
    ) {
        tracing::info!(user = %actor, what, status, "refused");
        if self.refusals.check_key(actor).is_err() {
            return;
        }
        let line = Line {
            actor: actor.to_string(),
            source,
            act: "access",
            object: what,
            result: AuditResult::Refused,
            request_id: request_id.to_owned(),
            details: vec![("status", status.to_string())],
        };
        if let Err(error) = self.store.audit(&line).await {
            tracing::error!(error = chain(&error), "a refusal cannot be written down");
        }
    }
}

async fn run(app: Arc<App>) {
    let stopping = app.tasks.stopping();
    let mut clock = tokio::time::interval(CLOCK);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            _ = clock.tick() => {}
        }
        if let Err(error) = app.purge_removed(Timestamp::now()).await {
            tracing::error!(error = chain(&error), "cannot give up removed users");
        }
        let then = Timestamp::now().saturating_sub(USAGE_LASTS).unwrap_or(Timestamp::MIN);
        if let Err(error) = app.store.forget_holdings(then).await {
            tracing::error!(error = chain(&error), "cannot forget what was held long ago");
        }
    }
}

/// Looks by itself, so that whoever asks how the parts are waits for nobody.
async fn watch_registry(app: Arc<App>) {
    let Some(registry) = &app.registry else { return };
    let stopping = app.tasks.stopping();
    let mut clock = tokio::time::interval(REGISTRY_LOOK);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = async { clock.tick().await; registry.look().await } => {}
        }
    }
}

/// Gives back the room of images that are gone; while one is being saved, a little later.
async fn collect(app: Arc<App>) {
    let stopping = app.tasks.stopping();
    let mut rest = SOON;
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(rest) => {}
        }
        rest = match app.collect_old_images().await {
            Ok(()) => COLLECTION,
            Err(error) => {
                tracing::info!(
                    error = chain(&error),
                    "the room of images that are gone is not given back yet"
                );
                SOON
            }
        };
    }
}
