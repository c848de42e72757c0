//! The room that images take: how much of it everybody has, and how it is given back.

use gateway_api::{
    Code,
    client::Client,
    image::SaveInstance,
    quota::{Quota, QuotaLimits},
};
use tests::{LIMIT, OrFail as _, engine::SignedIn, wait_until};

use crate::saving::{Site, ended, gone, saved};

fn room(bytes: u64) -> Quota {
    Quota { limits: QuotaLimits { image_bytes: Some(bytes), ..QuotaLimits::default() }, raise: None }
}

async fn used(client: &Client) -> u64 {
    client.own_quota().await.or_fail("read a quota").user.used.image_bytes
}

#[tokio::test]
async fn a_save_without_room_is_refused_before_any_work_and_two_at_once_get_no_more_than_there_is() {
    let site = Site::start().await;
    let client = site.world.client();
    for name in ["one", "two"] {
        site.instance(name).await;
        site.exec(name, "dd if=/dev/urandom of=/large bs=1M count=4").await;
    }
    let first = site.save(&["one", "1"]).await;
    let taken = used(&client).await;
    assert!(taken >= 4 << 20, "{taken}");
    client.set_user_quota("admin", &room(taken + (6 << 20))).await.or_fail("set a quota");
    site.exec("one", "dd if=/dev/urandom of=/larger bs=1M count=4").await;
    let wish = SaveInstance::default();
    let (one, two) = tokio::join!(client.save_instance("one", &wish), client.save_instance("two", &wish));
    let (begun, refused) = match (one, two) {
        (Ok(begun), Err(refused)) | (Err(refused), Ok(begun)) => (begun, refused),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused.code(), Some(Code::ImageQuota));
    assert!(refused.to_string().contains("one:1"), "it says what could go: {refused}");
    ended(&client, &begun).await;

    // What is given back can be taken again, by whoever was refused too.
    client.delete_image(saved(&begun).id.as_str()).await.or_fail("delete an image");
    gone(&client, &begun).await;
    assert_eq!(used(&client).await, taken);
    client.set_group_quota("default", &room(taken)).await.or_fail("set a quota");
    let (_, said) = site.world.berth(&["save", "two"]).await.ended(1);
    assert!(said.contains("the images of group `default`"), "{said}");
    client.set_group_quota("default", &Quota::default()).await.or_fail("set a quota");
    site.save(&["two", "1"]).await;
    client.delete_image(saved(&first).id.as_str()).await.or_fail("delete an image");
}

#[tokio::test]
async fn a_layer_counts_as_long_as_one_image_has_it() {
    let site = Site::start().await;
    let client = site.world.client();
    site.instance("train").await;
    site.exec("train", "dd if=/dev/urandom of=/large bs=1M count=4").await;
    let first = site.save(&["train", "1"]).await;
    let second = site.save(&["train", "2"]).await;
    let taken = used(&client).await;
    // Who manages the site sees whose it is, of users and of groups.
    let usage = client.usage(true, None, None).await.or_fail("sum up");
    let [held] = &usage[..] else { panic!("{usage:?}") };
    assert_eq!((held.user.as_str(), held.starts, held.image_bytes), ("admin", 1, taken));
    for by in ["user", "group"] {
        let printed = site.world.berth(&["usage", "--all", "--by", by]).await.succeeded();
        assert!(printed.contains("IMAGES") && printed.contains(" MiB"), "{printed}");
    }
    client.delete_image(saved(&first).id.as_str()).await.or_fail("delete an image");
    gone(&client, &first).await;
    assert!(used(&client).await > 4 << 20, "the second save lies on the first: {taken}");

    // And no longer: a save that lay on it would have it without room for it.
    client.delete_image(saved(&second).id.as_str()).await.or_fail("delete an image");
    gone(&client, &second).await;
    assert_eq!(used(&client).await, 0);
    client.set_user_quota("admin", &room(1 << 20)).await.or_fail("set a quota");
    let (_, said) = site.world.berth(&["save", "train"]).await.ended(1);
    assert!(said.contains("your images take"), "{said}");
}

#[tokio::test]
async fn a_push_ends_where_the_room_does_and_the_same_again_takes_none() {
    let site = Site::start().await;
    let (admin, bob) = (site.world.client(), site.world.person("bob").await);
    let wanted = gateway_api::token::AddToken {
        name: "docker".to_owned(),
        scope: gateway_api::token::Scope::All,
        days: None,
    };
    let token = bob.add_token(&wanted).await.or_fail("make a token").secret;
    let docker = SignedIn::to(&site.world, "bob", &token).await;
    admin.set_user_quota("bob", &room(100_000)).await.or_fail("set a quota");
    let (_, said) = docker.push(site.base.reference(), "bob/tools:1").await.ended(1);
    assert!(said.contains("your images take"), "{said}");
    assert!(used(&bob).await <= 100_000);
    let images = bob.images().await.or_fail("list images");
    assert!(images.iter().all(|image| image.saved.is_none()), "nothing half made is listed: {images:?}");

    admin.set_user_quota("bob", &room(10 << 20)).await.or_fail("set a quota");
    docker.push(site.base.reference(), "bob/tools:1").await.succeeded();
    let once = used(&bob).await;
    assert!(once > 100_000, "{once}");
    docker.push(site.base.reference(), "bob/tools:2").await.succeeded();
    docker.push(site.base.reference(), "bob/other:1").await.succeeded();
    assert_eq!(used(&bob).await, once);
    let first = bob.image("tools:1").await.or_fail("show an image");
    for name in ["tools:1", "tools:2", "other:1"] {
        bob.delete_image(name).await.or_fail("delete an image");
    }
    gone(&bob, &first).await;
    wait_until("nothing counts any more", LIMIT, async || (used(&bob).await == 0).then_some(())).await;
}

/// What the registry's files take.
fn on_disk(site: &Site) -> u64 {
    let mut folders = vec![site.registry.files().join("docker/registry/v2/blobs")];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).or_fail("read a folder").flatten() {
            let about = entry.metadata().or_fail("look at a file");
            if about.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += about.len();
            }
        }
    }
    bytes
}

#[tokio::test]
async fn the_room_of_images_that_are_gone_is_given_back_and_those_that_stay_are_whole() {
    let site = Site::start().await;
    let client = site.world.client();
    let gc = async |more: &[&str]| {
        let all: Vec<_> = ["image", "gc", "--older-than", "0s"].iter().chain(more).copied().collect();
        site.world.berth(&all).await.succeeded()
    };
    site.instance("train").await;
    site.exec("train", "dd if=/dev/urandom of=/large bs=1M count=4; echo 1 > /kept").await;
    let first = site.save(&["train", "1"]).await;
    site.exec("train", "echo 2 > /kept").await;
    let second = site.save(&["train", "2"]).await;
    site.world.berth(&["image", "mv", "train:2", "other:2"]).await.succeeded();
    site.instance("alone").await;
    site.exec("alone", "dd if=/dev/urandom of=/large bs=1M count=8").await;
    let alone = site.save(&["alone", "1"]).await;
    let before = on_disk(&site);
    for image in [&first, &alone] {
        client.delete_image(saved(image).id.as_str()).await.or_fail("delete an image");
        gone(&client, image).await;
    }
    let told = gc(&["--dry-run"]).await;
    assert!(told.contains("would go from the registry"), "{told}");
    assert_eq!(on_disk(&site), before, "nothing goes when it is only asked what would");
    gc(&[]).await;
    let after = on_disk(&site);
    assert!(before - after > 8 << 20 && after > 4 << 20, "{before} {after}");

    // The layer of the first is under the second, by whatever name.
    let second = client.image(saved(&second).id.as_str()).await.or_fail("show an image");
    let reference = site.pull(&second).await;
    let look = ["run", "--rm", "--entrypoint", "sh", &reference, "-c", "cat /kept; wc -c < /large"];
    assert_eq!(tests::engine::docker(&look), "2\n4194304");
    tests::engine::docker(&["rmi", "--force", &reference]);
    // What is not there any more is written again where it is wanted.
    let again = site.save(&["alone", "2"]).await;
    let reference = site.pull(&again).await;
    tests::engine::docker(&["rmi", "--force", &reference]);
    let bob = site.world.person("bob").await;
    let refused = bob.collect_images(&gateway_api::image::CollectImages::default()).await;
    assert_eq!(refused.err().or_fail("be refused").code(), Some(Code::Forbidden));
}
