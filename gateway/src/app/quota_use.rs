//! How much of their quotas people use: what they hold, and what they wait for.

use std::collections::BTreeSet;

use gateway_api::quota::{OwnQuota, QuotaStanding, QuotaUse};
use jiff::Timestamp;
use queue::{Allowance, Kind, Limits, Work};

use super::{App, quotas::seen_limits};
use crate::{
    auth::Caller,
    config::ShareSetting,
    error::Error,
    store::{ImageRoom, QuotaOwner, Reservation, cpus},
};

impl App {
    pub(crate) async fn own_quota(&self, caller: &Caller) -> Result<OwnQuota, Error> {
        let held = self.store.reservations().await?;
        let waiting = self.works(&self.store.waiting_instances().await?, &self.store.waiting_jobs().await?);
        let (user, group) = (caller.user.name.to_string(), caller.user.group.to_string());
        let of_user = self.store.quota(QuotaOwner::User(caller.user.id)).await?;
        let of_group = self.store.quota(QuotaOwner::Group(caller.user.group_id)).await?;
        let now = Timestamp::now();
        let [of_users_images, of_groups_images] = [
            self.store.image_room(QuotaOwner::User(caller.user.id), self.config.image_quota_bytes).await?,
            self.store.image_room(QuotaOwner::Group(caller.user.group_id), None).await?,
        ];
        let user_uses = (
            self.used(held.iter().filter(|one| one.user == user)),
            asked(waiting.iter().filter(|work| work.user == user)),
        );
        let group_uses = (
            self.used(held.iter().filter(|one| one.group == group)),
            asked(waiting.iter().filter(|work| work.group == group)),
        );
        let named = |quota: Option<Allowance>| {
            let mut quota = quota.unwrap_or_default();
            self.name_models(&mut quota);
            quota
        };
        Ok(OwnQuota {
            user: with_images(standing(user, &named(of_user), now, user_uses), &of_users_images),
            group: with_images(standing(group, &named(of_group), now, group_uses), &of_groups_images),
            shares: self.share_standings(&held, &waiting, now),
        })
    }

    fn used<'a>(&self, held: impl Iterator<Item = &'a Reservation>) -> QuotaUse {
        let mut sum = QuotaUse::default();
        let mut jobs = BTreeSet::new();
        let mut milli = 0;
        for one in held {
            milli += one.held.cpus_milli;
            sum.memory_bytes += one.held.memory_mib << 20;
            for card in &one.held.cards {
                add_cards(&mut sum, 1, self.card_model(card).as_deref());
            }
            match &one.job {
                Some(job) => drop(jobs.insert(job.as_str())),
                None => sum.instances += 1,
            }
        }
        sum.jobs = jobs.len() as u64;
        sum.cpus = cpus(milli);
        sum
    }

    /// Those that have limits.
    fn share_standings(&self, held: &[Reservation], waiting: &[Work], now: Timestamp) -> Vec<QuotaStanding> {
        let limited = self.config.shares.iter().filter(|share| share.limits() != Limits::default());
        let share = |share: &ShareSetting| {
            let uses = (
                self.used(held.iter().filter(|one| one.share == share.name)),
                asked(waiting.iter().filter(|work| work.share.as_ref() == Some(&share.name))),
            );
            let mut allowance = Allowance { limits: share.limits(), raise: None };
            self.name_models(&mut allowance);
            standing(share.name.clone(), &allowance, now, uses)
        };
        limited.map(share).collect()
    }
}

fn standing(
    name: String,
    quota: &Allowance,
    now: Timestamp,
    (used, waiting): (QuotaUse, QuotaUse),
) -> QuotaStanding {
    let limits = seen_limits(&quota.in_force(now));
    let raised_until = quota.raise.as_ref().map(|raise| raise.until).filter(|&until| now < until);
    QuotaStanding { name, limits, raised_until, used, waiting }
}

fn with_images(mut standing: QuotaStanding, room: &ImageRoom) -> QuotaStanding {
    standing.limits.image_bytes = room.limit;
    standing.used.image_bytes = room.used;
    standing
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
