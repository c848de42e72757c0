//! Several people at work while both programs are killed again and again: what was acknowledged is so in the end, once.
//!
//! Every worker notes each act and what came of it. An act without an answer may have been done or not; everything
//! else is certain, and the end must agree with it. `BERTH_CRASH_ROUNDS` says how many kills, `BERTH_CRASH_SEED` which
//! ones; a failure tells the seed. Time is not seeded, so the same seed tries the like and not the same. The same is tried
//! with the container engine itself, one that is private to the test: `BERTH_ENGINE_CRASH_ROUNDS`.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::Write as _,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use gateway_api::{
    Action, Code, CreateInstance, Goal, Instance, Status,
    client::{Client, ClientError},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tests::{
    LIMIT, OrFail as _, Setup, World, count,
    engine::{self, PrivateEngine, Taken},
    wait_until, wait_until_agreed, wanted,
};
use tokio::time::sleep;

const WORKERS: u64 = 4;
/// What the names of their accounts begin with.
const USER: &str = "worker";
/// Instances that one worker has at once.
const INSTANCES_EACH: usize = 2;
/// The names of those that run a command to its end have this at theirs. It ends while people act on it.
const WITH_COMMAND: char = 'c';
const COMMAND: [&str; 3] = ["sh", "-c", "sleep 1"];
/// Between two kills, and between a kill and what follows, at most. The first kill waits for acts instead.
const KILL_PAUSE_MS: u64 = 2000;
const DOWN_PAUSE_MS: u64 = 150;
/// Between two acts of one worker, at most.
const ACT_PAUSE_MS: u64 = 300;
/// From the last restart to agreement. Backing off after failures takes the most of it.
const SETTLE_LIMIT: Duration = Duration::from_mins(3);

/// One on which nobody acts, so that there is always something to keep.
const BYSTANDER: &str = "bystander";

/// Everybody at work, by name.
type People = [(String, Client)];

/// Marks an acknowledged act in the story.
const DONE: &str = ": done";

// === what the workers know ===

/// What can have become of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Running,
    Stopped,
    /// Never made, or deleted.
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Create,
    Start,
    Stop,
    Restart,
    Delete,
}

/// All acts of all workers, and what must be true of each instance.
#[derive(Debug)]
struct History {
    begun: Instant,
    lines: RefCell<Vec<String>>,
    fates: RefCell<BTreeMap<String, BTreeSet<Fate>>>,
    /// Acts that were asked for and have no answer yet.
    under_way: Cell<usize>,
    over: Cell<bool>,
}

impl Act {
    fn leads_to(self) -> Fate {
        match self {
            Self::Create | Self::Start | Self::Restart => Fate::Running,
            Self::Stop => Fate::Stopped,
            Self::Delete => Fate::Absent,
        }
    }

    async fn ask(self, client: &Client, name: &str) -> Result<Instance, ClientError> {
        match self {
            Self::Create => {
                let command = if name.ends_with(WITH_COMMAND) {
                    COMMAND.map(str::to_owned).to_vec()
                } else {
                    Vec::new()
                };
                client.create_instance(&CreateInstance { command, ..wanted(name) }).await
            }
            Self::Start => client.start_instance(name).await,
            Self::Stop => client.stop_instance(name).await,
            Self::Restart => client.restart_instance(name).await,
            Self::Delete => client.delete_instance(name).await,
        }
    }
}

impl History {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            lines: RefCell::default(),
            fates: RefCell::default(),
            under_way: Cell::new(0),
            over: Cell::new(false),
        }
    }

    fn note(&self, line: impl fmt::Display) {
        let at = self.begun.elapsed().as_secs_f64();
        self.lines.borrow_mut().push(format!("{at:8.3} {line}"));
    }

    /// Does an act and draws the conclusions.
    async fn act(&self, client: &Client, name: &str, act: Act) {
        self.under_way.update(|acts| acts + 1);
        let answer = act.ask(client, name).await;
        self.under_way.update(|acts| acts - 1);
        let mut fates = self.fates.borrow_mut();
        let fates = fates.entry(name.to_owned()).or_insert_with(|| [Fate::Absent].into());
        match answer {
            Ok(instance) => {
                *fates = [act.leads_to()].into();
                self.note(format_args!("{name} {act:?}{DONE}, {}", instance.status.word()));
            }
            Err(ClientError::Problem(problem)) => {
                self.note(format_args!("{name} {act:?}: {:?} {problem}", problem.code));
                if problem.code == Code::NotFound {
                    assert!(fates.contains(&Fate::Absent), "`{name}` was acknowledged and is lost");
                    *fates = [Fate::Absent].into();
                } else {
                    // Nothing was changed. Every name is made once, so none is taken.
                    assert_eq!(problem.code, Code::WrongState, "`{name}`, {act:?}: {problem:?}");
                }
            }
            Err(error @ ClientError::Unreachable { .. }) => {
                fates.insert(act.leads_to());
                self.note(format_args!("{name} {act:?}: {error}"));
            }
            Err(error) => panic!("`{name}`, {act:?}: {error}"),
        }
    }

    /// Counts the acts that were acknowledged.
    fn acknowledged(&self) -> usize {
        self.lines.borrow().iter().filter(|line| line.contains(DONE)).count()
    }

    /// Waits until as many more acts as there are workers were acknowledged, and another one is under way.
    async fn wait_for_acts(&self) {
        let enough = self.acknowledged() + usize::try_from(WORKERS).or_fail("count the workers");
        wait_until("people act", LIMIT, async || {
            (self.acknowledged() >= enough && self.under_way.get() > 0).then_some(())
        })
        .await;
    }

    /// Whether there may be something of that name.
    fn may_exist(&self, name: &str) -> bool {
        self.fates.borrow().get(name).is_some_and(|fates| fates.iter().any(|fate| *fate != Fate::Absent))
    }
}

// === who does what ===

/// One person with a few instances, until it is over.
async fn work(worker: u64, client: &Client, mut random: StdRng, history: &History) {
    let mut names: Vec<String> = Vec::new();
    for number in 0.. {
        // The moment is what is tried.
        sleep(Duration::from_millis(random.random_range(0..ACT_PAUSE_MS))).await;
        if history.over.get() {
            return;
        }
        names.retain(|name| history.may_exist(name));
        if names.len() < INSTANCES_EACH && random.random_bool(0.5) {
            let mut name = format!("w{worker}_{number}");
            if random.random_bool(0.4) {
                name.push(WITH_COMMAND);
            }
            history.act(client, &name, Act::Create).await;
            names.push(name);
        } else if !names.is_empty() {
            let name = names[random.random_range(0..names.len())].clone();
            let acts = likely_acts(client, &name).await;
            let act = acts[random.random_range(0..acts.len())];
            history.act(client, &name, act).await;
        }
    }
}

/// Acts that make sense now, or all of them when nobody knows. A deletion is rarer than the others.
async fn likely_acts(client: &Client, name: &str) -> Vec<Act> {
    let acts = [
        (Act::Start, Action::Start),
        (Act::Start, Action::Start),
        (Act::Stop, Action::Stop),
        (Act::Stop, Action::Stop),
        (Act::Restart, Action::Restart),
        (Act::Restart, Action::Restart),
        (Act::Delete, Action::Delete),
    ];
    let allowed =
        client.instance(name).await.map_or_else(|_| Action::ALL.to_vec(), |instance| instance.actions);
    acts.into_iter().filter(|(_, action)| allowed.contains(action)).map(|(act, _)| act).collect()
}

/// Kills and starts again, so many times. The first kill is of both, while an act is under way; the others are random.
async fn kill(world: &mut World, rounds: usize, mut random: StdRng, history: &History) {
    for round in 0..rounds {
        let first = round == 0;
        if first {
            history.wait_for_acts().await;
        } else {
            sleep(Duration::from_millis(random.random_range(0..KILL_PAUSE_MS))).await;
        }
        let both = first || random.random_bool(0.4);
        let (gateway, envd) =
            if both { (true, true) } else { [(true, false), (false, true)][random.random_range(0..2)] };
        history.note(format_args!("killed: gateway {gateway}, envd {envd}"));
        if gateway {
            world.kill_gateway();
        }
        if envd {
            world.kill_envd();
        }
        if !first {
            sleep(Duration::from_millis(random.random_range(0..DOWN_PAUSE_MS))).await;
        }
        let envd_first = !first && random.random_bool(0.5);
        if envd && envd_first {
            world.start_envd().await;
        }
        if gateway {
            world.start_gateway().await;
        }
        if envd && !envd_first {
            world.start_envd().await;
        }
        history.note("all up");
    }
    history.over.set(true);
}

/// Kills the engine alone, or envd with it, so many times. What ran in its containers ends when it comes back. The first
/// kill is of both, while an act is under way; the others are random.
async fn kill_engine(
    world: &mut World,
    engine: &mut PrivateEngine,
    rounds: usize,
    mut random: StdRng,
    history: &History,
) {
    for round in 0..rounds {
        let first = round == 0;
        if first {
            history.wait_for_acts().await;
        } else {
            sleep(Duration::from_millis(random.random_range(0..2 * KILL_PAUSE_MS))).await;
        }
        let envd = first || random.random_bool(0.5);
        history.note(format_args!("killed: engine, envd {envd}"));
        engine.kill_daemon();
        if envd {
            world.kill_envd();
        }
        if !first {
            sleep(Duration::from_millis(random.random_range(0..KILL_PAUSE_MS))).await;
        }
        let envd_first = first || random.random_bool(0.5);
        if envd && envd_first {
            world.start_envd().await;
        }
        engine.start_daemon().await;
        if envd && !envd_first {
            world.start_envd().await;
        }
        history.note("all up");
    }
    history.over.set(true);
}

// === what must be true in the end ===

/// Objects to the first thing that is not as it should be.
async fn agree(world: &World, people: &People, history: &History) -> Result<Vec<Instance>, String> {
    let instances = world.client().visible_instances().await.map_err(|error| error.to_string())?;
    let containers = world.engine().listed();
    let names: BTreeSet<_> = instances.iter().map(|instance| instance.name.as_str()).collect();
    if names.len() < instances.len() {
        return Err(format!("one of {names:?} is there twice"));
    }
    for instance in &instances {
        let (name, id) = (instance.name.as_str(), instance.id.as_str());
        let has_command = !instance.command.is_empty();
        let fate = match (instance.goal, &instance.status) {
            (Goal::Running, Status::Running { .. }) if !has_command => Fate::Running,
            // It ran to its end, or to that of the engine.
            (Goal::Running, Status::Succeeded | Status::Failed { exit_code: Some(_), .. }) if has_command => {
                Fate::Running
            }
            (Goal::Stopped, Status::Stopped { .. }) => Fate::Stopped,
            (goal, status) => return Err(format!("`{name}` ({id}): wanted {goal:?}, is {status:?}")),
        };
        let fates = history.fates.borrow().get(name).cloned().unwrap_or_default();
        if !fates.contains(&fate) {
            return Err(format!("`{name}` ({id}) is {fate:?}, and should be one of {fates:?}"));
        }
        let states: Vec<_> = containers
            .iter()
            .filter(|found| found.instance == id)
            .map(|found| found.state.as_str())
            .collect();
        let agrees = match fate {
            Fate::Running => states == [if has_command { "exited" } else { "running" }],
            // Stopped before there was one, it has none.
            Fate::Stopped | Fate::Absent => matches!(states[..], [] | ["exited" | "created"]),
        };
        if !agrees {
            return Err(format!("`{name}` ({id}) is {fate:?}, and its containers are {states:?}"));
        }
    }
    let is_known = |id: &str| instances.iter().any(|instance| instance.id.as_str() == id);
    if let Some(orphan) = containers.iter().find(|container| !is_known(&container.instance)) {
        return Err(format!("nobody knows the container {orphan:?}"));
    }
    if let Some(door) = below(world, "door").iter().find(|door| !is_known(door)) {
        return Err(format!("the door of {door} was left behind"));
    }
    for (name, fates) in &*history.fates.borrow() {
        let there = instances.iter().any(|instance| instance.name.as_str() == name);
        if !there && !fates.contains(&Fate::Absent) {
            return Err(format!("`{name}` should be one of {fates:?}, and is not there"));
        }
    }
    agree_on_the_ledger(world).await?;
    for (_, client) in people {
        agree_on_the_quota(client).await?;
    }
    Ok(instances)
}

/// What is held in the books is what the engine gives, no more and no less.
async fn agree_on_the_ledger(world: &World) -> Result<(), String> {
    let cluster = world.client().cluster().await.map_err(|error| error.to_string())?;
    let held = cluster.nodes.iter().fold(Taken::default(), |sum, node| Taken {
        cpus_milli: sum.cpus_milli + milli(node.cpus_held),
        memory_bytes: sum.memory_bytes + node.memory_held_bytes,
    });
    let taken = world.engine().taken();
    if held == taken { Ok(()) } else { Err(format!("{held:?} is held, and {taken:?} taken")) }
}

/// What counts towards a user's quota is what runs of theirs.
async fn agree_on_the_quota(client: &Client) -> Result<(), String> {
    let asked = |error: ClientError| error.to_string();
    let used = client.own_quota().await.map_err(asked)?.user.used;
    let instances = client.instances().await.map_err(asked)?;
    let running = instances.iter().filter(|instance| matches!(instance.status, Status::Running { .. }));
    let (mut cpus_milli, mut memory_bytes, mut count) = (0, 0, 0);
    for instance in running {
        cpus_milli += milli(instance.cpus);
        memory_bytes += instance.memory_bytes;
        count += 1;
    }
    if (milli(used.cpus), used.memory_bytes, used.instances) == (cpus_milli, memory_bytes, count) {
        Ok(())
    } else {
        Err(format!("{used:?} counts, and {count} instances run with {cpus_milli} m, {memory_bytes} bytes"))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few processors")]
fn milli(cpus: f64) -> u64 {
    (cpus * 1000.0).round() as u64
}

/// Nothing is left of users who have no container, but their files. envd looks after it when it starts.
fn agree_on_the_rest(world: &World, instances: &[Instance]) -> Result<(), String> {
    let containers = world.engine().listed();
    let has_container =
        |instance: &&Instance| containers.iter().any(|container| container.instance == instance.id.as_str());
    let users: BTreeSet<_> = instances.iter().filter(has_container).map(|one| one.user.as_str()).collect();
    let networks = world.engine().networks();
    if users.iter().copied().ne(networks.iter().map(String::as_str).collect::<BTreeSet<_>>())
        || users.len() != networks.len()
    {
        return Err(format!("there are networks for {networks:?}, and containers of {users:?}"));
    }
    agree_on_the_rules(&world.engine().bridges())?;
    let homes = below(world, "home");
    if let Some(home) = homes.iter().find(|home| !home.strip_prefix(USER).is_some_and(is_number)) {
        return Err(format!("nobody has the home {home}"));
    }
    // The copy, and the name that leads to it.
    let agents = below(world, "agent");
    if agents.len() != 2 {
        return Err(format!("one agent was copied, and there are {agents:?}"));
    }
    Ok(())
}

/// The firewall lets each network reach itself, leads there once from each side, and has no other rule of ours.
fn agree_on_the_rules(bridges: &[String]) -> Result<(), String> {
    let short = short_name(bridges)?;
    let rules = engine::rules_with(&short);
    let chain = format!("BERTH-{short}");
    let lets_in = format!("-A {chain} -i bt");
    let (own, others): (Vec<_>, Vec<_>) = rules.iter().partition(|rule| rule.starts_with(&lets_in));
    let mut expected: Vec<_> =
        bridges.iter().map(|bridge| format!("-A {chain} -i {bridge} -o {bridge} -j RETURN")).collect();
    expected.sort_unstable();
    let mut found: Vec<_> = own.into_iter().cloned().collect();
    found.sort_unstable();
    if expected != found {
        return Err(format!("there are the networks {bridges:?}, and rules {found:?}"));
    }
    let count = |rule: &str| others.iter().filter(|other| other.contains(rule)).count();
    let hooks = [format!("-i bt{short}+ -j {chain}"), format!("-A INPUT -i bt{short}+ -j {chain}-HOST")];
    // The first is also how the second begins.
    let (chains, hooks) = (count("-N "), hooks.map(|hook| count(&hook)));
    if (chains, hooks) == (2, [2, 1]) { Ok(()) } else { Err(format!("the chains are led to by {others:?}")) }
}

/// What stands for the cluster in the names of its bridges and chains.
fn short_name(bridges: &[String]) -> Result<String, String> {
    let short = bridges.first().and_then(|bridge| bridge.get(2..8));
    short.map(str::to_owned).ok_or_else(|| "there is no network".to_owned())
}

/// Once everything is deleted, nothing is left of the networks and rules.
async fn agree_that_nothing_is_left(world: &World, people: &People) {
    let short = short_name(&world.engine().bridges()).or_fail("find the cluster's short name");
    for (_, client) in people {
        for instance in client.instances().await.or_fail("list instances") {
            client.delete_instance(instance.name.as_str()).await.or_fail("delete an instance");
        }
    }
    wait_until_agreed("nothing is left", SETTLE_LIMIT, async || {
        let left = (
            world.engine().listed(),
            world.engine().networks(),
            below(world, "door"),
            engine::rules_with(&short),
        );
        let none = left.0.is_empty() && left.1.is_empty() && left.2.is_empty() && left.3.is_empty();
        if none { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

/// What is in a directory of the data directory.
fn below(world: &World, directory: &str) -> Vec<String> {
    let Ok(found) = std::fs::read_dir(world.data().join(directory)) else { return Vec::new() };
    found.filter_map(|one| Some(one.ok()?.file_name().to_string_lossy().into_owned())).collect()
}

fn is_number(text: &str) -> bool {
    text.parse::<u64>().is_ok()
}

/// Tells how much was tried; and if the test fails, the whole story.
struct Story<'a> {
    history: &'a History,
    seed: u64,
}

impl Drop for Story<'_> {
    fn drop(&mut self) {
        let lines = self.history.lines.borrow();
        let mut out = std::io::stderr().lock();
        if std::thread::panicking() {
            let _ = writeln!(out, "{}", lines.join("\n"));
        }
        let count = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
        let (kills, done, unanswered) = (count("killed:"), count(DONE), count("no answer"));
        let refused = lines.len() - 2 * kills - done - unanswered;
        let acts = format!("{done} acts done, {refused} refused, {unanswered} unanswered");
        let _ = writeln!(out, "{kills} kills, {acts}, BERTH_CRASH_SEED={}", self.seed);
    }
}

/// Everybody at work, and what they know in the end.
async fn people(world: &World, history: &History) -> Vec<(String, Client)> {
    let mut people = Vec::new();
    for worker in 1..=WORKERS {
        let name = format!("{USER}{worker}");
        people.push((name.clone(), world.person(&name).await));
    }
    history.act(&people[0].1, BYSTANDER, Act::Create).await;
    people
}

async fn work_all(people: &People, seed: u64, history: &History) {
    let work =
        (1..).zip(people).map(|(worker, (_, client))| work(worker, client, random(seed, worker), history));
    join_all(work).await;
}

fn random(seed: u64, who: u64) -> StdRng {
    StdRng::seed_from_u64(seed.wrapping_add(who))
}

async fn agree_in_the_end(world: &mut World, people: &People, history: &History) {
    assert!(history.acknowledged() > 0, "nothing was acknowledged");
    wait_until_agreed("all is as it was acknowledged", SETTLE_LIMIT, async || {
        agree(world, people, history).await
    })
    .await;
    // And it stays so: nothing of it was only in the memory of these two.
    world.kill_gateway();
    world.kill_envd();
    world.start_envd().await;
    world.start_gateway().await;
    world.wait_for_cluster().await;
    let instances = wait_until_agreed("all is as it was", SETTLE_LIMIT, async || {
        let instances = agree(world, people, history).await?;
        agree_on_the_rest(world, &instances)?;
        Ok(instances)
    })
    .await;
    let runs = |instance: &&Instance| matches!(instance.status, Status::Running { .. });
    for instance in instances.iter().filter(runs) {
        let (_, client) =
            people.iter().find(|(name, _)| *name == instance.user.as_str()).or_fail("find its user");
        let ran = client.run(instance.name.as_str(), &["sh", "-c", ":"], b"").await;
        let ran = ran.or_fail(format!("run something in `{}`", instance.name));
        assert_eq!(ran.exit, gateway_api::stream::Exit::Code(0), "{ran:?}");
    }
    agree_that_nothing_is_left(world, people).await;
}

fn seed() -> u64 {
    count("BERTH_CRASH_SEED", rand::random::<u32>() as usize) as u64
}

#[tokio::test]
async fn whatever_was_acknowledged_is_so_in_the_end_and_once() {
    let rounds = count("BERTH_CRASH_ROUNDS", 1);
    let (seed, history) = (seed(), History::new());
    let mut world = World::start().await;
    let _story = Story { history: &history, seed };
    let people = people(&world, &history).await;
    tokio::join!(work_all(&people, seed, &history), kill(&mut world, rounds, random(seed, 0), &history));
    agree_in_the_end(&mut world, &people, &history).await;
}

#[tokio::test]
async fn whatever_was_acknowledged_outlives_the_engine() {
    let rounds = count("BERTH_ENGINE_CRASH_ROUNDS", 1);
    let (seed, history) = (seed(), History::new());
    let mut engine = PrivateEngine::start().await;
    let image = engine.import_busybox("tiny");
    let config = format!("[gateway]\ndefault_image = \"{image}\"\n");
    let setup = Setup { config, engine: Some(engine.socket()), ..Setup::default() };
    let mut world = World::start_with(setup).await;
    let _story = Story { history: &history, seed };
    let people = people(&world, &history).await;
    tokio::join!(
        work_all(&people, seed, &history),
        kill_engine(&mut world, &mut engine, rounds, random(seed, 0), &history)
    );
    agree_in_the_end(&mut world, &people, &history).await;
}
