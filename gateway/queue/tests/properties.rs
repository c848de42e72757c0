//! What must hold in every situation: lines of random work are played to their end, second by second.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use proptest::prelude::*;
use queue::{
    Allowance, Card, Decision, Kind, Limits, Need, Node, Outcome, Owner, Placed, Pool, Reason, Rules,
    Running, Situation, Work, decide,
};

/// A work, and how long it really takes.
#[derive(Debug, Clone)]
struct Coming {
    work: Work,
    takes: i64,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

// === making things up ===

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let card = |node: usize, at: usize, model: bool, healthy: bool| Card {
        id: format!("{node}-{at}"),
        model: if model { "A100" } else { "V100" }.to_owned(),
        healthy,
    };
    let node =
        (prop::collection::vec((any::<bool>(), prop::bool::weighted(0.9)), 0..5), 2u64..9, any::<bool>());
    prop::collection::vec(node, 1..4).prop_map(move |all| {
        let nodes = all.into_iter().enumerate().map(|(at, (cards, cpus, other))| Node {
            name: format!("n{at}"),
            cluster: cluster(other),
            ready: true,
            cpus_milli: cpus * 1000,
            memory_mib: 16 << 10,
            cards: cards
                .into_iter()
                .enumerate()
                .map(|(i, (model, healthy))| card(at, i, model, healthy))
                .collect(),
        });
        nodes.collect()
    })
}

fn cluster(other: bool) -> String {
    if other { "other" } else { "lab" }.to_owned()
}

/// Of which model, on which cluster, for which kind; `None` is all.
type PoolParts = (Option<bool>, Option<bool>, Option<bool>);

/// The cards of one model, or whole machines, here or everywhere, for one kind or for both.
fn pools() -> impl Strategy<Value = Vec<Pool>> {
    let model = prop::option::of(any::<bool>());
    let one = (model, prop::option::of(any::<bool>()), prop::option::of(any::<bool>()));
    prop::collection::vec(one, 0..3).prop_map(|all| {
        let pool = |(at, (model, other, job)): (usize, PoolParts)| Pool {
            name: format!("p{at}"),
            cluster: other.map(cluster),
            models: model.map(|a100| if a100 { "A100" } else { "V100" }.to_owned()).into_iter().collect(),
            kinds: match job {
                None => [Kind::Instance, Kind::Job].into(),
                Some(true) => [Kind::Job].into(),
                Some(false) => [Kind::Instance].into(),
            },
        };
        all.into_iter().enumerate().map(pool).collect()
    })
}

fn coming(most: usize, priorities: std::ops::RangeInclusive<u8>) -> impl Strategy<Value = Vec<Coming>> {
    let model = prop::option::of(prop::sample::select(vec!["A100".to_owned(), "V100".to_owned()]));
    let size = (1u32..4, 1u64..5, 1u64..9, 0u32..4);
    let pool = prop::option::weighted(0.2, prop::sample::select(vec!["p0".to_owned(), "p1".to_owned()]));
    let asks = (model, pool, any::<bool>(), prop::option::weighted(0.3, 0u8..2));
    let one = (size, asks, priorities, 0u8..3, any::<bool>(), 1i64..12, prop::option::of(0i64..5), 0i64..4);
    prop::collection::vec(one, 1..most).prop_map(|all| {
        let mut clock = 0;
        let all = all.into_iter().enumerate().map(
            |(at_index, ((count, cpus, memory, gpus), asks, priority, user, job, takes, slack, pause))| {
                clock += pause;
                let (model, pool, other, share) = asks;
                let work = Work {
                    id: format!("w{at_index:03}"),
                    kind: if job { Kind::Job } else { Kind::Instance },
                    pool_kind: if job && at_index % 3 > 0 { Kind::Job } else { Kind::Instance },
                    user: format!("u{user}"),
                    group: format!("g{}", user % 2),
                    share: share.map(|share| format!("s{share}")),
                    cluster: cluster(other),
                    priority,
                    submitted: at(clock),
                    tasks: vec![Need { count, cpus_milli: cpus * 1000, memory_mib: memory << 10, gpus }],
                    model: model.filter(|_| gpus > 0),
                    pool,
                    longest: slack.map(|slack| Duration::from_secs((takes + slack).unsigned_abs())),
                };
                Coming { work, takes }
            },
        );
        all.collect()
    })
}

/// The same, many of them with a second role of another size.
fn gangs(most: usize) -> impl Strategy<Value = Vec<Coming>> {
    let role = prop::option::of((1u32..3, 1u64..4, 1u64..6, 0u32..3));
    (coming(most, 1..=9), prop::collection::vec(role, most)).prop_map(|(mut all, roles)| {
        for (coming, role) in all.iter_mut().zip(roles) {
            let need = |(count, cpus, memory, gpus): (u32, u64, u64, u32)| Need {
                count,
                cpus_milli: cpus * 1000,
                memory_mib: memory << 10,
                gpus,
            };
            coming.work.tasks.extend(role.map(need));
        }
        all
    })
}

fn allowances() -> impl Strategy<Value = BTreeMap<Owner, Allowance>> {
    let limits = (
        prop::option::of(1u64..6),
        prop::option::of(1u64..8),
        prop::option::of(1u64..3),
        prop::option::of(1u64..4),
    );
    prop::collection::vec((limits, 0u8..3, 0u8..3), 0..4).prop_map(|all| {
        let one =
            |((gpus, cpus, of_a100, jobs), number, whose): ((_, Option<u64>, Option<u64>, _), u8, u8)| {
                let owner = match whose {
                    0 => Owner::User(format!("u{number}")),
                    1 => Owner::Group(format!("g{number}")),
                    _ => Owner::Share(format!("s{number}")),
                };
                let limits = Limits {
                    gpus,
                    cpus_milli: cpus.map(|cpus| cpus * 1000),
                    gpus_by_model: of_a100.map(|most| ("A100".to_owned(), most)).into_iter().collect(),
                    jobs,
                    ..Limits::default()
                };
                (owner, Allowance { limits, raise: None })
            };
        all.into_iter().map(one).collect()
    })
}

// === playing ===

struct Play {
    situation: Situation,
    coming: Vec<Coming>,
    /// When what runs is over.
    ends: BTreeMap<String, i64>,
    second: i64,
}

impl Play {
    fn new(nodes: Vec<Node>, coming: Vec<Coming>, allowances: BTreeMap<Owner, Allowance>) -> Self {
        let rules = Rules { ageing: None };
        let (running, waiting, pools) = (vec![], vec![], vec![]);
        let situation = Situation { now: at(0), rules, nodes, pools, running, waiting, allowances };
        Self { situation, coming, ends: BTreeMap::new(), second: 0 }
    }

    /// One second: what is over goes, what comes comes, what may starts.
    fn step(&mut self) -> Vec<Decision> {
        let now = at(self.second);
        self.situation.now = now;
        let second = self.second;
        self.situation.running.retain(|running| self.ends[&running.id] > second);
        let arrives = |coming: &&Coming| coming.work.submitted == now;
        self.situation.waiting.extend(self.coming.iter().filter(arrives).map(|coming| coming.work.clone()));
        let decisions = decide(&self.situation);
        for decision in &decisions {
            if let Outcome::Start { tasks } = &decision.outcome {
                self.start(&decision.id, tasks.clone());
            }
            if matches!(decision.outcome, Outcome::Never { .. }) {
                self.situation.waiting.retain(|work| work.id != decision.id);
            }
        }
        self.second += 1;
        decisions
    }

    fn start(&mut self, id: &str, tasks: Vec<Placed>) {
        let at_index = self.situation.waiting.iter().position(|work| work.id == id).unwrap();
        let work = self.situation.waiting.remove(at_index);
        let takes = self.coming.iter().find(|coming| coming.work.id == id).unwrap().takes;
        self.ends.insert(work.id.clone(), self.second + takes);
        let now = self.situation.now;
        self.situation.running.push(Running {
            id: work.id,
            kind: work.kind,
            user: work.user,
            group: work.group,
            share: work.share,
            started: now,
            sequence: self.ends.len() as u64,
            ends_by: work.longest.map(|longest| now.checked_add(longest).unwrap()),
            tasks,
        });
    }

    fn last_arrival(&self) -> i64 {
        self.coming
            .iter()
            .map(|coming| coming.work.submitted.as_second() - at(0).as_second())
            .max()
            .unwrap_or(0)
    }
}

/// Nothing is given twice, and nothing that is not there.
fn check_machines(situation: &Situation) {
    for node in &situation.nodes {
        let tasks: Vec<_> =
            situation.running.iter().flat_map(|r| &r.tasks).filter(|task| task.node == node.name).collect();
        assert!(tasks.iter().map(|task| task.cpus_milli).sum::<u64>() <= node.cpus_milli);
        assert!(tasks.iter().map(|task| task.memory_mib).sum::<u64>() <= node.memory_mib);
        let cards: Vec<_> = tasks.iter().flat_map(|task| &task.cards).collect();
        assert_eq!(cards.len(), cards.iter().collect::<BTreeSet<_>>().len(), "a card with two owners");
        for card in cards {
            assert!(
                node.cards.iter().any(|there| there.id == *card && there.healthy),
                "{card} is not to be had"
            );
        }
    }
}

/// Every work has all its tasks, each with its cards, all of one model and of the one that was asked for.
fn check_whole(situation: &Situation, coming: &[Coming]) {
    for running in &situation.running {
        let work = &coming.iter().find(|coming| coming.work.id == running.id).unwrap().work;
        let of_role = |need: &Need| std::iter::repeat_n(*need, need.count as usize);
        let needs: Vec<Need> = work.tasks.iter().flat_map(of_role).collect();
        assert_eq!(running.tasks.len(), needs.len());
        let mut models = BTreeSet::new();
        for (task, need) in running.tasks.iter().zip(needs) {
            assert_eq!((task.cpus_milli, task.memory_mib), (need.cpus_milli, need.memory_mib));
            assert_eq!(task.cards.len(), need.gpus as usize);
            let node = situation.nodes.iter().find(|node| node.name == task.node).unwrap();
            models.extend(
                node.cards.iter().filter(|card| task.cards.contains(&card.id)).map(|card| &card.model),
            );
        }
        assert!(models.len() <= 1);
        assert!(work.model.as_ref().is_none_or(|model| models.contains(model)));
    }
}

/// Everything is in the cluster that it named, and on cards that its kind may have.
fn check_pools(situation: &Situation, coming: &[Coming]) {
    for running in &situation.running {
        let work = &coming.iter().find(|coming| coming.work.id == running.id).unwrap().work;
        let here = |pool: &&Pool| pool.cluster.as_ref().is_none_or(|cluster| *cluster == work.cluster);
        let asked = situation.pools.iter().filter(here).find(|pool| Some(&pool.name) == work.pool.as_ref());
        assert!(asked.is_some() == work.pool.is_some(), "{} is in a pool that is not there", work.id);
        for task in &running.tasks {
            let node = situation.nodes.iter().find(|node| node.name == task.node).unwrap();
            assert_eq!(node.cluster, work.cluster);
            for card in node.cards.iter().filter(|card| task.cards.contains(&card.id)) {
                let has = |pool: &&Pool| pool.models.is_empty() || pool.models.contains(&card.model);
                let own: Vec<_> = match asked {
                    Some(pool) => vec![pool],
                    None => situation.pools.iter().filter(here).filter(has).collect(),
                };
                let takes = |pool: &&Pool| has(pool) && pool.kinds.contains(&work.pool_kind);
                assert!(own.is_empty() || own.iter().any(takes), "{} has {}", work.id, card.id);
            }
        }
    }
}

fn check_allowances(situation: &Situation) {
    for (owner, allowance) in &situation.allowances {
        let held: Vec<_> = situation
            .running
            .iter()
            .filter(|running| match owner {
                Owner::User(user) => running.user == *user,
                Owner::Group(group) => running.group == *group,
                Owner::Share(share) => running.share.as_ref() == Some(share),
            })
            .collect();
        let tasks = || held.iter().flat_map(|running| &running.tasks);
        let within =
            |limit: Option<u64>, used: u64| assert!(limit.is_none_or(|limit| used <= limit), "{owner:?}");
        let limits = &allowance.limits;
        within(limits.cpus_milli, tasks().map(|task| task.cpus_milli).sum());
        within(limits.gpus, tasks().map(|task| task.cards.len() as u64).sum());
        within(limits.jobs, held.iter().filter(|running| running.kind == Kind::Job).count() as u64);
        for (model, limit) in &limits.gpus_by_model {
            let of_model = |task: &Placed| {
                let node = situation.nodes.iter().find(|node| node.name == task.node).unwrap();
                node.cards.iter().filter(|card| card.model == *model && task.cards.contains(&card.id)).count()
            };
            within(Some(*limit), tasks().map(|task| of_model(task) as u64).sum());
        }
    }
}

/// Of works that are alike in everything, the earlier ones start.
fn check_order(before: &[Work], decisions: &[Decision]) {
    let starts = |id: &str| {
        let decision = decisions.iter().find(|decision| decision.id == id);
        decision.is_some_and(|decision| matches!(decision.outcome, Outcome::Start { .. }))
    };
    for first in before {
        for second in before {
            let alike = Work { id: first.id.clone(), submitted: first.submitted, ..second.clone() } == *first;
            if alike && (first.submitted, &first.id) < (second.submitted, &second.id) {
                assert!(starts(&first.id) || !starts(&second.id), "{} before {}", second.id, first.id);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_given_twice_or_over_an_allowance(
        nodes in nodes(), pools in pools(), coming in gangs(40), allowances in allowances()
    ) {
        let mut play = Play::new(nodes, coming, allowances);
        play.situation.pools = pools;
        for _ in 0..=play.last_arrival() + 30 {
            let mut before = play.situation.waiting.clone();
            let arriving = play.coming.iter().filter(|coming| coming.work.submitted == at(play.second));
            before.extend(arriving.map(|coming| coming.work.clone()));
            let decisions = play.step();
            check_machines(&play.situation);
            check_whole(&play.situation, &play.coming);
            check_pools(&play.situation, &play.coming);
            check_allowances(&play.situation);
            check_order(&before, &decisions);
        }
    }

    /// The same situation in another order is the same situation.
    #[test]
    fn decisions_do_not_depend_on_the_order_of_lists(
        nodes in nodes(), coming in gangs(30), allowances in allowances()
    ) {
        let mut play = Play::new(nodes, coming, allowances);
        for _ in 0..=play.last_arrival() {
            play.step();
        }
        let mut reversed = play.situation.clone();
        reversed.waiting.reverse();
        reversed.running.reverse();
        prop_assert_eq!(decide(&play.situation), decide(&reversed));
        prop_assert_eq!(decide(&play.situation), decide(&play.situation));
    }

    /// The head starts at the latest when all has ended, or has reached its limit, that ran when it became the head;
    /// whatever comes behind it.
    #[test]
    fn the_head_of_the_line_is_not_starved(nodes in nodes(), coming in coming(60, 5..=5)) {
        let mut play = Play::new(nodes, coming, BTreeMap::new());
        let mut heads: BTreeMap<String, Vec<Running>> = BTreeMap::new();
        for _ in 0..=play.last_arrival() + 30 {
            let ran: BTreeSet<_> = play.situation.running.iter().map(|running| running.id.clone()).collect();
            let decisions = play.step();
            let no_room = |decision: &&Decision| matches!(
                decision.outcome,
                Outcome::Wait { reason: Reason::NoRoom { .. } | Reason::NotTogether { .. }, .. }
            );
            let of = |decision: &&Decision, cluster: &str| {
                play.coming.iter().any(|one| one.work.id == decision.id && one.work.cluster == cluster)
            };
            let head = |cluster: &'static str| decisions.iter().filter(no_room).find(|one| of(one, cluster));
            for head in ["lab", "other"].into_iter().filter_map(head) {
            let now = play.situation.now;
            let lasts = |then: &Running| {
                let limit = then.ends_by.is_some_and(|end| now < end);
                limit || play.situation.running.iter().any(|running| running.id == then.id)
            };
            if let Some(then) = heads.get(&head.id) {
                prop_assert!(then.iter().any(lasts), "{} is passed by: {:?}", head.id, play.situation);
            } else {
                // What started in this very step stood before it in the line.
                let before = decisions.iter().position(|decision| decision.id == head.id).unwrap();
                let ahead: BTreeSet<_> = decisions[..before].iter().map(|decision| decision.id.clone()).collect();
                let then = |running: &&Running| ran.contains(&running.id) || ahead.contains(&running.id);
                let then = play.situation.running.iter().filter(then).cloned().collect();
                heads.insert(head.id.clone(), then);
            }
            }
        }
    }

    /// When nothing more comes, everything that can ever start has started after a while.
    #[test]
    fn the_line_empties(
        nodes in nodes(), pools in pools(), coming in gangs(30), allowances in allowances()
    ) {
        let mut play = Play::new(nodes, coming, allowances);
        play.situation.pools = pools;
        let longest: i64 = play.coming.iter().map(|coming| coming.takes).sum();
        for _ in 0..=play.last_arrival() + longest + 2 {
            play.step();
        }
        for decision in decide(&play.situation) {
            let stuck = match &decision.outcome {
                Outcome::Wait { reason: Reason::AllowanceTooSmall { .. }, .. } | Outcome::Never { .. } => false,
                Outcome::Wait { .. } | Outcome::Start { .. } => true,
            };
            prop_assert!(!stuck, "{:?}", decision);
        }
    }

    /// What is said to start with fewer cards does start with so many.
    #[test]
    fn what_would_start_now_starts(nodes in nodes(), coming in coming(30, 1..=9)) {
        let mut play = Play::new(nodes, coming, BTreeMap::new());
        for _ in 0..=play.last_arrival() {
            play.step();
        }
        for decision in decide(&play.situation) {
            let Outcome::Wait { instead: Some(less), .. } = decision.outcome else { continue };
            let mut smaller = play.situation.clone();
            let work = smaller.waiting.iter_mut().find(|work| work.id == decision.id).unwrap();
            work.tasks[0].gpus = less.gpus_per_task;
            let again = decide(&smaller).into_iter().find(|again| again.id == decision.id).unwrap();
            prop_assert!(matches!(again.outcome, Outcome::Start { .. }), "{:?}: {:?}", less, again);
        }
    }
}
