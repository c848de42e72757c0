//! Reading a kept log: from a line, from a time, or from its beginning, and on for as long as it grows.

use std::{io::SeekFrom, time::Duration};

use bytes::Bytes;
use gateway_api::InstanceId;
use jiff::Timestamp;
use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncSeekExt as _},
    sync::watch,
};

use super::{MARK_BYTES, TaskLogs};
use crate::{app::App, error::Error};

const PIECE: usize = 64 << 10;
/// How often a reader looks whether there is more, whatever it is told.
const LOOK: Duration = Duration::from_secs(1);
/// The longest line that is searched as one.
const LINE_MAX: usize = 1 << 20;

/// Which part of a log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    /// Only the last lines.
    pub(crate) tail: Option<u64>,
    /// Only what came since.
    pub(crate) since: Option<Timestamp>,
    /// Only lines that hold this.
    pub(crate) grep: Option<String>,
}

/// A log that is being read.
#[derive(Debug)]
pub(crate) struct Reader {
    task: InstanceId,
    file: Option<File>,
    at: u64,
    grep: Option<Search>,
    grown: watch::Receiver<u64>,
}

#[derive(Debug)]
struct Search {
    what: Vec<u8>,
    /// A line that has begun.
    line: Vec<u8>,
}

impl TaskLogs {
    pub(crate) async fn reader(&self, task: &InstanceId, part: Part) -> Result<Reader, Error> {
        let grown = self.watch(task);
        let mut file = self.open(task).await.map_err(Error::internal)?;
        let at = match &mut file {
            None => 0,
            Some(file) => {
                let since = match part.since {
                    Some(since) => self.length_at(task, since).await.map_err(Error::internal)?,
                    None => 0,
                };
                match part.tail {
                    Some(lines) => start_of_last(file, lines).await.map_err(Error::internal)?.max(since),
                    None => since,
                }
            }
        };
        let grep = part.grep.map(|what| Search { what: what.into_bytes(), line: Vec::new() });
        Ok(Reader { task: task.clone(), file, at, grep, grown })
    }

    /// How long the log was at that time.
    async fn length_at(&self, task: &InstanceId, since: Timestamp) -> std::io::Result<u64> {
        let marks = match tokio::fs::read(self.path(task, "times")).await {
            Ok(marks) => marks,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let (marks, _) = marks.as_chunks::<MARK_BYTES>();
        let time = |mark: &[u8; MARK_BYTES]| i64::from_be_bytes(half(&mark[..8]));
        let first = marks.partition_point(|mark| time(mark) < since.as_millisecond());
        match marks.get(first) {
            Some(mark) => Ok(u64::from_be_bytes(half(&mark[8..]))),
            // Nothing was written since.
            None => Ok(tokio::fs::metadata(self.path(task, "log")).await.map_or(0, |file| file.len())),
        }
    }
}

fn half(bytes: &[u8]) -> [u8; 8] {
    let mut half = [0; 8];
    half.copy_from_slice(&bytes[..8]);
    half
}

/// Where the last lines begin.
async fn start_of_last(file: &mut File, lines: u64) -> std::io::Result<u64> {
    let length = file.metadata().await?.len();
    let (mut at, mut found) = (length, 0);
    let mut piece = vec![0; PIECE];
    while at > 0 {
        let from = at.saturating_sub(PIECE as u64);
        let size = usize::try_from(at - from).unwrap_or(PIECE);
        file.seek(SeekFrom::Start(from)).await?;
        file.read_exact(&mut piece[..size]).await?;
        for (offset, byte) in piece[..size].iter().enumerate().rev() {
            let position = from + offset as u64;
            // The line break at the very end belongs to the last line.
            if *byte == b'\n' && position + 1 != length {
                found += 1;
                if found == lines {
                    return Ok(position + 1);
                }
            }
        }
        at = from;
    }
    Ok(if lines == 0 { length } else { 0 })
}

impl Reader {
    /// The next piece of what is there; `None` at its end.
    pub(crate) async fn next(&mut self, app: &App) -> Result<Option<Bytes>, Error> {
        loop {
            let Some(piece) = self.piece(app).await.map_err(Error::internal)? else {
                let rest = self.grep.as_mut().and_then(Search::rest);
                return Ok(rest.map(Bytes::from));
            };
            match &mut self.grep {
                None => return Ok(Some(piece)),
                Some(search) => {
                    let found = search.feed(&piece);
                    if !found.is_empty() {
                        return Ok(Some(Bytes::from(found)));
                    }
                }
            }
        }
    }

    /// The next piece, waited for if need be; `None` when there will be no more.
    pub(crate) async fn follow(&mut self, app: &App) -> Result<Option<Bytes>, Error> {
        loop {
            // Before the look at the file: what is written after it is whole was there before.
            let whole = app.store.log_is_whole(&self.task).await?;
            if let Some(piece) = self.next(app).await? {
                return Ok(Some(piece));
            }
            if whole {
                return Ok(None);
            }
            tokio::select! {
                _ = self.grown.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    async fn piece(&mut self, app: &App) -> std::io::Result<Option<Bytes>> {
        if self.file.is_none() {
            self.file = app.logs.open(&self.task).await?;
        }
        let Some(file) = &mut self.file else { return Ok(None) };
        file.seek(SeekFrom::Start(self.at)).await?;
        let mut piece = vec![0; PIECE];
        let count = file.read(&mut piece).await?;
        piece.truncate(count);
        self.at += count as u64;
        Ok((count > 0).then(|| Bytes::from(piece)))
    }
}

impl Search {
    /// The lines that end in this piece and hold what is looked for.
    fn feed(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut found = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() > LINE_MAX {
                found.extend(self.rest().unwrap_or_default());
            }
        }
        found
    }

    fn rest(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let holds = self.what.is_empty() || line.windows(self.what.len()).any(|part| part == self.what);
        (holds && !line.is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_begin_where_they_begin() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        for (text, lines, expected) in [
            ("", 3, ""),
            ("one\ntwo\nthree\n", 1, "three\n"),
            ("one\ntwo\nthree\n", 2, "two\nthree\n"),
            ("one\ntwo\nthree", 2, "two\nthree"),
            ("one\ntwo\n", 5, "one\ntwo\n"),
            ("one\n\n\n", 2, "\n\n"),
            ("one\n", 0, ""),
        ] {
            std::fs::write(&path, text).unwrap();
            let at = start_of_last(&mut File::open(&path).await.unwrap(), lines).await.unwrap();
            assert_eq!(&text[usize::try_from(at).unwrap()..], expected, "{lines} of {text:?}");
        }
        let long = (0..100_000).map(|n| n.to_string()).collect::<Vec<_>>().join("\n") + "\n";
        std::fs::write(&path, &long).unwrap();
        let at = start_of_last(&mut File::open(&path).await.unwrap(), 50_000).await.unwrap();
        assert!(long[usize::try_from(at).unwrap()..].starts_with("50000\n"));
    }

    #[test]
    fn lines_are_found_across_pieces() {
        let mut search = Search { what: b"needle".to_vec(), line: Vec::new() };
        assert_eq!(search.feed(b"a nee"), b"");
        assert_eq!(search.feed(b"dle here\nnothing\nneedl"), b"a needle here\n");
        assert_eq!(search.rest(), None);
    }
}
