//! Saves: tells the cluster to save what is to be saved, writes down how far it is, and takes away what is to go.
//!
//! Whatever is not settled in the store is looked at again and again, and as soon as a save ends, and each step can be done twice: a save is asked
//! for by the image's id, an image that is gone can be removed. An image becomes `ready` only when the cluster says that
//! the registry has all of it.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use envd_api::{
    client::ClientError,
    save::{Provenance, PutSave, RemoveImage, SaveState},
};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use gateway_api::{
    Goal, ImageId,
    image::{ImageState, SaveFailure, SaveStep},
};

use crate::{
    app::{App, Refused},
    clusters::Cluster,
    error::chain,
    events::What,
    store::{ImageRow, Line, StoreError},
};

/// How often it looks while there is something to do, and while there is not.
const BUSY: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_secs(5);
/// How long an image rests that could not be taken away, at first and at most.
const REST: Duration = Duration::from_secs(2);
const REST_MAX: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
enum Interrupted {
    #[error("the cluster did not answer")]
    Cluster(#[from] ClientError),
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    #[error("the registry did not answer")]
    Registry(#[from] Refused),
}

/// Runs until the process stops.
pub(crate) async fn run(app: Arc<App>) {
    let stopping = app.tasks.stopping();
    let mut resting = Resting::default();
    loop {
        let rows = round(&app, &mut resting).await.unwrap_or_else(|error| {
            tracing::error!(error = chain(&error), "cannot look after images");
            Vec::new()
        });
        let pause = if rows.is_empty() { IDLE } else { BUSY };
        tokio::select! {
            () = stopping.cancelled() => return,
            () = app.wake_images.notified() => {}
            () = tokio::time::sleep(pause) => {}
            () = any_save(&app, &rows) => {}
        }
    }
}

/// Until the cluster has something to say of a save: that it is over, or how far it is.
async fn any_save(app: &App, rows: &[ImageRow]) {
    let saving = rows.iter().filter(|row| matches!(row.state, ImageState::Saving { .. }));
    let mut told: FuturesUnordered<_> = saving.map(|row| saver(app, row).envd.save(&row.id)).collect();
    while let Some(told) = told.next().await {
        if told.is_ok() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Images that could not be taken away: until when they are left alone, and for how long the next time. Each try keeps
/// everyone from pushing.
#[derive(Debug, Default)]
struct Resting(HashMap<ImageId, (Instant, Duration)>);

impl Resting {
    fn is(&self, image: &ImageId) -> bool {
        self.0.get(image).is_some_and(|(until, _)| Instant::now() < *until)
    }

    fn put(&mut self, image: ImageId) {
        let rest = self.0.get(&image).map_or(REST, |(_, next)| *next);
        self.0.insert(image, (Instant::now() + rest, (rest * 2).min(REST_MAX)));
    }
}

/// One look at all that is not settled; what it was.
async fn round(app: &App, resting: &mut Resting) -> Result<Vec<ImageRow>, StoreError> {
    let rows = app.store.unsettled_images().await?;
    resting.0.retain(|image, _| rows.iter().any(|row| row.id == *image));
    for row in rows.iter().filter(|row| !resting.is(&row.id)).cloned().collect::<Vec<_>>() {
        let (id, goes) = (row.id.clone(), row.state == ImageState::Deleting);
        let step = match &row.state {
            ImageState::Saving { .. } => follow(app, row).await,
            ImageState::Ready | ImageState::Failed { .. } => settle(app, row).await,
            ImageState::Deleting => remove(app, row).await,
        };
        match step {
            Ok(()) => {}
            Err(Interrupted::Store(error)) => return Err(error),
            Err(error @ (Interrupted::Cluster(_) | Interrupted::Registry(_))) if goes => {
                tracing::warn!(image = %id, error = chain(&error), "not taken away yet");
                resting.put(id);
            }
            // It is asked again; that the cluster is away everyone can see.
            Err(error @ (Interrupted::Cluster(_) | Interrupted::Registry(_))) => {
                tracing::debug!(image = %id, error = chain(&error), "it is asked again");
            }
        }
    }
    for row in app.store.images_kept_too_long().await? {
        if forget_save(app, &row).await.is_ok() {
            app.store.keep_image_no_longer(&row.id).await?;
        }
    }
    Ok(rows)
}

/// The cluster that saves it. One that the settings do not list never answers, and so the save waits for it.
fn saver<'a>(app: &'a App, row: &ImageRow) -> &'a Cluster {
    app.clusters.of(&row.cluster)
}

/// What was made for a save may go. A cluster that is not listed any more has nothing to tell; should it come back, it
/// hears of it when unused images are collected.
async fn forget_save(app: &App, row: &ImageRow) -> Result<(), ClientError> {
    match app.clusters.get(&row.cluster) {
        Some(cluster) => cluster.envd.forget_save(&row.id).await,
        None => Ok(()),
    }
}

/// Asks for a save, which also says how far it is.
async fn follow(app: &App, row: ImageRow) -> Result<(), Interrupted> {
    let Some((instance, title)) = row.instance.clone() else { return Ok(()) };
    let request = PutSave {
        instance,
        repository: row.repository.clone(),
        tag: row.tag.clone(),
        exclude: row.exclude.clone(),
        provenance: Provenance {
            author: row.user.to_string(),
            title: title.to_string(),
            message: row.message.clone(),
            base: row.parent.clone(),
        },
    };
    let state = match saver(app, &row).envd.put_save(&row.id, &request).await {
        Ok(state) => state,
        Err(ClientError::Refused { message, status, .. }) if status.is_client_error() => {
            let failure =
                if message.contains("no registry") { SaveFailure::NoRegistry } else { SaveFailure::Other };
            SaveState::Failed { failure, message }
        }
        Err(error) => return Err(error.into()),
    };
    let state = match state {
        SaveState::Saved(saved) => {
            let line = Line::by_system("image.saved", row.id.as_str())
                .with("name", format!("{}:{}", row.repository, row.tag))
                .with("digest", saved.digest.clone());
            if app.store.finish_image(&row.id, &saved, &line).await?
                && let Some(row) = app.store.image(&row.id).await?
            {
                app.announce_image(&row);
                return settle(app, row).await;
            }
            return Ok(());
        }
        SaveState::Failed { failure, message } => {
            // First: as soon as it has failed for its user, they may try again.
            saver(app, &row).envd.rest_save(&row.id).await?;
            ImageState::Failed { failure, message }
        }
        SaveState::Looking => saving(SaveStep::Looking, 0, None),
        SaveState::Packing { done_bytes, total_bytes } => {
            saving(SaveStep::Packing, done_bytes, Some(total_bytes))
        }
        SaveState::Pushing { done_bytes, total_bytes } => {
            saving(SaveStep::Pushing, done_bytes, Some(total_bytes))
        }
        SaveState::Verifying => saving(SaveStep::Verifying, 0, None),
    };
    if state != row.state && app.store.set_image_state(&row.id, &state).await? {
        app.announce_image(&ImageRow { state, ..row });
    }
    Ok(())
}

fn saving(step: SaveStep, done_bytes: u64, total_bytes: Option<u64>) -> ImageState {
    ImageState::Saving { step, done_bytes, total_bytes }
}

/// A save is over: the instance is stopped if that was wanted and the image is whole, and the cluster may forget it.
async fn settle(app: &App, row: ImageRow) -> Result<(), Interrupted> {
    if row.stop && row.state == ImageState::Ready {
        stop(app, &row).await?;
    }
    if row.state == ImageState::Ready {
        forget_save(app, &row).await?;
    }
    Ok(app.store.settle_image(&row.id).await?)
}

async fn stop(app: &App, row: &ImageRow) -> Result<(), Interrupted> {
    let Some((id, _)) = &row.instance else { return Ok(()) };
    while let Some(instance) = app.store.instance(id).await? {
        if instance.goal != Goal::Running {
            app.store.forget_stop(&row.id).await?;
            break;
        }
        let line = Line::by_system("instance.stop", instance.id.as_str()).with("image", row.id.as_str());
        if app.store.stop_after_save(&row.id, &instance.id, instance.generation, &line).await? {
            app.announce_stop(instance);
            break;
        }
    }
    Ok(())
}

/// Out of the cluster, out of the registry, out of the store, in this order.
async fn remove(app: &App, row: ImageRow) -> Result<(), Interrupted> {
    forget_save(app, &row).await?;
    // Nobody may list the same image again between the look and the removal.
    let _alone = app.listing.write().await;
    let ImageRow { repository, tag, digest, .. } = row.clone();
    let keep = app.needed_manifests(&repository, &row.id).await?;
    // Every cluster reaches the registry; the one that saved it may also have it on its engine.
    let cluster = app.clusters.get(&row.cluster).unwrap_or_else(|| app.clusters.first());
    cluster.envd.remove_image(&RemoveImage { repository, tag, digest, keep }).await?;
    app.store.forget_image(&row.id).await?;
    app.events.tell(row.user_id, What::ImageDeleted(row.id));
    Ok(())
}
