//! What job files ask for: code, folders, frameworks, more machines than there are; and where they come from.

use gateway_api::{
    Code, Status,
    client::ClientError,
    job::{EndCause, SubmitJob},
};
use tests::{IMAGE, OrFail as _, Setup, World};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::jobs::{home, run, v1};

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
