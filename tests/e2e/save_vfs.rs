//! Saving on an engine whose storage driver keeps no directory of a container's changes.

use gateway_api::image::{ImageState, SaveInstance};
use tests::{
    Fault, LIMIT, OrFail as _, Registry, Setup, count,
    engine::{self, PrivateEngine},
    wait_until,
};

use crate::saving::{Site, ended, saved, state};

/// One of each kind of file that an image can hold, and what is not the image's any more.
const MAKE: &str = r#"set -e; b() { busybox "$@"; }
b mkdir -p /d/many /tmp /cache; b printf 'plain\n' > /d/plain; b chmod 4711 /d/plain; b ln /d/plain /d/twice
b chown 1234:400000 /d/twice; b ln -s plain /d/link; b ln -s /no/where /d/dangling; b mkfifo -m 600 /d/pipe
b mkdir -m 1777 /d/sticky; b touch -d '2017-07-14 02:40:00' /d/old; b truncate -s 9000000 /d/sparse
b printf end >> /d/sparse; b printf x > '/d/名字 ünï'; b printf x > $(b printf '/d/\377\376odd')
long=$(b printf '%0.200d' 0); b mkdir /d/$long; b printf x > /d/$long/$long
i=0; while [ $i -lt 300 ]; do echo $i > /d/many/$i; i=$((i+1)); done
b ln /old/linked /d/of-the-image; echo cached > /cache/a; b ln /cache/a /d/of-cache; b ln /cache/a /d/of-cache-too
echo out > /tmp/out; b rm /old/file; b rm -r /old/folder; b rm -r /old/becomes-file; echo f > /old/becomes-file
b rm /old/becomes-folder; b mkdir /old/becomes-folder; echo f > /old/becomes-folder/x
b rm -r /old/replaced; b mkdir /old/replaced; echo new > /old/replaced/new; b rm -r /old/becomes-link
b ln -s /d /old/becomes-link; b chmod 700 /old/changed; echo no > /d/.wh.plain"#;

/// All of it, one line each. The one name that no layer can have is left out.
const TELL: &str = r#"b() { busybox "$@"; }; b find /d /old ! -name .wh.plain | b sort | while read -r path; do
links=$(b stat -c %h $path); [ -d $path ] && links=; what=$(b stat -c '%f %u %g %N' $path)
b printf '%s %s' $what $links; [ -L $path ] && echo && continue
[ -f $path ] && b stat -c ' %Y %s' $path && b sha256sum < $path || echo; done"#;

fn tell() -> String {
    // The shell would take a name with a space in it apart.
    format!("IFS='\n'\n{}", TELL.replace("$path", "\"$path\""))
}

/// The image that the files are changed in.
fn base(engine: &PrivateEngine) -> String {
    let base = engine.import_busybox("without-directories");
    let make = "busybox mkdir -p /old/folder /old/becomes-file /old/replaced /old/becomes-link; cd /old
        for f in file linked folder/x becomes-file/x becomes-folder replaced/x replaced/new becomes-link/x changed; do
        echo $f > $f; done";
    engine.run(&["run", "--name", "made", "--network", "none", &base, "/bin/sh", "-c", make]);
    engine.run(&["commit", "--change", "ENV COLOUR=blue", "made", &base]);
    engine.run(&["rm", "made"]);
    base
}

#[tokio::test]
async fn an_engine_that_keeps_no_directory_of_changes_gives_them_out_itself() {
    let private = PrivateEngine::start_with(&["--storage-driver", "vfs"]).await;
    assert_eq!(private.run(&["info", "--format", "{{.Driver}}"]), "vfs");
    let base = base(&private);
    let (config, engine) = ("image_layers_max = 3\n".to_owned(), Some(private.socket()));
    let registry = Registry::start_with_faults().await;
    let mut site = Site::start_as(registry, Setup { config, engine, ..Setup::default() }).await;
    site.world.berth(&["create", "train", "--image", &base, "--wait"]).await.succeeded();
    site.exec("train", MAKE).await;
    let wanted = site.exec("train", &tell()).await;
    assert!(wanted.lines().count() > 300, "{wanted}");

    let told = site.world.berth(&["save", "train", "--dry-run"]).await.succeeded();
    assert!(told.contains("/d/sparse"), "{told}");
    let save = ["--exclude", "/tmp", "--exclude", "/cache"];
    let image = site.save(&[&["train", "1"], &save[..]].concat()).await;
    assert_eq!((saved(&image).layers, saved(&image).frozen_ms), (3, 0), "{image:?}");
    let look = async |site: &Site, image, line: &str| {
        let reference = site.pull(image).await;
        let seen = engine::docker(&[
            "run",
            "--rm",
            "--network",
            "none",
            "--entrypoint",
            "/bin/sh",
            &reference,
            "-c",
            line,
        ]);
        engine::docker(&["rmi", "--force", &reference]);
        seen
    };
    // One of their three names is left out.
    let wanted = wanted.replace("of-cache 3 ", "of-cache 2 ").replace("of-cache-too 3 ", "of-cache-too 2 ");
    similar(&wanted, &look(&site, &image, &tell()).await);
    let seen =
        look(&site, &image, "echo $COLOUR; busybox ls -A /tmp /cache /.berth; busybox ls /d/.wh.plain; true")
            .await;
    assert_eq!(seen, "blue\n/cache:\n\n/tmp:", "what is left out is not in it");

    // Killed at any point, it goes on: first half way, then at random points.
    for round in 0..count("BERTH_VFS_SAVE_ROUNDS", 1) {
        // What no layer of an earlier round has: all of it is pushed.
        site.exec("train", "busybox dd if=/dev/urandom of=/large bs=1M count=4").await;
        let passes = if round == 0 { 2 << 20 } else { rand::random_range(0..4 << 20) };
        let held = site.registry.faults().held();
        site.registry.faults().all("PUT", Fault::Hold(passes));
        let wish = SaveInstance { tag: Some(format!("kill-{round}")), ..SaveInstance::default() };
        let client = site.world.client();
        let begun = client.save_instance("train", &wish).await.or_fail("begin to save");
        wait_until("it is on its way", LIMIT, async || (site.registry.faults().held() > held).then_some(()))
            .await;
        let now = state(&client, &begun).await;
        assert!(matches!(now, ImageState::Saving { .. }), "{now:?} after {passes} bytes");
        site.world.kill_envd();
        site.world.start_envd().await;
        site.registry.faults().none();
        assert_eq!(ended(&client, &begun).await, ImageState::Ready, "after {passes} bytes");
    }

    // The engine knows it without a download, which it could not do; an image of it is whole, in fewer layers.
    site.world.berth(&["create", "next", "--image", &image.reference, "--wait"]).await.succeeded();
    site.exec("next", "echo more > /d/more; busybox rm /d/many/7").await;
    let wanted = site.exec("next", &tell()).await;
    site.world.berth(&["stop", "next", "--wait"]).await.succeeded();
    let image = site.save(&[&["next", "1"], &save[..]].concat()).await;
    assert_eq!(saved(&image).layers, 1, "{image:?}");
    similar(&wanted, &look(&site, &image, &tell()).await);
}

/// Each line is the same; of the first that is not, both are told.
#[track_caller]
fn similar(wanted: &str, seen: &str) {
    let (mut wanted, mut seen) = (wanted.trim_end().lines(), seen.trim_end().lines());
    loop {
        let (one, other) = (wanted.next(), seen.next());
        assert_eq!(one, other);
        if one.is_none() {
            return;
        }
    }
}
