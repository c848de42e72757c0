//! Server-sent events: a small reader of `text/event-stream` that keeps at most one event in memory.
//!
//! Only what the gateway sends is understood: `event:` and `data:` lines, an empty line after each event, and comments
//! as heartbeats. Unknown events are passed over, so that a newer gateway may say more.

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream::BoxStream};
use reqwest::{Response, Url};
use serde::Deserialize;

use super::ClientError;
use crate::{Instance, InstanceId, Job, JobId};

/// The longest line, and so the largest event: one instance with all its environment fits many times over.
const LINE_LIMIT: usize = 4 << 20;

/// Something changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// This instance is new or different.
    Instance(Box<Instance>),
    InstanceDeleted(InstanceId),
    /// This job is new or different.
    Job(Box<Job>),
    JobDeleted(JobId),
}

/// The events of one connection. Ends when the gateway goes away; connect again and fetch anew then.
pub struct Events {
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    reader: Reader,
    url: Url,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Events").finish_non_exhaustive()
    }
}

// === impl Events ===

impl Events {
    pub(super) fn new(answer: Response, url: Url) -> Self {
        Self { chunks: answer.bytes_stream().boxed(), reader: Reader::default(), url }
    }

    /// The next event; `None` when the connection has ended. Cancel safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        loop {
            match self.reader.take() {
                Ok(Some(raw)) => match raw.event() {
                    Ok(Some(event)) => return Some(Ok(event)),
                    Ok(None) => continue,
                    Err(cause) => {
                        let what = format!("the event `{}` is not understood: {cause}", raw.kind);
                        return Some(Err(ClientError::protocol(&self.url, what)));
                    }
                },
                Ok(None) => {}
                Err(TooLong) => {
                    let what = format!("an event is larger than {LINE_LIMIT} bytes");
                    return Some(Err(ClientError::protocol(&self.url, what)));
                }
            }
            match self.chunks.next().await? {
                Ok(chunk) => self.reader.push(&chunk),
                Err(cause) => return Some(Err(ClientError::unreachable(&self.url, cause))),
            }
        }
    }

    /// Waits until the gateway has said anything at all; `None` when the connection has ended.
    pub async fn begun(&mut self) -> Option<Result<(), ClientError>> {
        match self.chunks.next().await? {
            Ok(chunk) => {
                self.reader.push(&chunk);
                Some(Ok(()))
            }
            Err(cause) => Some(Err(ClientError::unreachable(&self.url, cause))),
        }
    }

    /// The same as a [`Stream`].
    pub fn into_stream(self) -> impl Stream<Item = Result<Event, ClientError>> {
        futures_util::stream::unfold(self, |mut events| async { Some((events.next().await?, events)) })
    }
}

/// Bytes in, raw events out.
#[derive(Default)]
struct Reader {
    buffer: Vec<u8>,
    /// How much of `buffer` is known to hold no line end.
    looked: usize,
    building: RawEvent,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct RawEvent {
    kind: String,
    data: String,
}

struct TooLong;

// === impl Reader ===

impl Reader {
    fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next whole event, if it has come. Call until `None` after each push.
    fn take(&mut self) -> Result<Option<RawEvent>, TooLong> {
        while let Some(line) = self.line()? {
            if line.is_empty() {
                let event = std::mem::take(&mut self.building);
                if event != RawEvent::default() {
                    return Ok(Some(event));
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut self.building.kind),
                "data" => {
                    if self.building.data.len() + value.len() > LINE_LIMIT {
                        return Err(TooLong);
                    }
                    if !self.building.data.is_empty() {
                        self.building.data.push('\n');
                    }
                    self.building.data.push_str(value);
                }
                // Comments (an empty field), ids and retry times.
                _ => {}
            }
        }
        Ok(None)
    }

    fn line(&mut self) -> Result<Option<String>, TooLong> {
        let Some(end) = self.buffer[self.looked..].iter().position(|&byte| byte == b'\n') else {
            self.looked = self.buffer.len();
            return if self.looked > LINE_LIMIT { Err(TooLong) } else { Ok(None) };
        };
        let rest = self.buffer.split_off(self.looked + end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        self.looked = 0;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}

impl RawEvent {
    fn event(&self) -> Result<Option<Event>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Deleted<T> {
            id: T,
        }
        Ok(match self.kind.as_str() {
            "instance" => Some(Event::Instance(serde_json::from_str(&self.data)?)),
            "instance_deleted" => {
                Some(Event::InstanceDeleted(serde_json::from_str::<Deleted<InstanceId>>(&self.data)?.id))
            }
            "job" => Some(Event::Job(serde_json::from_str(&self.data)?)),
            "job_deleted" => Some(Event::JobDeleted(serde_json::from_str::<Deleted<JobId>>(&self.data)?.id)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut reader = Reader::default();
        let mut events = Vec::new();
        for chunk in chunks {
            reader.push(chunk);
            while let Ok(Some(event)) = reader.take() {
                events.push((event.kind, event.data));
            }
        }
        events
    }

    #[test]
    fn events_are_read_however_the_bytes_are_cut() {
        let text = b": here\n\nevent: instance\ndata: {\"a\":\ndata: 1}\r\n\r\nevent:instance_deleted\ndata:x\nid: 7\n\n";
        let whole = vec![
            ("instance".to_owned(), "{\"a\":\n1}".to_owned()),
            ("instance_deleted".to_owned(), "x".to_owned()),
        ];
        assert_eq!(read(&[text]), whole);
        assert_eq!(read(&text.chunks(1).collect::<Vec<_>>()), whole);
        assert_eq!(read(&text.chunks(7).collect::<Vec<_>>()), whole);
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut reader = Reader::default();
        reader.push(&vec![b'x'; LINE_LIMIT + 1]);
        assert!(reader.take().is_err());
    }

    #[test]
    fn unknown_events_are_passed_over_and_known_ones_typed() {
        let id = InstanceId::new();
        let event =
            |kind: &str, data: &str| RawEvent { kind: kind.to_owned(), data: data.to_owned() }.event();
        assert_eq!(event("weather", "rain").unwrap(), None);
        let data = format!("{{\"id\":\"{id}\"}}");
        assert_eq!(event("instance_deleted", &data).unwrap(), Some(Event::InstanceDeleted(id)));
        assert!(event("instance", "{}").is_err());
    }
}
