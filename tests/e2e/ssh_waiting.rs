//! Coming to the SSH door without an instance, or to one that does not run: the menu, one's own storage, the waiting
//! room.

use std::process::Command;

use gateway_api::{
    Status,
    job::SubmitJob,
    quota::{Quota, QuotaLimits},
    words::Language,
};
use tests::{Fault, IMAGE, LIMIT, Laptop, OrFail as _, Registry, Talk, World, engine, wait_until, wanted};

use crate::saving::Site;

async fn waits_for(world: &World, name: &str, state: &str) {
    wait_until(&format!("`{name}` is {state}"), LIMIT, async || {
        let status = world.client().instance(name).await.or_fail("show an instance").status;
        (status.word() == state).then_some(())
    })
    .await;
}

/// A forward to a port on which nothing listens, by a client that tells why it is refused.
fn forward(laptop: &Laptop<'_>) -> Command {
    let mut ssh = Command::new("ssh");
    // The first value of an option counts.
    ssh.args(["-o", "LogLevel=INFO"]).args(laptop.ssh_as("admin+train", &["-W", "127.0.0.1:1"]).get_args());
    ssh
}

#[tokio::test]
async fn the_menu_shows_all_and_opens_one() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    // Nobody's menu is empty without a word on what to do.
    let mut talk = Talk::start(laptop.ssh_as("admin", &["-tt"]));
    talk.shows("You have no instances").await;

    world.berth(&["create", "first", "--image", IMAGE, "--wait"]).await.succeeded();
    world.berth(&["create", "second", "--image", IMAGE, "--wait"]).await.succeeded();
    world.berth(&["stop", "second", "--wait"]).await.succeeded();

    let mut talk = Talk::start(laptop.ssh_as("admin", &["-tt"]));
    talk.shows("`second` is stopped").await;
    talk.shows("Number or name").await;
    talk.types("nonsense\r").await;
    talk.shows("There is none of that name or number").await;
    // With a slip of the finger that is taken back.
    talk.types("firsx\x7ft\r").await;
    talk.types("echo in-$((6*7))\r").await;
    talk.shows("in-42").await;
    talk.types("exit 6\r").await;
    assert_eq!(talk.ends().await, Some(6));

    let mut talk = Talk::start(laptop.ssh_as("admin", &["-tt"]));
    talk.shows("Number or name").await;
    talk.types("q\r").await;
    talk.ends().await;

    // In the language of whoever asks.
    let mut chinese = laptop.ssh_as("admin", &["-tt", "-o", "SendEnv=LANG"]);
    chinese.env("LANG", "zh_CN.UTF-8");
    let mut talk = Talk::start(chinese);
    talk.shows("您的实例").await;
    talk.shows("`second` 已停止").await;
    drop(talk);

    // A command needs to be told where.
    let mut command = laptop.ssh_as("admin", &[]);
    command.arg("true");
    let (_, said) = laptop.run(command, b"").await.ended(255);
    assert!(said.contains("name an instance: admin+INSTANCE@"), "{said}");

    // What was chosen in the console is stronger than what a client says, and refusals are in it too.
    world.client().set_language(Some(Language::Chinese)).await.or_fail("choose a language");
    let mut command = laptop.ssh_as("admin", &[]);
    command.arg("true");
    let (_, said) = laptop.run(command, b"").await.ended(255);
    assert!(said.contains("请指明实例：admin+实例名@"), "{said}");
    let (_, said) = laptop.ssh("nowhere", &["true"]).await.ended(255);
    assert!(said.contains("没有名为 `nowhere` 的实例"), "{said}");
}

#[tokio::test]
async fn sftp_without_an_instance_is_in_ones_own_storage() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    let sftp = || {
        let mut sftp = laptop.client("sftp");
        sftp.args(["-q", "-b", "-", "admin@127.0.0.1"]);
        sftp
    };
    std::fs::write(laptop.path("notes"), "mine").or_fail("write a file");
    let said = laptop.run(sftp(), b"pwd\nput notes\nls -1 /\n").await.succeeded();
    assert!(said.contains("Remote working directory: /userhome"), "{said}");
    assert!(said.contains("/userhome\n"), "nothing but storages: {said}");
    // What is not storage keeps nothing.
    laptop.run(sftp(), b"put notes /notes\n").await.ended(1);

    // An instance has the same files, and the rights that it finds are those it leaves.
    world.berth(&["create", "train", "--image", IMAGE, "--wait"]).await.succeeded();
    assert_eq!(laptop.ssh("train", &["cat /userhome/notes"]).await.succeeded(), "mine");
    let make =
        "cd /userhome; echo new > made; chmod 600 made; mkdir sub; ln -s /userhome/made inside; mkfifo pipe";
    laptop.ssh("train", &[make]).await.succeeded();
    let said =
        laptop.run(sftp(), b"get inside\nput notes sub/again\nrename made sub/made\nls -l sub\n").await;
    said.succeeded();
    assert_eq!(std::fs::read_to_string(laptop.path("inside")).or_fail("read a file"), "new\n");
    assert_eq!(
        laptop.ssh("train", &["cat /userhome/sub/again /userhome/sub/made"]).await.succeeded(),
        "minenew\n"
    );
    // What never ends is not begun.
    laptop.run(sftp(), b"put notes pipe\n").await.ended(1);
}

/// Links that a user makes in their storage are walked on the machine itself, where they must lead nowhere.
#[tokio::test]
async fn links_in_ones_own_storage_lead_nowhere_else() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    let alice = world.person("alice").await;
    let mut create = wanted("hers");
    create.image = Some(IMAGE.to_owned());
    alice.create_instance(&create).await.or_fail("create an instance");
    world.berth(&["create", "train", "--image", IMAGE, "--wait"]).await.succeeded();
    let links = "cd /userhome; ln -s / root; ln -s /etc/shadow shadow; ln -s ../alice alice; ln -s ../../../../../../etc up; \
                 ln -s /proc/self/root proc; ln -s /proc/1/root/etc/hostname one";
    laptop.ssh("train", &[links]).await.succeeded();
    for path in
        ["shadow", "root/etc/passwd", "up/passwd", "proc/etc/passwd", "one", "/etc/passwd", "../alice/x"]
    {
        let mut sftp = laptop.client("sftp");
        sftp.args(["-q", "-b", "-", "admin@127.0.0.1"]);
        let (_, said) = laptop.run(sftp, format!("get {path} got\n").as_bytes()).await.ended(1);
        assert!(said.contains("not found") || said.contains("No such file"), "{path}: {said}");
        assert!(!laptop.path("got").exists(), "{path}");
    }
    let mut sftp = laptop.client("sftp");
    sftp.args(["-q", "-b", "-", "admin@127.0.0.1"]);
    let said = laptop.run(sftp, b"ls -1 root/\n").await.succeeded();
    assert!(said.contains("root/userhome"), "{said}");
    assert!(!said.contains("etc") && !said.contains("bin"), "the room and nothing else: {said}");
    // Another's name is to this key the name of an instance, and there is none.
    let mut theirs = laptop.ssh_as("alice", &["-s"]);
    theirs.arg("sftp");
    let (out, said) = laptop.run(theirs, b"").await.ended(255);
    assert!(out.is_empty() && said.contains("no instance named `alice`"), "{said}");
}

#[tokio::test]
async fn the_waiting_room_leads_into_the_shell() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    // The address is good from the first moment on.
    let mut create = wanted("train");
    create.image = Some(IMAGE.to_owned());
    world.client().create_instance(&create).await.or_fail("create an instance");
    let mut talk = Talk::start(laptop.ssh_as("admin+train", &["-tt"]));
    talk.types("echo in-$((6*7))\r").await;
    talk.shows("in-42").await;
    talk.types("exit\r").await;
    talk.ends().await;

    world.berth(&["stop", "train", "--wait"]).await.succeeded();
    // Somebody who would rather not.
    let mut talk = Talk::start(laptop.ssh_as("admin+train", &["-tt"]));
    talk.shows("`train` is stopped. Start it? [Y/n]").await;
    talk.types("n").await;
    assert_eq!(talk.ends().await, Some(255));
    waits_for(&world, "train", "stopped").await;
    // A program is not asked: one line, and nothing on standard output.
    let (out, said) = laptop.ssh("train", &["true"]).await.ended(255);
    assert_eq!((out.as_str(), said.lines().count()), ("", 1), "{said}");
    assert!(said.contains("`train` is stopped; start it with: berth start train"), "{said}");
    let mut sftp = laptop.client("sftp");
    sftp.args(["-q", "-b", "-"]).arg(laptop.address("train"));
    let (_, said) = laptop.run(sftp, b"pwd\n").await.ended(255);
    assert!(said.contains("`train` is stopped"), "{said}");
    let (_, said) = laptop.run(forward(&laptop), b"").await.ended(255);
    assert!(said.contains("`train` is stopped; start it with: berth start train"), "{said}");
    waits_for(&world, "train", "stopped").await;

    // Somebody who agrees.
    let mut talk = Talk::start(laptop.ssh_as("admin+train", &["-tt"]));
    talk.shows("Start it? [Y/n]").await;
    talk.types("\r").await;
    talk.shows("yes").await;
    talk.types("echo in-$((7*7))\r").await;
    talk.shows("in-49").await;
    talk.types("exit 3\r").await;
    assert_eq!(talk.ends().await, Some(3));
}

#[tokio::test]
async fn one_that_starts_when_it_is_needed_asks_nobody() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    world.berth(&["create", "train", "--image", IMAGE, "--auto-start", "--wait"]).await.succeeded();
    world.berth(&["stop", "train", "--wait"]).await.succeeded();
    assert_eq!(laptop.ssh("train", &["echo in"]).await.succeeded(), "in\n");
    world.berth(&["stop", "train", "--wait"]).await.succeeded();
    // Forwards need it as well, and tell then that nothing listens.
    let (_, said) = laptop.run(forward(&laptop), b"").await.ended(255);
    assert!(said.contains("connect failed"), "{said}");
    waits_for(&world, "train", "running").await;
    world.berth(&["stop", "train", "--wait"]).await.succeeded();
    // A listener inside it is asked for before anything else.
    let listens = ["-o", "ExitOnForwardFailure=yes", "-R", "127.0.0.1:0:127.0.0.1:1"];
    assert_eq!(laptop.ssh_with("train", &listens, &["echo in"], b"").await.succeeded(), "in\n");
    world.berth(&["stop", "train", "--wait"]).await.succeeded();
    let mut talk = Talk::start(laptop.ssh_as("admin+train", &["-tt"]));
    talk.types("echo in-$((6*7))\r").await;
    talk.shows("in-42").await;
    assert!(!talk.shown().contains("[Y/n]"), "{}", talk.shown());
}

#[tokio::test]
async fn what_cannot_run_is_told_and_left_by_ctrl_c() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    let mut create = wanted("train");
    create.image = Some(IMAGE.to_owned());
    create.command = vec!["false".to_owned()];
    world.client().create_instance(&create).await.or_fail("create an instance");
    wait_until("its command has failed", LIMIT, async || {
        let status = world.client().instance("train").await.or_fail("show an instance").status;
        matches!(status, Status::Failed { .. }).then_some(())
    })
    .await;
    let mut talk = Talk::start(laptop.ssh_as("admin+train", &["-tt"]));
    talk.shows("`train` failed").await;
    talk.types("\x03").await;
    assert_eq!(talk.ends().await, Some(255));
}

#[tokio::test]
async fn one_that_gets_its_image_says_so() {
    let site = Site::start_on(Registry::start_with_faults().await).await;
    let laptop = Laptop::with_key(&site.world).await;
    site.docker.push(site.base.reference(), "admin/tools:1").await.succeeded();
    let images = site.world.client().images().await.or_fail("list images");
    let image = images.into_iter().find(|image| image.reference.ends_with("/admin/tools:1"));
    // From here on this machine does not have it.
    engine::docker(&["rmi", "--force", site.base.reference(), &site.docker.reference("admin/tools:1")]);
    site.registry.faults().all("GET", Fault::KeepLayers);
    let mut create = wanted("train");
    create.image = Some(image.or_fail("find the image").reference);
    site.world.client().create_instance(&create).await.or_fail("create an instance");
    let mut talk = Talk::start(laptop.ssh_as("admin+train", &["-tt"]));
    talk.shows("`train` gets its image").await;
    let (out, said) = laptop.ssh("train", &["true"]).await.ended(255);
    assert_eq!((out.as_str(), said.lines().count()), ("", 1), "{said}");
    assert!(said.contains("`train` gets its image") && said.contains("try again in a moment"), "{said}");
    site.registry.faults().none();
    talk.types("echo in-$((6*7))\r").await;
    talk.shows("in-42").await;
}

/// The tasks of a job that waits in the line have their addresses before they are there at all.
#[tokio::test]
async fn a_task_of_a_job_in_the_line_has_its_address_already() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    let limits = QuotaLimits { cpus: Some(1.0), ..QuotaLimits::default() };
    let quota = Quota { limits, raise: None };
    world.client().set_user_quota("admin", &quota).await.or_fail("set a quota");
    world.berth(&["create", "first", "--image", IMAGE, "--cpus", "0.5", "--wait"]).await.succeeded();
    let file = format!(
        r#"{{"jobName": "digits", "image": "{IMAGE}", "taskRoles": [{{"name": "main", "taskNumber": 1,
            "cpuNumber": 1, "memoryMB": 256, "gpuNumber": 0, "command": "sleep infinity"}}]}}"#
    );
    let job = SubmitJob::new(file);
    world.client().submit_job(&job).await.or_fail("submit a job");
    wait_until("its place is known", LIMIT, async || {
        world.client().job("digits").await.or_fail("show a job").queue
    })
    .await;
    let (out, said) = laptop.ssh("digits-main-0", &["true"]).await.ended(255);
    assert_eq!((out.as_str(), said.lines().count()), ("", 1), "{said}");
    assert!(said.contains("`digits` waits: number 1 in the line"), "{said}");
    laptop.ssh("digits-main-1", &["true"]).await.ended(255);
    // By our own command as well, whichever way the task is called; what will never be is told.
    for name in ["digits-main-0", "digits/main/0", "digits/main"] {
        let (_, said) = world.berth(&["ssh", name, "--", "true"]).await.ended(255);
        assert!(said.contains("`digits` waits: number 1 in the line"), "{name}: {said}");
    }
    let (_, said) = world.berth(&["cp", "digits/main/0:/etc/passwd", "/dev/null"]).await.ended(255);
    assert!(said.contains("`digits` waits: number 1 in the line"), "{said}");
    let (_, said) = world.berth(&["ssh", "digits/main/1", "--", "true"]).await.ended(1);
    assert!(said.contains("no instance named `digits/main/1`"), "{said}");
    let mut talk = Talk::start(laptop.ssh_as("admin+digits-main-0", &["-tt"]));
    talk.shows("`digits` waits: number 1 in the line").await;
    world.berth(&["rm", "first", "--wait"]).await.succeeded();
    talk.types("echo in-$((6*7))\r").await;
    talk.shows("in-42").await;
}

/// Between two tries a job has no tasks, and may pause for minutes.
#[tokio::test]
async fn a_task_keeps_its_address_between_the_tries_of_its_job() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    let file = format!(
        "berth: 1\nname: fails\nimage: {IMAGE}\ncpus: 0.5\nmemory: 100M\nretries: 20\ncommand: \"false\"\n"
    );
    world.client().submit_job(&SubmitJob::new(file)).await.or_fail("submit a job");
    wait_until("it pauses", 3 * LIMIT, async || {
        let said = laptop.ssh("fails-main-0", &["sleep 300"]).await.stderr;
        assert!(!said.contains("no instance named"), "{said}");
        said.contains("`fails` waits: its last try failed; it is tried again").then_some(())
    })
    .await;
}

/// What waits in the line says where it is and why, to whoever comes by SSH or in a browser.
#[tokio::test]
async fn one_that_waits_in_the_line_tells_its_place() {
    let world = World::start().await;
    let laptop = Laptop::with_key(&world).await;
    let limits = QuotaLimits { instances: Some(1), ..QuotaLimits::default() };
    let quota = Quota { limits, raise: None };
    world.client().set_user_quota("admin", &quota).await.or_fail("set a quota");
    for name in ["first", "train"] {
        let mut create = wanted(name);
        create.image = Some(IMAGE.to_owned());
        world.client().create_instance(&create).await.or_fail("create an instance");
    }
    let place = "number 1 in the line, user `admin` holds 1 of at most 1 instances";
    wait_until("its place is known", LIMIT, async || {
        world.client().instance("train").await.or_fail("show an instance").queue
    })
    .await;
    let (out, said) = laptop.ssh("train", &["true"]).await.ended(255);
    assert_eq!((out.as_str(), said.lines().count()), ("", 1), "{said}");
    assert!(said.contains(place) && said.contains("try again in a moment"), "{said}");
    let mut talk = Talk::start(laptop.ssh_as("admin+train", &["-tt"]));
    talk.shows(place).await;
    let mut chinese = laptop.ssh_as("admin+train", &["-tt", "-o", "SendEnv=LANG"]);
    chinese.env("LANG", "zh_CN.UTF-8");
    let mut other = Talk::start(chinese);
    other.shows("排在第 1 位，用户 `admin` 的实例配额不足").await;
    // As soon as there is room they are in its shell.
    world.berth(&["rm", "first", "--wait"]).await.succeeded();
    for talk in [&mut talk, &mut other] {
        talk.types("echo in-$((6*7))\r").await;
        talk.shows("in-42").await;
    }
}
