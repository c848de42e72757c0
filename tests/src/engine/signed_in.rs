//! `docker` as somebody on a laptop has it: signed in to the gateway, with a configuration of its own.

use std::process::Stdio;

use tempfile::TempDir;

use super::{command, docker, forget_images_of};
use crate::{OrFail as _, Registry, World, world::Ran};

/// A client that is signed in to one gateway. What it pulled and tagged goes with it.
#[derive(Debug)]
pub struct SignedIn {
    folder: TempDir,
    host: String,
}

impl SignedIn {
    /// Signs in with a password or an API token.
    pub async fn to(world: &World, user: &str, secret: &str) -> Self {
        let client = Self::to_nothing(world);
        client.sign_in(user, secret).await.succeeded();
        client
    }

    /// Signs in to a registry itself, as its owner.
    pub async fn to_registry(registry: &Registry) -> Self {
        let folder = tempfile::tempdir().or_fail("make a folder");
        let client = Self { folder, host: registry.address().to_owned() };
        client.sign_in("berth", &registry.password()).await.succeeded();
        client
    }

    /// Not signed in yet.
    pub fn to_nothing(world: &World) -> Self {
        let (_, host) = world.console().split_once("://").or_fail("find the gateway's host");
        Self { folder: tempfile::tempdir().or_fail("make a folder"), host: host.to_owned() }
    }

    pub async fn sign_in(&self, user: &str, secret: &str) -> Ran {
        let input = format!("{secret}\n");
        self.run_with(&["login", &self.host, "--username", user, "--password-stdin"], input.as_bytes()).await
    }

    /// The reference of something in the gateway's registry.
    pub fn reference(&self, name: &str) -> String {
        format!("{}/{name}", self.host)
    }

    pub async fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, b"").await
    }

    /// Gives an image of this machine another name and pushes it.
    pub async fn push(&self, image: &str, name: &str) -> Ran {
        let reference = self.reference(name);
        docker(&["tag", image, &reference]);
        self.run(&["push", &reference]).await
    }

    /// Pulls an image of which the engine knows nothing by this name.
    pub async fn pull(&self, name: &str) -> Ran {
        let reference = self.reference(name);
        let _ = command().args(["rmi", "--force", &reference]).stderr(Stdio::null()).output();
        self.run(&["pull", "--quiet", &reference]).await
    }

    async fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let line = format!("docker {}", arguments.join(" "));
        let mut command = command();
        command.arg("--config").arg(self.folder.path()).args(arguments);
        Ran::to_its_end(command, line, input).await
    }
}

impl Drop for SignedIn {
    fn drop(&mut self) {
        forget_images_of(&self.host);
    }
}
