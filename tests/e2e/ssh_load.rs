//! Much at once through the SSH door.

use std::process::Command;

use tests::{IMAGE, Laptop, OrFail as _, World};

async fn world() -> World {
    let world = World::start().await;
    let size = ["--cpus", "2", "--memory", "4G"];
    let mut create = vec!["create", "train", "--image", IMAGE, "--wait"];
    create.extend(size);
    world.berth(&create).await.succeeded();
    world
}

#[tokio::test]
async fn five_hundred_sessions_at_once() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    laptop.python("many_sessions.py", &["train", "500"]).await.succeeded();
}

/// How much travels; `make test-long` sends ten times a gigabyte.
fn mebibytes() -> u64 {
    std::env::var("BERTH_SSH_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(256)
}

#[tokio::test]
async fn a_large_file_travels_whole_through_new_keys() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let mebibytes = mebibytes();
    // Not random, which would take longer than the way, and not the same twice.
    let make = format!(
        "openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 0 -in /dev/zero 2>/dev/null | head -c {mebibytes}M > up; sha256sum < up > up.sum"
    );
    let mut sh = Command::new("sh");
    sh.args(["-c", &make]).current_dir(laptop.folder());
    laptop.run(sh, b"").await.succeeded();

    // New keys at least three times on the way, each way.
    let limit = format!("RekeyLimit={}M", mebibytes / 5);
    let log = laptop.path("log");
    let mut sftp = Command::new("sh");
    sftp.args(["-c", "exec \"$@\" 2>log", "sh", "sftp"]).current_dir(laptop.folder());
    // The first value of an option counts.
    sftp.args(["-o", "LogLevel=DEBUG1", "-o", &limit]).args(laptop.key_options());
    sftp.args(["-b", "-", "-P", &world.ssh_port().to_string()]).arg(laptop.address("train"));
    laptop.run(sftp, b"put up /userhome/up\nget /userhome/up down\n").await.succeeded();
    let log = std::fs::read_to_string(log).or_fail("read the log");
    let rekeys = log.matches("SSH2_MSG_NEWKEYS received").count();
    assert!(rekeys > 6, "new keys {rekeys} times");
    let mut check = Command::new("sh");
    check.args(["-c", "sha256sum < down | cmp - up.sum && rm up down"]).current_dir(laptop.folder());
    laptop.run(check, b"").await.succeeded();
    let there = laptop.ssh("train", &["sha256sum < /userhome/up; rm /userhome/up"]).await.succeeded();
    let sum = std::fs::read_to_string(laptop.path("up.sum")).or_fail("read a sum");
    assert_eq!(there, sum);
}

/// New keys in the middle of what flows both ways, as often as a client can ask for them.
#[tokio::test]
async fn new_keys_in_the_middle_of_everything() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let input: Vec<u8> = "a line of text\n".repeat(700_000).into_bytes();
    for cipher in ["chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com", "aes256-ctr"] {
        let cipher = format!("Ciphers={cipher}");
        let options = ["-o", "RekeyLimit=256K", "-o", &cipher];
        let back = laptop.ssh_with("train", &options, &["cat"], &input).await.succeeded();
        assert!(back.as_bytes() == input, "{cipher}: {} of {} bytes", back.len(), input.len());
    }
}
