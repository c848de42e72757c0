//! Tokens of sessions and of the API: opaque, random, known in full only to the client. The store has their hash.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gateway_api::token::TOKEN_PREFIX;
use sha2::{Digest as _, Sha256};

/// What the store keeps of a token.
pub(crate) type TokenHash = [u8; 32];

/// The letters of 256 bits.
const LETTERS: usize = 43;

/// A token on its way to or from a client.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// The token of a session: 256 random bits.
    pub(crate) fn new() -> Self {
        Self(URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
    }

    /// An API token: as random, and recognisable when it turns up where it should not.
    pub(crate) fn new_for_api() -> Self {
        Self(format!("{TOKEN_PREFIX}{}", Self::new().0))
    }

    /// What a client sent, if it can be a token at all.
    pub(crate) fn from_client(text: &str) -> Option<Self> {
        let secret = text.strip_prefix(TOKEN_PREFIX).unwrap_or(text);
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (secret.len() == LETTERS && secret.bytes().all(letter)).then(|| Self(text.to_owned()))
    }

    pub(crate) fn is_for_api(&self) -> bool {
        self.0.len() > LETTERS
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// What the store keeps.
    pub(crate) fn hash(&self) -> TokenHash {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<secret>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_read_back_and_say_what_they_are() {
        let (session, api) = (Token::new(), Token::new_for_api());
        assert!(!session.is_for_api() && api.is_for_api());
        assert!(api.reveal().starts_with("berth_"));
        for token in [session, api] {
            let back = Token::from_client(token.reveal()).unwrap();
            assert_eq!((back.hash(), back.is_for_api()), (token.hash(), token.is_for_api()));
        }
        for wrong in ["", "berth_", &"x".repeat(42), &"x".repeat(44), &format!("{} ", "x".repeat(42))] {
            assert!(Token::from_client(wrong).is_none(), "{wrong}");
        }
    }
}
