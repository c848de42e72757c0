//! Quotas: what users and groups may hold at a time, and what is said about it.

use std::time::Duration;

use gateway_api::{
    Code, CreateInstance, Job, Status,
    client::Client,
    job::{ChangeJob, DryRun, QueueReason, SubmitJob},
    people::ChangeUser,
    quota::{Quota, QuotaLimits, QuotaRaise},
};
use jiff::Timestamp;
use tests::{IMAGE, LIMIT, OrFail as _, Setup, World, wait_until, wanted};

fn file(name: &str, command: &str) -> SubmitJob {
    let file =
        format!("berth: 1\nname: {name}\nimage: {IMAGE}\ncpus: 0.5\nmemory: 100M\ncommand: {command}\n");
    SubmitJob::new(file)
}

fn jobs(most: u64) -> QuotaLimits {
    QuotaLimits { jobs: Some(most), ..QuotaLimits::default() }
}

async fn job(client: &Client, name: &str) -> Job {
    client.job(name).await.or_fail("show a job")
}

/// Why it waits, once it does.
async fn waits(client: &Client, name: &str) -> QueueReason {
    let place = wait_until(&format!("`{name}` waits"), LIMIT, async || job(client, name).await.queue).await;
    place.reason
}

async fn runs(client: &Client, name: &str) {
    wait_until(&format!("`{name}` runs"), LIMIT, async || {
        matches!(job(client, name).await.status, Status::Running { .. }).then_some(())
    })
    .await;
}

#[tokio::test]
async fn users_give_priorities_up_to_the_sites_own() {
    let config = "[gateway.jobs]\npriority_max = 4\n".to_owned();
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    let (admin, alice) = (world.client(), world.person("alice").await);
    let with = |name: &str, priority: u8| {
        let SubmitJob { file, .. } = file(name, "sleep 600");
        SubmitJob::new(format!("{file}priority: {priority}\n"))
    };
    let refused = alice.submit_job(&with("high", 5)).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::PriorityTooHigh), "{refused}");
    assert_eq!(alice.submit_job(&with("low", 4)).await.or_fail("submit a job").priority, 4);
    let plain = alice.submit_job(&file("plain", "sleep 600")).await.or_fail("submit a job");
    assert_eq!(plain.priority, 4, "what has none of its own has no more either");
    let raise = ChangeJob { priority: Some(9), ..ChangeJob::default() };
    let refused = alice.change_job("low", &raise).await.err().and_then(|error| error.code());
    assert_eq!(refused, Some(Code::PriorityTooHigh));
    assert_eq!(admin.change_job(plain.id.as_str(), &raise).await.or_fail("raise it").priority, 9);
    let path = world.data().join("job.yaml");
    std::fs::write(&path, with("mine", 9).file).or_fail("write a file");
    world.berth(&["submit", &path.display().to_string()]).await.succeeded();
}

/// Each counts itself in and out, and writes down when too many are in.
#[tokio::test]
async fn parallel_submissions_never_hold_more_than_the_quota() {
    const MOST: u64 = 3;
    let world = World::start().await;
    let quota = Quota { limits: jobs(MOST), raise: None };
    world.client().set_user_quota("admin", &quota).await.or_fail("set a quota");
    let count = format!(
        "\"mkdir -p /userhome/in/$HOSTNAME; [ $(ls /userhome/in | wc -l) -le {MOST} ] || touch /userhome/over; \
         sleep 0.5; rmdir /userhome/in/$HOSTNAME\""
    );
    let all = tests::count("BERTH_QUOTA_JOBS", 12);
    let wanted: Vec<_> = (0..all).map(|number| file(&format!("race{number}"), &count)).collect();
    let client = world.client();
    for submitted in futures_util::future::join_all(wanted.iter().map(|job| client.submit_job(job))).await {
        submitted.or_fail("submit a job");
    }
    wait_until("all have ended", 5 * LIMIT, async || {
        let jobs = client.jobs(false).await.or_fail("list the jobs");
        jobs.iter().all(Job::is_over).then_some(())
    })
    .await;
    for job in client.jobs(false).await.or_fail("list the jobs") {
        assert_eq!(job.status, Status::Succeeded, "{:?}", job.ended);
    }
    assert!(!world.data().join("home/admin/over").exists(), "more than {MOST} ran at once");
}

#[tokio::test]
async fn a_group_over_its_quota_waits_and_a_raise_lasts_until_it_ends() {
    let world = World::start().await;
    let admin = world.client();
    let alice = world.person("alice").await;
    admin.add_group("vision").await.or_fail("add a group");
    let change = ChangeUser { group: Some("vision".to_owned()), ..ChangeUser::default() };
    admin.change_user("alice", &change).await.or_fail("move a user");
    let quota = Quota { limits: jobs(1), raise: None };
    admin.set_group_quota("vision", &quota).await.or_fail("set a quota");

    for name in ["one", "two", "three"] {
        alice.submit_job(&file(name, "sleep 600")).await.or_fail("submit a job");
    }
    runs(&alice, "one").await;
    assert_eq!(waits(&alice, "two").await, QueueReason::Quota);
    let place = job(&alice, "two").await.queue.or_fail("see its place");
    let said = |name: &str| place.params.get(name).cloned().unwrap_or_default();
    assert_eq!((said("owner"), said("name"), said("limit")), ("group".into(), "vision".into(), "1".into()));
    assert!(matches!(
        alice.dry_run_job(&file("four", "'true'")).await.or_fail("ask"),
        DryRun::Waits { queue } if queue.reason == QueueReason::QuotaKept
    ));
    // Others are not held up by it.
    admin.submit_job(&file("mine", "sleep 600")).await.or_fail("submit a job");
    runs(&admin, "mine").await;

    let raise = async |lasts: Duration| {
        let until = Timestamp::now().checked_add(lasts).or_fail("add a time");
        let raised = Quota { raise: Some(QuotaRaise { until, limits: jobs(2) }), ..quota.clone() };
        admin.set_group_quota("vision", &raised).await.or_fail("raise a quota");
        until
    };
    raise(Duration::from_hours(1)).await;
    runs(&alice, "two").await;
    assert_eq!(waits(&alice, "three").await, QueueReason::Quota);
    let soon = raise(Duration::from_secs(1)).await;
    wait_until("the raise has ended", LIMIT, async || (Timestamp::now() > soon).then_some(())).await;
    // What runs goes on, and what waits waits for the quota of before.
    alice.stop_job("one").await.or_fail("stop a job");
    wait_until("it has ended", LIMIT, async || job(&alice, "one").await.is_over().then_some(())).await;
    let limit = wait_until("the quota is what it was", LIMIT, async || {
        let place = job(&alice, "three").await.queue?;
        (place.params.get("used")? == "1").then(|| place.params.get("limit").cloned())
    })
    .await;
    assert_eq!(limit.as_deref(), Some("1"));
    alice.stop_job("two").await.or_fail("stop a job");
    runs(&alice, "three").await;
}

#[tokio::test]
async fn a_user_over_the_own_quota_is_refused_where_the_site_wants_that() {
    let config = "[gateway.jobs]\nrefuse_over_quota = true\n".to_owned();
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    let (admin, alice) = (world.client(), world.person("alice").await);
    let limits = QuotaLimits { instances: Some(1), memory_bytes: Some(1 << 30), ..QuotaLimits::default() };
    admin.set_user_quota("alice", &Quota { limits, raise: None }).await.or_fail("set a quota");
    let refused = alice.set_user_quota("alice", &Quota::default()).await;
    assert_eq!(refused.err().and_then(|error| error.code()), Some(Code::Forbidden));

    let large = CreateInstance { memory_bytes: 2 << 30, ..wanted("large") };
    let refused = alice.create_instance(&large).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::OverQuota), "{refused}");
    assert!(refused.to_string().contains("1.0 GiB"), "{refused}");
    let foresee = async |wanted: &CreateInstance| alice.dry_run_instance(wanted).await.or_fail("ask");
    let never = foresee(&large).await;
    assert!(matches!(never, DryRun::Never { reason: QueueReason::QuotaTooSmall, .. }), "{never:?}");
    alice.create_instance(&wanted("one")).await.or_fail("create an instance");
    wait_until("it has its place", LIMIT, async || {
        let one = alice.instance("one").await.or_fail("show an instance");
        matches!(one.status, Status::Running { .. }).then_some(())
    })
    .await;
    let refused = alice.create_instance(&wanted("two")).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::OverQuota), "{refused}");
    assert_eq!(alice.instances().await.or_fail("list the instances").len(), 1, "nothing is queued");

    // What would become of it, without making it, is what becomes of it.
    let never = foresee(&wanted("two")).await;
    assert!(matches!(never, DryRun::Never { reason: QueueReason::Quota, .. }), "{never:?}");
    assert_eq!(admin.dry_run_instance(&wanted("a1")).await.or_fail("ask"), DryRun::StartsNow);
    let says = world.berth(&["create", "a1", "-m", "128M", "--dry-run"]).await.succeeded();
    assert_eq!(
        (says.as_str(), world.berth(&["ls", "-q"]).await.succeeded().as_str()),
        ("it would start now\n", "")
    );
}
