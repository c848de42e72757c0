//! Ids: made once by the gateway, never reused, ordered by time of birth, safe as a file name and in a label.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The id of an instance: `ins_` and 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "ins_0190f2c3a1b27cc09d3e5f60718293a4")]
pub struct InstanceId(String);

/// What is not an instance id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an instance id")]
pub struct NotAnInstanceId(String);

impl InstanceId {
    const PREFIX: &str = "ins_";

    /// A new id, later than all ids made before it.
    pub fn new() -> Self {
        Self(format!("{}{}", Self::PREFIX, uuid::Uuid::now_v7().simple()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for InstanceId {
    fn default() -> Self {
        Self::new()
    }
}

impl FromStr for InstanceId {
    type Err = NotAnInstanceId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(Self::PREFIX).ok_or_else(|| NotAnInstanceId(text.to_owned()))?;
        let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() == 32 && digits.bytes().all(lower_hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAnInstanceId(text.to_owned()))
        }
    }
}

impl TryFrom<String> for InstanceId {
    type Error = NotAnInstanceId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<InstanceId> for String {
    fn from(id: InstanceId) -> Self {
        id.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_nothing_else_does() {
        let id = InstanceId::new();
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        for wrong in [
            "",
            "ins_",
            "ins_../../etc/passwd",
            "INS_0190f2c3a1b27cc09d3e5f60718293a4",
            "0190f2c3a1b27cc09d3e5f60718293a4",
        ] {
            assert!(wrong.parse::<InstanceId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ids_are_ordered_by_birth() {
        let ids: Vec<_> = std::iter::repeat_with(InstanceId::new).take(100).collect();
        assert!(ids.is_sorted());
    }
}
