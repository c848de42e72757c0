//! Session tokens: opaque, random, known in full only to the client. The store has their hash.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// A token on its way to or from a client.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// 256 random bits.
    pub(crate) fn new() -> Self {
        Self(URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
    }

    /// What a client sent, if it can be a token at all.
    pub(crate) fn from_client(text: &str) -> Option<Self> {
        (text.len() == 43).then(|| Self(text.to_owned()))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// What the store keeps.
    pub(crate) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<secret>")
    }
}
