//! An image that wants more than it may have: nothing of what it says about itself changes what its instance is given.

use tests::{
    LIMIT, OrFail as _, Setup, World,
    engine::{self, LocalImage, put_busybox},
    wait_until_agreed,
};

const WISHES: [&str; 9] = [
    "VOLUME /vol",
    "LABEL berth.cards=GPU-1,GPU-2",
    "LABEL berth.cluster=another",
    "LABEL berth.instance=ins_0190f2c3a1b27cc09d3e5f60718293a4",
    "LABEL berth.network=root",
    "HEALTHCHECK --interval=1s CMD /bin/touch /userhome/past-the-agent",
    "ENV NVIDIA_VISIBLE_DEVICES=all",
    "ENTRYPOINT [\"/bin/sh\", \"-c\", \"touch /userhome/past-the-agent; sleep 1000\"]",
    "EXPOSE 22",
];

#[tokio::test]
async fn an_image_gets_nothing_by_asking() {
    let root = tempfile::tempdir().or_fail("make a directory");
    put_busybox(root.path(), "bin/busybox", &["sh", "cat", "dd", "echo", "sleep", "touch"]);
    let image = LocalImage::of_directory("hostile", root.path(), &WISHES);
    let config = "[envd]\ndisk_limit = \"8M\"\n".to_owned();
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    world.berth(&["create", "a1", "--image", image.reference(), "--wait"]).await.succeeded();
    let container = world.only_container();
    let label = |name: &str| engine::inspect(&container, &format!("index .Config.Labels \"berth.{name}\""));
    let id = world.client().instance("a1").await.or_fail("show an instance").id;
    assert_eq!(
        ["cards", "cluster", "instance", "network"].map(label),
        ["", world.cluster().as_str(), id.as_str(), "admin"]
    );
    let host = |what: &str| engine::inspect(&container, &format!("json .HostConfig.{what}"));
    assert_eq!(["Privileged", "PublishAllPorts"].map(host), ["false", "false"]);
    assert!(
        ["Devices", "DeviceRequests", "CapAdd"]
            .map(host)
            .iter()
            .all(|one| matches!(one.as_str(), "null" | "[]"))
    );
    assert_eq!(engine::inspect(&container, "json .Config.Healthcheck.Test"), r#"["NONE"]"#);
    let cards = ["exec", "a1", "--", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES"];
    assert_eq!(world.berth(&cards).await.succeeded(), "void\n");

    // It is the same container after a restart: none of its labels makes it another one.
    let made = engine::inspect(&container, ".Id");
    world.berth(&["restart", "a1", "--wait"]).await.succeeded();
    assert_eq!(engine::inspect(&container, ".Id"), made);
    assert!(!world.data().join("home/admin/past-the-agent").exists(), "something ran past the agent");

    // A volume of its own is no way around the limit on its files.
    let fill = ["exec", "a1", "--", "dd", "if=/dev/zero", "of=/vol/large", "bs=1M", "count=24"];
    world.berth(&fill).await.succeeded();
    wait_until_agreed("it is stopped for its files", LIMIT, async || {
        let status = world.client().instance("a1").await.or_fail("show an instance").status;
        let is_over =
            matches!(&status, gateway_api::Status::Failed { reason, .. } if reason.contains("8 MB"));
        if is_over { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}
