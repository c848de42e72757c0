//! Working through the line: one work after the other, each with what those before it left.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use crate::{
    allowance::Ledger,
    decision::{Impossible, Less, Reason, Resource},
    room::{Cluster, Places, Room, Shape},
    scope::{Scope, Scopes},
    situation::{Need, Placed, Running, Situation, Work},
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
    /// What of it is not kept for a head.
    spare: Room,
    /// By cluster.
    heads: HashMap<&'a str, Head>,
    /// Cards that are given by now, by machine.
    taken: HashSet<(usize, &'a str)>,
    /// Shapes that found no place: room only shrinks while deciding.
    hopeless: HashSet<Shape>,
    hopeless_beside: HashSet<Shape>,
    possible: HashMap<Shape, Result<Vec<usize>, Impossible>>,
    scopes: Scopes<'a>,
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
            heads: HashMap::new(),
            taken,
            hopeless: HashSet::new(),
            hopeless_beside: HashSet::new(),
            possible: HashMap::new(),
            scopes: Scopes::new(&situation.pools),
        }
    }

    /// Decides on the next work.
    pub(crate) fn next(&mut self, work: &'a Work) -> Step {
        let scope = self.scopes.of(work, &self.cluster);
        let shape = self.shape(work, &scope);
        let models = match self.possible(work, &shape, &scope) {
            Ok(models) => models,
            Err(impossible) => return Step::Never(impossible),
        };
        let shape = match self.allowed(work, Shape { models, ..shape }) {
            Ok(shape) => shape,
            Err(reason) => return Step::Wait { reason, starts_by: None },
        };
        let nodes = &scope.ready;
        let head = self.heads.get(work.cluster.as_str());
        let (has_head, within_limit) = match (head, work.longest) {
            (Some(Head { starts_by: Some(due), .. }), Some(longest)) => {
                (true, self.now.checked_add(longest).is_ok_and(|end| end <= *due))
            }
            _ => (head.is_some(), false),
        };
        let found = self.find(&shape, nodes, within_limit || !has_head);
        if let Some(places) = found {
            return Step::Start(self.start(work, &shape, &places));
        }
        let fits = has_head && self.fits(&shape, nodes, true);
        let reason = match self.heads.get(work.cluster.as_str()) {
            Some(head) if fits => Reason::Behind { id: head.id.clone() },
            Some(_) | None => self.no_room(&shape, &scope),
        };
        let mut starts_by = None;
        if !has_head {
            starts_by = self.keep_room_for(work, &shape, nodes);
        }
        Step::Wait { reason, starts_by }
    }

    /// What of `work` would start now, if it asked for fewer cards. Asked once everything is decided.
    pub(crate) fn less(&mut self, work: &'a Work) -> Option<Less> {
        let most = work.tasks.iter().map(|need| need.gpus).max().filter(|most| *most > 0)?;
        let scope = self.scopes.of(work, &self.cluster);
        let nodes = &scope.ready;
        let is_head = self.heads.get(work.cluster.as_str()).is_some_and(|head| head.id == work.id);
        let whole = self.shape(work, &scope);
        let free = whole.models.iter().map(|&model| self.free.most(model)).max().unwrap_or(0);
        for gpus_per_task in (0..most.min(free.saturating_add(1))).rev() {
            let capped = |need: &Need| Need { gpus: need.gpus.min(gpus_per_task), ..*need };
            let tasks: Vec<Need> = work.tasks.iter().map(capped).collect();
            let models = if gpus_per_task == 0 { Vec::new() } else { whole.models.clone() };
            let shape = Shape { tasks, models, scope: scope.number };
            // The head's own part is set aside for it already.
            let models = if is_head { Some(shape.models.clone()) } else { self.allowed_models(work, &shape) };
            let Some(models) = models else { continue };
            if self.fits(&Shape { models, ..shape }, nodes, is_head) {
                return Some(Less { gpus_per_task });
            }
        }
        None
    }

    fn shape(&self, work: &Work, scope: &Scope) -> Shape {
        let models = match &work.model {
            _ if work.gpus() == 0 => Vec::new(),
            Some(model) => {
                self.cluster.model(model).filter(|model| scope.models.contains(model)).into_iter().collect()
            }
            None => scope.models.clone(),
        };
        Shape { tasks: work.tasks.clone(), models, scope: scope.number }
    }

    // === never ===

    /// The models with which the work would fit into the empty cluster, or why there is none.
    fn possible(&mut self, work: &Work, shape: &Shape, scope: &Scope) -> Result<Vec<usize>, Impossible> {
        // One size of task is quicker looked at than remembered; and a model that nobody has is not in the shape.
        let several = shape.only().is_none();
        if !several || (work.gpus() > 0 && shape.models.is_empty()) {
            return self.possible_anew(work, shape, scope);
        }
        if let Some(known) = self.possible.get(shape) {
            return known.clone();
        }
        let answer = self.possible_anew(work, shape, scope);
        self.possible.insert(shape.clone(), answer.clone());
        answer
    }

    fn possible_anew(&mut self, work: &Work, shape: &Shape, scope: &Scope) -> Result<Vec<usize>, Impossible> {
        let tasks: u64 = shape.tasks.iter().map(|need| u64::from(need.count)).sum();
        if tasks == 0 {
            return Err(Impossible::Nothing);
        }
        if let Some(shut) = &scope.shut {
            return Err(shut.clone());
        }
        if work.gpus() > 0 && shape.models.is_empty() {
            self.has_cards(work, scope)?;
        }
        let nodes = &scope.all;
        if let Some((resource, wanted, largest)) = short(&self.whole, shape, nodes) {
            return Err(Impossible::TooLarge { resource, wanted, largest });
        }
        let mut fits = |models: Vec<usize>| {
            let shape = Shape { models, ..shape.clone() };
            self.whole.fits(&shape, nodes)
        };
        let models: Vec<usize> = shape.models.iter().copied().filter(|&model| fits(vec![model])).collect();
        if models.is_empty() && (!shape.models.is_empty() || !fits(Vec::new())) {
            return Err(Impossible::NotTogether { tasks, fit: self.whole.count(shape, nodes) });
        }
        Ok(models)
    }

    /// Why there is no card for a work that wants some, if that is more than their number.
    fn has_cards(&self, work: &Work, scope: &Scope) -> Result<(), Impossible> {
        let names =
            |models: &[usize]| models.iter().map(|&model| self.cluster.models[model].to_owned()).collect();
        let there = work.model.as_ref().and_then(|model| self.cluster.model(model));
        let there = there.filter(|model| scope.present.contains(model));
        match (&work.model, &work.pool) {
            (Some(model), Some(_)) => {
                Err(Impossible::NoSuchModel { model: model.clone(), known: names(&scope.models) })
            }
            (Some(model), None) if there.is_none() => {
                Err(Impossible::NoSuchModel { model: model.clone(), known: names(&scope.present) })
            }
            (_, None) => {
                let model = there.or(scope.present.first().copied());
                model
                    .and_then(|model| self.scopes.keeper(work, self.cluster.models[model]))
                    .map_or(Ok(()), Err)
            }
            (None, Some(_)) => Ok(()),
        }
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

    /// Whether [`Self::find`] would find a place.
    fn fits(&mut self, shape: &Shape, nodes: &[usize], all: bool) -> bool {
        if shape.only().is_none() {
            return self.find(shape, nodes, all).is_some();
        }
        let room = if all { &mut self.free } else { &mut self.spare };
        room.may_any(shape) && room.fits(shape, nodes)
    }

    /// A place in all that is free, or only in what is not kept for the head.
    fn find(&mut self, shape: &Shape, nodes: &[usize], all: bool) -> Option<Places> {
        let (room, hopeless) = if all {
            (&mut self.free, &mut self.hopeless)
        } else {
            (&mut self.spare, &mut self.hopeless_beside)
        };
        if !room.may_any(shape) {
            return None;
        }
        if shape.only().is_some() {
            return room.find(shape, nodes);
        }
        if hopeless.contains(shape) {
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
        if self.heads.is_empty() {
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
    fn keep_room_for(&mut self, work: &'a Work, shape: &Shape, nodes: &[usize]) -> Option<Timestamp> {
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
        self.heads.insert(&work.cluster, Head { id: work.id.clone(), starts_by });
        starts_by
    }

    fn no_room(&mut self, shape: &Shape, scope: &Scope) -> Reason {
        let nodes = &scope.ready;
        let some_away = nodes.len() < scope.all.len();
        if some_away && !self.whole.fits(shape, nodes) {
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
