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
/// The same where lines are only counted.
const COUNT_PIECE: usize = 1 << 20;
/// How often a reader looks whether there is more, whatever it is told.
const LOOK: Duration = Duration::from_secs(1);
/// The longest line that is searched as one.
const LINE_MAX: usize = 1 << 20;

/// What of a log is repeated where it is said that a job failed.
const LAST_LINES: u64 = 10;
const LAST_BYTES: u64 = 2 << 10;

/// Which part of a log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    /// Only the last lines.
    pub(crate) tail: Option<u64>,
    /// Only what came since.
    pub(crate) since: Option<Timestamp>,
    /// Only lines that hold this.
    pub(crate) grep: Option<String>,
    /// Only these, whatever `tail` and `since` say.
    pub(crate) lines: Option<Lines>,
}

/// Lines by their numbers, the first of which is 1. Where there are not as many, the last ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    pub(crate) from: u64,
    pub(crate) count: u64,
}

/// A log that is being read.
#[derive(Debug)]
pub(crate) struct Reader {
    task: InstanceId,
    file: Option<File>,
    at: u64,
    /// Where the part ends that is asked for.
    end: Option<u64>,
    /// The number of the first line, where lines were asked for by number.
    first_line: Option<u64>,
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
        let (mut end, mut first_line) = (None, part.lines.map(|_| 1));
        let at = match &mut file {
            None => 0,
            Some(file) if let Some(lines) = part.lines => {
                let span = span_of(file, lines).await.map_err(Error::internal)?;
                (end, first_line) = (Some(span.end), Some(span.first));
                span.start
            }
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
        Ok(Reader { task: task.clone(), file, at, end, first_line, grep, grown })
    }

    /// The last lines that say something, as text of a bounded length.
    pub(crate) async fn last_lines(&self, task: &InstanceId) -> std::io::Result<Vec<String>> {
        let Some(mut file) = self.open(task).await? else { return Ok(Vec::new()) };
        let length = file.metadata().await?.len();
        let from = start_of_last(&mut file, LAST_LINES).await?.max(length.saturating_sub(LAST_BYTES));
        file.seek(SeekFrom::Start(from)).await?;
        let mut bytes = Vec::new();
        file.take(LAST_BYTES).read_to_end(&mut bytes).await?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().map(plain).filter(|line| !line.trim().is_empty()).collect())
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

/// A line without what colours it or moves the cursor.
fn plain(line: &str) -> String {
    let mut letters = line.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        if letter == '\x1b' && letters.next() == Some('[') {
            let _ends_it = letters.find(char::is_ascii_alphabetic);
        } else if !letter.is_control() {
            plain.push(letter);
        }
    }
    plain
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

/// Where some lines are in a file.
struct Span {
    first: u64,
    start: u64,
    end: u64,
}

/// Finds lines by reading all that is before them: a log has no index, and a piece of it at a time is in memory.
async fn span_of(file: &mut File, lines: Lines) -> std::io::Result<Span> {
    let past = lines.from.saturating_add(lines.count);
    let mut start = (lines.from <= 1).then_some(0);
    // `line` is the one that begins at `begin`, or goes on where the next piece begins.
    let (mut at, mut line, mut begin) = (0, 1, 0);
    let mut piece = vec![0; COUNT_PIECE];
    file.seek(SeekFrom::Start(0)).await?;
    loop {
        let count = file.read(&mut piece).await?;
        if count == 0 {
            break;
        }
        for offset in memchr::memchr_iter(b'\n', &piece[..count]) {
            begin = at + offset as u64 + 1;
            line += 1;
            if line == lines.from {
                start = Some(begin);
            }
            if let Some(start) = start
                && line >= past
            {
                return Ok(Span { first: lines.from.max(1), start, end: begin });
            }
        }
        at += count as u64;
    }
    // The last one may still be without its end, or not have begun.
    let last = if begin < at { line } else { line - 1 };
    Ok(match start {
        Some(start) if start < at => Span { first: lines.from.max(1), start, end: at },
        _ => Span {
            first: (last + 1).saturating_sub(lines.count).max(1),
            start: start_of_last(file, lines.count).await?,
            end: at,
        },
    })
}

impl Reader {
    /// The number of the first line, where lines were asked for by number.
    pub(crate) fn first_line(&self) -> Option<u64> {
        self.first_line
    }

    /// The next piece of what is there; `None` at its end.
    pub(crate) async fn next(&mut self, app: &App) -> Result<Option<Bytes>, Error> {
        Ok(self.found(app).await?.or_else(|| self.unfinished_line()))
    }

    /// A last line without its end, if it is one that is looked for.
    fn unfinished_line(&mut self) -> Option<Bytes> {
        self.grep.as_mut().and_then(Search::rest).map(Bytes::from)
    }

    /// The same but for a last line that has no end yet.
    async fn found(&mut self, app: &App) -> Result<Option<Bytes>, Error> {
        loop {
            let Some(piece) = self.piece(app).await.map_err(Error::internal)? else { return Ok(None) };
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
            if let Some(piece) = self.found(app).await? {
                return Ok(Some(piece));
            }
            if whole {
                return Ok(self.unfinished_line());
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
        let left = self.end.map_or(u64::MAX, |end| end.saturating_sub(self.at));
        let mut piece = vec![0; usize::try_from(left).unwrap_or(PIECE).min(PIECE)];
        let count = file.read(&mut piece).await?;
        piece.truncate(count);
        self.at += count as u64;
        Ok((count > 0).then(|| Bytes::from(piece)))
    }
}

/// Whether `what` stands in a line.
pub(crate) fn holds(line: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(line, what).is_some()
}

impl Search {
    /// The lines that end in this piece and hold what is looked for.
    fn feed(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut found = Vec::new();
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', piece) {
            self.line.extend_from_slice(&piece[begin..=end]);
            found.extend(self.rest().unwrap_or_default());
            begin = end + 1;
        }
        self.line.extend_from_slice(&piece[begin..]);
        if self.line.len() > LINE_MAX {
            found.extend(self.rest().unwrap_or_default());
        }
        found
    }

    fn rest(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        (holds(&line, &self.what) && !line.is_empty()).then_some(line)
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

    #[tokio::test]
    async fn lines_are_found_by_their_numbers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        for (text, from, count, first, expected) in [
            ("", 1, 3, 1, ""),
            ("", 9, 3, 1, ""),
            ("one\ntwo\nthree\n", 1, 2, 1, "one\ntwo\n"),
            ("one\ntwo\nthree\n", 0, 1, 1, "one\n"),
            ("one\ntwo\nthree\n", 2, 1, 2, "two\n"),
            ("one\ntwo\nthree\n", 2, 9, 2, "two\nthree\n"),
            ("one\ntwo\nthree", 3, 9, 3, "three"),
            ("one\n\n\nfour\n", 2, 2, 2, "\n\n"),
            ("one\ntwo\nthree\n", 4, 2, 2, "two\nthree\n"),
            ("one\ntwo\nthree", 99, 2, 2, "two\nthree"),
            ("one\ntwo\n", 99, 5, 1, "one\ntwo\n"),
        ] {
            std::fs::write(&path, text).unwrap();
            let mut file = File::open(&path).await.unwrap();
            let span = span_of(&mut file, Lines { from, count }).await.unwrap();
            let part = &text[usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap()];
            assert_eq!((span.first, part), (first, expected), "{count} from {from} of {text:?}");
        }
        let long = (1..=500_000).map(|n| n.to_string()).collect::<Vec<_>>().join("\n") + "\n";
        std::fs::write(&path, &long).unwrap();
        let mut file = File::open(&path).await.unwrap();
        for (from, first) in [(400_000, 400_000), (600_000, 499_998)] {
            let span = span_of(&mut file, Lines { from, count: 3 }).await.unwrap();
            let part = &long[usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap()];
            assert_eq!((span.first, part.lines().count()), (first, 3));
            assert!(part.starts_with(&format!("{first}\n")), "{part}");
        }
    }

    #[test]
    fn a_line_is_repeated_without_its_colours() {
        assert_eq!(plain("\x1b[1;31mred\x1b[0m and\x07 plain\x1b"), "red and plain");
    }

    #[test]
    fn lines_are_found_across_pieces() {
        let mut search = Search { what: b"needle".to_vec(), line: Vec::new() };
        assert_eq!(search.feed(b"a nee"), b"");
        assert_eq!(search.feed(b"dle here\nnothing\nneedl"), b"a needle here\n");
        assert_eq!(search.rest(), None);
    }
}
