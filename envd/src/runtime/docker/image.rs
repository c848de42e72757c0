//! Images: from a name to content that is on this machine.
//!
//! A name is looked up and pulled in its full form, so that nothing which merely looks like an image's id is taken for
//! one. A container is then made from the id that was found: a tag that moves meanwhile changes nothing.
//!
//! Before an image of another registry is used, that registry is asked for it as the user who wants it, also when the
//! image is here already: what one of them has pulled is not for all. Its answer is a digest, and that digest is run.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bollard::{
    auth::DockerCredentials,
    models::{CreateImageInfo, ImageConfig},
    query_parameters::CreateImageOptionsBuilder,
};
use envd_api::control::RegistryLogin;
use futures_util::StreamExt;
use oci_spec::distribution::Reference;
use tokio::time::timeout;

use super::{LOOK, OWN_IMAGES, OWN_PARTS, PULL_SILENCE, engine, reach};
use crate::{
    runtime::{Defaults, ImageId, Progress, RuntimeError, docker::engine::Engine},
    save::registry,
};

/// What the engine gives processes when the image says nothing.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const DOCKER_HUB: &str = "docker.io";
/// What is allowed where the site names no registries.
const PUBLIC_ONES: &str = "a public registry, or ask the admin to name this one in `registries`";
/// The most that a registry may take to say which content a name has.
const ASK: Duration = Duration::from_secs(20);
/// Images whose defaults are kept.
const KNOWN_MAX: usize = 64;
/// What registries say of what they do not have, and of what they do not give.
const ABSENT: [&str; 4] = ["not found", "manifest unknown", "name unknown", "does not exist"];
const DENIED: [&str; 5] =
    ["unauthorized", "no basic auth credentials", "denied", "forbidden", "authentication required"];

/// Where images may come from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    /// All with a public name if it is `None`.
    pub(super) registries: Option<&'a [String]>,
    /// The site's own registry.
    pub(super) own: Option<&'a registry::Settings>,
    /// Where images of Docker Hub come from instead.
    pub(super) hub_relay: Option<&'a str>,
}

impl Places<'_> {
    /// Where an image is asked for and pulled from: of Docker Hub by way of the site's relay, where there is one. With a
    /// login for it Docker Hub itself is asked: the relay would not know who asks.
    fn source(&self, name: Reference, login: Option<&RegistryLogin>) -> Result<Reference, RuntimeError> {
        let is_open = name.registry() == DOCKER_HUB && credentials(&name, login).is_none();
        match self.hub_relay.filter(|_| is_open) {
            None => Ok(name),
            Some(relay) => parse(&name.whole().replacen(DOCKER_HUB, relay, 1)),
        }
    }
}

/// What images say about their processes, of those that were looked at last. An id stands for one content for ever.
#[derive(Debug, Default)]
pub(super) struct KnownImages(Mutex<VecDeque<(ImageId, Defaults)>>);

impl KnownImages {
    fn get(&self, image: &ImageId) -> Option<Defaults> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(known, _)| known == image).map(|(_, defaults)| defaults.clone())
    }

    fn put(&self, image: &ImageId, defaults: Defaults) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(known, _)| known != image);
        known.truncate(KNOWN_MAX - 1);
        known.push_front((image.clone(), defaults));
    }
}

/// The image that `reference` names, pulled only when it is not here.
pub(super) async fn ensure(
    engine: &Engine,
    known: &KnownImages,
    reference: &str,
    before: Option<ImageId>,
    places: Places<'_>,
    login: Option<&RegistryLogin>,
    progress: impl FnMut(Progress) + Send,
) -> Result<ImageId, RuntimeError> {
    let name = parse(reference)?;
    let own = places.own.filter(|own| own.address == name.registry());
    if own.is_none() {
        allowed(&name, places.registries)?;
    }
    if let Some(before) = before
        && look_up(engine, known, &before.0).await?.is_some()
    {
        return Ok(before);
    }
    let (name, login) = if own.is_some() || is_local(&name) {
        (name.whole(), site_login(own, reference).await?)
    } else {
        let name = places.source(name, login)?;
        let digest = ask(engine, &name, places, login).await?;
        (format!("{}/{}@{digest}", name.registry(), name.repository()), credentials(&name, login))
    };
    if let Some(id) = look_up(engine, known, &name).await? {
        return Ok(id);
    }
    if name.starts_with(OWN_IMAGES) {
        let why =
            "it is an image of this machine's own, which has not been made here or was removed".to_owned();
        return Err(RuntimeError::ImageNotFound { image: reference.to_owned(), why });
    }
    pull(engine, &name, login, progress).await?;
    look_up(engine, known, &name).await?.ok_or_else(|| RuntimeError::Download {
        image: reference.to_owned(),
        why: "it is not there after the download".to_owned(),
    })
}

/// The digest of what a registry has for whoever `login` is; `None` for what no registry is asked for.
pub(super) async fn find(
    engine: &Engine,
    reference: &str,
    places: Places<'_>,
    login: Option<&RegistryLogin>,
) -> Result<Option<String>, RuntimeError> {
    let name = parse(reference)?;
    if places.own.is_some_and(|own| own.address == name.registry()) || is_local(&name) {
        return Ok(None);
    }
    allowed(&name, places.registries)?;
    ask(engine, &places.source(name, login)?, places, login).await.map(Some)
}

/// Asks a registry, by way of the engine, which knows the site's certificates and proxies.
async fn ask(
    engine: &Engine,
    name: &Reference,
    places: Places<'_>,
    login: Option<&RegistryLogin>,
) -> Result<String, RuntimeError> {
    let is_named = places.registries.is_some() || places.hub_relay == Some(name.registry());
    if !is_named && reach::leads_inside(name.registry()).await {
        let registry = name.registry().to_owned();
        return Err(RuntimeError::RegistryNotAllowed { registry, allowed: PUBLIC_ONES.to_owned() });
    }
    let docker = engine.docker().await?;
    let (image, registry) = (name.whole(), name.registry().to_owned());
    let asked = timeout(ASK, docker.inspect_registry_image(&image, credentials(name, login))).await;
    let Ok(answer) = asked else {
        let why = format!("it did not answer within {} s", ASK.as_secs());
        return Err(RuntimeError::NoRegistry { image, registry, why });
    };
    match answer {
        Ok(found) => found.descriptor.digest.ok_or_else(|| RuntimeError::Download {
            image,
            why: "the registry did not say which content it is".to_owned(),
        }),
        Err(error) => {
            let why = engine::text(&error);
            let error = engine::runtime_error(error);
            Err(if matches!(error, RuntimeError::Unreachable { .. } | RuntimeError::DiskFull) {
                error
            } else if says(&why, &DENIED) {
                RuntimeError::Denied { image, registry, why }
            } else if says(&why, &ABSENT) {
                RuntimeError::ImageNotFound { image, why }
            } else {
                RuntimeError::NoRegistry { image, registry, why }
            })
        }
    }
}

/// The login, if it is for the registry of this image.
fn credentials(name: &Reference, login: Option<&RegistryLogin>) -> Option<DockerCredentials> {
    login.filter(|login| login.host == name.registry()).map(|login| DockerCredentials {
        username: Some(login.user.clone()),
        password: Some(login.password.clone()),
        serveraddress: Some(login.host.clone()),
        ..DockerCredentials::default()
    })
}

/// Whether it is an image of this machine's own.
fn is_local(name: &Reference) -> bool {
    name.whole().starts_with(OWN_IMAGES)
}

/// How the engine signs in to the site's own registry.
async fn site_login(
    own: Option<&registry::Settings>,
    reference: &str,
) -> Result<Option<DockerCredentials>, RuntimeError> {
    let Some(own) = own else { return Ok(None) };
    let login = own.login().await;
    let login = login.map_err(|why| RuntimeError::Download { image: reference.to_owned(), why })?;
    Ok(login.map(|(username, password)| DockerCredentials {
        username: Some(username),
        password: Some(password),
        serveraddress: Some(own.address.clone()),
        ..DockerCredentials::default()
    }))
}

/// The environment, user and directory of an image; `None` when it is gone.
pub(super) async fn defaults(
    engine: &Engine,
    known: &KnownImages,
    image: &ImageId,
) -> Result<Option<Defaults>, RuntimeError> {
    match known.get(image) {
        Some(defaults) => Ok(Some(defaults)),
        None => Ok(look_up(engine, known, &image.0).await?.and_then(|id| known.get(&id))),
    }
}

/// Whether an image is one for instances.
pub(super) fn is_offered(reference: &str) -> bool {
    let is_part = OWN_PARTS.iter().any(|part| reference.starts_with(part));
    reference.starts_with(OWN_IMAGES) && !is_part && !reference.contains("<none>")
}

fn parse(reference: &str) -> Result<Reference, RuntimeError> {
    let bad = |why: &str| RuntimeError::BadImage { image: reference.to_owned(), why: why.to_owned() };
    let is_hex = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if reference.starts_with("sha256:") || is_hex(reference) {
        return Err(bad("ids are not accepted, use a name such as `debian:12`"));
    }
    reference.parse().map_err(|error: oci_spec::distribution::ParseError| bad(&error.to_string()))
}

/// Images of this machine's own come from no registry. The engine connects to whatever a name says, from inside the
/// site's network: where the site does not name its registries, only those with a public name are asked.
fn allowed(name: &Reference, registries: Option<&[String]>) -> Result<(), RuntimeError> {
    let registry = name.registry();
    let is_allowed = is_local(name)
        || registries
            .map_or_else(|| has_public_name(registry), |names| names.iter().any(|one| one == registry));
    if is_allowed {
        return Ok(());
    }
    let allowed = match registries {
        None => PUBLIC_ONES.to_owned(),
        Some([]) => "this machine".to_owned(),
        Some(names) => names.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(" or "),
    };
    Err(RuntimeError::RegistryNotAllowed { registry: registry.to_owned(), allowed })
}

/// Neither an address in any spelling nor a name that only this network knows. Where a public name leads is seen before
/// it is asked: [`reach`].
fn has_public_name(registry: &str) -> bool {
    const INSIDE: [&str; 9] =
        ["localhost", "local", "localdomain", "internal", "intranet", "lan", "corp", "home", "arpa"];
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host).trim_end_matches('.');
    let Some((_, last)) = host.rsplit_once('.') else { return false };
    // The last part of an address is a number, also in `127.1` and `0x7f.1`.
    let is_a_word = last.starts_with(|first: char| first.is_ascii_alphabetic()) && !host.contains(['[', ':']);
    is_a_word && INSIDE.iter().all(|inside| !last.eq_ignore_ascii_case(inside))
}

async fn look_up(engine: &Engine, known: &KnownImages, name: &str) -> Result<Option<ImageId>, RuntimeError> {
    let found = engine
        .call_unless("look at an image", LOOK, &[404], async |docker| docker.inspect_image(name).await)
        .await?;
    let Some(found) = found else { return Ok(None) };
    let id = found.id.map(ImageId);
    if let Some(id) = &id {
        known.put(id, of_config(found.config.unwrap_or_default()));
    }
    Ok(id)
}

async fn pull(
    engine: &Engine,
    name: &str,
    login: Option<DockerCredentials>,
    mut progress: impl FnMut(Progress) + Send,
) -> Result<(), RuntimeError> {
    let docker = engine.docker().await?;
    let options = CreateImageOptionsBuilder::new().from_image(name).build();
    let mut lines = std::pin::pin!(docker.create_image(Some(options), None, login));
    let mut layers = Layers::default();
    loop {
        let line = timeout(PULL_SILENCE, lines.next()).await.map_err(|_| silent(name, PULL_SILENCE))?;
        match line {
            None => return Ok(()),
            Some(Ok(line)) => {
                layers.note(&line);
                progress(layers.progress());
            }
            Some(Err(error)) => return Err(pull_error(name, error)),
        }
    }
}

fn silent(name: &str, limit: Duration) -> RuntimeError {
    let why = format!("nothing came from the registry for {} s", limit.as_secs());
    RuntimeError::Download { image: name.to_owned(), why }
}

fn says(why: &str, words: &[&str]) -> bool {
    let why = why.to_ascii_lowercase();
    words.iter().any(|words| why.contains(words))
}

/// The registry's own words, sorted by what they mean to a user.
fn pull_error(name: &str, error: bollard::errors::Error) -> RuntimeError {
    let (image, why) = (name.to_owned(), engine::text(&error));
    let error = engine::runtime_error(error);
    if matches!(error, RuntimeError::Unreachable { .. } | RuntimeError::DiskFull) {
        error
    } else if says(&why, &ABSENT) || says(&why, &DENIED) {
        RuntimeError::ImageNotFound { image, why }
    } else {
        RuntimeError::Download { image, why }
    }
}

fn of_config(config: ImageConfig) -> Defaults {
    let mut env = BTreeMap::from([("PATH".to_owned(), PATH.to_owned())]);
    for line in config.env.unwrap_or_default() {
        let (name, value) = line.split_once('=').unwrap_or((&line, ""));
        env.insert(name.to_owned(), value.to_owned());
    }
    Defaults { env, user: config.user.unwrap_or_default(), cwd: config.working_dir.unwrap_or_default() }
}

/// The layers of one download: bytes that have come, and bytes in all once that is known of each.
#[derive(Debug, Default)]
struct Layers(BTreeMap<String, Progress>);

impl Layers {
    fn note(&mut self, line: &CreateImageInfo) {
        let (Some(id), Some(status)) = (&line.id, &line.status) else { return };
        let unknown = Progress { done_bytes: 0, total_bytes: None };
        let here = |layer: &mut Progress| {
            let all = layer.total_bytes.unwrap_or(layer.done_bytes);
            *layer = Progress { done_bytes: all, total_bytes: Some(all) };
        };
        match status.as_str() {
            "Pulling fs layer" => {
                self.0.entry(id.clone()).or_insert(unknown);
            }
            "Already exists" => here(self.0.entry(id.clone()).or_insert(unknown)),
            "Downloading" => {
                let positive = |bytes: Option<i64>| {
                    bytes.and_then(|bytes| u64::try_from(bytes).ok()).filter(|&bytes| bytes > 0)
                };
                let detail = line.progress_detail.clone().unwrap_or_default();
                let layer = self.0.entry(id.clone()).or_insert(unknown);
                layer.done_bytes = positive(detail.current).unwrap_or(layer.done_bytes);
                layer.total_bytes = positive(detail.total).or(layer.total_bytes);
            }
            "Download complete" | "Pull complete" => {
                self.0.entry(id.clone()).and_modify(here);
            }
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        let total = self.0.values().map(|layer| layer.total_bytes).sum::<Option<u64>>();
        Progress {
            done_bytes: self.0.values().map(|layer| layer.done_bytes).sum(),
            total_bytes: total.filter(|&bytes| bytes > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    #[test]
    fn names_are_names_and_not_ids() {
        let whole = |reference: &str| parse(reference).map(|name| name.whole()).ok();
        assert_eq!(whole("debian").as_deref(), Some("docker.io/library/debian:latest"));
        assert_eq!(whole("d202ce692b9e").as_deref(), Some("docker.io/library/d202ce692b9e:latest"));
        assert_eq!(whole("localhost/berth/base").as_deref(), Some("localhost/berth/base:latest"));
        let hex = "d202ce692b9ed202ce692b9ed202ce692b9ed202ce692b9ed202ce692b9ed202";
        for id in [hex, &format!("sha256:{hex}"), "", "UPPER", "a b", "x:"] {
            assert!(matches!(parse(id), Err(RuntimeError::BadImage { .. })), "{id}");
        }
    }

    #[test]
    fn only_from_registries_that_the_site_allows() {
        let check = |reference: &str, registries: Option<&[&str]>| {
            let registries =
                registries.map(|names| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
            allowed(&parse(reference).unwrap(), registries.as_deref()).is_ok()
        };
        assert!(check("ghcr.io/a/b", None));
        assert!(
            check("debian", Some(&["docker.io"])) && check("quay.io/a/b:1", Some(&["docker.io", "quay.io"]))
        );
        assert!(
            !check("ghcr.io/a/b", Some(&["docker.io"]))
                && !check("docker.io.evil.org/a/b", Some(&["docker.io"]))
        );
        assert!(
            check("localhost/berth/base", Some(&[])) && !check("localhost/other/base", Some(&["docker.io"]))
        );
    }

    #[test]
    fn what_is_inside_is_asked_only_where_the_site_says_so() {
        let check = |reference: &str, registries: Option<&[String]>| {
            reference.parse::<Reference>().is_ok_and(|name| allowed(&name, registries).is_ok())
        };
        for public in ["debian", "ghcr.io/a/b", "registry.example.org:5000/a/b:1", "localhost/berth/base"] {
            assert!(check(public, None), "{public}");
        }
        for inside in [
            "localhost/other/base",
            "localhost:5000/a/b",
            "127.0.0.1:5000/a/b",
            "127.1:5000/a",
            "0x7f.1/a/b",
            "169.254.169.254/latest/meta-data",
            "10.0.0.7/a/b",
            "2130706433:80/a",
            "[::1]:5000/a/b",
            "registry:5000/a/b",
            "registry.localhost/a/b",
            "harbor.corp/a/b",
            "metadata.google.internal/a/b",
            "printer.LOCAL/a/b",
        ] {
            assert!(!check(inside, None), "{inside}");
        }
        assert!(check("10.0.0.7:5000/a/b", Some(&["10.0.0.7:5000".to_owned()])));
    }

    #[test]
    fn a_total_is_given_once_every_layer_has_one() {
        let mut layers = Layers::default();
        let mut note = |id: &str, status: &str, detail: Option<(i64, i64)>| {
            layers.note(&CreateImageInfo {
                id: Some(id.to_owned()),
                status: Some(status.to_owned()),
                progress_detail: detail
                    .map(|(current, total)| ProgressDetail { current: Some(current), total: Some(total) }),
                ..CreateImageInfo::default()
            });
            let progress = layers.progress();
            (progress.done_bytes, progress.total_bytes)
        };
        assert_eq!(note("latest", "Pulling from library/debian", None), (0, None));
        assert_eq!(note("a", "Already exists", None), (0, None));
        assert_eq!(note("b", "Pulling fs layer", None), (0, None));
        assert_eq!(note("c", "Pulling fs layer", None), (0, None));
        assert_eq!(note("b", "Downloading", Some((40, 100))), (40, None));
        assert_eq!(note("c", "Downloading", Some((10, 50))), (50, Some(150)));
        assert_eq!(note("b", "Download complete", None), (110, Some(150)));
        assert_eq!(note("b", "Extracting", Some((1, 900))), (110, Some(150)));
        assert_eq!(note("c", "Pull complete", None), (150, Some(150)));
    }
}
