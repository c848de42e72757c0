//! `berth nodes` and `gpus`: the machines, what is free of them, and who has which card.

use std::collections::BTreeSet;

use gateway_api::{
    cluster::{Cluster, ClusterNode},
    node::{Gpu, Node, NodeState},
};
use jiff::Timestamp;

use super::{Session, list::Json};
use crate::{
    failure::Status,
    output, size,
    words::{Title, Words},
};

pub(crate) async fn nodes(arguments: &Json, session: &Session) -> anyhow::Result<Status> {
    let nodes = session.client.nodes().await?;
    if arguments.json {
        output::json(&nodes)?;
    } else {
        let cluster = session.client.cluster().await.ok();
        output::data(&node_table(&nodes, cluster.as_ref(), session.words))?;
        if let Some(table) = cluster.and_then(|cluster| model_table(&cluster, session.words)) {
            output::data(&format!("\n{table}"))?;
        }
        // An older gateway has none, and whoever may see machines need not have a quota.
        let shares = session.client.own_quota().await.map(|own| own.shares).unwrap_or_default();
        if let Some(table) = super::quota::shares(&shares, session.words) {
            output::data(&format!("\n{table}"))?;
        }
        for node in &nodes {
            for warning in &node.warnings {
                output::say(&session.words.node_warning(&node.name, *warning));
            }
        }
        for instance in nodes.iter().flat_map(|node| &node.unknown) {
            output::say(&session.words.unknown_container(instance.as_str()));
        }
    }
    Ok(Status::DONE)
}

pub(crate) async fn gpus(arguments: &Json, session: &Session) -> anyhow::Result<Status> {
    let gpus = session.client.gpus().await?;
    if arguments.json {
        output::json(&gpus)?;
    } else if gpus.is_empty() {
        output::say(session.words.no_gpus());
    } else {
        output::data(&gpu_table(&gpus, session.words, Timestamp::now()))?;
    }
    Ok(Status::DONE)
}

fn node_table(nodes: &[Node], cluster: Option<&Cluster>, words: Words) -> String {
    let row = |node: &Node| {
        let state = match &node.state {
            NodeState::Ready => words.ready().to_owned(),
            NodeState::Unwell { message } => words.unwell(message),
        };
        [
            node.name.clone(),
            node.address.map(|address| address.to_string()).unwrap_or_default(),
            state,
            node.cpus.to_string(),
            size::display(node.memory_bytes),
            node.gpus.to_string(),
            words.disk_limit(node.disk_limit).to_owned(),
        ]
    };
    let titles = [
        Title::Name,
        Title::Address,
        Title::State,
        Title::Cpus,
        Title::Memory,
        Title::Gpus,
        Title::DiskLimit,
    ];
    let mut more = output::cluster_column(nodes.iter().map(|node| node.cluster.as_str())).to_vec();
    if nodes.iter().any(|node| !node.pools.is_empty()) {
        more.push(Title::Pools);
    }
    if cluster.is_some() {
        more.extend([Title::FreeCpus, Title::FreeMemory, Title::FreeGpus]);
    }
    let cell = |node: &Node, title: &Title| {
        let is_it = |other: &&ClusterNode| (&other.cluster, &other.name) == (&node.cluster, &node.name);
        let free =
            cluster.and_then(|cluster| cluster.nodes.iter().find(is_it)).map(|node| (node, free_cards(node)));
        match (title, free) {
            (Title::Cluster, _) => node.cluster.clone(),
            (Title::Pools, _) => node.pools.join(", "),
            // Where processors are given out more than once, one instance still gets no more than there are.
            (Title::FreeCpus, Some((free, _))) => {
                let free = (free.cpus - free.cpus_held).clamp(0.0, node.cpus);
                ((free * 1000.0).round() / 1000.0).to_string()
            }
            (Title::FreeMemory, Some((free, _))) => {
                size::display(free.memory_bytes.saturating_sub(free.memory_held_bytes))
            }
            (Title::FreeGpus, Some((_, cards))) => cards.len().to_string(),
            (_, _) => String::new(),
        }
    };
    let rows = nodes.iter().map(|node| (row(node), more.iter().map(|title| cell(node, title)).collect()));
    output::table_with(words, titles, rows, &more)
}

/// The models of the cards that can be had now. A machine that is unwell gives none.
fn free_cards(node: &ClusterNode) -> Vec<&str> {
    let ready = matches!(node.state, NodeState::Ready);
    let free = node.cards.iter().filter(|card| ready && card.healthy && card.holder.is_none());
    free.map(|card| card.model.as_str()).collect()
}

/// Each model of cards: how many there are, how many are free, and how many of these one task can get.
fn model_table(cluster: &Cluster, words: Words) -> Option<String> {
    let models: BTreeSet<_> =
        cluster.nodes.iter().flat_map(|node| &node.cards).map(|card| card.model.as_str()).collect();
    let row = |model: &&str| {
        let all =
            cluster.nodes.iter().flat_map(|node| &node.cards).filter(|card| card.model == *model).count();
        let free =
            cluster.nodes.iter().map(|node| free_cards(node).iter().filter(|free| *free == model).count());
        [
            (*model).to_owned(),
            all.to_string(),
            free.clone().sum::<usize>().to_string(),
            free.max().unwrap_or(0).to_string(),
        ]
    };
    let titles = [Title::Model, Title::Gpus, Title::FreeGpus, Title::FreeBlock];
    (!models.is_empty()).then(|| output::table(words, titles, models.iter().map(row)))
}

fn gpu_table(gpus: &[Gpu], words: Words, now: Timestamp) -> String {
    let titles = [
        Title::Host,
        Title::Number,
        Title::Model,
        Title::Memory,
        Title::Busy,
        Title::Temperature,
        Title::Processes,
        Title::State,
        Title::User,
        Title::HeldFor,
        Title::Since,
    ];
    let row = |gpu: &Gpu| {
        let holder = gpu.holder.as_ref();
        [
            gpu.node.clone(),
            gpu.index.to_string(),
            gpu.model.clone(),
            format!("{} / {}", size::display(gpu.memory_used_bytes), size::display(gpu.memory_bytes)),
            format!("{} %", gpu.busy),
            gpu.temperature.map_or_else(String::new, |degrees| format!("{degrees} °C")),
            gpu.processes.to_string(),
            words.gpu_state(gpu).to_owned(),
            holder.map_or_else(String::new, |holder| holder.user.to_string()),
            holder.map_or_else(String::new, |holder| holder.name.clone()),
            holder.map_or_else(String::new, |holder| output::age(holder.since, now)),
        ]
    };
    let more: &[Title] = if gpus.iter().any(|gpu| !gpu.pools.is_empty()) { &[Title::Pools] } else { &[] };
    let rows = gpus.iter().map(|gpu| (row(gpu), more.iter().map(|_| gpu.pools.join(", ")).collect()));
    output::table_with(words, titles, rows, more)
}

#[cfg(test)]
mod tests {
    use gateway_api::node::{DiskLimit, GpuHolder, NodeWarning};

    use super::*;
    use crate::words::Language;

    /// A machine with three cards, one of them held and one unwell, and one that gives none.
    fn cluster() -> Cluster {
        let card = |id: &str, model: &str, healthy: bool| serde_json::json!({"id": id, "model": model, "healthy": healthy});
        let mut held = card("GPU-0", "NVIDIA A100", true);
        held["holder"] = serde_json::json!({"since": "2026-01-31T09:30:00Z"});
        let node = |name: &str, state: serde_json::Value, cards: Vec<serde_json::Value>| {
            serde_json::json!({
                "name": name, "cluster": "default", "state": state, "cpus": 8.0, "cpus_held": 2.5,
                "memory_bytes": 8u64 << 30, "memory_held_bytes": 3u64 << 30, "cards": cards,
            })
        };
        let cards = vec![
            held,
            card("GPU-1", "NVIDIA A100", true),
            card("GPU-2", "NVIDIA A100", false),
            card("GPU-3", "NVIDIA A100", true),
        ];
        let unwell = serde_json::json!({"state": "unwell", "message": "away"});
        let others = vec![card("GPU-4", "NVIDIA T4", true)];
        let ready = serde_json::json!({"state": "ready"});
        let nodes = [node("node-1", ready, cards), node("node-2", unwell, others)];
        serde_json::from_value(serde_json::json!({"nodes": nodes, "waiting": 0})).unwrap()
    }

    #[test]
    fn machines_and_cards_in_both_languages() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let mut text = Vec::new();
        for words in [Language::English, Language::Chinese].map(Words::new) {
            let node = |state, disk_limit| Node {
                name: "node-1".to_owned(),
                address: Some([10, 0, 0, 7].into()),
                cluster: "default".to_owned(),
                pools: vec!["dev".to_owned(), "train".to_owned()],
                state,
                cpus: 2.0,
                memory_bytes: 8 << 30,
                gpus: 0,
                disk_limit,
                unknown: Vec::new(),
                warnings: Vec::new(),
            };
            let unwell = NodeState::Unwell { message: "the engine does not answer".to_owned() };
            let nodes = [node(NodeState::Ready, DiskLimit::Hard), node(unwell, DiskLimit::Polled)];
            text.push(node_table(&nodes, None, words));
            text.push(node_table(&nodes[..1], Some(&cluster()), words));
            text.extend(model_table(&cluster(), words));
            let gpu = |index: u32, healthy: bool, holder: Option<&str>| Gpu {
                node: "node-1".to_owned(),
                cluster: "default".to_owned(),
                pools: vec!["dev".to_owned()],
                index,
                uuid: format!("GPU-{index}"),
                model: "NVIDIA GeForce RTX 3090".to_owned(),
                memory_bytes: 24 << 30,
                memory_used_bytes: 6 << 30,
                busy: 97,
                temperature: healthy.then_some(71),
                processes: 1,
                healthy,
                held: index != 2,
                holder: holder.map(|name| GpuHolder {
                    user: "alice".parse().unwrap(),
                    name: name.to_owned(),
                    since: "2026-01-31T09:30:00Z".parse().unwrap(),
                }),
            };
            let gpus = [
                gpu(0, true, Some("train/main/0")),
                gpu(1, true, None),
                gpu(2, true, None),
                gpu(3, false, None),
            ];
            text.push(gpu_table(&gpus, words, now));
            text.push(words.no_gpus().to_owned());
            for warning in [NodeWarning::TenantsNotApart, NodeWarning::SyscallsNotFiltered] {
                text.push(words.node_warning("node-1", warning));
            }
            text.push(words.unknown_container("ins_01a1e31bfd8875b1bbc610ae0f8cf18e"));
        }
        insta::assert_snapshot!(text.join("\n\n"));
    }
}
