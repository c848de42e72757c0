//! Names that people choose, and the slug that hosts, SSH and labels use.
//!
//! A name is checked once, when it becomes one of these types; after that no code asks again.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a text is not a name. `Display` is the sentence that a user reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {kind}: {rule}")]
pub struct NotAName {
    pub text: String,
    /// What it should have been, as a sentence says it.
    pub kind: &'static str,
    pub rule: &'static str,
    /// The same kind in one word, for translations.
    pub of: &'static str,
}

/// An instance's name as its owner typed it: letters, digits and underscores, at most 27.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[A-Za-z0-9_]{1,48}$", example = "train_1")]
pub struct InstanceName(String);

/// What stands for an instance in host names, SSH and labels: `[a-z0-9-]`, never two hyphens in a row, unique per user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "train-1")]
pub struct Slug(String);

/// A user's name: lower-case letters, digits, `.`, `_` and `-`, 2 to 32 of them, beginning with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[a-z0-9][a-z0-9._-]{1,31}$", example = "alice")]
pub struct UserName(String);

/// A group's name, by the rule for users' names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[a-z0-9][a-z0-9._-]{1,31}$", example = "vision")]
pub struct GroupName(String);

/// A workspace's name, by the rule for users' names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[a-z0-9][a-z0-9._-]{1,31}$", example = "paper-2026")]
pub struct WorkspaceName(String);

/// What the owner of an API token calls it: any text in one line, at most 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 64, example = "nightly backup")]
pub struct TokenName(String);

/// What a user calls an SSH key: one line of up to 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 64, example = "laptop")]
pub struct SshKeyName(String);

/// What a user calls a secret: letters, digits, `.`, `_` and `-`, at most 64, beginning with a letter or `_`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[A-Za-z_][A-Za-z0-9._-]{0,63}$", example = "HF_TOKEN")]
pub struct SecretName(String);

impl InstanceName {
    pub const MAX: usize = 27;
    /// Those of tasks are made from three names.
    const MADE_MAX: usize = Slug::MAX;

    /// The name of a task, by its slug.
    pub fn of_task(slug: &Slug) -> Self {
        Self(slug.0.replace('-', "_"))
    }

    /// The slug of this name. Different names may share one (`a_b` and `A_b`); the store refuses the second.
    pub fn slug(&self) -> Slug {
        let mut slug = String::with_capacity(self.0.len());
        for letter in self.0.chars() {
            match letter {
                '_' if slug.is_empty() || slug.ends_with('-') => {}
                '_' => slug.push('-'),
                letter => slug.push(letter.to_ascii_lowercase()),
            }
        }
        let slug = slug.trim_end_matches('-');
        // A name of underscores alone still needs something to stand for it.
        Slug(if slug.is_empty() { "x".to_owned() } else { slug.to_owned() })
    }
}

/// What a user may choose; names that were made may be longer, see [`TryFrom`].
impl FromStr for InstanceName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::within(text, Self::MAX)
    }
}

impl TryFrom<String> for InstanceName {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        Self::within(&text, Self::MADE_MAX)
    }
}

impl InstanceName {
    fn within(text: &str, most: usize) -> Result<Self, NotAName> {
        let allowed = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if allowed && !text.is_empty() && text.len() <= most {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAName {
                text: shortened(text),
                kind: "an instance name",
                rule: "use letters, digits and underscores, at most 27 of them",
                of: "instance",
            })
        }
    }
}

impl Slug {
    /// The most letters; with those of an app and a user it may be too long for a host, which then has the id.
    pub const MAX: usize = 48;

    /// The slug of a job's or a role's name, of which anything may be typed: at most `most` letters, with a few that
    /// stand for the rest where it is longer.
    fn made(name: &str, most: usize) -> String {
        let mut slug = String::with_capacity(name.len());
        for letter in name.chars() {
            match letter.to_ascii_lowercase() {
                letter if letter.is_ascii_alphanumeric() => slug.push(letter),
                _ if slug.is_empty() || slug.ends_with('-') => {}
                _ => slug.push('-'),
            }
        }
        let slug = slug.trim_end_matches('-');
        if slug.is_empty() {
            return "x".to_owned();
        }
        if slug.len() <= most {
            return slug.to_owned();
        }
        // FNV-1a: it need not be hard to forge, the store refuses a second slug that is the same.
        let mark = name
            .bytes()
            .fold(0x811c_9dc5_u32, |mark, byte| (mark ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let kept = slug.get(..most.saturating_sub(7)).unwrap_or_default().trim_end_matches('-');
        format!("{kept}-{:06x}", mark & 0x00ff_ffff)
    }

    /// The slug that somebody means by the name of an instance or a task, or by a slug.
    pub fn meant(text: &str) -> Option<Self> {
        let name = InstanceName::within(text, InstanceName::MADE_MAX);
        name.map(|name| name.slug()).or_else(|_| text.parse()).ok()
    }

    /// The same, and a task may be called `job/role/0` or `job/role` as well.
    pub fn asked_for(text: &str) -> Option<Self> {
        let Some((job, task)) = text.split_once('/') else { return Self::meant(text) };
        let (role, index) = task.rsplit_once('/').unwrap_or((task, "0"));
        Some(Self::of_task(&Self::of_job(job), role, index.parse().ok()?))
    }

    /// The slug of a job.
    pub fn of_job(name: &str) -> Self {
        Self(Self::made(name, InstanceName::MAX))
    }

    /// The slug of a task: its job's, its role's and its number.
    pub fn of_task(job: &Self, role: &str, index: u32) -> Self {
        Self(format!("{}-{}-{index}", job.0, Self::made(role, 13)))
    }
}

impl FromStr for Slug {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed =
            text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        let hyphens = text.starts_with('-') || text.ends_with('-') || text.contains("--");
        if allowed && !hyphens && !text.is_empty() && text.len() <= Self::MAX {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAName {
                text: shortened(text),
                kind: "a slug",
                rule: "use lower-case letters, digits and single hyphens, at most 48 of them",
                of: "slug",
            })
        }
    }
}

impl FromStr for UserName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        lower_case(text, "a user name", "user").map(Self)
    }
}

impl FromStr for GroupName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        lower_case(text, "a group name", "group").map(Self)
    }
}

impl FromStr for WorkspaceName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        lower_case(text, "a workspace name", "workspace").map(Self)
    }
}

impl FromStr for TokenName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        one_line(text, "a token name", "token").map(Self)
    }
}

impl FromStr for SshKeyName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        one_line(text, "the name of a key", "key").map(Self)
    }
}

/// It is the name of a file and, where it has neither `.` nor `-`, of a variable.
impl FromStr for SecretName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let rest = |byte: u8| first(byte) || byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
        let bytes = text.as_bytes();
        if (1..=64).contains(&bytes.len()) && first(bytes[0]) && bytes.iter().all(|&byte| rest(byte)) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAName {
                text: shortened(text),
                kind: "the name of a secret",
                rule: "use 1 to 64 letters, digits, `.`, `_` or `-`, beginning with a letter or `_`",
                of: "secret",
            })
        }
    }
}

/// The rule for what only its owner reads.
fn one_line(text: &str, kind: &'static str, of: &'static str) -> Result<String, NotAName> {
    let text = text.trim();
    if (1..=64).contains(&text.len()) && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err(NotAName { text: shortened(text), kind, rule: "use one line of 1 to 64 bytes", of })
    }
}

/// The rule for users, groups and workspaces: safe in a path, a host name and a shell, and alike in every case.
fn lower_case(text: &str, kind: &'static str, of: &'static str) -> Result<String, NotAName> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let rest = |byte: u8| plain(byte) || matches!(byte, b'.' | b'_' | b'-');
    let bytes = text.as_bytes();
    if (2..=32).contains(&bytes.len()) && plain(bytes[0]) && bytes.iter().all(|&byte| rest(byte)) {
        Ok(text.to_owned())
    } else {
        Err(NotAName {
            text: shortened(text),
            kind,
            rule: "use 2 to 32 lower-case letters, digits, `.`, `_` or `-`, beginning with a letter or digit",
            of,
        })
    }
}

/// What of a rejected text may be repeated to its sender: a bounded piece without control characters.
fn shortened(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(40).collect()
}

macro_rules! text_type {
    ($($type:ident),*) => {$(
        impl $type {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0
            }
        }
    )*};
}

text_type!(InstanceName, Slug, UserName, GroupName, WorkspaceName, TokenName, SshKeyName, SecretName);

macro_rules! from_text {
    ($($type:ident),*) => {$(
        impl TryFrom<String> for $type {
            type Error = NotAName;

            fn try_from(text: String) -> Result<Self, NotAName> {
                text.parse()
            }
        }
    )*};
}

from_text!(Slug, UserName, GroupName, WorkspaceName, TokenName, SshKeyName, SecretName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_slugs() {
        for (name, slug) in
            [("train_1", "train-1"), ("A__b", "a-b"), ("_x_", "x"), ("___", "x"), ("Ab9", "ab9")]
        {
            let made = name.parse::<InstanceName>().unwrap().slug();
            assert_eq!(made.as_str(), slug);
            assert_eq!(made.as_str().parse::<Slug>(), Ok(made));
        }
    }

    #[test]
    fn jobs_and_tasks_have_slugs_whatever_their_names() {
        for (name, slug) in
            [("train", "train"), ("pytorch-imagenet.v2~a", "pytorch-imagenet-v2-a"), ("--", "x")]
        {
            assert_eq!(Slug::of_job(name).as_str(), slug);
        }
        let long = [Slug::of_job(&"a".repeat(255)), Slug::of_job(&"a".repeat(254))];
        assert!(long.iter().all(|slug| slug.as_str().len() <= InstanceName::MAX));
        assert_ne!(long[0], long[1]);
        let task = Slug::of_task(&long[0], "a_role_with_a_very_long_name", 99_999);
        assert_eq!(task.as_str().parse(), Ok(task.clone()));
        assert!(InstanceName::try_from(InstanceName::of_task(&task).to_string()).is_ok());
        assert_eq!(Slug::meant(InstanceName::of_task(&task).as_str()), Some(task.clone()));
        assert_eq!(Slug::meant(task.as_str()), Some(task));
        assert_eq!(Slug::of_task(&Slug::of_job("t"), "ps.1", 0).as_str(), "t-ps-1-0");
        for (asked, slug) in [
            ("t/ps.1/3", Some("t-ps-1-3")),
            ("t/ps.1", Some("t-ps-1-0")),
            ("T_ps_0", Some("t-ps-0")),
            ("t/ps/x", None),
        ] {
            assert_eq!(Slug::asked_for(asked).as_ref().map(Slug::as_str), slug, "{asked}");
        }
    }

    #[test]
    fn what_is_not_a_name_says_the_rule() {
        for wrong in ["", "a-b", "名字", "a b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a/../b", "a\0b"] {
            let error = wrong.parse::<InstanceName>().unwrap_err();
            assert!(error.to_string().contains("at most 27"), "{error}");
        }
    }

    #[test]
    fn user_names_are_lower_case_and_never_hold_a_plus() {
        for right in ["admin", "a1", "li.lei", "w-ang_2"] {
            assert!(right.parse::<UserName>().is_ok(), "{right}");
        }
        for wrong in ["a", "Alice", "a+b", ".a", "-a", "a:b", "", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
            assert!(wrong.parse::<UserName>().is_err(), "{wrong}");
        }
    }
}
