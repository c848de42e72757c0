//! Jobs in the store: what a start writes, and how long what a failed one left is kept.

use std::collections::BTreeMap;

use envd_api::control::InstanceSpec;
use gateway_api::{InstanceId, JobId, Slug, Status, instance::WaitReason, session::Role};
use jiff::{SignedDuration, Timestamp};

use super::{Held, JobRow, JobStart, Line, NewJob, NewTask, Store, tests};

/// A job `train` of one role, in the line.
async fn submitted(store: &Store) -> JobRow {
    tests::add(store, "root", Role::Admin).await.unwrap();
    let root = store.user_by_name(&"root".parse().unwrap()).await.unwrap().unwrap();
    let file = "berth: 1\nname: train\nimage: debian\ncommand: 'true'\n";
    let spec = jobfile::read(file.as_bytes(), &jobfile::Site::default()).spec.unwrap();
    let (id, slug) = (JobId::new(), Slug::of_job("train"));
    let status = Status::Waiting { reason: WaitReason::Queued, message: String::new() };
    let new = NewJob {
        id: &id,
        user: root.id,
        name: "train",
        slug: &slug,
        cluster: "default",
        file,
        spec: &spec,
        warnings: &[],
        status: &status,
        priority: 5,
        needs: &[],
    };
    store.add_job(new, &Line::by_system("job.submit", id.as_str())).await.unwrap();
    store.job(&id).await.unwrap().unwrap()
}

fn task(number: usize, slug: &Slug) -> NewTask {
    let spec: InstanceSpec = serde_json::from_value(serde_json::json!({
        "user": "root", "group": "default", "hostname": slug.as_str(), "image": "debian", "cpus": 1.0,
        "memory_bytes": 1 << 30, "shm_bytes": 1 << 20, "gpus": 0, "env": {}, "command": ["true"]
    }))
    .unwrap();
    let held = Held {
        node: "here".to_owned(),
        cpus_milli: 1000,
        memory_mib: 1024,
        cards: Vec::new(),
        model: None,
        sequence: 1,
    };
    NewTask {
        role: number,
        task: 0,
        instance: InstanceId::new(),
        slug: slug.clone(),
        spec,
        ports: BTreeMap::new(),
        held,
    }
}

/// Waiting would not help such a job, and it would hold its room for ever.
#[tokio::test]
async fn tasks_of_one_name_are_told_from_a_card_that_somebody_else_has() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.db")).await.unwrap();
    let job = submitted(&store).await;
    let slug = Slug::of_task(&job.slug, "worker", 0);
    let twice = [task(0, &slug), task(1, &slug)];
    let started = store.start_job(&job, &twice, &Status::Starting).await.unwrap();
    assert_eq!(started, JobStart::NameTaken(slug.to_string()));
    assert!(store.reservations().await.unwrap().is_empty(), "all of them or none");
}

#[tokio::test]
async fn what_a_failed_job_left_is_kept_until_its_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.db")).await.unwrap();
    let job = submitted(&store).await;
    let slug = Slug::of_task(&job.slug, "main", 0);
    let started = store.start_job(&job, &[task(0, &slug)], &Status::Starting).await.unwrap();
    assert_eq!(started, JobStart::Done);
    let now = Timestamp::now();
    let to_look_after = async || store.jobs_under_way().await.unwrap().len();
    for (hours, expected) in [(1, 0), (-1, 1)] {
        let row = store.job(&job.id).await.unwrap().unwrap();
        let kept_until = now.checked_add(SignedDuration::from_hours(hours)).ok();
        let over = JobRow { ended_at: Some(now), kept_until, ..row };
        assert!(store.change_job(&over, None, None).await.unwrap());
        assert_eq!(to_look_after().await, expected, "kept for {hours} hours");
    }
    store.delete_tasks(&job.id).await.unwrap();
    assert_eq!(to_look_after().await, 0, "what is gone is looked after no more");
}
