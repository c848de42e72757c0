//! Saves that are tried again, and images that get another name.

use gateway_api::{
    Code,
    image::{Image, ImageState, SaveInstance},
};
use tests::{Fault, OrFail as _, Registry, Setup, engine};

use crate::saving::{Site, ended, saved};

/// A registry that failed while `train`, in which `command` was run, was saved as `train:1`, and is well again.
async fn failed_save(command: &str) -> (Site, Image) {
    let site = Site::start_on(Registry::start_with_faults().await).await;
    let client = site.world.client();
    site.instance("train").await;
    site.exec("train", command).await;
    site.registry.faults().all("PUT", Fault::Answer(503, "{}"));
    let wish = SaveInstance { tag: Some("1".to_owned()), ..SaveInstance::default() };
    let image = client.save_instance("train", &wish).await.or_fail("begin to save");
    let state = ended(&client, &image).await;
    assert!(matches!(state, ImageState::Failed { .. }), "{state:?}");
    site.registry.faults().none();
    (site, image)
}

#[tokio::test]
async fn a_save_that_failed_goes_on_from_what_it_had_made() {
    let (site, _) = failed_save("dd if=/dev/urandom of=/large bs=1M count=4; echo 1 > /kept").await;
    let client = site.world.client();
    // What it had made is of the moment of the save, whatever has become of the instance.
    site.world.berth(&["rm", "train", "--wait"]).await.succeeded();
    site.world.berth(&["image", "retry", "train:1", "--wait"]).await.succeeded();
    let image = client.image("train:1").await.or_fail("show an image");
    assert_eq!(saved(&image).state, ImageState::Ready);
    let reference = site.pull(&image).await;
    let look = ["run", "--rm", "--entrypoint", "cat", &reference, "/kept"];
    assert_eq!(engine::docker(&look), "1");
    engine::docker(&["rmi", "--force", &reference]);
    let (_, said) = site.world.berth(&["image", "retry", "train:1"]).await.ended(1);
    assert!(said.contains("only a save that failed can be tried again"), "{said}");
}

#[tokio::test]
async fn a_journal_that_is_spoilt_is_made_again() {
    let (site, image) = failed_save("echo 1 > /kept").await;
    let client = site.world.client();
    // As a file system that was not shut down may leave them.
    let journal = site.world.data().join("save").join(saved(&image).id.as_str());
    for record in ["request", "layer", "done"] {
        std::fs::write(journal.join(record), "").or_fail("spoil a journal");
    }
    site.world.berth(&["image", "retry", "train:1", "--wait"]).await.succeeded();
    let image = client.image("train:1").await.or_fail("show an image");
    let reference = site.pull(&image).await;
    assert_eq!(engine::docker(&["run", "--rm", "--entrypoint", "cat", &reference, "/kept"]), "1");
    engine::docker(&["rmi", "--force", &reference]);
}

#[tokio::test]
async fn what_a_failed_save_has_made_goes_when_another_image_has_its_name() {
    let (site, image) = failed_save("dd if=/dev/urandom of=/large bs=1M count=4").await;
    let journal = site.world.data().join("save").join(saved(&image).id.as_str());
    let gc = ["image", "gc", "--older-than", "0s"];
    site.world.berth(&gc).await.succeeded();
    assert!(journal.exists(), "it can be tried again");
    site.docker.push(site.base.reference(), "admin/train:1").await.succeeded();
    site.world.berth(&gc).await.succeeded();
    assert!(!journal.exists(), "nobody can try it again");
    site.docker.pull("admin/train:1").await.succeeded();
}

#[tokio::test]
async fn a_layer_that_a_machine_without_power_lost_is_read_again() {
    let (site, image) = failed_save("dd if=/dev/urandom of=/large bs=1M count=4; echo 1 > /kept").await;
    let client = site.world.client();
    let blob = site.world.data().join("save").join(saved(&image).id.as_str()).join("blob");
    let file = std::fs::OpenOptions::new().write(true).open(blob).or_fail("open a layer");
    file.set_len(1 << 20).or_fail("cut a layer short");
    site.world.berth(&["image", "retry", "train:1", "--wait"]).await.succeeded();
    let image = client.image("train:1").await.or_fail("show an image");
    let reference = site.pull(&image).await;
    assert_eq!(engine::docker(&["run", "--rm", "--entrypoint", "cat", &reference, "/kept"]), "1");
    engine::docker(&["rmi", "--force", &reference]);
}

#[tokio::test]
async fn a_renamed_image_is_found_by_its_new_name_alone_and_what_was_made_from_it_goes_on() {
    let site = Site::start().await;
    let client = site.world.client();
    site.instance("train").await;
    site.exec("train", "echo 1 > /kept").await;
    let image = site.save(&["train", "1"]).await;
    site.world.berth(&["create", "user", "--image", &image.reference, "--wait"]).await.succeeded();
    let renamed = site.world.berth(&["image", "mv", "train:1", "tools:2"]).await.succeeded();
    assert!(renamed.trim_end().ends_with("/admin/tools:2"), "{renamed}");
    site.docker.pull("admin/tools:2").await.succeeded();
    site.docker.pull("admin/train:1").await.ended(1);
    let gone = client.image("train:1").await.err().or_fail("be refused");
    assert_eq!(gone.code(), Some(Code::NotFound));

    site.world.berth(&["stop", "user", "--wait"]).await.succeeded();
    site.world.berth(&["start", "user", "--wait"]).await.succeeded();
    assert_eq!(site.exec("user", "cat /kept").await, "1\n");
    site.world.berth(&["create", "new", "--image", renamed.trim_end(), "--wait"]).await.succeeded();
    assert_eq!(site.exec("new", "cat /kept").await, "1\n");

    // The former name is free, and no name is taken away from another.
    site.docker.push(site.base.reference(), "admin/train:1").await.succeeded();
    let (_, said) = site.world.berth(&["image", "mv", "tools:2", "train:1"]).await.ended(1);
    assert!(said.contains("train:1"), "{said}");
    let (_, said) = site.world.berth(&["image", "mv", "tools:2", "Tools:1"]).await.ended(1);
    assert!(said.contains("is not an image reference"), "{said}");
}

#[tokio::test]
async fn a_long_line_of_images_from_images_has_few_layers_and_all_that_was_ever_in_it() {
    let setup = Setup { config: "image_layers_max = 4\n".to_owned(), ..Setup::default() };
    let site = Site::start_as(Registry::start().await, setup).await;
    site.instance("first").await;
    site.exec("first", "mkdir /d; echo 0 > /d/0; echo 0 > /d/gone; chmod 4711 /d/0").await;
    let mut image = site.save(&["first", "0"]).await;
    for round in 1..6 {
        let name = format!("next_{round}");
        site.world.berth(&["create", &name, "--image", &image.reference, "--wait"]).await.succeeded();
        site.exec(
            &name,
            &format!("echo {round} > /d/{round}; rm -f /d/gone; rm -rf /e; mkdir /e; touch /e/{round}"),
        )
        .await;
        site.save(&[&name, "1"]).await;
        // The next save of the same instance lies on the one before it.
        site.exec(&name, &format!("echo {round} >> /d/{round}")).await;
        image = site.save(&[&name, "2"]).await;
        assert!(saved(&image).layers <= 4, "{image:?}");
        site.world.berth(&["rm", &name, "--wait"]).await.succeeded();
    }
    let reference = site.pull(&image).await;
    let line = "stat -c %a /d/0; cat /d/*; ls /d /e";
    let seen = engine::docker(&["run", "--rm", "--entrypoint", "sh", &reference, "-c", line]);
    assert_eq!(seen, "4711\n0\n1\n1\n2\n2\n3\n3\n4\n4\n5\n5\n/d:\n0\n1\n2\n3\n4\n5\n\n/e:\n5");
    engine::docker(&["rmi", "--force", &reference]);
}

#[tokio::test]
async fn saves_without_a_name_never_have_the_same() {
    let site = Site::start().await;
    let client = site.world.client();
    site.instance("train").await;
    let mut names = Vec::new();
    // Several in a second, as far as the machine can.
    for _ in 0..4 {
        let image = client.save_instance("train", &SaveInstance::default()).await.or_fail("begin to save");
        assert_eq!(ended(&client, &image).await, ImageState::Ready);
        names.push(image.reference);
    }
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
}
