//! The output of tasks, kept after their containers are gone.
//!
//! One file for each task, `logs/tasks/<instance>.log` below the data directory, grows while the task writes. The engine
//! gives a container's output again from its first byte, in the same order, so whoever copies goes on where the file
//! ends, whatever became of the one before. Beside it `.times` says how long the file was at which second, for `since`.
//! Nothing here holds more than a piece of a log in memory.
//!
//! What tasks write is bounded, one by one and all together: a log ends at a limit with a line that says so, and nothing
//! is copied while the disk, which is the store's too, is nearly full.

mod read;

use std::{
    collections::{HashMap, HashSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use envd_api::client::ClientError;
use futures_util::StreamExt as _;
use gateway_api::InstanceId;
use http::StatusCode;
use jiff::Timestamp;
use tokio::{
    fs::{File, OpenOptions},
    io::AsyncWriteExt as _,
    sync::watch,
    time::{MissedTickBehavior, interval},
};

pub(crate) use self::read::{Lines, Part, Reader, holds};
use crate::{
    app::App,
    error::chain,
    store::{Store, StoreError},
};

/// How often it looks for what is to be copied.
const CLOCK: Duration = Duration::from_secs(1);
/// How often, and how far apart, it is looked whether a task has ended whose output has.
const ENDED_LOOKS: u32 = 20;
const ENDED_PAUSE: Duration = Duration::from_millis(50);
/// The bytes of one line of `.times`: milliseconds and length, big-endian.
const MARK_BYTES: usize = 16;

/// What is left of the disk for the store, whatever tasks write: the smaller of these.
const LEFT_BYTES: u64 = 1 << 30;
const LEFT_PERCENT: u64 = 5;

/// The logs of all tasks.
#[derive(Debug)]
pub(crate) struct TaskLogs {
    directory: PathBuf,
    growing: Mutex<HashMap<InstanceId, watch::Sender<u64>>>,
    copying: Mutex<HashSet<InstanceId>>,
}

/// Why a log could not be copied to its end; it is tried again.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error("the cluster did not give the log")]
    Cluster(#[from] ClientError),
    #[error("the log cannot be written")]
    File(#[from] io::Error),
    #[error("the disk has no room for it now")]
    NoRoom,
    #[error("the store did not answer")]
    Store(#[from] StoreError),
}

/// Copies what is to be copied, until the process stops.
pub(crate) async fn run(app: Arc<App>) {
    if let Err(error) = app.logs.sweep(&app.store).await {
        tracing::warn!(error = chain(&error), "logs that nobody needs may have stayed");
    }
    let stopping = app.tasks.stopping();
    let mut clock = interval(CLOCK);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = app.logs_move.notified() => {}
            _ = clock.tick() => {}
        }
        match app.store.logs_to_copy().await {
            Ok(tasks) => tasks.into_iter().for_each(|task| start(&app, task)),
            Err(error) => tracing::error!(error = chain(&error), "cannot see whose output to copy"),
        }
    }
}

fn start(app: &Arc<App>, task: InstanceId) {
    if !app.logs.copying().insert(task.clone()) {
        return;
    }
    let owned = Arc::clone(app);
    app.tasks.spawn("copy a log", async move {
        let stopping = owned.tasks.stopping();
        let copied = tokio::select! {
            () = stopping.cancelled() => Ok(()),
            copied = copy(&owned, &task) => copied,
        };
        if let Err(error) = copied {
            tracing::debug!(instance = %task, error = chain(&error), "a log was not copied to its end");
        }
        owned.logs.copying().remove(&task);
    });
}

/// Follows the output until it ends; whether that is the end is known once the task is known to have ended.
async fn copy(app: &App, task: &InstanceId) -> Result<(), CopyError> {
    if !app.store.task_has_ended(task).await? {
        app.logs.append(app, task, true).await?;
        if !has_ended_soon(app, task).await? {
            // The engine went away, or the container has only been made: by the clock again.
            return Ok(());
        }
    }
    app.logs.append(app, task, false).await?;
    app.store.note_log_whole(task).await?;
    app.logs.growing().remove(task);
    app.jobs_move.notify_one();
    Ok(())
}

/// That a container has ended is reported a moment after its output has.
async fn has_ended_soon(app: &App, task: &InstanceId) -> Result<bool, StoreError> {
    for _ in 0..ENDED_LOOKS {
        if app.store.task_has_ended(task).await? {
            return Ok(true);
        }
        tokio::time::sleep(ENDED_PAUSE).await;
    }
    Ok(false)
}

impl TaskLogs {
    pub(crate) fn new(data: &Path) -> Self {
        Self { directory: data.join("logs/tasks"), growing: Mutex::default(), copying: Mutex::default() }
    }

    fn path(&self, task: &InstanceId, extension: &str) -> PathBuf {
        self.directory.join(task.as_str()).with_extension(extension)
    }

    /// Appends what the file does not have yet.
    async fn append(&self, app: &App, task: &InstanceId, follow: bool) -> Result<(), CopyError> {
        tokio::fs::create_dir_all(&self.directory).await?;
        let append = |path: PathBuf| async move {
            OpenOptions::new().create(true).append(true).mode(0o600).open(path).await
        };
        let mut file = append(self.path(task, "log")).await?;
        let mut times = append(self.path(task, "times")).await?;
        let mut length = file.metadata().await?.len();
        let max = app.config.jobs.log_bytes_max;
        if length >= max {
            return Ok(self.end(task, &mut file, length, max).await?);
        }
        let (mut known, mut marked) = (length, None::<i64>);
        let mut records = Box::pin(app.cluster_of(task).await?.envd.logs(task, None, None, follow));
        while let Some(record) = records.next().await {
            let (_, bytes) = match record {
                Ok(record) => record,
                // It never had a container, or has none any more.
                Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) => break,
                Err(error) => return Err(error.into()),
            };
            let skip = usize::try_from(known).unwrap_or(usize::MAX).min(bytes.len());
            known -= skip as u64;
            let left = usize::try_from(max - length).unwrap_or(usize::MAX);
            let new = &bytes[skip..];
            let new = &new[..new.len().min(left)];
            if new.is_empty() {
                continue;
            }
            let now = Timestamp::now();
            if marked != Some(now.as_second()) {
                if !has_room(&self.directory)? {
                    return Err(CopyError::NoRoom);
                }
                marked = Some(now.as_second());
                times.write_all(&mark(now, length)).await?;
                times.flush().await?;
            }
            file.write_all(new).await?;
            file.flush().await?;
            length += new.len() as u64;
            self.grow(task, length);
            if length >= max {
                return Ok(self.end(task, &mut file, length, max).await?);
            }
        }
        file.sync_data().await?;
        Ok(())
    }

    /// Says where a log ends that has come to its limit, once, whoever was killed over it.
    async fn end(&self, task: &InstanceId, file: &mut File, length: u64, max: u64) -> io::Result<()> {
        let line = end_line(max);
        let said = usize::try_from(length - max).unwrap_or(usize::MAX).min(line.len());
        file.write_all(&line.as_bytes()[said..]).await?;
        file.sync_data().await?;
        self.grow(task, file.metadata().await?.len());
        Ok(())
    }

    fn grow(&self, task: &InstanceId, length: u64) {
        let mut growing = self.growing();
        growing.entry(task.clone()).or_insert_with(|| watch::Sender::new(0)).send_replace(length);
    }

    /// Told whenever the log of a task grows.
    fn watch(&self, task: &InstanceId) -> watch::Receiver<u64> {
        self.growing().entry(task.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Removes what was left of tasks that the store does not know: a kill came between their end and that of their logs.
    /// What was written in a time that the store does not know either may be of a task that it has forgotten: it stays.
    async fn sweep(&self, store: &Store) -> Result<(), CopyError> {
        let unknown = store.unknown_times().await?;
        let mut files = match tokio::fs::read_dir(&self.directory).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            files => files?,
        };
        while let Some(file) = files.next_entry().await? {
            let task = file.path().file_stem().and_then(|stem| stem.to_str()?.parse::<InstanceId>().ok());
            // Of two files of a task the one goes with the other.
            let Ok(about) = file.metadata().await else { continue };
            let written = Timestamp::try_from(about.modified()?).map_err(io::Error::other)?;
            if let Some(task) = task
                && !unknown.iter().any(|time| time.holds(written))
                && !store.is_task(&task).await?
            {
                self.forget(&task).await;
            }
        }
        Ok(())
    }

    /// Removes what was kept of a task.
    pub(crate) async fn forget(&self, task: &InstanceId) {
        self.growing().remove(task);
        for extension in ["log", "times"] {
            match tokio::fs::remove_file(self.path(task, extension)).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(instance = %task, %error, "a log cannot be removed");
                }
                Ok(()) | Err(_) => {}
            }
        }
    }

    async fn open(&self, task: &InstanceId) -> io::Result<Option<File>> {
        match File::open(self.path(task, "log")).await {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn growing(&self) -> MutexGuard<'_, HashMap<InstanceId, watch::Sender<u64>>> {
        self.growing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn copying(&self) -> MutexGuard<'_, HashSet<InstanceId>> {
        self.copying.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last line of a log that was longer.
fn end_line(max: u64) -> String {
    format!("\n[berth] the output is longer than {} MiB; what comes after this line is not kept\n", max >> 20)
}

fn has_room(directory: &Path) -> io::Result<bool> {
    let found = rustix::fs::statvfs(directory)?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let all = found.f_blocks.saturating_mul(found.f_frsize);
    Ok(free >= LEFT_BYTES.min(all / 100 * LEFT_PERCENT))
}

fn mark(at: Timestamp, length: u64) -> [u8; MARK_BYTES] {
    let mut mark = [0; MARK_BYTES];
    mark[..8].copy_from_slice(&at.as_millisecond().to_be_bytes());
    mark[8..].copy_from_slice(&length.to_be_bytes());
    mark
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[tokio::test]
    async fn logs_of_tasks_that_an_older_store_has_forgotten_stay() {
        let folder = tempfile::tempdir().unwrap();
        // A store knows nothing of what was before it.
        let logs = TaskLogs::new(folder.path());
        tokio::fs::create_dir_all(&logs.directory).await.unwrap();
        let (forgotten, left) = (InstanceId::new(), InstanceId::new());
        let put = |task: &InstanceId, written: SystemTime| {
            for extension in ["log", "times"] {
                let file = std::fs::File::create(logs.path(task, extension)).unwrap();
                file.set_modified(written).unwrap();
            }
        };
        put(&forgotten, SystemTime::now() - Duration::from_secs(1));
        let store = Store::open(&folder.path().join("store.db")).await.unwrap();
        put(&left, SystemTime::now() + Duration::from_secs(1));
        logs.sweep(&store).await.unwrap();
        assert!(logs.path(&forgotten, "log").exists() && logs.path(&forgotten, "times").exists());
        assert!(!logs.path(&left, "log").exists() && !logs.path(&left, "times").exists());
    }
}
