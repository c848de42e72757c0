//! What goes wrong while an instance is saved or an image taken away, and what is said of it.

use std::time::Duration;

use gateway_api::image::{Image, ImageState, SaveFailure, SaveInstance};
use tests::{Fault, LIMIT, OrFail as _, Registry, SmallDisk, engine, wait_until};

use crate::saving::{Site, ended, gone, saved, state};

/// A site whose registry can be made unwell, and an instance that has changed.
async fn unwell() -> Site {
    let site = Site::start_on(Registry::start_with_faults().await).await;
    site.instance("train").await;
    site.exec("train", "dd if=/dev/urandom of=/large bs=1M count=4; echo 1 > /kept").await;
    site
}

async fn begin(site: &Site, name: &str, tag: &str) -> Image {
    let (name, tag) = (Some(name.to_owned()), Some(tag.to_owned()));
    let wish = SaveInstance { name, tag, ..SaveInstance::default() };
    site.world.client().save_instance("train", &wish).await.or_fail("begin to save")
}

/// Saves, and says how it failed.
async fn failure(site: &Site, tag: &str) -> (SaveFailure, String) {
    let image = begin(site, "train", tag).await;
    match ended(&site.world.client(), &image).await {
        ImageState::Failed { failure, message } => (failure, message),
        other @ (ImageState::Saving { .. } | ImageState::Ready | ImageState::Deleting) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_save_that_is_given_up_takes_no_other_image_with_it() {
    let site = unwell().await;
    let client = site.world.client();
    for tag in ["admin/tools:1", "admin/tools:2"] {
        site.docker.push(site.base.reference(), tag).await.succeeded();
    }
    let one = client.image("tools:1").await.or_fail("show an image");
    client.delete_image(saved(&one).id.as_str()).await.or_fail("delete an image");
    gone(&client, &one).await;
    // The registry still has the tag `1`, and it means what `2` means.
    site.registry.faults().all("PUT", Fault::Hold(0));
    let image = begin(&site, "tools", "1").await;
    wait_until("it pushes", LIMIT, async || (site.registry.faults().done() > 0).then_some(())).await;
    site.world.berth(&["image", "rm", "tools:1"]).await.succeeded();
    site.registry.faults().none();
    gone(&client, &image).await;
    site.docker.pull("admin/tools:2").await.succeeded();
    assert_eq!(site.exec("train", "cat /kept").await, "1\n");
}

#[tokio::test]
async fn a_registry_that_fails_says_why_and_the_next_save_is_whole() {
    let site = unwell().await;
    let faults = site.registry.faults();
    let full = r#"{"errors":[{"code":"UNKNOWN","message":"no space left on device"}]}"#;
    for (fault, wanted, words) in [
        (Fault::Answer(507, full), SaveFailure::RegistryFull, "no room left"),
        (Fault::Answer(401, "{}"), SaveFailure::RegistryRefused, "refuses"),
        (Fault::Cut(100_000), SaveFailure::RegistryUnreachable, "does not answer"),
    ] {
        faults.all("PUT", fault);
        let (failure, message) = failure(&site, "1").await;
        assert_eq!(failure, wanted, "{message}");
        assert!(message.contains(words), "{message}");
        let (_, said) = site.docker.pull("admin/train:1").await.ended(1);
        assert!(!said.is_empty(), "nothing half made is listed");
    }
    // What fails once is tried again, and what is slow is waited for.
    faults.next(1, "PUT", Fault::Cut(100_000));
    let image = site.save(&["train", "1"]).await;
    site.exec("train", "dd if=/dev/urandom of=/larger bs=1M count=4").await;
    faults.all("PUT", Fault::Slow(Duration::from_millis(10)));
    let slow = site.save(&["train", "2"]).await;
    faults.none();
    for image in [image, slow] {
        let reference = site.pull(&image).await;
        let seen = engine::docker(&["run", "--rm", "--entrypoint", "cat", &reference, "/kept"]);
        assert_eq!(seen, "1");
        engine::docker(&["rmi", "--force", &reference]);
    }
}

#[tokio::test]
async fn a_registry_that_is_killed_meanwhile_has_the_image_whole_or_not_at_all() {
    let mut site = unwell().await;
    let client = site.world.client();
    for (round, method) in ["HEAD", "POST", "PUT"].into_iter().enumerate() {
        let before = site.registry.faults().done();
        site.registry.faults().all(method, Fault::Slow(Duration::from_millis(50)));
        let image = begin(&site, "train", &format!("k{round}")).await;
        wait_until("it is at the registry", LIMIT, async || {
            (site.registry.faults().done() > before).then_some(())
        })
        .await;
        site.registry.kill();
        site.registry.faults().none();
        site.registry.start_again().await;
        match ended(&client, &image).await {
            ImageState::Ready => {
                let image = client.image(saved(&image).id.as_str()).await.or_fail("show an image");
                let reference = site.pull(&image).await;
                engine::docker(&["rmi", "--force", &reference]);
            }
            ImageState::Failed { failure, message } => {
                assert_eq!(failure, SaveFailure::RegistryUnreachable, "{message}");
            }
            other @ (ImageState::Saving { .. } | ImageState::Deleting) => panic!("{other:?}"),
        }
    }
    assert_eq!(saved(&site.save(&["train", "after"]).await).state, ImageState::Ready);
}

#[tokio::test]
async fn images_go_from_registries_that_delete_nothing_and_when_one_is_back() {
    let mut site = unwell().await;
    let client = site.world.client();
    let [one, two] = [site.save(&["train", "1"]).await, site.save(&["train", "2"]).await];
    site.registry.faults().all("DELETE", Fault::Answer(405, "{}"));
    client.delete_image(saved(&one).id.as_str()).await.or_fail("delete an image");
    gone(&client, &one).await;
    site.docker.pull("admin/train:1").await.ended(1);
    site.registry.faults().none();

    site.registry.kill();
    client.delete_image(saved(&two).id.as_str()).await.or_fail("delete an image");
    assert_eq!(state(&client, &two).await, ImageState::Deleting);
    site.registry.start_again().await;
    gone(&client, &two).await;
}

#[tokio::test]
async fn a_disk_that_is_full_fails_the_save_and_says_so() {
    let site = unwell().await;
    let journals = SmallDisk::mount(site.world.data().join("save"), 32 << 20);
    journals.fill();
    let (kind, message) = failure(&site, "1").await;
    assert_eq!(kind, SaveFailure::DiskFull, "{message}");
    journals.free();
    assert_eq!(saved(&site.save(&["train", "1"]).await).state, ImageState::Ready);
}

#[tokio::test]
async fn a_container_that_vanishes_meanwhile_is_saved_whole_or_not_at_all() {
    let site = Site::start().await;
    site.instance("train").await;
    site.exec("train", "dd if=/dev/urandom of=/large bs=1M count=64").await;
    let client = site.world.client();
    let image = begin(&site, "train", "1").await;
    wait_until("it is being read", LIMIT, async || match state(&client, &image).await {
        ImageState::Saving { done_bytes, .. } => (done_bytes > 0).then_some(()),
        ImageState::Ready | ImageState::Failed { .. } | ImageState::Deleting => Some(()),
    })
    .await;
    // Behind envd's back, as somebody at the machine might.
    engine::docker(&["rm", "--force", &site.world.only_container()]);
    match ended(&client, &image).await {
        ImageState::Failed { failure: SaveFailure::InstanceGone, .. } => {}
        ImageState::Ready => {
            let image = client.image(saved(&image).id.as_str()).await.or_fail("read an image");
            let reference = site.pull(&image).await;
            let look = ["run", "--rm", "--entrypoint", "stat", &reference, "-c", "%s", "/large"];
            assert_eq!(engine::docker(&look), (64 << 20).to_string());
            engine::docker(&["rmi", "--force", &reference]);
        }
        other @ (ImageState::Saving { .. } | ImageState::Failed { .. } | ImageState::Deleting) => {
            panic!("{other:?}")
        }
    }
}
