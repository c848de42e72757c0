//! What is said of a job from its submission on, and what its tasks wrote.

use std::process::Stdio;

use futures_util::StreamExt as _;
use gateway_api::{
    client::{LogPart, ProcessEvent},
    job::JobEvent,
};
use jiff::Timestamp;
use tests::{IMAGE, LIMIT, OrFail as _, World, count, wait_until};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::jobs::{job, run, submit, until_running, v1};

/// How large the log is whose reading is watched.
fn large_mib() -> u64 {
    count("BERTH_LOG_MIB", 256) as u64
}

/// Follows a job with `berth logs -f`, and ends the job before it once `berth` says `stage`. Returns standard output and
/// standard error.
async fn follow(world: &World, name: &str, stage: &str) -> (String, String) {
    let mut command = tokio::process::Command::from(world.program("berth"));
    command.args(["logs", name, "-f"]).env("BERTH_LANG", "en");
    command.env("BERTH_URL", world.console()).env("BERTH_TOKEN", world.token());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut berth = command.spawn().or_fail("follow a log");
    let mut lines = BufReader::new(berth.stderr.take().or_fail("take its words")).lines();
    let hear = async {
        let mut said = String::new();
        while let Some(line) = lines.next_line().await.or_fail("read what it says") {
            if line.contains(stage) {
                std::fs::write(world.data().join("home/admin/go"), "").or_fail("let it go");
            }
            said += &line;
            said.push('\n');
        }
        said
    };
    let both = async { tokio::join!(hear, berth.wait_with_output()) };
    let (said, output) = tokio::time::timeout(2 * LIMIT, both).await.or_fail("hear a log out");
    (String::from_utf8_lossy(&output.or_fail("read a log").stdout).into_owned(), said)
}

#[tokio::test]
async fn who_follows_a_job_that_waits_sees_every_stage_and_then_its_output() {
    let world = World::start().await;
    let node = world.client().nodes().await.or_fail("list the nodes").remove(0);
    let most = format!("\"memoryMB\": {}", (node.memory_bytes >> 20) * 6 / 10);
    let large = |name: &str, command: &str| v1(name, "", command).replace("\"memoryMB\": 128", &most);
    submit(&world, large("first", "until [ -e /userhome/go ]; do sleep 0.1; done")).await;
    until_running(&world, "first").await;
    submit(&world, large("second", "echo at last")).await;
    wait_until("it waits", LIMIT, async || job(&world, "second").await.queue).await;
    let (written, said) = follow(&world, "second", "number 1 in the line").await;
    assert_eq!(written, "at last\n");
    for stage in ["submitted", "number 1 in the line", "succeeded"] {
        assert!(said.contains(stage), "{stage}: {said}");
    }
    let events = world.client().job_events("second").await.or_fail("see what happened");
    // A stage that takes no time may be missing.
    let words = events.iter().filter_map(|happened| match happened.event {
        JobEvent::Submitted {} => Some("submitted"),
        JobEvent::Started { .. } => Some("started"),
        JobEvent::Pulling {} | JobEvent::Creating {} => None,
        JobEvent::Begun {} => Some("begun"),
        JobEvent::Ended { .. } => Some("ended"),
        JobEvent::Retried { .. } | JobEvent::Changed { .. } | JobEvent::StopAsked { .. } => Some("another"),
    });
    assert_eq!(words.collect::<Vec<_>>(), ["submitted", "started", "begun", "ended"]);
}

#[tokio::test]
async fn each_try_has_a_log_of_its_own_and_a_failure_says_what_came_last() {
    let world = World::start().await;
    let script = "echo run >> /userhome/runs; echo try $(wc -l < /userhome/runs); printf '\\033[31moh no\\033[0m\\n'; exit 5";
    let ended = run(&world, v1("tries", r#""retryCount": 1,"#, script)).await;
    assert_eq!(ended.attempt, 2);
    for attempt in ["1", "2"] {
        let logs = world.berth(&["logs", "tries", "--attempt", attempt, "--grep", "try"]).await.succeeded();
        assert_eq!(logs, format!("try {attempt}\n"));
    }
    let colours = world.berth(&["logs", "tries"]).await.succeeded();
    assert!(colours.ends_with("\u{1b}[31moh no\u{1b}[0m\n"), "{colours:?}");
    let end = ended.ended.or_fail("see how it ended");
    assert_eq!(end.last_lines, ["try 2", "oh no"]);
    let shown = world.berth(&["show", "tries"]).await.succeeded();
    assert!(shown.contains("try 2"), "{shown}");
    let events = world.client().job_events("tries").await.or_fail("see what happened");
    assert!(
        events
            .iter()
            .any(|event| matches!(&event.event, JobEvent::Retried { end } if !end.last_lines.is_empty()))
    );
}

/// Logs know times to the second.
async fn next_second() -> Timestamp {
    let begun = Timestamp::now().as_second();
    wait_until("another second has begun", LIMIT, async || {
        Some(Timestamp::now()).filter(|now| now.as_second() > begun)
    })
    .await
}

#[tokio::test]
async fn the_log_of_an_instance_is_searched_and_read_from_a_time_on() {
    let world = World::start().await;
    let script = "echo old needle; until [ -e /userhome/go ]; do sleep 0.1; done; echo new needle; echo hay; sleep 600";
    let create = ["create", "a1", "--image", IMAGE, "-m", "128M", "--wait", "--", "sh", "-c", script];
    world.berth(&create).await.succeeded();
    let logs = async |more: &[&str]| world.berth(&[&["logs", "a1"], more].concat()).await.succeeded();
    wait_until("it has begun", LIMIT, async || (logs(&[]).await == "old needle\n").then_some(())).await;
    let since = next_second().await.to_string();
    std::fs::write(world.data().join("home/admin/go"), "").or_fail("let it go on");
    wait_until("it has written", LIMIT, async || logs(&[]).await.ends_with("hay\n").then_some(())).await;
    assert_eq!(logs(&["--grep", "needle"]).await, "old needle\nnew needle\n");
    assert_eq!(logs(&["--since", &since]).await, "new needle\nhay\n");
    assert_eq!(logs(&["--since", &since, "--grep", "needle"]).await, "new needle\n");
}

#[tokio::test]
async fn the_log_of_a_job_is_followed_by_whole_lines_and_read_from_a_time_on() {
    /// The engine hands longer lines over in pieces of this.
    const PIECE: usize = 16 << 10;
    let world = World::start().await;
    let script = format!(
        "echo first needle; printf '%0{PIECE}d' 0; until [ -e /userhome/go ]; do sleep 0.1; done; \
         echo needle; echo hay"
    );
    submit(&world, v1("pieces", "", &script)).await;
    wait_until("half a line is there", LIMIT, async || {
        world.berth(&["logs", "pieces"]).await.stdout.ends_with('0').then_some(())
    })
    .await;
    let since = next_second().await;
    let part = LogPart { grep: Some("needle".to_owned()), ..LogPart::default() };
    let mut output = world.client().follow_job_logs("pieces", &part).await.or_fail("follow the log").output;
    let mut shown = String::new();
    while let Some(event) = output.next().await {
        let ProcessEvent::Output { bytes, .. } = event.or_fail("read the log") else { continue };
        if shown.is_empty() {
            std::fs::write(world.data().join("home/admin/go"), "").or_fail("let it go on");
        }
        shown += &String::from_utf8_lossy(&bytes);
    }
    let zeros = "0".repeat(PIECE);
    assert_eq!(shown, format!("first needle\n{zeros}needle\n"), "a line counts once it is whole");
    let part = LogPart { since: Some(since), ..LogPart::default() };
    let later = world.client().job_logs("pieces", &part).await.or_fail("read what came since");
    assert_eq!(text(later).await, "needle\nhay\n");
}

#[tokio::test]
async fn a_large_log_is_never_in_memory() {
    let world = World::start().await;
    let ended = run(&world, v1("large", "", "echo begin")).await;
    let mut logs = std::fs::read_dir(world.data().join("logs/tasks")).or_fail("find the logs");
    let path = logs.find_map(|file| {
        let path = file.ok()?.path();
        (path.extension()? == "log").then_some(path)
    });
    let file =
        std::fs::OpenOptions::new().append(true).open(path.or_fail("find the log")).or_fail("open the log");
    let bytes = large_mib() << 20;
    file.set_len(bytes).or_fail("make it large");
    std::io::Write::write_all(&mut &file, b"\nthe needle\n").or_fail("write its last line");

    let before = world.gateway_memory_bytes();
    let mut most = before;
    let mut pieces = world.client().job_logs(ended.id.as_str(), &LogPart::default()).await.or_fail("read it");
    let mut read = 0;
    while let Some(piece) = pieces.next().await {
        read += piece.or_fail("read on").len() as u64;
        most = most.max(world.gateway_memory_bytes());
    }
    assert_eq!(read, bytes + 12, "all of it is there");
    let search = LogPart { grep: Some("needle".to_owned()), ..LogPart::default() };
    let mut found = world.client().job_logs(ended.id.as_str(), &search).await.or_fail("search it");
    let mut text = Vec::new();
    while let Some(piece) = found.next().await {
        text.extend(piece.or_fail("search on"));
        most = most.max(world.gateway_memory_bytes());
    }
    assert!(text.ends_with(b"the needle\n"));
    assert!(most < before + (64 << 20), "{before} bytes became {most}");
}

#[tokio::test]
async fn lines_of_a_long_log_are_read_by_their_numbers() {
    let world = World::start().await;
    let script = "seq 1 20000";
    let create = [
        "create",
        "a1",
        "--image",
        IMAGE,
        "-m",
        "128M",
        "--wait",
        "--",
        "sh",
        "-c",
        "seq 1 20000; sleep 600",
    ];
    world.berth(&create).await.succeeded();
    run(&world, v1("count", "", script)).await;
    let client = world.client();
    let read = async |from: u64, lines: u64| {
        let part = LogPart { from: Some(from), lines: Some(lines), ..LogPart::default() };
        let job = text(client.job_logs("count", &part).await.or_fail("read the job's log")).await;
        let instance = text(client.logs("a1", &part).await.or_fail("read the instance's log")).await;
        (job, instance)
    };
    wait_until("it has written", LIMIT, async || {
        let tail = LogPart { tail: Some(1), ..LogPart::default() };
        (text(client.logs("a1", &tail).await.ok()?).await == "20000\n").then_some(())
    })
    .await;
    for (from, lines, expected) in [
        (1, 2, "1\n2\n"),
        (12_345, 3, "12345\n12346\n12347\n"),
        (20_000, 9, "20000\n"),
        (30_000, 2, "19999\n20000\n"),
    ] {
        assert_eq!(read(from, lines).await, (expected.to_owned(), expected.to_owned()), "from {from}");
    }
}

async fn text<B: AsRef<[u8]>>(
    mut pieces: impl futures_util::Stream<Item = Result<B, gateway_api::client::ClientError>> + Unpin,
) -> String {
    let mut text = Vec::new();
    while let Some(piece) = pieces.next().await {
        text.extend_from_slice(piece.or_fail("read on").as_ref());
    }
    String::from_utf8(text).or_fail("read text")
}
