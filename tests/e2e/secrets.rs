//! Secrets, and images of a registry that wants to know who asks.

use std::path::{Path, PathBuf};

use gateway_api::{Code, CreateInstance, Problem, Status, client::Client};
use tests::{
    LIMIT, OrFail as _, Registry, Setup, World,
    engine::{self, LocalImage, SignedIn, put_busybox},
    wait_until,
};

struct Lab {
    world: World,
    registry: Registry,
    docker: SignedIn,
    base: LocalImage,
}

impl Lab {
    /// A registry with a password beside a Berth that may use it, and an image in it.
    async fn start() -> Self {
        let registry = Registry::start().await;
        let config = format!(
            "[gateway.jobs]\ncpu_overcommit = 1\n[envd]\nregistries = [\"{}\"]\n",
            registry.address()
        );
        let world = World::start_with(Setup { config, ..Setup::default() }).await;
        let docker = SignedIn::to_registry(&registry).await;
        let base = LocalImage::busybox();
        docker.push(base.reference(), "team/tool:1").await.succeeded();
        Self { world, registry, docker, base }
    }

    fn image(&self) -> String {
        self.docker.reference("team/tool:1")
    }

    async fn keep_login(&self) {
        let address = self.registry.address().to_owned();
        let set = ["secret", "set", "lab", "--registry", &address, "--user", "berth"];
        let password = format!("{}\n", self.registry.password());
        assert_eq!(self.world.berth_with(&set, password.as_bytes()).await.succeeded(), "lab\n");
    }
}

/// Why somebody cannot have an instance of this image.
async fn refused(client: &Client, image: &str) -> Problem {
    let wanted = CreateInstance {
        name: "mine".to_owned(),
        image: Some(image.to_owned()),
        cpus: 0.5,
        memory_bytes: 256 << 20,
        shm_bytes: None,
        gpus: 0,
        gpu_model: None,
        cluster: None,
        pool: None,
        env: [].into(),
        command: Vec::new(),
        auto_start: false,
        secrets: Vec::new(),
    };
    let error = client.create_instance(&wanted).await.err().or_fail("have the image refused");
    error.problem().or_fail("read a problem").clone()
}

#[tokio::test]
async fn a_private_image_is_for_those_whom_its_registry_lets_in() {
    let lab = Lab::start().await;
    let image = lab.image();
    let (_, said) = lab.world.berth(&["create", "a1", "--image", &image]).await.ended(1);
    assert!(said.contains("no basic auth credentials") && said.contains("berth secret set"), "{said}");

    lab.keep_login().await;
    let listed = lab.world.berth(&["secret", "ls"]).await.succeeded();
    assert!(listed.contains("lab") && listed.contains(lab.registry.address()), "{listed}");
    lab.world.berth(&["create", "a1", "--image", &image, "--wait"]).await.succeeded();
    let shown = lab.world.client().instance("a1").await.or_fail("show an instance");
    assert_eq!(shown.image, image);

    // It is on this machine now, and still not for everyone.
    let bob = lab.world.person("bob").await;
    let problem = refused(&bob, &image).await;
    assert_eq!((problem.code, problem.pointer.as_deref()), (Code::RegistryDenied, Some("/image")));
    assert_eq!(problem.params["registry"], lab.registry.address());
    assert!(problem.params["why"].contains("no basic auth credentials"), "{problem:?}");

    let unknown = refused(&lab.world.client(), &lab.docker.reference("team/tool:2")).await;
    assert_eq!((unknown.code, unknown.pointer.as_deref()), (Code::ImageNotFound, Some("/image")));
    assert!(unknown.params["why"].contains("manifest unknown"), "{unknown:?}");
    let elsewhere = refused(&lab.world.client(), "registry.example.org/team/tool:1").await;
    assert_eq!(elsewhere.code, Code::RegistryNotAllowed);

    lab.world.berth(&["secret", "rm", "lab"]).await.succeeded();
    assert_eq!(refused(&lab.world.client(), &image).await.code, Code::RegistryDenied);
}

#[tokio::test]
async fn what_was_checked_is_what_runs_and_a_restart_asks_nobody() {
    let mut lab = Lab::start().await;
    lab.keep_login().await;
    let (image, client) = (lab.image(), lab.world.client());
    let nodes = client.nodes().await.or_fail("list the nodes");
    let all = nodes.first().or_fail("find a node").cpus.to_string();
    let create = |name: &'static str| ["create", name, "--image", &image, "--cpus", &all, "--memory", "256M"];
    lab.world.berth(&[&create("first")[..], &["--wait"]].concat()).await.succeeded();
    lab.world.berth(&create("second")).await.succeeded();

    // While it waits for room, the tag moves.
    let root = tempfile::tempdir().or_fail("make a directory");
    put_busybox(root.path(), "bin/busybox", &["sh", "cat"]);
    let other = LocalImage::of_directory("other", root.path(), &["ENV COLOUR=red"]);
    lab.docker.push(other.reference(), "team/tool:1").await.succeeded();
    let waits = client.instance("second").await.or_fail("show an instance");
    assert!(matches!(waits.status, Status::Waiting { .. }), "{:?}", waits.status);
    lab.world.berth(&["stop", "first", "--wait"]).await.succeeded();
    wait_until("the second runs", LIMIT, async || {
        let second = client.instance("second").await.ok()?;
        matches!(second.status, Status::Running { .. }).then_some(())
    })
    .await;
    let runs = engine::inspect(&format!("berth-{}", waits.id), ".Image");
    assert_eq!(runs, engine::docker(&["image", "inspect", "--format", "{{.Id}}", lab.base.reference()]));

    lab.registry.kill();
    let problem = refused(&client, &image).await;
    assert_eq!((problem.code, problem.pointer.as_deref()), (Code::RegistryUnreachable, Some("/image")));
    assert!(problem.params["why"].contains("connection refused"), "{problem:?}");
    lab.world.berth(&["restart", "second", "--wait"]).await.succeeded();
}

/// Whether a file below a folder holds these bytes.
fn on_disk(folder: &Path, bytes: &[u8]) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let (path, kind) = (entry.path(), entry.file_type().ok()?);
        let found = if kind.is_dir() {
            on_disk(&path, bytes)
        } else if kind.is_file() {
            let content = std::fs::read(&path).unwrap_or_default();
            content.windows(bytes.len()).any(|window| window == bytes).then_some(path)
        } else {
            None
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[tokio::test]
async fn a_secret_is_in_the_process_and_in_memory_and_nowhere_else() {
    const CANARY: &str = "canary-7f3a91c05e";
    let registry = Registry::start().await;
    let world = World::start_with(Setup { config: registry.config(), ..Setup::default() }).await;
    let base = LocalImage::busybox();
    for name in ["HF_TOKEN", "key.pem"] {
        let value = format!("{CANARY}-{name}\n");
        world.berth_with(&["secret", "set", name], value.as_bytes()).await.succeeded();
    }
    let (_, said) = world.berth(&["create", "a1", "--secret", "HF_TOKE"]).await.ended(1);
    assert!(said.contains("no secret `HF_TOKE`") && said.contains("`HF_TOKEN`"), "{said}");
    let create =
        ["create", "a1", "--image", base.reference(), "--secret", "HF_TOKEN", "--secret", "key.pem:file"];
    world.berth(&[&create[..], &["--wait"]].concat()).await.succeeded();

    let read = "echo $HF_TOKEN; cat /.berth/secrets/key.pem";
    let expected = format!("{CANARY}-HF_TOKEN\n{CANARY}-key.pem");
    let seen = world.berth(&["exec", "a1", "--", "sh", "-c", read]).await.succeeded();
    assert_eq!(seen, expected);
    world.berth(&["restart", "a1", "--wait"]).await.succeeded();
    assert_eq!(world.berth(&["exec", "a1", "--", "sh", "-c", read]).await.succeeded(), expected);

    let container = world.only_container();
    assert!(!engine::docker(&["inspect", &container]).contains(CANARY));
    assert_eq!(on_disk(world.data(), CANARY.as_bytes()), None);
    let upper = engine::inspect(&container, ".GraphDriver.Data.UpperDir");
    assert_eq!(on_disk(Path::new(&upper), CANARY.as_bytes()), None);

    let saved = world.berth(&["save", "a1", "v1", "--wait", "--json"]).await.succeeded();
    let saved: serde_json::Value = serde_json::from_str(&saved).or_fail("read JSON");
    let digest = saved["saved"]["digest"].as_str().or_fail("find the digest");
    let repository = format!("{}/admin/a1@{digest}", registry.address());
    let unpacked = tempfile::tempdir().or_fail("make a folder");
    let archive = unpacked.path().join("image.tar");
    let to = archive.to_str().or_fail("read a path");
    let docker = SignedIn::to_registry(&registry).await;
    docker.run(&["pull", "--quiet", &repository]).await.succeeded();
    let made = engine::docker(&["create", &repository, "sh"]);
    engine::docker(&["export", "--output", to, &made]);
    engine::docker(&["rm", &made]);
    assert_eq!(on_disk(unpacked.path(), CANARY.as_bytes()), None);

    // A job takes what its file does not define from the account. What it prints is printed, so this comes last.
    let line = "echo of-the-job <% $secrets.HF_TOKEN %>";
    let job = ["submit", "--name", "printer", "--image", base.reference(), "--wait", "--", "sh", "-c", line];
    world.berth(&job).await.succeeded();
    let printed = world.berth(&["logs", "printer"]).await.succeeded();
    assert_eq!(printed, format!("of-the-job {CANARY}-HF_TOKEN\n"));
}
