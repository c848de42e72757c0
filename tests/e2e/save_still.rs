//! A save freezes the instance while it lists the files. The instance runs during the rest, and whatever is killed.

use gateway_api::image::{Image, ImageState, SaveInstance};
use rustix::process::{Pid, Signal, kill_process};
use tests::{Fault, LIMIT, OrFail as _, Registry, wait_until};

use crate::saving::{Site, ended, state};

/// An instance with so many files that listing them takes a while.
async fn with_many_files() -> Site {
    let site = Site::start().await;
    site.instance("train").await;
    let many = "mkdir /many; n=0; while [ $n -lt 20000 ]; do : > /many/$n; n=$((n + 1)); done";
    site.exec("train", many).await;
    site
}

/// The program that holds the instance still, stopped while it does, and what freezes the instance. A save goes on
/// meanwhile.
async fn caught(site: &Site) -> (Pid, Frozen, Image) {
    // The freeze lasts milliseconds, so one save may not be enough to catch it.
    wait_until("the instance is seen to stand still", 5 * LIMIT, async || caught_in_a_save(site).await).await
}

async fn caught_in_a_save(site: &Site) -> Option<(Pid, Frozen, Image)> {
    let client = site.world.client();
    let image = client.save_instance("train", &SaveInstance::default()).await.or_fail("begin to save");
    let mut looks = 0;
    while looks % 100 != 99 || matches!(state(&client, &image).await, ImageState::Saving { .. }) {
        looks += 1;
        let holds = |(_, line): &(i32, Vec<String>)| line.first().is_some_and(|word| word == "hold-still");
        let Some((id, line)) = site.world.children_of_envd().into_iter().find(holds) else { continue };
        let helper = Pid::from_raw(id).or_fail("read a number");
        if kill_process(helper, Signal::STOP).is_err() {
            continue;
        }
        let frozen = Frozen { file: line[1].clone(), word: line[2].clone() };
        if frozen.is() {
            return Some((helper, frozen, image));
        }
        kill_process(helper, Signal::CONT).or_fail("let the helper go on");
    }
    assert_eq!(ended(&client, &image).await, ImageState::Ready);
    None
}

/// What the kernel says of an instance.
struct Frozen {
    file: String,
    word: String,
}

impl Frozen {
    fn is(&self) -> bool {
        std::fs::read_to_string(&self.file).is_ok_and(|now| now.trim() == self.word)
    }
}

/// Waits until something runs in the instance.
async fn goes_on(site: &Site) {
    wait_until("the instance goes on", LIMIT, async || {
        let ran = site.world.berth(&["exec", "train", "--", "echo", "on"]).await;
        (ran.stdout == "on\n").then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_instance_goes_on_when_what_holds_it_still_is_killed() {
    let site = with_many_files().await;
    let (helper, frozen, image) = caught(&site).await;
    assert!(frozen.is());
    kill_process(helper, Signal::KILL).or_fail("kill the helper");
    goes_on(&site).await;
    assert_eq!(ended(&site.world.client(), &image).await, ImageState::Ready);
}

#[tokio::test]
async fn an_instance_goes_on_when_envd_is_killed_together_with_what_holds_it_still() {
    let mut site = with_many_files().await;
    let (helper, frozen, image) = caught(&site).await;
    site.world.kill_envd();
    kill_process(helper, Signal::KILL).or_fail("kill the helper");
    assert!(frozen.is(), "nobody is left to thaw it");
    site.world.start_envd().await;
    goes_on(&site).await;
    assert_eq!(ended(&site.world.client(), &image).await, ImageState::Ready);
}

/// The bench measures the length of the freeze: row `save-freeze`.
#[tokio::test]
async fn what_runs_in_an_instance_goes_on_while_it_is_saved() {
    let site = Site::start_on(Registry::start_with_faults().await).await;
    site.instance("train").await;
    let ticks = "(while :; do echo tick >> /userhome/ticks; sleep 0.05; done) > /dev/null 2>&1 &";
    site.exec("train", &format!("dd if=/dev/urandom of=/large bs=1M count=16; {ticks}")).await;
    let ticked =
        || std::fs::metadata(site.world.data().join("home/admin/ticks")).map_or(0, |file| file.len());
    let client = site.world.client();
    // The save goes on for as long as its layer is held back: at the beginning, and half way.
    for passes in [0, 8 << 20] {
        let held = site.registry.faults().held();
        site.registry.faults().all("PUT", Fault::Hold(passes));
        let image = client.save_instance("train", &SaveInstance::default()).await.or_fail("begin to save");
        wait_until("it is on its way", LIMIT, async || (site.registry.faults().held() > held).then_some(()))
            .await;
        let before = ticked();
        wait_until("the instance goes on", LIMIT, async || (ticked() > before + 50).then_some(())).await;
        let now = state(&client, &image).await;
        assert!(matches!(now, ImageState::Saving { .. }), "{now:?}");
        site.registry.faults().none();
        assert_eq!(ended(&client, &image).await, ImageState::Ready);
        // All of it is in the next layer again.
        site.exec("train", "dd if=/dev/urandom of=/large bs=1M count=16").await;
    }
}
