//! The one shape of every error that leaves the gateway.
//!
//! Clients branch and translate by [`Code`] and `params`, never by the text. `message` is what happened and why, in
//! English; `hint` is what to do next.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::job::JobNote;

/// The media type of a [`Problem`].
pub const PROBLEM_JSON: &str = "application/problem+json";

/// What kind of error it is. Never renamed once released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    Unauthenticated,
    BadCredentials,
    TooManyAttempts,
    /// So many connections of one kind are open that there can be no more.
    TooManyOpen,
    /// The password was given by somebody else; until it is changed nothing else works.
    PasswordChangeRequired,
    Forbidden,
    NotFound,
    BadName,
    NameTaken,
    /// A user, group, workspace or token of that name is there already.
    AlreadyExists,
    /// The name belongs to a user who was removed and can be brought back.
    UserRemoved,
    /// Without this user nobody could administer the site.
    LastAdmin,
    /// Something else still needs it.
    InUse,
    BadImage,
    ImageNotFound,
    /// The registry does not give the image to this user.
    RegistryDenied,
    /// The registry cannot be asked.
    RegistryUnreachable,
    /// The site takes no images from this registry.
    RegistryNotAllowed,
    BadValue,
    TooLarge,
    /// The file that was submitted has mistakes; [`Problem::notes`] names each.
    BadJobFile,
    /// It is too much for one machine, and there is one.
    NeedsMoreMachines,
    /// It is more than the user may hold at a time.
    OverQuota,
    /// The model of graphics processor, or the pool, is not there.
    NotHere,
    /// The pool is for other kinds of work.
    PoolTakesOthers,
    /// The site lets users give no such priority.
    PriorityTooHigh,
    WeakPassword,
    WrongState,
    BadBody,
    /// The body has a field that the call does not take.
    UnknownField,
    BodyTooLarge,
    CrossSite,
    ClusterUnreachable,
    EngineUnreachable,
    AgentUnreachable,
    /// The site has no address for the pages of instances.
    AppsUnavailable,
    DiskFull,
    /// The site has no registry to save images in.
    NoRegistry,
    /// The instance is being saved already.
    BeingSaved,
    /// The instance's files cannot be looked at now.
    CannotSave,
    /// The user's images would take more room than they may.
    ImageQuota,
    Internal,
    /// A code that this client does not know, from a newer gateway.
    #[serde(other)]
    Unknown,
}

/// Why a value cannot be used: the parameter `reason` of [`Code::BadValue`], [`Code::BadImage`],
/// [`Code::ImageNotFound`] and [`Code::WeakPassword`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    NotANumber,
    NotAWholeNumber,
    NotText,
    NotYesOrNo,
    NotAList,
    NotAnObject,
    Negative,
    CpusTooFew,
    MemoryTooSmall,
    Zero,
    MoreThanMemory,
    TooManyVariables,
    VariablesTooLong,
    VariableNameEmpty,
    VariableNameHasEquals,
    VariableNameHasNewline,
    VariableNameHasNul,
    VariableNameHasControl,
    VariableValueHasNul,
    CommandFirstWordEmpty,
    CommandHasNul,
    CommandTooLong,
    DaysOutOfRange,
    TimeLimitTooLong,
    LimitOutOfRange,
    NothingToChange,
    NoSuchGroup,
    TextMissing,
    TextTooLong,
    EndsBeforeItStarts,
    PriorityOutOfRange,
    OnlyForTasks,
    SiteNameTooLong,
    ImageEmpty,
    ImageIsAnId,
    ImageTooLong,
    ImageNotLowerCase,
    ImageTagUnfit,
    ImageDigestUnfit,
    ImageUnreadable,
    ImageNameUnfit,
    ImageTagNotAllowed,
    ImageNotOnThisMachine,
    ImageBeingPrepared,
    ImageNotSavedForYou,
    ImageBeingSaved,
    ImageNotFailed,
    ImageNotWhole,
    ImageNotSaved,
    PasswordTooShort,
    PasswordTooLong,
    PasswordUnchanged,
    SecretEmpty,
    SecretTooLong,
    SecretHasControl,
    SecretsTooMany,
    NotARegistry,
    NotARegistryUser,
    SiteSecretNeedsRegistry,
    TooManySecretsUsed,
    NotAVariable,
    SecretIsLogin,
    AppNotStarted,
    PortOutOfRange,
    NothingListens,
    PathTooLong,
    PathNeedsOneSlash,
    PathNeedsEscapes,
    NotAPath,
    FolderNotAbsolute,
    FolderTooLong,
    FolderHasControl,
    PackagesUnknown,
    MessageTooLong,
    ExcludeTooMany,
    ExcludeNotAbsolute,
    TerminalNameUnfit,
    ExecTooLong,
    KeyIsPrivate,
    KeyNotOneLine,
    KeyUnreadable,
    KeyIsDsa,
    KeyRsaTooShort,
    KeyKindUnknown,
    KeyAlreadyYours,
    KeyOfAnother,
    SignatureUnreadable,
    SignatureOfAnother,
    ChallengeOver,
    KeysTooMany,
    /// A reason that this client does not know, from a newer gateway.
    #[serde(other)]
    Unknown,
}

impl Reason {
    pub const ALL: [Self; 90] = [
        Self::NotANumber,
        Self::NotAWholeNumber,
        Self::NotText,
        Self::NotYesOrNo,
        Self::NotAList,
        Self::NotAnObject,
        Self::Negative,
        Self::CpusTooFew,
        Self::MemoryTooSmall,
        Self::Zero,
        Self::MoreThanMemory,
        Self::TooManyVariables,
        Self::VariablesTooLong,
        Self::VariableNameEmpty,
        Self::VariableNameHasEquals,
        Self::VariableNameHasNewline,
        Self::VariableNameHasNul,
        Self::VariableNameHasControl,
        Self::VariableValueHasNul,
        Self::CommandFirstWordEmpty,
        Self::CommandHasNul,
        Self::CommandTooLong,
        Self::DaysOutOfRange,
        Self::TimeLimitTooLong,
        Self::LimitOutOfRange,
        Self::NothingToChange,
        Self::NoSuchGroup,
        Self::TextMissing,
        Self::TextTooLong,
        Self::EndsBeforeItStarts,
        Self::PriorityOutOfRange,
        Self::OnlyForTasks,
        Self::SiteNameTooLong,
        Self::ImageEmpty,
        Self::ImageIsAnId,
        Self::ImageTooLong,
        Self::ImageNotLowerCase,
        Self::ImageTagUnfit,
        Self::ImageDigestUnfit,
        Self::ImageUnreadable,
        Self::ImageNameUnfit,
        Self::ImageTagNotAllowed,
        Self::ImageNotOnThisMachine,
        Self::ImageBeingPrepared,
        Self::ImageNotSavedForYou,
        Self::ImageBeingSaved,
        Self::ImageNotFailed,
        Self::ImageNotWhole,
        Self::ImageNotSaved,
        Self::PasswordTooShort,
        Self::PasswordTooLong,
        Self::PasswordUnchanged,
        Self::SecretEmpty,
        Self::SecretTooLong,
        Self::SecretHasControl,
        Self::SecretsTooMany,
        Self::NotARegistry,
        Self::NotARegistryUser,
        Self::SiteSecretNeedsRegistry,
        Self::TooManySecretsUsed,
        Self::NotAVariable,
        Self::SecretIsLogin,
        Self::AppNotStarted,
        Self::PortOutOfRange,
        Self::NothingListens,
        Self::PathTooLong,
        Self::PathNeedsOneSlash,
        Self::PathNeedsEscapes,
        Self::NotAPath,
        Self::FolderNotAbsolute,
        Self::FolderTooLong,
        Self::FolderHasControl,
        Self::PackagesUnknown,
        Self::MessageTooLong,
        Self::ExcludeTooMany,
        Self::ExcludeNotAbsolute,
        Self::TerminalNameUnfit,
        Self::ExecTooLong,
        Self::KeyIsPrivate,
        Self::KeyNotOneLine,
        Self::KeyUnreadable,
        Self::KeyIsDsa,
        Self::KeyRsaTooShort,
        Self::KeyKindUnknown,
        Self::KeyAlreadyYours,
        Self::KeyOfAnother,
        Self::SignatureUnreadable,
        Self::SignatureOfAnother,
        Self::ChallengeOver,
        Self::KeysTooMany,
    ];

    /// The word as it stands in JSON.
    pub fn word(self) -> String {
        serde_json::to_value(self).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// The sentence in English.
    #[expect(clippy::too_many_lines, reason = "one for each")]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::NotANumber => "it must be a number",
            Self::NotAWholeNumber => "it must be a whole number",
            Self::NotText => "it must be a text",
            Self::NotYesOrNo => "it must be `true` or `false`",
            Self::NotAList => "it must be a list",
            Self::NotAnObject => "it must be an object with named fields",
            Self::Negative => "it must not be negative",
            Self::CpusTooFew => "it must be at least 0.01",
            Self::MemoryTooSmall => "it must be at least 64 MiB",
            Self::Zero => "it must be more than 0",
            Self::MoreThanMemory => "it must not be more than the instance's memory",
            Self::TooManyVariables => "there are more than 256 variables",
            Self::VariablesTooLong => "the variables are longer than 64 KiB together",
            Self::VariableNameEmpty => "a variable's name is empty",
            Self::VariableNameHasEquals => "a variable's name holds `=`",
            Self::VariableNameHasNewline => "a variable's name holds a line break",
            Self::VariableNameHasNul => "a variable's name holds a NUL",
            Self::VariableNameHasControl => "a variable's name holds a control character",
            Self::VariableValueHasNul => "a variable's value holds a NUL",
            Self::CommandFirstWordEmpty => "its first word is empty",
            Self::CommandHasNul => "a word of it holds a NUL",
            Self::CommandTooLong => "it is longer than 128 KiB",
            Self::DaysOutOfRange => "it must be from 1 to 366",
            Self::TimeLimitTooLong => "it must be at most 366 days, which are 31622400 seconds",
            Self::LimitOutOfRange => "it must be from 1 to 1000",
            Self::NothingToChange => "it changes nothing",
            Self::NoSuchGroup => "there is no group of that name",
            Self::TextMissing => "it needs a text in Chinese or in English",
            Self::TextTooLong => "it is longer than 16 KiB",
            Self::EndsBeforeItStarts => "it ends before it starts",
            Self::PriorityOutOfRange => "it must be from 1 to 9",
            Self::OnlyForTasks => "it is only for what a failed task of a job left",
            Self::SiteNameTooLong => "it must be one line of at most 60 characters",
            Self::ImageEmpty | Self::SecretEmpty => "it is empty",
            Self::ImageIsAnId => "it is an image's id; use a name",
            Self::ImageTooLong => "it is too long",
            Self::ImageNotLowerCase => "its name must be in lower case",
            Self::ImageTagUnfit => "what follows its `:` is not a tag",
            Self::ImageDigestUnfit => "what follows its `@` is not a digest",
            Self::ImageUnreadable => "it holds what no reference can hold, such as a space",
            Self::ImageNameUnfit => {
                "the name has lower-case letters, digits, `.`, `_` and `-`, at most 64 of them"
            }
            Self::ImageTagNotAllowed => "the tag has letters, digits, `.`, `_` and `-`, at most 128 of them",
            Self::ImageNotOnThisMachine => {
                "it is not on this machine, and images under `localhost/` are never pulled"
            }
            Self::ImageBeingPrepared => "`make up` is still preparing it; try again when it is ready",
            Self::ImageNotSavedForYou => "nobody has saved such an image for you",
            Self::ImageBeingSaved => "it is still being saved",
            Self::ImageNotFailed => "only a save that failed can be tried again",
            Self::ImageNotWhole => "only an image that is whole can get another name",
            Self::ImageNotSaved => "it was not saved, or is being deleted",
            Self::PasswordTooShort => "it has fewer than 8 characters",
            Self::PasswordTooLong | Self::FolderTooLong => "it is longer than 1024 bytes",
            Self::PasswordUnchanged => "it is the old one",
            Self::SecretTooLong => "it is longer than 12 KiB",
            Self::SecretHasControl => {
                "it holds a control character: write what is not text in base64, and decode it where you use it"
            }
            Self::SecretsTooMany => "there are 100 secrets already; remove one first",
            Self::NotARegistry => "it is not the address of a registry, such as `registry.example.org:5000`",
            Self::NotARegistryUser => "it must be one line of 1 to 256 bytes, without a colon",
            Self::SiteSecretNeedsRegistry => {
                "a secret of the site is the password of a registry: say of which"
            }
            Self::TooManySecretsUsed => "an instance can use at most 8 secrets",
            Self::NotAVariable => {
                "this is not the name of a variable: use letters, digits and `_`, or use the secret as a file"
            }
            Self::SecretIsLogin => "this secret is the password of a registry, and is given to that alone",
            Self::AppNotStarted => "Berth does not start it; just open it",
            Self::PortOutOfRange => "a port is a number from 1 to 65535",
            Self::NothingListens => "nothing listens there",
            Self::PathTooLong => "it is longer than 4096 bytes",
            Self::PathNeedsOneSlash => "it must begin with one `/`",
            Self::PathNeedsEscapes => {
                "it holds a letter that has to be escaped, such as a space, `\\` or `#`"
            }
            Self::NotAPath => "it is not a path",
            Self::FolderNotAbsolute => "it must begin with `/`",
            Self::FolderHasControl => "it holds a control character",
            Self::PackagesUnknown => {
                "nobody knows what was installed in it: it was pushed, or is not saved yet"
            }
            Self::MessageTooLong => "it is longer than 4096 bytes, or holds a NUL",
            Self::ExcludeTooMany => "there are more than 64 paths",
            Self::ExcludeNotAbsolute => "one of them is not an absolute path",
            Self::TerminalNameUnfit => "use lower-case letters, digits and hyphens, at most 32 of them",
            Self::ExecTooLong => "the arguments and variables are too long: together at most 256 KiB",
            Self::KeyIsPrivate => {
                "this is the private half, which nobody should ever be given; send the public one"
            }
            Self::KeyNotOneLine => "send one line as in a file that ends with .pub",
            Self::KeyUnreadable => "this is not a public key as in a file that ends with .pub",
            Self::KeyIsDsa => "DSA keys are not safe any more; make an ed25519 one",
            Self::KeyRsaTooShort => "an RSA key needs 2048 bits or more; better make an ed25519 one",
            Self::KeyKindUnknown => "keys of this kind are not known here; make an ed25519 one",
            Self::KeyAlreadyYours => "you have added this key already",
            Self::KeyOfAnother => "this key is somebody else's",
            Self::SignatureUnreadable => "this is not a signature as `ssh-keygen -Y sign -n berth` makes it",
            Self::SignatureOfAnother => "it was not made with this key over the challenge",
            Self::ChallengeOver => "ask for a new challenge",
            Self::KeysTooMany => "you have 100 keys already; remove one first",
            Self::Unknown => "it cannot be used",
        }
    }
}

/// An error as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
pub struct Problem {
    pub code: Code,
    /// What happened and why: lower case, no full stop.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// A JSON pointer to the field of the request that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The values in the message, for translations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// What is wrong with a job file, and what else is worth saying about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<JobNote>,
    /// Names this very request in the gateway's log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}
