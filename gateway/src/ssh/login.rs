//! What stands before the `@`: `alice+train`, `alice`, or `train` when the key tells whose it is.

use gateway_api::{InstanceId, Slug, UserName};

/// Where somebody wants to go, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Login {
    /// `alice+train`
    Instance { user: UserName, instance: String },
    /// `alice`, or an instance of whoever the key belongs to.
    Word(String),
    /// Nothing that could be meant. It is refused like everything wrong, and at the same cost.
    Nonsense,
}

impl Login {
    pub(super) fn parse(text: &str) -> Self {
        match text.split_once('+') {
            Some((user, instance)) => match user.parse() {
                Ok(user) if is_instance(instance) => Self::Instance { user, instance: instance.to_owned() },
                Ok(_) | Err(_) => Self::Nonsense,
            },
            None if text.parse::<UserName>().is_ok() || is_instance(text) => Self::Word(text.to_owned()),
            None => Self::Nonsense,
        }
    }

    /// The account that a password would have to be of. What is none is nobody's.
    pub(super) fn account(&self) -> &str {
        match self {
            Self::Instance { user, .. } => user.as_str(),
            Self::Word(word) => word,
            Self::Nonsense => "",
        }
    }

    /// The user that is named outright.
    pub(super) fn named(&self) -> Option<&UserName> {
        match self {
            Self::Instance { user, .. } => Some(user),
            Self::Word(_) | Self::Nonsense => None,
        }
    }

    /// The instance, once it is known who somebody is.
    pub(super) fn target(&self, user: &UserName) -> Option<String> {
        match self {
            Self::Instance { instance, .. } => Some(instance.clone()),
            Self::Word(word) if word == user.as_str() => None,
            Self::Word(word) => Some(word.clone()),
            Self::Nonsense => None,
        }
    }
}

fn is_instance(text: &str) -> bool {
    Slug::meant(text).is_some() || text.parse::<InstanceId>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let check = |text: &str, account: &str, target: Option<&str>| {
            let login = Login::parse(text);
            assert_eq!(login.account(), account, "{text}");
            let target = target.map(str::to_owned);
            assert_eq!(login.target(&"alice".parse().unwrap()), target, "{text}");
        };
        check("alice+train", "alice", Some("train"));
        check("alice+train-1", "alice", Some("train-1"));
        check("alice+Train_1", "alice", Some("Train_1"));
        check("alice+resnet50_imagenet_ablation_main_0", "alice", Some("resnet50_imagenet_ablation_main_0"));
        check("alice", "alice", None);
        check("train", "train", Some("train"));
        check("Train_1", "Train_1", Some("Train_1"));
        for nonsense in [
            "",
            "+",
            "alice+",
            "+train",
            "alice+../bob",
            "alice+a+b",
            "a b",
            "alice:train",
            "é",
            "-x",
            "a\0b",
        ] {
            assert_eq!(Login::parse(nonsense), Login::Nonsense, "{nonsense}");
        }
    }
}
