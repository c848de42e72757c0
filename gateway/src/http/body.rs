//! JSON bodies and query strings, read so that every mistake gets our own sentence.

use std::time::Duration;

use axum::{
    extract::{FromRequest, FromRequestParts, Query, Request},
    response::{IntoResponse, Response},
};
use gateway_api::error::Reason;
use http::request::Parts;
use http_body_util::BodyExt as _;
use serde::{Serialize, de::DeserializeOwned};

use crate::{error::Error, listen::discard};

/// The longest body that the API reads.
pub(super) const LIMIT: usize = 256 << 10;
/// How long it may take to arrive, whoever sends it: it is read before anybody has signed in.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// How much of one that is too long it lets pass by, so that its sender hears why it was refused.
const DISCARDED_MOST: usize = 32 << 20;

/// The longest body with a job file in it: quoted it can be twice as long as it is.
pub(super) const JOB_LIMIT: usize = 2 * jobfile::LARGEST_BYTES + (64 << 10);

/// A JSON body, in a request or an answer.
#[derive(Debug)]
pub(super) struct Json<T, const MOST: usize = LIMIT>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned, const MOST: usize> FromRequest<S> for Json<T, MOST> {
    type Rejection = Error;

    async fn from_request(request: Request, _: &S) -> Result<Self, Error> {
        let json = request
            .headers()
            .get(http::header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| {
                value.split(';').next().is_some_and(|kind| kind.trim() == "application/json")
            });
        if !json {
            return Err(bad("its content type must be `application/json`", None));
        }
        let mut body = request.into_body();
        let read = http_body_util::Limited::new(&mut body, MOST).collect();
        let read = tokio::time::timeout(TIME_LIMIT, read)
            .await
            .map_err(|_| bad("it took too long to arrive", None))?;
        match read {
            Ok(read) => parse(&read.to_bytes()).map(Self),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                let _ = tokio::time::timeout(TIME_LIMIT, discard(body, DISCARDED_MOST)).await;
                Err(Error::BodyTooLarge { limit: MOST })
            }
            Err(_) => Err(bad("it broke off", None)),
        }
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

/// Reads JSON; a mistake is named with where it is.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let pointer = pointer(error.path());
        mistake(&error.into_inner().to_string(), pointer)
    })?;
    json.end().map_err(|error| bad(&error.to_string(), None))?;
    Ok(value)
}

/// A query string.
#[derive(Debug)]
pub(super) struct Ask<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Ask<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(value)| Self(value)).map_err(|error| bad(&error.body_text(), None))
    }
}

/// The sentence for a mistake. Those that people make often have one of their own, in their language.
fn mistake(why: &str, pointer: Option<String>) -> Error {
    if let Some((field, _)) = why.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        let field: String = field.chars().filter(|letter| !letter.is_control()).take(64).collect();
        // Where the parser has read the name already, it is part of the path.
        let parent = pointer.unwrap_or_default();
        let last = format!("/{}", escaped(&field));
        let pointer = if parent.ends_with(&last) { parent } else { parent + &last };
        return Error::UnknownField { field, pointer };
    }
    match pointer {
        Some(pointer) if why.starts_with("invalid value: integer `-") => {
            Error::unfit(&pointer[1..], Reason::Negative)
        }
        Some(pointer) if let Some(reason) = expected(why) => Error::unfit(&pointer[1..], reason),
        pointer => bad(why, pointer),
    }
}

/// What a value of the wrong type should have been, as serde puts it: `invalid type: string "two", expected f64 at line 1 …`.
fn expected(why: &str) -> Option<Reason> {
    let (_, rest) = why.strip_prefix("invalid type: ")?.rsplit_once(", expected ")?;
    let wanted = rest.split_once(" at line ").map_or(rest, |(wanted, _)| wanted);
    match wanted {
        "f32" | "f64" => Some(Reason::NotANumber),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => Some(Reason::NotAWholeNumber),
        "a string" => Some(Reason::NotText),
        "a boolean" => Some(Reason::NotYesOrNo),
        "a sequence" => Some(Reason::NotAList),
        "a map" => Some(Reason::NotAnObject),
        wanted if wanted.starts_with("struct ") => Some(Reason::NotAnObject),
        _ => None,
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn pointer(path: &serde_path_to_error::Path) -> Option<String> {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Map { key } => {
                pointer.push('/');
                pointer.push_str(&escaped(key));
            }
            Segment::Seq { index } => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    (!pointer.is_empty()).then_some(pointer)
}

fn bad(why: &str, pointer: Option<String>) -> Error {
    Error::BadBody { why: why.chars().filter(|letter| !letter.is_control()).take(300).collect(), pointer }
}

#[cfg(test)]
mod tests {
    use gateway_api::{Code, CreateInstance};

    use super::*;

    #[test]
    fn a_wrong_body_says_where() {
        let wrong = |body: &str| parse::<CreateInstance>(body.as_bytes()).unwrap_err().problem();
        for (body, pointer, reason) in [
            (r#"{"name":"a","cpus":"two","memory_bytes":1}"#, "/cpus", Reason::NotANumber),
            (r#"{"name":"a","cpus":1,"memory_bytes":1.5}"#, "/memory_bytes", Reason::NotAWholeNumber),
            (r#"{"name":7,"cpus":1,"memory_bytes":1}"#, "/name", Reason::NotText),
            (
                r#"{"name":"a","cpus":1,"memory_bytes":1,"auto_start":"yes"}"#,
                "/auto_start",
                Reason::NotYesOrNo,
            ),
            (
                r#"{"name":"a","cpus":1,"memory_bytes":1,"command":", expected f64"}"#,
                "/command",
                Reason::NotAList,
            ),
            (r#"{"name":"a","cpus":1,"memory_bytes":1,"env":[]}"#, "/env", Reason::NotAnObject),
        ] {
            let problem = wrong(body);
            assert_eq!((problem.code, problem.pointer.as_deref()), (Code::BadValue, Some(pointer)), "{body}");
            assert!(problem.message.contains(reason.sentence()), "{body}: {}", problem.message);
        }
        let problem = wrong(r#"{"name":"a","cpu":2}"#);
        assert_eq!((problem.code, problem.pointer.as_deref()), (Code::UnknownField, Some("/cpu")));
        let problem = wrong(r#"{"name":"a","cpus":1,"memory_bytes":-1}"#);
        assert_eq!((problem.code, problem.pointer.as_deref()), (Code::BadValue, Some("/memory_bytes")));
        assert!(wrong(r#"{"name":"a","cpus":1,"memory_bytes":1} x"#).message.contains("trailing"));
    }
}
