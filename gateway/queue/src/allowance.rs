//! What owners hold, and may hold.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use crate::{
    decision::{Reason, Resource},
    room::Cluster,
    situation::{Allowance, Kind, Limits, Owner, Running, Work},
};

/// Who holds how much, and which allowances are kept for somebody.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    allowances: &'a BTreeMap<Owner, Allowance>,
    now: Timestamp,
    used: HashMap<(Owner, Resource), u64>,
    kept: HashMap<(Owner, Resource), String>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(allowances: &'a BTreeMap<Owner, Allowance>, now: Timestamp) -> Self {
        Self { allowances, now, used: HashMap::new(), kept: HashMap::new() }
    }

    pub(crate) fn add_running(&mut self, running: &Running, cluster: &Cluster<'_>) {
        let mut amounts: Vec<(Resource, u64)> = vec![of_kind(running.kind)];
        for task in &running.tasks {
            amounts.push((Resource::Cpus, task.cpus_milli));
            amounts.push((Resource::Memory, task.memory_mib));
            amounts.push((Resource::Gpus, task.cards.len() as u64));
            let node = cluster.node(&task.node);
            for card in &task.cards {
                if let Some(model) = node.and_then(|node| cluster.card_model(node, card)) {
                    amounts.push((Resource::GpusOf(cluster.models[model].to_owned()), 1));
                }
            }
        }
        for owner in running.owners().filter(|owner| self.allowances.contains_key(owner)) {
            for (resource, amount) in &amounts {
                *self.used.entry((owner.clone(), resource.clone())).or_default() += amount;
            }
        }
    }

    /// Counts `work` as running, its cards being of `model`.
    pub(crate) fn add(&mut self, work: &Work, model: Option<&str>) {
        for owner in work.owners().filter(|owner| self.allowances.contains_key(owner)) {
            for (resource, amount) in wants(work, model) {
                *self.used.entry((owner.clone(), resource)).or_default() += amount;
            }
        }
    }

    /// Why `work` may not start, with its cards being of `model`, if it may not.
    pub(crate) fn objection(&self, work: &Work, model: Option<&str>) -> Option<Reason> {
        let mut first = None;
        self.each_objection(work, model, |reason| {
            first.get_or_insert(reason);
        });
        first
    }

    /// Keeps for `work` what it waits for.
    pub(crate) fn keep_for(&mut self, work: &Work, model: Option<&str>) {
        let mut lacking = Vec::new();
        self.each_objection(work, model, |reason| {
            if let Reason::Allowance { owner, resource, .. } = reason {
                lacking.push((owner, resource));
            }
        });
        for key in lacking {
            self.kept.entry(key).or_insert_with(|| work.id.clone());
        }
    }

    fn each_objection(&self, work: &Work, model: Option<&str>, mut tell: impl FnMut(Reason)) {
        for owner in work.owners() {
            let Some(allowance) = self.allowances.get(&owner) else { continue };
            for (resource, wanted) in wants(work, model) {
                let Some(limit) = limit(allowance, &resource, self.now) else { continue };
                if wanted == 0 {
                    continue;
                }
                let key = (owner.clone(), resource.clone());
                let used = self.used.get(&key).copied().unwrap_or(0);
                let owner = owner.clone();
                if wanted > limit {
                    tell(Reason::AllowanceTooSmall { owner, resource, limit, wanted });
                } else if let Some(by) = self.kept.get(&key).filter(|by| **by != work.id) {
                    tell(Reason::AllowanceKept { owner, resource, by: by.clone() });
                } else if used + wanted > limit {
                    tell(Reason::Allowance { owner, resource, limit, used, wanted });
                }
            }
        }
    }
}

fn of_kind(kind: Kind) -> (Resource, u64) {
    match kind {
        // Looking at what failed is working in an instance.
        Kind::Instance | Kind::Debug => (Resource::Instances, 1),
        Kind::Job => (Resource::Jobs, 1),
    }
}

/// All that `work` would hold.
fn wants(work: &Work, model: Option<&str>) -> Vec<(Resource, u64)> {
    let sum = |of: fn(&crate::situation::Need) -> u64| -> u64 {
        work.tasks.iter().map(|need| of(need).saturating_mul(u64::from(need.count))).sum()
    };
    let mut all = vec![
        of_kind(work.kind),
        (Resource::Cpus, sum(|need| need.cpus_milli)),
        (Resource::Memory, sum(|need| need.memory_mib)),
        (Resource::Gpus, work.gpus()),
    ];
    if let Some(model) = model {
        all.push((Resource::GpusOf(model.to_owned()), work.gpus()));
    }
    all
}

fn limit(allowance: &Allowance, resource: &Resource, now: Timestamp) -> Option<u64> {
    let of = |limits: &Limits| match resource {
        Resource::Cpus => limits.cpus_milli,
        Resource::Memory => limits.memory_mib,
        Resource::Gpus => limits.gpus,
        Resource::GpusOf(model) => limits.gpus_by_model.get(model).copied(),
        Resource::Instances => limits.instances,
        Resource::Jobs => limits.jobs,
    };
    let raise = allowance.raise.as_ref().filter(|raise| now < raise.until);
    raise.and_then(|raise| of(&raise.limits)).or_else(|| of(&allowance.limits))
}
