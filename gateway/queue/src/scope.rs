//! Where a work may go: the machines of its cluster, and the cards that the pools leave to its kind.

use std::{collections::HashMap, rc::Rc};

use crate::{
    decision::Impossible,
    room::Cluster,
    situation::{Kind, Pool, Work},
};

/// What works of one cluster, kind and pool may use.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Like scopes have like numbers.
    pub(crate) number: usize,
    /// The machines, and those of them that are ready.
    pub(crate) all: Vec<usize>,
    pub(crate) ready: Vec<usize>,
    /// The models that such a work may have cards of.
    pub(crate) models: Vec<usize>,
    /// The models of the cluster.
    pub(crate) present: Vec<usize>,
    /// Why nothing of this kind may go there at all.
    pub(crate) shut: Option<Impossible>,
}

type Key<'a> = (&'a str, Kind, Option<&'a str>);

/// The scopes that were asked for so far.
#[derive(Debug)]
pub(crate) struct Scopes<'a> {
    pools: &'a [Pool],
    known: HashMap<Key<'a>, Rc<Scope>>,
}

impl<'a> Scopes<'a> {
    pub(crate) fn new(pools: &'a [Pool]) -> Self {
        Self { pools, known: HashMap::new() }
    }

    pub(crate) fn of(&mut self, work: &'a Work, cluster: &Cluster<'a>) -> Rc<Scope> {
        let number = self.known.len();
        let key = (work.cluster.as_str(), work.pool_kind, work.pool.as_deref());
        let new = || Rc::new(scope(number, work, self.pools, cluster));
        Rc::clone(self.known.entry(key).or_insert_with(new))
    }

    /// The pool because of which works of that kind get no card of `model`.
    pub(crate) fn keeper(&self, work: &Work, model: &str) -> Option<Impossible> {
        let pool = self.pools.iter().find(|pool| pool.covers(&work.cluster) && pool.has(model))?;
        Some(not_for(pool))
    }
}

fn scope(number: usize, work: &Work, pools: &[Pool], cluster: &Cluster<'_>) -> Scope {
    let here = |at: &usize| cluster.nodes[*at].cluster == work.cluster;
    let all: Vec<usize> = (0..cluster.nodes.len()).filter(here).collect();
    let ready = all.iter().copied().filter(|&at| cluster.nodes[at].ready).collect();
    let has = |model: &usize| {
        let name = cluster.models[*model];
        all.iter().any(|&at| cluster.nodes[at].cards.iter().any(|card| card.model == name))
    };
    let present: Vec<usize> = (0..cluster.models.len()).filter(has).collect();
    let pools: Vec<&Pool> = pools.iter().filter(|pool| pool.covers(&work.cluster)).collect();
    let asked = work.pool.as_ref().map(|name| pools.iter().find(|pool| pool.name == *name));
    let takes = |model: Option<&str>| {
        let mut those =
            pools.iter().filter(|pool| model.map_or(pool.models.is_empty(), |model| pool.has(model)));
        let first = those.next()?;
        let any =
            first.kinds.contains(&work.pool_kind) || those.any(|pool| pool.kinds.contains(&work.pool_kind));
        (!any).then(|| not_for(first))
    };
    let open = |model: &str| match asked {
        None => takes(Some(model)).is_none(),
        Some(pool) => pool.is_some_and(|pool| pool.kinds.contains(&work.pool_kind) && pool.has(model)),
    };
    let shut = match asked {
        None => takes(None),
        Some(None) => Some(Impossible::NoSuchPool {
            pool: work.pool.clone().unwrap_or_default(),
            known: pools.iter().map(|pool| pool.name.clone()).collect(),
        }),
        Some(Some(pool)) => (!pool.kinds.contains(&work.pool_kind)).then(|| not_for(pool)),
    };
    let models = present.iter().copied().filter(|&model| open(cluster.models[model])).collect();
    Scope { number, all, ready, models, present, shut }
}

fn not_for(pool: &Pool) -> Impossible {
    Impossible::NotForKind { pool: pool.name.clone(), kinds: pool.kinds.iter().copied().collect() }
}

impl Pool {
    fn covers(&self, cluster: &str) -> bool {
        self.cluster.as_ref().is_none_or(|own| own == cluster)
    }

    fn has(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.contains(model)
    }
}
