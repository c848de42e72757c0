//! Many jobs in one line.

use gateway_api::{
    Code, Job, Status,
    job::{ChangeJob, JobEvent, SubmitJob},
};
use tests::{IMAGE, LIMIT, OrFail as _, World, count, wait_until, wait_until_agreed};

fn file(name: &str, more: &str, command: &str) -> SubmitJob {
    SubmitJob::new(format!(
        "berth: 1\nname: {name}\nimage: {IMAGE}\ncpus: 0.25\nmemory: 100M\n{more}command: \"{command}\"\n"
    ))
}

/// When its first try got its room.
async fn started(world: &World, name: &str) -> jiff::Timestamp {
    let events = world.client().job_events(name).await.or_fail("see what happened");
    let started = events.iter().find(|event| matches!(event.event, JobEvent::Started { .. }));
    started.or_fail("see when it started").at
}

#[tokio::test]
async fn jobs_start_in_the_order_of_their_submission() {
    let all = count("BERTH_QUEUE_JOBS", 20);
    let half = u32::try_from(all / 2).or_fail("count the jobs");
    let world = World::start().await;
    let client = world.client();
    for number in 0..all {
        client.submit_job(&file(&format!("job{number}"), "", "true")).await.or_fail("submit a job");
    }
    let page = client.job_page(false, None, half).await.or_fail("list some");
    assert_eq!((page.len(), &page[0].name), (all / 2, &format!("job{}", all - 1)));
    let next = client.job_page(false, page.last().map(|job| &job.id), half).await.or_fail("list more");
    let first = format!("job{}", all - 1 - all / 2);
    assert_eq!(next[0].name, first, "a page begins where the one before it ended");
    wait_until_agreed("all have ended", 20 * LIMIT, async || {
        let jobs = client.jobs(false).await.or_fail("list the jobs");
        let over = jobs.iter().filter(|job| job.is_over()).count();
        if over == all { Ok(()) } else { Err(format!("{over} of {all}")) }
    })
    .await;
    for job in client.jobs(false).await.or_fail("list the jobs") {
        assert_eq!(job.status, Status::Succeeded, "{:?}", job.ended);
    }
    let mut last = jiff::Timestamp::UNIX_EPOCH;
    for number in 0..all {
        let at = started(&world, &format!("job{number}")).await;
        assert!(at >= last, "job {number} came before the one before it");
        last = at;
    }
    wait_until("the containers are gone", LIMIT, async || world.containers().is_empty().then_some(())).await;
}

#[tokio::test]
async fn the_higher_priority_is_first_in_the_line() {
    let world = World::start().await;
    let node = world.client().nodes().await.or_fail("list the nodes").remove(0);
    let most = (node.memory_bytes >> 20) * 6 / 10;
    let large = |name: &str, priority: u8, command: &str| {
        let file = file(name, &format!("priority: {priority}\n"), command).file;
        SubmitJob::new(file.replace("memory: 100M", &format!("memory: {most}M")))
    };
    let client = world.client();
    let first = large("first", 5, "until [ -e /userhome/go ]; do sleep 0.1; done");
    client.submit_job(&first).await.or_fail("submit a job");
    wait_until("it runs", LIMIT, async || {
        let job = client.job("first").await.or_fail("show a job");
        matches!(job.status, Status::Running { .. }).then_some(())
    })
    .await;
    for priority in [1, 9, 5] {
        let name = format!("of{priority}");
        let command = format!("echo {priority} >> /userhome/order");
        client.submit_job(&large(&name, priority, &command)).await.or_fail("submit a job");
    }
    std::fs::write(world.data().join("home/admin/go"), "").or_fail("let them go");
    for name in ["of9", "of5", "of1"] {
        let id = client.job(name).await.or_fail("show a job").id;
        client.wait_for_job(&id, 2 * LIMIT, Job::is_over).await.or_fail("wait for a job");
    }
    let order = std::fs::read_to_string(world.data().join("home/admin/order")).or_fail("see the order");
    assert_eq!(order, "9\n5\n1\n");
}

#[tokio::test]
async fn only_an_admin_takes_back_what_somebody_in_the_line_was_told() {
    let world = World::start().await;
    let (client, alice) = (world.client(), world.person("alice").await);
    let node = client.nodes().await.or_fail("list the nodes").remove(0);
    let most = (node.memory_bytes >> 20) * 6 / 10;
    let large = |name: &str| {
        let file = file(name, "time_limit: 1h\n", "sleep 600").file;
        SubmitJob::new(file.replace("memory: 100M", &format!("memory: {most}M")))
    };
    let limit = |hours: u64| ChangeJob { time_limit_seconds: Some(hours * 3600), priority: None };
    let hers = alice.submit_job(&large("hers")).await.or_fail("submit a job");
    wait_until("it runs", LIMIT, async || {
        let job = alice.job("hers").await.or_fail("show a job");
        matches!(job.status, Status::Running { .. }).then_some(())
    })
    .await;
    alice.change_job("hers", &limit(2)).await.or_fail("lengthen what nobody waits for");
    client.submit_job(&large("next")).await.or_fail("submit a job");
    wait_until("the next is told when it starts", LIMIT, async || {
        client.job("next").await.or_fail("show a job").queue?.starts_by
    })
    .await;
    for longer in [limit(3), limit(0)] {
        let refused = alice.change_job("hers", &longer).await;
        assert_eq!(refused.err().and_then(|error| error.code()), Some(Code::Forbidden));
    }
    alice.change_job("hers", &limit(1)).await.or_fail("shorten it");
    client.change_job(hers.id.as_str(), &limit(3)).await.or_fail("lengthen it as an admin");
}
