//! The calls about images. Wherever one is asked for, its id, `NAME:TAG`, `USER/NAME:TAG` or its reference will do.

use std::time::Duration;

use reqwest::Method;
use tokio::time::{Instant, sleep};

use super::{Client, ClientError};
use crate::{
    ImageId, Page,
    image::{ChangeImage, Changes, CollectImages, CollectedImages, Image, SaveInstance},
    packages::Recipe,
};

/// How often a save is looked at by those who wait for it.
const ASK: Duration = Duration::from_millis(300);

impl Client {
    /// The platform's images, and the saved ones that one may use.
    pub async fn images(&self) -> Result<Vec<Image>, ClientError> {
        Ok(self.get::<Page<Image>>(&["images"]).await?.items)
    }

    /// A saved image.
    pub async fn image(&self, image: &str) -> Result<Image, ClientError> {
        self.get(&["images", image]).await
    }

    /// Begins to save an instance.
    pub async fn save_instance(&self, name: &str, save: &SaveInstance) -> Result<Image, ClientError> {
        self.call(Method::POST, &["instances", name, "save"], Some(save)).await
    }

    /// What a save would put into an image; without `exclude`, what it would with the defaults.
    pub async fn changes(&self, name: &str, exclude: Option<&[String]>) -> Result<Changes, ClientError> {
        let mut url = self.url(&["instances", name, "changes"])?;
        if let Some(paths) = exclude {
            // An empty one says that nothing is left out.
            let nothing = paths.is_empty().then_some("");
            let paths = paths.iter().map(String::as_str).chain(nothing);
            url.query_pairs_mut().extend_pairs(paths.map(|path| ("exclude", path)));
        }
        self.get_url(url).await
    }

    /// How an image like it could be made from its parent.
    pub async fn dockerfile(&self, image: &str) -> Result<Recipe, ClientError> {
        self.get(&["images", image, "dockerfile"]).await
    }

    pub async fn change_image(&self, image: &str, change: &ChangeImage) -> Result<Image, ClientError> {
        self.call(Method::PATCH, &["images", image], Some(change)).await
    }

    /// Tries a save again that failed.
    pub async fn retry_image(&self, image: &str) -> Result<Image, ClientError> {
        self.call(Method::POST, &["images", image, "retry"], None::<&()>).await
    }

    /// Gives back the room of images that are gone, as an admin.
    pub async fn collect_images(&self, wanted: &CollectImages) -> Result<CollectedImages, ClientError> {
        self.call(Method::POST, &["images", "collect"], Some(wanted)).await
    }

    pub async fn delete_image(&self, image: &str) -> Result<Image, ClientError> {
        self.call(Method::DELETE, &["images", image], None::<&()>).await
    }

    /// Waits until a save has ended, well or not, telling `on_change` of every state on the way. A gateway that goes
    /// away for a while is waited for too.
    pub async fn wait_for_image(
        &self,
        id: &ImageId,
        limit: Duration,
        mut on_change: impl FnMut(&Image),
    ) -> Result<Image, ClientError> {
        let deadline = super::wait::deadline(limit);
        let mut last = None;
        loop {
            match self.image(id.as_str()).await {
                Ok(image) => {
                    if last.as_ref() != Some(&image) {
                        on_change(&image);
                    }
                    if image.saved.as_ref().is_none_or(|saved| !saved.state.is_passing()) {
                        return Ok(image);
                    }
                    last = Some(image);
                }
                Err(ClientError::Unreachable { .. }) => {}
                Err(error) => return Err(error),
            }
            if Instant::now() >= deadline {
                return Err(ClientError::TooLate { what: format!("waiting for {id}"), limit });
            }
            sleep(ASK).await;
        }
    }
}
