//! How long one decision takes with 10,000 works waiting on 100 machines: `cargo run --release -p queue --example
//! ten_thousand`. The goal is below 50 ms.

#![expect(clippy::print_stdout, reason = "a program whose output is its point")]

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use queue::{
    Allowance, Card, Kind, Limits, Need, Node, Outcome, Owner, Placed, Rules, Running, Situation, Work,
    decide,
};

const NODES: u32 = 100;
const WAITING: u32 = 10_000;

fn main() {
    let situation = situation();
    let mut times: Vec<Duration> = Vec::new();
    let mut started = 0;
    for _ in 0..20 {
        let start = Instant::now();
        let decisions = decide(&situation);
        times.push(start.elapsed());
        started = decisions.iter().filter(|one| matches!(one.outcome, Outcome::Start { .. })).count();
    }
    times.sort_unstable();
    println!(
        "{WAITING} waiting, {NODES} machines, {} running, {started} started: median {:.1} ms, slowest {:.1} ms",
        situation.running.len(),
        times[times.len() / 2].as_secs_f64() * 1e3,
        times[times.len() - 1].as_secs_f64() * 1e3,
    );
}

/// Every work of another size, so that no answer can be used twice.
fn situation() -> Situation {
    let mut random = 1u32;
    let mut next = |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % below
    };
    let node = |number: u32| Node {
        name: format!("node-{number}"),
        cluster: "lab".to_owned(),
        ready: true,
        cpus_milli: 96_000,
        memory_mib: 512 << 10,
        cards: (0..8)
            .map(|card| Card {
                id: format!("{number}-{card}"),
                model: if number.is_multiple_of(3) { "A100" } else { "V100" }.to_owned(),
                healthy: true,
            })
            .collect(),
    };
    let running = |number: u32| Running {
        id: format!("running-{number}"),
        kind: Kind::Job,
        user: format!("user-{}", number % 50),
        group: format!("group-{}", number % 10),
        share: None,
        started: Timestamp::UNIX_EPOCH,
        sequence: number.into(),
        ends_by: None,
        tasks: vec![Placed {
            node: format!("node-{}", number / 7),
            cpus_milli: 8000,
            memory_mib: 32 << 10,
            cards: vec![format!("{}-{}", number / 7, number % 7)],
        }],
    };
    let waiting = (0..WAITING).map(|number| Work {
        id: format!("work-{number:05}"),
        kind: if number.is_multiple_of(4) { Kind::Instance } else { Kind::Job },
        pool_kind: if number.is_multiple_of(4) { Kind::Instance } else { Kind::Job },
        user: format!("user-{}", next(50)),
        group: format!("group-{}", next(10)),
        share: None,
        cluster: "lab".to_owned(),
        priority: u8::try_from(1 + next(9)).unwrap_or(1),
        submitted: Timestamp::UNIX_EPOCH + Duration::from_secs(number.into()),
        tasks: vec![Need {
            count: 1 + next(2),
            cpus_milli: u64::from(1000 + next(32_000)),
            memory_mib: u64::from(1024 + next(65_536)),
            gpus: 1 + next(8),
        }],
        model: (next(2) == 0).then(|| "A100".to_owned()),
        pool: None,
        longest: None,
    });
    let waiting = waiting.collect();
    let limits = Limits { gpus: Some(96), ..Limits::default() };
    let allowance = |number: u32| (Owner::Group(format!("group-{number}")), limits.clone());
    let allowances: BTreeMap<_, _> =
        (0..10).map(allowance).map(|(owner, limits)| (owner, Allowance { limits, raise: None })).collect();
    Situation {
        now: Timestamp::UNIX_EPOCH + Duration::from_secs(20_000),
        rules: Rules { ageing: Some(Duration::from_hours(1)) },
        pools: Vec::new(),
        nodes: (0..NODES).map(node).collect(),
        running: (0..NODES * 7).map(running).collect(),
        waiting,
        allowances,
    }
}
