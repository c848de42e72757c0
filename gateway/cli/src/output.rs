//! What is written where: data to standard output, words and progress to standard error.

use std::io::{self, IsTerminal as _, Write as _};

use comfy_table::{Cell, ContentArrangement, Table, presets};
use gateway_api::Instance;
use jiff::Timestamp;
use serde::Serialize;

use crate::words::{Title, Words};

/// Writes a line of data.
pub(crate) fn data(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Writes data as JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(data(&serde_json::to_string_pretty(value)?)?)
}

/// Says something to the person. Nobody listening is not an error.
pub(crate) fn say(words: &str) {
    let _ = writeln!(io::stderr().lock(), "{words}");
}

/// Whether standard error takes colours.
pub(crate) fn colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Texts from elsewhere without what a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control() || *letter == '\n').collect()
}

/// A table in docker's manner: titles, columns three spaces apart, no lines.
pub(crate) fn table<const COLUMNS: usize>(
    words: Words,
    titles: [Title; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    table_with(words, titles, rows.into_iter().map(|row| (row, Vec::new())), &[])
}

/// The same with columns at its end that not every site has.
pub(crate) fn table_with<const COLUMNS: usize>(
    words: Words,
    titles: [Title; COLUMNS],
    rows: impl IntoIterator<Item = ([String; COLUMNS], Vec<String>)>,
    more: &[Title],
) -> String {
    let mut table = plain_table();
    table.set_header(titles.iter().chain(more).map(|title| Cell::new(words.title(*title))));
    for (row, more) in rows {
        table.add_row(row.into_iter().chain(more).map(|text| Cell::new(printable(&text))));
    }
    trimmed(&mut table)
}

/// A column of clusters, where the rows are of several.
pub(crate) fn cluster_column<'a>(clusters: impl Iterator<Item = &'a str>) -> &'static [Title] {
    let all: std::collections::BTreeSet<_> = clusters.collect();
    if all.len() > 1 { &[Title::Cluster] } else { &[] }
}

/// Titles on the left, values on the right.
pub(crate) fn details(words: Words, rows: impl IntoIterator<Item = (Title, String)>) -> String {
    let mut table = plain_table();
    for (title, text) in rows {
        table.add_row([Cell::new(words.title(title)), Cell::new(printable(&text))]);
    }
    trimmed(&mut table)
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn trimmed(table: &mut Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// How long ago, in the largest unit that says enough.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

/// What is said while waiting for an instance.
#[derive(Debug)]
pub(crate) struct Progress {
    words: Words,
    line: Line,
}

/// One line that changes on a terminal, a line per state elsewhere.
#[derive(Debug)]
pub(crate) struct Line {
    changing: bool,
    shown: String,
}

impl Progress {
    pub(crate) fn new(words: Words) -> Self {
        Self { words, line: Line::new() }
    }

    pub(crate) fn show(&mut self, instance: &Instance) {
        let (long, short) = (self.words.progress(instance), self.words.progress_in_short(instance));
        self.line.show(&long, &short);
    }
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { changing: io::stderr().is_terminal(), shown: String::new() }
    }

    /// Bytes change all the time; in a log file only their coming and going is news, so it gets what is `short`.
    pub(crate) fn show(&mut self, long: &str, short: &str) {
        let line = if self.changing { long.to_owned() } else { short.to_owned() };
        if line == self.shown {
            return;
        }
        let mut out = io::stderr().lock();
        let _ = if self.changing {
            write!(out, "\r\x1b[K{}", printable(&line).replace('\n', " ")).and_then(|()| out.flush())
        } else {
            writeln!(out, "{}", printable(&line))
        };
        self.shown = line;
    }
}

/// Leaves the cursor at the start of a clean line.
impl Drop for Line {
    fn drop(&mut self) {
        if self.changing && !self.shown.is_empty() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        for (then, text) in [
            ("2026-01-31T12:00:05Z", "0s"),
            ("2026-01-31T11:58:30Z", "90s"),
            ("2026-01-31T11:00:00Z", "60m"),
            ("2026-01-30T12:00:00Z", "24h"),
            ("2026-01-01T12:00:00Z", "30d"),
        ] {
            assert_eq!(age(then.parse().unwrap(), now), text);
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[31mb\x07\nc\u{9b}d"), "a[31mb\ncd");
    }
}
