//! Whoever asks for something: the user, the key that they showed, and where the request came from.

use std::net::IpAddr;

use gateway_api::{
    audit::AuditResult,
    id::{SshKeyId, TokenId},
    token::Scope,
};

use super::token::TokenHash;
use crate::store::{Line, User};

/// A signed-in caller of one request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) user: User,
    pub(crate) key: Key,
    pub(crate) origin: Origin,
}

/// Where a request came from, whoever sent it.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) source: IpAddr,
    pub(crate) request_id: String,
}

impl Origin {
    /// The line for the audit log about something that `actor` does or tries.
    pub(crate) fn line(&self, actor: &str, act: &'static str, object: impl Into<String>) -> Line {
        Line {
            actor: actor.to_owned(),
            source: Some(self.source),
            act,
            object: object.into(),
            result: AuditResult::Done,
            request_id: self.request_id.clone(),
            details: Vec::new(),
        }
    }
}

/// What a caller showed.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    /// Someone who gave their password.
    Session {
        hash: TokenHash,
    },
    Token {
        hash: TokenHash,
        id: TokenId,
        scope: Scope,
    },
    /// Someone who signed with the private half, over SSH.
    Ssh {
        hash: TokenHash,
        id: SshKeyId,
    },
}

impl Caller {
    /// The line for the audit log about something that this caller does.
    pub(crate) fn line(&self, act: &'static str, object: impl Into<String>) -> Line {
        let line = self.origin.line(self.user.name.as_str(), act, object);
        match &self.key {
            Key::Session { .. } => line,
            Key::Token { id, .. } => line.with("token", id.as_str()),
            Key::Ssh { id, .. } => line.with("ssh_key", id.as_str()),
        }
    }

    pub(crate) fn key_hash(&self) -> &TokenHash {
        match &self.key {
            Key::Session { hash } | Key::Token { hash, .. } | Key::Ssh { hash, .. } => hash,
        }
    }

    /// Whether the key opens reading only.
    pub(crate) fn reads_only(&self) -> bool {
        matches!(self.key, Key::Token { scope: Scope::Read, .. })
    }
}
