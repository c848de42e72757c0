//! Messages: a length (u32, big-endian) and JSON, never longer than [`MESSAGE_MAX`].
//!
//! The other end is not to be trusted, so a length is checked before a byte of memory is taken for it.

use std::io;

use serde::{Serialize, de::DeserializeOwned};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::MESSAGE_MAX;

/// What went wrong between two ends of the protocol.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    #[error("a message of {0} bytes is longer than the protocol allows")]
    TooLong(usize),
    #[error("a message does not make sense: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("a piece of a stream does not make sense")]
    MalformedChunk,
    #[error("the reply came with {0}")]
    Descriptor(&'static str),
}

impl ProtocolError {
    /// The other end is gone, which is how every conversation ends.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Io(error) if matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
        ))
    }
}

/// Writes one message. Not cancel-safe: a message half written ends the conversation.
pub async fn write_message<T: Serialize>(
    to: &mut (impl AsyncWrite + Unpin),
    message: &T,
) -> Result<(), ProtocolError> {
    to.write_all(&encode(message)?).await?;
    Ok(())
}

/// Reads one message and not a byte more. Not cancel-safe: whoever gives up waiting gives up the connection.
pub async fn read_message<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
) -> Result<T, ProtocolError> {
    let mut header = [0; 4];
    from.read_exact(&mut header).await?;
    let mut body = vec![0; body_length(header)?];
    from.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}

/// One message as it is on the wire. What is too long is refused here, before a byte is sent.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, ProtocolError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    match u32::try_from(length) {
        Ok(header) if length <= MESSAGE_MAX => {
            bytes[..4].copy_from_slice(&header.to_be_bytes());
            Ok(bytes)
        }
        Ok(_) | Err(_) => Err(ProtocolError::TooLong(length)),
    }
}

pub(super) fn body_length(header: [u8; 4]) -> Result<usize, ProtocolError> {
    let length = usize::try_from(u32::from_be_bytes(header)).unwrap_or(usize::MAX);
    if length <= MESSAGE_MAX { Ok(length) } else { Err(ProtocolError::TooLong(length)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Call, Greeting, Request};

    #[tokio::test]
    async fn messages_read_back_one_by_one() {
        let (mut near, mut far) = tokio::io::duplex(64);
        let request = Request { request: 7, call: Call::Dial { port: 8888 } };
        let sent = request.clone();
        let writer = async move {
            write_message(&mut near, &Greeting::Link { version: 1 }).await.unwrap();
            write_message(&mut near, &sent).await.unwrap();
        };
        let reader = async {
            let greeting: Greeting = read_message(&mut far).await.unwrap();
            assert_eq!(greeting, Greeting::Link { version: 1 });
            let received: Request = read_message(&mut far).await.unwrap();
            assert_eq!(received, request);
            let end = read_message::<Request>(&mut far).await.unwrap_err();
            assert!(end.is_end());
        };
        tokio::join!(writer, reader);
    }

    #[tokio::test]
    async fn a_length_beyond_the_limit_is_refused_before_the_body() {
        for length in [u32::try_from(MESSAGE_MAX).unwrap() + 1, u32::MAX] {
            let bytes = length.to_be_bytes();
            let error = read_message::<Greeting>(&mut &bytes[..]).await.unwrap_err();
            assert!(matches!(error, ProtocolError::TooLong(_)), "{error}");
        }
        let long = "x".repeat(MESSAGE_MAX);
        assert!(matches!(encode(&long), Err(ProtocolError::TooLong(_))));
    }

    #[tokio::test]
    async fn later_versions_may_add_fields_but_not_nonsense() {
        let check = |text: &'static str| async move {
            let mut bytes = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
            bytes.extend_from_slice(text.as_bytes());
            read_message::<Greeting>(&mut &bytes[..]).await.ok()
        };
        assert_eq!(
            check(r#"{"link":{"version":9,"mood":"fine"}}"#).await,
            Some(Greeting::Link { version: 9 })
        );
        assert_eq!(check(r#"{"ahoy":{}}"#).await, None);
        assert_eq!(check("\u{1}\u{2}").await, None);
    }
}
