//! How much of their quotas people use: what they hold, and what they wait for.

use std::collections::BTreeSet;

use gateway_api::quota::{OwnQuota, Quota, QuotaLimits, QuotaStanding, QuotaUse};
use jiff::Timestamp;
use queue::{Kind, Work};

use super::App;
use crate::{
    auth::Caller,
    error::Error,
    store::{QuotaOwner, Reservation},
};

impl App {
    pub(crate) async fn own_quota(&self, caller: &Caller) -> Result<OwnQuota, Error> {
        let held = self.store.reservations().await?;
        let waiting = self.waiting_works().await?;
        let (user, group) = (caller.user.name.to_string(), caller.user.group.to_string());
        let of_user = self.quota(QuotaOwner::User(caller.user.id)).await?;
        let of_group = self.quota(QuotaOwner::Group(caller.user.group_id)).await?;
        let now = Timestamp::now();
        let user_uses = (
            used(held.iter().filter(|one| one.user == user)),
            asked(waiting.iter().filter(|work| work.user == user)),
        );
        let group_uses = (
            used(held.iter().filter(|one| one.group == group)),
            asked(waiting.iter().filter(|work| work.group == group)),
        );
        Ok(OwnQuota {
            user: standing(user, of_user, now, user_uses),
            group: standing(group, of_group, now, group_uses),
        })
    }
}

fn standing(name: String, quota: Quota, now: Timestamp, uses: (QuotaUse, QuotaUse)) -> QuotaStanding {
    let raise = quota.raise.filter(|raise| now < raise.until);
    let raised_until = raise.as_ref().map(|raise| raise.until);
    let limits = match raise {
        Some(raise) => in_force(quota.limits, raise.limits),
        None => quota.limits,
    };
    QuotaStanding { name, limits, raised_until, used: uses.0, waiting: uses.1 }
}

/// What is raised, and the rest as it always is.
fn in_force(always: QuotaLimits, raised: QuotaLimits) -> QuotaLimits {
    let mut gpus_by_model = always.gpus_by_model;
    gpus_by_model.extend(raised.gpus_by_model);
    QuotaLimits {
        cpus: raised.cpus.or(always.cpus),
        memory_bytes: raised.memory_bytes.or(always.memory_bytes),
        gpus: raised.gpus.or(always.gpus),
        gpus_by_model,
        instances: raised.instances.or(always.instances),
        jobs: raised.jobs.or(always.jobs),
    }
}

fn used<'a>(held: impl Iterator<Item = &'a Reservation>) -> QuotaUse {
    let mut sum = QuotaUse::default();
    let mut jobs = BTreeSet::new();
    let mut milli = 0;
    for one in held {
        milli += one.held.cpus_milli;
        sum.memory_bytes += one.held.memory_mib << 20;
        let cards = one.held.cards.len() as u64;
        add_cards(&mut sum, cards, one.held.model.as_deref());
        match &one.job {
            Some(job) => drop(jobs.insert(job.as_str())),
            None => sum.instances += 1,
        }
    }
    sum.jobs = jobs.len() as u64;
    sum.cpus = cpus(milli);
    sum
}

fn asked<'a>(waiting: impl Iterator<Item = &'a Work>) -> QuotaUse {
    let mut sum = QuotaUse::default();
    let mut milli = 0;
    for work in waiting {
        for need in &work.tasks {
            let count = u64::from(need.count);
            milli += need.cpus_milli * count;
            sum.memory_bytes += (need.memory_mib * count) << 20;
            add_cards(&mut sum, u64::from(need.gpus) * count, work.model.as_deref());
        }
        match work.kind {
            Kind::Job => sum.jobs += 1,
            Kind::Instance | Kind::Debug => sum.instances += 1,
        }
    }
    sum.cpus = cpus(milli);
    sum
}

fn add_cards(sum: &mut QuotaUse, cards: u64, model: Option<&str>) {
    sum.gpus += cards;
    if let Some(model) = model.filter(|_| cards > 0) {
        *sum.gpus_by_model.entry(model.to_owned()).or_default() += cards;
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody has so many processors")]
fn cpus(milli: u64) -> f64 {
    milli as f64 / 1000.0
}
