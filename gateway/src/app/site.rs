//! The site as a whole: what it is called, and how much it asks.

use gateway_api::{
    error::Reason,
    site::{ChangeSite, SITE_NAME_MAX, Site},
};

use super::App;
use crate::{
    auth::{Caller, policy},
    error::Error,
};

impl App {
    pub(crate) async fn site_itself(&self) -> Result<Site, Error> {
        Ok(self.store.site().await?)
    }

    pub(crate) async fn change_site(&self, caller: &Caller, wanted: ChangeSite) -> Result<Site, Error> {
        policy::administer(caller)?;
        let ChangeSite { name, confirm_always, set_up } = wanted;
        let name = name.map(|name| name.trim().to_owned());
        if let Some(name) = &name
            && (name.chars().count() > SITE_NAME_MAX || name.chars().any(char::is_control))
        {
            return Err(Error::unfit("name", Reason::SiteNameTooLong));
        }
        let mut line = caller.line("site.change", "");
        if let Some(name) = &name {
            line = line.with("name", name.as_str());
        }
        for (key, value) in [("confirm_always", confirm_always), ("set_up", set_up)] {
            if let Some(value) = value {
                line = line.with(key, value.to_string());
            }
        }
        self.store.change_site(name.as_deref(), confirm_always, set_up, &line).await?;
        self.site_itself().await
    }
}
