//! Quotas: set by admins, seen by those whom they bind, kept by the queue.

use gateway_api::quota::{Quota, QuotaLimits, QuotaRaise};
use queue::{Allowance, Limits, Raise};

use super::App;
use crate::{
    auth::{Caller, policy},
    error::Error,
    store::{QuotaOwner, cpus, milli},
};

impl App {
    pub(crate) async fn user_quota(&self, caller: &Caller, name: &str) -> Result<Quota, Error> {
        let owner = self.quota_user(caller, name).await?;
        self.quota(owner).await
    }

    pub(crate) async fn group_quota(&self, caller: &Caller, name: &str) -> Result<Quota, Error> {
        let owner = self.quota_group(caller, name).await?;
        self.quota(owner).await
    }

    pub(crate) async fn set_user_quota(
        &self,
        caller: &Caller,
        name: &str,
        quota: Quota,
    ) -> Result<Quota, Error> {
        policy::administer(caller)?;
        let owner = self.quota_user(caller, name).await?;
        self.set_quota(caller, owner, "user", name, quota).await
    }

    pub(crate) async fn set_group_quota(
        &self,
        caller: &Caller,
        name: &str,
        quota: Quota,
    ) -> Result<Quota, Error> {
        policy::administer(caller)?;
        let owner = self.quota_group(caller, name).await?;
        self.set_quota(caller, owner, "group", name, quota).await
    }

    async fn quota(&self, owner: QuotaOwner) -> Result<Quota, Error> {
        Ok(self.store.quota(owner).await?.map(|allowance| seen(&allowance)).unwrap_or_default())
    }

    async fn set_quota(
        &self,
        caller: &Caller,
        owner: QuotaOwner,
        kind: &'static str,
        name: &str,
        quota: Quota,
    ) -> Result<Quota, Error> {
        let all = [Some(&quota.limits), quota.raise.as_ref().map(|raise| &raise.limits)];
        if all
            .into_iter()
            .flatten()
            .any(|limits| limits.cpus.is_some_and(|cpus| !(0.0..=1e6).contains(&cpus)))
        {
            return Err(Error::unfit("limits/cpus", gateway_api::error::Reason::Negative));
        }
        let line = caller.line("quota.set", name).with("kind", kind);
        self.store.set_quota(owner, &allowance(&quota), &line).await?;
        self.line_moves.notify_one();
        self.quota(owner).await
    }

    async fn quota_user(&self, caller: &Caller, name: &str) -> Result<QuotaOwner, Error> {
        let found = match name.parse() {
            Ok(name) => self.store.user_by_name(&name).await?,
            Err(_) => None,
        };
        Ok(QuotaOwner::User(policy::see_user(caller, found, name)?.id))
    }

    /// Everyone sees the quota of their own group: it is what they wait for.
    async fn quota_group(&self, caller: &Caller, name: &str) -> Result<QuotaOwner, Error> {
        let found = match name.parse() {
            Ok(name) => self.store.group_id(&name).await?,
            Err(_) => None,
        };
        match found {
            Some(group) if group == caller.user.group_id => Ok(QuotaOwner::Group(group)),
            found => Ok(QuotaOwner::Group(policy::see_group(caller, found, name)?)),
        }
    }
}

fn allowance(quota: &Quota) -> Allowance {
    Allowance {
        limits: limits(&quota.limits),
        raise: quota.raise.as_ref().map(|raise| Raise { until: raise.until, limits: limits(&raise.limits) }),
    }
}

fn limits(quota: &QuotaLimits) -> Limits {
    Limits {
        cpus_milli: quota.cpus.map(milli),
        memory_mib: quota.memory_bytes.map(|bytes| bytes >> 20),
        gpus: quota.gpus,
        gpus_by_model: quota.gpus_by_model.clone(),
        instances: quota.instances,
        jobs: quota.jobs,
        tasks: None,
        image_bytes: quota.image_bytes,
    }
}

fn seen(allowance: &Allowance) -> Quota {
    Quota {
        limits: seen_limits(&allowance.limits),
        raise: allowance
            .raise
            .as_ref()
            .map(|raise| QuotaRaise { until: raise.until, limits: seen_limits(&raise.limits) }),
    }
}

pub(super) fn seen_limits(limits: &Limits) -> QuotaLimits {
    QuotaLimits {
        cpus: limits.cpus_milli.map(cpus),
        memory_bytes: limits.memory_mib.map(|mib| mib << 20),
        gpus: limits.gpus,
        gpus_by_model: limits.gpus_by_model.clone(),
        instances: limits.instances,
        jobs: limits.jobs,
        image_bytes: limits.image_bytes,
    }
}
