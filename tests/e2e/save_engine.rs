//! The engine is killed while an instance is saved: the save goes on by itself or says why not, and nothing is left of it.

use gateway_api::image::{Image, ImageState, SaveInstance};
use tests::{Fault, LIMIT, OrFail as _, Registry, Setup, engine, engine::PrivateEngine, wait_until};

use crate::saving::{Site, ended, saved, state};

/// When the engine is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// As soon as somebody has asked.
    Begun,
    /// While the layers are on their way.
    Pushing,
    /// When the image is whole and the engine is being told of it.
    Whole,
}

#[tokio::test]
async fn a_save_outlives_its_engine_or_says_why_not() {
    let mut engine = PrivateEngine::start().await;
    let base = engine.import_busybox("tiny");
    let setup = Setup { engine: Some(engine.socket()), ..Setup::default() };
    let site = Site::start_as(Registry::start_with_faults().await, setup).await;
    site.world.berth(&["create", "train", "--image", &base, "--wait"]).await.succeeded();
    site.exec("train", "busybox dd if=/dev/urandom of=/large bs=1M count=24").await;
    for moment in [Moment::Begun, Moment::Pushing, Moment::Whole] {
        site.exec("train", &format!("echo {moment:?} > /kept")).await;
        let image = kill_at(moment, &site, &mut engine).await;
        assert_eq!(saved(&image).state, ImageState::Ready, "{moment:?}");
        let reference = site.pull(&image).await;
        let kept = engine::docker(&["run", "--rm", "--entrypoint", "cat", &reference, "/kept"]);
        assert_eq!(kept, format!("{moment:?}"));
        engine::docker(&["rmi", "--force", &reference]);
    }
    let images = site.world.client().images().await.or_fail("list images");
    let listed = images.iter().filter_map(|image| image.saved.as_ref());
    assert_eq!(listed.map(|saved| saved.tag.as_str()).collect::<Vec<_>>(), ["whole", "pushing", "begun"]);
    wait_until("no journal is left", LIMIT, async || {
        let left = std::fs::read_dir(site.world.data().join("save")).or_fail("look at the journals");
        let mut left = left.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("img_"));
        left.next().is_none().then_some(())
    })
    .await;
    site.world.berth(&["rm", "train", "--wait"]).await.succeeded();
}

/// Saves, kills the engine at that moment and starts it again; the image as it then is. A save that failed has a reason,
/// is not to be had, and is tried again.
async fn kill_at(moment: Moment, site: &Site, engine: &mut PrivateEngine) -> Image {
    let (client, tag) = (site.world.client(), format!("{moment:?}").to_lowercase());
    let faults = site.registry.faults();
    let before = faults.done();
    if matches!(moment, Moment::Pushing) {
        faults.all("PUT", Fault::Hold(0));
    }
    let wish = SaveInstance { tag: Some(tag.clone()), ..SaveInstance::default() };
    let image = client.save_instance("train", &wish).await.or_fail("begin to save");
    match moment {
        Moment::Begun => {}
        Moment::Pushing => {
            wait_until("it is being sent", LIMIT, async || (faults.done() > before).then_some(())).await;
        }
        Moment::Whole => {
            let ready = async || (state(&client, &image).await == ImageState::Ready).then_some(());
            wait_until("it is whole", LIMIT, ready).await;
        }
    }
    engine.kill_daemon();
    faults.none();
    engine.start_daemon().await;
    site.world.wait_for_cluster().await;
    if let ImageState::Failed { message, .. } = ended(&client, &image).await {
        assert!(!message.is_empty(), "{moment:?}");
        let (_, said) = site.docker.pull(&format!("admin/train:{tag}")).await.ended(1);
        assert!(said.contains("nothing of that name"), "{said}");
        site.world.berth(&["image", "retry", &format!("train:{tag}"), "--wait"]).await.succeeded();
    }
    wait_until("the instance runs again", LIMIT, async || {
        let there = client.instance("train").await.or_fail("show an instance");
        (there.status.word() == "running").then_some(())
    })
    .await;
    client.image(saved(&image).id.as_str()).await.or_fail("show an image")
}
