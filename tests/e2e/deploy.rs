//! Berth as a service: the installation, what the service manager is told, and what says what is wrong.

use std::{
    fs::Permissions,
    os::unix::{fs::PermissionsExt as _, net::UnixDatagram},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tests::{LIMIT, OrFail as _, Program, World, programs, wait_until};

/// Whom the gateway runs as here: somebody who is on every Debian, so that no user is made.
const USER: &str = "daemon";

#[test]
fn an_installation_is_whole_runs_again_and_is_removed_but_for_its_data() {
    let root = tempfile::tempdir().or_fail("make a directory");
    let at = |path: &str| root.path().join(path);
    install(root.path(), &["--no-start"]);
    for program in ["gateway", "envd", "envd-agent", "berth"] {
        assert_eq!(mode(&at("usr/local/bin").join(program)), 0o755, "{program}");
    }
    // Both programs write here, and only root can get in the way of root.
    assert_eq!(mode(&at("var/lib/berth")), 0o1770);
    assert_eq!((mode(&at("var/lib/berth/home")), mode(&at("var/lib/berth/keys"))), (0o700, 0o700));
    let settings = at("var/lib/berth/berth.toml");
    assert!(read(&settings).contains("\ngateway_user = 1\n"), "envd has to know whom to let in");
    for program in ["gateway", "envd"] {
        let checked = check_config(&at("usr/local/bin").join(program), &at("var/lib/berth"));
        assert!(checked.status.success(), "{checked:?}");
    }

    // An upgrade: the programs are new, what the site has set stays.
    std::fs::write(&settings, format!("{}\n# ours\n", read(&settings))).or_fail("change the settings");
    std::fs::write(at("usr/local/bin/berth"), "old").or_fail("spoil a program");
    install(root.path(), &[]);
    assert!(read(&settings).ends_with("\n# ours\n"));
    assert_ne!(std::fs::read(at("usr/local/bin/berth")).or_fail("read a program"), b"old");

    install(root.path(), &["--uninstall"]);
    assert!(!at("usr/local/bin/gateway").exists() && !at("etc/systemd/system/berth-envd.service").exists());
    assert!(settings.exists());
}

#[test]
fn the_units_are_what_systemd_understands() {
    let root = tempfile::tempdir().or_fail("make a directory");
    install(root.path(), &["--no-start"]);
    let units: Vec<_> = ["berth-gateway", "berth-envd"]
        .map(|name| {
            let text = read(&root.path().join(format!("etc/systemd/system/{name}.service")));
            // The programs are looked for where they are, and they are not at the machine's root.
            let bin = root.path().join("usr/local/bin").display().to_string();
            let unit = root.path().join(format!("{name}.service"));
            std::fs::write(&unit, text.replace("/usr/local/bin", &bin)).or_fail("write a unit");
            unit
        })
        .into();
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&units).output();
    let verified = verified.or_fail("run systemd-analyze, of the package `systemd`");
    let said = String::from_utf8_lossy(&verified.stderr);
    // It looks at the machine's other units too.
    let ours: Vec<_> = said.lines().filter(|line| line.contains("berth-")).collect();
    assert!(verified.status.success() && ours.is_empty(), "{said}");
}

#[tokio::test]
async fn the_service_manager_hears_of_the_start_of_life_and_of_the_end() {
    let mut world = World::start().await;
    world.stop_gateway().await;
    world.stop_envd().await;
    let socket = world.data().join("notify.sock");
    let manager = UnixDatagram::bind(&socket).or_fail("be the service manager");
    manager.set_read_timeout(Some(LIMIT)).or_fail("set a limit");
    for name in ["envd", "gateway"] {
        let mut command = world.program(name);
        command.env("NOTIFY_SOCKET", &socket).env("BERTH_AGENT", programs().join("envd-agent"));
        command.env("BERTH_HTTP", "127.0.0.1:0").env("BERTH_SSH", "127.0.0.1:0");
        // A second's watchdog, for the gateway, which faces the network.
        command.env("WATCHDOG_USEC", "1000000");
        let program = Program::start(name, command, world.data());
        assert_eq!(told(&manager), "READY=1", "{name}");
        if name == "gateway" {
            assert_eq!((told(&manager), told(&manager)), ("WATCHDOG=1".to_owned(), "WATCHDOG=1".to_owned()));
        }
        assert!(program.terminate(LIMIT).await.success(), "{name}");
        let last = std::iter::repeat_with(|| told(&manager)).find(|news| news != "WATCHDOG=1");
        assert_eq!(last.as_deref(), Some("STOPPING=1"), "{name}");
    }
}

#[test]
fn all_mistakes_of_the_settings_are_told_at_once_and_nothing_is_made() {
    let data = tempfile::tempdir().or_fail("make a directory");
    let settings = "[gateway]\nhttp = 'nowhere'\nkeep_removed_days = 0\nunheard_of = 1\n[gateway.tls]\ncert = 'a'\n\
                    [envd]\ndocker = 'tcp://10.0.0.1'\nunheard_of = 1\nnetwork_pool = 'everywhere'\n\
                    [envd.storage.data]\nroot = 'relative'\n";
    std::fs::write(data.path().join("berth.toml"), settings).or_fail("write the settings");
    let expected = [
        ("gateway", ["gateway.http", "gateway.keep_removed_days", "gateway.unheard_of", "gateway.tls.cert"]),
        ("envd", ["docker", "envd.unheard_of", "network_pool", "envd.storage.data"]),
    ];
    for (program, mistakes) in expected {
        let checked = check_config(&programs().join(program), data.path());
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert_eq!(checked.status.code(), Some(64), "{program}: {said}");
        for mistake in mistakes {
            assert!(said.contains(mistake), "{program} says nothing of `{mistake}`:\n{said}");
        }
    }
    let left: Vec<_> = std::fs::read_dir(data.path()).or_fail("look at the directory").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test]
async fn the_doctor_finds_a_healthy_site_healthy_and_names_what_is_broken() {
    let mut world = World::start().await;
    let data = world.data().display().to_string();
    // As an installation makes it.
    std::fs::set_permissions(&data, Permissions::from_mode(0o700)).or_fail("close the data directory");
    world.berth(&["doctor"]).await.succeeded();
    world.berth(&["doctor", "--server", &data]).await.succeeded();

    world.kill_envd();
    wait_until("the gateway misses envd", LIMIT, async || {
        world.unwell().await.is_ok_and(|unwell| !unwell.is_empty()).then_some(())
    })
    .await;
    let settings = world.data().join("berth.toml");
    std::fs::write(&settings, "[envd]\nunheard_of = 1\n").or_fail("spoil the settings");
    // What a user cannot mend is told, and is no failure of theirs.
    assert_found(&world, &["doctor"], "warn", &["cluster"]).await;
    assert_found(&world, &["doctor", "--server", &data], "fail", &["envd", "unheard_of"]).await;

    world.kill_gateway();
    std::fs::remove_file(&settings).or_fail("mend the settings");
    assert_found(&world, &["doctor"], "fail", &["gateway"]).await;
    assert_found(&world, &["doctor", "--server", &data], "fail", &["gateway", "envd"]).await;
}

/// Each of these is named in a finding of that verdict, which says what to do.
async fn assert_found(world: &World, arguments: &[&str], verdict: &str, named: &[&str]) {
    let ran = world.berth(&[arguments, &["--json"]].concat()).await;
    let (report, _) = ran.ended(i32::from(verdict == "fail"));
    let report: Vec<serde_json::Value> = serde_json::from_str(&report).or_fail("read the report");
    let found: Vec<_> = report.iter().filter(|finding| finding["verdict"] == verdict).collect();
    assert!(found.iter().all(|finding| finding["hint"].is_string()), "{found:?}");
    for name in named {
        assert!(found.iter().any(|finding| finding.to_string().contains(name)), "{name}: {found:?}");
    }
}

/// Runs the script with `root` as the machine's root.
#[track_caller]
fn install(root: &Path, arguments: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("deploy").join("install.sh");
    let mut command = Command::new(script);
    command.args(arguments).env("DESTDIR", root).env("BERTH_USER", USER).env("BERTH_BIN", programs());
    let done = command.output().or_fail("run install.sh");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn check_config(program: &PathBuf, data: &Path) -> Output {
    let mut command = Command::new(program);
    command.arg("check-config").env("BERTH_DATA", data).env("BERTH_AGENT", programs().join("envd-agent"));
    for inherited in ["BERTH_HTTP", "BERTH_APPS", "BERTH_SSH", "BERTH_REGISTRY"] {
        command.env_remove(inherited);
    }
    command.output().or_fail("run check-config")
}

/// The next that it tells.
#[track_caller]
fn told(manager: &UnixDatagram) -> String {
    let mut news = [0; 256];
    let length = manager.recv(&mut news).or_fail("hear of the program");
    String::from_utf8_lossy(&news[..length]).trim_end().to_owned()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).or_fail(format!("look at {}", path.display())).permissions().mode() & 0o7777
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).or_fail(format!("read {}", path.display()))
}
