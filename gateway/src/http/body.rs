//! JSON bodies and query strings, read so that every mistake gets our own sentence.

use axum::{
    extract::{FromRequest, FromRequestParts, Query, Request},
    response::{IntoResponse, Response},
};
use http::request::Parts;
use http_body_util::BodyExt as _;
use serde::{Serialize, de::DeserializeOwned};

use crate::error::Error;

/// The longest body that the API reads.
pub(super) const LIMIT: usize = 256 << 10;

/// A JSON body, in a request or an answer.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
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
        let body = http_body_util::Limited::new(request.into_body(), LIMIT).collect().await;
        let body = body.map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                Error::BodyTooLarge { limit: LIMIT }
            } else {
                bad("it broke off", None)
            }
        })?;
        parse(&body.to_bytes()).map(Self)
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
        bad(&error.into_inner().to_string(), pointer)
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

fn pointer(path: &serde_path_to_error::Path) -> Option<String> {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Map { key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
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
    use gateway_api::CreateInstance;

    use super::*;

    #[test]
    fn a_wrong_body_says_where() {
        let wrong = |body: &str| parse::<CreateInstance>(body.as_bytes()).unwrap_err().problem();
        let problem = wrong(r#"{"name":"a","cpus":"two","memory_bytes":1}"#);
        assert_eq!(problem.pointer.as_deref(), Some("/cpus"));
        assert!(wrong(r#"{"name":"a","cpu":2}"#).message.contains("unknown field `cpu`"));
        assert!(wrong(r#"{"name":"a","cpus":1,"memory_bytes":1} x"#).message.contains("trailing"));
    }
}
