//! An instance that is held still while its files are listed: for how long, and that it goes on whatever happens.

use std::time::Instant;

use gateway_api::image::{Image, ImageState, SaveInstance};
use rustix::process::{Pid, Signal, kill_process};
use tests::OrFail as _;

use crate::saving::{Site, ended, saved, state};

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

/// Writes the longest time that it did not get to run, in milliseconds, into a file that is in no image.
const TICKER: &str = "import os, time
worst, last = 0, time.monotonic()
while True:
    time.sleep(0.001)
    now = time.monotonic()
    gap, last = now - last, now
    if not os.path.exists('/dev/shm/worst'):
        worst = 0
    if gap > worst:
        worst = gap
        with open('/dev/shm/new', 'w') as file:
            file.write(str(int(gap * 1000)))
        os.rename('/dev/shm/new', '/dev/shm/worst')";

/// What may be the share of an instance that stands still in the time of a save: how long that is in milliseconds depends
/// on the machine, and is measured by the bench.
const SHARE: u64 = 10;

#[tokio::test]
async fn what_runs_in_an_instance_stands_still_for_a_small_part_of_a_save() {
    let site = Site::start().await;
    // The default image has Python.
    site.world.berth(&["create", "train", "--memory", "512M", "--wait"]).await.succeeded();
    let many = "mkdir /many; n=0; while [ $n -lt 10000 ]; do : > /many/$n; n=$((n + 1)); done";
    let run = format!("{many}; cat > /tick.py <<'END'\n{TICKER}\nEND\npython3 /tick.py > /dev/null 2>&1 &");
    site.exec("train", &run).await;
    let (mut seen, mut said, mut took) = (Vec::new(), Vec::new(), Vec::new());
    for tag in ["1", "2", "3"] {
        site.exec("train", "head -c 300000000 /dev/urandom > /large").await;
        site.exec("train", "rm -f /dev/shm/worst; until [ -e /dev/shm/worst ]; do sleep 0.1; done").await;
        let begun = Instant::now();
        let image = site.save(&["train", tag]).await;
        took.push(u64::try_from(begun.elapsed().as_millis()).or_fail("read a number"));
        said.push(saved(&image).frozen_ms);
        let worst = site.exec("train", "cat /dev/shm/worst").await;
        seen.push(worst.trim().parse::<u64>().or_fail("read a number"));
    }
    let is_small = |(still, took): (&u64, &u64)| still * SHARE <= *took;
    let all = format!("it stood still for {seen:?} ms, and {said:?} are said, of {took:?}");
    // A busy machine makes anyone wait now and then, but not each time.
    assert!(seen.iter().zip(&took).any(is_small), "{all}");
    assert!(said.iter().zip(&took).all(is_small), "{all}");
}
