//! Graphics processors: which there are, who has them, and what people call their models.

use std::collections::{HashMap, HashSet};

use envd_api::control::CardReport;
use futures_util::future::join_all;
use gateway_api::{node::Gpu, session::Role};

use super::App;
use crate::{auth::Caller, clusters::Cluster, error::Error, store::HeldCard};

impl App {
    /// All of them, with who has which as far as the caller may know that.
    pub(crate) async fn gpus(&self, caller: &Caller) -> Result<Vec<Gpu>, Error> {
        join_all(self.clusters.iter().map(|cluster| look(cluster))).await;
        let mut held =
            self.store.held_cards().await?.into_iter().map(|held| (held.card.clone(), held)).collect();
        let mut all: Vec<Gpu> =
            self.clusters.iter().flat_map(|cluster| self.gpus_of(caller, cluster, &mut held)).collect();
        // Two clusters on one machine see the same cards: the first of them has them.
        let mut seen = HashSet::new();
        all.retain(|gpu| seen.insert(gpu.uuid.clone()));
        Ok(all)
    }

    fn gpus_of(&self, caller: &Caller, cluster: &Cluster, held: &mut HashMap<String, HeldCard>) -> Vec<Gpu> {
        let Some(node) = cluster.node() else { return Vec::new() };
        let unknown = cluster.unknown();
        let strangers: HashSet<&String> = unknown
            .values()
            .filter_map(|one| one.running.as_ref())
            .flat_map(|(_, takes)| &takes.cards)
            .collect();
        let gpu = |card: CardReport| {
            let held = held.remove(&card.uuid);
            let is_strangers = strangers.contains(&card.uuid);
            let shown = |held: &HeldCard| {
                self.config.jobs.show_holders
                    || held.user_id == caller.user.id
                    || caller.user.role == Role::Admin
                    || (caller.user.role == Role::Leader && held.group_id == caller.user.group_id)
            };
            Gpu {
                node: node.name.clone(),
                cluster: cluster.name.clone(),
                pools: self.pools_of(&cluster.name, Some(&card.model)),
                index: card.index,
                uuid: card.uuid,
                model: card.model,
                memory_bytes: card.memory_bytes,
                memory_used_bytes: card.memory_used_bytes,
                busy: card.busy,
                temperature: card.temperature,
                processes: card.processes,
                healthy: card.healthy,
                held: held.is_some() || is_strangers,
                holder: held.filter(shown).map(|held| held.holder),
            }
        };
        node.cards.into_iter().map(gpu).collect()
    }

    /// The model of a card.
    pub(crate) fn card_model(&self, uuid: &str) -> Option<String> {
        self.cards().find(|card| card.uuid == uuid).map(|card| card.model)
    }

    /// The model that is meant by `asked`, in full, if exactly one of those that there are can be.
    pub(crate) fn gpu_model(&self, asked: &str) -> Option<String> {
        let models: Vec<String> = self.cards().map(|card| card.model).collect();
        model(asked, models.iter().map(String::as_str)).map(str::to_owned)
    }

    fn cards(&self) -> impl Iterator<Item = CardReport> {
        self.clusters.iter().filter_map(|cluster| cluster.node()).flat_map(|node| node.cards)
    }
}

/// What the last round heard is too old to say how busy a card is, but better than nothing.
async fn look(cluster: &Cluster) {
    if let Ok(node) = cluster.envd.node().await {
        // The queue is to know no less than people see.
        cluster.note_node(node);
    }
}

/// People say `3090`, `rtx3090` or `1080Ti`; the driver says `NVIDIA GeForce RTX 3090`. Exactly what was said wins over
/// what merely holds it: `A100` is not every kind of `A100`, if one is called just that.
fn model<'a>(asked: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain =
        |name: &str| -> String { name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect() };
    let asked = plain(asked);
    if asked.is_empty() {
        return None;
    }
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    let makers = ["nvidia", "geforce", "tesla", "quadro"];
    let short = |name: &str| makers.iter().fold(plain(name), |name, maker| name.replacen(maker, "", 1));
    let only =
        |fits: &dyn Fn(&str) -> bool| match known.iter().filter(|name| fits(name)).collect::<Vec<_>>()[..] {
            [one] => Some(*one),
            _ => None,
        };
    only(&|name| plain(name) == asked || short(name) == asked)
        .or_else(|| only(&|name| words_end_with(name, &asked)))
        .or_else(|| only(&|name| plain(name).contains(&asked)))
}

/// Whether the last words of a name are what was said: `RTX 3090` is one, `RTX 3090 Ti` is another.
fn words_end_with(name: &str, asked: &str) -> bool {
    let words: Vec<String> = name.to_lowercase().split([' ', '-']).map(str::to_owned).collect();
    (0..words.len()).any(|from| words[from..].concat() == asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_by_what_people_call_them() {
        let known = [
            "NVIDIA GeForce RTX 3090",
            "NVIDIA GeForce RTX 3090 Ti",
            "NVIDIA GeForce GTX 1080 Ti",
            "NVIDIA A100-SXM4-40GB",
            "NVIDIA A100-SXM4-80GB",
            "Tesla P100-PCIE-16GB",
        ];
        let check = |asked: &str, expected: Option<&str>| {
            assert_eq!(model(asked, known.into_iter().chain(known)), expected, "{asked}");
        };
        check("NVIDIA GeForce RTX 3090", Some(known[0]));
        check("3090", Some(known[0]));
        check("rtx-3090", Some(known[0]));
        check("RTX3090Ti", Some(known[1]));
        check("1080ti", Some(known[2]));
        check("1080Ti", Some(known[2]));
        check("A100-SXM4-80GB", Some(known[4]));
        check("80GB", Some(known[4]));
        check("P100", Some(known[5]));
        // Which of two is not ours to say.
        check("A100", None);
        check("H100", None);
        check(" ", None);
    }
}
