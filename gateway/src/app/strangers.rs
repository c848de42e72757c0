//! What strangers try at the doors, written down. They can do so as often as they like, so of each source only so
//! much in a minute.

use std::net::IpAddr;

use gateway_api::UserName;
use governor::DefaultKeyedRateLimiter;

use super::App;
use crate::{
    auth::{Origin, limits::network},
    error::chain,
    store::Line,
};

/// When this many sources are remembered, those that have rested are forgotten.
const SOURCES_MAX: usize = 10_000;

/// What is no sign-in at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Nonsense {
    /// What came first was not SSH, or nothing came.
    NotSsh,
    /// It began as SSH and did not go on so.
    Broken,
    /// More connections than strangers may have.
    Flood,
    /// More passwords than are looked at.
    Guesses,
}

impl Nonsense {
    fn word(self) -> &'static str {
        match self {
            Self::NotSsh => "not SSH",
            Self::Broken => "broken packets",
            Self::Flood => "too many connections",
            Self::Guesses => "too many wrong passwords",
        }
    }
}

impl App {
    /// Writes down that somebody showed a key and did not get in.
    pub(crate) async fn note_refused_key(&self, account: &str, fingerprint: &str, origin: &Origin) {
        if !is_due(&self.strangers, &network(origin.source)) {
            return;
        }
        // What is no user name may be a secret in the wrong place: it is not written down.
        let claimed = if account.parse::<UserName>().is_ok() { account } else { "" };
        self.write_down(origin.line(claimed, "sign_in", claimed).with("fingerprint", fingerprint)).await;
    }

    /// Whether it is time to write down that somebody there sent nonsense: once a minute for each kind.
    pub(crate) fn is_nonsense_due(&self, source: IpAddr, what: Nonsense) -> bool {
        is_due(&self.nonsense, &(network(source), what))
    }

    /// Writes down that somebody sent nonsense.
    pub(crate) async fn note_nonsense(&self, origin: &Origin, what: Nonsense) {
        tracing::info!(from = %origin.source, what = what.word(), "nonsense at the SSH door");
        self.write_down(origin.line("", "access", "ssh").with("why", what.word())).await;
    }

    /// Writes down that somebody there guesses on, though nobody looks: once a minute.
    pub(super) async fn note_guesses(&self, account: &str, origin: &Origin) {
        if self.is_nonsense_due(origin.source, Nonsense::Guesses) {
            let line = origin.line(account, "sign_in", account);
            self.write_down(line.with("why", Nonsense::Guesses.word())).await;
        }
    }

    async fn write_down(&self, line: Line) {
        if let Err(error) = self.store.audit(&line.refused()).await {
            tracing::error!(error = chain(&error), "a stranger's try cannot be written down");
        }
    }
}

/// Whether a key has not been seen too often of late. Of too many keys those that have rested are forgotten.
fn is_due<K: Clone + Eq + std::hash::Hash>(limiter: &DefaultKeyedRateLimiter<K>, key: &K) -> bool {
    if limiter.len() >= SOURCES_MAX {
        limiter.retain_recent();
    }
    limiter.check_key(key).is_ok()
}
