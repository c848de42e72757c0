//! Who gets which storage, and what becomes of links in their place.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use envd_api::control::{Failure, InstanceSpec, Observation};
use gateway_api::{Goal, InstanceId};
use tempfile::TempDir;

use crate::cluster::{Cluster, docker, inspect, name, spec};

/// Roots as a site might have them, and the table that names them.
fn site() -> (TempDir, String) {
    let site = tempfile::Builder::new().prefix("berth-site-").tempdir().unwrap();
    let root = |name: &str, mode: u32| {
        let root = site.path().join(name);
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, Permissions::from_mode(mode)).unwrap();
        root
    };
    let (nas, share, gdata, nas2) =
        (root("nas", 0o755), root("share", 0o700), root("gdata", 0o755), root("nas2", 0o700));
    fs::write(gdata.join("set"), b"numbers").unwrap();
    let table = |id: &str, root: &Path, rest: &str| {
        format!("[envd.storage.{id}]\nroot = \"{}\"\n{rest}\n", root.display())
    };
    let config = [
        table("nas", &nas, "at = \"/mnt/user/{user}\"\nkey = \"user\"\nowner = \"1234:2345\""),
        table("share", &share, "at = \"/mnt/share/{group}\"\nkey = \"group\""),
        table("gdata", &gdata, "at = \"/gdata\"\nkey = \"shared\"\nread_only = true"),
        table("nas2", &nas2, "at = \"/mnt2/user/{user}\"\nkey = \"user\"\ngroups = [\"vision\"]"),
    ];
    (site, config.concat())
}

#[tokio::test]
async fn each_user_gets_what_the_table_says_and_nothing_else() {
    let (site, config) = site();
    let cluster = Cluster::down(Some(&config)).up().await;
    let shown = async |group: &str| -> Vec<String> {
        let mounted = cluster.client.storage("alice", group).await.unwrap();
        mounted.iter().map(|one| format!("{} {} {}", one.storage, one.at, one.read_only)).collect()
    };
    let of_lab = [
        "home /userhome false",
        "gdata /gdata true",
        "nas /mnt/user/alice false",
        "share /mnt/share/lab false",
    ];
    assert_eq!(shown("lab").await, of_lab);
    assert_eq!(shown("vision").await.last().unwrap(), "share /mnt/share/vision false");
    assert!(shown("vision").await.contains(&"nas2 /mnt2/user/alice false".to_owned()));

    let id = InstanceId::new();
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    let mounts = inspect(&id, "{{range .Mounts}}{{.Destination}} {{.RW}}\n{{end}}");
    let mut mounts: Vec<_> = mounts.lines().collect();
    mounts.sort_unstable();
    let ours = ["/.berth/agent false", "/.berth/door false", "/.berth/tools false"];
    let table = ["/gdata false", "/mnt/share/lab true", "/mnt/user/alice true", "/userhome true"];
    assert_eq!(mounts, [&ours[..], &table].concat());

    let run = |line: &str| docker(&["exec", &name(&id), "sh", "-c", line]);
    assert_eq!(run("cat /gdata/set; touch /gdata/x 2>/dev/null || echo no"), "numbersno\n");
    run("echo mine >/mnt/user/alice/a; echo ours >/mnt/share/lab/b");
    assert_eq!(fs::read(site.path().join("nas/alice/a")).unwrap(), b"mine\n");
    assert_eq!(fs::read(site.path().join("share/lab/b")).unwrap(), b"ours\n");
    let owner = fs::metadata(site.path().join("nas/alice")).unwrap();
    assert_eq!((owner.uid(), owner.gid(), owner.mode() & 0o7777), (1234, 2345, 0o2770));
    let file = fs::metadata(site.path().join("nas/alice/a")).unwrap();
    assert_eq!(file.gid(), 2345, "files get the group of the storage");
    assert_eq!(fs::read_dir(site.path().join("nas2")).unwrap().count(), 0);
}

/// Something that the site has mounted below one of its roots. Dropping it takes it away.
struct Mounted(PathBuf);

impl Mounted {
    fn at(path: PathBuf) -> Self {
        fs::create_dir(&path).unwrap();
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", "mode=777", "tmpfs"]).arg(&path).status();
        assert!(done.unwrap().success());
        Self(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test]
async fn what_is_read_only_is_so_below_as_well() {
    let (site, config) = site();
    let below = Mounted::at(site.path().join("gdata/below"));
    let cluster = Cluster::down(Some(&config)).up().await;
    let id = InstanceId::new();
    cluster.put(&id, 1, Goal::Running, &spec()).await;
    cluster.wait_for_running(&id, 1).await;
    let run = |line: &str| docker(&["exec", &name(&id), "sh", "-c", line]);
    assert_eq!(run("touch /gdata/below/x 2>/dev/null || echo no"), "no\n");
    assert_eq!(fs::read_dir(&below.0).unwrap().count(), 0);
    // Whatever the engine's version makes of its recursive ones.
    let format = "{{range .HostConfig.Mounts}}{{if .ReadOnly}}{{.BindOptions.NonRecursive}} {{end}}{{end}}";
    assert_eq!(inspect(&id, format).trim(), "true true true true", "agent, door, tools and /gdata");
}

#[tokio::test]
async fn a_link_where_a_directory_should_be_is_refused_until_it_is_gone() {
    let cluster = Cluster::new().await;
    let precious = tempfile::tempdir().unwrap();
    fs::write(precious.path().join("secret"), b"host").unwrap();
    let home = cluster.data.path().join("home/mallory");
    symlink(precious.path(), &home).unwrap();
    let (id, spec) = (InstanceId::new(), InstanceSpec { user: "mallory".to_owned(), ..spec() });
    cluster.put(&id, 1, Goal::Running, &spec).await;
    let observed = cluster
        .wait_for(&id, "refused", |observed| matches!(observed.observation, Observation::Failed { .. }))
        .await;
    let Observation::Failed { failure, message, .. } = observed.observation else { unreachable!() };
    assert_eq!(failure, Failure::Refused);
    assert!(message.contains("`mallory` in the storage `home` is a link"), "{message}");
    assert_eq!(cluster.containers().len(), 0, "nothing half made");

    fs::remove_file(&home).unwrap();
    cluster.wait_for_running(&id, 1).await;
    assert_eq!(docker(&["exec", &name(&id), "ls", "/userhome"]), "");
    // The same once more, before a start of the container that is there now.
    cluster.put(&id, 2, Goal::Stopped, &spec).await;
    cluster.wait_for_exit(&id, 2).await;
    fs::remove_dir(&home).unwrap();
    symlink(precious.path(), &home).unwrap();
    cluster.put(&id, 3, Goal::Running, &spec).await;
    cluster
        .wait_for(&id, "refused again", |observed| {
            observed.generation == Some(3) && matches!(observed.observation, Observation::Failed { .. })
        })
        .await;
    assert_eq!(fs::read_dir(precious.path()).unwrap().count(), 1);
}
