//! What admins tell everyone: announcements, and the rules with who has agreed to them.

use gateway_api::{
    error::Reason,
    notice::{AddAnnouncement, Announcement, Bilingual, NOTICE_MAX_BYTES, Rules},
};
use jiff::Timestamp;

use super::App;
use crate::{
    auth::{Caller, policy},
    error::Error,
};

impl App {
    pub(crate) async fn announcements(&self, caller: &Caller, all: bool) -> Result<Vec<Announcement>, Error> {
        if all {
            policy::administer(caller)?;
        }
        Ok(self.store.announcements(all).await?)
    }

    pub(crate) async fn add_announcement(
        &self,
        caller: &Caller,
        wanted: AddAnnouncement,
    ) -> Result<Announcement, Error> {
        policy::administer(caller)?;
        let text = trimmed(&wanted.text)?;
        if is_empty(&text) {
            return Err(Error::unfit("text", Reason::TextMissing));
        }
        let starts_at = wanted.starts_at.unwrap_or_else(Timestamp::now);
        if wanted.ends_at.is_some_and(|end| end <= starts_at) {
            return Err(Error::unfit("ends_at", Reason::EndsBeforeItStarts));
        }
        let wanted = AddAnnouncement { text, starts_at: Some(starts_at), ..wanted };
        let line = caller.line("announcement.add", "");
        Ok(self.store.add_announcement(&wanted, starts_at, &line).await?)
    }

    pub(crate) async fn remove_announcement(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        policy::administer(caller)?;
        let missing = || Error::not_found("announcement", id);
        let number: i64 = id.parse().map_err(|_| missing())?;
        let line = caller.line("announcement.remove", id);
        if self.store.remove_announcement(number, &line).await? { Ok(()) } else { Err(missing()) }
    }

    pub(crate) async fn rules(&self, caller: &Caller) -> Result<Rules, Error> {
        Ok(self.store.rules(caller.user.id).await?)
    }

    /// The same text again is no new version: nobody is asked twice.
    pub(crate) async fn set_rules(&self, caller: &Caller, text: Bilingual) -> Result<Rules, Error> {
        policy::administer(caller)?;
        self.store.set_rules(&trimmed(&text)?, &caller.line("rules.set", "")).await?;
        self.rules(caller).await
    }

    pub(crate) async fn accept_rules(&self, caller: &Caller, version: i64) -> Result<Rules, Error> {
        let line = caller.line("rules.accept", "").with("version", version.to_string());
        self.store.accept_rules(caller.user.id, version, &line).await?;
        self.rules(caller).await
    }
}

fn trimmed(text: &Bilingual) -> Result<Bilingual, Error> {
    let (chinese, english) = (text.chinese.trim(), text.english.trim());
    if chinese.len().max(english.len()) > NOTICE_MAX_BYTES {
        return Err(Error::unfit("text", Reason::TextTooLong));
    }
    Ok(Bilingual { chinese: chinese.to_owned(), english: english.to_owned() })
}

fn is_empty(text: &Bilingual) -> bool {
    text.chinese.is_empty() && text.english.is_empty()
}
