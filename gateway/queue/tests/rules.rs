//! The rules of the line, one small situation each.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use queue::{
    Allowance, Card, Decision, Impossible, Kind, Less, Limits, Need, Node, Outcome, Owner, Placed, Pool,
    Raise, Reason, Resource, Rules, Running, Situation, Work, decide, decide_for,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn node(name: &str, cards: &[&str]) -> Node {
    let card = |(at, model): (usize, &&str)| Card {
        id: format!("{name}-{at}"),
        model: (*model).to_owned(),
        healthy: true,
    };
    Node {
        name: name.to_owned(),
        cluster: "lab".to_owned(),
        ready: true,
        cpus_milli: 32_000,
        memory_mib: 128 << 10,
        cards: cards.iter().enumerate().map(card).collect(),
    }
}

fn pool(name: &str, models: &[&str], kinds: &[Kind]) -> Pool {
    Pool {
        name: name.to_owned(),
        cluster: None,
        models: models.iter().map(|&model| model.to_owned()).collect(),
        kinds: kinds.iter().copied().collect(),
    }
}

fn work(id: &str, gpus: u32, submitted: i64) -> Work {
    Work {
        id: id.to_owned(),
        kind: Kind::Job,
        pool_kind: Kind::Job,
        user: "alice".to_owned(),
        group: "vision".to_owned(),
        share: None,
        cluster: "lab".to_owned(),
        priority: 5,
        submitted: at(submitted),
        tasks: vec![Need { count: 1, cpus_milli: 1000, memory_mib: 1024, gpus }],
        model: None,
        pool: None,
        longest: None,
    }
}

fn running(id: &str, node: &str, cards: &[usize], ends_by: Option<i64>) -> Running {
    let cards = cards.iter().map(|card| format!("{node}-{card}")).collect();
    Running {
        id: id.to_owned(),
        kind: Kind::Job,
        user: "alice".to_owned(),
        group: "vision".to_owned(),
        share: None,
        started: at(0),
        sequence: 1,
        ends_by: ends_by.map(at),
        tasks: vec![Placed { node: node.to_owned(), cpus_milli: 1000, memory_mib: 1024, cards }],
    }
}

fn situation(nodes: Vec<Node>, running: Vec<Running>, waiting: Vec<Work>) -> Situation {
    Situation {
        now: at(1000),
        rules: Rules { ageing: Some(Duration::from_hours(1)) },
        nodes,
        pools: vec![pool("main", &[], &[Kind::Instance, Kind::Job])],
        running,
        waiting,
        allowances: BTreeMap::new(),
    }
}

fn started(decisions: &[Decision]) -> Vec<&str> {
    let starts = decisions.iter().filter(|decision| matches!(decision.outcome, Outcome::Start { .. }));
    starts.map(|decision| decision.id.as_str()).collect()
}

fn reason<'a>(decisions: &'a [Decision], id: &str) -> &'a Reason {
    match &decisions.iter().find(|decision| decision.id == id).unwrap().outcome {
        Outcome::Wait { reason, .. } => reason,
        other @ (Outcome::Start { .. } | Outcome::Never { .. }) => panic!("{id}: {other:?}"),
    }
}

#[test]
fn priority_first_then_submission() {
    let mut urgent = work("urgent", 4, 30);
    urgent.priority = 9;
    let all = situation(
        vec![node("a", &["A100"; 4])],
        vec![],
        vec![work("second", 2, 20), work("first", 2, 10), urgent],
    );
    let decisions = decide(&all);
    let order: Vec<_> = decisions.iter().map(|decision| decision.id.as_str()).collect();
    assert_eq!(order, ["urgent", "first", "second"]);
    assert_eq!(started(&decisions), ["urgent"]);
}

#[test]
fn who_waits_long_enough_is_first() {
    let mut urgent = work("urgent", 4, 990);
    urgent.priority = 9;
    let mut old = work("old", 4, 1000 - 8 * 3600);
    old.priority = 1;
    let all = situation(vec![node("a", &["A100"; 4])], vec![], vec![urgent, old]);
    assert_eq!(started(&decide(&all)), ["old"]);
}

#[test]
fn the_place_of_the_head_is_kept_and_the_rest_is_filled() {
    // `a` has two cards free and two that are free at 2000; `b` has one free.
    let nodes = vec![node("a", &["A100"; 4]), node("b", &["A100"; 2])];
    let busy = vec![running("r1", "a", &[0, 1], Some(2000)), running("r2", "b", &[0], None)];
    let mut quick = work("quick", 2, 40);
    quick.longest = Some(Duration::from_mins(15));
    let waiting = vec![work("head", 4, 10), work("small", 1, 20), work("large", 2, 30), quick];
    let decisions = decide(&situation(nodes, busy, waiting));
    // `small` stands beside the plan, `quick` is over before it; `large` is neither.
    assert_eq!(started(&decisions), ["small", "quick"]);
    assert_eq!(*reason(&decisions, "head"), Reason::NoRoom { resource: Resource::Gpus, wanted: 4, free: 2 });
    assert_eq!(*reason(&decisions, "large"), Reason::Behind { id: "head".to_owned() });
    let Outcome::Wait { position, starts_by, .. } = &decisions[0].outcome else { panic!() };
    assert_eq!((*position, *starts_by), (1, Some(at(2000))));
}

#[test]
fn all_tasks_or_none() {
    let nodes = vec![node("a", &["A100"; 4]), node("b", &["A100"; 4])];
    let mut gang = work("gang", 2, 10);
    gang.tasks[0].count = 4;
    let decisions = decide(&situation(nodes.clone(), vec![], vec![gang.clone()]));
    let Outcome::Start { tasks } = &decisions[0].outcome else { panic!("{decisions:?}") };
    assert_eq!(tasks.len(), 4);
    let decisions =
        decide(&situation(nodes.clone(), vec![running("r", "a", &[0], None)], vec![gang.clone()]));
    assert_eq!(*reason(&decisions, "gang"), Reason::NotTogether { tasks: 4, fit: 3 });
    gang.tasks[0].count = 5;
    let decisions = decide(&situation(nodes, vec![], vec![gang]));
    let never = Outcome::Never { reason: Impossible::NotTogether { tasks: 5, fit: 4 } };
    assert_eq!(decisions[0].outcome, never);
}

#[test]
fn what_can_never_be_is_said_at_once() {
    let nodes = vec![node("a", &["A100"; 4]), node("b", &["V100"; 8])];
    let outcome = |change: fn(&mut Work)| {
        let mut one = work("one", 8, 10);
        change(&mut one);
        decide_for(&situation(nodes.clone(), vec![], vec![]), &one).unwrap()
    };
    assert!(matches!(outcome(|_| {}), Outcome::Start { .. }));
    for (change, expected) in [
        (
            (|work| work.tasks[0].gpus = 9) as fn(&mut Work),
            Impossible::TooLarge { resource: Resource::Gpus, wanted: 9, largest: 8 },
        ),
        (
            |work| work.model = Some("A100".to_owned()),
            Impossible::TooLarge { resource: Resource::Gpus, wanted: 8, largest: 4 },
        ),
        (
            |work| work.tasks[0].memory_mib = 1 << 20,
            Impossible::TooLarge { resource: Resource::Memory, wanted: 1 << 20, largest: 128 << 10 },
        ),
        (
            |work| work.model = Some("H100".to_owned()),
            Impossible::NoSuchModel {
                model: "H100".to_owned(),
                known: vec!["A100".to_owned(), "V100".to_owned()],
            },
        ),
        (
            |work| work.pool = Some("debug".to_owned()),
            Impossible::NoSuchPool { pool: "debug".to_owned(), known: vec!["main".to_owned()] },
        ),
        (
            |work| work.pool_kind = Kind::Debug,
            Impossible::NotForKind { pool: "main".to_owned(), kinds: vec![Kind::Instance, Kind::Job] },
        ),
        (|work| work.tasks.clear(), Impossible::Nothing),
    ] {
        assert_eq!(outcome(change), Outcome::Never { reason: expected });
    }
}

#[test]
fn what_is_never_started_stops_nobody() {
    let nodes = vec![node("a", &["A100"; 4])];
    let decisions = decide(&situation(nodes, vec![], vec![work("giant", 16, 1), work("small", 1, 2)]));
    assert_eq!(started(&decisions), ["small"]);
}

#[test]
fn an_allowance_stops_its_owner_only() {
    let nodes = vec![node("a", &["A100"; 8])];
    let mut other = work("other", 2, 40);
    other.user = "bob".to_owned();
    let waiting =
        vec![work("four", 4, 10), work("one", 1, 20), work("none", 0, 30), other, work("nine", 7, 50)];
    let mut all = situation(nodes, vec![running("r", "a", &[0, 1, 2], None)], waiting);
    let alice = Owner::User("alice".to_owned());
    let limits = Limits { gpus: Some(6), ..Limits::default() };
    all.allowances.insert(alice.clone(), Allowance { limits, raise: None });
    let decisions = decide(&all);
    // `one` would fit into the allowance, but `four` was first and would starve.
    assert_eq!(started(&decisions), ["none", "other"]);
    let gpus = Resource::Gpus;
    let four =
        Reason::Allowance { owner: alice.clone(), resource: gpus.clone(), limit: 6, used: 3, wanted: 4 };
    assert_eq!(*reason(&decisions, "four"), four);
    let kept = Reason::AllowanceKept { owner: alice.clone(), resource: gpus.clone(), by: "four".to_owned() };
    assert_eq!(*reason(&decisions, "one"), kept);
    let too_small = Reason::AllowanceTooSmall { owner: alice.clone(), resource: gpus, limit: 6, wanted: 7 };
    assert_eq!(*reason(&decisions, "nine"), too_small);

    let raise = Raise { until: at(1001), limits: Limits { gpus: Some(8), ..Limits::default() } };
    all.allowances.get_mut(&alice).unwrap().raise = Some(raise);
    assert_eq!(started(&decide(&all))[0], "four");
    all.now = at(1001);
    assert_eq!(started(&decide(&all))[0], "none");
}

#[test]
fn tasks_are_counted_over_all_that_runs() {
    let mut wide = work("wide", 0, 10);
    wide.tasks[0].count = 3;
    let mut all = situation(
        vec![node("a", &["A100"; 4])],
        vec![running("r", "a", &[0, 1], None)],
        vec![wide, work("one", 0, 20)],
    );
    let alice = Owner::User("alice".to_owned());
    let limits = Limits { tasks: Some(3), ..Limits::default() };
    all.allowances.insert(alice.clone(), Allowance { limits, raise: None });
    let wide = Reason::Allowance { owner: alice, resource: Resource::Tasks, limit: 3, used: 1, wanted: 3 };
    assert_eq!(*reason(&decide(&all), "wide"), wide);
    all.running.clear();
    assert_eq!(started(&decide(&all)), ["wide"]);
}

#[test]
fn an_allowance_of_a_model_leaves_the_others() {
    let nodes = vec![node("a", &["A100"; 4]), node("b", &["V100"; 2])];
    let mut all = situation(nodes, vec![], vec![work("any", 2, 10)]);
    let limits = Limits { gpus_by_model: [("A100".to_owned(), 1)].into(), ..Limits::default() };
    all.allowances.insert(Owner::Group("vision".to_owned()), Allowance { limits, raise: None });
    let decisions = decide(&all);
    let Outcome::Start { tasks } = &decisions[0].outcome else { panic!("{decisions:?}") };
    assert_eq!(tasks[0].node, "b");
}

#[test]
fn what_would_start_now_is_said() {
    let nodes = vec![node("a", &["A100"; 4]), node("b", &["A100"; 4])];
    let busy = vec![running("r1", "a", &[0], None), running("r2", "b", &[0, 1], None)];
    let decisions = decide(&situation(nodes, busy, vec![work("four", 4, 10)]));
    let Outcome::Wait { instead, .. } = &decisions[0].outcome else { panic!() };
    assert_eq!(*instead, Some(Less { gpus_per_task: 3 }));
}

#[test]
fn machines_that_are_away_are_nobodys_room() {
    let mut away = node("a", &["A100"; 4]);
    away.ready = false;
    let all =
        situation(vec![away, node("b", &["A100"; 1])], vec![], vec![work("four", 4, 10), work("one", 1, 20)]);
    let decisions = decide(&all);
    assert_eq!(*reason(&decisions, "four"), Reason::NotReady);
    assert_eq!(started(&decisions), ["one"]);
}

#[test]
fn a_broken_card_is_given_to_nobody() {
    let mut broken = node("a", &["A100"; 2]);
    broken.cards[0].healthy = false;
    let decisions = decide(&situation(vec![broken], vec![], vec![work("one", 1, 10)]));
    let Outcome::Start { tasks } = &decisions[0].outcome else { panic!("{decisions:?}") };
    assert_eq!(tasks[0].cards, ["a-1"]);
}

#[test]
fn work_without_cards_leaves_machines_with_cards_alone() {
    let nodes = vec![node("a", &["A100"; 2]), node("b", &[])];
    let decisions = decide(&situation(nodes, vec![], vec![work("none", 0, 10)]));
    let Outcome::Start { tasks } = &decisions[0].outcome else { panic!("{decisions:?}") };
    assert_eq!(tasks[0].node, "b");
}

#[test]
fn a_pool_of_cards_is_for_its_kinds() {
    let nodes = vec![node("a", &["P100", "P100", "V100", "V100"])];
    let mut all = situation(nodes, vec![], vec![]);
    all.pools =
        vec![pool("dev", &["P100"], &[Kind::Instance, Kind::Debug]), pool("train", &["V100"], &[Kind::Job])];
    let outcome = |kind: Kind, gpus: u32, model: Option<&str>, pool: Option<&str>| {
        let (model, pool) = (model.map(str::to_owned), pool.map(str::to_owned));
        decide_for(&all, &Work { pool_kind: kind, model, pool, ..work("one", gpus, 10) }).unwrap()
    };
    let cards = |outcome: Outcome| match outcome {
        Outcome::Start { tasks } => tasks[0].cards.clone(),
        other @ (Outcome::Wait { .. } | Outcome::Never { .. }) => panic!("{other:?}"),
    };
    // Who names none gets what takes its kind, and only that.
    assert_eq!(cards(outcome(Kind::Instance, 2, None, None)), ["a-0", "a-1"]);
    assert_eq!(cards(outcome(Kind::Job, 2, None, None)), ["a-2", "a-3"]);
    let too_large = Impossible::TooLarge { resource: Resource::Gpus, wanted: 3, largest: 2 };
    assert_eq!(outcome(Kind::Job, 3, None, None), Outcome::Never { reason: too_large });
    let train = Impossible::NotForKind { pool: "train".to_owned(), kinds: vec![Kind::Job] };
    for asked in
        [outcome(Kind::Instance, 1, Some("V100"), None), outcome(Kind::Instance, 0, None, Some("train"))]
    {
        assert_eq!(asked, Outcome::Never { reason: train.clone() });
    }
    // No pool has the machine as a whole: what needs no card may go there.
    assert_eq!(cards(outcome(Kind::Job, 0, None, None)), Vec::<String>::new());
    let not_there = Impossible::NoSuchModel { model: "P100".to_owned(), known: vec!["V100".to_owned()] };
    assert_eq!(outcome(Kind::Job, 1, Some("P100"), Some("train")), Outcome::Never { reason: not_there });
}

#[test]
fn clusters_wait_for_themselves_alone() {
    let other = |node: Node| Node { cluster: "other".to_owned(), ..node };
    let there = |work: Work| Work { cluster: "other".to_owned(), ..work };
    let mut away = other(node("c", &["A100"; 8]));
    away.ready = false;
    let nodes = vec![node("a", &["A100"; 2]), other(node("b", &["A100"; 2])), away];
    let busy = vec![running("r1", "a", &[0], None), running("r2", "b", &[0], None)];
    let waiting = vec![
        work("head", 2, 10),
        there(work("head there", 2, 20)),
        there(work("small there", 1, 30)),
        there(work("only the one that is away", 8, 40)),
        work("too large here", 4, 50),
    ];
    let decisions = decide(&situation(nodes, busy, waiting));
    assert_eq!(started(&decisions), Vec::<&str>::new());
    // Each line has a head of its own, whose place is kept.
    let no_room = Reason::NoRoom { resource: Resource::Gpus, wanted: 2, free: 1 };
    assert_eq!(*reason(&decisions, "head"), no_room);
    assert_eq!(*reason(&decisions, "head there"), no_room);
    assert_eq!(*reason(&decisions, "small there"), Reason::Behind { id: "head there".to_owned() });
    assert_eq!(*reason(&decisions, "only the one that is away"), Reason::NotReady);
    let too_large = Impossible::TooLarge { resource: Resource::Gpus, wanted: 4, largest: 2 };
    assert_eq!(decisions.last().unwrap().outcome, Outcome::Never { reason: too_large });
}
