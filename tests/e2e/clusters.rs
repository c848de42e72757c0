//! Several clusters behind one gateway, pools and shares.

use gateway_api::{
    Code, CreateInstance, Status,
    client::ClientError,
    instance::WaitReason,
    job::{DryRun, QueueReason, SubmitJob},
};
use tests::{IMAGE, LIMIT, OrFail as _, Setup, World, engine, nvml, wait_until, wanted};

const TWO: &str = "[[gateway.cluster]]\nname = \"default\"\n\
                   [[gateway.cluster]]\nname = \"annex\"\ndata = \"annex\"\n";

async fn status(world: &World, name: &str) -> Status {
    world.client().instance(name).await.or_fail("show an instance").status
}

async fn says(world: &World, name: &str, said: &str) {
    let printed = world.berth(&["exec", name, "--", "echo", said]).await.succeeded();
    assert_eq!(printed.trim(), said);
}

#[tokio::test]
async fn each_cluster_lives_and_goes_alone() {
    let setup = Setup { config: TWO.to_owned(), clusters: vec!["annex"], ..Setup::default() };
    let mut world = World::start_with(setup).await;
    world.berth(&["create", "here", "-m", "128M", "--wait"]).await.succeeded();
    world.berth(&["create", "there", "-m", "128M", "--cluster", "annex", "--wait"]).await.succeeded();
    // Each has its container where it was asked for, and its door leads there.
    assert_eq!(world.containers().len(), 1);
    assert_eq!(engine::containers(&world.cluster_in("annex")).len(), 1);
    says(&world, "here", "one").await;
    says(&world, "there", "two").await;
    let ran = world.berth(&["submit", "--name", "count", "--cluster", "annex", "--wait", "--", "true"]).await;
    ran.succeeded();
    assert_eq!(world.client().job("count").await.or_fail("show a job").cluster, "annex");
    a_file_names_its_cluster(&world).await;
    a_board_is_where_its_folder_is(&world).await;
    for command in ["ls", "nodes"] {
        let listed = world.berth(&[command]).await.succeeded();
        assert!(
            listed.contains("CLUSTER") && listed.contains("annex") && listed.contains("default"),
            "{listed}"
        );
    }
    nodes_have_this_machines_address(&world).await;
    let (_, said) = world.berth(&["create", "nowhere", "--cluster", "moon"]).await.ended(1);
    assert!(said.contains("no cluster `moon`") && said.contains("default, annex"), "{said}");

    // One goes: what is on the other goes on.
    world.stop_cluster("annex").await;
    let later = CreateInstance { cluster: Some("annex".to_owned()), ..wanted("later") };
    world.client().create_instance(&later).await.or_fail("create an instance");
    wait_until("what is to be on it says why it waits", LIMIT, async || {
        let away = |status| matches!(status, Status::Waiting { reason: WaitReason::ClusterUnreachable, .. });
        away(status(&world, "later").await).then_some(())
    })
    .await;
    wait_until("the cluster is unwell, and nothing else", LIMIT, async || {
        (world.unwell().await.or_fail("ask how it is") == ["cluster"]).then_some(())
    })
    .await;
    world.berth(&["restart", "here", "--wait"]).await.succeeded();
    world.berth(&["create", "another", "-m", "128M", "--wait"]).await.succeeded();
    says(&world, "here", "three").await;
    // It needs envd for nothing that it is doing already.
    says(&world, "there", "four").await;
    let foreseen = world.client().dry_run_instance(&later).await.or_fail("ask");
    assert!(
        matches!(&foreseen, DryRun::Waits { queue } if queue.reason == QueueReason::NotReady),
        "{foreseen:?}"
    );

    world.start_cluster("annex").await;
    wait_until("what waited for it runs", LIMIT, async || {
        matches!(status(&world, "later").await, Status::Running { .. }).then_some(())
    })
    .await;
    assert_eq!(engine::containers(&world.cluster_in("annex")).len(), 2);
}

/// A job's file and that of an instance may say where; who submits may say otherwise; what is not there is refused.
async fn a_file_names_its_cluster(world: &World) {
    let file = |name: &str, cluster: &str| {
        let path = world.data().join(format!("{name}.yaml"));
        let text = format!("berth: 1\nname: {name}\nimage: {IMAGE}\nmemory: 64M\ncluster: {cluster}\n");
        let command = if name.starts_with("work") { "interactive: true\n" } else { "command: 'true'\n" };
        std::fs::write(&path, text + command).or_fail("write a file");
        path.display().to_string()
    };
    let cluster = async |name| world.client().job(name).await.or_fail("show a job").cluster;
    world.berth(&["submit", &file("far", "annex")]).await.succeeded();
    assert_eq!(cluster("far").await, "annex");
    world.berth(&["submit", &file("near", "annex"), "--cluster", "default"]).await.succeeded();
    assert_eq!(cluster("near").await, "default");
    let (_, said) = world.berth(&["submit", &file("lost", "moon")]).await.ended(1);
    assert!(said.contains("`cluster` is `moon`") && said.contains("default, annex"), "{said}");
    world.berth(&["submit", &file("found", "moon"), "--cluster", "annex"]).await.succeeded();

    for (name, more, there) in [("work_1", None, "annex"), ("work_2", Some("default"), "default")] {
        let path = file(name, "annex");
        let mut line = vec!["shell", "--config-file", &path];
        line.extend(more.iter().flat_map(|cluster| ["--cluster", cluster]));
        line.extend(["--", "true"]);
        world.berth(&line).await.succeeded();
        assert_eq!(cluster(name).await, there);
        world.berth(&["rm", name, "--wait"]).await.succeeded();
    }
}

/// Storages are a cluster's own, so whoever shows a folder says on which one it is.
async fn a_board_is_where_its_folder_is(world: &World) {
    let ask = ["tensorboard", "/userhome/runs", "--cluster", "annex"];
    let name = world.berth(&ask).await.succeeded();
    let name = name.trim();
    let board = world.client().instance(name).await.or_fail("show an instance");
    assert_eq!(
        (board.cluster.as_str(), board.env["TENSORBOARD_LOGDIR"].as_str()),
        ("annex", "/userhome/runs")
    );
    world.berth(&["rm", name, "--wait"]).await.succeeded();
    let (_, said) = world.berth(&["tensorboard", "/userhome/runs", "--cluster", "moon"]).await.ended(1);
    assert!(said.contains("no cluster `moon`"), "{said}");
}

#[tokio::test]
async fn pools_keep_cards_for_their_kinds() {
    let directory = tempfile::tempdir().or_fail("make a directory");
    let config = "[[gateway.pool]]\nname = \"dev\"\ngpus = [\"P100\"]\nkinds = [\"instance\", \"debug\"]\n\
                  [[gateway.pool]]\nname = \"train\"\ngpus = [\"3090\"]\nkinds = [\"job\"]\n";
    let setup =
        Setup { config: config.to_owned(), nvml: Some(nvml::library(directory.path())), ..Setup::default() };
    let world = World::start_with(setup).await;
    let client = world.client();
    let with = |gpus: u32, model: Option<&str>, pool: Option<&str>| CreateInstance {
        gpus,
        gpu_model: model.map(str::to_owned),
        pool: pool.map(str::to_owned),
        ..wanted("work")
    };
    // Who names none gets what takes instances: the four of one model, and no more.
    client.create_instance(&with(4, None, None)).await.or_fail("create an instance");
    wait_until("it runs", LIMIT, async || {
        matches!(status(&world, "work").await, Status::Running { .. }).then_some(())
    })
    .await;
    for gpu in client.gpus().await.or_fail("list the cards") {
        let is_dev = gpu.model == nvml::MODELS[1];
        let pool = if is_dev { "dev" } else { "train" };
        assert_eq!((gpu.held, gpu.pools), (is_dev, vec![pool.to_owned()]), "{}", gpu.uuid);
    }
    let refused = client.create_instance(&with(5, None, None)).await.err().and_then(|error| error.code());
    assert_eq!(refused, Some(Code::TooLarge));
    for asked in [with(1, Some("3090"), None), with(0, None, Some("train"))] {
        let refused = client.create_instance(&asked).await.err().and_then(|error: ClientError| error.code());
        assert_eq!(refused, Some(Code::PoolTakesOthers));
    }
    let ask = ["create", "one", "--gpus", "1", "--gpu-type", "3090", "--dry-run"];
    let said = world.berth(&ask).await.succeeded();
    assert!(said.contains("be refused: pool `train` takes only jobs"), "{said}");
    let said = world.berth_in_chinese(&ask).await.succeeded();
    assert!(said.contains("资源池 `train` 只接受任务"), "{said}");
    let (_, said) = world.berth(&["create", "one", "--pool", "moon"]).await.ended(1);
    assert!(said.contains("no pool `moon`") && said.contains("dev, train"), "{said}");
    let listed = world.berth(&["nodes"]).await.succeeded();
    assert!(listed.contains("POOLS") && listed.contains("dev, train"), "{listed}");

    // Old files name a pool where others name a model.
    let submit = async |file: String| {
        let wanted = SubmitJob { file, ..SubmitJob::default() };
        client.dry_run_job(&wanted).await.or_fail("ask")
    };
    let determined = |key: &str, pool: &str| {
        format!(
            "environment:\n  image: {IMAGE}\nresources:\n  slots: 1\n  {key}: {pool}\nentrypoint: [\"true\"]\n"
        )
    };
    for (key, pool) in [("resource_pool", "train"), ("agent_label", "train"), ("agent_label", "RTX 3090")] {
        assert_eq!(submit(determined(key, pool)).await, DryRun::StartsNow, "{key}: {pool}");
    }
    let never = submit(determined("resource_pool", "dev")).await;
    assert!(matches!(&never, DryRun::Never { params, .. } if params["pool"] == "dev"), "{never:?}");

    // What is there to be worked in goes where instances go, and so does what old files call `debug`.
    client.delete_instance("work").await.or_fail("delete an instance");
    for (name, gpu_type, command) in
        [("look", "debug", "nvidia-smi; sleep 600"), ("work_in", "", "sleep infinity")]
    {
        let file = super::jobs::v1(name, &format!(r#""gpuType": "{gpu_type}","#), command);
        client
            .submit_job(&SubmitJob::new(file.replace(r#""gpuNumber": 0"#, r#""gpuNumber": 2"#)))
            .await
            .or_fail("submit a job");
        let task = super::jobs::until_running(&world, name).await.tasks.remove(0);
        let gpus = client.gpus().await.or_fail("list the cards");
        let mut its_own = gpus.iter().filter(|gpu| task.cards.contains(&gpu.uuid));
        assert!(task.cards.len() == 2 && its_own.all(|gpu| gpu.model == nvml::MODELS[1]), "{task:?}");
    }
}

#[tokio::test]
async fn a_share_is_a_limit_for_all_who_use_it() {
    let config = "[[gateway.share]]\nname = \"vision\"\ncpus = 1\n";
    let world = World::start_with(Setup { config: config.to_owned(), ..Setup::default() }).await;
    let alice = world.person("alice").await;
    let job = |name: &str, share: &str| SubmitJob {
        file: format!(
            r#"{{"jobName": "{name}", "image": "{IMAGE}", "virtualCluster": "{share}", "taskRoles": [
                {{"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 128, "command": "sleep 1000"}}]}}"#
        ),
        ..SubmitJob::default()
    };
    let client = world.client();
    client.submit_job(&job("first", "vision")).await.or_fail("submit a job");
    alice.submit_job(&job("second", "vision")).await.or_fail("submit a job");
    alice.submit_job(&job("other", "")).await.or_fail("submit a job");
    let place = wait_until("it waits for the share", LIMIT, async || {
        alice.job("second").await.or_fail("show a job").queue
    })
    .await;
    assert_eq!(
        (place.reason, place.params["owner"].as_str(), place.params["name"].as_str()),
        (QueueReason::Quota, "share", "vision")
    );
    wait_until("what is in no share of that kind runs", LIMIT, async || {
        let job = alice.job("other").await.or_fail("show a job");
        matches!(job.status, Status::Running { .. }).then_some(())
    })
    .await;
    for command in [&["quota", "mine"][..], &["nodes"]] {
        let shown = world.berth(command).await.succeeded();
        let row = shown.lines().find(|line| line.starts_with("vision")).or_fail("find the share");
        let cells: Vec<_> = row.split_whitespace().collect();
        assert_eq!(cells[1..4], ["1", "/", "1"], "{shown}");
        assert_eq!(cells[cells.len() - 2..], ["1", "1"], "one runs and one waits: {shown}");
    }
    let refused = client.submit_job(&job("third", "moon")).await.err().and_then(|error| error.code());
    assert_eq!(refused, Some(Code::BadJobFile));
    client.stop_job("first").await.or_fail("stop a job");
    wait_until("the next one runs", LIMIT, async || {
        let job = alice.job("second").await.or_fail("show a job");
        matches!(job.status, Status::Running { .. }).then_some(())
    })
    .await;
}

async fn nodes_have_this_machines_address(world: &World) {
    let routes = std::fs::read_to_string("/proc/net/route").or_fail("read the routes");
    let has_way_out = routes.lines().any(|line| line.split_whitespace().nth(1) == Some("00000000"));
    for node in world.client().nodes().await.or_fail("list nodes") {
        assert_eq!(node.address.is_some(), has_way_out, "{node:?}");
        if let Some(address) = node.address {
            std::net::TcpListener::bind((address, 0))
                .or_fail("listen at the address that is said to be ours");
        }
    }
}
