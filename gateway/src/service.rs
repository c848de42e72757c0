//! What the service manager is told (`sd_notify`): ready, stopping, and that we are alive. Without one, nothing.

use std::{sync::Arc, time::Duration};

use sd_notify::NotifyState;

use crate::app::App;

/// Everything listens. From now on the watchdog, if there is one, hears of us for as long as the store answers.
pub(crate) fn ready(app: &Arc<App>) {
    tell(&[NotifyState::Ready]);
    let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| *limit > Duration::ZERO) else { return };
    let (app, stopping, tasks) = (Arc::clone(app), app.tasks.stopping(), app.tasks.clone());
    tasks.spawn("watchdog", async move {
        loop {
            if matches!(tokio::time::timeout(limit / 2, app.store.ping()).await, Ok(Ok(()))) {
                tell(&[NotifyState::Watchdog]);
            }
            tokio::select! {
                () = tokio::time::sleep(limit / 3) => {}
                () = stopping.cancelled() => return,
            }
        }
    });
}

pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(news: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(news) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}
