//! Users' SSH keys: adding, proving, removing, and signing in with one.
//!
//! Since `train@host` finds the user by the key alone, a key counts for that only once its owner has shown that they
//! have the private half: by a signature over a challenge when it is added, or by a first sign-in that names the user.
//! Until then anyone may have added it, so it keeps nobody else from adding it.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use gateway_api::{
    SshKeyName, UserName,
    error::Reason,
    id::SshKeyId,
    ssh::{AddSshKey, MakeSshPair, NewSshPair, SIGNATURE_NAMESPACE, SshChallenge, SshDoor, SshKey},
};
use russh::keys::{
    Algorithm, HashAlg, PrivateKey, PublicKey,
    ssh_key::{LineEnding, SshSig, private::Ed25519Keypair, public::KeyData},
};
use sha2::{Digest as _, Sha256};

use super::App;
use crate::{
    auth::{Caller, Key, Origin, policy, token::Token},
    error::Error,
    store::{KnownKey, NewSshKey, StoreError, UserId},
};

/// How long a challenge is good for.
const CHALLENGE_LASTS: Duration = Duration::from_mins(5);
/// Challenges that are remembered, one for each user.
const CHALLENGES_MAX: usize = 10_000;
/// The longest line that can be a key: RSA with 16384 bits has 2.8 kB.
const KEY_MAX_BYTES: usize = 8 << 10;
/// Keys of one user.
const KEYS_MAX: usize = 100;
/// The least that an RSA key must have.
const RSA_MIN_BITS: u32 = 2048;

/// The challenges that were given and not used yet.
#[derive(Debug, Default)]
pub(super) struct Challenges(Mutex<HashMap<UserId, (String, Instant)>>);

impl Challenges {
    fn give(&self, user: UserId) -> String {
        let challenge = format!("berth ssh key {}", Token::new().reveal());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= CHALLENGES_MAX {
            all.retain(|_, (_, given)| given.elapsed() < CHALLENGE_LASTS);
        }
        all.insert(user, (challenge.clone(), Instant::now()));
        challenge
    }

    fn take(&self, user: UserId) -> Option<String> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&user);
        taken.filter(|(_, given)| given.elapsed() < CHALLENGE_LASTS).map(|(challenge, _)| challenge)
    }
}

impl App {
    /// Where SSH listens, and its host key.
    pub(crate) fn ssh_door(&self) -> Result<SshDoor, Error> {
        self.ssh.get().cloned().ok_or_else(|| Error::not_found("setting", "gateway.ssh"))
    }

    pub(crate) async fn ssh_keys(&self, caller: &Caller) -> Result<Vec<SshKey>, Error> {
        Ok(self.store.ssh_keys_of(caller.user.id).await?)
    }

    pub(crate) fn ssh_challenge(&self, caller: &Caller) -> Result<SshChallenge, Error> {
        policy::add_ssh_key(caller)?;
        Ok(SshChallenge { challenge: self.challenges.give(caller.user.id) })
    }

    pub(crate) async fn add_ssh_key(&self, caller: &Caller, wanted: AddSshKey) -> Result<SshKey, Error> {
        policy::add_ssh_key(caller)?;
        let key = parse(&wanted.key)?;
        let name = name_of(wanted.name, &key)?;
        let proved = match &wanted.signature {
            Some(signature) => {
                let challenge = self.challenges.take(caller.user.id);
                let challenge = challenge.ok_or_else(|| Error::unfit("signature", Reason::ChallengeOver))?;
                check_signature(&key, &challenge, signature)?;
                true
            }
            None => false,
        };
        self.keep_ssh_key(caller, &key, &name, proved).await
    }

    /// Makes a pair and keeps its public half. Whoever asked is the only one who ever has the other, so it is proved.
    pub(crate) async fn make_ssh_pair(
        &self,
        caller: &Caller,
        wanted: MakeSshPair,
    ) -> Result<NewSshPair, Error> {
        policy::add_ssh_key(caller)?;
        let name: SshKeyName = wanted.name.parse().map_err(Error::BadName)?;
        let seed = Ed25519Keypair::from_seed(&rand::random());
        let internal = |error: russh::keys::ssh_key::Error| Error::Internal(error.into());
        let pair = PrivateKey::new(seed.into(), format!("{}@berth", caller.user.name)).map_err(internal)?;
        let private_key = pair.to_openssh(LineEnding::LF).map_err(internal)?.to_string();
        let key = self.keep_ssh_key(caller, pair.public_key(), &name, true).await?;
        Ok(NewSshPair { key, private_key })
    }

    async fn keep_ssh_key(
        &self,
        caller: &Caller,
        key: &PublicKey,
        name: &SshKeyName,
        proved: bool,
    ) -> Result<SshKey, Error> {
        let keys = self.store.ssh_keys_of(caller.user.id).await?;
        if keys.len() >= KEYS_MAX {
            return Err(Error::unfit("key", Reason::KeysTooMany));
        }
        let id = SshKeyId::new();
        let public_key = PublicKey::new(key.key_data().clone(), "");
        let public_key = public_key.to_openssh().map_err(|error| Error::Internal(error.into()))?;
        let fingerprint = key.fingerprint(HashAlg::Sha256);
        let new = NewSshKey {
            id: &id,
            hash: &Sha256::digest(id.as_str()).into(),
            user: caller.user.id,
            name,
            fingerprint: fingerprint.as_bytes(),
            public_key: public_key.trim_end(),
            proved,
        };
        let line = caller.line("ssh_key.add", id.as_str()).with("fingerprint", fingerprint.to_string());
        self.store.add_ssh_key(new, &line).await.map_err(|error| match error {
            StoreError::Taken => taken(&keys, name, &fingerprint.to_string()),
            StoreError::DiskFull(_)
            | StoreError::LastAdmin
            | StoreError::UserGone
            | StoreError::ImageGone { .. }
            | StoreError::Database(_)
            | StoreError::OtherVersion
            | StoreError::Unreadable(_) => error.into(),
        })?;
        let keys = self.store.ssh_keys_of(caller.user.id).await?;
        keys.into_iter().find(|key| key.id == id).ok_or_else(|| Error::not_found("key", id.as_str()))
    }

    pub(crate) async fn remove_ssh_key(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let missing = || Error::hidden("key", id);
        let id: SshKeyId = id.parse().map_err(|_| missing())?;
        let line = caller.line("ssh_key.remove", id.as_str());
        if !self.store.remove_ssh_key(caller.user.id, &id, &line).await? {
            return Err(missing());
        }
        self.live.look();
        Ok(())
    }

    /// Whose key it is, for somebody who says to be `user`, or says nothing of the kind.
    pub(crate) async fn known_key(
        &self,
        user: Option<&UserName>,
        key: &PublicKey,
    ) -> Result<Option<KnownKey>, Error> {
        let known = self.store.known_keys(key.fingerprint(HashAlg::Sha256).as_bytes()).await?;
        Ok(known.into_iter().find(|key| user.map_or(key.proved, |user| key.user.name == *user)))
    }

    /// Signs somebody in who has signed with that key.
    pub(crate) async fn sign_in_with_key(&self, key: KnownKey, origin: Origin) -> Result<Caller, Error> {
        let line = origin
            .line(key.user.name.as_str(), "sign_in", key.user.name.as_str())
            .with("ssh_key", key.id.as_str());
        self.store.audit(&line).await?;
        self.store.note_key_use(&key).await;
        tracing::info!(user = %key.user.name, from = %origin.source, key = %key.id, "signed in");
        Ok(Caller { user: key.user, key: Key::Ssh { hash: key.hash, id: key.id }, origin })
    }
}

fn parse(line: &str) -> Result<PublicKey, Error> {
    let line = line.trim();
    if line.contains("PRIVATE KEY") {
        return Err(Error::unfit("key", Reason::KeyIsPrivate));
    }
    if line.len() > KEY_MAX_BYTES || line.contains(['\n', '\r', '\0']) {
        return Err(Error::unfit("key", Reason::KeyNotOneLine));
    }
    let key = PublicKey::from_openssh(line).map_err(|_| Error::unfit("key", Reason::KeyUnreadable))?;
    match (key.algorithm(), key.key_data()) {
        (Algorithm::Dsa, _) => Err(Error::unfit("key", Reason::KeyIsDsa)),
        (_, KeyData::Rsa(rsa)) if rsa.key_size() < RSA_MIN_BITS => {
            Err(Error::unfit("key", Reason::KeyRsaTooShort))
        }
        (
            Algorithm::Ed25519
            | Algorithm::Ecdsa { .. }
            | Algorithm::Rsa { .. }
            | Algorithm::SkEd25519
            | Algorithm::SkEcdsaSha2NistP256,
            _,
        ) => Ok(key),
        (_, _) => Err(Error::unfit("key", Reason::KeyKindUnknown)),
    }
}

fn name_of(wanted: Option<String>, key: &PublicKey) -> Result<SshKeyName, Error> {
    let comment = key.comment().as_str_lossy().trim().chars().take(32).collect::<String>();
    let or_kind = if comment.is_empty() { key.algorithm().to_string() } else { comment };
    wanted.unwrap_or(or_kind).parse().map_err(Error::BadName)
}

fn check_signature(key: &PublicKey, challenge: &str, signature: &str) -> Result<(), Error> {
    let signature =
        SshSig::from_pem(signature).map_err(|_| Error::unfit("signature", Reason::SignatureUnreadable))?;
    key.verify(SIGNATURE_NAMESPACE, challenge.as_bytes(), &signature)
        .map_err(|_| Error::unfit("signature", Reason::SignatureOfAnother))
}

/// What is in the way: a name, the same key, or somebody else's key.
fn taken(keys: &[SshKey], name: &SshKeyName, fingerprint: &str) -> Error {
    if keys.iter().any(|key| key.name == *name) {
        Error::AlreadyExists { kind: "key", name: name.to_string() }
    } else if keys.iter().any(|key| key.fingerprint == fingerprint) {
        Error::unfit("key", Reason::KeyAlreadyYours)
    } else {
        Error::unfit("key", Reason::KeyOfAnother)
    }
}
