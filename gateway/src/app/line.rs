//! The line: what waits for room, as the queue sees it, and its answers in the words of the API.
//!
//! The queue itself is pure (`gateway/queue`). Here its situation is read from the store and the cluster's last report,
//! for the loop that starts things and for whoever asks what would become of a request.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{PoisonError, RwLock},
    time::Duration,
};

use envd_api::control::InstanceSpec;
use gateway_api::{
    InstanceId,
    job::{DryRun, QueuePlace, QueueReason},
};
use jiff::Timestamp;
use jobfile::spec::Purpose;
use queue::{
    Allowance, Card, Decision, Impossible, Kind, Need, Node, Outcome, Owner, Placed, Pool, Reason, Resource,
    Rules, Running, Situation, Work,
};

use super::{App, instances::readable};
use crate::{
    auth::Caller,
    clusters::{Cluster, Health},
    config::{DEFAULT_SHARE, PoolSetting},
    error::Error,
    store::{JobRow, Reservation, StoreError, Waiting, milli},
};

/// What has no priority of its own.
pub(crate) const PRIORITY_DEFAULT: u8 = 5;
/// The addresses of a user's network on one machine, some of them left for what is not in the line.
const ADDRESSES: u64 = 240;
/// Job files of OpenPAI ask for it to look around; where the site has no such pool, they go where instances do.
const DEBUG_POOL: &str = "debug";
/// How long one waits for the next higher priority.
const AGEING: Duration = Duration::from_hours(24);

/// The places that the last decision gave, by the id of a job or an instance.
#[derive(Debug, Default)]
pub(crate) struct Places(RwLock<HashMap<String, QueuePlace>>);

impl Places {
    pub(crate) fn of(&self, id: &str) -> Option<QueuePlace> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub(super) fn count(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Takes over the places of a decision; answers with the ids of those whose place is another one now.
    pub(super) fn note(&self, decisions: &[Decision]) -> Vec<String> {
        let new: HashMap<String, QueuePlace> = decisions
            .iter()
            .filter_map(|decision| Some((decision.id.clone(), place(&decision.outcome)?)))
            .collect();
        let mut places = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let changed = new.iter().filter(|(id, place)| places.get(*id) != Some(place));
        let changed = changed.map(|(id, _)| id.clone()).collect();
        *places = new;
        changed
    }
}

/// Everything that a decision depends on, and what its works are here.
#[derive(Debug)]
pub(crate) struct Outlook {
    pub(crate) situation: Situation,
    pub(crate) instances: HashMap<String, Waiting>,
    pub(crate) jobs: HashMap<String, JobRow>,
}

impl App {
    /// What is so now; `None` as long as no machine has reported.
    pub(crate) async fn outlook(&self) -> Result<Option<Outlook>, StoreError> {
        let nodes = self.machines();
        if nodes.is_empty() {
            return Ok(None);
        }
        let mut running = running(self.store.reservations().await?);
        running.extend(self.clusters.iter().flat_map(|cluster| strangers(cluster)));
        let instances = self.store.waiting_instances().await?;
        let jobs = self.store.waiting_jobs().await?;
        let mut waiting = self.works(&instances, &jobs);
        // What waits for a cluster that has not reported yet is told so, and has no place in the line.
        waiting.retain(|work| nodes.iter().any(|node| node.cluster == work.cluster));
        let mut allowances = self.allowances().await?;
        limit_addresses(&mut allowances, &waiting);
        let situation = Situation {
            now: Timestamp::now(),
            rules: Rules { ageing: Some(AGEING) },
            nodes,
            pools: self.pools(),
            running,
            waiting,
            allowances,
        };
        Ok(Some(Outlook {
            situation,
            instances: instances.into_iter().map(|one| (one.id.to_string(), one)).collect(),
            jobs: jobs.into_iter().map(|one| (one.id.to_string(), one)).collect(),
        }))
    }

    /// What waits for room, as the queue sees it.
    pub(super) fn works(&self, instances: &[Waiting], jobs: &[JobRow]) -> Vec<Work> {
        let works = instances.iter().map(instance_work).chain(jobs.iter().map(job_work));
        works.map(|work| self.in_our_words(work)).collect()
    }

    /// The quotas, with models by the names that the queue knows.
    async fn allowances(&self) -> Result<BTreeMap<Owner, Allowance>, StoreError> {
        let mut all: BTreeMap<_, _> = self.store.quotas().await?.into_iter().collect();
        all.extend(self.config.shares.iter().map(|share| {
            let allowance = Allowance { limits: share.limits(), raise: None };
            (Owner::Share(share.name.clone()), allowance)
        }));
        for allowance in all.values_mut() {
            self.name_models(allowance);
        }
        Ok(all)
    }

    /// Limits of models are by the names that the cards have, however they were written.
    pub(super) fn name_models(&self, allowance: &mut Allowance) {
        let raised = allowance.raise.as_mut().map(|raise| &mut raise.limits);
        for limits in std::iter::once(&mut allowance.limits).chain(raised) {
            let named = std::mem::take(&mut limits.gpus_by_model).into_iter();
            limits.gpus_by_model =
                named.map(|(name, most)| (self.gpu_model(&name).unwrap_or(name), most)).collect();
        }
    }

    /// What would become of `work`; `None` as long as no machine has reported.
    pub(crate) async fn foresee(&self, work: &Work) -> Result<Option<Outcome>, Error> {
        let Some(mut outlook) = self.outlook().await? else { return Ok(None) };
        if !outlook.situation.nodes.iter().any(|node| node.cluster == work.cluster) {
            return Ok(None);
        }
        limit_addresses(&mut outlook.situation.allowances, std::slice::from_ref(work));
        Ok(queue::decide_for(&outlook.situation, &self.in_our_words(work.clone())))
    }

    /// Whether somebody in the line would start later than they were told if what runs as `id` might go on until `end`,
    /// or without one.
    pub(super) async fn holds_up(&self, id: &str, end: Option<Timestamp>) -> Result<bool, StoreError> {
        let Some(outlook) = self.outlook().await? else { return Ok(false) };
        let mut later = outlook.situation.clone();
        for running in later.running.iter_mut().filter(|running| running.id == id) {
            running.ends_by = end;
        }
        let [told, then] = [&outlook.situation, &later].map(|situation| starts(&queue::decide(situation)));
        let is_later = |(id, told): (&String, &Option<Timestamp>)| {
            let then = then.get(id).copied();
            told.is_some_and(|told| then.is_some_and(|then| then.is_none_or(|then| then > told)))
        };
        Ok(told.iter().any(is_later))
    }

    /// Refuses at once what no machine could ever take, and what is over its user's quota where the site wants that.
    pub(crate) async fn refuse(&self, work: &Work) -> Result<(), Error> {
        let outcome = self.foresee(work).await?;
        outcome.and_then(|outcome| self.refusal(&outcome)).map_or(Ok(()), Err)
    }

    /// What would become of a request: what [`App::refuse`] refuses never starts.
    pub(crate) async fn dry_run(&self, work: &Work) -> Result<DryRun, Error> {
        let outcome = self.foresee(work).await?.ok_or_else(Error::no_machine)?;
        Ok(match (place(&outcome), self.refusal(&outcome)) {
            (None, _) => DryRun::StartsNow,
            (Some(queue), None) => DryRun::Waits { queue },
            (Some(QueuePlace { reason, params, .. }), Some(_)) => DryRun::Never { reason, params },
        })
    }

    fn refusal(&self, outcome: &Outcome) -> Option<Error> {
        match outcome {
            Outcome::Never { reason } => Some(never(reason)),
            Outcome::Wait {
                reason: Reason::AllowanceTooSmall { resource: Resource::Tasks, limit, wanted, .. },
                ..
            } => Some(Error::NeedsMoreMachines { tasks: *wanted, fit: *limit }),
            Outcome::Wait { reason, .. } if self.config.jobs.refuse_over_quota => over_quota(reason),
            Outcome::Start { .. } | Outcome::Wait { .. } => None,
        }
    }

    /// The model and the pool that are asked for by the names that the queue knows. Old files have one field for both.
    fn in_our_words(&self, mut work: Work) -> Work {
        let is_pool = |name: &str| self.config.pools.iter().any(|pool| pool.name == name);
        if let Some(asked) = work.model.take() {
            match self.gpu_model(&asked) {
                Some(model) => work.model = Some(model),
                None if work.pool.is_none() && is_pool(&asked) => work.pool = Some(asked),
                None => work.model = Some(asked),
            }
        }
        if let Some(asked) = work.pool.take_if(|asked| !is_pool(asked)) {
            match self.gpu_model(&asked) {
                Some(model) if work.model.is_none() => work.model = Some(model),
                _ if asked == DEBUG_POOL => work.pool_kind = Kind::Instance,
                _ => work.pool = Some(asked),
            }
        }
        work
    }

    fn pools(&self) -> Vec<Pool> {
        let models = |pool: &PoolSetting| {
            let model = |asked: &String| self.gpu_model(asked).unwrap_or_else(|| asked.clone());
            pool.gpus.iter().map(model).collect()
        };
        let pool = |pool: &PoolSetting| Pool {
            name: pool.name.clone(),
            cluster: pool.cluster.clone(),
            models: models(pool),
            kinds: pool.kinds.clone(),
        };
        self.config.pools.iter().map(pool).collect()
    }

    /// The pools that a cluster's machine is in, or those of one model of its cards.
    pub(super) fn pools_of(&self, cluster: &str, model: Option<&str>) -> Vec<String> {
        let here = |pool: &Pool| pool.cluster.as_ref().is_none_or(|own| own == cluster);
        let has =
            |pool: &Pool| pool.models.is_empty() || model.is_none_or(|model| pool.models.contains(model));
        self.pools().into_iter().filter(|pool| here(pool) && has(pool)).map(|pool| pool.name).collect()
    }

    /// One for each cluster that has reported, by the name of the cluster.
    fn machines(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> =
            self.clusters.iter().filter_map(|cluster| self.machine_of(cluster)).collect();
        // Two clusters on one machine see the same cards: the first of them has them.
        let mut seen = HashSet::new();
        for node in &mut nodes {
            node.cards.retain(|card| seen.insert(card.id.clone()));
        }
        nodes
    }

    fn machine_of(&self, cluster: &Cluster) -> Option<Node> {
        let node = cluster.node()?;
        Some(Node {
            name: cluster.name.clone(),
            cluster: cluster.name.clone(),
            ready: cluster.health() == Health::Ready,
            cpus_milli: milli(node.cpus) * self.config.jobs.cpu_overcommit,
            memory_mib: node.memory_bytes >> 20,
            cards: node
                .cards
                .into_iter()
                .map(|card| Card { id: card.uuid, model: card.model, healthy: card.healthy })
                .collect(),
        })
    }
}

/// All that a user runs on a machine is in one network, whose addresses are so many.
fn limit_addresses(allowances: &mut BTreeMap<Owner, Allowance>, waiting: &[Work]) {
    for work in waiting {
        let own = allowances.entry(Owner::User(work.user.clone())).or_default();
        own.limits.tasks = Some(ADDRESSES);
    }
}

fn instance_work(waiting: &Waiting) -> Work {
    let kind = if waiting.is_task { Kind::Debug } else { Kind::Instance };
    Work {
        id: waiting.id.to_string(),
        kind,
        pool_kind: kind,
        user: waiting.user.clone(),
        group: waiting.group.clone(),
        share: Some(DEFAULT_SHARE.to_owned()),
        cluster: waiting.cluster.clone(),
        priority: waiting.priority,
        submitted: waiting.queued_at,
        tasks: vec![need(&waiting.spec)],
        model: waiting.spec.gpu_model.clone(),
        pool: waiting.pool.clone(),
        longest: None,
    }
}

/// An instance that is not there yet, as the queue would see it.
pub(super) fn new_instance_work(
    kind: Kind,
    id: &InstanceId,
    caller: &Caller,
    cluster: &Cluster,
    pool: Option<&str>,
    spec: &InstanceSpec,
) -> Work {
    Work {
        id: id.to_string(),
        kind,
        pool_kind: kind,
        user: caller.user.name.to_string(),
        group: caller.user.group.to_string(),
        share: Some(DEFAULT_SHARE.to_owned()),
        cluster: cluster.name.clone(),
        priority: PRIORITY_DEFAULT,
        submitted: Timestamp::now(),
        tasks: vec![need(spec)],
        model: spec.gpu_model.clone(),
        pool: pool.map(str::to_owned),
        longest: None,
    }
}

fn need(spec: &InstanceSpec) -> Need {
    Need { count: 1, cpus_milli: milli(spec.cpus), memory_mib: spec.memory_bytes >> 20, gpus: spec.gpus }
}

/// A job as the queue sees it: one need for each role, in their order.
pub(crate) fn job_work(job: &JobRow) -> Work {
    let need = |role: &jobfile::spec::Role| Need {
        count: role.tasks,
        cpus_milli: milli(role.resources.cpus),
        memory_mib: role.resources.memory_mib,
        gpus: role.resources.gpus,
    };
    Work {
        id: job.id.to_string(),
        kind: Kind::Job,
        // What is there to be worked in goes where such work is done, whatever it is called.
        pool_kind: if job.spec.purpose == Purpose::Interactive { Kind::Instance } else { Kind::Job },
        user: job.user.to_string(),
        group: job.group.clone(),
        share: Some(job.spec.share.clone().unwrap_or_else(|| DEFAULT_SHARE.to_owned())),
        cluster: job.cluster.clone(),
        priority: job.priority,
        submitted: job.queued_at,
        tasks: job.spec.roles.iter().map(need).collect(),
        model: job.spec.gpu_model.clone(),
        pool: job.spec.pool.clone(),
        longest: job.time_limit_seconds.map(Duration::from_secs),
    }
}

/// What is held, one for each job or instance. A cluster has one machine: what was written down before that had a name,
/// or when it had another, is there too.
fn running(reservations: Vec<Reservation>) -> Vec<Running> {
    let mut all: BTreeMap<String, Running> = BTreeMap::new();
    for one in reservations {
        let id = one.job.as_ref().map_or_else(|| one.instance.to_string(), ToString::to_string);
        let running = all.entry(id.clone()).or_insert_with(|| Running {
            id,
            kind: match (&one.job, one.opened) {
                (Some(_), _) => Kind::Job,
                (None, true) => Kind::Debug,
                (None, false) => Kind::Instance,
            },
            user: one.user,
            group: one.group,
            share: Some(one.share),
            started: one.taken_at,
            sequence: one.held.sequence,
            ends_by: one.ends_by,
            tasks: Vec::new(),
        });
        running.tasks.push(Placed {
            node: one.cluster,
            cpus_milli: one.held.cpus_milli,
            memory_mib: one.held.memory_mib,
            cards: one.held.cards,
        });
    }
    all.into_values().collect()
}

/// What runs here and is nobody's: on no quota, and in the way nonetheless.
fn strangers(cluster: &Cluster) -> impl Iterator<Item = Running> {
    cluster.unknown().into_iter().filter_map(move |(id, unknown)| {
        let (started, takes) = unknown.running?;
        Some(Running {
            id: id.to_string(),
            kind: Kind::Instance,
            user: String::new(),
            group: String::new(),
            share: None,
            started,
            sequence: 0,
            ends_by: None,
            tasks: vec![Placed {
                node: cluster.name.clone(),
                cpus_milli: takes.cpus_milli,
                memory_mib: takes.memory_bytes >> 20,
                cards: takes.cards,
            }],
        })
    })
}

// === in the words of the API ===

fn place(outcome: &Outcome) -> Option<QueuePlace> {
    match outcome {
        Outcome::Start { .. } => None,
        Outcome::Never { reason } => {
            let (reason, params) = impossible(reason);
            Some(QueuePlace { position: 0, reason, params, starts_by: None, starts_now_with_gpus: None })
        }
        Outcome::Wait { position, reason, starts_by, instead } => {
            let (reason, params) = waits(reason);
            Some(QueuePlace {
                position: u32::try_from(*position).unwrap_or(u32::MAX),
                reason,
                params,
                starts_by: *starts_by,
                starts_now_with_gpus: instead.map(|less| less.gpus_per_task),
            })
        }
    }
}

/// When each that waits starts at the latest, where time limits say so.
fn starts(decisions: &[Decision]) -> HashMap<String, Option<Timestamp>> {
    let waits = |decision: &Decision| match &decision.outcome {
        Outcome::Wait { starts_by, .. } => Some((decision.id.clone(), *starts_by)),
        Outcome::Start { .. } | Outcome::Never { .. } => None,
    };
    decisions.iter().filter_map(waits).collect()
}

type Said = (QueueReason, BTreeMap<String, String>);

fn said<const N: usize>(reason: QueueReason, params: [(&str, String); N]) -> Said {
    (reason, params.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn waits(reason: &Reason) -> Said {
    let amount = |resource: &Resource, number: u64| amount(resource, number);
    match reason {
        Reason::NoRoom { resource, wanted, free } => said(
            QueueReason::NoRoom,
            [
                ("resource", word(resource)),
                ("wanted", amount(resource, *wanted)),
                ("free", amount(resource, *free)),
            ],
        ),
        Reason::NotTogether { tasks, fit } => {
            said(QueueReason::NotTogether, [("tasks", tasks.to_string()), ("fit", fit.to_string())])
        }
        Reason::Behind { .. } => said(QueueReason::Behind, []),
        Reason::Allowance { owner, resource, limit, used, wanted } => {
            let (kind, name) = owner_words(owner);
            said(
                QueueReason::Quota,
                [
                    ("owner", kind.to_owned()),
                    ("name", name.to_owned()),
                    ("resource", word(resource)),
                    ("limit", amount(resource, *limit)),
                    ("used", amount(resource, *used)),
                    ("wanted", amount(resource, *wanted)),
                ],
            )
        }
        Reason::AllowanceKept { owner, resource, .. } => {
            let (kind, name) = owner_words(owner);
            said(
                QueueReason::QuotaKept,
                [("owner", kind.to_owned()), ("name", name.to_owned()), ("resource", word(resource))],
            )
        }
        Reason::AllowanceTooSmall { owner, resource, limit, wanted } => {
            let (kind, name) = owner_words(owner);
            said(
                QueueReason::QuotaTooSmall,
                [
                    ("owner", kind.to_owned()),
                    ("name", name.to_owned()),
                    ("resource", word(resource)),
                    ("limit", amount(resource, *limit)),
                    ("wanted", amount(resource, *wanted)),
                ],
            )
        }
        Reason::NotReady => said(QueueReason::NotReady, []),
    }
}

/// What becomes of a task that asks for more processors than its machine has.
pub(super) fn never_so_many_cpus(wanted: String, largest: String) -> DryRun {
    let params = [("resource", word(&Resource::Cpus)), ("wanted", wanted), ("largest", largest)];
    let (reason, params) = said(QueueReason::Never, params);
    DryRun::Never { reason, params }
}

fn impossible(reason: &Impossible) -> Said {
    match reason {
        Impossible::TooLarge { resource, wanted, largest } => said(
            QueueReason::Never,
            [
                ("resource", word(resource)),
                ("wanted", amount(resource, *wanted)),
                ("largest", amount(resource, *largest)),
            ],
        ),
        Impossible::NotTogether { tasks, fit } => {
            said(QueueReason::Never, [("tasks", tasks.to_string()), ("fit", fit.to_string())])
        }
        Impossible::NoSuchModel { model, known } => {
            said(QueueReason::Never, [("model", model.clone()), ("known", known.join(", "))])
        }
        Impossible::NoSuchPool { pool, known } => {
            said(QueueReason::Never, [("pool", pool.clone()), ("known", known.join(", "))])
        }
        Impossible::NotForKind { pool, kinds } => {
            said(QueueReason::Never, [("pool", pool.clone()), ("kinds", kind_words(kinds))])
        }
        Impossible::Nothing => said(QueueReason::Never, [("tasks", "0".to_owned())]),
    }
}

/// The answer to a request that can never be met.
fn never(reason: &Impossible) -> Error {
    match reason {
        Impossible::TooLarge { resource, wanted, largest } => Error::TooLarge {
            field: match resource {
                Resource::Cpus => "cpus",
                Resource::Memory => "memory_bytes",
                Resource::Gpus | Resource::GpusOf(_) => "gpus",
                Resource::Instances => "instances",
                Resource::Jobs => "jobs",
                Resource::Tasks => "tasks",
            },
            wanted: amount(resource, *wanted),
            largest: amount(resource, *largest),
        },
        Impossible::NotTogether { tasks, fit } => Error::NeedsMoreMachines { tasks: *tasks, fit: *fit },
        Impossible::NoSuchModel { model, known } => {
            Error::NotHere { kind: "gpu", name: model.clone(), known: known.join(", ") }
        }
        Impossible::NoSuchPool { pool, known } => {
            Error::NotHere { kind: "pool", name: pool.clone(), known: known.join(", ") }
        }
        Impossible::NotForKind { pool, kinds } => {
            Error::PoolTakesOthers { pool: pool.clone(), kinds: kind_words(kinds) }
        }
        Impossible::Nothing => Error::NeedsMoreMachines { tasks: 0, fit: 0 },
    }
}

/// The answer to a request that is over its user's own quota; that of a group is everyone's, and makes one wait.
fn over_quota(reason: &Reason) -> Option<Error> {
    let (resource, limit, used, wanted) = match reason {
        Reason::Allowance { owner: Owner::User(_), resource, limit, used, wanted } => {
            (resource, *limit, *used, *wanted)
        }
        Reason::AllowanceTooSmall { owner: Owner::User(_), resource, limit, wanted } => {
            (resource, *limit, 0, *wanted)
        }
        Reason::Allowance { .. }
        | Reason::AllowanceTooSmall { .. }
        | Reason::AllowanceKept { .. }
        | Reason::NoRoom { .. }
        | Reason::NotTogether { .. }
        | Reason::Behind { .. }
        | Reason::NotReady => return None,
    };
    Some(Error::OverQuota {
        resource: word(resource),
        wanted: amount(resource, wanted),
        used: amount(resource, used),
        limit: amount(resource, limit),
    })
}

fn owner_words(owner: &Owner) -> (&'static str, &str) {
    match owner {
        Owner::User(name) => ("user", name),
        Owner::Group(name) => ("group", name),
        Owner::Share(name) => ("share", name),
    }
}

/// In the words of the settings, `instance,job`.
fn kind_words(kinds: &[Kind]) -> String {
    let word = |kind: &Kind| match kind {
        Kind::Instance => "instance",
        Kind::Job => "job",
        Kind::Debug => "debug",
    };
    kinds.iter().map(word).collect::<Vec<_>>().join(",")
}

fn word(resource: &Resource) -> String {
    match resource {
        Resource::Cpus => "cpus".to_owned(),
        Resource::Memory => "memory".to_owned(),
        Resource::Gpus => "gpus".to_owned(),
        Resource::GpusOf(model) => format!("gpus of {model}"),
        Resource::Instances => "instances".to_owned(),
        Resource::Jobs => "jobs".to_owned(),
        Resource::Tasks => "tasks".to_owned(),
    }
}

/// A number as people count that resource.
fn amount(resource: &Resource, number: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one or two decimals")]
    let exact = number as f64;
    match resource {
        Resource::Cpus => format!("{}", exact / 1000.0),
        Resource::Memory => readable(number << 20),
        Resource::Gpus | Resource::GpusOf(_) | Resource::Instances | Resource::Jobs | Resource::Tasks => {
            number.to_string()
        }
    }
}
