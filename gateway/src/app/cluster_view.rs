//! The machines as everyone may see them: what the line gives out, and what of it is taken.

use envd_api::control::Takes;
use gateway_api::cluster::{CardHolder, Cluster, ClusterCard, ClusterNode};
use jiff::Timestamp;

use super::App;
use crate::{
    auth::{Caller, policy},
    error::Error,
    store::Reservation,
};

impl App {
    pub(crate) async fn cluster_view(&self, caller: &Caller) -> Result<Cluster, Error> {
        let reservations = self.store.reservations().await?;
        let waiting = self.store.waiting_instances().await?.len() + self.store.waiting_jobs().await?.len();
        let mut nodes = Vec::new();
        if let (Some(node), Some(seen)) = (self.cluster.node(), self.nodes(caller).into_iter().next()) {
            // There is one machine: what was written down before it had a name is here too.
            let unknown: Vec<_> =
                self.cluster.unknown().into_values().filter_map(|unknown| unknown.running).collect();
            let sum = |of: fn(&Reservation) -> u64, too: fn(&Takes) -> u64| {
                let known = reservations.iter().map(of).sum::<u64>();
                known + unknown.iter().map(|(_, takes)| too(takes)).sum::<u64>()
            };
            let cards = node.cards.iter().map(|card| ClusterCard {
                id: card.uuid.clone(),
                model: card.model.clone(),
                healthy: card.healthy,
                holder: card_holder(caller, &card.uuid, &reservations, &unknown),
            });
            nodes.push(ClusterNode {
                name: node.name.clone(),
                state: seen.state,
                cpus: cpus(crate::store::milli(node.cpus) * self.config.jobs.cpu_overcommit),
                cpus_held: cpus(sum(|one| one.held.cpus_milli, |takes| takes.cpus_milli)),
                memory_bytes: node.memory_bytes,
                memory_held_bytes: sum(|one| one.held.memory_mib << 20, |takes| takes.memory_bytes),
                cards: cards.collect(),
            });
        }
        Ok(Cluster { nodes, waiting: u32::try_from(waiting).unwrap_or(u32::MAX) })
    }
}

#[expect(clippy::cast_precision_loss, reason = "no machine has so many")]
fn cpus(milli: u64) -> f64 {
    milli as f64 / 1000.0
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
