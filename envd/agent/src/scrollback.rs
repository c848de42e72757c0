//! What a terminal has shown: the last of it, to show again to whoever comes later.
//!
//! What is replayed starts at the beginning of a line and holds no questions to the terminal: the answers that a
//! viewer's terminal gives to them would arrive as if typed, long after the program that asked has gone.

use std::collections::VecDeque;

/// The most that is kept.
const KEPT_MAX: usize = 256 << 10;
/// How far into what is kept the beginning of a line is looked for.
const LINE_MAX: usize = 8 << 10;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
/// Asks a terminal for its name.
const ENQUIRY: u8 = 0x05;

/// The last that a terminal has shown.
#[derive(Debug, Default)]
pub(crate) struct Scrollback {
    kept: VecDeque<u8>,
    /// Something before it is lost.
    cut: bool,
}

impl Scrollback {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.kept.extend(bytes);
        if self.kept.len() > KEPT_MAX {
            self.cut = true;
            self.kept.drain(..self.kept.len() - KEPT_MAX);
        }
    }

    /// What to show to a new viewer.
    pub(crate) fn replay(&self) -> Vec<u8> {
        let start = if self.cut { self.beginning() } else { 0 };
        let kept: Vec<u8> = self.kept.iter().copied().skip(start).collect();
        without_questions(&kept)
    }

    /// After the first line break; else at least not within a character.
    fn beginning(&self) -> usize {
        let line = self.kept.iter().take(LINE_MAX).position(|byte| *byte == b'\n').map(|at| at + 1);
        line.unwrap_or_else(|| self.kept.iter().take(4).take_while(|byte| **byte & 0xc0 == 0x80).count())
    }
}

fn without_questions(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let length = if *first == ESCAPE { sequence_length(rest) } else { 1 };
        let (sequence, after) = rest.split_at(length);
        if !asks(sequence) {
            kept.extend_from_slice(sequence);
        }
        rest = after;
    }
    kept
}

/// The length of the escape sequence at the beginning; of all there is, when it does not end.
fn sequence_length(bytes: &[u8]) -> usize {
    let until = |found: Option<usize>| found.map_or(bytes.len(), |at| at + 1);
    match bytes.get(1) {
        // To the final byte, or to one that cannot be part of it.
        Some(b'[') => {
            until(bytes.iter().skip(2).position(|byte| !(0x20..=0x3f).contains(byte)).map(|at| at + 2))
        }
        Some(b']' | b'P' | b'_' | b'^' | b'X') => string_length(bytes),
        Some(_) => 2,
        None => 1,
    }
}

/// To the terminator: `ESC \` or the bell. Another escape ends it too, without being part of it.
fn string_length(bytes: &[u8]) -> usize {
    match bytes.iter().skip(2).position(|byte| [ESCAPE, BELL].contains(byte)).map(|at| at + 2) {
        Some(at) if bytes[at] == ESCAPE && bytes.get(at + 1) == Some(&b'\\') => at + 2,
        Some(at) if bytes[at] == ESCAPE => at,
        Some(at) => at + 1,
        None => bytes.len(),
    }
}

/// The sequence makes a terminal answer.
fn asks(sequence: &[u8]) -> bool {
    match sequence {
        [ENQUIRY] | [ESCAPE, b'Z'] => true,
        [ESCAPE, b'[', middle @ .., last] => match last {
            b'c' | b'x' => true,
            b'n' => !middle.starts_with(b">"),
            b'p' => middle.ends_with(b"$"),
            b'q' => middle.starts_with(b">"),
            b'u' | b'S' => middle.starts_with(b"?"),
            b't' => {
                let first = middle.split(|byte| *byte == b';').next().unwrap_or_default();
                matches!(first, b"11" | b"13" | b"14" | b"15" | b"16" | b"18" | b"19" | b"20" | b"21")
            }
            _ => false,
        },
        [ESCAPE, b']', text @ ..] => {
            let text = text.strip_suffix(b"\x1b\\").or_else(|| text.strip_suffix(&[BELL])).unwrap_or(text);
            text.split(|byte| *byte == b';').any(|part| part == b"?")
        }
        [ESCAPE, b'P', text @ ..] => text.starts_with(b"$q") || text.starts_with(b"+q"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_is_kept_from_the_beginning_of_a_line() {
        let mut scrollback = Scrollback::default();
        scrollback.push(b"first\n");
        assert_eq!(scrollback.replay(), b"first\n");
        for line in 0..100_000 {
            scrollback.push(format!("line {line}\r\n").as_bytes());
        }
        let replay = String::from_utf8(scrollback.replay()).unwrap();
        assert!(replay.len() <= KEPT_MAX && replay.len() > KEPT_MAX - 100, "{}", replay.len());
        assert!(replay.starts_with("line ") && replay.ends_with("line 99999\r\n"));
    }

    #[test]
    fn without_lines_it_starts_with_a_whole_character() {
        let mut scrollback = Scrollback::default();
        scrollback.push("好".repeat(KEPT_MAX / 3 + 7).as_bytes());
        scrollback.push(b"x");
        assert!(String::from_utf8(scrollback.replay()).unwrap().starts_with('好'));
    }

    #[test]
    fn questions_are_left_out_and_all_else_stays() {
        let check = |shown: &str, replayed: &str| {
            assert_eq!(
                String::from_utf8(without_questions(shown.as_bytes())).unwrap(),
                replayed,
                "{shown:?}"
            );
        };
        for question in [
            "\x1b[c",
            "\x1b[>c",
            "\x1b[0c",
            "\x1b[6n",
            "\x1b[?6n",
            "\x1b[?2026$p",
            "\x1b[>q",
            "\x1b[?u",
            "\x1b[18t",
            "\x1bZ",
            "\x05",
            "\x1b]11;?\x07",
            "\x1b]11;?\x1b\\",
            "\x1b]4;1;?\x07",
            "\x1bP$qm\x1b\\",
            "\x1bP+q544e\x1b\\",
        ] {
            check(&format!("a{question}b"), "ab");
        }
        for text in [
            "plain 好 text\r\n",
            "\x1b[1;31mred\x1b[0m",
            "\x1b[?1049h\x1b[2J\x1b[H",
            "\x1b]0;title?\x07",
            "\x1b[22;0;0t",
            "\x1b[2 q",
            "\x1b[>4;2m",
            "\x1b(B",
            "\x1b[S",
            "\x1b[u",
            "\x1b[31",
            "\x1b",
            "\x1b]0;half",
            "\x1b]0;x\x1b[1m",
            "\x1b[!p",
        ] {
            check(text, text);
        }
    }
}
