//! Much at once through the SSH door.

use std::process::Command;

use tests::{IMAGE, Laptop, OrFail as _, Talk, World, count};

async fn world() -> World {
    let world = World::start().await;
    let size = ["--cpus", "2", "--memory", "4G"];
    let mut create = vec!["create", "train", "--image", IMAGE, "--wait"];
    create.extend(size);
    world.berth(&create).await.succeeded();
    world
}

#[tokio::test]
async fn many_sessions_at_once() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let sessions = count("BERTH_SSH_SESSIONS", 100).to_string();
    laptop.python("many_sessions.py", &["train", &sessions]).await.succeeded();
}

/// Under one connection, as with `ControlMaster` or an editor: a program that does not read what it is sent holds up
/// nobody else, and what it was sent is not all in the gateway.
#[tokio::test]
async fn an_upload_that_is_stuck_leaves_the_others_alone() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let mut master = Talk::start(laptop.ssh_as("admin+train", &["-M", "-S", "control", "-tt"]));
    master.types("echo in-$((6*7))\r").await;
    master.shows("in-42").await;
    let before = world.gateway_memory_bytes();
    let shared = |command: &str| {
        let mut sh = Command::new("sh");
        let ssh = format!("{} -S {}", laptop.ssh_line(), laptop.path("control").display());
        sh.args(["-c", &format!("{command} | {ssh} {} \"$0\"", laptop.address("train"))]);
        sh
    };
    // More than all windows that others get meanwhile.
    let mut stuck = shared("head -c 4G /dev/zero");
    stuck.arg("echo up-$((1+1)); exec sleep infinity");
    let mut stuck = Talk::start(stuck);
    stuck.shows("up-2").await;
    // Many windows, beside a channel that has long stalled and would take all of them.
    let mebibytes = mebibytes();
    let mut sum = shared(&format!("head -c {mebibytes}M /dev/zero"));
    sum.arg("wc -c");
    assert_eq!(laptop.run(sum, b"").await.succeeded().trim(), (mebibytes << 20).to_string());
    master.types("echo in-$((7*7))\r").await;
    master.shows("in-49").await;
    let grown = world.gateway_memory_bytes().saturating_sub(before);
    assert!(grown < 96 << 20, "{} MiB are in the gateway", grown >> 20);
}

/// How much travels each way; `make test-long` sends ten times a gigabyte.
fn mebibytes() -> u64 {
    count("BERTH_SSH_MIB", 128) as u64
}

/// So much of it at a time, for the sake of the disk.
const PIECE_MEBIBYTES: u64 = 1024;

#[tokio::test]
async fn gigabytes_travel_whole_through_new_keys() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let mebibytes = mebibytes();
    let piece = mebibytes.min(PIECE_MEBIBYTES);
    // Not random, which would take longer than the way, and not the same twice.
    let make = format!(
        "openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 0 -in /dev/zero 2>/dev/null | head -c {piece}M > up; sha256sum < up > up.sum"
    );
    let mut sh = Command::new("sh");
    sh.args(["-c", &make]).current_dir(laptop.folder());
    laptop.run(sh, b"").await.succeeded();

    // New keys at least three times on the way, each way, all on one connection.
    let limit = format!("RekeyLimit={}M", mebibytes / 5);
    let log = laptop.path("log");
    let mut sftp = Command::new("sh");
    sftp.args(["-c", "exec \"$@\" 2>log", "sh", "sftp"]).current_dir(laptop.folder());
    // The first value of an option counts.
    sftp.args(["-o", "LogLevel=DEBUG1", "-o", &limit]).args(laptop.key_options());
    sftp.args(["-b", "-", "-P", &world.ssh_port().to_string()]).arg(laptop.address("train"));
    let there_and_back =
        "put up /userhome/up\nget /userhome/up down\n!sha256sum < down >> sums\nrm /userhome/up\n!rm down\n";
    let pieces = mebibytes.div_ceil(piece);
    let script = there_and_back.repeat(usize::try_from(pieces).or_fail("count the pieces"));
    laptop.run(sftp, script.as_bytes()).await.succeeded();
    let log = std::fs::read_to_string(log).or_fail("read the log");
    let rekeys = log.matches("SSH2_MSG_NEWKEYS received").count();
    assert!(rekeys > 6, "new keys {rekeys} times");
    let sums = std::fs::read_to_string(laptop.path("sums")).or_fail("read the sums");
    let sum = std::fs::read_to_string(laptop.path("up.sum")).or_fail("read a sum");
    assert_eq!(sums.lines().collect::<Vec<_>>(), vec![sum.trim_end(); usize::try_from(pieces).unwrap_or(0)]);
}

/// Files that are larger than 32 bits can say, of which most is empty.
#[tokio::test]
async fn the_far_end_of_a_large_file_is_reached() {
    const HOLE: u64 = 5 << 30;
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    laptop
        .ssh("train", &[&format!("truncate -s {HOLE} /tmp/big; echo far away >> /tmp/big")])
        .await
        .succeeded();
    for name in ["big", "mine"] {
        let file = std::fs::File::create(laptop.path(name)).or_fail("make a file");
        file.set_len(HOLE).or_fail("make a file larger");
    }
    let mut mine = std::fs::File::options().append(true).open(laptop.path("mine")).or_fail("open a file");
    std::io::Write::write_all(&mut mine, b"from far away\n").or_fail("write a file");
    laptop.ssh("train", &[&format!("truncate -s {HOLE} /tmp/mine")]).await.succeeded();
    let mut sftp = laptop.client("sftp");
    sftp.args(["-q", "-b", "-"]).arg(laptop.address("train"));
    laptop.run(sftp, b"reget /tmp/big big\nreput mine /tmp/mine\n").await.succeeded();
    let mut tail = Command::new("tail");
    tail.args(["-c", "9"]).arg(laptop.path("big"));
    assert_eq!(laptop.run(tail, b"").await.succeeded(), "far away\n");
    let there = laptop.ssh("train", &["stat -c %s /tmp/mine; tail -c 14 /tmp/mine"]).await.succeeded();
    assert_eq!(there, format!("{}\nfrom far away\n", HOLE + 14));
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
