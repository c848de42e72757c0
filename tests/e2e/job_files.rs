//! What job files ask for: code, folders, frameworks, more machines than there are; and where they come from.

use gateway_api::{
    Code, Status,
    client::ClientError,
    job::{DryRun, EndCause, SubmitJob},
};
use tests::{IMAGE, OrFail as _, Setup, World, engine, nvml};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::jobs::{home, run, submit, until_running, v1};

/// A file below the user's home.
fn put(world: &World, file: &str, text: &str) {
    let path = world.data().join("home/admin").join(file);
    std::fs::create_dir_all(path.parent().or_fail("find a folder")).or_fail("make a folder");
    std::fs::write(path, text).or_fail("write a file");
}

fn refusal(answer: Result<gateway_api::Job, ClientError>) -> Option<Code> {
    answer.err().and_then(|error| error.code())
}

#[tokio::test]
async fn code_is_copied_and_nobody_can_write_to_the_copy() {
    let world = World::start().await;
    put(&world, "project/code/train.sh", "echo trained from $(cat $PAI_CODE_DIR/data/seed)\n");
    put(&world, "project/code/data/seed", "seven\n");
    // A link of a user's leads to nothing but what is theirs.
    let link = world.data().join("home/admin/project/code/secret");
    std::os::unix::fs::symlink("/etc/hostname", link).or_fail("make a link");
    let code = r#""codeDir": "/userhome/project/code","#;
    let script = "sh code/train.sh && rm -r /userhome/project/code && sh $PAI_CODE_DIR/train.sh && \
                  ! touch code/new && ! rm code/train.sh && readlink code/secret";
    let ended = run(&world, v1("coded", code, script)).await;
    let logs = world.berth(&["logs", "coded"]).await.succeeded();
    assert_eq!(ended.status, Status::Succeeded, "{logs}");
    let trained = "trained from seven\n";
    assert!(logs.starts_with(&trained.repeat(2)) && logs.ends_with("/etc/hostname\n"), "{logs}");
    assert_eq!(logs.matches("Read-only file system").count(), 2, "{logs}");
}

#[tokio::test]
async fn code_that_is_too_large_or_not_there_is_refused_with_its_size() {
    let world = World::start().await;
    put(&world, "large/small", "x");
    let large = std::fs::File::create(world.data().join("home/admin/large/weights")).or_fail("make a file");
    large.set_len(300 << 20).or_fail("make it large");
    for (name, folder, why) in [
        ("large", "/userhome/large", "it takes 301 MiB, and code may take 200 MiB"),
        ("none", "/userhome/none", "No such file or directory"),
    ] {
        let ended = run(&world, v1(name, &format!(r#""codeDir": "{folder}","#), "true")).await;
        let end = ended.ended.or_fail("see how it ended");
        assert_eq!(end.cause, EndCause::CannotStart, "{end:?}");
        assert!(end.message.contains(folder) && end.message.contains(why), "{end:?}");
    }
    let left = std::fs::read_dir(world.data().join("door")).map_or(0, Iterator::count);
    assert!(left <= 2, "what was copied goes with the task");
}

/// Both roles have one script, as DLC has it: each finds its part and the others by the variables.
const TALK: &str = r#"
import json, os, socket
config = json.loads(os.environ["TF_CONFIG"])
me, (host, port) = config["task"], config["cluster"]["ps"][0].split(":")
if me["type"] == "ps":
    server = socket.create_server(("", int(port)))
    while True:
        peer, _ = server.accept()
        peer.sendall(peer.recv(64).upper())
        peer.close()
while True:
    try:
        peer = socket.create_connection((host, int(port)))
        break
    except OSError:
        pass
peer.sendall(b"gradients")
print(peer.recv(64).decode(), os.environ["RANK"], os.environ["WORLD_SIZE"], config["environment"])
"#;

#[tokio::test]
async fn workers_of_tensorflow_and_pytorch_find_who_leads() {
    let world = World::start().await;
    put(&world, "talk.py", TALK);
    let size =
        |role: &str| format!("{role}_count=1\n{role}_image={IMAGE}\n{role}_cpu=0.5\n{role}_memory=256Mi\n");
    let file =
        format!("name=tf\nkind=TFJob\n{}{}command=python3 /userhome/talk.py\n", size("ps"), size("worker"));
    let ended = run(&world, file).await;
    let logs = world.berth(&["logs", "tf/worker/0"]).await.succeeded();
    assert_eq!(ended.status, Status::Succeeded, "{ended:?}\n{logs}");
    assert_eq!(logs, "GRADIENTS 0 2 cloud\n");
    assert_eq!(ended.priority, 1, "the last in the line, unless the file says otherwise");

    let file = format!(
        "name=torch\nkind=PyTorchJob\n{}worker_count=2\nworker_image={IMAGE}\nworker_cpu=0.5\nworker_memory=256Mi\n\
         command=getent hosts $MASTER_ADDR | tee /userhome/master-$RANK && echo $MASTER_PORT $WORLD_SIZE $NPROC_PER_NODE\n",
        size("master")
    );
    let ended = run(&world, file).await;
    assert_eq!(ended.status, Status::Succeeded, "{ended:?}");
    let address = ended.tasks[0].address.clone().or_fail("find the address of the first");
    assert!(home(&world, "master-0").starts_with(&address), "rank 0 is the master");
    assert_eq!(world.berth(&["logs", "torch/master/0"]).await.succeeded().lines().last(), Some("23456 3 1"));
}

/// Answers one request with a file.
async fn serve(listener: TcpListener, file: String) {
    let (mut peer, _) = listener.accept().await.or_fail("be asked");
    let mut asked = [0; 1024];
    let _request = peer.read(&mut asked).await.or_fail("read a request");
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", file.len());
    peer.write_all((head + &file).as_bytes()).await.or_fail("answer");
}

#[tokio::test]
async fn a_file_is_submitted_from_its_address() {
    let world = World::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.or_fail("listen");
    let address = format!("http://{}/job.json", listener.local_addr().or_fail("see the port"));
    let file = v1("published", "", "echo from afar");
    let submit = ["submit", &address, "-f"];
    let (submitted, ()) = tokio::join!(world.berth(&submit), serve(listener, file.clone()));
    assert_eq!(submitted.succeeded(), "from afar\n");
    assert_eq!(world.berth(&["show", "published", "--file"]).await.succeeded(), file);
}

/// What an older platform called things, and where they are now.
const ALIASES: &str = r#"
[gateway.aliases.paths]
"/home/{user}" = "home"
"/old-nas/datasets" = "home/sets"
"/etc" = "home"
[gateway.aliases.registries]
"registry.example.org:5000" = "localhost"
"#;

#[tokio::test]
async fn old_paths_and_registries_work_in_files_and_commands() {
    let world = World::start_with(Setup { config: ALIASES.to_owned(), ..Setup::default() }).await;
    put(&world, "code/run.sh", "echo trained on $(cat /old-nas/datasets/digits)\n");
    put(&world, "sets/digits", "seven\n");
    let file = v1(
        "old",
        r#""dataDir": "/old-nas/datasets","#,
        "cd /home/admin/code && sh run.sh && ls $PAI_DATA_DIR && touch /home/admin/new && test -e /etc/passwd",
    )
    .replace("localhost/", "registry.example.org:5000/");
    let path = world.data().join("old.json");
    std::fs::write(&path, &file).or_fail("write a file");
    let path = path.display().to_string();
    assert_eq!(world.berth(&["submit", &path, "-f"]).await.succeeded(), "trained on seven\ndigits\n");
    assert!(world.data().join("home/admin/new").exists());

    // What it means here is told before and after.
    let converted = world.berth(&["convert", &path]).await.succeeded();
    for text in [converted, world.berth(&["show", "old", "--spec"]).await.succeeded()] {
        assert!(
            text.starts_with("berth: 1\n") && text.contains(IMAGE.rsplit_once(':').or_fail("find a tag").0),
            "{text}"
        );
        assert!(text.contains("sets") && !text.contains("example.org"), "{text}");
    }
    let (_, said) = world.berth(&["convert", "/nowhere"]).await.ended(1);
    assert!(said.contains("`/nowhere` cannot be read"), "{said}");
}

/// What was in those files' places on the older platforms.
const OLD_PLACES: &str = r#"
[gateway.jobs]
pools = ["dgx"]
[gateway.aliases.paths]
"/gdata" = "home/gdata"
"/home/cluster/pai-hdd/alice" = "home"
"/home/cluster/datasets" = "home/gdata"
[gateway.aliases.registries]
"registry.example.org:5000/user-images" = "localhost/berth"
"registry.example.org:5000/pytorch" = "localhost/berth"
"registry.example.org:5000/lab" = "localhost/berth"
"tensorflow" = "localhost/berth"
"#;
const OLD_IMAGES: [&str; 4] = [
    "localhost/berth/deepo:v2.0",
    "localhost/berth/pytorch:1.9-cuda11.1",
    "localhost/berth/pytorch:1.9-py3.8-cuda11.1",
    "localhost/berth/tensorflow:1.15.5-gpu",
];

/// Stands for the training script: says where it is, what is there, and what it was given.
const IMAGENET: &str = "import os, sys\n\
                        cards = os.environ['NVIDIA_VISIBLE_DEVICES'].split(',')\n\
                        print(sys.argv[-1], os.listdir(sys.argv[-1]), os.environ['EPOCHS'], len(cards))\n";

/// Stands for the benchmark of two roles: each worker sends to every server that the variables name.
const BENCHMARK: &str = r#"
import os, socket, sys
given = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:])
servers = [place.split(":") for place in os.environ["PAI_TASK_ROLE_ps_server_HOST_LIST"].split(",")]
if given["job_name"] == "ps":
    assert given["ps_hosts"] == os.environ["PAI_TASK_ROLE_ps_server_HOST_LIST"]
    server = socket.create_server(("", int(servers[int(given["task_index"])][1])))
    while True:
        peer, _ = server.accept()
        peer.sendall(peer.recv(64).upper())
        peer.close()
for host, port in servers:
    while True:
        try:
            peer = socket.create_connection((host, int(port)))
            break
        except OSError:
            pass
    peer.sendall(b"gradients of " + given["task_index"].encode())
    print(peer.recv(64).decode())
"#;

/// A file that somebody had on an older platform, with these parts of it changed.
fn old_file(name: &str, changes: &[(&str, &str)]) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../gateway/jobfile/tests/files");
    let text = std::fs::read_to_string(folder.join(name)).or_fail("read a file");
    changes.iter().fold(text, |text, (large, small)| {
        assert!(text.contains(large), "{name}: {large}");
        text.replace(large, small)
    })
}

/// The files that users of older platforms have, as they are but for sizes that this machine does not have.
#[tokio::test]
async fn files_of_older_platforms_run_with_the_sites_aliases() {
    for name in OLD_IMAGES {
        drop(engine::docker(&["tag", IMAGE, name]));
    }
    let directory = tempfile::tempdir().or_fail("make a directory");
    let nvml = Some(nvml::library(directory.path()));
    let setup = Setup { config: OLD_PLACES.to_owned(), nvml, ..Setup::default() };
    let world = World::start_with(setup).await;
    put(&world, "gdata/imagenet/classes", "1000\n");
    put(&world, "examples/imagenet/main.py", IMAGENET);
    put(&world, "code/tf_cnn_benchmarks.py", BENCHMARK);

    let small = [("\"cpuNumber\": 16", "\"cpuNumber\": 1"), ("65536", "512"), ("8192", "128")];
    let imagenet = old_file("imagenet-4gpu.json", &small);
    let small = [("worker_cpu=4", "worker_cpu=1"), ("worker_memory=16", "worker_memory=1"), ("8Gi", "64Mi")];
    let params = old_file("sample_job.params", &small);
    // What it installs is not what it is about, and its code is below the home.
    let small = [
        ("pip --quiet install scipy && python code", "python /userhome/code"),
        ("\"cpuNumber\": 2", "\"cpuNumber\": 1"),
        ("8192", "128"),
        ("16384", "128"),
        ("1024", "64"),
        ("\"gpuNumber\": 4", "\"gpuNumber\": 1"),
    ];
    let two_roles = old_file("two-roles.json", &small);
    for (file, task, expected) in [
        (old_file("hello-world.json", &[("sleep 60", "sleep 1")]), "hello/0", "Hello, GPU cluster!"),
        (imagenet, "train/0", "/gdata/imagenet ['classes'] 90 4"),
        (params, "worker/1", "hello world\nTrue"),
        (two_roles, "worker/1", "GRADIENTS OF 1\nGRADIENTS OF 1\n"),
    ] {
        let job = run(&world, file).await;
        let logs = world.berth(&["logs", &format!("{}/{task}", job.name)]).await.succeeded();
        assert_eq!(job.status, Status::Succeeded, "{job:?}\n{logs}");
        assert!(logs.contains(expected), "{logs}");
    }

    // Two cards would bring more processors than this machine has.
    let shell = submit(&world, old_file("shell.yaml", &[("shm_size: 8G", "shm_size: 64M")])).await;
    let shell = until_running(&world, &shell.name).await;
    assert_eq!((shell.description.as_str(), shell.tasks[0].cards.len()), ("<alice>_<dev>", 2));
    let files = ["home/gdata/imagenet/classes", "datasets/imagenet/classes"];
    let there = [&["exec", &shell.tasks[0].name, "--", "cat"][..], &files[..]].concat();
    assert_eq!(world.berth(&there).await.succeeded(), "1000\n1000\n");
    for name in OLD_IMAGES {
        drop(engine::docker(&["rmi", name]));
    }
}

#[tokio::test]
async fn what_only_the_site_knows_of_a_file_is_told_in_the_users_language() {
    let world = World::start().await;
    let path = world.data().join("job");
    let submit = async |file: &str, chinese: bool| {
        std::fs::write(&path, file).or_fail("write a file");
        let line = ["submit", &path.display().to_string()];
        if chinese { world.berth_in_chinese(&line).await } else { world.berth(&line).await }
    };
    let (_, said) = submit(&v1("lost", r#""dataDir": "/mnt/nowhere","#, "true"), true).await.ended(1);
    assert!(said.contains("`/mnt/nowhere` 不在本站点的任何存储中") && said.contains("/userhome"), "{said}");
    let dlc = |name: &str| {
        format!(
            "name={name}\nkind=PyTorchJob\nworker_count=1\nworker_image={IMAGE}\nworker_cpu=1\nworker_memory=1Gi\n\
             workspace_id=ws_1\ncode_source=old\ncommand=true\n"
        )
    };
    for (name, chinese, expected) in [
        ("warned", false, ["`workspace_id` is `ws_1`, which is not known here", "git clone"]),
        ("warned-too", true, ["`workspace_id` 的值 `ws_1` 不存在", "git clone"]),
    ] {
        let ran = submit(&dlc(name), chinese).await;
        assert!(expected.iter().all(|text| ran.stderr.contains(text)), "{}", ran.stderr);
        assert_eq!(ran.succeeded(), format!("{name}\n"));
    }
}

#[tokio::test]
async fn what_needs_more_than_one_machine_is_refused_with_that_reason() {
    let world = World::start().await;
    let node = world.client().nodes().await.or_fail("list the nodes").remove(0);
    let most = (node.memory_bytes >> 20) * 6 / 10;
    let file = v1("wide", "", "true")
        .replace("\"taskNumber\": 1", "\"taskNumber\": 2")
        .replace("\"memoryMB\": 128", &format!("\"memoryMB\": {most}"));
    let refused = world.client().submit_job(&SubmitJob::new(file)).await;
    assert_eq!(refusal(refused), Some(Code::NeedsMoreMachines));
    assert_eq!(world.client().jobs(false).await.or_fail("list jobs"), [], "nothing is queued");
}

#[tokio::test]
async fn roles_whose_tasks_would_be_called_the_same_are_refused() {
    let world = World::start().await;
    let with_role = |name: &str, other: &str| {
        let roles = [name, other].map(|name| {
            format!(r#"{{"name": "{name}", "cpuNumber": 1, "memoryMB": 128, "command": "true"}}"#)
        });
        let file =
            format!(r#"{{"jobName": "alike", "image": "{IMAGE}", "taskRoles": [{}]}}"#, roles.join(","));
        SubmitJob::new(file)
    };
    // The last two are long, and what their names are shortened to happens to be the same.
    let alike = [
        ("Worker", "worker", Code::BadJobFile),
        ("worker_of_the_7097", "worker_of_the_13140", Code::AlreadyExists),
    ];
    for (name, other, code) in alike {
        let wanted = with_role(name, other);
        assert_eq!(refusal(world.client().submit_job(&wanted).await), Some(code), "{name}");
        let foreseen = world.client().dry_run_job(&wanted).await;
        assert_eq!(foreseen.err().and_then(|error| error.code()), Some(code), "{name}");
    }
    assert_eq!(world.client().jobs(false).await.or_fail("list jobs"), [], "nothing is queued");
}

#[tokio::test]
async fn what_would_become_of_a_file_is_what_becomes_of_it() {
    let world = World::start().await;
    let foresee = async |file: String| world.client().dry_run_job(&SubmitJob::new(file)).await;
    let many = v1("many", "", "true").replace("\"cpuNumber\": 1", "\"cpuNumber\": 9999");
    let foreseen = foresee(many.clone()).await.or_fail("ask what becomes of it");
    let DryRun::Never { params, .. } = &foreseen else { panic!("{foreseen:?}") };
    assert_eq!((params["resource"].as_str(), params["wanted"].as_str()), ("cpus", "9999"));
    assert_eq!(refusal(world.client().submit_job(&SubmitJob::new(many)).await), Some(Code::TooLarge));

    let secret = v1("open", "", "echo <% $secrets.none %>");
    let code = async |file: String| foresee(file).await.err().and_then(|error| error.code());
    let refused = refusal(world.client().submit_job(&SubmitJob::new(secret.clone())).await);
    assert!(refused.is_some() && code(secret).await == refused, "{refused:?}");
    run(&world, v1("taken", "", "true")).await;
    assert_eq!(code(v1("taken", "", "true")).await, Some(Code::AlreadyExists));

    // A file of ten megabytes is refused before it is read.
    let large = SubmitJob::new("#".repeat(10 << 20));
    assert_eq!(refusal(world.client().submit_job(&large).await), Some(Code::BodyTooLarge));
}

#[tokio::test]
async fn the_switch_to_keep_goes_with_any_file() {
    let world = World::start().await;
    let path = world.data().join("job.json");
    std::fs::write(&path, v1("opened", "", "echo the last words; exit 3")).or_fail("write a file");
    let path = path.display().to_string();
    let (_, said) = world.berth(&["submit", "--keep-on-failure", "--wait", &path]).await.ended(3);
    assert!(said.contains("the last words"), "what it wrote last is said: {said}");
    world.berth(&["start", "opened/main/0", "--wait"]).await.succeeded();
    assert_eq!(world.berth(&["exec", "opened/main/0", "--", "echo", "in"]).await.succeeded(), "in\n");
}

#[tokio::test]
async fn a_shell_that_nobody_uses_is_stopped() {
    let world = World::start().await;
    let file = format!(
        "description: a shell\nidle_timeout: 10s\nresources: {{slots: 0}}\nenvironment:\n  image: {IMAGE}\n"
    );
    let ended = run(&world, file).await;
    let end = ended.ended.or_fail("see how it ended");
    assert_eq!(end.cause, EndCause::Idle, "{end:?}");
    assert!(matches!(ended.status, Status::Stopped { .. }), "{:?}", ended.status);
}
