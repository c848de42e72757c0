//! What the site is made of: `[[gateway.cluster]]`, `[[gateway.pool]]` and `[[gateway.share]]`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use queue::{Kind, Limits};
use serde::{Deserialize, Serialize};

use super::reader::Reader;
use crate::{clusters::DEFAULT, store::milli};

/// The share of what names none.
pub(crate) const DEFAULT_SHARE: &str = "default";
const NAME_MAX: usize = 40;

/// A cluster: an envd on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterSetting {
    pub(crate) name: String,
    /// The data directory of its envd: its socket and the doors of its instances are there.
    pub(crate) data: PathBuf,
}

/// A pool: whole machines or the cards of some models, for some kinds of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PoolSetting {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    /// As people call the models.
    #[serde(default)]
    pub(crate) gpus: Vec<String>,
    #[serde(default = "all_kinds")]
    pub(crate) kinds: BTreeSet<Kind>,
}

/// A share of the site: OpenPAI's virtual cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShareSetting {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gpus: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    gpus_by_model: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpus: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_gib: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterTable {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

fn all_kinds() -> BTreeSet<Kind> {
    [Kind::Instance, Kind::Job, Kind::Debug].into()
}

impl ShareSetting {
    fn named(name: &str) -> Self {
        let name = name.to_owned();
        Self { name, gpus: None, gpus_by_model: BTreeMap::new(), cpus: None, memory_gib: None }
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            gpus: self.gpus,
            gpus_by_model: self.gpus_by_model.clone(),
            cpus_milli: self.cpus.map(milli),
            memory_mib: self.memory_gib.map(|gib| gib << 10),
            ..Limits::default()
        }
    }
}

pub(super) fn take_clusters(data: &Path, reader: &mut Reader<'_>) -> Vec<ClusterSetting> {
    let tables: Vec<ClusterTable> = reader.tables("cluster");
    if tables.is_empty() {
        return vec![ClusterSetting { name: DEFAULT.to_owned(), data: data.to_owned() }];
    }
    check_names("cluster", tables.iter().map(|table| table.name.as_str()), reader);
    let mut clusters: Vec<ClusterSetting> = Vec::new();
    for ClusterTable { name, data: own, address } in tables {
        if address.is_some() {
            reader.mistake(&format!(
                "`gateway.cluster` `{name}`: an envd on another machine is not supported, so `address` has no meaning; the doors of instances are sockets of this machine: give `data`, the data directory of an envd that runs here"
            ));
        }
        // A relative path is meant from where the file is that names it.
        let own = own.map_or_else(|| data.to_owned(), |own| data.join(own));
        if let Some(other) = clusters.iter().find(|other| other.data == own) {
            reader.mistake(&format!(
                "`gateway.cluster`: `{}` and `{name}` have the same data directory, {}; each envd has its own",
                other.name,
                own.display()
            ));
        }
        clusters.push(ClusterSetting { name, data: own });
    }
    clusters
}

pub(super) fn take_pools(clusters: &[ClusterSetting], reader: &mut Reader<'_>) -> Vec<PoolSetting> {
    let mut pools: Vec<PoolSetting> = reader.tables("pool");
    check_names("pool", pools.iter().map(|pool| pool.name.as_str()), reader);
    for pool in &pools {
        if let Some(cluster) =
            pool.cluster.as_ref().filter(|name| !clusters.iter().any(|one| one.name == **name))
        {
            reader.mistake(&format!("`gateway.pool` `{}`: there is no cluster `{cluster}`", pool.name));
        }
        if pool.kinds.is_empty() {
            reader.mistake(&format!(
                "`gateway.pool` `{}`: `kinds` is empty; name some of `instance`, `job` and `debug`, or leave it out",
                pool.name
            ));
        }
    }
    let plain = reader.texts("jobs.pools");
    if !plain.is_empty() && !pools.is_empty() {
        reader.mistake(
            "`gateway.jobs.pools` does not go with `[[gateway.pool]]`; write those pools as tables too",
        );
    }
    let open = |name| PoolSetting { name, cluster: None, gpus: Vec::new(), kinds: all_kinds() };
    pools.extend(plain.into_iter().map(open));
    pools
}

/// Those of the tables, those that `jobs.shares` merely names, and `default`.
pub(super) fn take_shares(reader: &mut Reader<'_>) -> Vec<ShareSetting> {
    let mut shares: Vec<ShareSetting> = reader.tables("share");
    check_names("share", shares.iter().map(|share| share.name.as_str()), reader);
    for share in &shares {
        if share.cpus.is_some_and(|cpus| !(cpus.is_finite() && cpus >= 0.0)) {
            reader.mistake(&format!("`gateway.share` `{}`: `cpus` is no number of processors", share.name));
        }
    }
    let plain = reader.texts("jobs.shares").into_iter();
    for name in plain.chain([DEFAULT_SHARE.to_owned()]) {
        if !shares.iter().any(|share| share.name == name) {
            shares.push(ShareSetting::named(&name));
        }
    }
    shares
}

fn check_names<'a>(key: &str, names: impl Iterator<Item = &'a str>, reader: &mut Reader<'_>) {
    let mut seen = BTreeSet::new();
    for name in names {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(letter) {
            reader.mistake(&format!(
                "`gateway.{key}`: `{name}` is no name; use letters, digits, `-`, `_` and `.`, at most {NAME_MAX} of them"
            ));
        }
        if !seen.insert(name) {
            reader.mistake(&format!("`gateway.{key}`: there are two called `{name}`"));
        }
    }
}
