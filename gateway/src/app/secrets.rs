//! Secrets of users and of the site: set, listed without their values, removed, and opened where they are used.

use std::collections::{BTreeMap, BTreeSet};

use envd_api::agent::Begin;
use gateway_api::{
    CreateInstance, SecretName,
    error::Reason,
    secret::{SECRET_MAX_BYTES, SECRETS_MAX, Secret, SecretRegistry, SetSecret, USED_MAX, UseSecret},
};
use jobfile::{JobSpec, spec::Command};

use super::App;
use crate::{
    auth::{Caller, policy, vault::VaultError},
    error::{Error, chain},
    store::{InstanceRow, NewSecret, SealedSecret, StoreError, UserId},
};

/// Whose secrets a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeper {
    Oneself,
    Site,
}

impl Keeper {
    /// How an act is called in the audit log.
    fn word(self, own: &'static str, of_site: &'static str) -> &'static str {
        match self {
            Self::Oneself => own,
            Self::Site => of_site,
        }
    }
}

/// Docker Hub in references of images, and what else it is called.
pub(super) const HUB: &str = "docker.io";
const HUB_TOO: [&str; 3] = ["index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"];
const USER_MAX_BYTES: usize = 256;
const HOST_MAX_BYTES: usize = 255;

impl App {
    pub(crate) async fn secrets(&self, caller: &Caller, keeper: Keeper) -> Result<Vec<Secret>, Error> {
        let owner = owner(caller, keeper)?;
        let secrets = self.store.secrets_of(owner).await?;
        Ok(secrets.into_iter().map(|sealed| sealed.secret).collect())
    }

    pub(crate) async fn set_secret(
        &self,
        caller: &Caller,
        keeper: Keeper,
        name: &str,
        wanted: SetSecret,
    ) -> Result<Secret, Error> {
        let owner = owner(caller, keeper)?;
        let name: SecretName = name.parse().map_err(Error::BadName)?;
        check_value(&wanted.value)?;
        let registry = wanted.registry.as_ref().map(registry).transpose()?;
        if owner.is_none() && registry.is_none() {
            return Err(Error::unfit("registry", Reason::SiteSecretNeedsRegistry));
        }
        let known = self.store.secrets_of(owner).await?;
        if known.len() >= SECRETS_MAX && known.iter().all(|sealed| sealed.secret.name != name) {
            return Err(Error::unfit("name", Reason::SecretsTooMany));
        }
        let purpose = purpose(owner, &name, registry.as_ref());
        let sealed =
            self.vault.seal(&purpose, &wanted.value).map_err(|error| Error::Internal(error.into()))?;
        let mut line = caller.line(keeper.word("secret.set", "site_secret.set"), name.as_str());
        if let Some(registry) = &registry {
            line = line.with("registry", registry.host.as_str());
        }
        let new = NewSecret { owner, name: &name, registry: registry.as_ref(), sealed: &sealed };
        let done = self.store.set_secret(new, &line).await;
        done.map_err(|error| match (&error, &registry) {
            (StoreError::Taken, Some(registry)) => {
                Error::AlreadyExists { kind: "login", name: registry.host.clone() }
            }
            _ => error.into(),
        })?;
        let known = self.store.secrets_of(owner).await?;
        let kept = known.into_iter().map(|sealed| sealed.secret).find(|secret| secret.name == name);
        kept.ok_or_else(|| Error::not_found("secret", name.as_str()))
    }

    pub(crate) async fn remove_secret(
        &self,
        caller: &Caller,
        keeper: Keeper,
        name: &str,
    ) -> Result<(), Error> {
        let owner = owner(caller, keeper)?;
        let missing = || Error::not_found("secret", name);
        let name: SecretName = name.parse().map_err(|_| missing())?;
        let line = caller.line(keeper.word("secret.remove", "site_secret.remove"), name.as_str());
        if self.store.remove_secret(owner, &name, &line).await? { Ok(()) } else { Err(missing()) }
    }

    /// The secrets that an instance is to use, each with what it is used as.
    pub(super) async fn used_secrets(
        &self,
        caller: &Caller,
        wanted: &CreateInstance,
    ) -> Result<Vec<UseSecret>, Error> {
        if wanted.secrets.len() > USED_MAX {
            return Err(Error::unfit("secrets", Reason::TooManySecretsUsed));
        }
        let mut used = Vec::with_capacity(wanted.secrets.len());
        for secret in &wanted.secrets {
            let mut secret = secret.clone();
            if secret.env.is_none() && !secret.file {
                secret.env = Some(secret.name.clone());
            }
            if secret.env.as_deref().is_some_and(|name| !is_variable(name)) {
                return Err(Error::unfit("secrets", Reason::NotAVariable));
            }
            used.push(secret);
        }
        self.check_used(caller.user.id, &used).await?;
        Ok(used)
    }

    /// That all secrets are there which an instance or a job uses.
    pub(super) async fn check_used(&self, user: UserId, secrets: &[UseSecret]) -> Result<(), Error> {
        if secrets.is_empty() {
            return Ok(());
        }
        let known = self.store.secrets_of(Some(user)).await?;
        for wanted in secrets {
            let found = known.iter().find(|sealed| sealed.secret.name.as_str() == wanted.name);
            match found.map(|sealed| &sealed.secret.registry) {
                Some(None) => {}
                Some(Some(_)) => return Err(Error::unfit("secrets", Reason::SecretIsLogin)),
                None => {
                    let values = known.iter().filter(|sealed| sealed.secret.registry.is_none());
                    let names: Vec<_> = values.map(|sealed| format!("`{}`", sealed.secret.name)).collect();
                    let (kind, name) = ("secret", wanted.name.chars().take(64).collect());
                    return Err(Error::NotHere { kind, name, known: names.join(", ") });
                }
            }
        }
        Ok(())
    }

    /// What an instance begins with: the values of its secrets, as variables and as files.
    pub(crate) async fn secrets_for(&self, row: &InstanceRow) -> Result<Begin, StoreError> {
        let values = self.values_of(row.user_id).await?;
        let (mut env, mut files) = (BTreeMap::new(), BTreeMap::new());
        for UseSecret { name, env: variable, file } in &row.spec.secrets {
            let Some(value) = values.get(name) else {
                tracing::warn!(instance = %row.id, secret = name, "a secret is not there any more");
                continue;
            };
            if let Some(variable) = variable {
                env.insert(variable.clone(), value.clone());
            }
            if *file {
                files.insert(name.clone(), value.clone());
            }
        }
        Ok(Begin { env, command: Vec::new(), files, again: None })
    }

    /// A user's secrets with their values, logins apart.
    pub(super) async fn values_of(&self, user: UserId) -> Result<BTreeMap<String, String>, StoreError> {
        let mut values = BTreeMap::new();
        for sealed in self.store.secrets_of(Some(user)).await? {
            if sealed.secret.registry.is_some() {
                continue;
            }
            match self.unseal(&sealed) {
                Ok(value) => {
                    values.insert(sealed.secret.name.to_string(), value);
                }
                Err(error) => {
                    tracing::error!(secret = %sealed.secret.name, error = chain(&error), "it is not used");
                }
            }
        }
        Ok(values)
    }

    /// That a job's file, or its user's account, has all secrets that the job names.
    pub(super) async fn check_job_secrets(&self, caller: &Caller, spec: &JobSpec) -> Result<(), Error> {
        let commands = spec.roles.iter().map(|role| match &role.command {
            Command::None => String::new(),
            Command::Shell(lines) => lines.clone(),
            Command::Program(words) => words.join("\n"),
        });
        let texts: Vec<String> = commands.chain(spec.env.values().cloned()).collect();
        let named: BTreeSet<String> = texts.iter().flat_map(|text| jobfile::named_secrets(text)).collect();
        let missing = named.into_iter().filter(|name| !spec.secrets.contains_key(name));
        let used: Vec<_> = missing.map(|name| UseSecret { name, env: None, file: false }).collect();
        self.check_used(caller.user.id, &used).await
    }

    /// The value of a secret.
    pub(crate) fn unseal(&self, sealed: &SealedSecret) -> Result<String, VaultError> {
        let SealedSecret { owner, secret, sealed } = sealed;
        self.vault.unseal(&purpose(*owner, &secret.name, secret.registry.as_ref()), sealed)
    }
}

fn owner(caller: &Caller, keeper: Keeper) -> Result<Option<UserId>, Error> {
    match keeper {
        Keeper::Oneself => Ok(Some(caller.user.id)),
        Keeper::Site => policy::administer(caller).map(|()| None),
    }
}

fn is_variable(name: &str) -> bool {
    let first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    name.starts_with(first) && name.chars().all(|letter| first(letter) || letter.is_ascii_digit())
}

/// What a value is sealed for.
fn purpose(owner: Option<UserId>, name: &SecretName, registry: Option<&SecretRegistry>) -> String {
    let owner = owner.map_or_else(|| "site".to_owned(), |owner| owner.to_string());
    let (host, user) = registry.map_or(("", ""), |registry| (&registry.host, &registry.user));
    // None of the first three holds a space.
    format!("{owner} {name} {host} {user}")
}

fn check_value(value: &str) -> Result<(), Error> {
    let unfit = |reason| Err(Error::unfit("value", reason));
    let is_text = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\r' | '\t');
    match value.len() {
        0 => unfit(Reason::SecretEmpty),
        length if length > SECRET_MAX_BYTES => unfit(Reason::SecretTooLong),
        _ if !value.chars().all(is_text) => unfit(Reason::SecretHasControl),
        _ => Ok(()),
    }
}

/// The registry as references name it.
fn registry(given: &SecretRegistry) -> Result<SecretRegistry, Error> {
    let host =
        registry_host(&given.host).ok_or_else(|| Error::unfit("registry/host", Reason::NotARegistry))?;
    let user = given.user.trim();
    let is_fine = (1..=USER_MAX_BYTES).contains(&user.len());
    if !is_fine || user.chars().any(|letter| letter.is_control() || letter == ':') {
        return Err(Error::unfit("registry/user", Reason::NotARegistryUser));
    }
    Ok(SecretRegistry { host, user: user.to_owned() })
}

/// `https://Registry.example.org/v2/` is `registry.example.org`.
pub(super) fn registry_host(given: &str) -> Option<String> {
    let given = given.trim();
    let rest = given.strip_prefix("https://").or_else(|| given.strip_prefix("http://")).unwrap_or(given);
    let host = rest.split('/').next().unwrap_or_default().to_ascii_lowercase();
    if HUB_TOO.contains(&host.as_str()) {
        return Some(HUB.to_owned());
    }
    let (name, port) = host.rsplit_once(':').map_or((host.as_str(), None), |(name, port)| (name, Some(port)));
    let is_name = !name.is_empty()
        && host.len() <= HOST_MAX_BYTES
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        && !name.starts_with(['.', '-']);
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    (is_name && is_port).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_what_references_call_it() {
        for (given, host) in [
            ("registry.example.org:5000", "registry.example.org:5000"),
            (" https://Registry.Example.org/v2/ ", "registry.example.org"),
            ("https://index.docker.io/v1/", "docker.io"),
            ("docker.io", "docker.io"),
            ("10.0.0.7", "10.0.0.7"),
        ] {
            assert_eq!(registry_host(given).as_deref(), Some(host), "{given}");
        }
        for wrong in ["", "a b", "host:", "host:port", "host:0", "@host", ".host"] {
            assert_eq!(registry_host(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_are_text_of_some_length() {
        assert!(check_value("-----BEGIN KEY-----\r\n\tabc\n").is_ok());
        for wrong in ["", "a\0b", "a\u{1b}b", &"x".repeat(SECRET_MAX_BYTES + 1)] {
            assert!(check_value(wrong).is_err());
        }
    }
}
