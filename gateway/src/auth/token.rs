//! Tokens of sessions and of the API: opaque, random, known in full only to the client. The store has their hash.

use std::fmt;

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
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

    /// Returns every token that stands in the value of a header, whatever its scheme: as a word of its own, or as a part of
    /// what is written in base64, as the name and the password of `Basic` are. The parts of a JWT are no words.
    pub(crate) fn all_in(value: &[u8]) -> Vec<Self> {
        let encoded = |word: &[u8]| {
            let decoded = STANDARD_NO_PAD.decode(word).or_else(|_| URL_SAFE_NO_PAD.decode(word));
            decoded.map(|text| words(&text).filter_map(Self::from_word).collect()).unwrap_or_default()
        };
        let inside = |word| Self::from_word(word).map_or_else(|| encoded(word), |token| vec![token]);
        words(value).filter(|word| word.len() >= LETTERS).flat_map(inside).collect()
    }

    fn from_word(word: &[u8]) -> Option<Self> {
        std::str::from_utf8(word).ok().and_then(Self::from_client)
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

/// Splits where no letter of a token, of base64 or of a JWT stands.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphanumeric() && !b"-_.+/".contains(byte))
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

    #[test]
    fn tokens_are_found_wherever_they_stand_in_a_header() {
        let (session, api) = (Token::new(), Token::new_for_api());
        let found = |value: &str| -> Vec<String> {
            Token::all_in(value.as_bytes()).iter().map(|token| token.reveal().to_owned()).collect()
        };
        for token in [&session, &api] {
            let token = token.reveal();
            let basic = STANDARD_NO_PAD.encode(format!("alice:{token}"));
            for value in [
                format!("Bearer {token}"),
                format!("bearer   {token}\t"),
                format!("Bearer {token}, Basic x"),
                format!("Basic x,Bearer {token}"),
                format!("token {token}"),
                format!("Token token=\"{token}\""),
                token.to_owned(),
                format!("Basic {basic}"),
                format!("Basic {basic}=="),
                format!("Basic {}", URL_SAFE_NO_PAD.encode(format!("{token}:"))),
            ] {
                assert_eq!(found(&value), [token], "{value}");
            }
        }
        assert_eq!(Token::all_in(&[b"Bearer \xff ", api.reveal().as_bytes(), b"\xff"].concat()).len(), 1);
        let both = format!("Bearer {}, Bearer {}", session.reveal(), api.reveal());
        assert_eq!(found(&both), [session.reveal(), api.reveal()]);
        let jwt = format!("Bearer eyJh.eyJz.{}", session.reveal());
        for other in ["", "token abc", "Basic YWxpY2U6cGFzc3dvcmQ=", &jwt] {
            assert!(found(other).is_empty(), "{other}");
        }
    }
}
