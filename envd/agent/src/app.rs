//! Apps: programs with a page or a screen of their own, started on first use and kept until they are stopped.
//!
//! The gateway asks as often as it likes; each question is answered at once with what is so, and what it sets going
//! goes on in a task of its own, with or without the gateway. There is one of each [`Kind`]. An app that has ended is
//! `failed` until it is started again; one that serves another address or another folder than is asked for counts as
//! stopped, and is replaced by the next start.

mod install;
mod log;
mod probe;
mod process;
mod recipe;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    convert::Infallible,
    fmt,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use envd_api::agent::{AppAct, AppCall, AppProblem, AppReport, AppSource, AppState, AppStep, Refusal};
use rustix::process::{Pid, Signal};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::{
    log::Log,
    process::Process,
    recipe::{Found, Place, Recipe},
};
use crate::{
    Agent,
    account::Account,
    children::Ended,
    environment::{StartError, Surroundings},
    link::Refused,
    signal,
};

/// How long an app may take until it answers. A loaded machine takes a while.
const START_LIMIT: Duration = Duration::from_mins(3);
/// The variable of an instance that says otherwise, in seconds.
const START_LIMIT_SET: &str = "BERTH_APP_START_SECONDS";
/// The longest prefix or folder that makes sense.
const TEXT_MAX: usize = 4096;
/// Screens that are tried for one that is free.
const DISPLAYS: std::ops::Range<u32> = 1..100;

/// The apps that there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Lab,
    Ide,
    TensorBoard,
    Desktop,
}

/// The apps of this instance that were started.
#[derive(Debug, Default)]
pub(crate) struct Apps {
    known: RefCell<BTreeMap<Kind, Rc<App>>>,
}

#[derive(Debug)]
struct App {
    wanted: Wanted,
    stop: CancellationToken,
    /// The process of the moment.
    pid: Cell<Option<Pid>>,
    seen: RefCell<Seen>,
}

/// What was asked for.
#[derive(Debug, Clone)]
struct Wanted {
    kind: Kind,
    prefix: String,
    folder: Option<String>,
}

/// How far it is.
#[derive(Debug)]
struct Seen {
    state: AppState,
    source: Option<AppSource>,
    port: Option<u16>,
    steps: Vec<Step>,
    problem: Option<AppProblem>,
    log: Log,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    since: Instant,
    took: Option<Duration>,
    done: bool,
}

/// Does what is asked, and says what is so.
pub(crate) fn call(agent: &Rc<Agent>, call: &AppCall) -> Result<AppReport, Refused> {
    let wanted = Wanted::new(call)?;
    let known = agent.apps.known.borrow().get(&wanted.kind).cloned();
    let fitting = known.as_ref().filter(|app| app.fits(&wanted));
    let is_alive = fitting.is_some_and(|app| app.seen.borrow().state != AppState::Failed);
    match call.act {
        AppAct::Look => {}
        AppAct::Start | AppAct::Install if is_alive => {}
        AppAct::Start | AppAct::Install => {
            let around = agent.surroundings(&BTreeMap::new())?;
            let python = match (recipe::find(wanted.kind, &around), call.act) {
                (Found::Here(_), _) => None,
                (Found::Installable(python), AppAct::Install) => Some(python),
                (found @ (Found::Installable(_) | Found::Absent(_)), _) => {
                    agent.apps.forget(wanted.kind);
                    return Ok(wanted.report(found));
                }
            };
            agent.apps.forget(wanted.kind);
            let app = Rc::new(App::new(wanted, python.is_some()));
            agent.apps.known.borrow_mut().insert(app.wanted.kind, Rc::clone(&app));
            agent.tasks.spawn_local(run(Rc::clone(agent), Rc::clone(&app), python));
            return Ok(app.report());
        }
        AppAct::Stop => {
            agent.apps.forget(wanted.kind);
            return wanted.look(agent);
        }
    }
    match fitting {
        Some(app) => Ok(app.report()),
        None => wanted.look(agent),
    }
}

/// The life of an app, from its installation, if it is to be installed, to its end.
async fn run(agent: Rc<Agent>, app: Rc<App>, python: Option<PathBuf>) {
    tokio::select! {
        lived = live(&agent, &app, python.as_deref()) => {
            let Err(problem) = lived;
            app.fail(problem);
        }
        () = app.stop.cancelled() => {}
    }
    if let Some(pid) = app.pid.get() {
        process::end(&agent, pid).await;
    }
}

async fn live(agent: &Agent, app: &App, python: Option<&Path>) -> Result<Infallible, AppProblem> {
    if let Some(python) = python {
        let mut installing = install::start(agent, python).map_err(|error| cannot_start(&error))?;
        app.pid.set(Some(installing.pid));
        install::verdict(installing.watch(|bytes| app.wrote(bytes)).await)?;
        app.step("find");
    }
    let (mut process, recipe, port) = start(agent, app)?;
    app.pid.set(Some(process.pid));
    let speaks = recipe.speaks(&app.wanted.prefix);
    let answered = async {
        probe::listens(port).await;
        app.step("answer");
        probe::answers(port, &speaks).await;
    };
    let limit = start_limit(agent);
    let ended = tokio::select! {
        answered = timeout(limit, answered) => {
            if answered.is_err() {
                return Err(no_answer(app.wanted.kind, limit));
            }
            app.ready();
            process.watch(|bytes| app.wrote(bytes)).await
        }
        ended = process.watch(|bytes| app.wrote(bytes)) => ended,
    };
    Err(has_ended(app.wanted.kind, ended))
}

fn start_limit(agent: &Agent) -> Duration {
    let seconds = agent.spec.env.get(START_LIMIT_SET).and_then(|text| text.trim().parse().ok());
    seconds.map_or(START_LIMIT, Duration::from_secs)
}

fn start(agent: &Agent, app: &App) -> Result<(Process, Recipe, u16), AppProblem> {
    let Wanted { kind, prefix, folder } = &app.wanted;
    let around = surroundings(agent, BTreeMap::new()).map_err(|error| cannot_start(&error))?;
    let recipe = match recipe::find(*kind, &around) {
        Found::Here(recipe) => recipe,
        Found::Absent(problem) => return Err(problem),
        Found::Installable(_) => {
            return Err(problem("not_in_image", "it is not there any more", "install it"));
        }
    };
    let directory = match folder {
        None => around.lasting_directory(),
        Some(named) => around.folder(named).ok_or_else(|| {
            let message = format!("`{named}` is not a folder in this instance");
            problem("no_folder", &message, "name a folder that is there")
        })?,
    };
    let port = free_port()
        .map_err(|error| problem("no_port", &format!("there is no free port: {error}"), "try again"))?;
    let display = if *kind == Kind::Desktop { free_display(Path::new("/tmp")) } else { 0 };
    app.begin(recipe.source, port);
    let place = Place {
        port,
        prefix,
        folder: &directory.to_string_lossy(),
        is_folder_named: folder.is_some(),
        is_root: around.account.uid == 0,
        display,
    };
    let process = Process::start(agent, &around, &recipe.program, &recipe.argv(&place), &directory)
        .map_err(|error| cannot_start(&error))?;
    Ok((process, recipe, port))
}

/// As for every process, with what apps need on top: a home that they can write to, and UTF-8.
fn surroundings(agent: &Agent, mut extra: BTreeMap<String, String>) -> Result<Surroundings, StartError> {
    if !["LANG", "LC_ALL", "LC_CTYPE"].iter().any(|name| agent.spec.env.contains_key(*name)) {
        extra.insert("LANG".to_owned(), "C.UTF-8".to_owned());
    }
    // Small images may have none, and only root can make it.
    make_for_all(Path::new("/tmp"));
    let around = agent.surroundings(&extra)?;
    let account = &around.account;
    let home = around.home_directory();
    if account.uid == 0 || (home != Path::new("/") && is_writable(&home, account)) {
        return Ok(around);
    }
    // A user whom the image does not know, or knows without a home, or whose `HOME` is root's.
    let home = format!("/tmp/home-{}", account.uid);
    let made = std::fs::DirBuilder::new().mode(0o700).create(&home);
    if made.is_ok() {
        let _as_it_is = std::os::unix::fs::chown(&home, Some(account.uid), Some(account.gid));
    }
    extra.insert("HOME".to_owned(), home);
    agent.surroundings(&extra)
}

/// Makes a directory, unless it is there, in which everybody may have files of their own.
fn make_for_all(directory: &Path) {
    if std::fs::create_dir(directory).is_ok() {
        let _as_it_is = std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o1777));
    }
}

/// Whether somebody can put files into a directory, as far as its mode says.
fn is_writable(directory: &Path, account: &Account) -> bool {
    let Ok(found) = std::fs::metadata(directory) else { return false };
    let shift = if found.uid() == account.uid {
        6
    } else if account.groups.contains(&found.gid()) || found.gid() == account.gid {
        3
    } else {
        0
    };
    // To write and to search.
    (found.mode() >> shift) & 0o3 == 0o3
}

/// One that nobody listens on now.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The number of a screen that no living server has. What an ended one left is removed: its process's number may be
/// another's by now, and a server would take that for its own kind.
fn free_display(tmp: &Path) -> u32 {
    let sockets = tmp.join(".X11-unix");
    // Only root can make it as servers want it to be.
    make_for_all(&sockets);
    let is_free = |display: &u32| {
        let (lock, socket) = (tmp.join(format!(".X{display}-lock")), sockets.join(format!("X{display}")));
        let pid = std::fs::read_to_string(&lock).ok().and_then(|text| text.trim().parse::<u32>().ok());
        let program = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok());
        if program.is_some_and(|name| name.starts_with('X')) {
            return false;
        }
        for left in [lock, socket] {
            let _was_not_there = std::fs::remove_file(left);
        }
        true
    };
    DISPLAYS.into_iter().find(is_free).unwrap_or(DISPLAYS.start)
}

// --- what is wrong ---

fn problem(code: &str, message: &str, hint: &str) -> AppProblem {
    debug_assert!(process_api::PROBLEMS.contains(&code), "`{code}` is in no list of problems");
    AppProblem { code: code.to_owned(), message: message.to_owned(), hint: hint.to_owned() }
}

fn cannot_start(error: &StartError) -> AppProblem {
    problem("cannot_run", &error.to_string(), "look at the image: its program or its user is not there")
}

fn no_answer(kind: Kind, limit: Duration) -> AppProblem {
    let message = format!("{kind} did not answer within {} seconds", limit.as_secs());
    problem(
        "no_answer",
        &message,
        "the last lines may say why; start it again, or give the instance more CPU",
    )
}

fn has_ended(kind: Kind, ended: Ended) -> AppProblem {
    let hint = if ended == Ended::Signal(Signal::KILL.as_raw()) {
        "it was killed, often for want of memory: give the instance more, or start it again"
    } else {
        "the last lines say why; start it again"
    };
    problem("ended", &format!("{kind} ended {ended}"), hint)
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(out, "with exit code {code}"),
            Self::Signal(number) => write!(out, "by signal {}", signal::name(*number)),
        }
    }
}

// === impl Kind, Wanted ===

impl Kind {
    fn by_name(name: &str) -> Option<Self> {
        [Self::Lab, Self::Ide, Self::TensorBoard, Self::Desktop].into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Ide => "ide",
            Self::TensorBoard => "tensorboard",
            Self::Desktop => "desktop",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Lab => "JupyterLab",
            Self::Ide => "code-server",
            Self::TensorBoard => "TensorBoard",
            Self::Desktop => "the desktop",
        })
    }
}

impl Wanted {
    fn new(call: &AppCall) -> Result<Self, Refused> {
        let refused = |message: String| Refused { refusal: Refusal::Other, message };
        let kind =
            Kind::by_name(&call.app).ok_or_else(|| refused(format!("there is no app `{}`", call.app)))?;
        let prefix = &call.prefix;
        let is_path = prefix.starts_with('/') && prefix.ends_with('/') && prefix.len() <= TEXT_MAX;
        if !is_path || !prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte)) {
            return Err(refused(format!("`{prefix}` is not a prefix such as `/` or `/a/b/`")));
        }
        let folder = call.folder.clone().filter(|folder| !folder.is_empty());
        if folder.as_ref().is_some_and(|folder| folder.len() > TEXT_MAX || folder.contains('\0')) {
            return Err(refused("this is not the name of a folder".to_owned()));
        }
        Ok(Self { kind, prefix: prefix.clone(), folder })
    }

    /// What is so of an app that does not run.
    fn look(&self, agent: &Agent) -> Result<AppReport, Refused> {
        let around = agent.surroundings(&BTreeMap::new())?;
        Ok(self.report(recipe::find(self.kind, &around)))
    }

    fn report(&self, found: Found) -> AppReport {
        let (state, source, problem) = match found {
            Found::Here(recipe) => (AppState::Stopped, Some(recipe.source), None),
            Found::Installable(_) => (AppState::Installable, None, None),
            Found::Absent(problem) => (AppState::Absent, None, Some(problem)),
        };
        let (port, steps, log) = (None, Vec::new(), String::new());
        AppReport { app: self.kind.name().to_owned(), state, source, port, steps, problem, log }
    }
}

// === impl Apps, App ===

impl Apps {
    /// Stops the app, if there is one; it counts as stopped from here on.
    fn forget(&self, kind: Kind) {
        if let Some(app) = self.known.borrow_mut().remove(&kind) {
            app.stop.cancel();
        }
    }
}

impl App {
    fn new(wanted: Wanted, installs: bool) -> Self {
        let (state, step) =
            if installs { (AppState::Installing, "install") } else { (AppState::Starting, "find") };
        let seen =
            Seen { state, source: None, port: None, steps: Vec::new(), problem: None, log: Log::default() };
        let app =
            Self { wanted, stop: CancellationToken::new(), pid: Cell::new(None), seen: RefCell::new(seen) };
        app.step(step);
        app
    }

    /// It serves what is wanted. Only TensorBoard is what its folder is; the others can leave theirs.
    fn fits(&self, wanted: &Wanted) -> bool {
        let is_folder_right = wanted.kind != Kind::TensorBoard
            || wanted.folder.is_none()
            || wanted.folder == self.wanted.folder;
        let is_prefix_right = wanted.kind == Kind::Desktop || wanted.prefix == self.wanted.prefix;
        is_folder_right && is_prefix_right
    }

    fn wrote(&self, bytes: &[u8]) {
        self.seen.borrow_mut().log.push(bytes);
    }

    /// The step before is done; this one begins.
    fn step(&self, name: &'static str) {
        let mut seen = self.seen.borrow_mut();
        seen.end_step(true);
        seen.steps.push(Step { name, since: Instant::now(), took: None, done: false });
    }

    fn begin(&self, source: AppSource, port: u16) {
        self.step("start");
        let mut seen = self.seen.borrow_mut();
        seen.state = AppState::Starting;
        seen.source = Some(source);
        seen.port = Some(port);
    }

    fn ready(&self) {
        let mut seen = self.seen.borrow_mut();
        seen.end_step(true);
        seen.state = AppState::Ready;
    }

    fn fail(&self, problem: AppProblem) {
        let mut seen = self.seen.borrow_mut();
        seen.end_step(false);
        seen.state = AppState::Failed;
        seen.port = None;
        seen.problem = Some(problem);
    }

    fn report(&self) -> AppReport {
        let seen = self.seen.borrow();
        AppReport {
            app: self.wanted.kind.name().to_owned(),
            state: seen.state,
            source: seen.source,
            port: seen.port,
            steps: seen.steps.iter().map(Step::report).collect(),
            problem: seen.problem.clone(),
            log: seen.log.text(),
        }
    }
}

impl Seen {
    fn end_step(&mut self, done: bool) {
        if let Some(step) = self.steps.last_mut()
            && step.took.is_none()
        {
            step.took = Some(step.since.elapsed());
            step.done = done;
        }
    }
}

impl Step {
    fn report(&self) -> AppStep {
        let seconds = self.took.unwrap_or_else(|| self.since.elapsed()).as_secs_f64();
        AppStep { step: self.name.to_owned(), seconds, done: self.done }
    }
}
