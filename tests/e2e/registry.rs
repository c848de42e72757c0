//! The site's registry behind the gateway, with `docker` and `skopeo` as the clients of two users.

use std::process::Command;

use gateway_api::{
    Status,
    client::Client,
    image::{ChangeImage, Image, Share},
    token::{AddToken, Scope},
};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tests::{
    Fault, LIMIT, OrFail as _, Registry, Setup, World,
    engine::{self, LocalImage, SignedIn, put_busybox},
    http_client, raw_http, wait_until,
};

struct Site {
    world: World,
    registry: Registry,
    base: LocalImage,
    bob: Client,
    bobs_token: String,
}

impl Site {
    async fn start() -> Self {
        Self::start_with("").await
    }

    /// With more settings of the gateway.
    async fn start_with(settings: &str) -> Self {
        Self::start_on(Registry::start().await, settings).await
    }

    async fn start_on(registry: Registry, settings: &str) -> Self {
        let config = registry.config().replacen("[gateway]\n", &format!("[gateway]\n{settings}\n"), 1);
        let world = World::start_with(Setup { config, ..Setup::default() }).await;
        let bob = world.person("bob").await;
        let bobs_token = token(&bob, Scope::All).await;
        Self { world, registry, base: LocalImage::busybox(), bob, bobs_token }
    }

    async fn admins_docker(&self) -> SignedIn {
        SignedIn::to(&self.world, "admin", self.world.password()).await
    }

    async fn bobs_docker(&self) -> SignedIn {
        SignedIn::to(&self.world, "bob", &self.bobs_token).await
    }

    /// Asks the gateway as a client of a registry does.
    async fn ask(&self, method: Method, token: &str, path: &str) -> (StatusCode, String) {
        let request = http_client().request(method, format!("{}/v2/{path}", self.world.console()));
        let answer = request.bearer_auth(token).send().await.or_fail("ask the registry");
        let status = answer.status();
        (status, answer.text().await.or_fail("read an answer"))
    }
}

async fn token(of: &Client, scope: Scope) -> String {
    let token = AddToken { name: format!("{scope:?}"), scope, days: None };
    of.add_token(&token).await.or_fail("make a token").secret
}

async fn image_named(of: &Client, name: &str) -> Image {
    let images = of.images().await.or_fail("list images");
    let found = images.into_iter().find(|image| image.reference.ends_with(name));
    found.or_fail("find the image in the list")
}

fn id_of(image: &Image) -> &str {
    image.saved.as_ref().or_fail("find what is known of an image").id.as_str()
}

#[tokio::test]
async fn a_pushed_image_is_listed_starts_and_belongs_to_its_user_alone() {
    let site = Site::start().await;
    let (admin, bob) = (site.admins_docker().await, site.bobs_docker().await);
    bob.push(site.base.reference(), "bob/tools:1").await.succeeded();
    let image = image_named(&site.bob, "/bob/tools:1").await;
    assert!(image.size_bytes > 100_000, "{image:?}");

    // What is somebody else's and what is not there look the same.
    let (_, hidden) = admin.pull("bob/tools:1").await.ended(1);
    let (_, absent) = admin.pull("bob/nothing:1").await.ended(1);
    assert_eq!(hidden.replace("bob/tools", "bob/nothing"), absent);
    let (_, said) = bob.push(site.base.reference(), "admin/tools:1").await.ended(1);
    assert!(said.contains("your images are below"), "{said}");

    let everyone = ChangeImage { share: Some(Share::Everyone), ..ChangeImage::default() };
    site.bob.change_image(id_of(&image), &everyone).await.or_fail("share an image");
    admin.pull("bob/tools:1").await.succeeded();
    let (_, said) = admin.push(site.base.reference(), "bob/tools:1").await.ended(1);
    assert!(said.contains("your images are below"), "{said}");
    let create = ["create", "mine", "--image", &image.reference, "--wait"];
    site.world.berth(&create).await.succeeded();
    let shown = site.world.berth(&["exec", "mine", "--", "sh", "-c", "echo $COLOUR"]).await.succeeded();
    assert_eq!(shown, "blue\n");
    let refused = site.bob.delete_image(id_of(&image)).await.err().or_fail("be refused");
    assert!(refused.to_string().contains("admin"), "{refused}");
}

#[tokio::test]
async fn no_way_around_leads_to_what_is_somebody_elses() {
    let site = Site::start().await;
    let admin = site.admins_docker().await;
    admin.push(site.base.reference(), "admin/secret:1").await.succeeded();
    let admins_token = token(&site.world.client(), Scope::All).await;
    let digest =
        image_named(&site.world.client(), "/admin/secret:1").await.saved.and_then(|image| image.digest);
    let digest = digest.or_fail("find a digest");
    let manifest = format!("admin/secret/manifests/{digest}");
    let (status, text) = site.ask(Method::GET, &admins_token, &manifest).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let text: Value = serde_json::from_str(&text).or_fail("read a manifest");
    let layer = text["layers"][0]["digest"].as_str().or_fail("find a layer");

    let bob = site.bobs_token.as_str();
    for path in [
        manifest.clone(),
        "admin/secret/manifests/1".to_owned(),
        format!("admin/secret/blobs/{layer}"),
        format!("bob/mine/blobs/{layer}"),
        format!("bob/../admin/secret/blobs/{layer}"),
        format!("bob/%2e%2e/admin/secret/blobs/{layer}"),
        "admin/secret/tags/list".to_owned(),
    ] {
        let (status, said) = site.ask(Method::GET, bob, &path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {said}");
    }
    let (_, catalog) = site.ask(Method::GET, bob, "_catalog").await;
    assert_eq!(catalog, r#"{"repositories":[]}"#);
    // Taking a blob over becomes an upload, as if it were not there.
    let mount = format!("bob/mine/blobs/uploads/?mount={layer}&from=admin/secret");
    let (status, _) = site.ask(Method::POST, bob, &mount).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let (status, _) = site.ask(Method::HEAD, bob, &format!("bob/mine/blobs/{layer}")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let own = format!("admin/other/blobs/uploads/?mount={layer}&from=admin/secret");
    let (status, _) = site.ask(Method::POST, &admins_token, &own).await;
    assert_eq!(status, StatusCode::CREATED);
    let (_, catalog) = site.ask(Method::GET, &admins_token, "_catalog?n=10").await;
    assert_eq!(catalog, r#"{"repositories":["admin/secret"]}"#);

    // One that may only read does not write; nobody is in without a key; the registry itself lets nobody in.
    let reads = token(&site.world.client(), Scope::Read).await;
    assert_eq!(site.ask(Method::GET, &reads, &manifest).await.0, StatusCode::OK);
    assert_eq!(site.ask(Method::POST, &reads, "admin/x/blobs/uploads/").await.0, StatusCode::FORBIDDEN);
    assert_eq!(site.ask(Method::DELETE, &reads, &manifest).await.0, StatusCode::FORBIDDEN);
    let v2 = format!("{}/v2/", site.world.console());
    let (status, _, head) = raw_http(Method::GET, &v2, &[]).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let challenge = head["www-authenticate"].to_str().or_fail("read a header");
    assert!(challenge.starts_with("Bearer realm=\"http://localhost:"), "{challenge}");
    let inside = format!("http://{}/v2/{manifest}", site.registry.address());
    assert_eq!(raw_http(Method::GET, &inside, &[]).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_a_removed_token_opens_nothing() {
    let site = Site::start().await;
    let docker = SignedIn::to_nothing(&site.world);
    for (user, secret) in [("admin", "wrong"), ("bob", site.world.password()), ("admin", &site.bobs_token)] {
        let (_, said) = docker.sign_in(user, secret).await.ended(1);
        assert!(said.contains("unauthorized") || said.contains("wrong"), "{said}");
    }
    docker.sign_in("bob", &site.bobs_token).await.succeeded();
    let tokens = site.bob.tokens().await.or_fail("list tokens");
    site.bob.remove_token(tokens[0].id.as_str()).await.or_fail("remove a token");
    docker.push(site.base.reference(), "bob/late:1").await.ended(1);
}

#[tokio::test]
async fn a_tag_moves_and_two_tags_of_one_image_are_deleted_one_by_one() {
    let site = Site::start().await;
    let bob = site.bobs_docker().await;
    for tag in ["bob/tools:1", "bob/tools:2"] {
        bob.push(site.base.reference(), tag).await.succeeded();
    }
    let [one, two] =
        [image_named(&site.bob, "/bob/tools:1").await, image_named(&site.bob, "/bob/tools:2").await];
    site.bob.delete_image(id_of(&one)).await.or_fail("delete an image");
    wait_until("it is gone", LIMIT, async || {
        let images = site.bob.images().await.or_fail("list images");
        images.iter().all(|image| image.reference != one.reference).then_some(())
    })
    .await;
    bob.pull("bob/tools:1").await.ended(1);
    bob.pull("bob/tools:2").await.succeeded();

    let other = tempfile::tempdir().or_fail("make a folder");
    std::fs::write(other.path().join("new"), "new").or_fail("write a file");
    let other = LocalImage::of_directory("other", other.path(), &[]);
    bob.push(other.reference(), "bob/tools:2").await.succeeded();
    let moved = image_named(&site.bob, "/bob/tools:2").await;
    assert_eq!(id_of(&moved), id_of(&two));
    assert_ne!(moved.saved.and_then(|image| image.digest), two.saved.and_then(|image| image.digest));
}

#[tokio::test]
async fn an_image_is_used_by_its_digest_as_long_as_one_of_its_tags_is_shared() {
    let site = Site::start().await;
    let bob = site.bobs_docker().await;
    for tag in ["bob/tools:shared", "bob/tools:private"] {
        bob.push(site.base.reference(), tag).await.succeeded();
    }
    let image = image_named(&site.bob, "/bob/tools:shared").await;
    let digest = image.saved.as_ref().and_then(|saved| saved.digest.clone()).or_fail("find a digest");
    let by_digest = bob.reference(&format!("bob/tools@{digest}"));
    let create = ["create", "mine", "--image", &by_digest, "--wait"];
    let (_, said) = site.world.berth(&create).await.ended(1);
    assert!(said.contains("nobody has saved such an image"), "{said}");
    let everyone = ChangeImage { share: Some(Share::Everyone), ..ChangeImage::default() };
    site.bob.change_image(id_of(&image), &everyone).await.or_fail("share an image");
    site.world.berth(&create).await.succeeded();
}

#[tokio::test]
async fn a_tag_that_moves_between_the_check_and_the_run_runs_what_was_checked() {
    let site = Site::start_on(Registry::start_with_faults().await, "").await;
    let admin = site.admins_docker().await;
    let push = async |which: &str| {
        let root = tempfile::tempdir().or_fail("make a folder");
        put_busybox(root.path(), "bin/busybox", &["sh", "cat"]);
        std::fs::write(root.path().join("which"), which).or_fail("write a file");
        let image = LocalImage::of_directory(which, root.path(), &["ENTRYPOINT [\"/bin/sh\"]"]);
        admin.push(image.reference(), "admin/tools:1").await.succeeded();
        engine::docker(&["rmi", "--force", &admin.reference("admin/tools:1")]);
    };
    push("first").await;
    let reference = image_named(&site.world.client(), "/admin/tools:1").await.reference;
    // Its layers are on their way while the tag comes to mean another image.
    site.registry.faults().all("GET", Fault::KeepLayers);
    site.world.berth(&["create", "train", "--image", &reference]).await.succeeded();
    wait_until("it is pulled", LIMIT, async || (site.registry.faults().done() > 0).then_some(())).await;
    push("second").await;
    site.registry.faults().none();
    wait_until("it runs", LIMIT, async || {
        let instance = site.world.client().instance("train").await.or_fail("show an instance");
        matches!(instance.status, Status::Running { .. }).then_some(())
    })
    .await;
    let which = async |name: &str| site.world.berth(&["exec", name, "--", "cat", "/which"]).await.succeeded();
    assert_eq!(which("train").await, "first");
    site.world.berth(&["create", "next", "--image", &reference, "--wait"]).await.succeeded();
    assert_eq!(which("next").await, "second");
}

#[tokio::test]
async fn large_layers_pass_through_and_the_gateway_stays_small() {
    const LAYER: u64 = 160 << 20;
    let site = Site::start().await;
    let root = tempfile::tempdir().or_fail("make a folder");
    let file = std::fs::File::create(root.path().join("large")).or_fail("make a file");
    let mut noise = std::io::Read::take(std::fs::File::open("/dev/urandom").or_fail("open noise"), LAYER);
    std::io::copy(&mut noise, &mut &file).or_fail("write noise");
    let large = LocalImage::of_directory("large", root.path(), &[]);
    let bob = site.bobs_docker().await;
    let before = site.world.gateway_memory_bytes();
    bob.push(large.reference(), "bob/large:1").await.succeeded();
    drop(large);
    bob.pull("bob/large:1").await.succeeded();
    let grown = site.world.gateway_memory_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
    let name = bob.reference("bob/large:1");
    let bytes: u64 =
        engine::docker(&["image", "inspect", "--format", "{{.Size}}", &name]).parse().or_fail("read");
    assert!(bytes >= LAYER);
}

#[tokio::test]
async fn skopeo_copies_and_umoci_unpacks() {
    let site = Site::start().await;
    let bob = site.bobs_docker().await;
    bob.push(site.base.reference(), "bob/tools:1").await.succeeded();
    let folder = tempfile::tempdir().or_fail("make a folder");
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(folder.path()).output();
        let output = output.or_fail(program);
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let (source, who) =
        (format!("docker://{}", bob.reference("bob/tools:1")), format!("bob:{}", site.bobs_token));
    run(
        "skopeo",
        &["--insecure-policy", "copy", "--src-tls-verify=false", "--src-creds", &who, &source, "oci:copy:1"],
    );
    run("umoci", &["unpack", "--image", "copy:1", "unpacked"]);
    assert!(folder.path().join("unpacked/rootfs/bin/busybox").is_file());
    let back = format!("docker://{}", bob.reference("bob/back:1"));
    run(
        "skopeo",
        &["--insecure-policy", "copy", "--dest-tls-verify=false", "--dest-creds", &who, "oci:copy:1", &back],
    );
    bob.pull("bob/back:1").await.succeeded();
}

#[tokio::test]
async fn images_of_docker_hub_come_by_way_of_the_sites_relay() {
    // What stands for Docker Hub, and the relay that fetches from it.
    let mut hub = Registry::start_open().await;
    let relay = Registry::start_relay_of(&hub).await;
    let base = LocalImage::busybox();
    let there = format!("{}/library/of-the-hub:1", hub.address());
    engine::docker(&["tag", base.reference(), &there]);
    engine::docker(&["push", "--quiet", &there]);
    engine::docker(&["rmi", &there]);
    drop(base);
    let config = format!("[envd]\nhub_relay = \"{}\"\n", relay.address());
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    let create = async |name: &str, image: &str| {
        world.berth(&["create", name, "--image", image, "--wait"]).await.succeeded();
        let shown = world.berth(&["exec", name, "--", "sh", "-c", "echo $COLOUR"]).await.succeeded();
        assert_eq!(shown, "blue\n");
    };
    create("train", "of-the-hub:1").await;
    let instance = world.client().instance("train").await.or_fail("show an instance");
    assert!(!instance.image.contains(relay.address()), "people see the name they wrote: {}", instance.image);
    let (_, said) = world.berth(&["create", "other", "--image", "of-the-hub:2"]).await.ended(1);
    assert!(said.contains("manifest unknown"), "{said}");

    // It keeps what it has fetched: what is gone from this machine comes from there, whatever has become of the hub.
    world.berth(&["rm", "train", "--wait"]).await.succeeded();
    engine::forget_images_of(relay.address());
    hub.kill();
    create("again", "docker.io/library/of-the-hub:1").await;
}
