//! Berth as a service: the installation, what the service manager is told, and what says what is wrong.

use std::{
    fs::Permissions,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        net::UnixDatagram,
    },
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tests::{LIMIT, OrFail as _, Program, Registry, Setup, World, programs, wait_until, wait_until_agreed};

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
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        let address = read(&at("var/lib/berth/registry/address"));
        assert!(program == "envd" || said.contains(&format!("registry = \"{}\"", address.trim())), "{said}");
    }

    // An upgrade: the programs are new, what the site has set stays.
    std::fs::write(&settings, format!("{}\n# ours\n", read(&settings))).or_fail("change the settings");
    std::fs::write(at("usr/local/bin/berth"), "old").or_fail("spoil a program");
    install(root.path(), &[]);
    assert!(read(&settings).ends_with("\n# ours\n"));
    assert_ne!(std::fs::read(at("usr/local/bin/berth")).or_fail("read a program"), b"old");

    install(root.path(), &["--uninstall"]);
    for gone in ["bin/gateway", "lib/berth"] {
        assert!(!at("usr/local").join(gone).exists(), "{gone}");
    }
    let units: Vec<_> = std::fs::read_dir(at("etc/systemd/system")).or_fail("look at the units").collect();
    assert!(units.is_empty() && settings.exists(), "{units:?}");
}

#[test]
fn an_upgrade_leaves_settings_of_before_the_registry_alone_and_says_what_to_add() {
    let root = tempfile::tempdir().or_fail("make a directory");
    let data = root.path().join("var/lib/berth");
    std::fs::create_dir_all(&data).or_fail("make a data directory");
    let settings = data.join("berth.toml");
    let before = "[gateway]\n[envd]\ngateway_user = 1\n";
    std::fs::write(&settings, before).or_fail("write settings");
    let said = install(root.path(), &["--no-start"]);
    assert_eq!(read(&settings), before);
    assert!(!said.contains("berth-registry.service"), "{said}");

    // What it says to add is all that there is to do.
    let keys = |of: &str| {
        let lines = said.lines().filter_map(|line| line.strip_prefix("  "));
        lines
            .filter(|line| of == "envd" || !line.starts_with("registry_files"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(keys("envd").lines().count(), 4, "{said}");
    let after = format!("[gateway]\n{}\n[envd]\ngateway_user = 1\n{}\n", keys("gateway"), keys("envd"));
    std::fs::write(&settings, &after).or_fail("write settings");
    let said = install(root.path(), &["--no-start"]);
    assert_eq!(read(&settings), after);
    assert!(said.contains("berth-registry.service"), "{said}");

    // A site with a registry of its own is not given another.
    let other = after.replace("127.0.0.1:", "registry.example.org:");
    std::fs::write(&settings, &other).or_fail("write settings");
    let said = install(root.path(), &["--no-start"]);
    assert!(read(&settings) == other && !said.contains("registry"), "{said}");
}

#[tokio::test]
async fn the_registry_of_an_installation_lets_in_whom_its_settings_name() {
    let root = tempfile::tempdir().or_fail("make a directory");
    install(root.path(), &["--no-start"]);
    let data = root.path().join("var/lib/berth");
    // As the unit does it.
    let unit = read(&root.path().join("etc/systemd/system/berth-registry.service"));
    let line = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)).or_fail("read the unit");
        let line = line.trim_start_matches('+').replace("/var/lib/berth", &data.display().to_string());
        line.replace("/usr/local", &root.path().join("usr/local").display().to_string())
    };
    let command = |line: String| {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().or_fail("read the unit"));
        command.args(words);
        command
    };
    let prepared = command(line("ExecStartPre=")).output().or_fail("prepare the registry");
    assert!(prepared.status.success(), "{prepared:?}");
    let password = std::fs::metadata(data.join("keys/registry-password")).or_fail("find the password");
    assert_eq!((password.uid(), password.mode() & 0o777), (1, 0o600), "the gateway reads it, nobody else");
    assert_eq!(mode(&data.join("registry")), 0o700);
    let _registry = Program::start("docker-registry", command(line("ExecStart=")), root.path());
    wait_until("the registry lets the gateway in", LIMIT, async || {
        let mut asked = Command::new(programs().join("gateway"));
        asked.arg("check-registry").env("BERTH_DATA", &data).env_remove("BERTH_REGISTRY");
        let asked = asked.output().or_fail("run check-registry");
        asked.status.success().then_some(())
    })
    .await;
}

#[test]
fn the_units_are_what_systemd_understands() {
    let root = tempfile::tempdir().or_fail("make a directory");
    install(root.path(), &["--no-start"]);
    let units: Vec<_> = ["berth-gateway", "berth-envd", "berth-registry"]
        .map(|name| {
            let text = read(&root.path().join(format!("etc/systemd/system/{name}.service")));
            // The programs are looked for where they are, and they are not at the machine's root.
            let local = root.path().join("usr/local/").display().to_string();
            let unit = root.path().join(format!("{name}.service"));
            std::fs::write(&unit, text.replace("/usr/local/", &local)).or_fail("write a unit");
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

#[test]
fn the_compose_file_is_what_compose_understands_and_the_gateway_in_it_has_no_engine() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("deploy").join("compose/compose.yaml");
    let has_compose = Command::new("docker").args(["compose", "version"]).output();
    if has_compose.is_ok_and(|asked| asked.status.success()) {
        let read =
            Command::new("docker").args(["compose", "--file"]).arg(&file).args(["config", "-q"]).output();
        let read = read.or_fail("run docker compose");
        assert!(read.status.success() && read.stderr.is_empty(), "{}", String::from_utf8_lossy(&read.stderr));
    }
    let to_json = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";
    let read = Command::new("/usr/bin/python3").args(["-c", to_json]).arg(&file).output();
    let read = read.or_fail("run python3, with the package `python3-yaml`");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let compose: serde_json::Value = serde_json::from_slice(&read.stdout).or_fail("read the file");
    let services = compose["services"].as_object().or_fail("find the services");
    let mut names: Vec<_> = services.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["envd", "gateway", "prepare", "registry"]);
    for (name, service) in services {
        let volumes = service["volumes"].as_array().or_fail("find the volumes");
        let has_engine = volumes.iter().any(|volume| volume.to_string().contains("docker.sock"));
        assert_eq!(has_engine, name == "envd", "{name}: {volumes:?}");
        assert_eq!(service["security_opt"][0], "no-new-privileges:true", "{name}");
        // What `berth.toml` says counts, unless somebody says it here.
        let http = service["environment"].get("BERTH_HTTP");
        assert_eq!(http, Some(&serde_json::Value::Null), "{name}");
    }
    assert_eq!(
        (&services["gateway"]["user"], &services["gateway"]["cap_drop"][0]),
        (&"990:990".into(), &"ALL".into())
    );
}

/// A disk that the site has mounted. Dropping it takes it away.
struct Mounted(PathBuf);

impl Mounted {
    #[track_caller]
    fn at(path: PathBuf, options: &str) -> Self {
        std::fs::create_dir(&path).or_fail("make a directory");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path).status();
        assert!(done.or_fail("run mount").success());
        Self(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_storage_that_others_can_enter_and_that_is_not_mounted_nosuid_is_warned_of() {
    let data = tempfile::tempdir().or_fail("make a directory");
    let site = tempfile::tempdir().or_fail("make a directory");
    std::fs::set_permissions(site.path(), Permissions::from_mode(0o755)).or_fail("open a directory");
    let disks = [("loose", "mode=755"), ("strict", "mode=755,nosuid"), ("closed", "mode=700")];
    let disks = disks.map(|(name, options)| (name, Mounted::at(site.path().join(name), options)));
    let tables = disks.iter().map(|(name, disk)| {
        format!("[envd.storage.{name}]\nroot = '{}'\nat = '/{name}'\nkey = 'shared'\n", disk.0.display())
    });
    std::fs::write(data.path().join("berth.toml"), tables.collect::<String>()).or_fail("write the settings");
    let checked = check_config(&programs().join("envd"), data.path());
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success() && said.contains("nosuid"), "{checked:?}");
    let warned =
        disks.iter().map(|(name, _)| *name).filter(|name| said.contains(&format!("storage.{name}`")));
    assert_eq!(warned.collect::<Vec<_>>(), ["loose"], "{said}");
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

#[tokio::test]
async fn health_and_doctor_say_how_the_registry_is() {
    let mut registry = Registry::start().await;
    let world = World::start_with(Setup { config: registry.config(), ..Setup::default() }).await;
    let data = world.data().display().to_string();
    std::fs::set_permissions(&data, Permissions::from_mode(0o700)).or_fail("close the data directory");
    let says = async |ok: bool, message: &str| {
        wait_until_agreed("health says how the registry is", LIMIT, async || {
            let parts = world.parts().await?;
            let part = parts.iter().find(|part| part["name"] == "registry").ok_or("there is no such part")?;
            let said = part["message"].as_str().unwrap_or_default();
            if part["ok"] == ok && said.contains(message) { Ok(()) } else { Err(part.to_string()) }
        })
        .await;
    };
    says(true, "").await;
    world.berth(&["doctor", "--server", &data]).await.succeeded();

    let password = registry.password();
    registry.set_password_file("not it");
    says(false, "does not accept the gateway's login").await;
    assert_found(&world, &["doctor", "--server", &data], "fail", &["registry_password_file"]).await;
    registry.set_password_file(&password);
    says(true, "").await;

    registry.kill();
    says(false, "does not answer").await;
    assert_found(&world, &["doctor", "--server", &data], "fail", &["berth-registry"]).await;
}

#[tokio::test]
async fn a_site_without_a_registry_is_told_what_that_means() {
    let world = World::start().await;
    let parts = world.parts().await.or_fail("ask how the parts are");
    let part = parts.iter().find(|part| part["name"] == "registry").or_fail("find the registry");
    assert!(part["ok"] == true && part["message"].as_str().is_some_and(|said| said.starts_with("none: ")));
    let data = world.data().display().to_string();
    std::fs::set_permissions(&data, Permissions::from_mode(0o700)).or_fail("close the data directory");
    let report = world.berth(&["doctor", "--server", &data, "--json"]).await.succeeded();
    let report: Vec<serde_json::Value> = serde_json::from_str(&report).or_fail("read the report");
    let found = report.iter().find(|finding| finding["check"] == "registry").or_fail("find the registry");
    assert!(found["verdict"] == "warn" && found["hint"].is_string(), "{found}");
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

/// Runs the script with `root` as the machine's root; what it says.
#[track_caller]
fn install(root: &Path, arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("deploy").join("install.sh");
    let mut command = Command::new(script);
    command.args(arguments).env("DESTDIR", root).env("BERTH_USER", USER).env("BERTH_BIN", programs());
    let done = command.output().or_fail("run install.sh");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    said
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
