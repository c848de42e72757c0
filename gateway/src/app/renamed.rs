//! Another name for an image.
//!
//! The image stays what it is, by its digest. What was made from it goes on, and is made anew from where it was: so its
//! manifest stays there too until nothing needs it (`app/collect.rs`). By its former name it is not found any more, and
//! that name is free.

use gateway_api::{error::Reason, image::ImageState};

use super::{
    App, Refused,
    saved::{check_name, full_name},
};
use crate::{auth::Caller, error::Error, store::ImageRow};

impl App {
    /// Gives an image of the caller's another name, another tag, or both.
    pub(super) async fn rename_image(
        &self,
        caller: &Caller,
        row: &ImageRow,
        name: Option<&str>,
        tag: Option<&str>,
    ) -> Result<(), Error> {
        let (name, tag) = (name.unwrap_or(&row.name), tag.unwrap_or(&row.tag));
        if (name, tag) == (row.name.as_str(), row.tag.as_str()) {
            return Ok(());
        }
        let home = row.repository.split_once('/').map_or(row.repository.as_str(), |(home, _)| home);
        let repository = format!("{home}/{name}");
        check_name(&repository, name, tag)?;
        let (ImageState::Ready, Some(digest)) = (&row.state, &row.digest) else {
            return Err(Error::unfit("name", Reason::ImageNotWhole));
        };
        let taken = || Error::AlreadyExists { kind: "image", name: format!("{name}:{tag}") };
        // Nothing is collected meanwhile: at the new place nobody needs it yet.
        let _listing = self.listing.read().await;
        if self.store.image_by_name(&repository, Some(tag)).await?.is_some() {
            return Err(taken());
        }
        if repository != row.repository {
            let copied = self.site_registry()?.copy(&row.repository, &repository, digest, tag).await;
            copied.map_err(|error| self.no_answer(&repository, error.into()))?;
        }
        let line = caller
            .line("image.rename", row.id.as_str())
            .with("name", full_name(row))
            .with("to", format!("{repository}:{tag}"));
        if self.store.rename_image(row, &repository, name, tag, &line).await? { Ok(()) } else { Err(taken()) }
    }

    pub(super) fn no_answer(&self, repository: &str, refused: Refused) -> Error {
        match refused {
            Refused::Error(error) => error,
            other @ (Refused::NoAnswer(_)
            | Refused::BadManifest(_)
            | Refused::NotYours { .. }
            | Refused::Busy
            | Refused::Nothing) => Error::RegistryUnreachable {
                reference: repository.to_owned(),
                registry: self.registry_name().to_owned(),
                why: other.to_string(),
            },
        }
    }
}
