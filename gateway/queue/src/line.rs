//! Working through the line: one work after the other, each with what those before it left.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    rc::Rc,
};

use jiff::Timestamp;

use crate::{
    allowance::Ledger,
    decision::{Impossible, Less, Reason, Resource},
    room::{Cluster, Places, Room, Shape},
    situation::{Kind, Need, Placed, Running, Situation, Work},
};

/// What those who were decided on left for the rest.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    now: Timestamp,
    cluster: Cluster<'a>,
    ledger: Ledger<'a>,
    running: &'a [Running],
    /// What this decision starts: it will end like the rest.
    started: Vec<Running>,
    /// The largest one so far.
    sequence: u64,
    whole: Room,
    /// What nobody holds.
    free: Room,
    /// What of it is not kept for the head.
    spare: Room,
    head: Option<Head>,
    /// Cards that are given by now, by machine.
    taken: HashSet<(usize, &'a str)>,
    /// Shapes that found no place: room only shrinks while deciding.
    hopeless: HashSet<Shape>,
    hopeless_beside: HashSet<Shape>,
    possible: HashMap<Shape, Result<Vec<usize>, Impossible>>,
    eligible: HashMap<(Kind, Option<String>, bool), Rc<[usize]>>,
}

#[derive(Debug)]
struct Head {
    id: String,
    starts_by: Option<Timestamp>,
}

/// What became of one work.
#[derive(Debug)]
pub(crate) enum Step {
    Start(Vec<Placed>),
    Wait { reason: Reason, starts_by: Option<Timestamp> },
    Never(Impossible),
}

impl<'a> Line<'a> {
    pub(crate) fn new(situation: &'a Situation) -> Self {
        let cluster = Cluster::new(&situation.nodes);
        let mut ledger = Ledger::new(&situation.allowances, situation.now, &cluster);
        let whole = Room::whole(&cluster);
        let mut free = whole.clone();
        let mut taken = HashSet::new();
        for running in &situation.running {
            free.without(running, &cluster);
            ledger.add_running(running, &cluster);
            for task in &running.tasks {
                if let Some(node) = cluster.node(&task.node) {
                    taken.extend(task.cards.iter().map(|card| (node, card.as_str())));
                }
            }
        }
        Self {
            now: situation.now,
            spare: free.clone(),
            cluster,
            ledger,
            running: &situation.running,
            started: Vec::new(),
            sequence: situation.running.iter().map(|running| running.sequence).max().unwrap_or(0),
            whole,
            free,
            head: None,
            taken,
            hopeless: HashSet::new(),
            hopeless_beside: HashSet::new(),
            possible: HashMap::new(),
            eligible: HashMap::new(),
        }
    }

    /// Decides on the next work.
    pub(crate) fn next(&mut self, work: &Work) -> Step {
        let shape = self.shape(work);
        let models = match self.possible(work, &shape) {
            Ok(models) => models,
            Err(impossible) => return Step::Never(impossible),
        };
        let shape = match self.allowed(work, Shape { models, ..shape }) {
            Ok(shape) => shape,
            Err(reason) => return Step::Wait { reason, starts_by: None },
        };
        let nodes = self.nodes_for(work, true);
        let within_limit = match (&self.head, work.longest) {
            (Some(Head { starts_by: Some(due), .. }), Some(longest)) => {
                self.now.checked_add(longest).is_ok_and(|end| end <= *due)
            }
            _ => false,
        };
        let found = if within_limit || self.head.is_none() {
            self.find(&shape, &nodes, true)
        } else {
            self.find(&shape, &nodes, false)
        };
        if let Some(places) = found {
            return Step::Start(self.start(work, &shape, &places));
        }
        let fits = self.head.is_some() && self.find(&shape, &nodes, true).is_some();
        let reason = match &self.head {
            Some(head) if fits => Reason::Behind { id: head.id.clone() },
            Some(_) | None => self.no_room(&shape, &nodes),
        };
        let mut starts_by = None;
        if self.head.is_none() {
            starts_by = self.keep_room_for(work, &shape, &nodes);
        }
        Step::Wait { reason, starts_by }
    }

    /// What of `work` would start now, if it asked for fewer cards. Asked once everything is decided.
    pub(crate) fn less(&mut self, work: &Work) -> Option<Less> {
        let most = work.tasks.iter().map(|need| need.gpus).max().filter(|most| *most > 0)?;
        let nodes = self.nodes_for(work, true);
        let is_head = self.head.as_ref().is_some_and(|head| head.id == work.id);
        let whole = self.shape(work);
        let free = whole.models.iter().map(|&model| self.free.most(model)).max().unwrap_or(0);
        for gpus_per_task in (0..most.min(free.saturating_add(1))).rev() {
            let capped = |need: &Need| Need { gpus: need.gpus.min(gpus_per_task), ..*need };
            let tasks: Vec<Need> = work.tasks.iter().map(capped).collect();
            let models = if gpus_per_task == 0 { Vec::new() } else { whole.models.clone() };
            let shape = Shape { tasks, models, kind: work.kind, pool: work.pool.clone() };
            // The head's own part is set aside for it already.
            let models = if is_head { Some(shape.models.clone()) } else { self.allowed_models(work, &shape) };
            let Some(models) = models else { continue };
            if self.find(&Shape { models, ..shape }, &nodes, is_head).is_some() {
                return Some(Less { gpus_per_task });
            }
        }
        None
    }

    fn nodes_for(&mut self, work: &Work, ready_only: bool) -> Rc<[usize]> {
        let key = (work.kind, work.pool.clone(), ready_only);
        let found = || self.cluster.eligible(work.kind, work.pool.as_deref(), ready_only).into();
        Rc::clone(self.eligible.entry(key).or_insert_with(found))
    }

    fn shape(&self, work: &Work) -> Shape {
        let models = match &work.model {
            _ if work.gpus() == 0 => Vec::new(),
            Some(model) => self.cluster.model(model).into_iter().collect(),
            None => (0..self.cluster.models.len()).collect(),
        };
        Shape { tasks: work.tasks.clone(), models, kind: work.kind, pool: work.pool.clone() }
    }

    // === never ===

    /// The models with which the work would fit into the empty cluster, or why there is none.
    fn possible(&mut self, work: &Work, shape: &Shape) -> Result<Vec<usize>, Impossible> {
        // One task is quicker looked at than remembered; and a model that nobody has is not in the shape.
        let several = shape.tasks.iter().map(|need| need.count).sum::<u32>() > 1;
        if !several || (work.gpus() > 0 && shape.models.is_empty()) {
            return self.possible_anew(work, shape);
        }
        if let Some(known) = self.possible.get(shape) {
            return known.clone();
        }
        let answer = self.possible_anew(work, shape);
        self.possible.insert(shape.clone(), answer.clone());
        answer
    }

    fn possible_anew(&mut self, work: &Work, shape: &Shape) -> Result<Vec<usize>, Impossible> {
        let tasks: u64 = shape.tasks.iter().map(|need| u64::from(need.count)).sum();
        if tasks == 0 {
            return Err(Impossible::Nothing);
        }
        let nodes = self.nodes_for(work, false);
        if nodes.is_empty() {
            let pools: BTreeSet<_> =
                self.cluster.nodes.iter().flat_map(|node| node.pools.iter().cloned()).collect();
            let known = pools.into_iter().collect();
            return Err(Impossible::NoSuchPool { pool: work.pool.clone(), known });
        }
        if let (Some(model), true, true) = (&work.model, shape.models.is_empty(), work.gpus() > 0) {
            let known = self.cluster.models.iter().map(|&model| model.to_owned()).collect();
            return Err(Impossible::NoSuchModel { model: model.clone(), known });
        }
        if let Some((resource, wanted, largest)) = short(&self.whole, shape, &nodes) {
            return Err(Impossible::TooLarge { resource, wanted, largest });
        }
        let single = tasks == 1;
        let mut fits = |models: Vec<usize>| {
            // One task that fits somewhere fits; only several can be in each other's way.
            let model = models.first().copied();
            let one = |need: &Need| nodes.iter().any(|&node| self.whole.fits_one(need, node, model));
            if single {
                return shape.tasks.iter().filter(|need| need.count > 0).all(one);
            }
            let shape = Shape { models, ..shape.clone() };
            self.whole.find(&shape, &nodes).is_some()
        };
        let models: Vec<usize> = shape.models.iter().copied().filter(|&model| fits(vec![model])).collect();
        if models.is_empty() && (!shape.models.is_empty() || !fits(Vec::new())) {
            return Err(Impossible::NotTogether { tasks, fit: self.whole.count(shape, &nodes) });
        }
        Ok(models)
    }

    // === allowances ===

    /// The shape with the models that the owners' allowances leave, or why there is none.
    fn allowed(&mut self, work: &Work, shape: Shape) -> Result<Shape, Reason> {
        if let Some(models) = self.allowed_models(work, &shape) {
            return Ok(Shape { models, ..shape });
        }
        let model = shape.models.first().copied();
        let reason = self.ledger.objection(work, model).unwrap_or(Reason::NotReady);
        let waits = !matches!(reason, Reason::AllowanceTooSmall { .. });
        if waits {
            self.ledger.keep_for(work, model);
        }
        Err(reason)
    }

    fn allowed_models(&self, work: &Work, shape: &Shape) -> Option<Vec<usize>> {
        if shape.models.is_empty() {
            return self.ledger.allows(work, &shape.tasks, None).then(Vec::new);
        }
        let allowed = |model: &usize| self.ledger.allows(work, &shape.tasks, Some(*model));
        let models: Vec<usize> = shape.models.iter().copied().filter(allowed).collect();
        (!models.is_empty()).then_some(models)
    }

    // === room ===

    /// A place in all that is free, or only in what is not kept for the head.
    fn find(&mut self, shape: &Shape, nodes: &[usize], all: bool) -> Option<Places> {
        let (room, hopeless) = if all {
            (&mut self.free, &mut self.hopeless)
        } else {
            (&mut self.spare, &mut self.hopeless_beside)
        };
        if !room.may_any(shape) || hopeless.contains(shape) {
            return None;
        }
        let found = room.find(shape, nodes);
        if found.is_none() {
            hopeless.insert(shape.clone());
        }
        found
    }

    fn start(&mut self, work: &Work, shape: &Shape, places: &Places) -> Vec<Placed> {
        self.free.take_all(shape, places);
        // What is started within its limit may stand where the head's place is kept; the rest stands beside it.
        if self.head.is_none() {
            self.spare = self.free.clone();
        } else {
            self.spare_less(shape, places);
        }
        self.ledger.add(work, places.model);
        let model = places.model.map(|model| self.cluster.models[model]);
        let mut tasks = Vec::new();
        for &(need, node) in &places.tasks {
            let need = &shape.tasks[need];
            let there = &self.cluster.nodes[node];
            let mut cards = Vec::new();
            for card in there.cards.iter().filter(|card| card.healthy && Some(card.model.as_str()) == model) {
                if cards.len() < need.gpus as usize && self.taken.insert((node, card.id.as_str())) {
                    cards.push(card.id.clone());
                }
            }
            let Need { cpus_milli, memory_mib, .. } = *need;
            tasks.push(Placed { node: there.name.clone(), cpus_milli, memory_mib, cards });
        }
        self.sequence += 1;
        self.started.push(Running {
            id: work.id.clone(),
            kind: work.kind,
            user: work.user.clone(),
            group: work.group.clone(),
            share: work.share.clone(),
            started: self.now,
            sequence: self.sequence,
            ends_by: work.longest.and_then(|longest| self.now.checked_add(longest).ok()),
            tasks: tasks.clone(),
        });
        tasks
    }

    fn spare_less(&mut self, shape: &Shape, places: &Places) {
        for &(need, node) in &places.tasks {
            let need = &shape.tasks[need];
            if self.spare.fits_one(need, node, places.model) {
                self.spare.take(need, node, places.model);
            }
        }
        self.spare.at_most(&self.free);
    }

    /// Makes `work` the head: finds when and where it will fit, and keeps that.
    fn keep_room_for(&mut self, work: &Work, shape: &Shape, nodes: &[usize]) -> Option<Timestamp> {
        let mut later = self.free.clone();
        let mut running: Vec<&Running> = self.running.iter().chain(&self.started).collect();
        // What was there before it, the earliest end first; then what came since, in the order of starts.
        running.sort_by_key(|running| {
            let since = running.started > work.submitted;
            let end = (running.ends_by.is_none(), running.ends_by);
            (since, if since { (false, None) } else { end }, running.sequence)
        });
        let mut gone = Vec::new();
        let places = running.into_iter().find_map(|running| {
            later.with(running, &self.cluster);
            gone.push(running);
            later.find(shape, nodes)
        });
        // What only machines could take that are away keeps nothing.
        let places = places?;
        later.take_all(shape, &places);
        // Whatever can stay beside it stays, the last to come first: nothing is put where somebody has to go before.
        gone.reverse();
        gone.retain(|running| !later.try_without(running, &self.cluster));
        let starts_by =
            gone.iter().try_fold(self.now, |so_far, running| running.ends_by.map(|end| so_far.max(end)));
        self.spare.at_most(&later);
        self.ledger.add(work, places.model);
        self.head = Some(Head { id: work.id.clone(), starts_by });
        starts_by
    }

    fn no_room(&mut self, shape: &Shape, nodes: &[usize]) -> Reason {
        let some_away = self.cluster.nodes.iter().any(|node| !node.ready);
        if some_away && self.whole.find(shape, nodes).is_none() {
            return Reason::NotReady;
        }
        if let Some((resource, wanted, free)) = short(&self.free, shape, nodes) {
            return Reason::NoRoom { resource, wanted, free };
        }
        let tasks = shape.tasks.iter().map(|need| u64::from(need.count)).sum();
        Reason::NotTogether { tasks, fit: self.free.count(shape, nodes) }
    }
}

/// What no machine has enough of for one task: resource, wanted, the most there is.
fn short(room: &Room, shape: &Shape, nodes: &[usize]) -> Option<(Resource, u64, u64)> {
    let models: Vec<Option<usize>> =
        if shape.models.is_empty() { vec![None] } else { shape.models.iter().copied().map(Some).collect() };
    let fits =
        |need: &Need| nodes.iter().any(|&node| models.iter().any(|&model| room.fits_one(need, node, model)));
    let need = shape.tasks.iter().filter(|need| need.count > 0).find(|need| !fits(need))?;
    let cards = u64::from(room.most_cards(nodes, &shape.models));
    let (memory, cpus) = (room.most_memory(nodes), room.most_cpus(nodes));
    let gpus = u64::from(need.gpus);
    Some(if gpus > cards {
        (Resource::Gpus, gpus, cards)
    } else if need.memory_mib > memory {
        (Resource::Memory, need.memory_mib, memory)
    } else if need.cpus_milli > cpus {
        (Resource::Cpus, need.cpus_milli, cpus)
    } else if gpus > 0 {
        // Each is there, but not on one machine: cards that can be used with what else is asked for.
        let beside = |&node: &usize| {
            let bare = Need { gpus: 0, ..*need };
            room.fits_one(&bare, node, None).then(|| room.most_cards(&[node], &shape.models)).map(u64::from)
        };
        (Resource::Gpus, gpus, nodes.iter().filter_map(beside).max().unwrap_or(0))
    } else {
        let beside = |&node: &usize| {
            let bare = Need { memory_mib: 0, ..*need };
            room.fits_one(&bare, node, None).then(|| room.most_memory(&[node]))
        };
        (Resource::Memory, need.memory_mib, nodes.iter().filter_map(beside).max().unwrap_or(0))
    })
}
