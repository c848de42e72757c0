//! Ids: made once by the gateway, never reused, ordered by time of birth, safe as a file name and in a label.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The id of an instance: `ins_` and 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "ins_0190f2c3a1b27cc09d3e5f60718293a4")]
pub struct InstanceId(String);

/// The id of an API token: `tok_` and 32 hexadecimal digits. Not a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "tok_0190f2c3a1b27cc09d3e5f60718293a4")]
pub struct TokenId(String);

/// The id of an SSH key: `key_` and 32 hexadecimal digits. Not a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "key_0190f2c3a1b27cc09d3e5f60718293a4")]
pub struct SshKeyId(String);

/// The id of a saved image: `img_` and 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "img_0190f2c3a1b27cc09d3e5f60718293a4")]
pub struct ImageId(String);

/// The id of a job: `job_` and 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "job_0190f2c3a1b27cc09d3e5f60718293a4")]
pub struct JobId(String);

/// What is not an instance id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an instance id")]
pub struct NotAnInstanceId(String);

/// What is not the id of a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a token id")]
pub struct NotATokenId(String);

/// What is not the id of an SSH key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a key id")]
pub struct NotAnSshKeyId(String);

/// What is not the id of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an image id")]
pub struct NotAnImageId(String);

/// What is not the id of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a job id")]
pub struct NotAJobId(String);

macro_rules! id_type {
    ($type:ident, $wrong:ident, $prefix:literal) => {
        impl $type {
            const PREFIX: &str = $prefix;

            /// A new id, later than all ids made before it.
            pub fn new() -> Self {
                Self(format!("{}{}", Self::PREFIX, uuid::Uuid::now_v7().simple()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Default for $type {
            fn default() -> Self {
                Self::new()
            }
        }

        impl FromStr for $type {
            type Err = $wrong;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let digits = text.strip_prefix(Self::PREFIX).ok_or_else(|| $wrong(text.to_owned()))?;
                let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
                if digits.len() == 32 && digits.bytes().all(lower_hex) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err($wrong(text.to_owned()))
                }
            }
        }

        impl TryFrom<String> for $type {
            type Error = $wrong;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(id: $type) -> Self {
                id.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }
    };
}

id_type!(InstanceId, NotAnInstanceId, "ins_");
id_type!(TokenId, NotATokenId, "tok_");
id_type!(SshKeyId, NotAnSshKeyId, "key_");
id_type!(ImageId, NotAnImageId, "img_");
id_type!(JobId, NotAJobId, "job_");

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
