//! How often someone may guess a password: so many wrong ones a minute per account and per source address.
//!
//! Only wrong ones count, so a class that signs in from behind one address is not held up. A try that is under way
//! counts as wrong until it is known to be right: however many are sent at once, no more than the limit are looked at.
//! The limit is on guesses of a password only, so it cannot be used to lock a named victim out of sessions, tokens or
//! other ways in.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::error::Error;

/// Wrong ones in [`WINDOW`].
const WRONG_MAX: usize = 10;
const WINDOW: Duration = Duration::from_mins(1);
/// When this many keys are remembered, those that have rested are forgotten.
const KEYS_MAX: usize = 10_000;

/// The counters. One per process.
#[derive(Debug, Default)]
pub(crate) struct SignInLimits {
    counters: Mutex<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    accounts: HashMap<String, Counter>,
    sources: HashMap<IpAddr, Counter>,
}

#[derive(Debug, Default)]
struct Counter {
    wrong: VecDeque<Instant>,
    under_way: usize,
}

/// A try that is under way. Dropped without [`Try::was_right`] it was wrong.
#[derive(Debug)]
#[must_use]
pub(crate) struct Try<'a> {
    limits: &'a SignInLimits,
    account: String,
    source: IpAddr,
    right: bool,
}

impl SignInLimits {
    /// Whether a try could be let through now. It is cheap, so it stands before the wait for a place to hash.
    pub(crate) fn check(&self, account: &str, source: IpAddr) -> Result<(), Error> {
        self.with(account, source, |_, _| ())
    }

    /// Begins a try, or says how long to wait.
    pub(crate) fn begin(&self, account: &str, source: IpAddr) -> Result<Try<'_>, Error> {
        self.with(account, source, |account, source| {
            account.under_way += 1;
            source.under_way += 1;
        })?;
        Ok(Try { limits: self, account: key(account), source: network(source), right: false })
    }

    fn with(
        &self,
        account: &str,
        source: IpAddr,
        then: impl FnOnce(&mut Counter, &mut Counter),
    ) -> Result<(), Error> {
        let now = Instant::now();
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let Counters { accounts, sources } = &mut *counters;
        forget(accounts, now);
        forget(sources, now);
        let account = accounts.entry(key(account)).or_default();
        let source = sources.entry(network(source)).or_default();
        account.check(now)?;
        source.check(now)?;
        then(account, source);
        Ok(())
    }
}

impl Try<'_> {
    pub(crate) fn was_right(mut self) {
        self.right = true;
    }
}

impl Drop for Try<'_> {
    fn drop(&mut self) {
        let mut counters = self.limits.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let Counters { accounts, sources } = &mut *counters;
        let both = [accounts.get_mut(&self.account), sources.get_mut(&self.source)];
        for counter in both.into_iter().flatten() {
            counter.under_way = counter.under_way.saturating_sub(1);
            if !self.right {
                counter.wrong.push_back(Instant::now());
            }
        }
    }
}

impl Counter {
    fn check(&mut self, now: Instant) -> Result<(), Error> {
        while self.wrong.front().is_some_and(|&then| now.duration_since(then) >= WINDOW) {
            self.wrong.pop_front();
        }
        if self.wrong.len() + self.under_way < WRONG_MAX {
            return Ok(());
        }
        let wait = self.wrong.front().map_or(Duration::ZERO, |&oldest| (oldest + WINDOW).duration_since(now));
        Err(Error::TooManyAttempts { seconds: wait.as_secs() + 1 })
    }

    fn rests(&self, now: Instant) -> bool {
        self.under_way == 0 && self.wrong.back().is_none_or(|&last| now.duration_since(last) >= WINDOW)
    }
}

fn forget<K: Hash + Eq>(counters: &mut HashMap<K, Counter>, now: Instant) {
    if counters.len() > KEYS_MAX {
        counters.retain(|_, counter| !counter.rests(now));
    }
}

/// A name that no account can have needs no counter of its own.
fn key(account: &str) -> String {
    account.parse::<gateway_api::UserName>().map(String::from).unwrap_or_default()
}

/// One household of IPv6 has 2⁶⁴ addresses: they count as one.
pub(crate) fn network(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        source @ IpAddr::V4(_) => source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn elsewhere(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    #[test]
    fn only_wrong_ones_count() {
        let limits = SignInLimits::default();
        for _ in 0..100 {
            limits.begin("alice", HERE).unwrap().was_right();
        }
        for _ in 0..10 {
            drop(limits.begin("alice", HERE).unwrap());
        }
        let refused = limits.begin("alice", elsewhere(1)).unwrap_err();
        assert!(matches!(refused, Error::TooManyAttempts { seconds: 1..=61 }), "per account");
        assert!(limits.begin("bob-2", HERE).is_err(), "per source");
        limits.begin("bob-2", elsewhere(1)).unwrap().was_right();
    }

    #[test]
    fn tries_at_once_do_not_slip_through() {
        let limits = SignInLimits::default();
        let tries: Vec<_> = (0..20).filter_map(|n| limits.begin("alice", elsewhere(n)).ok()).collect();
        assert_eq!(tries.len(), 10);
        drop(tries);
        assert!(limits.check("alice", elsewhere(99)).is_err());
    }

    #[test]
    fn a_network_is_one_source() {
        let limits = SignInLimits::default();
        for n in 0..10 {
            let source: IpAddr = format!("2001:db8::{n}").parse().unwrap();
            drop(limits.begin(&format!("user-{n}"), source).unwrap());
        }
        assert!(limits.check("another", "2001:db8::ffff".parse().unwrap()).is_err());
        assert!(limits.check("another", "2001:db8:0:1::1".parse().unwrap()).is_ok());
        assert!(limits.check("another", "::ffff:127.0.0.1".parse().unwrap()).is_ok());
    }
}
