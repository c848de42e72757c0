//! Everything that can be answered instead of what was asked, and the only place that knows status codes.
//!
//! `Display` is the sentence that the user reads, `source()` is the operator's chain. What is not yours and what is
//! not there are the same [`Error::NotFound`].

use axum::response::{IntoResponse, Response};
use gateway_api::{Action, Code, Problem, name::NotAName};
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
    #[error("this request came from another site")]
    CrossSite,
    #[error("no {kind} named `{name}`")]
    NotFound { kind: &'static str, name: String },
    #[error("there is nothing at this address")]
    NoSuchRoute,
    #[error("this address does not take that method")]
    NoSuchMethod,
    #[error("{0}")]
    BadName(#[source] NotAName),
    #[error("you already have an instance named `{name}`")]
    NameTaken { name: String },
    #[error("`{reference}` is not an image reference: {why}")]
    BadImage { reference: String, why: String },
    #[error("there is no image `{reference}`: {why}")]
    ImageNotFound { reference: String, why: String },
    #[error("{field}: {why}")]
    BadValue { field: &'static str, why: String },
    #[error("{field}: {wanted} is more than any node has; the largest has {largest}")]
    TooLarge { field: &'static str, wanted: String, largest: String },
    #[error("the new password is too weak: {why}")]
    WeakPassword { why: &'static str },
    #[error("instance `{name}` is {state}; it cannot {action} now", action = action.word())]
    WrongState { name: String, state: &'static str, action: Action },
    #[error("the request's body cannot be read: {why}")]
    BadBody { why: String, pointer: Option<String> },
    #[error("the request's body is larger than {limit} bytes")]
    BodyTooLarge { limit: usize },
    #[error("the cluster does not answer")]
    ClusterUnreachable(#[source] BoxError),
    #[error("instance `{name}` does not answer: {why}")]
    AgentUnreachable { name: String, why: String },
    #[error("the server's disk is full")]
    DiskFull(#[source] BoxError),
    #[error("something went wrong on our side")]
    Internal(#[source] BoxError),
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
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each error: the whole table on one page is the point"
    )]
    fn parts(&self) -> Parts {
        use StatusCode as S;
        let plain = |status, code, hint| Parts { status, code, hint, pointer: None, params: Vec::new() };
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
            Self::CrossSite => {
                plain(S::FORBIDDEN, Code::CrossSite, Some("open the console itself and try there"))
            }
            Self::NotFound { kind, name } => Parts {
                params: vec![("kind", (*kind).to_owned()), ("name", name.clone())],
                ..plain(S::NOT_FOUND, Code::NotFound, Some("list what there is, and check the spelling"))
            },
            Self::NoSuchRoute => plain(S::NOT_FOUND, Code::NotFound, Some("see /api/v1/openapi.json")),
            Self::NoSuchMethod => {
                plain(S::METHOD_NOT_ALLOWED, Code::NotFound, Some("see /api/v1/openapi.json"))
            }
            Self::BadName(wrong) => {
                field(Code::BadName, "name", "choose another name", vec![("name", wrong.text.clone())])
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
            Self::BadImage { reference, .. } => field(
                Code::BadImage,
                "image",
                "write it like `python:3.12` or `registry.example.org/team/image:tag`",
                vec![("reference", reference.clone())],
            ),
            Self::ImageNotFound { reference, .. } => field(
                Code::ImageNotFound,
                "image",
                "see the list of images, and check the spelling",
                vec![("reference", reference.clone())],
            ),
            Self::BadValue { field: name, why } => field(
                Code::BadValue,
                name,
                "change that value",
                vec![("field", (*name).to_owned()), ("why", why.clone())],
            ),
            Self::TooLarge { field: name, wanted, largest } => field(
                Code::TooLarge,
                name,
                "ask for less",
                vec![("field", (*name).to_owned()), ("wanted", wanted.clone()), ("largest", largest.clone())],
            ),
            Self::WeakPassword { .. } => {
                field(Code::WeakPassword, "new", "take a longer one that is not in use elsewhere", Vec::new())
            }
            Self::WrongState { name, state, action } => Parts {
                params: vec![
                    ("name", name.clone()),
                    ("state", (*state).to_owned()),
                    ("action", action.word().to_owned()),
                ],
                ..plain(
                    S::CONFLICT,
                    Code::WrongState,
                    Some("wait for the state to change, or look at its page"),
                )
            },
            Self::BadBody { pointer, .. } => Parts {
                pointer: pointer.clone(),
                ..plain(
                    S::BAD_REQUEST,
                    Code::BadBody,
                    Some("see /api/v1/openapi.json for what this call takes"),
                )
            },
            Self::BodyTooLarge { limit } => Parts {
                params: vec![("limit", limit.to_string())],
                ..plain(S::PAYLOAD_TOO_LARGE, Code::BodyTooLarge, Some("send less"))
            },
            Self::ClusterUnreachable(_) => plain(
                S::SERVICE_UNAVAILABLE,
                Code::ClusterUnreachable,
                Some("try again in a moment; if it stays so, tell the admin that envd is down"),
            ),
            Self::AgentUnreachable { name, .. } => Parts {
                params: vec![("name", name.clone())],
                ..plain(
                    S::BAD_GATEWAY,
                    Code::AgentUnreachable,
                    Some("try again in a moment; if it stays so, restart the instance"),
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
            StoreError::Taken | StoreError::Database(_) | StoreError::Unreadable(_) => {
                Self::Internal(error.into())
            }
        }
    }
}

/// The body is written by the request-id layer (`http/problem.rs`), which knows the id.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        if self.status().is_server_error() {
            tracing::error!(error = %chain(&self), "the request failed");
        }
        let mut response = self.status().into_response();
        if let Self::TooManyAttempts { seconds } = &self {
            response.headers_mut().insert(http::header::RETRY_AFTER, (*seconds).into());
        }
        response.extensions_mut().insert(self.problem());
        response
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The product's voice in one file: every error that users can meet.
    #[test]
    fn every_error_reads_well() {
        let boxed = || BoxError::from("the cause");
        let all = [
            Error::Unauthenticated,
            Error::BadCredentials,
            Error::TooManyAttempts { seconds: 30 },
            Error::CrossSite,
            Error::NotFound { kind: "instance", name: "trian".to_owned() },
            Error::NoSuchRoute,
            Error::NoSuchMethod,
            Error::BadName("a b".parse::<gateway_api::InstanceName>().unwrap_err()),
            Error::NameTaken { name: "train".to_owned() },
            Error::BadImage { reference: "A:B:C".to_owned(), why: "it must be lower case".to_owned() },
            Error::ImageNotFound {
                reference: "localhost/berth/bse".to_owned(),
                why: "it is not on this machine".to_owned(),
            },
            Error::BadValue { field: "cpus", why: "it must be more than 0".to_owned() },
            Error::TooLarge { field: "cpus", wanted: "64".to_owned(), largest: "2".to_owned() },
            Error::WeakPassword { why: "it has fewer than 8 characters" },
            Error::WrongState { name: "train".to_owned(), state: "stopped", action: Action::Stop },
            Error::BadBody { why: "unknown field `cpu`".to_owned(), pointer: Some("/cpu".to_owned()) },
            Error::BodyTooLarge { limit: 65536 },
            Error::ClusterUnreachable(boxed()),
            Error::AgentUnreachable { name: "train".to_owned(), why: "it is not linked".to_owned() },
            Error::DiskFull(boxed()),
            Error::Internal(boxed()),
        ];
        let lines: Vec<_> = all
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
