//! Passwords: argon2id, a few at a time, the same work for those who exist and those who do not.

use std::sync::Arc;

use argon2::{
    Argon2,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash},
};
use gateway_api::{
    error::Reason,
    session::{PASSWORD_MAX_BYTES, PASSWORD_MIN_CHARS},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;

/// How many are hashed at once: each takes 19 MiB and a core, and strangers may ask for them.
const AT_ONCE: usize = 2;

/// The hasher. One per process.
#[derive(Debug)]
pub(crate) struct Passwords {
    places: Arc<Semaphore>,
    /// What the password of nobody is compared with, so that it costs the same.
    nobody: String,
}

/// A turn to hash once. It lasts until the hashing ends, also when nobody waits for it any more.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    passwords: &'a Passwords,
    place: OwnedSemaphorePermit,
}

impl Passwords {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { places: Arc::new(Semaphore::new(AT_ONCE)), nobody: hash(&random())? })
    }

    pub(crate) async fn turn(&self) -> Result<Turn<'_>, Error> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|error| Error::Internal(error.into()))?;
        Ok(Turn { passwords: self, place })
    }

    pub(crate) async fn hash(&self, password: String) -> Result<String, Error> {
        self.turn().await?.run(move || hash(&password)).await?
    }
}

impl Turn<'_> {
    /// Whether `password` is the one behind `hash`; with no hash, takes as long and says no.
    pub(crate) async fn verify(self, password: String, hash: Option<String>) -> Result<bool, Error> {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.passwords.nobody.clone());
        let matches = self
            .run(move || {
                let parsed =
                    PasswordHash::new(&hash).map_err(|error| Error::Internal(error.to_string().into()))?;
                Ok::<_, Error>(Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok())
            })
            .await??;
        Ok(known && matches)
    }

    async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let place = self.place;
        let work = move || {
            let done = work();
            drop(place);
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(error.into()))
    }
}

/// A password that somebody can read out over the telephone: 20 letters and digits (103 bits), none alike.
pub(crate) fn random() -> String {
    const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    std::iter::repeat_with(|| char::from(LETTERS[rand::random_range(0..LETTERS.len())])).take(20).collect()
}

/// The rule for a password that a user chooses.
pub(crate) fn check(password: &str) -> Result<(), Error> {
    if password.chars().count() < PASSWORD_MIN_CHARS {
        return Err(Error::WeakPassword { reason: Reason::PasswordTooShort });
    }
    if password.len() > PASSWORD_MAX_BYTES {
        return Err(Error::WeakPassword { reason: Reason::PasswordTooLong });
    }
    Ok(())
}

fn hash(password: &str) -> Result<String, Error> {
    Argon2::default()
        .hash_password(password.as_bytes())
        .map(|hash| hash.to_string())
        .map_err(|error| Error::Internal(error.to_string().into()))
}
