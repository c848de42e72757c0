//! An instance saved as an image, and what becomes of the image.

use gateway_api::{
    Code, CreateInstance, Goal,
    image::{ChangeImage, Changes, CollectedImages, ImageState, SaveFailure, SaveInstance, Share},
};
use tests::{
    Fault, LIMIT, OrFail as _, Registry, World, count,
    engine::{self, PrivateEngine},
    wait_until, wanted,
};

use crate::saving::{Site, saved, state};

#[tokio::test]
async fn a_saved_image_is_listed_starts_at_once_and_goes_when_nobody_uses_it() {
    let site = Site::start().await;
    site.instance("train").await;
    site.exec("train", "echo kept > /kept; echo secret > /userhome/mine; echo gone > /tmp/gone").await;
    let image = site.save(&["train", "1", "--message", "with apex"]).await;
    let about = saved(&image);
    assert_eq!(
        (about.name.as_str(), about.tag.as_str(), about.message.as_str()),
        ("train", "1", "with apex")
    );
    assert_eq!(about.parent, site.base.reference());
    assert!(site.world.berth(&["images"]).await.succeeded().contains(&image.reference));

    let create = ["create", "again", "--image", &image.reference, "--wait"];
    site.world.berth(&create).await.succeeded();
    assert_eq!(site.exec("again", "cat /kept; ls /tmp").await, "kept\n");
    let again = site.world.client().instance("again").await.or_fail("show an instance");
    assert_eq!(again.image, image.reference, "as its user knows it");

    let (_, said) = site.world.berth(&["image", "rm", "train:1"]).await.ended(1);
    assert!(said.contains("admin/again"), "{said}");
    site.world.berth(&["rm", "again", "--wait"]).await.succeeded();
    site.world.berth(&["image", "rm", "train:1"]).await.succeeded();
    let client = site.world.client();
    wait_until("the image is gone", LIMIT, async || {
        let images = client.images().await.or_fail("list images");
        images.iter().all(|image| image.saved.is_none()).then_some(())
    })
    .await;
    let (_, said) = site.world.berth(&create).await.ended(1);
    assert!(said.contains("nobody has saved such an image"), "{said}");
}

#[tokio::test]
async fn a_look_before_a_save_leaves_out_what_the_save_would() {
    let site = Site::start().await;
    site.instance("train").await;
    site.exec("train", "echo 1 > /tmp/a; mkdir '/a,b'; echo 1 > '/a,b/c'").await;
    let left_out = async |how: &[&str]| {
        let all: Vec<_> = ["save", "train", "--dry-run", "--json"].iter().chain(how).copied().collect();
        let told = site.world.berth(&all).await.succeeded();
        let told: Changes = serde_json::from_str(&told).or_fail("read what would be saved");
        told.excluded.into_iter().map(|left| left.path).collect::<Vec<_>>()
    };
    assert_eq!(left_out(&[]).await, ["/tmp"]);
    assert!(left_out(&["--everything"]).await.is_empty());
    assert_eq!(left_out(&["--exclude", "/a,b", "--exclude", "/none"]).await, ["/a,b"]);
}

#[tokio::test]
async fn later_saves_write_only_what_changed() {
    let site = Site::start().await;
    site.instance("train").await;
    site.exec("train", "dd if=/dev/urandom of=/large bs=1M count=8; mkdir /d; echo 1 > /d/a; echo 1 > /d/b")
        .await;
    // What changed at the moment of a save is not relied on at the next.
    let old = "while [ $(($(date +%s) - $(stat -c %Z /d/b))) -lt 2 ]; do sleep 1; done";
    site.exec("train", old).await;
    let first = saved(&site.save(&["train", "1"]).await).added_bytes;
    assert!(first > 8 << 20);
    site.exec("train", "echo 2 > /d/a; rm /d/b; echo new > /d/c").await;
    let second = saved(&site.save(&["train", "2"]).await).added_bytes;
    assert!(second < 100 << 10, "{second} bytes for a small change");
    site.exec("train", "mv /d /e; mkdir /d; echo 3 > /d/a").await;
    let third = site.save(&["train", "3"]).await;
    let added = saved(&third).added_bytes;
    assert!(added < 100 << 10, "{added} bytes for a small change");
    let reference = site.pull(&third).await;
    let line = "cat /d/a /e/a /e/c; ls /d /e; wc -c < /large";
    let seen = engine::docker(&["run", "--rm", "--entrypoint", "sh", &reference, "-c", line]);
    assert_eq!(seen, "3\n2\nnew\n/d:\na\n\n/e:\na\nc\n8388608");
    engine::docker(&["rmi", "--force", &reference]);
}

#[tokio::test]
async fn every_attribute_of_every_file_comes_back() {
    let site = Site::start().await;
    // The default image has Python.
    site.world.berth(&["create", "train", "--memory", "512M", "--wait"]).await.succeeded();
    let script = include_str!("attributes.py");
    let made = ["exec", "train", "--", "python3", "-c", script, "make", "10000"];
    let made = site.world.berth(&made).await.succeeded();
    assert!(made.starts_with("False ['new']"), "{}", &made[..80]);
    let image = site.save(&["train", "--everything"]).await;
    // Every byte comes from the registry: this engine has no image at all.
    let empty = PrivateEngine::start().await;
    let reference = site.pull_into(&empty, &image);
    let run =
        ["run", "--rm", "--network", "none", "--user", "0", "--entrypoint", "python3", &reference, "-c"];
    let seen = empty.run(&[&run[..], &[script, "tell"]].concat());
    for (made, seen) in made.lines().zip(seen.lines()) {
        assert_eq!(made, seen);
    }
    assert_eq!(made.lines().count(), seen.lines().count());
}

#[tokio::test]
async fn nothing_of_ours_and_nothing_that_is_mounted_is_in_any_blob() {
    let site = Site::start().await;
    let [canary, secret] = [(); 2].map(|()| format!("canary-{}", rand::random::<u64>()));
    let (image, variable) = (site.base.reference(), format!("SECRET={canary}"));
    site.world.berth_with(&["secret", "set", "KEY"], secret.as_bytes()).await.succeeded();
    let create = ["create", "train", "--image", image, "--env", &variable, "--secret", "KEY:file", "--wait"];
    site.world.berth(&create).await.succeeded();
    site.exec("train", &format!("echo {canary} > /userhome/mine; echo hello > /public")).await;
    let image = site.save(&["train", "1"]).await;
    let reference = site.pull(&image).await;
    let stored = site.registry.contents();
    let has = |text: &str| {
        stored.iter().any(|file| file.windows(text.len()).any(|window| window == text.as_bytes()))
    };
    for text in ["hello", "schemaVersion", "COLOUR=blue"] {
        assert!(has(text), "the check itself: layers, manifests and configs: {text}");
    }
    let ours = ["berth.instance", "berth.cluster", ".berth", "envd-agent", site.world.token()];
    for text in [canary.as_str(), secret.as_str()].into_iter().chain(ours) {
        assert!(!has(text), "{text}");
    }
    let config = engine::docker(&["inspect", "--format", "{{json .Config}}", &reference]);
    let base = engine::docker(&["inspect", "--format", "{{json .Config}}", site.base.reference()]);
    assert_eq!(config, base, "how it runs is as in the image that it came from");
    engine::docker(&["rmi", "--force", &reference]);
}

#[tokio::test]
async fn who_may_use_an_image() {
    let site = Site::start().await;
    site.instance("train").await;
    let image = site.save(&["train", "1"]).await;
    let (owner, bob) = (site.world.client(), site.world.person("bob").await);
    let create = CreateInstance { image: Some(image.reference.clone()), ..wanted("mine") };
    let refused = bob.create_instance(&create).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::ImageNotFound));
    // Nor by the registry's own address, which would pass the check on names by.
    let tag = format!("{}/admin/train:1", site.registry.address());
    let inside = CreateInstance { image: Some(tag), ..wanted("mine") };
    let refused = bob.create_instance(&inside).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::ImageNotFound));
    let id = saved(&image).id.as_str();
    assert_eq!(bob.image(id).await.err().or_fail("be refused").code(), Some(Code::NotFound));

    let share = ChangeImage { share: Some(Share::Everyone), ..ChangeImage::default() };
    let refused = bob.change_image(id, &share).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::NotFound));
    owner.change_image(id, &share).await.or_fail("share an image");
    bob.create_instance(&create).await.or_fail("use a shared image");
    let refused = bob.delete_image(id).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::Forbidden));
}

#[tokio::test]
async fn a_registry_that_is_down_fails_the_save_and_keeps_the_instance() {
    let mut site = Site::start().await;
    site.instance("train").await;
    site.exec("train", "echo 1 > /kept").await;
    site.registry.kill();
    let (_, said) = site.world.berth(&["save", "train", "1", "--stop", "--wait"]).await.ended(1);
    assert!(said.contains("does not answer") && said.contains("the instance is as it was"), "{said}");
    let instance = site.world.client().instance("train").await.or_fail("show an instance");
    assert_eq!(instance.goal, Goal::Running, "it is stopped only when its image is whole");

    site.registry.start_again().await;
    let image = site.save(&["train", "1", "--stop"]).await;
    assert_eq!(saved(&image).state, ImageState::Ready);
    wait_until("it was stopped", LIMIT, async || {
        let instance = site.world.client().instance("train").await.or_fail("show an instance");
        (instance.goal == Goal::Stopped).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_site_without_a_registry_says_so() {
    let world = World::start().await;
    world.berth(&["create", "train", "--wait"]).await.succeeded();
    let refused = world.client().save_instance("train", &SaveInstance::default()).await;
    assert_eq!(refused.err().or_fail("be refused").code(), Some(Code::NoRegistry));
}

#[tokio::test]
async fn what_cannot_be_a_name_is_refused_before_any_work() {
    let site = Site::start().await;
    site.instance("train").await;
    for tag in ["a b", "bob/train:1", "Train:1", "../x:1", ".x", "train:.x"] {
        let (_, said) = site.world.berth(&["save", "train", tag]).await.ended(1);
        assert!(said.contains("is not an image reference"), "{tag}: {said}");
    }
    let (_, said) = site.world.berth(&["save", "train", "--exclude", "tmp"]).await.ended(1);
    assert!(said.contains("absolute path"), "{said}");
    let images = site.world.client().images().await.or_fail("list images");
    assert!(images.iter().all(|image| image.saved.is_none()), "{images:?}");
}

#[tokio::test]
async fn a_save_survives_kills_of_both_programs_or_says_why_it_did_not() {
    let mut site = Site::start_on(Registry::start_with_faults().await).await;
    site.instance("train").await;
    let client = site.world.client();
    // One kill of each program, and more in `make test-long`.
    for round in 0..count("BERTH_SAVE_ROUNDS", 2) {
        // What no layer of an earlier round has: all of it is read and pushed again.
        let written =
            site.exec("train", "dd if=/dev/urandom of=/large bs=1M count=16; busybox sha256sum /large");
        let written = written.await;
        // The first saves are killed half way. Each later one is killed at another point: at once, or when this many
        // bytes have reached the registry.
        let passes = if round < 2 { 8 << 20 } else { rand::random_range(0..16 << 20) };
        let held = site.registry.faults().held();
        site.registry.faults().all("PUT", Fault::Hold(passes));
        let wish = SaveInstance { tag: Some(format!("kill-{round}")), ..SaveInstance::default() };
        let image = client.save_instance("train", &wish).await.or_fail("begin to save");
        if round % 4 != 2 {
            wait_until("it is on its way", LIMIT, async || {
                (site.registry.faults().held() > held).then_some(())
            })
            .await;
        }
        let now = state(&client, &image).await;
        assert!(matches!(now, ImageState::Saving { .. }), "{now:?} after {passes} bytes");
        if round % 2 == 0 {
            site.world.kill_envd();
            site.world.start_envd().await;
        } else {
            site.world.kill_gateway();
            site.world.start_gateway().await;
        }
        site.registry.faults().none();
        let ended = wait_until("the save has ended", LIMIT, async || {
            let image = client.image(saved(&image).id.as_str()).await.ok()?;
            (!saved(&image).state.is_passing()).then_some(image)
        })
        .await;
        assert_eq!(saved(&ended).state, ImageState::Ready, "after {passes} bytes");
        let reference = site.pull(&ended).await;
        let run = ["run", "--rm", "--entrypoint", "busybox", &reference, "sha256sum", "/large"];
        assert_eq!(engine::docker(&run), written.trim_end());
        engine::docker(&["rmi", "--force", &reference]);
    }
    let unused =
        site.world.berth(&["image", "gc", "--dry-run", "--older-than", "0s", "--json"]).await.succeeded();
    let unused: CollectedImages = serde_json::from_str(&unused).or_fail("read what is unused");
    assert_eq!((unused.blobs, &unused.images[..]), (0, &[][..]), "no room is lost");
    wait_until("no journal is left", LIMIT, async || {
        let left = std::fs::read_dir(site.world.data().join("save")).or_fail("look at the journals");
        let mut left = left.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("img_"));
        left.next().is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_instance_that_is_deleted_meanwhile_is_saved_whole_or_not_at_all() {
    let site = Site::start().await;
    site.instance("train").await;
    site.exec("train", "dd if=/dev/urandom of=/large bs=1M count=64").await;
    let client = site.world.client();
    let image = client.save_instance("train", &SaveInstance::default()).await.or_fail("begin to save");
    client.delete_instance("train").await.or_fail("delete an instance");
    let ready = wait_until("the save has ended", LIMIT, async || match state(&client, &image).await {
        ImageState::Saving { .. } | ImageState::Deleting => None,
        ImageState::Ready => Some(true),
        ImageState::Failed { failure, message } => {
            assert!(matches!(failure, SaveFailure::InstanceGone), "{message}");
            Some(false)
        }
    })
    .await;
    if ready {
        let reference =
            site.pull(&client.image(saved(&image).id.as_str()).await.or_fail("read an image")).await;
        let seen = engine::docker(&["run", "--rm", "--entrypoint", "stat", &reference, "-c", "%s", "/large"]);
        assert_eq!(seen, (64 << 20).to_string());
        engine::docker(&["rmi", "--force", &reference]);
    }
}

#[tokio::test]
async fn what_was_installed_is_told_before_a_save_and_becomes_a_dockerfile() {
    let site = Site::start().await;
    // The default image has dpkg and pip.
    site.world.berth(&["create", "train", "--memory", "512M", "--wait"]).await.succeeded();
    site.exec("train", include_str!("install.sh")).await;
    let told = site.world.berth(&["save", "train", "--dry-run"]).await.succeeded();
    assert!(told.contains("apt    small-tool 2.0") && told.contains("pip    smallwheel 1.5"), "{told}");
    let image = site.save(&["train", "1"]).await;
    let printed = site.world.berth(&["image", "dockerfile", "train:1"]).await.succeeded();
    for line in [
        format!("FROM {}", saved(&image).parent).as_str(),
        "      small-tool=2.0",
        "      smallwheel==1.5",
        "# apt small-tool=2.0",
        "# pip smallwheel==1.5",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    assert!(!printed.contains("      dpkg="), "{printed}");

    site.docker.push(site.base.reference(), "admin/pushed:1").await.succeeded();
    let (_, said) = site.world.berth(&["image", "dockerfile", "pushed:1"]).await.ended(1);
    assert!(said.contains("nobody knows"), "{said}");
}
