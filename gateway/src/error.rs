//! Everything that can be answered instead of what was asked, and the only place that knows status codes.
//!
//! `Display` is the sentence that the user reads, `source()` is the operator's chain. What is not yours and what is
//! not there are the same [`Error::NotFound`].

#[cfg(test)]
pub(crate) mod samples;

use gateway_api::{
    Action, Code, Problem,
    error::Reason,
    job::{JobAction, JobNote},
    name::NotAName,
};
use http::StatusCode;

use crate::store::StoreError;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An error on its way to a user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("sign in to continue")]
    Unauthenticated,
    #[error("the user name or the password is wrong")]
    BadCredentials,
    #[error("too many attempts to sign in")]
    TooManyAttempts { seconds: u64 },
    #[error("you have {limit} {what} open already, and can have no more")]
    TooManyOpen { what: &'static str, limit: usize },
    #[error("too many logs are being read at once")]
    TooManyReaders,
    #[error("choose a password of your own first: somebody else has seen this one")]
    PasswordChangeRequired,
    #[error("this request came from another site")]
    CrossSite,
    #[error("{why}")]
    Forbidden { why: &'static str },
    #[error("no {kind} named `{name}`")]
    NotFound { kind: &'static str, name: String },
    /// Reads exactly like [`Error::NotFound`]; the audit log knows better.
    #[error("no {kind} named `{name}`")]
    Hidden { kind: &'static str, name: String },
    #[error("there is nothing at this address")]
    NoSuchRoute,
    #[error("this address does not take that method")]
    NoSuchMethod,
    #[error("{0}")]
    BadName(#[source] NotAName),
    #[error("you already have an instance named `{name}`")]
    NameTaken { name: String },
    #[error("there is already {} {kind} named `{name}`", article(kind))]
    AlreadyExists { kind: &'static str, name: String },
    #[error("`{name}` is a removed user who can be restored until {until:.0}")]
    UserRemoved { name: String, until: jiff::Timestamp },
    #[error("`{name}` is the last admin and cannot be removed, disabled or given another role")]
    LastAdmin { name: String },
    #[error("{kind} `{name}` cannot be removed: {why}")]
    InUse { kind: &'static str, name: String, why: &'static str },
    #[error("`{reference}` is not an image reference: {}", reason.sentence())]
    BadImage { reference: String, reason: Reason },
    #[error("there is no image `{reference}`: {}", reason.sentence())]
    NoImage { reference: String, reason: Reason },
    /// The same in the words of whoever was asked for it, such as a registry.
    #[error("there is no image `{reference}`: {why}")]
    ImageNotFound { reference: String, why: String },
    #[error("the registry `{registry}` does not give `{reference}` to you: {why}")]
    RegistryDenied { reference: String, registry: String, why: String },
    #[error("the registry `{registry}` cannot be asked for `{reference}`: {why}")]
    RegistryUnreachable { reference: String, registry: String, why: String },
    #[error("images from `{registry}` are not allowed here; use one from {allowed}")]
    RegistryNotAllowed { reference: String, registry: String, allowed: String },
    #[error("{field}: {why}")]
    BadValue { field: &'static str, why: String },
    #[error("{field}: {}", reason.sentence())]
    Unfit { field: String, reason: Reason },
    #[error("the job file has {} mistakes", errors(notes))]
    BadJobFile { notes: Vec<JobNote> },
    #[error("job `{name}` is {state}; it cannot {action} now", action = action.word())]
    WrongJobState { name: String, state: &'static str, action: JobAction },
    #[error("{tasks} tasks need more than one machine, and there is one: {fit} of them fit")]
    NeedsMoreMachines { tasks: u64, fit: u64 },
    #[error("there is no {kind} `{name}` here{}", there_is(known))]
    NotHere { kind: &'static str, name: String, known: String },
    #[error("pool `{pool}` takes only {}", gateway_api::words::Language::English.kinds(kinds))]
    PoolTakesOthers { pool: String, kinds: String },
    #[error("your quota of {resource} is {limit}, of which {used} are in use; {wanted} more are asked for")]
    OverQuota { resource: String, wanted: String, used: String, limit: String },
    #[error("priority {wanted} is more than users may give here, which is {most}")]
    PriorityTooHigh { wanted: u8, most: u8 },
    #[error("{field}: {wanted} is more than any node has; the largest has {largest}")]
    TooLarge { field: &'static str, wanted: String, largest: String },
    #[error("the new password is too weak: {}", reason.sentence())]
    WeakPassword { reason: Reason },
    #[error("instance `{name}` is {state}; it cannot {action} now", action = action.word())]
    WrongState { name: String, state: &'static str, action: Action },
    #[error("the request's body cannot be read: {why}")]
    BadBody { why: String, pointer: Option<String> },
    #[error("the request's address or headers cannot be read")]
    Malformed,
    #[error("the request's body has a field `{field}`, which this call does not take")]
    UnknownField { field: String, pointer: String },
    #[error("the request's body is larger than {limit} bytes")]
    BodyTooLarge { limit: usize },
    #[error("the cluster does not answer")]
    ClusterUnreachable(#[source] BoxError),
    #[error("instance `{name}` does not answer: {why}")]
    AgentUnreachable { name: String, why: String },
    #[error("this site has no address for the apps of instances")]
    AppsUnavailable,
    #[error("this site has no registry to save images in")]
    NoRegistry,
    #[error("instance `{name}` is being saved already")]
    BeingSaved { name: String },
    #[error("the instance's changes cannot be told: {why}")]
    SaveRefused { why: String },
    #[error(
        "this takes up to {wanted}, and {} take {used} of {limit} already{}",
        group.as_ref().map_or("your images".to_owned(), |group| format!("the images of group `{group}`")),
        if images.is_empty() { String::new() } else { format!("; your largest: {images}") },
    )]
    ImageQuota {
        wanted: String,
        used: String,
        limit: String,
        /// Whose limit it is, if it is not the user's own.
        group: Option<String>,
        /// The user's largest.
        images: String,
    },
    #[error("image `{name}` cannot be deleted: it is used by {by}")]
    ImageInUse { name: String, by: String },
    #[error("the server's disk is full")]
    DiskFull(#[source] BoxError),
    #[error("something went wrong on our side")]
    Internal(#[source] BoxError),
}

/// What there is instead, where there is anything.
fn there_is(known: &str) -> String {
    if known.is_empty() { String::new() } else { format!("; there is {known}") }
}

/// How an [`Error`] looks on the wire.
struct Parts {
    status: StatusCode,
    code: Code,
    hint: Option<&'static str>,
    pointer: Option<String>,
    params: Vec<(&'static str, String)>,
}

impl Error {
    /// Something that the caller may not know of, or that is not there.
    pub(crate) fn hidden(kind: &'static str, name: &str) -> Self {
        Self::Hidden { kind, name: repeatable(name) }
    }

    pub(crate) fn not_found(kind: &'static str, name: &str) -> Self {
        Self::NotFound { kind, name: repeatable(name) }
    }

    pub(crate) fn unfit(field: &str, reason: Reason) -> Self {
        Self::Unfit { field: field.to_owned(), reason }
    }

    pub(crate) fn internal(error: std::io::Error) -> Self {
        Self::Internal(error.into())
    }

    /// A job that waits has written nothing yet.
    pub(crate) fn not_begun(name: &str) -> Self {
        Self::WrongJobState { name: name.to_owned(), state: "waiting", action: JobAction::Logs }
    }

    /// Nothing can be said of machines that have not reported.
    pub(crate) fn no_machine() -> Self {
        Self::ClusterUnreachable("no machine has reported yet".into())
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.parts().status
    }

    pub(crate) fn problem(&self) -> Problem {
        let parts = self.parts();
        Problem {
            code: parts.code,
            message: self.to_string(),
            hint: parts.hint.map(str::to_owned),
            pointer: parts.pointer,
            params: parts.params.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            request_id: String::new(),
            notes: if let Self::BadJobFile { notes } = self { notes.clone() } else { Vec::new() },
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each error: the whole table on one page is the point"
    )]
    fn parts(&self) -> Parts {
        use StatusCode as S;
        let plain = |status, code, hint| Parts { status, code, hint, pointer: None, params: Vec::new() };
        let wrong_state = |kind: &str, name: &str, state: &str, action: &str| Parts {
            params: [("kind", kind), ("name", name), ("state", state), ("action", action)]
                .map(|(key, value)| (key, value.to_owned()))
                .into(),
            ..plain(S::CONFLICT, Code::WrongState, Some("wait for the state to change, or look at its page"))
        };
        let field = |code, field: &str, hint, params| Parts {
            status: S::UNPROCESSABLE_ENTITY,
            code,
            hint: Some(hint),
            pointer: Some(format!("/{field}")),
            params,
        };
        match self {
            Self::Unauthenticated => plain(S::UNAUTHORIZED, Code::Unauthenticated, Some("sign in again")),
            Self::BadCredentials => plain(
                S::UNAUTHORIZED,
                Code::BadCredentials,
                Some("check both; an admin can reset the password"),
            ),
            Self::TooManyAttempts { seconds } => Parts {
                params: vec![("seconds", seconds.to_string())],
                ..plain(S::TOO_MANY_REQUESTS, Code::TooManyAttempts, Some("wait a minute and try again"))
            },
            Self::TooManyOpen { what, limit } => Parts {
                params: vec![("what", (*what).to_owned()), ("limit", limit.to_string())],
                ..plain(S::TOO_MANY_REQUESTS, Code::TooManyOpen, Some("close some of them and try again"))
            },
            Self::TooManyReaders => {
                plain(S::SERVICE_UNAVAILABLE, Code::TooManyOpen, Some("try again in a moment"))
            }
            Self::PasswordChangeRequired => plain(
                S::FORBIDDEN,
                Code::PasswordChangeRequired,
                Some("change it in the console or with `berth passwd`"),
            ),
            Self::CrossSite => {
                plain(S::FORBIDDEN, Code::CrossSite, Some("open the console itself and try there"))
            }
            Self::Forbidden { why } => Parts {
                params: vec![("why", (*why).to_owned())],
                ..plain(S::FORBIDDEN, Code::Forbidden, Some("ask an admin"))
            },
            Self::NotFound { kind, name } | Self::Hidden { kind, name } => Parts {
                params: vec![("kind", (*kind).to_owned()), ("name", name.clone())],
                ..plain(S::NOT_FOUND, Code::NotFound, Some("list what there is, and check the spelling"))
            },
            Self::NoSuchRoute => plain(S::NOT_FOUND, Code::NotFound, Some("see /api/v1/openapi.json")),
            Self::NoSuchMethod => {
                plain(S::METHOD_NOT_ALLOWED, Code::NotFound, Some("see /api/v1/openapi.json"))
            }
            Self::BadName(wrong) => {
                let params = vec![("name", wrong.text.clone()), ("kind", wrong.of.to_owned())];
                field(Code::BadName, "name", "choose another name", params)
            }
            Self::NameTaken { name } => Parts {
                status: S::CONFLICT,
                ..field(
                    Code::NameTaken,
                    "name",
                    "choose another name, or delete the other instance first",
                    vec![("name", name.clone())],
                )
            },
            Self::AlreadyExists { kind, name } => Parts {
                status: S::CONFLICT,
                ..field(
                    Code::AlreadyExists,
                    "name",
                    "choose another name",
                    vec![("kind", (*kind).to_owned()), ("name", name.clone())],
                )
            },
            Self::UserRemoved { name, until } => Parts {
                status: S::CONFLICT,
                ..field(
                    Code::UserRemoved,
                    "name",
                    "restore the account, or choose another name",
                    vec![("name", name.clone()), ("until", format!("{until:.0}"))],
                )
            },
            Self::LastAdmin { name } => Parts {
                params: vec![("name", name.clone())],
                ..plain(S::CONFLICT, Code::LastAdmin, Some("make somebody else an admin first"))
            },
            Self::InUse { kind, name, why } => Parts {
                params: vec![
                    ("kind", (*kind).to_owned()),
                    ("name", name.clone()),
                    ("why", (*why).to_owned()),
                ],
                ..plain(S::CONFLICT, Code::InUse, Some("move its members to another group first"))
            },
            Self::BadImage { reference, reason } => field(
                Code::BadImage,
                "image",
                "write it like `python:3.12` or `registry.example.org/team/image:tag`",
                [vec![("reference", reference.clone())], because(*reason)].concat(),
            ),
            Self::NoImage { reference, reason } => field(
                Code::ImageNotFound,
                "image",
                "see the list of images, and check the spelling",
                [vec![("reference", reference.clone())], because(*reason)].concat(),
            ),
            Self::ImageNotFound { reference, why } => field(
                Code::ImageNotFound,
                "image",
                "see the list of images, and check the spelling",
                vec![("reference", reference.clone()), ("why", why.clone())],
            ),
            Self::RegistryDenied { reference, registry, why } => field(
                Code::RegistryDenied,
                "image",
                "check the spelling; for a private image keep a login for its registry among your secrets",
                vec![("reference", reference.clone()), ("registry", registry.clone()), ("why", why.clone())],
            ),
            Self::RegistryUnreachable { reference, registry, why } => Parts {
                status: S::BAD_GATEWAY,
                ..field(
                    Code::RegistryUnreachable,
                    "image",
                    "try again later, or use an image of this site; instances that are made already start without it",
                    vec![
                        ("reference", reference.clone()),
                        ("registry", registry.clone()),
                        ("why", why.clone()),
                    ],
                )
            },
            Self::RegistryNotAllowed { reference, registry, allowed } => field(
                Code::RegistryNotAllowed,
                "image",
                "choose another image, or ask the admin to name this registry in `registries`",
                vec![
                    ("reference", reference.clone()),
                    ("registry", registry.clone()),
                    ("allowed", allowed.clone()),
                ],
            ),
            Self::BadValue { field: name, why } => field(
                Code::BadValue,
                name,
                "change that value",
                vec![("field", (*name).to_owned()), ("why", why.clone())],
            ),
            Self::Unfit { field: name, reason } => field(
                Code::BadValue,
                name,
                "change that value",
                [vec![("field", name.clone())], because(*reason)].concat(),
            ),
            Self::TooLarge { field: name, wanted, largest } => field(
                Code::TooLarge,
                name,
                "ask for less",
                vec![("field", (*name).to_owned()), ("wanted", wanted.clone()), ("largest", largest.clone())],
            ),
            Self::WeakPassword { reason } => field(
                Code::WeakPassword,
                "new",
                "take a longer one that is not in use elsewhere",
                because(*reason),
            ),
            Self::WrongState { name, state, action } => wrong_state("instance", name, state, action.word()),
            Self::BadJobFile { notes } => Parts {
                params: vec![("count", errors(notes).to_string())],
                ..field(Code::BadJobFile, "file", "mend what `notes` names, each with its line", Vec::new())
            },
            Self::WrongJobState { name, state, action } => wrong_state("job", name, state, action.word()),
            Self::NeedsMoreMachines { tasks, fit } => Parts {
                params: vec![("tasks", tasks.to_string()), ("fit", fit.to_string())],
                ..plain(
                    S::UNPROCESSABLE_ENTITY,
                    Code::NeedsMoreMachines,
                    Some("ask for fewer tasks, or for less for each"),
                )
            },
            Self::OverQuota { resource, wanted, used, limit } => Parts {
                params: [("resource", resource), ("wanted", wanted), ("used", used), ("limit", limit)]
                    .map(|(name, value)| (name, value.clone()))
                    .to_vec(),
                ..plain(
                    S::FORBIDDEN,
                    Code::OverQuota,
                    Some("stop something, ask for less, or ask an admin for more"),
                )
            },
            Self::NotHere { kind, name, known } => Parts {
                params: vec![("kind", (*kind).to_owned()), ("name", name.clone()), ("known", known.clone())],
                ..plain(
                    S::UNPROCESSABLE_ENTITY,
                    Code::NotHere,
                    Some("leave it out, or name one that there is"),
                )
            },
            Self::PoolTakesOthers { pool, kinds } => Parts {
                params: vec![("pool", pool.clone()), ("kinds", kinds.clone())],
                ..plain(
                    S::UNPROCESSABLE_ENTITY,
                    Code::PoolTakesOthers,
                    Some("name another pool or another GPU type; `berth nodes` shows the pools"),
                )
            },
            Self::PriorityTooHigh { wanted, most } => field(
                Code::PriorityTooHigh,
                "priority",
                "take a lower one, or ask an admin to raise it once the job is in the line",
                vec![("wanted", wanted.to_string()), ("most", most.to_string())],
            ),
            Self::BadBody { why, pointer } => Parts {
                pointer: pointer.clone(),
                params: vec![("why", why.clone())],
                ..plain(
                    S::BAD_REQUEST,
                    Code::BadBody,
                    Some("see /api/v1/openapi.json for what this call takes"),
                )
            },
            Self::Malformed => plain(
                S::BAD_REQUEST,
                Code::BadBody,
                Some("see /api/v1/openapi.json for what this call takes"),
            ),
            Self::UnknownField { field, pointer } => Parts {
                pointer: Some(pointer.clone()),
                params: vec![("field", field.clone())],
                ..plain(
                    S::BAD_REQUEST,
                    Code::UnknownField,
                    Some("check its spelling against /api/v1/openapi.json"),
                )
            },
            Self::BodyTooLarge { limit } => Parts {
                // The whole of it.
                pointer: Some(String::new()),
                params: vec![("limit", limit.to_string())],
                ..plain(S::PAYLOAD_TOO_LARGE, Code::BodyTooLarge, Some("send less"))
            },
            Self::ClusterUnreachable(_) => plain(
                S::SERVICE_UNAVAILABLE,
                Code::ClusterUnreachable,
                Some("try again in a moment; if it stays so, tell the admin that envd is down"),
            ),
            Self::AgentUnreachable { name, why } => Parts {
                params: vec![("name", name.clone()), ("why", why.clone())],
                ..plain(
                    S::BAD_GATEWAY,
                    Code::AgentUnreachable,
                    Some("try again in a moment; if it stays so, restart the instance"),
                )
            },
            Self::AppsUnavailable => plain(
                S::SERVICE_UNAVAILABLE,
                Code::AppsUnavailable,
                Some("ask the admin to set `domain` of `[gateway.apps]` in berth.toml"),
            ),
            Self::NoRegistry => plain(
                S::SERVICE_UNAVAILABLE,
                Code::NoRegistry,
                Some("ask the admin to set `registry` in berth.toml"),
            ),
            Self::BeingSaved { name } => Parts {
                params: vec![("name", name.clone())],
                ..plain(
                    S::CONFLICT,
                    Code::BeingSaved,
                    Some("wait for it, or give it up by deleting its image"),
                )
            },
            Self::SaveRefused { why } => Parts {
                params: vec![("why", why.clone())],
                ..plain(S::BAD_GATEWAY, Code::CannotSave, Some("try again in a moment"))
            },
            Self::ImageQuota { wanted, used, limit, group, images } => Parts {
                params: [("wanted", wanted), ("used", used), ("limit", limit)]
                    .into_iter()
                    .chain((!images.is_empty()).then_some(("images", images)))
                    .chain(group.as_ref().map(|group| ("group", group)))
                    .map(|(name, value)| (name, value.clone()))
                    .collect(),
                ..plain(
                    S::CONFLICT,
                    Code::ImageQuota,
                    Some("delete images that you no longer need, or leave more out"),
                )
            },
            Self::ImageInUse { name, by } => Parts {
                params: vec![("kind", "image".to_owned()), ("name", name.clone()), ("by", by.clone())],
                ..plain(
                    S::CONFLICT,
                    Code::InUse,
                    Some("delete these instances, or wait for these jobs or stop them, first"),
                )
            },
            Self::DiskFull(_) => {
                plain(S::INSUFFICIENT_STORAGE, Code::DiskFull, Some("tell the admin; nothing was changed"))
            }
            Self::Internal(_) => plain(
                S::INTERNAL_SERVER_ERROR,
                Code::Internal,
                Some("try again; if it stays so, give the admin the request id"),
            ),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::DiskFull(_) => Self::DiskFull(error.into()),
            // The key of whoever asks ended while this went on.
            StoreError::UserGone => Self::Unauthenticated,
            StoreError::ImageGone { reference } => Self::NoImage { reference, reason: Reason::ImageNotSaved },
            StoreError::Taken
            | StoreError::LastAdmin
            | StoreError::Database(_)
            | StoreError::OtherVersion
            | StoreError::Unreadable(_) => Self::Internal(error.into()),
        }
    }
}

/// Why, as a word to translate and as a sentence for those who do not know the word.
fn because(reason: Reason) -> Vec<(&'static str, String)> {
    vec![("reason", reason.word()), ("why", reason.sentence().to_owned())]
}

/// What of a text may be repeated to its sender: a bounded piece without control characters.
fn repeatable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(64).collect()
}

/// The mistakes among what was said about a file.
fn errors(notes: &[JobNote]) -> usize {
    notes.iter().filter(|note| note.level == "error").count()
}

/// An error and all its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}

/// `a` or `an`, as the word is spoken.
fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product's voice in one file: every error that users can meet.
    #[test]
    fn every_error_reads_well() {
        let lines: Vec<_> = samples::all()
            .iter()
            .map(|error| {
                let problem = error.problem();
                let code = serde_json::to_value(problem.code).unwrap();
                format!(
                    "{} {}{}\n    {}\n    {}",
                    error.status().as_u16(),
                    code.as_str().unwrap(),
                    problem.pointer.map(|pointer| format!(" {pointer}")).unwrap_or_default(),
                    problem.message,
                    problem.hint.unwrap_or_default()
                )
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
