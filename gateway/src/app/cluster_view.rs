//! The machines as everyone may see them: what the line gives out, and what of it is taken.

use gateway_api::cluster::{CardHolder, Cluster, ClusterCard, ClusterNode};

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
            let here: Vec<&Reservation> =
                reservations.iter().filter(|one| one.held.node == node.name).collect();
            let sum = |of: fn(&Reservation) -> u64| here.iter().map(|one| of(one)).sum::<u64>();
            let cards = node.cards.iter().map(|card| ClusterCard {
                id: card.uuid.clone(),
                model: card.model.clone(),
                healthy: card.healthy,
                holder: here
                    .iter()
                    .find(|one| one.held.cards.contains(&card.uuid))
                    .map(|one| holder(caller, one)),
            });
            nodes.push(ClusterNode {
                name: node.name.clone(),
                state: seen.state,
                cpus: cpus(crate::store::milli(node.cpus) * self.config.jobs.cpu_overcommit),
                cpus_held: cpus(sum(|one| one.held.cpus_milli)),
                memory_bytes: node.memory_bytes,
                memory_held_bytes: sum(|one| one.held.memory_mib) << 20,
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

fn holder(caller: &Caller, reservation: &Reservation) -> CardHolder {
    let known = policy::may_know_holder(caller, &reservation.user, &reservation.group);
    CardHolder { user: known.then(|| reservation.user.clone()), since: reservation.taken_at }
}
