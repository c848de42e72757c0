//! An instance that is held still while its files are listed: that it goes on right after, and whatever happens.

use gateway_api::image::{Image, ImageState, SaveInstance};
use rustix::process::{Pid, Signal, kill_process};
use tests::OrFail as _;

use crate::saving::{Site, ended, state};

/// How often it is tried to come upon an instance that stands still.
const TRIES: usize = 20;

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
    let client = site.world.client();
    for _ in 0..TRIES {
        let image = client.save_instance("train", &SaveInstance::default()).await.or_fail("begin to save");
        let mut looks = 0;
        while looks % 100 != 99 || matches!(state(&client, &image).await, ImageState::Saving { .. }) {
            looks += 1;
            let holds =
                |(_, line): &(i32, Vec<String>)| line.first().is_some_and(|word| word == "hold-still");
            let Some((id, line)) = site.world.children_of_envd().into_iter().find(holds) else { continue };
            let helper = Pid::from_raw(id).or_fail("read a number");
            if kill_process(helper, Signal::STOP).is_err() {
                continue;
            }
            let frozen = Frozen { file: line[1].clone(), word: line[2].clone() };
            if frozen.is() {
                return (helper, frozen, image);
            }
            kill_process(helper, Signal::CONT).or_fail("let the helper go on");
        }
        assert_eq!(ended(&client, &image).await, ImageState::Ready);
    }
    panic!("the instance was never seen to stand still");
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

#[tokio::test]
async fn an_instance_goes_on_when_what_holds_it_still_is_killed() {
    let site = with_many_files().await;
    let (helper, frozen, image) = caught(&site).await;
    assert!(frozen.is());
    kill_process(helper, Signal::KILL).or_fail("kill the helper");
    assert_eq!(site.exec("train", "echo on").await, "on\n");
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
    assert_eq!(site.exec("train", "echo on").await, "on\n");
    assert_eq!(ended(&site.world.client(), &image).await, ImageState::Ready);
}

#[tokio::test]
async fn what_runs_in_an_instance_goes_on_while_the_image_is_written() {
    let site = Site::start().await;
    site.instance("train").await;
    let tick = "n=0; while :; do n=$((n + 1)); echo $n > /dev/shm/new; mv /dev/shm/new /dev/shm/ticks; done";
    site.exec("train", &format!("head -c 300000000 /dev/urandom > /large; ({tick}) > /dev/null 2>&1 &"))
        .await;
    let client = site.world.client();
    let image = client.save_instance("train", &SaveInstance::default()).await.or_fail("begin to save");
    let mut ticks = Vec::new();
    loop {
        let now = site.exec("train", "cat /dev/shm/ticks").await;
        // What was seen when the image was ready already says nothing of the save.
        if !matches!(state(&client, &image).await, ImageState::Saving { .. }) {
            break;
        }
        ticks.push(now.trim().parse::<u64>().or_fail("read a number"));
    }
    assert_eq!(ended(&client, &image).await, ImageState::Ready);
    assert!(ticks.first() < ticks.last(), "{ticks:?}");
}
