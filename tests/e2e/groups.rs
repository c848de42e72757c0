//! Who leaves a group no longer sees its files: not in an instance that runs, and not in one that is started later. Who
//! joins one sees its files from the next start on.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

use gateway_api::{Status, people::ChangeUser};
use tempfile::TempDir;
use tests::{LIMIT, Laptop, OrFail as _, Setup, Talk, World, engine, wait_until_agreed, wanted};

/// How a client of SFTP begins; the server answers with what it can do.
const HELLO: &str = "\0\0\0\x05\x01\0\0\0\x03";

/// A world where each group has a share, and the group `vision`.
async fn world_with_shares(root: &TempDir) -> World {
    std::fs::set_permissions(root.path(), Permissions::from_mode(0o700)).or_fail("close a directory");
    let config = format!(
        "[envd.storage.share]\nroot = \"{}\"\nat = \"/mnt/share/{{group}}\"\nkey = \"group\"\n",
        root.path().display()
    );
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    world.client().add_group("vision").await.or_fail("add a group");
    world
}

fn join(group: &str) -> ChangeUser {
    ChangeUser { group: Some(group.to_owned()), ..ChangeUser::default() }
}

#[tokio::test]
async fn a_group_that_is_left_takes_its_files_along() {
    let root = tempfile::tempdir().or_fail("make a directory");
    let world = world_with_shares(&root).await;
    let (admin, ana) = (world.client(), world.person("ana").await);
    admin.change_user("ana", &join("vision")).await.or_fail("join a group");
    for name in ["runs", "rests"] {
        ana.create_instance(&wanted(name)).await.or_fail("create an instance");
    }
    let run = async |name: &str, line: &str| -> Result<String, String> {
        let ran = ana.run(name, &["sh", "-c", line], b"").await.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    };
    let says = async |name: &str, line: &str, expected: &str| {
        wait_until_agreed(&format!("`{line}` in `{name}`"), LIMIT, async || {
            let said = run(name, line).await?;
            if said == expected { Ok(()) } else { Err(said) }
        })
        .await;
    };
    says("runs", "echo ours > /mnt/share/vision/x; echo mine > /mine; cat /mnt/share/vision/x", "ours").await;
    says("rests", "cat /mnt/share/vision/x", "ours").await;
    ana.stop_instance("rests").await.or_fail("stop an instance");
    wait_until_agreed("`rests` is stopped", LIMIT, async || {
        let status = ana.instance("rests").await.map_err(|error| error.to_string())?.status;
        if matches!(status, Status::Stopped { .. }) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;

    admin.change_user("ana", &join("default")).await.or_fail("leave a group");
    let look = "cat /mnt/share/vision/x 2>&1 || cat /mine";
    says("runs", &format!("({look}) | tail -n 1"), "mine").await;
    ana.start_instance("rests").await.or_fail("start an instance");
    says("rests", "cat /mnt/share/vision/x 2>/dev/null; echo looked", "looked").await;
    assert!(root.path().join("vision/x").exists(), "the group's files are where they were");
}

#[tokio::test]
async fn the_files_of_a_group_that_is_joined_are_there_from_the_next_start_on() {
    let root = tempfile::tempdir().or_fail("make a directory");
    std::fs::set_permissions(root.path(), Permissions::from_mode(0o700)).or_fail("close a directory");
    let config = format!(
        "[envd.storage.share]\nroot = \"{}\"\nat = \"/mnt/share\"\nkey = \"group\"\ngroups = [\"vision\"]\n",
        root.path().display()
    );
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    world.client().add_group("vision").await.or_fail("add a group");
    world.berth(&["create", "train", "--wait"]).await.succeeded();
    let run = async |line: &str| world.berth(&["exec", "train", "--", "sh", "-c", line]).await.succeeded();
    run("echo mine > /mine; test ! -e /mnt/share").await;
    let before = engine::inspect(&world.only_container(), ".State.Pid");
    world.client().change_user("admin", &join("vision")).await.or_fail("join a group");
    // What envd heard before this it heard before the group, too.
    world.berth(&["create", "other", "--wait"]).await.succeeded();
    world.berth(&["rm", "other", "--wait"]).await.succeeded();
    assert_eq!(engine::inspect(&world.only_container(), ".State.Pid"), before, "nothing stops it for more");

    world.berth(&["stop", "train", "--wait"]).await.succeeded();
    world.berth(&["start", "train", "--wait"]).await.succeeded();
    assert_eq!(run("echo ours > /mnt/share/x; cat /mine /mnt/share/x").await, "mine\nours\n");
    assert!(root.path().join("vision/x").exists());
}

#[tokio::test]
async fn files_without_an_instance_are_closed_when_their_group_is_left() {
    let root = tempfile::tempdir().or_fail("make a directory");
    let world = world_with_shares(&root).await;
    let laptop = Laptop::with_key(&world).await;
    world.client().change_user("admin", &join("vision")).await.or_fail("join a group");
    std::fs::write(laptop.path("plan"), "ours").or_fail("write a file");
    let sftp = || {
        let mut sftp = laptop.client("sftp");
        sftp.args(["-q", "-b", "-", "admin@127.0.0.1"]);
        sftp
    };
    laptop.run(sftp(), b"put plan /mnt/share/vision/plan\n").await.succeeded();
    // By hand: the usual client looks at its connection only when it is told to do something.
    let mut server = laptop.ssh_as("admin", &["-s"]);
    server.arg("sftp");
    let mut open = Talk::start(server);
    open.types(HELLO).await;
    open.shows("@openssh.com").await;

    world.client().change_user("admin", &join("default")).await.or_fail("leave a group");
    assert_eq!(open.ends().await, Some(255), "{}", open.shown());
    let (_, said) = laptop.run(sftp(), b"get /mnt/share/vision/plan got\n").await.ended(1);
    assert!(said.contains("not found"), "{said}");
    assert_eq!(std::fs::read(root.path().join("vision/plan")).or_fail("read a file"), b"ours");
}
