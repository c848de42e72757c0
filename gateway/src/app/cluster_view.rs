//! The machines as everyone may see them: what the line gives out, and what of it is taken.

use envd_api::control::Takes;
use gateway_api::cluster::{CardHolder, Cluster, ClusterCard, ClusterNode};
use jiff::Timestamp;

use super::App;
use crate::{
    auth::{Caller, policy},
    clusters,
    error::Error,
    store::{Reservation, cpus},
};

impl App {
    pub(crate) async fn cluster_view(&self, caller: &Caller) -> Result<Cluster, Error> {
        let reservations = self.store.reservations().await?;
        let waiting = self.store.waiting_instances().await?.len() + self.store.waiting_jobs().await?.len();
        let nodes = self.clusters.iter().filter_map(|cluster| self.machine(caller, cluster, &reservations));
        Ok(Cluster { nodes: nodes.collect(), waiting: u32::try_from(waiting).unwrap_or(u32::MAX) })
    }

    /// The machine of a cluster: each has one.
    fn machine(
        &self,
        caller: &Caller,
        cluster: &clusters::Cluster,
        reservations: &[Reservation],
    ) -> Option<ClusterNode> {
        let (node, seen) = (cluster.node()?, self.node(caller, cluster)?);
        let unknown: Vec<_> = cluster.unknown().into_values().filter_map(|unknown| unknown.running).collect();
        let sum = |of: fn(&Reservation) -> u64, too: fn(&Takes) -> u64| {
            let here = reservations.iter().filter(|one| one.cluster == cluster.name);
            here.map(of).sum::<u64>() + unknown.iter().map(|(_, takes)| too(takes)).sum::<u64>()
        };
        let cards = node.cards.iter().map(|card| ClusterCard {
            id: card.uuid.clone(),
            model: card.model.clone(),
            healthy: card.healthy,
            holder: card_holder(caller, &card.uuid, reservations, &unknown),
        });
        Some(ClusterNode {
            name: node.name.clone(),
            cluster: seen.cluster,
            pools: seen.pools,
            state: seen.state,
            cpus: cpus(crate::store::milli(node.cpus) * self.config.jobs.cpu_overcommit),
            cpus_held: cpus(sum(|one| one.held.cpus_milli, |takes| takes.cpus_milli)),
            memory_bytes: node.memory_bytes,
            memory_held_bytes: sum(|one| one.held.memory_mib << 20, |takes| takes.memory_bytes),
            cards: cards.collect(),
        })
    }
}

fn card_holder(
    caller: &Caller,
    card: &str,
    reservations: &[Reservation],
    unknown: &[(Timestamp, Takes)],
) -> Option<CardHolder> {
    let has = |cards: &[String]| cards.iter().any(|one| one == card);
    let known = reservations.iter().find(|one| has(&one.held.cards)).map(|one| {
        let known = policy::may_know_holder(caller, &one.user, &one.group);
        CardHolder { user: known.then(|| one.user.clone()), since: one.taken_at }
    });
    let stranger = unknown.iter().find(|(_, takes)| has(&takes.cards));
    known.or_else(|| stranger.map(|(since, _)| CardHolder { user: None, since: *since }))
}
