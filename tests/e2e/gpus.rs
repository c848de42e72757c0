//! Graphics processors, on a machine that has none: its library is `tests/nvml`, all else is real.

use std::path::PathBuf;

use gateway_api::{
    Instance, Status,
    job::{DryRun, EndCause, QueueReason, SubmitJob},
    node::Gpu,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tempfile::TempDir;
use tests::{
    IMAGE, LIMIT, OrFail as _, Setup, World, count, engine, nvml, wait_until, wait_until_agreed, wanted,
};

/// A world with cards; the directory holds their library.
async fn with_cards() -> (World, PathBuf, TempDir) {
    with_cards_and("").await
}

async fn with_cards_and(config: &str) -> (World, PathBuf, TempDir) {
    let directory = tempfile::tempdir().or_fail("make a directory");
    let library = nvml::library(directory.path());
    let setup = Setup { nvml: Some(library.clone()), config: config.to_owned(), ..Setup::default() };
    let world = World::start_with(setup).await;
    (world, library, directory)
}

async fn gpus(world: &World) -> Vec<Gpu> {
    world.client().gpus().await.or_fail("list the cards")
}

async fn instance(world: &World, name: &str) -> Instance {
    world.client().instance(name).await.or_fail("show an instance")
}

/// The cards that its processes are told of.
async fn visible(world: &World, name: &str) -> Vec<String> {
    let printed = world.berth(&["exec", name, "--", "printenv", "NVIDIA_VISIBLE_DEVICES"]).await.succeeded();
    printed.trim().split(',').map(str::to_owned).collect()
}

#[tokio::test]
async fn cards_are_given_whole_by_model_and_everyone_sees_who_has_them() {
    let (world, _, _directory) = with_cards().await;
    assert_eq!(gpus(&world).await.len(), nvml::CARDS);
    let create = ["create", "train", "-m", "128M", "--gpus", "2", "--gpu-type", "3090", "--wait"];
    world.berth(&create).await.succeeded();
    let cards = instance(&world, "train").await.cards;
    assert_eq!((cards.len(), visible(&world, "train").await), (2, cards.clone()));
    let labelled = engine::docker(&[
        "inspect",
        "--format",
        "{{index .Config.Labels \"berth.cards\"}}",
        &world.only_container(),
    ]);
    assert_eq!(labelled.trim(), cards.join(","));
    for gpu in gpus(&world).await {
        let holder = gpu.holder.map(|holder| (holder.user.to_string(), holder.name));
        let expected = cards.contains(&gpu.uuid).then(|| ("admin".to_owned(), "train".to_owned()));
        assert_eq!((gpu.held, holder), (expected.is_some(), expected), "{}", gpu.uuid);
    }
    let listed = world.berth(&["gpus"]).await.succeeded();
    assert!(
        listed.contains(nvml::MODELS[1]) && listed.contains("in use") && listed.contains("45 °C"),
        "{listed}"
    );

    // Five of one model are never there, two more of it are.
    let file = |gpus: u32, model: &str| {
        SubmitJob::new(format!(
            "berth: 1\nimage: {IMAGE}\ngpus: {gpus}\ngpu_model: {model}\nmemory: 128M\ncommand: 'true'\n"
        ))
    };
    let foresee = async |gpus, model| world.client().dry_run_job(&file(gpus, model)).await.or_fail("ask");
    assert_eq!(foresee(2, "rtx3090").await, DryRun::StartsNow);
    assert!(
        matches!(foresee(3, "3090").await, DryRun::Waits { queue } if queue.reason == QueueReason::NoRoom)
    );
    assert!(matches!(foresee(5, "3090").await, DryRun::Never { .. }));
    let refused = world.client().submit_job(&file(1, "h100")).await.err().or_fail("be refused");
    assert!(refused.to_string().contains("3090"), "it says what there is: {refused}");
}

#[tokio::test]
async fn an_instance_that_gets_other_cards_keeps_its_files() {
    let (world, _, _directory) = with_cards().await;
    let create = async |name: &str| {
        let create = ["create", name, "-m", "128M", "--gpus", "4", "--gpu-type", "P100", "--wait"];
        world.berth(&create).await.succeeded();
    };
    create("first").await;
    let cards = instance(&world, "first").await.cards;
    world.berth(&["exec", "first", "--", "sh", "-c", "echo precious > /root/kept"]).await.succeeded();
    world.berth(&["stop", "first", "--wait"]).await.succeeded();
    assert_eq!(instance(&world, "first").await.cards, [""; 0], "what is stopped has none");
    world.berth(&["start", "first", "--wait"]).await.succeeded();
    assert_eq!(visible(&world, "first").await, cards, "nobody has taken them meanwhile");
    world.berth(&["stop", "first", "--wait"]).await.succeeded();

    let other = ["create", "other", "-m", "128M", "--gpus", "1", "--gpu-type", "P100", "--wait"];
    world.berth(&other).await.succeeded();
    world.berth(&["start", "first"]).await.succeeded();
    let place = wait_until("it waits", LIMIT, async || instance(&world, "first").await.queue).await;
    assert_eq!(place.reason, QueueReason::NoRoom, "{place:?}");
    world.berth(&["rm", "first", "other", "--wait"]).await.succeeded();

    let one =
        |name: &'static str| ["create", name, "-m", "128M", "--gpus", "1", "--gpu-type", "P100", "--wait"];
    world.berth(&one("a")).await.succeeded();
    let had = visible(&world, "a").await;
    world.berth(&["exec", "a", "--", "sh", "-c", "echo precious > /root/kept"]).await.succeeded();
    world.berth(&["stop", "a", "--wait"]).await.succeeded();
    world.berth(&one("b")).await.succeeded();
    assert_eq!(visible(&world, "b").await, had, "the first free one");
    world.berth(&["start", "a", "--wait"]).await.succeeded();
    assert_ne!(visible(&world, "a").await, had);
    assert_eq!(world.berth(&["exec", "a", "--", "cat", "/root/kept"]).await.succeeded(), "precious\n");
    let id = instance(&world, "a").await.id;
    let image = engine::docker(&["inspect", "--format", "{{.Image}}", &format!("berth-{id}")]);
    let is_there = || engine::docker(&["images", "--all", "--quiet", "--no-trunc"]).contains(image.trim());
    assert!(is_there());
    world.berth(&["rm", "a", "b", "--wait"]).await.succeeded();
    wait_until("its own image is gone with it", LIMIT, async || (!is_there()).then_some(())).await;
}

#[tokio::test]
async fn a_card_that_does_not_answer_is_given_to_nobody() {
    let (world, library, _directory) = with_cards().await;
    nvml::lose(&library, &[0, 1, 2]);
    wait_until("three are lost", LIMIT, async || {
        let lost = gpus(&world).await.iter().filter(|gpu| !gpu.healthy).count();
        (lost == 3).then_some(())
    })
    .await;
    let one = ["create", "one", "-m", "128M", "--gpus", "1", "--gpu-type", "3090", "--wait"];
    world.berth(&one).await.succeeded();
    assert_eq!(visible(&world, "one").await, [gpus(&world).await[3].uuid.clone()]);
    nvml::lose(&library, &[]);
    wait_until("they are back", LIMIT, async || {
        gpus(&world).await.iter().all(|gpu| gpu.healthy).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_failed_job_frees_its_cards_and_is_opened_with_some_through_the_line() {
    let (world, _, _directory) = with_cards().await;
    let file = format!(
        "berth: 1\nname: debug\nimage: {IMAGE}\ngpus: 4\ngpu_model: P100\nmemory: 128M\nkeep_on_failure: true\n\
         command: echo precious > /root/left; exit 1\n"
    );
    let job = world.client().submit_job(&SubmitJob::new(file)).await.or_fail("submit a job");
    let over = world.client().wait_for_job(&job.id, LIMIT, gateway_api::Job::is_over).await;
    assert!(over.or_fail("wait for a job").or_fail("find it").kept_until.is_some());
    assert!(gpus(&world).await.iter().all(|gpu| !gpu.held), "what has ended holds no card");

    let other = ["create", "other", "-m", "128M", "--gpus", "4", "--gpu-type", "P100", "--wait"];
    world.berth(&other).await.succeeded();
    world.berth(&["start", "debug/main/0", "--gpus", "1"]).await.succeeded();
    let place = wait_until("it waits", LIMIT, async || instance(&world, "debug/main/0").await.queue).await;
    assert_eq!(place.reason, QueueReason::NoRoom, "{place:?}");
    world.berth(&["rm", "other", "--wait"]).await.succeeded();
    let opened = wait_until("it is open", LIMIT, async || {
        let task = instance(&world, "debug/main/0").await;
        matches!(task.status, Status::Running { .. }).then_some(task)
    })
    .await;
    assert_eq!(visible(&world, "debug/main/0").await, opened.cards);
    let left = world.berth(&["exec", "debug/main/0", "--", "cat", "/root/left"]).await.succeeded();
    assert_eq!((left.as_str(), opened.cards.len()), ("precious\n", 1));
}

#[tokio::test]
async fn a_machine_without_cards_is_a_machine() {
    let world = World::start().await;
    assert_eq!(gpus(&world).await, []);
    world.berth(&["gpus"]).await.succeeded();
    let refused =
        world.client().create_instance(&gateway_api::CreateInstance { gpus: 1, ..wanted("a1") }).await;
    assert_eq!(refused.err().and_then(|error| error.code()), Some(gateway_api::Code::TooLarge));
}

/// Each job makes a directory for each of its cards, which fails if it is there, and removes it in the end.
#[tokio::test]
async fn no_card_is_given_twice_or_lost_while_everything_is_killed() {
    let (all, kills) = (count("BERTH_GPU_JOBS", 20), count("BERTH_GPU_KILLS", 1));
    let (mut world, _, _directory) = with_cards().await;
    let home = world.data().join("home/admin");
    let mut random = StdRng::seed_from_u64(7);
    let models = ["", "gpu_model: 3090\n", "gpu_model: P100\n"];
    let file = |gpus: u32, model: &str| {
        let script = "for card in $(echo $NVIDIA_VISIBLE_DEVICES | tr , ' '); do mkdir /userhome/$card || \
                      echo $card >> /userhome/twice; done; sleep 0.2; \
                      for card in $(echo $NVIDIA_VISIBLE_DEVICES | tr , ' '); do rmdir /userhome/$card; done";
        format!(
            "berth: 1\nimage: {IMAGE}\ngpus: {gpus}\n{model}cpus: 0.5\nmemory: 100M\nretries: 0\ncommand: \"{script}\"\n"
        )
    };
    let wanted: Vec<_> = (0..all)
        .map(|_| {
            let model = models[random.random_range(0..models.len())];
            SubmitJob::new(file(random.random_range(1..=3), model))
        })
        .collect();
    let client = world.client();
    let submitted = futures_util::future::join_all(wanted.iter().map(|job| client.submit_job(job))).await;
    for job in submitted {
        job.or_fail("submit a job");
    }
    let over = async |world: &World| {
        let jobs = world.client().jobs(false).await.or_fail("list the jobs");
        jobs.iter().filter(|job| job.is_over()).count()
    };
    for kill in 1..=kills {
        let enough = kill * all / (kills + 2);
        wait_until("some have ended", 5 * LIMIT, async || (over(&world).await >= enough).then_some(())).await;
        world.kill_gateway();
        if kill % 2 == 1 {
            world.kill_envd();
            world.start_envd().await;
        }
        world.start_gateway().await;
        world.wait_for_cluster().await;
    }
    wait_until_agreed("all have ended", 10 * LIMIT, async || {
        let over = over(&world).await;
        if over == all { Ok(()) } else { Err(format!("{over} of {all}")) }
    })
    .await;
    for job in world.client().jobs(false).await.or_fail("list the jobs") {
        assert_eq!(job.status, Status::Succeeded, "{:?}", job.ended);
        assert_eq!(job.attempt, 1);
    }
    assert_eq!(std::fs::read_to_string(home.join("twice")).unwrap_or_default(), "", "given twice");
    wait_until("all cards are free", LIMIT, async || {
        gpus(&world).await.iter().all(|gpu| !gpu.held).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_job_that_leaves_its_cards_idle_ends_where_the_site_wants_that() {
    let (world, _, _directory) =
        with_cards_and("[gateway.jobs]\nidle_stop = '10s'\nidle_stop_batch = true\n").await;
    // The first card rests, the second never does.
    for name in ["rests", "works"] {
        let submit = [
            "submit",
            "--name",
            name,
            "-m",
            "128M",
            "--gpus",
            "1",
            "--gpu-type",
            "3090",
            "--",
            "sleep",
            "600",
        ];
        world.berth(&submit).await.succeeded();
    }
    super::jobs::until_running(&world, "works").await;
    let rests = super::jobs::job(&world, "rests").await;
    let ended = super::jobs::over(&world, &rests).await;
    assert_eq!(ended.ended.map(|end| end.cause), Some(EndCause::Idle));
    assert!(!super::jobs::job(&world, "works").await.is_over());
}

#[tokio::test]
async fn a_quota_of_one_model_leaves_the_others_alone() {
    let (world, _, _directory) = with_cards().await;
    let [limited, other] = nvml::MODELS;
    world.berth(&["quota", "set", "user", "admin", "--gpus-of", "3090=1", "--jobs", "8"]).await.succeeded();
    world.berth(&["quota", "set", "user", "admin", "--jobs", "none"]).await.succeeded();
    let submit = async |name: &str, model: &str| {
        let line = [
            "submit",
            "--name",
            name,
            "-m",
            "128M",
            "--gpus",
            "1",
            "--gpu-type",
            model,
            "--",
            "sleep",
            "600",
        ];
        world.berth(&line).await.succeeded();
    };
    submit("first", "3090").await;
    super::jobs::until_running(&world, "first").await;
    submit("second", "3090").await;
    submit("third", "P100").await;
    super::jobs::until_running(&world, "third").await;
    let place = wait_until("it waits", LIMIT, async || super::jobs::job(&world, "second").await.queue).await;
    assert_eq!(
        (place.reason, place.params["resource"].clone()),
        (QueueReason::Quota, format!("gpus of {limited}"))
    );
    let mine = world.berth(&["quota", "mine"]).await.succeeded();
    assert!(mine.contains(&format!("{limited}: 1 / 1, 1 waiting")), "{mine}");
    assert!(!mine.contains(other), "{mine}");
    world.berth(&["quota", "set", "user", "admin", "--gpus-of", "3090=2", "--for", "1h"]).await.succeeded();
    super::jobs::until_running(&world, "second").await;
    let mine = world.berth(&["quota", "mine"]).await.succeeded();
    assert!(mine.contains(&format!("{limited}: 2 / 2")) && mine.contains("RAISED UNTIL"), "{mine}");
}

#[tokio::test]
async fn who_holds_a_card_and_does_nothing_is_stopped() {
    let (world, _, _directory) = with_cards_and("[gateway.jobs]\nidle_stop = '10s'\n").await;
    // The first card rests, the second never does.
    let create = |name| ["create", name, "-m", "128M", "--gpus", "1", "--gpu-type", "3090"];
    world.berth(&create("rests")).await.succeeded();
    world.berth(&[&create("works")[..], &["--wait"]].concat()).await.succeeded();
    world.berth(&["create", "small", "-m", "128M", "--wait"]).await.succeeded();
    wait_until("the idle one is stopped", 2 * LIMIT, async || {
        matches!(instance(&world, "rests").await.status, Status::Stopped { .. }).then_some(())
    })
    .await;
    for name in ["works", "small"] {
        let Status::Running { .. } = instance(&world, name).await.status else {
            panic!("{name} was stopped")
        };
    }
    // What a failed task left is an instance like any other once it is opened.
    let keep = ["submit", "--name", "fails", "-m", "128M", "--gpus", "1", "--gpu-type", "3090"];
    world.berth(&[&keep[..], &["--keep-on-failure", "--wait", "--", "false"]].concat()).await.ended(1);
    world.berth(&["start", "fails/main/0", "--gpus", "1"]).await.succeeded();
    wait_until("what was opened is stopped", 2 * LIMIT, async || {
        matches!(instance(&world, "fails/main/0").await.status, Status::Stopped { .. }).then_some(())
    })
    .await;
    let why = world.berth(&["audit", "--json"]).await.succeeded();
    assert!(why.contains("\"cause\":\"idle\"") || why.contains("\"cause\": \"idle\""), "{why}");
}
