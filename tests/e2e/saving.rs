//! A site where images are saved, for the walks that do.

use std::process::Command;

use gateway_api::{
    client::Client,
    image::{Image, ImageState, Saved},
};
use tests::{
    LIMIT, OrFail as _, Registry, Setup, World,
    engine::{self, LocalImage, PrivateEngine, SignedIn},
    wait_until,
};

/// A site with a registry, and an instance of a small image.
pub(crate) struct Site {
    pub(crate) world: World,
    pub(crate) registry: Registry,
    pub(crate) base: LocalImage,
    /// As whoever saves.
    pub(crate) docker: SignedIn,
}

impl Site {
    pub(crate) async fn start() -> Self {
        Self::start_on(Registry::start().await).await
    }

    pub(crate) async fn start_on(registry: Registry) -> Self {
        Self::start_as(registry, Setup::default()).await
    }

    /// With what else is unlike an ordinary world; of its configuration, more lines of `[envd]`.
    pub(crate) async fn start_as(registry: Registry, setup: Setup) -> Self {
        let world =
            World::start_with(Setup { config: format!("{}{}", registry.config(), setup.config), ..setup })
                .await;
        let docker = SignedIn::to(&world, "admin", world.password()).await;
        Self { world, registry, base: LocalImage::busybox(), docker }
    }

    pub(crate) async fn instance(&self, name: &str) {
        let image = self.base.reference();
        self.world.berth(&["create", name, "--image", image, "--wait"]).await.succeeded();
    }

    pub(crate) async fn exec(&self, name: &str, line: &str) -> String {
        self.world.berth(&["exec", name, "--", "sh", "-c", line]).await.succeeded()
    }

    /// Saves with `--wait` and gives the image back.
    pub(crate) async fn save(&self, arguments: &[&str]) -> Image {
        let all: Vec<_> = ["save"].iter().chain(arguments).chain(&["--wait", "--json"]).copied().collect();
        let json = self.world.berth(&all).await.succeeded();
        serde_json::from_str(&json).or_fail("read an image")
    }

    /// The image as any engine gets it: by name from the gateway, with none of it here before.
    pub(crate) async fn pull(&self, image: &Image) -> String {
        let saved = saved(image);
        let (address, user) = (self.registry.address(), &saved.user);
        let tag = format!("{address}/{user}/{}:{}", saved.name, saved.tag);
        engine::docker(&["rmi", "--force", &tag]);
        let digest = saved.digest.as_deref().or_fail("find a digest");
        let name = format!("{user}/{}@{digest}", saved.name);
        self.docker.pull(&name).await.succeeded();
        self.docker.reference(&name)
    }

    /// The same into an engine of its own that has no image at all, by way of a file: it has no network.
    #[track_caller]
    pub(crate) fn pull_into(&self, engine: &PrivateEngine, image: &Image) -> String {
        assert_eq!(engine.run(&["images", "--quiet"]), "");
        let saved = saved(image);
        let name = format!("{}/{}:{}", saved.user, saved.name, saved.tag);
        let folder = tempfile::tempdir().or_fail("make a folder");
        let (file, here) = (folder.path().join("all.tar"), "localhost/berth/saved:latest".to_owned());
        let copied = Command::new("skopeo")
            .args(["--insecure-policy", "copy", "--quiet", "--src-tls-verify=false", "--src-creds"])
            .arg(format!("admin:{}", self.world.password()))
            .arg(format!("docker://{}", self.docker.reference(&name)))
            .arg(format!("docker-archive:{}:{here}", file.display()))
            .output()
            .or_fail("run skopeo");
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        engine.run(&["load", "--input", &file.display().to_string()]);
        here
    }
}

pub(crate) fn saved(image: &Image) -> &Saved {
    image.saved.as_ref().or_fail("find what is known of a saved image")
}

pub(crate) async fn state(client: &Client, image: &Image) -> ImageState {
    let image = client.image(saved(image).id.as_str()).await.or_fail("show an image");
    saved(&image).state.clone()
}

/// Waits until a save has ended in whatever way.
pub(crate) async fn ended(client: &Client, image: &Image) -> ImageState {
    wait_until("the save has ended", LIMIT, async || {
        Some(state(client, image).await).filter(|state| !state.is_passing())
    })
    .await
}

/// Waits until an image is not listed any more.
pub(crate) async fn gone(client: &Client, image: &Image) {
    wait_until("the image is gone", LIMIT, async || {
        let images = client.images().await.or_fail("list images");
        images.iter().all(|other| other.reference != image.reference).then_some(())
    })
    .await;
}
