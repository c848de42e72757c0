//! A network for each user: a bridge of its own, with a subnet that we choose.
//!
//! Instances of one user reach each other; who else may reach whom is the [firewall](super::firewall)'s affair. A
//! network is there for as long as its user has a container, running or not: a stopped one wants it back. All names
//! are made from the cluster's and the user's, so a second network for the same user cannot be made, not even by a
//! request that a killed envd left behind: its bridge would have the same name.

use std::collections::{BTreeSet, HashMap};

use bollard::{
    models::{
        Ipam, IpamConfig, Network, NetworkConnectRequest, NetworkCreateRequest, NetworkDisconnectRequest,
    },
    query_parameters::{ListContainersOptionsBuilder, ListNetworksOptionsBuilder},
};
use ipnet::Ipv4Net;
use sha2::{Digest, Sha256};
use tracing::{info, warn};

use super::{LABEL_CLUSTER, LABEL_NETWORK, LOOK, NETWORK, engine::Engine};
use crate::{
    runtime::{Container, RuntimeError},
    subnet,
};

/// Tries to get a subnet while others take the same ones.
const TRIES: usize = 64;
/// What the bridge driver wants to be told.
const BRIDGE_NAME: &str = "com.docker.network.bridge.name";

/// The names of all that one cluster has on the network.
#[derive(Debug, Clone)]
pub(super) struct Names {
    cluster: String,
    /// Six letters for the cluster: a bridge's name has at most fifteen.
    short: String,
}

/// The networks of one cluster.
#[derive(Debug)]
pub(super) struct Networks {
    pub(super) names: Names,
    pool: Ipv4Net,
}

/// A network that is there.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) id: String,
    /// Nobody knows of it yet: it was made just now.
    pub(super) is_new: bool,
}

/// How many networks are left, and how many are gone.
#[derive(Debug, Default)]
pub(super) struct Removed {
    pub(super) left: usize,
    /// Of those left, how many the engine holds on to while nothing is in them: when containers come and go at once it
    /// may miscount them, and counts anew when it is started the next time.
    pub(super) miscounted: usize,
    pub(super) gone: usize,
}

// === impl Names ===

impl Names {
    pub(super) fn new(cluster: &str) -> Self {
        Self { cluster: cluster.to_owned(), short: letters(cluster, 6) }
    }

    pub(super) fn network(&self, user: &str) -> String {
        format!("berth-{}-{}", self.short, letters(user, 7))
    }

    pub(super) fn bridge(&self, user: &str) -> String {
        format!("bt{}{}", self.short, letters(user, 7))
    }

    /// All bridges of this cluster, in the words of iptables.
    pub(super) fn bridges(&self) -> String {
        format!("bt{}+", self.short)
    }

    pub(super) fn chain(&self) -> String {
        format!("BERTH-{}", self.short)
    }

    pub(super) fn chain_to_host(&self) -> String {
        format!("BERTH-{}-HOST", self.short)
    }
}

/// A few letters that stand for `text`.
fn letters(text: &str, count: usize) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(count).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

// === impl Networks ===

impl Networks {
    pub(super) fn new(cluster: &str, pool: Ipv4Net) -> Self {
        Self { names: Names::new(cluster), pool }
    }

    pub(super) fn pool(&self) -> Ipv4Net {
        self.pool
    }

    /// The network of a user, made if it is not there.
    pub(super) async fn ensure(&self, engine: &Engine, user: &str) -> Result<Found, RuntimeError> {
        let name = self.names.network(user);
        let mut refused = Vec::new();
        for _ in 0..TRIES {
            if let Some(id) = self.find(engine, &name, user).await? {
                return Ok(Found { id, is_new: false });
            }
            let mut taken = taken(engine).await?;
            taken.extend(&refused);
            let subnet = subnet::first_free(self.pool, &taken).ok_or_else(|| RuntimeError::Refused {
                why: format!(
                    "no addresses are left for a network in `{}`; set `network_pool` to another range",
                    self.pool
                ),
            })?;
            let body = self.body(&name, user, subnet);
            let made = engine
                .call_unless("make a network", NETWORK, &[403, 409], async |docker| {
                    docker.create_network(body).await
                })
                .await?;
            if let Some(made) = made {
                info!(network = name, %subnet, "made a network");
                return Ok(Found { id: made.id, is_new: true });
            }
            // Somebody else was faster, with the addresses or with this very network.
            refused.push(subnet);
        }
        Err(RuntimeError::Engine { why: format!("the network `{name}` could not be made in {TRIES} tries") })
    }

    fn body(&self, name: &str, user: &str, subnet: Ipv4Net) -> NetworkCreateRequest {
        let labels = [(LABEL_CLUSTER, self.names.cluster.as_str()), (LABEL_NETWORK, user)];
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let config = IpamConfig { subnet: Some(subnet.to_string()), ..IpamConfig::default() };
        NetworkCreateRequest {
            name: name.to_owned(),
            driver: Some("bridge".to_owned()),
            ipam: Some(Ipam { config: Some(vec![config]), ..Ipam::default() }),
            // Nothing of the firewall would hold for it.
            enable_ipv6: Some(false),
            options: Some([(BRIDGE_NAME.to_owned(), self.names.bridge(user))].into()),
            labels: Some(labels.map(owned).into()),
            ..NetworkCreateRequest::default()
        }
    }

    async fn find(&self, engine: &Engine, name: &str, user: &str) -> Result<Option<String>, RuntimeError> {
        let found = engine
            .call_unless("look at a network", LOOK, &[404], async |docker| {
                docker.inspect_network(name, None).await
            })
            .await?;
        let Some(found) = found else { return Ok(None) };
        let labels = found.labels.unwrap_or_default();
        let is = |label: &str, value: &str| labels.get(label).is_some_and(|found| found == value);
        if !is(LABEL_CLUSTER, &self.names.cluster) || !is(LABEL_NETWORK, user) {
            return Err(RuntimeError::Foreign { name: name.to_owned() });
        }
        Ok(found.id)
    }

    /// Gives a container the network that stands in for the one it was made with.
    pub(super) async fn attach(
        &self,
        engine: &Engine,
        container: &Container,
        network: &str,
    ) -> Result<(), RuntimeError> {
        let id = container.id.clone();
        let leave = NetworkDisconnectRequest { container: id.clone(), force: Some(true) };
        engine
            .call_unless("leave a network", NETWORK, &[403, 404, 500], async |docker| {
                docker.disconnect_network(network, leave).await
            })
            .await?;
        let join = NetworkConnectRequest { container: id, ..NetworkConnectRequest::default() };
        engine
            .call("join a network", NETWORK, async |docker| docker.connect_network(network, join).await)
            .await
    }

    /// The bridges of this cluster.
    pub(super) async fn bridges(&self, engine: &Engine) -> Result<Vec<String>, RuntimeError> {
        let networks = self.list(engine).await?;
        let users = networks.iter().filter_map(user_of);
        Ok(users.map(|user| self.names.bridge(user)).collect())
    }

    /// Removes the networks of users who have no container, or with `all` every one.
    pub(super) async fn remove_unused(&self, engine: &Engine, all: bool) -> Result<Removed, RuntimeError> {
        let networks = self.list(engine).await?;
        if networks.is_empty() {
            return Ok(Removed::default());
        }
        let wanted = if all { BTreeSet::new() } else { self.used(engine).await? };
        let mut counts = Removed::default();
        for network in &networks {
            let (Some(id), Some(user)) = (&network.id, user_of(network)) else { continue };
            if wanted.contains(user) {
                counts.left += 1;
                continue;
            }
            let removed = engine
                .call_unless("remove a network", NETWORK, &[403, 404], async |docker| {
                    docker.remove_network(id).await
                })
                .await;
            if let Ok(Some(())) = removed {
                counts.gone += 1;
                info!(network = network.name, "removed a network");
            } else {
                counts.left += 1;
                let empty = is_empty(engine, id).await?;
                counts.miscounted += usize::from(empty);
                warn!(network = network.name, empty, "a network without instances cannot be removed yet");
            }
        }
        Ok(counts)
    }

    async fn list(&self, engine: &Engine) -> Result<Vec<Network>, RuntimeError> {
        let label = format!("{LABEL_CLUSTER}={}", self.names.cluster);
        let options =
            ListNetworksOptionsBuilder::new().filters(&HashMap::from([("label", vec![label])])).build();
        engine.call("list of networks", LOOK, async |docker| docker.list_networks(Some(options)).await).await
    }

    /// The users who have containers.
    async fn used(&self, engine: &Engine) -> Result<BTreeSet<String>, RuntimeError> {
        let label = format!("{LABEL_CLUSTER}={}", self.names.cluster);
        let filters = HashMap::from([("label", vec![label])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let found = engine
            .call("list of containers", LOOK, async |docker| docker.list_containers(Some(options)).await)
            .await?;
        Ok(found.into_iter().filter_map(|one| one.labels?.remove(LABEL_NETWORK)).collect())
    }
}

/// Whether a network is there and has nothing in it.
async fn is_empty(engine: &Engine, id: &str) -> Result<bool, RuntimeError> {
    let found = engine
        .call_unless("look at a network", LOOK, &[404], async |docker| docker.inspect_network(id, None).await)
        .await?;
    Ok(found.is_some_and(|network| network.containers.is_none_or(|inside| inside.is_empty())))
}

fn user_of(network: &Network) -> Option<&str> {
    network.labels.as_ref()?.get(LABEL_NETWORK).map(String::as_str)
}

/// What no new network may overlap with.
async fn taken(engine: &Engine) -> Result<Vec<Ipv4Net>, RuntimeError> {
    let networks =
        engine.call("list of networks", LOOK, async |docker| docker.list_networks(None).await).await?;
    let configs = networks.into_iter().filter_map(|network| network.ipam?.config).flatten();
    let mut taken: Vec<_> = configs.filter_map(|config| config.subnet?.parse().ok()).collect();
    match subnet::routes() {
        Ok(routes) => taken.extend(routes),
        Err(error) => warn!(%error, "cannot read the routes of this machine"),
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_kernel_and_are_as_different_as_what_they_stand_for() {
        let one = Names::new("cls_01");
        let bridge = one.bridge("alice");
        assert_eq!(bridge.len(), 15, "the most that an interface's name can have");
        assert!(bridge.starts_with(one.bridges().trim_end_matches('+')));
        assert!(one.chain_to_host().len() <= 28, "the most that a chain's name can have");
        assert_ne!(one.bridge("alice"), one.bridge("bob"));
        assert_ne!(one.bridge("alice"), Names::new("cls_02").bridge("alice"));
    }
}
