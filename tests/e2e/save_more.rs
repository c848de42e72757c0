//! More of what is saved and who gets it: while much is written, when it is stopped, with other programs, by groups.

use std::process::Command;

use gateway_api::{
    Code,
    image::{ChangeImage, ImageState, SaveInstance, Share},
    job::SubmitJob,
    people::ChangeUser,
    quota::{Quota, QuotaLimits},
};
use tests::{
    Fault, IMAGE, LIMIT, OrFail as _, Registry, Setup,
    engine::{self, PrivateEngine},
    nvml, wait_until,
};

use crate::saving::{Site, gone, saved};

#[tokio::test]
async fn an_image_starts_as_soon_as_it_is_saved_without_a_download_and_leaves_no_name() {
    let site = Site::start_on(Registry::start_with_faults().await).await;
    site.instance("train").await;
    site.exec("train", "dd if=/dev/urandom of=/large bs=1M count=100; echo 1 > /kept").await;
    let first = site.save(&["train", "1"]).await;
    // On top of one that the engine may not know yet.
    site.exec("train", "echo 2 >> /kept").await;
    let second = site.save(&["train", "2"]).await;
    site.registry.faults().all("GET", Fault::Answer(503, "{}"));
    for (name, image, kept) in [("later", second, "1\n2\n"), ("sooner", first, "1\n")] {
        site.world.berth(&["create", name, "--image", &image.reference, "--wait"]).await.succeeded();
        assert_eq!(site.exec(name, "cat /kept").await, kept);
    }
    site.registry.faults().none();
    let third = site.save(&["train", "3"]).await;
    site.world.berth(&["image", "rm", "train:3"]).await.succeeded();
    gone(&site.world.client(), &third).await;
    let tag = format!("{}/admin/train:3", site.registry.address());
    assert_eq!(engine::docker(&["images", "--quiet", &tag]), "");
}

#[tokio::test]
async fn an_instance_that_writes_all_the_time_and_one_that_is_stopped_are_saved() {
    let site = Site::start().await;
    site.instance("train").await;
    let write = "(while :; do head -c 200000 /dev/urandom > /w/a; mv /w/a /w/b; rm -rf /w/d; mkdir /w/d; \
                 echo 1 > /w/d/x; done) >/dev/null 2>&1 &";
    site.exec("train", &format!("mkdir /w; echo 1 > /kept; {write}")).await;
    let busy = site.save(&["train", "busy"]).await;
    site.exec("train", "echo 2 > /kept").await;
    site.world.berth(&["stop", "train", "--wait"]).await.succeeded();
    let stopped = site.save(&["train", "stopped"]).await;
    for (image, kept) in [(busy, "1"), (stopped, "2")] {
        let reference = site.pull(&image).await;
        let seen = engine::docker(&["run", "--rm", "--entrypoint", "cat", &reference, "/kept"]);
        assert_eq!(seen, kept);
        engine::docker(&["rmi", "--force", &reference]);
    }
}

#[tokio::test]
async fn what_is_written_through_memory_between_two_saves_is_in_the_second() {
    let site = Site::start().await;
    // The default image has Python.
    site.world.berth(&["create", "train", "--memory", "512M", "--wait"]).await.succeeded();
    let script = "import mmap, os, time
file = open('/mapped', 'w+b', buffering=0)
file.truncate(4096)
memory = mmap.mmap(file.fileno(), 4096)
memory[:6] = b'first.'
open('/begun', 'w')
while not os.path.exists('/go'): time.sleep(0.05)
memory[:6] = b'second'
open('/over', 'w')
time.sleep(1000)";
    let run = format!("cat > /write.py <<'END'\n{script}\nEND\npython3 /write.py > /dev/null 2>&1 &");
    site.exec("train", &run).await;
    // What changed at the moment of a save is not relied on at the next, whatever it is.
    let old = "until [ -e /begun ] && [ $(($(date +%s) - $(stat -c %Z /mapped))) -ge 2 ]; do sleep 0.2; done";
    site.exec("train", old).await;
    let first = site.save(&["train", "1"]).await;
    site.exec("train", "touch /go; until [ -e /over ]; do sleep 0.2; done").await;
    let second = site.save(&["train", "2"]).await;
    for (image, wanted) in [(first, "first."), (second, "second")] {
        let reference = site.pull(&image).await;
        let look = ["run", "--rm", "--entrypoint", "head", &reference, "-c", "6", "/mapped"];
        assert_eq!(engine::docker(&look), wanted);
        engine::docker(&["rmi", "--force", &reference]);
    }
}

#[tokio::test]
async fn a_saved_image_is_an_ordinary_one_for_other_programs_and_runs_on_an_engine_that_has_nothing() {
    let site = Site::start().await;
    site.instance("train").await;
    site.exec("train", "echo 1 > /kept; chmod 4711 /kept").await;
    site.save(&["train", "1"]).await;
    site.exec("train", "echo 2 > /more").await;
    let image = site.save(&["train", "2"]).await;
    let folder = tempfile::tempdir().or_fail("make a folder");
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(folder.path()).output();
        let output = output.or_fail(program);
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let source = format!("docker://{}", site.docker.reference("admin/train:2"));
    let who = format!("admin:{}", site.world.password());
    let copy = ["--insecure-policy", "copy", "--src-tls-verify=false", "--src-creds", &who];
    run("skopeo", &[&copy[..], &[&source, "oci:copy:2"]].concat());
    run("umoci", &["unpack", "--image", "copy:2", "unpacked"]);
    let root = folder.path().join("unpacked/rootfs");
    assert_eq!(std::fs::read_to_string(root.join("kept")).or_fail("read a file"), "1\n");
    assert_eq!(std::fs::read_to_string(root.join("more")).or_fail("read a file"), "2\n");
    // Every byte of it comes from the registry.
    let private = PrivateEngine::start().await;
    let reference = site.pull_into(&private, &image);
    let look = ["run", "--rm", "--network", "none", "--entrypoint", "sh", &reference, "-c"];
    let seen = private.run(&[&look[..], &["stat -c %a /kept; cat /kept /more; echo $COLOUR"]].concat());
    assert_eq!(seen, "4711\n1\n2\nblue");
}

#[tokio::test]
async fn a_group_shares_an_image_and_only_what_is_proposed_is_promoted() {
    let site = Site::start().await;
    let admin = site.world.client();
    admin.add_group("vision").await.or_fail("add a group");
    let [alice, bob, carol] =
        [site.world.person("alice").await, site.world.person("bob").await, site.world.person("carol").await];
    for name in ["alice", "bob"] {
        let change = ChangeUser { group: Some("vision".to_owned()), ..ChangeUser::default() };
        admin.change_user(name, &change).await.or_fail("put a user into a group");
    }
    let create =
        |image: &str| gateway_api::CreateInstance { image: Some(image.to_owned()), ..tests::wanted("mine") };
    alice.create_instance(&create(site.base.reference())).await.or_fail("create an instance");
    wait_until("it runs", LIMIT, async || {
        let instance = alice.instance("mine").await.or_fail("show an instance");
        matches!(instance.status, gateway_api::Status::Running { .. }).then_some(())
    })
    .await;
    let image = alice.save_instance("mine", &SaveInstance::default()).await.or_fail("save");
    let id = saved(&image).id.clone();
    assert_eq!(crate::saving::ended(&alice, &image).await, ImageState::Ready);
    let change = |change: ChangeImage| {
        let alice = &alice;
        let id = &id;
        async move { alice.change_image(id.as_str(), &change).await.or_fail("change an image") }
    };
    let promote = ChangeImage { platform: Some(true), ..ChangeImage::default() };

    // Nobody but its user opens what is private, an admin neither.
    let refused = admin.change_image(id.as_str(), &promote).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::Forbidden), "{refused}");
    assert!(refused.to_string().contains("propose"), "{refused}");
    change(ChangeImage { share: Some(Share::Group), ..ChangeImage::default() }).await;
    bob.create_instance(&create(&image.reference)).await.or_fail("use what the group shares");
    let refused = carol.create_instance(&create(&image.reference)).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::ImageNotFound));
    let refused = admin.change_image(id.as_str(), &promote).await.err().or_fail("be refused");
    assert_eq!(refused.code(), Some(Code::Forbidden), "{refused}");

    change(ChangeImage { proposed: Some(true), ..ChangeImage::default() }).await;
    admin.change_image(id.as_str(), &promote).await.or_fail("promote an image");
    carol.create_instance(&create(&image.reference)).await.or_fail("use what is on the platform's list");
}

#[tokio::test]
async fn an_image_that_a_job_in_the_line_needs_stays() {
    let site = Site::start().await;
    let client = site.world.client();
    site.docker.push(site.base.reference(), "admin/tools:1").await.succeeded();
    let image = client.image("tools:1").await.or_fail("show an image");
    let limits = QuotaLimits { jobs: Some(1), ..QuotaLimits::default() };
    client.set_user_quota("admin", &Quota { limits, raise: None }).await.or_fail("set a quota");
    let job = |name: &str, image: &str, command: &str| SubmitJob {
        file: format!(
            "berth: 1\nname: {name}\nimage: {image}\ncpus: 0.5\nmemory: 100M\ncommand: {command}\n"
        ),
        name: None,
        ..SubmitJob::default()
    };
    client.submit_job(&job("first", IMAGE, "sleep 1000")).await.or_fail("submit a job");
    client.submit_job(&job("later", &image.reference, "sh -c true")).await.or_fail("submit a job");
    let shown = client.image("tools:1").await.or_fail("show an image");
    assert_eq!(saved(&shown).used_by, ["admin/later"]);
    let (_, said) = site.world.berth(&["image", "rm", "tools:1"]).await.ended(1);
    assert!(said.contains("admin/later"), "{said}");
    site.world.berth(&["stop", "later", "--wait"]).await.succeeded();
    site.world.berth(&["image", "rm", "tools:1"]).await.succeeded();
}

#[tokio::test]
async fn what_an_instance_had_before_it_got_other_cards_is_saved_by_the_same_rules() {
    let directory = tempfile::tempdir().or_fail("make a directory");
    let registry = Registry::start().await;
    let nvml = Some(nvml::library(directory.path()));
    let site = Site::start_as(registry, Setup { nvml, ..Setup::default() }).await;
    let image = site.base.reference();
    let create = async |name: &str| {
        let line = ["create", name, "--image", image, "--gpus", "1", "--gpu-type", "P100", "--wait"];
        site.world.berth(&line).await.succeeded();
    };
    create("train").await;
    let canary = format!("canary-{}", rand::random::<u64>());
    let write = format!(
        "mkdir -p /tmp /data; echo {canary} > /tmp/a; echo 1 > /data/kept; echo 1 > /data/gone; \
                         echo {canary} > /data/.env; rm /bin/echo"
    );
    site.exec("train", &write).await;
    site.world.berth(&["stop", "train", "--wait"]).await.succeeded();
    create("other").await;
    site.world.berth(&["start", "train", "--wait"]).await.succeeded();
    site.exec("train", "rm /data/gone; touch /data/new").await;
    let told = site.world.berth(&["save", "train", "--dry-run"]).await.succeeded();
    assert!(told.contains("/data/.env"), "secrets from before are told too: {told}");
    let exclude = ["train", "1", "--exclude", "/data/.env", "--exclude", "/tmp"];
    let image = site.save(&exclude).await;
    let reference = site.pull(&image).await;
    let look = ["run", "--rm", "--entrypoint", "sh", &reference, "-c", "ls -A /data /tmp; ls -A / /bin"];
    let seen = engine::docker(&look);
    assert!(seen.starts_with("/data:\nkept\nnew\n\n/tmp:\n/:\n"), "{seen}");
    assert!(!seen.contains(".berth") && !seen.lines().any(|line| line == "echo"), "{seen}");
    let has = |file: &Vec<u8>| file.windows(canary.len()).any(|window| window == canary.as_bytes());
    assert!(!site.registry.contents().iter().any(has), "{canary}");
    engine::docker(&["rmi", "--force", &reference]);

    // The next save lies on this one.
    site.exec("train", "touch /data/newer").await;
    let again = site.save(&["train", "2", "--exclude", "/data/.env", "--exclude", "/tmp"]).await;
    assert!(saved(&again).added_bytes < 10_000, "{again:?}");
    assert_eq!(saved(&again).layers, saved(&image).layers + 1);
}

#[tokio::test]
async fn layers_are_compressed_as_the_site_says_and_other_programs_read_them() {
    let config = "image_compression = \"zstd\"\n".to_owned();
    let site = Site::start_as(Registry::start().await, Setup { config, ..Setup::default() }).await;
    site.instance("train").await;
    // More than one piece, which are each compressed for themselves.
    let write = "dd if=/dev/urandom of=/noise bs=1M count=3; dd if=/dev/zero of=/zeros bs=1M count=3; chmod 4711 /noise";
    site.exec("train", write).await;
    site.save(&["train", "1"]).await;
    site.exec("train", "echo 2 > /more").await;
    let image = site.save(&["train", "2"]).await;
    // The engine gets it from us, so that it need not understand it.
    site.world.berth(&["create", "next", "--image", &image.reference, "--wait"]).await.succeeded();
    let wanted = site.exec("next", "cat /noise /zeros /more | busybox sha256sum").await;
    assert_eq!(site.exec("train", "cat /noise /zeros /more | busybox sha256sum").await, wanted);

    let folder = tempfile::tempdir().or_fail("make a folder");
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(folder.path()).output();
        let output = output.or_fail(program);
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let source = format!("docker://{}", site.docker.reference("admin/train:2"));
    let who = format!("admin:{}", site.world.password());
    let manifest = run("skopeo", &["inspect", "--raw", "--tls-verify=false", "--creds", &who, &source]);
    assert_eq!(manifest.matches("image.layer.v1.tar+zstd").count(), 3, "{manifest}");
    // Debian's umoci reads gzip only, so skopeo unpacks and packs.
    let copy = ["--insecure-policy", "copy", "--src-tls-verify=false", "--src-creds", &who];
    run("skopeo", &[&copy[..], &["--dest-compress-format", "gzip", &source, "oci:copy:2"]].concat());
    run("umoci", &["unpack", "--image", "copy:2", "unpacked"]);
    let seen = run("sh", &["-c", "cd unpacked/rootfs && cat noise zeros more | sha256sum; stat -c %a noise"]);
    assert_eq!(seen, format!("{wanted}4711\n"));
}

#[tokio::test]
async fn podman_pulls_and_runs_a_saved_image() {
    let site = Site::start().await;
    site.instance("train").await;
    site.exec("train", "echo 1 > /kept; chmod 4711 /kept; rm /bin/touch").await;
    site.save(&["train", "1"]).await;
    site.exec("train", "echo 2 > /more").await;
    site.save(&["train", "2"]).await;
    let folder = tempfile::tempdir().or_fail("make a folder");
    let podman = |arguments: &[&str]| {
        let output = Command::new("podman")
            .arg("--root")
            .arg(folder.path().join("root"))
            .arg("--runroot")
            .arg(folder.path().join("run"))
            .args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file"])
            .args(arguments)
            .output()
            .or_fail("run podman, which the package `podman` has");
        assert!(output.status.success(), "podman: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (reference, who) =
        (site.docker.reference("admin/train:2"), format!("admin:{}", site.world.password()));
    podman(&["pull", "--quiet", "--tls-verify=false", "--creds", &who, &reference]);
    // Its own limits are higher than this machine may allow.
    let run =
        ["run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
    let line = "stat -c %a /kept; cat /kept /more; echo $COLOUR; ls /bin/touch || echo gone";
    let seen = podman(&[&run[..], &["--entrypoint", "sh", &reference, "-c", line]].concat());
    assert_eq!(seen, "4711\n1\n2\nblue\ngone\n");
}

#[tokio::test]
async fn what_looks_like_a_secret_is_said_before_others_can_read_it() {
    let site = Site::start().await;
    site.instance("train").await;
    site.exec("train", "mkdir -p /root/.ssh; echo key > /root/.ssh/id_ed25519").await;
    let key = "/root/.ssh/id_ed25519";
    let (_, said) = site.world.berth(&["save", "train", "1", "--wait"]).await.ended(0);
    assert!(!said.contains(key), "nobody else reads it: {said}");
    // The second save does not write it again, and its image has it all the same.
    let (_, said) = site
        .world
        .berth(&["save", "train", "2", "--everything", "--share", "group", "--wait"])
        .await
        .ended(0);
    assert!(said.contains("these look like secrets") && said.contains(key), "{said}");
    let (_, said) = site.world.berth(&["image", "share", "train:1", "everyone"]).await.ended(0);
    assert!(said.contains("the image may hold them") && said.contains(key), "{said}");
    let (_, said) = site.world.berth(&["image", "share", "train:1", "me"]).await.ended(0);
    assert!(!said.contains(key), "{said}");
}
