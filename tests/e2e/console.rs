//! The console and the apps in a real browser: runs the walks of `tests/browser/`.

use std::{
    fs::File,
    io::Write as _,
    panic::{AssertUnwindSafe, resume_unwind},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use futures_util::FutureExt as _;
use tests::{
    Aside, LIMIT, OrFail as _, Registry, Setup, World,
    engine::{LocalImage, put_busybox},
    nvml, wait_until, wait_until_agreed,
};

/// The images that ship the tools; `make images` makes them.
const LAB: &str = "localhost/berth/lab:latest";
const DESKTOP: &str = "localhost/berth/desktop:latest";
/// Ends a walk that hangs. Far longer than any takes, also while the machine builds and runs other tests.
const WALK_LIMIT: Duration = Duration::from_mins(40);
/// The same for the walk that looks at every page many times.
const LONG_WALK_LIMIT: Duration = Duration::from_hours(2);
/// The time that a hanging walk has to keep screenshots and traces.
const KEEP_LIMIT: Duration = Duration::from_mins(5);

/// The folder that `variable` names, else `name` beside what cargo builds, never in the clone.
fn folder(variable: &str, name: &str) -> PathBuf {
    let given = std::env::var_os(variable).map(PathBuf::from);
    given.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name(name))
}

/// The folder of screenshots: `BERTH_SHOTS`, else `screenshots`.
fn screenshots() -> PathBuf {
    let folder = folder("BERTH_SHOTS", "screenshots");
    std::fs::create_dir_all(&folder).or_fail("make a folder for screenshots");
    folder
}

/// The folder of a walk, which stays only if its test fails: `BERTH_FAILURES`, else `failures`, and in it the walk's name.
///
/// It holds the walk's output and, of each browser, screenshots, a trace, console messages and failed requests. The logs
/// of the world join them.
struct Failure {
    folder: PathBuf,
    logs: Vec<(String, PathBuf)>,
}

impl Failure {
    fn of(walk: &str, logs: Vec<(String, PathBuf)>) -> Self {
        let folder = folder("BERTH_FAILURES", "failures").join(walk);
        // An earlier run may have failed.
        if folder.exists() {
            std::fs::remove_dir_all(&folder).or_fail("remove what an earlier failure left");
        }
        std::fs::create_dir_all(&folder).or_fail("make a folder for a failure");
        Self { folder, logs }
    }

    /// The file of the walk's output.
    fn output(&self) -> PathBuf {
        self.folder.join("walk.log")
    }
}

impl Drop for Failure {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
            return;
        }
        for (name, log) in &self.logs {
            let _ = std::fs::copy(log, self.folder.join(format!("{name}.log")));
        }
        let _ = writeln!(std::io::stderr().lock(), "--- browser walk: see {}", self.folder.display());
    }
}

/// Walks `tests/browser/<name>.test.mjs` at the console of `world`, as its user.
async fn walk(world: &World, name: &str) {
    walking(world, name).await;
}

/// The same, on its own: what it returns borrows nothing, so that the world can be changed meanwhile.
fn walking(world: &World, name: &str) -> impl Future<Output = ()> + use<> {
    walking_for(world, name, WALK_LIMIT, &world.doors())
}

fn walking_for(
    world: &World,
    name: &str,
    limit: Duration,
    doors: &[u16],
) -> impl Future<Output = ()> + use<> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
    assert!(
        folder.join("node_modules/playwright-core").exists(),
        "playwright-core is not installed: run `make test-packages`"
    );
    let failure = Failure::of(name, world.logs());
    let output = File::create(failure.output()).or_fail("make a file for output");
    let mut node = Command::new("node");
    node.arg("--test-reporter=spec")
        .arg(folder.join(format!("{name}.test.mjs")))
        .stdout(output.try_clone().or_fail("make a file for output"))
        .stderr(output)
        .env("URL", world.url())
        .env("API", format!("{}/api/v1", world.console()))
        .env("PASSWORD", world.password())
        .env("SCREENSHOTS", screenshots())
        .env("FAILURES", &failure.folder)
        .env("WALK_LIMIT_SECONDS", limit.saturating_sub(KEEP_LIMIT).as_secs().to_string())
        .env("SIGNALS", world.data());
    let walk = Aside::start(node, doors);
    async move {
        let status = tokio::time::timeout(limit, walk.ended()).await;
        let told = std::fs::read_to_string(failure.output()).unwrap_or_default();
        let folder = failure.folder.display();
        let Ok(status) = status else { panic!("the walk hangs; see {folder}\n{told}") };
        assert!(status.or_fail("run node").success(), "the walk failed; see {folder}\n{told}");
    }
}

/// Runs a walk and what the test does `beside` it. If that panics, the walk is told to fail, so that it keeps screenshots
/// and a trace; then the panic goes on. `signals` is the data directory of the walk's world.
async fn walk_beside(walk: impl Future<Output = ()>, beside: impl Future<Output = ()>, signals: PathBuf) {
    let mut failure = None;
    let beside = async {
        if let Err(panic) = AssertUnwindSafe(beside).catch_unwind().await {
            failure = Some(panic);
            std::fs::write(signals.join("give-up"), "").or_fail("tell the walk");
        }
        Ok(())
    };
    // A walk that fails ends both at once.
    let ended = tokio::try_join!(AssertUnwindSafe(walk).catch_unwind(), beside);
    if let Some(panic) = failure.or(ended.err()) {
        resume_unwind(panic);
    }
}

/// A running instance, with room for what is run in it.
async fn create(world: &World, name: &str, image: &str) {
    world.berth(&["create", name, "--image", image, "--cpus", "2", "-m", "3G", "--wait"]).await.succeeded();
}

/// Runs a program in an instance and gives back what it printed.
async fn run(world: &World, name: &str, argv: &[&str]) -> String {
    world.berth(&[&["exec", name, "--"], argv].concat()).await.succeeded()
}

#[tokio::test]
async fn the_console_works_in_a_browser() {
    walk(&World::start().await, "console").await;
}

#[tokio::test]
async fn every_page_is_sound_in_both_languages_and_themes() {
    let registry = Registry::start().await;
    let directory = tempfile::tempdir().or_fail("make a directory");
    let nvml = Some(nvml::library(directory.path()));
    let world = World::start_with(Setup { config: registry.config(), nvml, ..Setup::default() }).await;
    create(&world, "look", tests::IMAGE).await;
    world.berth(&["save", "look", "--wait"]).await.succeeded();
    let job = format!("berth: 1\nname: look\nimage: {}\ncommand: echo begun; sleep infinity\n", tests::IMAGE);
    world.berth_with(&["submit", "-"], job.as_bytes()).await.succeeded();
    walking_for(&world, "pages", LONG_WALK_LIMIT, &world.doors()).await;
}

#[tokio::test]
async fn the_first_ten_minutes_in_chinese_and_in_english() {
    let registry = Registry::start().await;
    let world = World::start_with(Setup { config: registry.config(), ..Setup::default() }).await;
    walk(&world, "story").await;
}

#[tokio::test]
async fn a_session_that_ends_takes_nothing_with_it() {
    walk(&World::start().await, "session").await;
}

#[tokio::test]
async fn open_pages_are_live_and_miss_nothing() {
    let mut world = World::start().await;
    let (walked, signals) = (walking(&world, "live"), world.data().to_owned());
    let signal = |name: &str| world.data().join(name);
    let (kill, seen, more) =
        (signal("kill-the-gateway"), signal("saw-the-banner"), signal("do-something-more"));
    let happened = signal("something-happened");
    let wanted = async |what: &str, path: &Path| {
        wait_until(what, WALK_LIMIT, async || path.exists().then_some(())).await;
    };
    let doing = async {
        wanted("the walk wants the gateway killed", &kill).await;
        world.kill_gateway();
        wanted("the walk has seen that it is gone", &seen).await;
        world.start_gateway().await;
        create(&world, "missed_1", tests::IMAGE).await;
        std::fs::write(happened, "").or_fail("tell the walk");
        wanted("the walk wants more", &more).await;
        create(&world, "later_1", tests::IMAGE).await;
    };
    walk_beside(walked, doing, signals).await;
}

#[tokio::test]
async fn two_users_see_their_own_and_what_is_shared() {
    let registry = Registry::start().await;
    let world = World::start_with(Setup { config: registry.config(), ..Setup::default() }).await;
    walk(&world, "two-users").await;
}

#[tokio::test]
async fn job_files_are_imported_confirmed_and_cloned() {
    let config = "[[gateway.cluster]]\nname = \"default\"\n\
                  [[gateway.cluster]]\nname = \"annex\"\ndata = \"annex\"\n\
                  [[gateway.pool]]\nname = \"night\"\ncluster = \"annex\"\n";
    let setup = Setup { config: config.to_owned(), clusters: vec!["annex"], ..Setup::default() };
    walk(&World::start_with(setup).await, "jobs").await;
}

#[tokio::test]
async fn a_slow_network_and_no_mouse() {
    walk(&World::start().await, "network").await;
}

#[tokio::test]
async fn every_gpu_has_a_cell() {
    let directory = tempfile::tempdir().or_fail("make a directory");
    let nvml = Some(nvml::library(directory.path()));
    let world = World::start_with(Setup { nvml, ..Setup::default() }).await;
    let train = ["create", "train", "-m", "128M", "--gpus", "2", "--gpu-type", "3090", "--wait"];
    world.berth(&train).await.succeeded();
    walk(&world, "gpus").await;
}

#[tokio::test]
async fn what_a_failed_task_left_is_opened_from_its_job() {
    let directory = tempfile::tempdir().or_fail("make a directory");
    let nvml = Some(nvml::library(directory.path()));
    let world = World::start_with(Setup { nvml, ..Setup::default() }).await;
    let job = format!(
        "berth: 1\nname: fails\nimage: {}\ngpus: 2\nmemory: 128M\nkeep_on_failure: true\n\
         command: \"echo 'no such file: weights.pt'; exit 3\"\n",
        tests::IMAGE
    );
    world.berth_with(&["submit", "-"], job.as_bytes()).await.succeeded();
    wait_until("it failed", WALK_LIMIT, async || {
        world.berth(&["show", "fails"]).await.succeeded().contains("weights.pt").then_some(())
    })
    .await;
    walk(&world, "kept").await;
}

#[tokio::test]
async fn a_site_is_set_up_and_run_in_a_browser() {
    walk(&World::start().await, "admin").await;
}

#[tokio::test]
async fn people_are_managed_in_a_browser() {
    walk(&World::start().await, "people").await;
}

#[tokio::test]
async fn a_cell_runs_in_jupyterlab() {
    let world = World::start().await;
    create(&world, "notes", LAB).await;
    walk(&world, "lab").await;
    assert_eq!(run(&world, "notes", &["cat", "/userhome/where-the-terminal-is"]).await, "/userhome\n");
}

#[tokio::test]
async fn where_the_site_has_a_domain_and_tls_a_browser_is_at_home() {
    let world = World::start_with(Setup { secured: true, ..Setup::default() }).await;
    crate::apps::create(&world.client(), "admin").await;
    create(&world, "notes", LAB).await;
    walk(&world, "secured").await;
}

#[tokio::test]
async fn a_page_that_means_harm_reaches_nothing() {
    let world = World::start_with(Setup { secured: true, ..Setup::default() }).await;
    let (mallory, password) = world.person_and_password("mallory").await;
    std::fs::write(world.data().join("mallory"), password).or_fail("tell the walk");
    let admin = world.client();
    tokio::join!(crate::apps::create(&admin, "admin"), crate::apps::create(&mallory, "mallory"));
    walk(&world, "hostile").await;
}

#[tokio::test]
async fn jupyterlab_is_installed_by_one_button() {
    // Where the machine reaches package indexes through certificates of its own, instances need them too.
    let config = "[envd]\ninstance_ca = '/etc/ssl/certs/ca-certificates.crt'\n".to_owned();
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    create(&world, "bare", tests::IMAGE).await;
    let root = tempfile::tempdir().or_fail("make a directory");
    put_busybox(root.path(), "bin/busybox", &["sh"]);
    let empty = LocalImage::of_directory("no-python", root.path(), &[]);
    create(&world, "empty", empty.reference()).await;
    walk(&world, "install").await;
}

#[tokio::test]
async fn a_file_is_edited_in_vs_code_and_its_terminal_works() {
    let world = World::start().await;
    create(&world, "code", tests::IMAGE).await;
    let files = "mkdir -p /userhome/memo && cd /userhome/memo && echo first > notes.txt && \
                 echo '# A heading in the preview' > README.md";
    run(&world, "code", &["sh", "-c", files]).await;
    walk(&world, "ide").await;
    let saved = run(&world, "code", &["cat", "/userhome/memo/notes.txt"]).await;
    assert!(saved.starts_with("written in the browser"), "{saved}");
    assert_eq!(run(&world, "code", &["cat", "/userhome/memo/from-terminal"]).await, "42\n");
}

#[tokio::test]
async fn the_address_of_an_app_says_how_its_instance_is() {
    let world = World::start().await;
    create(&world, "code", tests::IMAGE).await;
    walk(&world, "address").await;
}

/// Writes the events of a short training run without any framework.
const RUN: &str = "
import time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter('/userhome/runs/first')
for step in range(100):
    value = Summary.Value(tag='loss', simple_value=1 / (step + 1))
    writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=[value])))
writer.close()
";

#[tokio::test]
async fn a_chart_is_drawn_in_tensorboard() {
    let world = World::start().await;
    create(&world, "train", LAB).await;
    run(&world, "train", &["python3", "-c", RUN]).await;
    walk(&world, "tensorboard").await;
}

/// A job of one task.
fn job(name: &str, command: &str) -> String {
    let command = serde_json::to_string(command).or_fail("write a command");
    format!("berth: 1\nname: {name}\nimage: {LAB}\nmemory: 3G\ncommand: {command}\n")
}

#[tokio::test]
async fn a_task_has_the_tools_of_an_instance_and_its_charts_outlive_it() {
    let world = World::start().await;
    world.berth_with(&["submit", "-"], job("stays", "sleep infinity").as_bytes()).await.succeeded();
    let write = format!("python3 - <<'END'{RUN}END\n");
    world.berth_with(&["submit", "-", "--wait"], job("writes", &write).as_bytes()).await.succeeded();
    walk(&world, "task").await;
}

#[tokio::test]
async fn apps_work_below_a_path_where_the_site_has_no_names() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = port.or_fail("find a port").port();
    let config = format!(
        "[gateway]\ndangerous_plain_http = true\n[gateway.apps]\nmode = 'path'\nhttp = '127.0.0.1:{port}'\n"
    );
    let world = World::start_with(Setup { config, ..Setup::default() }).await;
    create(&world, "tools", LAB).await;
    run(&world, "tools", &["sh", "-c", "echo first > /userhome/notes.txt"]).await;
    run(&world, "tools", &["python3", "-c", RUN]).await;
    let doors = [world.doors(), vec![port]].concat();
    walking_for(&world, "path", WALK_LIMIT, &doors).await;
    assert_eq!(run(&world, "tools", &["cat", "/userhome/from-terminal"]).await, "42\n");
}

/// Where the pointer is on the screen of the instance: asks the X server itself.
const POINTER: &str = "
import ctypes, glob
x11 = ctypes.CDLL('libX11.so.6')
x11.XOpenDisplay.restype = ctypes.c_void_p
screen = glob.glob('/tmp/.X11-unix/X*')[0].rsplit('X', 1)[1]
display = ctypes.c_void_p(x11.XOpenDisplay(f':{screen}'.encode()))
root, child, mask = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_uint()
x, y, in_x, in_y = (ctypes.c_int() for _ in range(4))
x11.XDefaultRootWindow.restype = ctypes.c_ulong
window = ctypes.c_ulong(x11.XDefaultRootWindow(display))
refs = (root, child, x, y, in_x, in_y, mask)
x11.XQueryPointer(display, window, *(ctypes.byref(ref) for ref in refs))
print(x.value, y.value)
";

#[tokio::test]
async fn the_mouse_moves_on_the_desktop() {
    let world = World::start().await;
    create(&world, "screen", DESKTOP).await;
    let walked = walking(&world, "desktop");
    let (put, seen) = (world.data().join("pointer"), world.data().join("pointer-is-there"));
    let pixels = |text: &str| text.split_whitespace().map(|n| n.parse().or_fail(text)).collect::<Vec<i32>>();
    let looking = async {
        // The walk leaves the mouse there, in the desktop's own pixels; the page may round one of them.
        let there =
            wait_until("the mouse is put", WALK_LIMIT, async || std::fs::read_to_string(&put).ok()).await;
        wait_until_agreed("the mouse is there", 3 * LIMIT, async || {
            let asked = run(&world, "screen", &["python3", "-c", POINTER]).await;
            let near = pixels(&there).iter().zip(pixels(&asked)).all(|(put, is)| (put - is).abs() <= 2);
            near.then_some(()).ok_or_else(|| format!("it was put at {there} and is at {asked}"))
        })
        .await;
        std::fs::write(seen, "").or_fail("tell the walk");
    };
    walk_beside(walked, looking, world.data().to_owned()).await;
}

#[tokio::test]
async fn a_printed_address_opens_a_terminal_in_one_browser_once() {
    let world = World::start().await;
    create(&world, "shell", tests::IMAGE).await;
    let walked = walking(&world, "ticket");
    let printing = async {
        for name in ["first", "second", "third", "fourth"] {
            let (asked, done) = (format!("print-{name}"), format!("printed-{name}"));
            let asked = world.data().join(asked);
            wait_until("the walk wants an address", WALK_LIMIT, async || asked.exists().then_some(())).await;
            let address = world.berth(&["open", "shell", "terminal", "--print"]).await.succeeded();
            // Whoever sees the file sees all of it.
            let whole = world.data().join("address");
            std::fs::write(&whole, address.trim()).or_fail("write the address");
            std::fs::rename(whole, world.data().join(done)).or_fail("tell the walk");
        }
    };
    walk_beside(walked, printing, world.data().to_owned()).await;
}

#[tokio::test]
async fn a_shell_is_the_same_after_the_gateway_was_killed() {
    let mut world = World::start().await;
    create(&world, "shell", tests::IMAGE).await;
    let (walked, signals) = (walking(&world, "terminal"), world.data().to_owned());
    let signal = |name: &str| world.data().join(name);
    let (asked, seen, done) = (signal("kill-the-gateway"), signal("saw-it-lost"), signal("gateway-is-back"));
    let wanted = async |what: &str, path: &Path| {
        wait_until(what, WALK_LIMIT, async || path.exists().then_some(())).await;
    };
    let killing = async {
        wanted("the walk wants the gateway killed", &asked).await;
        world.kill_gateway();
        wanted("the walk has seen that it is gone", &seen).await;
        world.start_gateway().await;
        std::fs::write(done, "").or_fail("tell the walk");
    };
    walk_beside(walked, killing, signals).await;
}
