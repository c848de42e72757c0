//! Images of other registries: whether this user gets them there, and which content they are.
//!
//! The cluster asks the registry, as the user, and the answer is kept in the spec as a digest. So a tag that moves
//! between the check and the start changes nothing. The cluster asks again when it makes a container.

use envd_api::control::{FindImage, Finding, RegistryLogin};
use gateway_api::{JobId, error::Reason};
use jobfile::JobSpec;
use oci_spec::distribution::Reference;

use super::{
    App,
    secrets::{HUB, registry_host},
};
use crate::{
    auth::Caller,
    clusters::Cluster,
    error::{Error, chain},
    store::{InstanceRow, StoreError, UserId},
};

const LOCAL: &str = "localhost";

impl App {
    /// An image with the digest that its registry has under this name now, if it gives it to the caller.
    pub(super) async fn pin_image(
        &self,
        caller: &Caller,
        cluster: &Cluster,
        image: &str,
        of_file: Option<&jobfile::spec::RegistryLogin>,
    ) -> Result<String, Error> {
        let Some(host) = self.foreign_registry(image) else { return Ok(image.to_owned()) };
        let login = match of_file.and_then(|login| login_of(login, &host)) {
            Some(login) => Some(login),
            None => self.account_login(caller.user.id, &host).await?,
        };
        let find = FindImage { reference: image.to_owned(), login };
        let reference = image.to_owned();
        match cluster.envd.find_image(&find).await {
            Ok(Finding::Found { digest }) => Ok(pinned(image, &digest)),
            Ok(Finding::NotFound { why }) => Err(Error::ImageNotFound { reference, why }),
            Ok(Finding::Denied { registry, why }) => Err(Error::RegistryDenied { reference, registry, why }),
            Ok(Finding::NoAnswer { registry, why }) => {
                Err(Error::RegistryUnreachable { reference, registry, why })
            }
            Ok(Finding::NotAllowed { registry, allowed }) => {
                Err(Error::RegistryNotAllowed { reference, registry, allowed })
            }
            Ok(Finding::Bad { .. }) => Err(Error::BadImage { reference, reason: Reason::ImageUnreadable }),
            Ok(Finding::Ours) => Ok(reference),
            // The instance waits for the cluster, and is checked there.
            Err(error) => {
                tracing::warn!(image, error = chain(&error), "the cluster cannot ask for an image now");
                Ok(reference)
            }
        }
    }

    /// The same for all images of a job.
    pub(super) async fn pin_job(
        &self,
        caller: &Caller,
        cluster: &Cluster,
        spec: &mut JobSpec,
    ) -> Result<(), Error> {
        let login = spec.registry_login.clone();
        for role in &mut spec.roles {
            if let Some(image) = &mut role.image {
                *image = self.pin_image(caller, cluster, image, login.as_ref()).await?;
            }
        }
        Ok(())
    }

    /// What the cluster signs in with where an instance's image comes from: as its job's file says, else as the user
    /// has set, else as the site has.
    pub(crate) async fn image_login(&self, row: &InstanceRow) -> Result<Option<RegistryLogin>, StoreError> {
        let Some(host) = self.foreign_registry(&row.spec.image) else { return Ok(None) };
        if let Some(job) = &row.job
            && let Some(login) = self.login_of_job(job, &host).await?
        {
            return Ok(Some(login));
        }
        self.account_login(row.user_id, &host).await
    }

    /// The file alone has it: the store keeps the spec without it.
    async fn login_of_job(&self, job: &JobId, host: &str) -> Result<Option<RegistryLogin>, StoreError> {
        let file = self.store.job_file(job).await?;
        let spec = jobfile::read(&file, &jobfile::Site::default()).spec;
        Ok(spec.and_then(|spec| login_of(&spec.registry_login?, host)))
    }

    async fn account_login(&self, user: UserId, host: &str) -> Result<Option<RegistryLogin>, StoreError> {
        let Some(sealed) = self.store.registry_secret(user, host).await? else { return Ok(None) };
        let password = match self.unseal(&sealed) {
            Ok(password) => password,
            Err(error) => {
                tracing::error!(registry = host, error = chain(&error), "a registry's password is not used");
                return Ok(None);
            }
        };
        let login = sealed.secret.registry.map(|registry| RegistryLogin {
            host: registry.host,
            user: registry.user,
            password,
        });
        Ok(login)
    }

    /// The registry of an image, if it is neither the site's nor this machine.
    fn foreign_registry(&self, image: &str) -> Option<String> {
        let name = image.parse::<Reference>().ok()?;
        let host = name.registry();
        let is_own = self.config.registry.as_deref() == Some(host) || host == LOCAL;
        (!is_own).then(|| host.to_owned())
    }
}

/// The login of a job's file, if it is for this registry. One that names none is for Docker's own.
fn login_of(login: &jobfile::spec::RegistryLogin, host: &str) -> Option<RegistryLogin> {
    let server = login.server.as_deref().filter(|server| !server.trim().is_empty());
    let server = server.map_or_else(|| Some(HUB.to_owned()), registry_host)?;
    (server == host).then(|| RegistryLogin {
        host: server,
        user: login.user.clone(),
        password: login.password.reveal().to_owned(),
    })
}

/// The name as it was written, with what it means now.
fn pinned(image: &str, digest: &str) -> String {
    if image.contains('@') {
        return image.to_owned();
    }
    let has_tag = image.rsplit('/').next().is_some_and(|last| last.contains(':'));
    if has_tag { format!("{image}@{digest}") } else { format!("{image}:latest@{digest}") }
}

/// The name without what it meant.
pub(super) fn unpinned(image: &str) -> &str {
    match image.split_once('@') {
        Some((name, _)) if name.rsplit('/').next().is_some_and(|last| last.contains(':')) => name,
        Some(_) | None => image,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_image_is_shown_as_it_was_written() {
        for (image, shown) in [
            ("python:3.12", "python:3.12"),
            ("python", "python:latest"),
            ("host:5000/a/b", "host:5000/a/b:latest"),
            ("host:5000/a/b:1", "host:5000/a/b:1"),
            ("host:5000/a/b@sha256:1", "host:5000/a/b@sha256:1"),
        ] {
            assert_eq!(unpinned(&pinned(image, "sha256:0")), shown);
        }
    }

    #[test]
    fn a_login_is_for_its_own_registry() {
        let login = |server: Option<&str>| jobfile::spec::RegistryLogin {
            server: server.map(str::to_owned),
            user: "me".to_owned(),
            password: jobfile::spec::Secret::new("hush".to_owned()),
        };
        assert!(login_of(&login(None), "docker.io").is_some());
        assert!(login_of(&login(Some("https://index.docker.io/v1/")), "docker.io").is_some());
        assert!(login_of(&login(Some("registry.example.org")), "registry.example.org").is_some());
        assert!(login_of(&login(Some("registry.example.org")), "docker.io").is_none());
        assert!(login_of(&login(None), "registry.example.org").is_none());
    }
}
