//! Who leaves a group no longer sees its files: not in an instance that runs, and not in one that is started later.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

use gateway_api::{Status, people::ChangeUser};
use tests::{LIMIT, OrFail as _, Setup, World, wait_until_agreed, wanted};

#[tokio::test]
async fn a_group_that_is_left_takes_its_files_along() {
    let root = tempfile::tempdir().or_fail("make a directory");
    std::fs::set_permissions(root.path(), Permissions::from_mode(0o700)).or_fail("close a directory");
    let config = format!(
        "[envd.storage.share]\nroot = \"{}\"\nat = \"/mnt/share/{{group}}\"\nkey = \"group\"\n",
        root.path().display()
    );
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    let (admin, ana) = (world.client(), world.person("ana").await);
    admin.add_group("vision").await.or_fail("add a group");
    let join = |group: &str| ChangeUser { group: Some(group.to_owned()), ..ChangeUser::default() };
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
