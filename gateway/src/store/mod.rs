//! What should be, on disk: `SQLite` in WAL mode, one file per table, forward-only migrations.
//!
//! A write that was acknowledged survives `kill -9` and a power cut (`synchronous = FULL`). Only what the cluster
//! reports by itself, and reports again after each start, need not: it is written without waiting for the disk. The
//! store knows rows and types of the contracts; it decides nothing.

mod app_sessions;
mod audit;
mod groups;
mod holdings;
mod image_room;
mod images;
mod instances;
mod job_tasks;
#[cfg(test)]
mod job_tests;
mod jobs;
mod migrations;
mod news;
mod notices;
mod pushed;
mod reservations;
mod secrets;
mod sessions;
mod site;
mod ssh_keys;
#[cfg(test)]
mod tests;
mod tokens;
mod unknown_times;
#[cfg(test)]
mod upgrade_tests;
mod users;

use std::{
    ops::{Deref, DerefMut},
    path::Path,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use sqlx::{
    Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous},
};

pub(crate) use app_sessions::{AppSession, NewAppSession};
pub(crate) use audit::Line;
pub(crate) use groups::GroupId;
pub(crate) use holdings::Whose;
pub(crate) use image_room::{ImageRoom, NoRoom};
pub(crate) use images::{Added, ImageChange, ImageRow, NeededImage, NewImage};
pub(crate) use instances::{InstanceRow, NewInstance, Settled};
pub(crate) use job_tasks::{JobStart, NewTask, TaskRow};
pub(crate) use jobs::{AttemptEnd, JobRow, NewJob};
pub(crate) use news::Topic;
pub(crate) use pushed::{Pushed, PushedImage};
pub(crate) use reservations::{Held, HeldCard, QuotaOwner, Reservation, Waiting, cpus, milli};
pub(crate) use secrets::{NewSecret, SealedSecret};
pub(crate) use ssh_keys::{KnownKey, NewSshKey};
pub(crate) use tokens::NewToken;
pub(crate) use users::{NewUser, User, UserChange, UserId};

use self::migrations::MIGRATIONS;
use crate::metrics;

/// How long a writer waits for another one, which may be of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const READERS_MAX: u32 = 4;

/// The store. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    /// For reading alone.
    pool: SqlitePool,
    /// One connection: `SQLite` has one writer, and those who find it busy sleep for milliseconds at a time, where those
    /// who queue here are next as soon as it is free.
    writer: SqlitePool,
    /// For what may be lost in a power cut, though not by `kill -9`: reports of a download come several times a second.
    reports: SqlitePool,
    changes: news::Changes,
}

/// What can go wrong with the store. `Display` is for the operator; users read `something went wrong on our side`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the disk that holds the store is full")]
    DiskFull(#[source] sqlx::Error),
    #[error("that name is taken")]
    Taken,
    #[error("nobody would be left to administer the site")]
    LastAdmin,
    #[error("the user was removed meanwhile")]
    UserGone,
    #[error("the image `{reference}` was deleted meanwhile")]
    ImageGone { reference: String },
    #[error("the gateway that runs on this store is of another version; stop it first")]
    OtherVersion,
    #[error("the store did not answer as it should")]
    Database(#[source] sqlx::Error),
    #[error("the store holds something that this version cannot read")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Store {
    /// Opens the store at `file`, makes it if it is not there, and brings its tables up to this version. Only for whoever
    /// holds the lock of the data directory.
    pub(crate) async fn open(file: &Path) -> Result<Self, StoreError> {
        let store = Self::connect(file, true).await?;
        let migrated = MIGRATIONS.run(&store.writer).await;
        migrated.map_err(|error| StoreError::Unreadable(error.into()))?;
        store.note_unknown_time().await?;
        Ok(store)
    }

    /// Opens a store that a gateway of this very version uses meanwhile; its tables stay as they are.
    pub(crate) async fn open_beside(file: &Path) -> Result<Self, StoreError> {
        let store = Self::connect(file, false).await?;
        let done: Vec<i64> = sqlx::query_scalar("select version from _sqlx_migrations order by version")
            .fetch_all(&store.pool)
            .await?;
        if done.into_iter().eq(MIGRATIONS.iter().map(|migration| migration.version)) {
            Ok(store)
        } else {
            Err(StoreError::OtherVersion)
        }
    }

    async fn connect(file: &Path, create: bool) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(create)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT);
        let in_a_hurry = options.clone().synchronous(SqliteSynchronous::Normal);
        let changes = news::Changes::default();
        // The first to connect makes the file.
        let writer = connections(1, &changes).connect_with(options.clone()).await?;
        let pool = connections(READERS_MAX, &changes).connect_lazy_with(options.pragma("query_only", "on"));
        let reports = connections(1, &changes).connect_lazy_with(in_a_hurry);
        Ok(Self { pool, writer, reports, changes })
    }

    /// A transaction that writes. It takes its turn at once: one that reads first and then writes could be refused.
    async fn change(&self) -> Result<Change, StoreError> {
        let begun = Instant::now();
        let transaction = self.writer.begin_with("begin immediate").await?;
        Ok(Change { transaction, begun })
    }

    /// One statement and its line in the audit log, both or neither. `false`: it changed nothing, and nothing is written
    /// down.
    async fn audited(
        &self,
        statement: sqlx::query::Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>,
        line: &Line,
    ) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        if statement.execute(&mut *change).await?.rows_affected() == 0 {
            return Ok(false);
        }
        audit::append(&mut change, line).await?;
        change.commit().await?;
        Ok(true)
    }

    /// Whether the store answers.
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("select 1").execute(&self.pool).await?;
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
        self.reports.close().await;
        self.writer.close().await;
    }
}

/// What is written all or not at all. Dropped before [`Self::commit`] it was never there.
#[derive(Debug)]
struct Change {
    transaction: sqlx::Transaction<'static, sqlx::Sqlite>,
    begun: Instant,
}

impl Change {
    /// Once this is done it is on the disk.
    async fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().await?;
        metrics::stored(self.begun.elapsed());
        Ok(())
    }
}

impl Deref for Change {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.transaction
    }
}

impl DerefMut for Change {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        const SQLITE_FULL: &str = "13";
        match error.as_database_error() {
            Some(database) if database.is_unique_violation() => Self::Taken,
            Some(database) if database.code().as_deref() == Some(SQLITE_FULL) => Self::DiskFull(error),
            Some(_) | None => Self::Database(error),
        }
    }
}

/// A pool of so many connections at most. `SQLite` ends a transaction by itself when the disk is full; sqlx does not
/// notice, and would never begin another one on that connection, so such a one is not used again.
fn connections(max: u32, changes: &news::Changes) -> SqlitePoolOptions {
    let changes = changes.clone();
    SqlitePoolOptions::new()
        .max_connections(max)
        // A thread of this process holds the file open: there is no server that could have gone away meanwhile.
        .test_before_acquire(false)
        .after_connect(move |connection, _| Box::pin(changes.clone().watch(connection)))
        .before_acquire(|connection, _| Box::pin(async { Ok(!connection.is_in_transaction()) }))
}

/// Reads a column that holds one of our own types.
fn readable<T, E>(parsed: Result<T, E>) -> Result<T, StoreError>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    parsed.map_err(|error| StoreError::Unreadable(error.into()))
}

fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

fn time(milliseconds: i64) -> Result<Timestamp, StoreError> {
    readable(Timestamp::from_millisecond(milliseconds))
}
