//! Jobs: files and commands that run to their end, alone and together.

use gateway_api::{
    Job, Status,
    client::LogPart,
    job::{EndCause, QueueReason, SubmitJob},
};
use tests::{IMAGE, LIMIT, OrFail as _, World, wait_until};

/// Submits a file and waits for its end.
pub(super) async fn run(world: &World, file: String) -> Job {
    let job = submit(world, file).await;
    over(world, &job).await
}

pub(super) async fn submit(world: &World, file: String) -> Job {
    world.client().submit_job(&SubmitJob::new(file)).await.or_fail("submit a job")
}

pub(super) async fn over(world: &World, job: &Job) -> Job {
    let over = world.client().wait_for_job(&job.id, 2 * LIMIT, Job::is_over).await;
    over.or_fail("wait for a job").or_fail("find the job")
}

pub(super) async fn job(world: &World, name: &str) -> Job {
    world.client().job(name).await.or_fail("show a job")
}

pub(super) async fn until_running(world: &World, name: &str) -> Job {
    wait_until(&format!("`{name}` runs"), LIMIT, async || {
        let job = job(world, name).await;
        assert!(!job.is_over(), "{job:?}");
        matches!(job.status, Status::Running { .. }).then_some(job)
    })
    .await
}

/// What a file of the user's home holds.
pub(super) fn home(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.data().join("home/admin").join(file)).unwrap_or_default()
}

/// A job of OpenPAI's first kind, with one role.
pub(super) fn v1(name: &str, more: &str, command: &str) -> String {
    let command = serde_json::to_string(command).or_fail("quote a command");
    format!(
        r#"{{"jobName": "{name}", "image": "{IMAGE}", {more} "taskRoles": [
            {{"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 128, "gpuNumber": 0, "command": {command}}}]}}"#
    )
}

#[tokio::test]
async fn a_job_runs_to_its_end_and_its_exit_code_is_ours() {
    let world = World::start().await;
    let script = "echo the result; echo a warning >&2";
    let good = ["submit", "--name", "good", "-m", "128M", "--wait", "--", "sh", "-c", script];
    assert_eq!(world.berth(&good).await.succeeded(), "good\n", "only data goes to standard output");
    let bad = ["submit", "--name", "bad", "-m", "128M", "-f", "--", "sh", "-c", "echo before; exit 7"];
    let (written, said) = world.berth(&bad).await.ended(7);
    assert_eq!(written, "before\n");
    assert!(said.contains("exit code 7"), "{said}");

    let ended = job(&world, "bad").await;
    let end = ended.ended.or_fail("see how it ended");
    assert_eq!(
        (end.cause, end.exit_code, end.task.as_deref()),
        (EndCause::ExitCode, Some(7), Some("main/0"))
    );
    // Containers of jobs do not stay, what they wrote does.
    wait_until("the containers are gone", LIMIT, async || world.containers().is_empty().then_some(())).await;
    let logs = world.berth(&["logs", "good"]).await.succeeded();
    assert!(logs.contains("the result\n") && logs.contains("a warning\n"), "{logs}");
    assert_eq!(world.berth(&["logs", "good/main/0", "--grep", "result"]).await.succeeded(), "the result\n");
    let listed = world.berth(&["jobs"]).await.succeeded();
    assert!(listed.contains("good") && listed.contains("bad"), "{listed}");

    world.berth(&["rm", "good", "bad", "--wait"]).await.succeeded();
    assert_eq!(world.client().jobs(false).await.or_fail("list jobs"), []);
    wait_until("the logs of a deleted job are gone with it", LIMIT, async || {
        let kept = std::fs::read_dir(world.data().join("logs/tasks")).map_or(0, Iterator::count);
        (kept == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_file_is_kept_as_it_was_and_its_mistakes_are_all_told() {
    let world = World::start().await;
    let path = world.data().join("job.json");
    let file = v1(
        "hello-world-",
        r#""retryCount": 0, "extras": {"a": 1},"#,
        "echo $PAI_JOB_NAME $PAI_USER_NAME $PAI_TASK_ROLE_LIST",
    );
    std::fs::write(&path, &file).or_fail("write a file");
    let path = path.display().to_string();
    let written = world.berth(&["submit", &path, "-f"]).await.succeeded();
    assert_eq!(written, "hello-world- admin main\n");
    assert_eq!(world.berth(&["show", "hello-world-", "--file"]).await.succeeded(), file);

    let (_, said) = world.berth(&["submit", &path]).await.ended(1);
    assert!(said.contains("already a job named `hello-world-`"), "{said}");
    std::fs::write(
        &path,
        r#"{"jobName": "x y", "image": "", "taskRoles": [{"name": "a-b", "command": ""}]}"#,
    )
    .or_fail("write a file");
    let (_, said) = world.berth(&["submit", &path]).await.ended(1);
    for wrong in ["x y", "image", "a-b", "command"] {
        assert!(said.contains(wrong), "{wrong}: {said}");
    }
    let refused = world.client().submit_job(&SubmitJob::new("not a job")).await;
    assert_eq!(refused.err().and_then(|error| error.code()), Some(gateway_api::Code::BadJobFile));
    assert_eq!(world.client().jobs(false).await.or_fail("list jobs").len(), 1, "nothing is queued");
}

#[tokio::test]
async fn tasks_find_each_other_and_exchange_bytes() {
    let world = World::start().await;
    let server = "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalPort => \
                  $ENV{PAI_PORT_LIST_server_0_talk}, Listen => 5) or die; for (1..2) { $c = $s->accept; \
                  $_ = <$c>; print; print $c scalar reverse($_); close $c }'";
    let client = "perl -MIO::Socket::INET -e '$p = qq($ENV{PAI_HOST_IP_server_0}:$ENV{PAI_PORT_LIST_server_0_talk}); \
                  for (1..600) { last if $s = IO::Socket::INET->new($p); select undef, undef, undef, 0.1 } \
                  print $s qq($ENV{PAI_TASK_INDEX} of $ENV{PAI_TASK_ROLE_TASK_COUNT_client}\\n); print <$s>' && \
                  getent hosts pair-server-0 && sleep 600";
    let role = |name: &str, tasks: u32, more: &str, command: &str| {
        let command = serde_json::to_string(command).or_fail("quote a command");
        format!(
            r#"{{"name": "{name}", "taskNumber": {tasks}, "cpuNumber": 1, "memoryMB": 128, "gpuNumber": 0, {more}
                "command": {command}}}"#
        )
    };
    let ports =
        r#""portList": [{"label": "talk", "beginAt": 0, "portNumber": 1}], "minSucceededTaskCount": 1,"#;
    let roles = [role("server", 1, ports, server), role("client", 2, "", client)].join(", ");
    let ended =
        run(&world, format!(r#"{{"jobName": "pair", "image": "{IMAGE}", "taskRoles": [{roles}]}}"#)).await;
    assert_eq!(ended.status, Status::Succeeded, "{ended:?}");
    let logs = world.berth(&["logs", "pair/server/0"]).await.succeeded();
    let mut heard: Vec<_> = logs.lines().collect();
    heard.sort_unstable();
    assert_eq!(heard, ["0 of 2", "1 of 2"]);
    let address = ended.tasks[0].address.clone().or_fail("find the address");
    let answers = world.berth(&["logs", "pair/client/1"]).await.succeeded();
    assert!(answers.contains("2 fo 1") && answers.contains(&address), "{answers}");
    // One role was enough, and the others were stopped for it.
    let end = |task: &gateway_api::job::JobTask| task.end.clone().or_fail("see its end").cause;
    let others: Vec<_> = ended.tasks[1..].iter().map(end).collect();
    assert_eq!(others, [EndCause::Stopped, EndCause::Stopped]);
}

#[tokio::test]
async fn a_job_is_stopped_limited_changed_and_run_again() {
    let world = World::start().await;
    submit(&world, v1("long", "", "echo begun; sleep 600")).await;
    until_running(&world, "long").await;
    // A task is an instance like any other to its owner.
    assert_eq!(world.berth(&["exec", "long/main/0", "--", "hostname"]).await.succeeded(), "long-main-0\n");
    world.berth(&["stop", "long", "--wait"]).await.succeeded();
    let stopped = job(&world, "long").await;
    let end = stopped.ended.or_fail("see how it ended");
    assert_eq!((end.cause, end.by.as_deref()), (EndCause::Stopped, Some("admin")));

    let again = world.berth(&["rerun", "long"]).await.succeeded();
    assert_eq!(again, "long-2\n");
    until_running(&world, "long-2").await;
    world.berth(&["change", "long-2", "--time-limit", "1s"]).await.succeeded();
    let ended = over(&world, &job(&world, "long-2").await).await;
    assert_eq!(ended.ended.or_fail("see how it ended").cause, EndCause::TimeLimit);
    assert!(matches!(ended.status, Status::Stopped { .. }), "{:?}", ended.status);
}

#[tokio::test]
async fn an_admin_finds_and_stops_the_job_of_another() {
    let world = World::start().await;
    let alice = world.person("alice").await;
    let job = alice.submit_job(&SubmitJob::new(v1("hers", "", "sleep 600"))).await.or_fail("submit a job");
    let listed = world.berth(&["jobs", "--all"]).await.succeeded();
    assert!(listed.contains("alice") && listed.contains(job.id.as_str()), "{listed}");
    assert_eq!(world.berth(&["jobs", "-q"]).await.succeeded(), "", "it is not one's own");
    let id = world.berth(&["jobs", "--all", "-q"]).await.succeeded();
    world.berth(&["stop", id.trim(), "--wait"]).await.succeeded();
    let end = alice.job("hers").await.or_fail("show a job").ended.or_fail("see how it ended");
    assert_eq!((end.cause, end.by.as_deref()), (EndCause::Stopped, Some("admin")));
}

#[tokio::test]
async fn a_failure_is_tried_again_as_often_as_asked() {
    let world = World::start().await;
    let count = "echo run >> /userhome/runs; [ $(wc -l < /userhome/runs) -ge 3 ] || exit 9";
    let ended = run(&world, v1("retry", r#""retryCount": 5,"#, count)).await;
    assert_eq!((ended.status, ended.attempt), (Status::Succeeded, 3));
    assert_eq!(home(&world, "runs"), "run\nrun\nrun\n");
    let first = LogPart { attempt: Some(1), ..LogPart::default() };
    let written = world.client().job_logs("retry", &first).await.map(drop);
    written.or_fail("read the log of the first try");

    let memory = "echo run >> /userhome/hungry; tail -c 300m /dev/zero | sort > /dev/null";
    let ended = run(&world, v1("hungry", r#""retryCount": 5,"#, memory)).await;
    let end = ended.ended.or_fail("see how it ended");
    assert_eq!(
        (end.cause, ended.attempt),
        (EndCause::OutOfMemory, 1),
        "{end:?}: another try fails the same way"
    );
    assert_eq!(home(&world, "hungry"), "run\n");
}

/// OpenPAI's second format, with a role whose tasks count their runs below `/userhome`.
fn v2_tasks(name: &str, retries: &str, together: bool, command: &str) -> String {
    format!(
        "protocolVersion: 2
name: {name}
type: job
prerequisites: [{{type: dockerimage, name: image, uri: '{IMAGE}'}}]
taskRoles:
  main:
    instances: 2
    taskRetryCount: {retries}
    completion: {{minFailedInstances: 1, minSucceededInstances: 2}}
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 128, gpu: 0}}
    commands: ['echo $PAI_TASK_INDEX $PAI_CURRENT_CONTAINER_IP >> /userhome/{name}', '{command}']
extras: {{gangAllocation: {together}}}
"
    )
}

#[tokio::test]
async fn a_task_that_fails_is_tried_again_alone() {
    let world = World::start().await;
    let own_runs =
        |name: &str| format!("[ $(grep -c \"^$PAI_TASK_INDEX\" /userhome/{name}) -ge 3 ] || exit 9");
    let flaky = format!("[ $PAI_TASK_INDEX = 0 ] || {}", own_runs("alone"));
    let ended = run(&world, v2_tasks("alone", "3", false, &flaky)).await;
    assert_eq!((&ended.status, ended.attempt), (&Status::Succeeded, 1), "{:?}", ended.ended);
    let runs = home(&world, "alone");
    let of = |task: &str| runs.lines().filter(|line| line.starts_with(task)).collect::<Vec<_>>();
    assert_eq!((of("0").len(), of("1").len()), (1, 3), "{runs}");
    assert!(of("1").windows(2).all(|two| two[0] == two[1]), "it stays where the others know it: {runs}");
    let log = world.berth(&["logs", "alone/main/1"]).await.succeeded();
    assert!(log.contains("exit code 9 and is run again (1 of 3)"), "{log}");

    let ended = run(&world, v2_tasks("enough", "1", false, &own_runs("enough"))).await;
    let end = ended.ended.or_fail("see how it ended");
    assert_eq!((end.cause, end.exit_code, ended.attempt), (EndCause::ExitCode, Some(9), 1), "{end:?}");

    // Without end after any failure, but not after a stop.
    let job = submit(&world, v2_tasks("ever", "-1", false, "exit 141")).await;
    wait_until("it has run often", 2 * LIMIT, async || {
        (home(&world, "ever").lines().count() >= 6).then_some(())
    })
    .await;
    world.berth(&["stop", "ever"]).await.succeeded();
    assert_eq!(over(&world, &job).await.ended.or_fail("see how it ended").cause, EndCause::Stopped);

    // A job that is one whole is tried again as one whole, as elsewhere, and says so.
    let job = submit(&world, v2_tasks("whole", "3", true, "exit 9")).await;
    assert!(job.warnings.iter().any(|note| note.pointer.ends_with("taskRetryCount")), "{:?}", job.warnings);
    over(&world, &job).await;
    assert!(home(&world, "whole").lines().count() <= 2);
}

#[tokio::test]
async fn what_a_failed_job_left_can_be_looked_at() {
    let world = World::start().await;
    let ended =
        run(&world, v1("debug", r#""jobEnvs": {"isDebug": true},"#, "echo precious > /root/left; exit 4"))
            .await;
    assert!(matches!(ended.status, Status::Failed { exit_code: Some(4), .. }), "{:?}", ended.status);
    assert!(ended.kept_until.is_some());
    let shown = world.berth(&["show", "debug"]).await.succeeded();
    assert!(shown.contains("KEPT UNTIL"), "{shown}");
    world.berth(&["start", "debug/main/0", "--wait"]).await.succeeded();
    let left = world.berth(&["exec", "debug/main/0", "--", "cat", "/root/left"]).await.succeeded();
    assert_eq!(left, "precious\n");
    assert_eq!(world.berth(&["ssh", "debug/main/0", "--", "cat /root/left"]).await.succeeded(), left);
    world.berth(&["rm", "debug", "--wait"]).await.succeeded();
    wait_until("the container is gone", LIMIT, async || world.containers().is_empty().then_some(())).await;
}

#[tokio::test]
async fn what_does_not_fit_waits_in_order_and_what_never_will_is_refused() {
    let world = World::start().await;
    let node = world.client().nodes().await.or_fail("list the nodes").remove(0);
    let most = (node.memory_bytes >> 20) * 6 / 10;
    let large = |name: &str| {
        v1(
            name,
            "",
            "until [ -e /userhome/$PAI_JOB_NAME ]; do sleep 0.1; done; echo $PAI_JOB_NAME >> /userhome/order",
        )
        .replace("\"memoryMB\": 128", &format!("\"memoryMB\": {most}"))
    };
    for name in ["one", "two", "three"] {
        submit(&world, large(name)).await;
    }
    until_running(&world, "one").await;
    let places = wait_until("the others are in the line", LIMIT, async || {
        let place = async |name| job(&world, name).await.queue;
        Some([place("two").await?, place("three").await?])
    })
    .await;
    assert_eq!(places.clone().map(|place| place.position), [1, 2]);
    assert_eq!(places[0].reason, QueueReason::NoRoom, "{places:?}");
    let shown = world.berth(&["show", "two"]).await.succeeded();
    assert!(shown.contains("number 1 in the line"), "{shown}");
    let memory = format!("{most}M");
    let create = ["create", "later", "-m", &memory, "--wait", "--timeout", "30"];
    let (_, said) = world.berth(&create).await.ended(1);
    assert!(said.contains("later: waiting: number 3 in the line"), "{said}");
    let shown = world.berth(&["show", "later"]).await.succeeded();
    assert!(shown.contains("number 3 in the line"), "{shown}");
    world.berth(&["rm", "later", "--wait"]).await.succeeded();

    let never = large("never").replace(&format!("\"memoryMB\": {most}"), "\"memoryMB\": 9000000");
    let refused = world.client().submit_job(&SubmitJob::new(never)).await;
    assert_eq!(refused.err().and_then(|error| error.code()), Some(gateway_api::Code::TooLarge));
    for name in ["one", "two", "three"] {
        std::fs::write(world.data().join("home/admin").join(name), "").or_fail("let it go");
    }
    over(&world, &job(&world, "three").await).await;
    assert_eq!(home(&world, "order"), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn nothing_runs_twice_when_the_gateway_and_envd_are_killed() {
    let mut world = World::start().await;
    let script =
        "echo run >> /userhome/once; echo before; until [ -e /userhome/go ]; do sleep 0.1; done; echo after";
    let submitted = submit(&world, v1("survivor", r#""retryCount": 3,"#, script)).await;
    until_running(&world, "survivor").await;
    wait_until("it has begun", LIMIT, async || (!home(&world, "once").is_empty()).then_some(())).await;
    world.kill_gateway();
    world.kill_envd();
    world.start_envd().await;
    world.start_gateway().await;
    world.wait_for_cluster().await;
    assert!(matches!(job(&world, "survivor").await.status, Status::Running { .. }));
    std::fs::write(world.data().join("home/admin/go"), "").or_fail("let it go");
    let ended = over(&world, &submitted).await;
    assert_eq!((ended.status, ended.attempt), (Status::Succeeded, 1));
    assert_eq!(home(&world, "once"), "run\n");
    assert_eq!(world.berth(&["logs", "survivor"]).await.succeeded(), "before\nafter\n");
}

#[tokio::test]
async fn a_job_does_not_wait_for_a_name_that_is_taken() {
    let world = World::start().await;
    world.berth(&["create", "train_main_0", "-m", "128M"]).await.succeeded();
    let refused = world.client().submit_job(&SubmitJob::new(v1("train", "", "true"))).await;
    assert_eq!(refused.err().and_then(|error| error.code()), Some(gateway_api::Code::NameTaken));

    let node = world.client().nodes().await.or_fail("list the nodes").remove(0);
    let most = format!("\"memoryMB\": {}", (node.memory_bytes >> 20) * 6 / 10);
    let large = |name: &str| {
        v1(name, "", "until [ -e /userhome/go ]; do sleep 0.1; done").replace("\"memoryMB\": 128", &most)
    };
    submit(&world, large("first")).await;
    until_running(&world, "first").await;
    // Its name is free when it is submitted, and somebody's when there is room for it.
    let late = submit(&world, large("late")).await;
    let behind = submit(&world, large("behind")).await;
    world.berth(&["create", "late_main_0", "-m", "128M"]).await.succeeded();
    std::fs::write(world.data().join("home/admin/go"), "").or_fail("let them go");
    let ended = over(&world, &late).await.ended.or_fail("see how it ended");
    assert_eq!(ended.cause, EndCause::NameTaken, "{ended:?}");
    assert_eq!(over(&world, &behind).await.status, Status::Succeeded, "nobody waits behind it");
}

#[tokio::test]
async fn a_start_of_the_machine_is_not_the_jobs_failure() {
    let mut world = World::start().await;
    let script = "echo run >> /userhome/runs; [ $(wc -l < /userhome/runs) -ge 2 ] || sleep 600";
    let submitted = submit(&world, v1("rebooted", r#""retryCount": 0,"#, script)).await;
    wait_until("it runs", LIMIT, async || (home(&world, "runs") == "run\n").then_some(())).await;
    // As after a power cut: the container has ended, and the record of its start is of another boot.
    world.kill_envd();
    let instance = job(&world, "rebooted").await.tasks[0].instance.clone().or_fail("find its instance");
    let record = world.data().join("door").join(instance.as_str()).join("spec.json");
    let text = std::fs::read_to_string(&record).or_fail("read the record of its start");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").or_fail("read the boot's name");
    let earlier = text.replace(boot.trim(), "an-earlier-one");
    assert_ne!(earlier, text, "the record names the boot");
    std::fs::write(&record, earlier).or_fail("write the record of its start");
    tests::engine::docker(&["kill", &world.only_container()]);
    world.start_envd().await;
    let ended = over(&world, &submitted).await;
    assert_eq!((ended.status, ended.attempt), (Status::Succeeded, 2));
}

/// As after a start of the machine that its containers did not outlive.
#[tokio::test]
async fn a_command_is_run_again_when_its_container_is_gone() {
    let mut world = World::start().await;
    let script = "echo run >> /userhome/runs; [ $(wc -l < /userhome/runs) -ge 2 ] || sleep 600";
    world.berth(&["submit", "--name", "gone", "-m", "128M", "--", "sh", "-c", script]).await.succeeded();
    wait_until("it runs", LIMIT, async || (home(&world, "runs") == "run\n").then_some(())).await;
    world.kill_gateway();
    world.kill_envd();
    tests::engine::docker(&["rm", "-f", &world.only_container()]);
    world.start_envd().await;
    world.start_gateway().await;
    let submitted = job(&world, "gone").await;
    let ended = over(&world, &submitted).await;
    assert_eq!((ended.status, ended.attempt), (Status::Succeeded, 2));
}

#[tokio::test]
async fn a_mount_that_is_read_only_cannot_be_written_to() {
    let world = World::start().await;
    std::fs::create_dir_all(world.data().join("home/admin/data")).or_fail("make a folder");
    std::fs::write(world.data().join("home/admin/data/file"), "bytes\n").or_fail("write a file");
    let file = format!(
        "berth: 1\nname: careful\nimage: {IMAGE}\nmemory: 128M\nmounts:\n\
         - {{from: /userhome/data, to: /data, read_only: true}}\n- {{from: /userhome/data, to: /own}}\n\
         command: |\n  cat /data/file\n  if echo x > /data/new; then exit 3; fi\n  if rm /data/file; then exit 4; fi\n\
         \x20 if touch /.berth/read-only/userhome/new; then exit 5; fi\n  if mount -o remount,rw /.berth/read-only/userhome; then exit 6; fi\n\
         \x20 echo seen > /own/made && cat /data/made\n"
    );
    let ended = run(&world, file).await;
    let logs = world.berth(&["logs", "careful"]).await.succeeded();
    assert_eq!(ended.status, Status::Succeeded, "{logs}");
    assert_eq!(ended.warnings, [], "nothing is without effect");
    for said in ["bytes\n", "seen\n", "Read-only file system"] {
        assert!(logs.contains(said), "{logs}");
    }
    assert_eq!((home(&world, "data/file").as_str(), home(&world, "data/new").as_str()), ("bytes\n", ""));
}

#[tokio::test]
async fn files_of_other_platforms_run_as_they_are() {
    let world = World::start().await;
    std::fs::create_dir_all(world.data().join("home/admin/data")).or_fail("make a folder");
    std::fs::write(world.data().join("home/admin/data/file"), "bytes\n").or_fail("write a file");
    let determined = format!(
        "description: a command\nresources: {{slots: 0}}\nenvironment:\n  image: {IMAGE}\n  environment_variables: [A=1]\n\
         bind_mounts:\n  - {{host_path: /userhome/data, container_path: /mnt/data, read_only: true}}\n\
         entrypoint: cat /mnt/data/file && echo $A $DET_USER $DET_WORKDIR $PWD\n"
    );
    let v2 = format!(
        "protocolVersion: 2\nname: second\ntype: job\nparameters: {{word: hello}}\nsecrets: {{key: open-sesame}}\n\
         prerequisites:\n  - {{name: image, type: dockerimage, uri: '{IMAGE}'}}\n\
         taskRoles:\n  main:\n    dockerImage: image\n    resourcePerInstance: {{cpu: 1, memoryMB: 128}}\n\
         \x20   commands: ['echo <% $parameters.word %> <%$secrets.key%> $PAI_TASK_INDEX $PAI_JOB_NAME']\n"
    );
    let dlc = format!(
        "name=third\nkind=PyTorchJob\nworker_count=2\nworker_image={IMAGE}\nworker_cpu=1\nworker_memory=1Gi\n\
         worker_gpu=0\ncommand=echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT\n"
    );
    let first = v1(
        "first",
        r#""outputDir": "$PAI_DEFAULT_FS_URI/$jobName/out","#,
        "echo done > $PAI_OUTPUT_DIR/file",
    );
    let mut said = Vec::new();
    for (file, task) in [(determined, "main/0"), (v2, "main/0"), (dlc, "worker/1"), (first, "main/0")] {
        let ended = run(&world, file).await;
        let logs = world.berth(&["logs", &format!("{}/{task}", ended.name)]).await.succeeded();
        assert_eq!(ended.status, Status::Succeeded, "{ended:?}\n{logs}");
        said.push(logs);
    }
    assert_eq!(said[0], "bytes\n1 admin /run/determined/workdir /run/determined/workdir\n");
    assert_eq!(said[1], "hello open-sesame 0 admin~second\n");
    assert_eq!(said[2], "1 of 2 at third-worker-0:23456\n");
    assert_eq!(home(&world, "first/out/file"), "done\n");
}
