//! How often someone may try to sign in: so many times a minute per account and per source address.
//!
//! The limit is on guesses of a password only, so it cannot be used to lock a named victim out of other ways in.

use std::{net::IpAddr, num::NonZeroU32};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter, clock::Clock as _};

use crate::error::Error;

/// Tries in a minute.
const PER_MINUTE: NonZeroU32 = NonZeroU32::new(10).unwrap();
/// When this many keys are remembered, those that have rested are forgotten.
const KEYS_MAX: usize = 10_000;

/// The counters. One per process.
#[derive(Debug)]
pub(crate) struct SignInLimits {
    accounts: DefaultKeyedRateLimiter<String>,
    sources: DefaultKeyedRateLimiter<IpAddr>,
}

impl SignInLimits {
    pub(crate) fn new() -> Self {
        let quota = Quota::per_minute(PER_MINUTE);
        Self { accounts: RateLimiter::keyed(quota), sources: RateLimiter::keyed(quota) }
    }

    /// Counts one try, or says how long to wait.
    pub(crate) fn count(&self, account: &str, source: IpAddr) -> Result<(), Error> {
        if self.accounts.len() > KEYS_MAX {
            self.accounts.retain_recent();
        }
        if self.sources.len() > KEYS_MAX {
            self.sources.retain_recent();
        }
        // A name that no account can have needs no counter of its own.
        let account = account.parse::<gateway_api::UserName>().map(String::from).unwrap_or_default();
        let now = governor::clock::DefaultClock::default().now();
        let wait = |until: governor::NotUntil<_>| Error::TooManyAttempts {
            seconds: until.wait_time_from(now).as_secs() + 1,
        };
        self.sources.check_key(&source).map_err(wait)?;
        self.accounts.check_key(&account).map_err(wait)
    }
}
