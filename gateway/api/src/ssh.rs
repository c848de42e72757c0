//! The SSH door, and the public keys that open it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{id::SshKeyId, name::SshKeyName};

/// The namespace of the signature that proves a key (`ssh-keygen -Y sign -n berth`).
pub const SIGNATURE_NAMESPACE: &str = "berth";

/// Where SSH listens, and how to know that it is the right one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SshDoor {
    /// The name to connect to; absent: that of the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub port: u16,
    /// The host's public key as a line of `known_hosts` has it after the name.
    #[schema(example = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA…")]
    pub host_key: String,
    /// As `ssh` shows it when it asks.
    #[schema(example = "SHA256:uNiVztksCsDhcc0u9e8BrwDKTbtMqrbcPjbHHAfC3q8")]
    pub fingerprint: String,
}

/// A public key that its user signs in with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SshKey {
    pub id: SshKeyId,
    pub name: SshKeyName,
    #[schema(example = "ssh-ed25519")]
    pub kind: String,
    pub fingerprint: String,
    pub public_key: String,
    /// Its owner has shown that they have the private half: the key alone tells who they are, so that
    /// `ssh INSTANCE@host` is enough.
    pub proved: bool,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// To within five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Timestamp>,
}

/// The body that adds a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddSshKey {
    /// Absent: the key's comment, or its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A line of `authorized_keys`.
    #[schema(example = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA… alice@laptop")]
    pub key: String,
    /// The signature of the challenge that `POST /me/ssh-keys/challenge` gave, as `ssh-keygen -Y sign -n berth` makes
    /// it. Without it the key opens only what names its user (`ssh alice+train@host`) until it has been used so once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// What to sign with a key that is to be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SshChallenge {
    /// Good for five minutes and for one key.
    pub challenge: String,
}

/// The body that asks for a new pair of keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeSshPair {
    /// What the key is to be called; checked by the gateway, so that a wrong one gets a sentence of its own.
    #[schema(example = "laptop")]
    pub name: String,
}

/// A new pair. The gateway keeps the public half alone.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewSshPair {
    pub key: SshKey,
    /// In OpenSSH's format, without a passphrase; shown this once.
    pub private_key: String,
}

impl std::fmt::Debug for NewSshPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSshPair").field("key", &self.key).finish_non_exhaustive()
    }
}
