//! What owners hold, and may hold.
//!
//! Accounts are numbered and resources too, since every work in a long line is asked about: nothing here makes a text
//! unless there is an objection to tell.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use crate::{
    decision::{Reason, Resource},
    room::Cluster,
    situation::{Allowance, Kind, Need, Owner, Running, Work},
};

/// Who holds how much, and which allowances are kept for somebody.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    accounts: Vec<Account<'a>>,
    users: HashMap<&'a str, usize>,
    groups: HashMap<&'a str, usize>,
    shares: HashMap<&'a str, usize>,
    models: Vec<&'a str>,
}

/// One owner; each list is by the number of the resource.
#[derive(Debug)]
struct Account<'a> {
    owner: &'a Owner,
    limits: Vec<Option<u64>>,
    used: Vec<u64>,
    kept_for: Vec<Option<String>>,
}

/// Numbers of resources; those of models follow.
const CPUS: usize = 0;
const MEMORY: usize = 1;
const GPUS: usize = 2;
const INSTANCES: usize = 3;
const JOBS: usize = 4;
const TASKS: usize = 5;
const MODELS: usize = 6;

/// What something would hold, by the number of the resource.
type Wants = [(usize, u64); 6];

impl<'a> Ledger<'a> {
    pub(crate) fn new(
        allowances: &'a BTreeMap<Owner, Allowance>,
        now: Timestamp,
        cluster: &Cluster<'a>,
    ) -> Self {
        let models = cluster.models.clone();
        let mut ledger = Self {
            accounts: Vec::new(),
            users: HashMap::new(),
            groups: HashMap::new(),
            shares: HashMap::new(),
            models,
        };
        for (owner, allowance) in allowances {
            let number = ledger.accounts.len();
            match owner {
                Owner::User(name) => ledger.users.insert(name, number),
                Owner::Group(name) => ledger.groups.insert(name, number),
                Owner::Share(name) => ledger.shares.insert(name, number),
            };
            let limits = limits(allowance, now, &ledger.models);
            let (used, kept_for) = (vec![0; limits.len()], vec![None; limits.len()]);
            ledger.accounts.push(Account { owner, limits, used, kept_for });
        }
        ledger
    }

    fn accounts_of(
        &self,
        user: &str,
        group: &str,
        share: Option<&str>,
    ) -> impl Iterator<Item = usize> + use<> {
        let share = share.and_then(|share| self.shares.get(share));
        [self.users.get(user), self.groups.get(group), share]
            .map(Option::<&usize>::copied)
            .into_iter()
            .flatten()
    }

    pub(crate) fn add_running(&mut self, running: &Running, cluster: &Cluster<'_>) {
        for number in self.accounts_of(&running.user, &running.group, running.share.as_deref()) {
            let used = &mut self.accounts[number].used;
            used[of_kind(running.kind)] += 1;
            used[TASKS] += running.tasks.len() as u64;
            for task in &running.tasks {
                used[CPUS] += task.cpus_milli;
                used[MEMORY] += task.memory_mib;
                used[GPUS] += task.cards.len() as u64;
                let node = cluster.node(&task.node);
                for card in &task.cards {
                    if let Some(model) = node.and_then(|node| cluster.card_model(node, card)) {
                        used[MODELS + model] += 1;
                    }
                }
            }
        }
    }

    /// Counts `work` as running, its cards being of `model`.
    pub(crate) fn add(&mut self, work: &Work, model: Option<usize>) {
        for number in self.accounts_of(&work.user, &work.group, work.share.as_deref()) {
            for (resource, amount) in wants(work.kind, &work.tasks, model) {
                self.accounts[number].used[resource] += amount;
            }
        }
    }

    /// Whether `work` with these tasks may start, with its cards being of `model`.
    pub(crate) fn allows(&self, work: &Work, tasks: &[Need], model: Option<usize>) -> bool {
        let wants = wants(work.kind, tasks, model);
        self.accounts_of(&work.user, &work.group, work.share.as_deref()).all(|number| {
            let account = &self.accounts[number];
            wants.iter().all(|&(resource, wanted)| account.allows(resource, wanted, &work.id))
        })
    }

    /// Why `work` may not start, if it may not.
    pub(crate) fn objection(&self, work: &Work, model: Option<usize>) -> Option<Reason> {
        let wants = wants(work.kind, &work.tasks, model);
        self.accounts_of(&work.user, &work.group, work.share.as_deref()).find_map(|number| {
            let account = &self.accounts[number];
            let refused =
                wants.iter().find(|&&(resource, wanted)| !account.allows(resource, wanted, &work.id))?;
            Some(self.reason(account, *refused, &work.id))
        })
    }

    fn reason(&self, account: &Account<'_>, (number, wanted): (usize, u64), id: &str) -> Reason {
        let owner = account.owner.clone();
        let resource = match number {
            CPUS => Resource::Cpus,
            MEMORY => Resource::Memory,
            GPUS => Resource::Gpus,
            INSTANCES => Resource::Instances,
            JOBS => Resource::Jobs,
            TASKS => Resource::Tasks,
            model => Resource::GpusOf(self.models[model - MODELS].to_owned()),
        };
        let limit = account.limits[number].unwrap_or(u64::MAX);
        if wanted > limit {
            return Reason::AllowanceTooSmall { owner, resource, limit, wanted };
        }
        match account.kept_for[number].as_ref().filter(|by| *by != id) {
            Some(by) => Reason::AllowanceKept { owner, resource, by: by.clone() },
            None => Reason::Allowance { owner, resource, limit, used: account.used[number], wanted },
        }
    }

    /// Keeps for `work` what it waits for, unless that is kept already.
    pub(crate) fn keep_for(&mut self, work: &Work, model: Option<usize>) {
        for number in self.accounts_of(&work.user, &work.group, work.share.as_deref()) {
            let account = &mut self.accounts[number];
            for (resource, wanted) in wants(work.kind, &work.tasks, model) {
                let free = account.kept_for[resource].is_none();
                if free && !account.allows(resource, wanted, &work.id) {
                    account.kept_for[resource] = Some(work.id.clone());
                }
            }
        }
    }
}

impl Account<'_> {
    fn allows(&self, resource: usize, wanted: u64, id: &str) -> bool {
        let Some(limit) = self.limits[resource].filter(|_| wanted > 0) else { return true };
        let kept = self.kept_for[resource].as_ref().is_some_and(|by| by != id);
        !kept && self.used[resource].saturating_add(wanted) <= limit
    }
}

fn of_kind(kind: Kind) -> usize {
    match kind {
        // Looking at what failed is working in an instance.
        Kind::Instance | Kind::Debug => INSTANCES,
        Kind::Job => JOBS,
    }
}

fn wants(kind: Kind, tasks: &[Need], model: Option<usize>) -> Wants {
    let sum = |of: fn(&Need) -> u64| -> u64 {
        tasks.iter().map(|need| of(need).saturating_mul(u64::from(need.count))).sum()
    };
    let gpus = sum(|need| need.gpus.into());
    let of_model = model.map_or((GPUS, 0), |model| (MODELS + model, gpus));
    [
        (of_kind(kind), 1),
        (CPUS, sum(|need| need.cpus_milli)),
        (MEMORY, sum(|need| need.memory_mib)),
        (GPUS, gpus),
        (TASKS, sum(|_| 1)),
        of_model,
    ]
}

/// The limits in force at `now`, by the number of the resource.
fn limits(allowance: &Allowance, now: Timestamp, models: &[&str]) -> Vec<Option<u64>> {
    let limits = allowance.in_force(now);
    let mut all =
        vec![limits.cpus_milli, limits.memory_mib, limits.gpus, limits.instances, limits.jobs, limits.tasks];
    all.extend(models.iter().map(|model| limits.gpus_by_model.get(*model).copied()));
    all
}
