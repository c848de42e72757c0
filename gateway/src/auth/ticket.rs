//! Tickets: how a browser that is signed in at one origin becomes signed in at another.
//!
//! A ticket travels in an address, so it is worth little: one use, less than a minute, one user, one page. It is signed
//! with a key that this process makes for itself, and what it opens is remembered here, not in it. After a restart all
//! tickets are void, and whoever held one clicks again.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gateway_api::{AppName, InstanceId};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use super::Key;
use crate::{
    error::Error,
    store::{User, UserId},
};

/// How long a ticket can be used.
const LASTS: Duration = Duration::from_secs(50);
/// How far the wall clock may jump meanwhile. What counts is the time that passes, which is measured too.
const LEEWAY_SECONDS: u64 = 30;
/// Tickets of one user that wait to be used; the oldest of more are void.
const WAITING_MAX: usize = 32;
const ISSUER: &str = "berth";
/// The audience of a ticket for the console itself. No app's address looks like it.
pub(crate) const CONSOLE: &str = "console";

/// What a ticket opens.
#[derive(Debug, Clone)]
pub(crate) struct Pass {
    pub(crate) user: User,
    /// What its owner had shown; whatever the ticket opens ends with it.
    pub(crate) key: Key,
    /// The one address where it can be used.
    pub(crate) audience: String,
    pub(crate) to: Destination,
}

#[derive(Debug, Clone)]
pub(crate) enum Destination {
    App { instance: InstanceId, app: AppName, path: String, folder: Option<String> },
    Console,
}

/// The tickets that were given out.
pub(crate) struct Tickets {
    signing: EncodingKey,
    checking: DecodingKey,
    waiting: Mutex<HashMap<String, Waiting>>,
}

struct Waiting {
    until: Instant,
    pass: Pass,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: String,
    jti: String,
    nbf: i64,
    exp: i64,
}

impl Default for Tickets {
    fn default() -> Self {
        let key: [u8; 32] = rand::random();
        Self {
            signing: EncodingKey::from_secret(&key),
            checking: DecodingKey::from_secret(&key),
            waiting: Mutex::default(),
        }
    }
}

impl std::fmt::Debug for Tickets {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tickets").finish_non_exhaustive()
    }
}

impl Tickets {
    /// A ticket for `pass`, and until when it can be used.
    pub(crate) fn give(&self, pass: Pass) -> Result<(String, Timestamp), Error> {
        let now = Timestamp::now();
        let ends = now.saturating_add(LASTS).unwrap_or(now);
        let jti = format!("{:032x}", rand::random::<u128>());
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: pass.audience.clone(),
            sub: pass.user.name.to_string(),
            jti: jti.clone(),
            nbf: now.as_second(),
            exp: ends.as_second(),
        };
        let text = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.signing)
            .map_err(|error| Error::Internal(error.into()))?;
        let mut waiting = self.waiting();
        waiting.retain(|_, other| other.until > Instant::now());
        make_room(&mut waiting, pass.user.id);
        waiting.insert(jti, Waiting { until: Instant::now() + LASTS, pass });
        Ok((text, ends))
    }

    /// What a ticket opens at `audience`. It is void from then on, whatever comes of it.
    pub(crate) fn take(&self, ticket: &str, audience: &str) -> Option<Pass> {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.leeway = LEEWAY_SECONDS;
        rules.validate_nbf = true;
        rules.set_required_spec_claims(&["exp", "nbf", "aud", "iss", "sub", "jti"]);
        rules.set_audience(&[audience]);
        rules.set_issuer(&[ISSUER]);
        let claims = jsonwebtoken::decode::<Claims>(ticket, &self.checking, &rules).ok()?.claims;
        let Waiting { until, pass } = self.waiting().remove(&claims.jti)?;
        let right =
            until > Instant::now() && pass.audience == audience && claims.sub == pass.user.name.as_str();
        right.then_some(pass)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make_room(waiting: &mut HashMap<String, Waiting>, user: UserId) {
    let of_user = |(_, other): &(&String, &Waiting)| other.pass.user.id == user;
    while waiting.iter().filter(of_user).count() >= WAITING_MAX {
        let oldest = waiting.iter().filter(of_user).min_by_key(|(_, other)| other.until);
        let Some(jti) = oldest.map(|(jti, _)| jti.clone()) else { return };
        waiting.remove(&jti);
    }
}
