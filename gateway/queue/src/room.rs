//! Free room on machines, and finding a place in it.
//!
//! Flat arrays instead of maps: a decision looks at every machine for each of thousands of works. A try that fails is
//! taken back, nothing is cloned.

use std::collections::HashMap;

use crate::situation::{Card, Need, Node, Running};

/// Machines and models by number, and what does not change while deciding.
#[derive(Debug)]
pub(crate) struct Cluster<'a> {
    pub(crate) nodes: &'a [Node],
    pub(crate) models: Vec<&'a str>,
    by_name: HashMap<&'a str, usize>,
    /// The model of each card.
    cards: Vec<HashMap<&'a str, usize>>,
}

/// What is free. `cards` is by machine and model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Room {
    cpus: Vec<u64>,
    memory: Vec<u64>,
    cards: Vec<u32>,
    models: usize,
    /// The most cards of each model on any machine; an upper bound that spares looking at all of them.
    most: Vec<u32>,
}

/// What a work asks of machines; like shapes have like answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) tasks: Vec<Need>,
    /// Models that will do, in the order of trying; empty where no card is asked for.
    pub(crate) models: Vec<usize>,
    /// Of where it may go.
    pub(crate) scope: usize,
}

/// Where each task goes: need, machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) model: Option<usize>,
    pub(crate) tasks: Vec<(usize, usize)>,
}

impl Shape {
    /// The size of its tasks, if all are of one.
    pub(crate) fn only(&self) -> Option<&Need> {
        let mut some = self.tasks.iter().filter(|need| need.count > 0);
        some.next().filter(|_| some.next().is_none())
    }
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(nodes: &'a [Node]) -> Self {
        let mut models: Vec<&str> =
            nodes.iter().flat_map(|node| &node.cards).map(|c| c.model.as_str()).collect();
        models.sort_unstable();
        models.dedup();
        let number =
            |card: &'a Card| (card.id.as_str(), models.partition_point(|m| *m < card.model.as_str()));
        let cards = nodes.iter().map(|node| node.cards.iter().map(number).collect()).collect();
        let by_name = nodes.iter().enumerate().map(|(at, node)| (node.name.as_str(), at)).collect();
        Self { nodes, models, by_name, cards }
    }

    pub(crate) fn model(&self, name: &str) -> Option<usize> {
        self.models.iter().position(|model| *model == name)
    }

    pub(crate) fn node(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn card_model(&self, node: usize, card: &str) -> Option<usize> {
        self.cards.get(node)?.get(card).copied()
    }
}

impl Room {
    /// Everything, as if nothing ran.
    pub(crate) fn whole(cluster: &Cluster<'_>) -> Self {
        let models = cluster.models.len();
        let mut cards = vec![0; cluster.nodes.len() * models];
        for (at, node) in cluster.nodes.iter().enumerate() {
            for card in node.cards.iter().filter(|card| card.healthy) {
                if let Some(model) = cluster.card_model(at, &card.id) {
                    cards[at * models + model] += 1;
                }
            }
        }
        let mut room = Self {
            cpus: cluster.nodes.iter().map(|node| node.cpus_milli).collect(),
            memory: cluster.nodes.iter().map(|node| node.memory_mib).collect(),
            cards,
            models,
            most: vec![0; models],
        };
        room.bound();
        room
    }

    fn bound(&mut self) {
        for model in 0..self.models {
            let each = self.cards.iter().skip(model).step_by(self.models);
            self.most[model] = each.copied().max().unwrap_or(0);
        }
    }

    /// The most cards of `model` that any machine has.
    pub(crate) fn most(&self, model: usize) -> u32 {
        self.most[model]
    }

    /// Takes what `running` holds, if that is all there.
    pub(crate) fn try_without(&mut self, running: &Running, cluster: &Cluster<'_>) -> bool {
        let mut rest = self.clone();
        rest.without(running, cluster);
        let mut whole = rest.clone();
        whole.with(running, cluster);
        // Taking stops at nothing, so what comes back is more where there was not enough.
        let enough = whole == *self;
        if enough {
            *self = rest;
        }
        enough
    }

    /// Takes what `running` holds.
    pub(crate) fn without(&mut self, running: &Running, cluster: &Cluster<'_>) {
        self.change(running, cluster, u64::saturating_sub);
    }

    /// Gives back what `running` holds.
    pub(crate) fn with(&mut self, running: &Running, cluster: &Cluster<'_>) {
        self.change(running, cluster, u64::saturating_add);
    }

    fn change(&mut self, running: &Running, cluster: &Cluster<'_>, apply: impl Fn(u64, u64) -> u64) {
        for task in &running.tasks {
            let Some(node) = cluster.node(&task.node) else { continue };
            self.cpus[node] = apply(self.cpus[node], task.cpus_milli);
            self.memory[node] = apply(self.memory[node], task.memory_mib);
            for card in &task.cards {
                let healthy = cluster.nodes[node].cards.iter().any(|c| c.id == *card && c.healthy);
                if let Some(model) = cluster.card_model(node, card).filter(|_| healthy) {
                    let count = &mut self.cards[node * self.models + model];
                    *count = u32::try_from(apply(u64::from(*count), 1)).unwrap_or(*count);
                }
            }
        }
        self.bound();
    }

    pub(crate) fn cards(&self, node: usize, model: usize) -> u32 {
        self.cards[node * self.models + model]
    }

    /// The most cards of any of `models` that one of `nodes` has.
    pub(crate) fn most_cards(&self, nodes: &[usize], models: &[usize]) -> u32 {
        let each = nodes.iter().flat_map(|&node| models.iter().map(move |&model| self.cards(node, model)));
        each.max().unwrap_or(0)
    }

    pub(crate) fn most_cpus(&self, nodes: &[usize]) -> u64 {
        nodes.iter().map(|&node| self.cpus[node]).max().unwrap_or(0)
    }

    pub(crate) fn most_memory(&self, nodes: &[usize]) -> u64 {
        nodes.iter().map(|&node| self.memory[node]).max().unwrap_or(0)
    }

    pub(crate) fn fits_one(&self, need: &Need, node: usize, model: Option<usize>) -> bool {
        self.cpus[node] >= need.cpus_milli
            && self.memory[node] >= need.memory_mib
            && (need.gpus == 0 || model.is_some_and(|model| self.cards(node, model) >= need.gpus))
    }

    pub(crate) fn take(&mut self, need: &Need, node: usize, model: Option<usize>) {
        self.cpus[node] -= need.cpus_milli;
        self.memory[node] -= need.memory_mib;
        if let Some(model) = model.filter(|_| need.gpus > 0) {
            self.cards[node * self.models + model] -= need.gpus;
        }
    }

    fn put_back(&mut self, need: &Need, node: usize, model: Option<usize>) {
        self.cpus[node] += need.cpus_milli;
        self.memory[node] += need.memory_mib;
        if let Some(model) = model.filter(|_| need.gpus > 0) {
            self.cards[node * self.models + model] += need.gpus;
        }
    }

    /// Takes all tasks at their places.
    pub(crate) fn take_all(&mut self, shape: &Shape, places: &Places) {
        for &(need, node) in &places.tasks {
            self.take(&shape.tasks[need], node, places.model);
        }
        self.bound();
    }

    /// Nothing more than `other` has, in anything.
    pub(crate) fn at_most(&mut self, other: &Self) {
        let least = |mine: &mut Vec<u64>, theirs: &[u64]| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = (*mine).min(*theirs));
        };
        least(&mut self.cpus, &other.cpus);
        least(&mut self.memory, &other.memory);
        self.cards.iter_mut().zip(&other.cards).for_each(|(mine, theirs)| *mine = (*mine).min(*theirs));
        self.bound();
    }

    /// Whether [`Self::find`] would find a place.
    pub(crate) fn fits(&mut self, shape: &Shape, nodes: &[usize]) -> bool {
        let Some(need) = shape.only() else { return self.find(shape, nodes).is_some() };
        let wanted = u64::from(need.count);
        let holds = |model| self.holds(need, nodes, model, wanted) >= wanted;
        if shape.models.is_empty() {
            holds(None)
        } else {
            shape.models.iter().any(|&model| holds(Some(model)))
        }
    }

    /// How many tasks of one size have room, `enough` at most. However they are placed it comes to this number, since no
    /// task on one machine is in the way of those on another.
    fn holds(&self, need: &Need, nodes: &[usize], model: Option<usize>, enough: u64) -> u64 {
        let times = |free: u64, each: u64| free.checked_div(each).unwrap_or(enough);
        let mut sum = 0;
        for &node in nodes {
            if !self.fits_one(need, node, model) {
                continue;
            }
            let cards = model.map_or(0, |model| u64::from(self.cards(node, model)));
            let here = times(self.cpus[node], need.cpus_milli)
                .min(times(self.memory[node], need.memory_mib))
                .min(times(cards, u64::from(need.gpus)));
            sum += here.min(enough);
            if sum >= enough {
                return enough;
            }
        }
        sum
    }

    /// A place for all tasks at once, on `nodes`. The room is as before in any case.
    pub(crate) fn find(&mut self, shape: &Shape, nodes: &[usize]) -> Option<Places> {
        if shape.models.is_empty() {
            return self.find_with(shape, nodes, None).ok();
        }
        // Where any model will do, the one of which most is free: others may ask for the rare one by name.
        let mut models: Vec<usize> =
            shape.models.iter().copied().filter(|&model| self.may(shape, model)).collect();
        let free = |model: usize| nodes.iter().map(|&node| u64::from(self.cards(node, model))).sum::<u64>();
        if models.len() > 1 {
            models.sort_by_cached_key(|&model| (std::cmp::Reverse(free(model)), model));
        }
        models.into_iter().find_map(|model| self.find_with(shape, nodes, Some(model)).ok())
    }

    /// Whether it is worth looking: with too few cards on every machine it is not.
    pub(crate) fn may_any(&self, shape: &Shape) -> bool {
        shape.models.is_empty() || shape.models.iter().any(|&model| self.may(shape, model))
    }

    /// Whether any machine has enough cards of `model` for each task.
    fn may(&self, shape: &Shape, model: usize) -> bool {
        shape.tasks.iter().all(|need| need.count == 0 || need.gpus <= self.most[model])
    }

    /// How many tasks find a place, at most.
    pub(crate) fn count(&mut self, shape: &Shape, nodes: &[usize]) -> u64 {
        let models: Vec<_> = if shape.models.is_empty() {
            vec![None]
        } else {
            shape.models.iter().copied().map(Some).collect()
        };
        let found = models.into_iter().map(|model| match self.find_with(shape, nodes, model) {
            Ok(places) => places.tasks.len(),
            Err(placed) => placed,
        });
        found.max().unwrap_or(0) as u64
    }

    /// `Err` is how many tasks found a place.
    fn find_with(&mut self, shape: &Shape, nodes: &[usize], model: Option<usize>) -> Result<Places, usize> {
        if let Some(need) = shape.only() {
            let held = self.holds(need, nodes, model, need.count.into());
            if held < need.count.into() {
                return Err(usize::try_from(held).unwrap_or(usize::MAX));
            }
        }
        let mut order: Vec<usize> = (0..shape.tasks.len()).collect();
        let size = |at: usize| {
            let need = &shape.tasks[at];
            (need.gpus, need.memory_mib, need.cpus_milli)
        };
        order.sort_by_key(|&at| (std::cmp::Reverse(size(at)), at));
        let mut tasks = Vec::new();
        let mut complete = true;
        'needs: for at in order {
            let need = &shape.tasks[at];
            for _ in 0..need.count {
                let Some(node) = self.best(need, nodes, model) else {
                    complete = false;
                    break 'needs;
                };
                self.take(need, node, model);
                tasks.push((at, node));
            }
        }
        for &(at, node) in &tasks {
            self.put_back(&shape.tasks[at], node, model);
        }
        if complete {
            tasks.sort_by_key(|&(need, _)| need);
            Ok(Places { model, tasks })
        } else {
            Err(tasks.len())
        }
    }

    /// The machine that is left with least: whole machines stay free for large works, and those with cards for works
    /// that need them.
    fn best(&self, need: &Need, nodes: &[usize], model: Option<usize>) -> Option<usize> {
        let cards = |node: usize| match model.filter(|_| need.gpus > 0) {
            Some(model) => u64::from(self.cards(node, model)),
            None => (0..self.models).map(|model| u64::from(self.cards(node, model))).sum(),
        };
        let fitting = nodes.iter().copied().filter(|&node| self.fits_one(need, node, model));
        fitting.min_by_key(|&node| (cards(node), self.memory[node], self.cpus[node], node))
    }
}
