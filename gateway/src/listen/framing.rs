//! Whether the head of an HTTP/1 request leaves a doubt about where its body ends.
//!
//! A request with both `Content-Length` and `Transfer-Encoding` is how one request is smuggled into another. hyper
//! drops the one and obeys the other, so nobody behind it can tell. This looks at the bytes before hyper does, follows
//! them from head to head, and spoils such a head: hyper then answers 400 and closes.

/// The longest name that matters, and room for a number behind it.
const KEPT: usize = 48;

#[derive(Debug)]
pub(super) struct Framing {
    state: State,
    /// The beginning of the line that is being read, and how long the line is so far.
    kept: [u8; KEPT],
    length: usize,
    /// The last two bytes that were read of lines.
    last: [u8; 2],
    begun: bool,
    has_length: Option<u64>,
    has_encoding: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Body(u64),
    ChunkSize,
    Chunk(u64),
    Trailers,
    /// What comes is not HTTP, or not any that hyper would go on with.
    Off,
}

impl Default for Framing {
    fn default() -> Self {
        Self {
            state: State::Head,
            kept: [0; KEPT],
            length: 0,
            last: [0; 2],
            begun: false,
            has_length: None,
            has_encoding: false,
        }
    }
}

impl Framing {
    /// Looks at what was read, and changes a byte of it if it must not be understood.
    pub(super) fn look(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Off => return,
                State::Body(left) | State::Chunk(left) => {
                    let skipped = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= u64::try_from(skipped).unwrap_or_default();
                    if *left == 0 {
                        self.state =
                            if matches!(self.state, State::Body(_)) { State::Head } else { State::ChunkSize };
                    }
                    bytes = &mut bytes[skipped..];
                }
                State::Head | State::ChunkSize | State::Trailers => {
                    let end = memchr::memchr(b'\n', bytes);
                    let (line, rest) = bytes.split_at_mut(end.map_or(bytes.len(), |end| end + 1));
                    self.keep(line);
                    if end.is_some()
                        && !self.line_ends()
                        && let Some(last) = line.last_mut()
                    {
                        *last = 0;
                        self.state = State::Off;
                    }
                    bytes = rest;
                }
            }
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = KEPT.saturating_sub(self.length).min(piece.len());
        if room > 0 {
            self.kept[self.length..self.length + room].copy_from_slice(&piece[..room]);
        }
        self.length += piece.len();
        if let [.., before, last] = *piece {
            self.last = [before, last];
        } else if let [last] = *piece {
            self.last = [self.last[1], last];
        }
    }

    /// `false`: this must not be understood.
    fn line_ends(&mut self) -> bool {
        let whole = self.length <= KEPT;
        let line = &self.kept[..self.length.min(KEPT)];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let empty = whole && line.is_empty();
        match self.state {
            State::Head if empty && !self.begun => {} // lines before a request are nothing
            State::Head if empty => {
                if self.has_encoding && self.has_length.is_some() {
                    return false;
                }
                self.state = match (self.has_encoding, self.has_length) {
                    (true, _) => State::ChunkSize,
                    (false, Some(length @ 1..)) => State::Body(length),
                    (false, Some(0) | None) => State::Head,
                };
                (self.begun, self.has_encoding, self.has_length) = (false, false, None);
            }
            State::Head => {
                if self.begun {
                    if let Some(value) = value_of(line, b"content-length:") {
                        let Some(length) = number(value, 10).filter(|_| whole) else { return false };
                        self.has_length = Some(length);
                    } else if value_of(line, b"transfer-encoding:").is_some() {
                        self.has_encoding = true;
                    }
                }
                self.begun = true;
            }
            State::ChunkSize => {
                let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
                self.state = match number(&line[..digits], 16) {
                    Some(0) => State::Trailers,
                    Some(size) => State::Chunk(size.saturating_add(2)),
                    None => State::Off,
                };
            }
            // To hyper this is not the end of a line, so it would go on where this begins anew.
            State::Trailers if self.last[0] != b'\r' => return false,
            State::Trailers if empty => self.state = State::Head,
            State::Trailers | State::Body(_) | State::Chunk(_) | State::Off => {}
        }
        self.length = 0;
        true
    }
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    if text.starts_with('+') { None } else { u64::from_str_radix(text, radix).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether all of it may pass, read in pieces of every size.
    fn passes(text: &str) -> bool {
        let verdicts: Vec<bool> = [1, 2, 3, 7, 64, text.len()]
            .iter()
            .map(|&size| {
                let mut framing = Framing::default();
                let mut seen = text.as_bytes().to_vec();
                for piece in seen.chunks_mut(size.max(1)) {
                    framing.look(piece);
                }
                seen == text.as_bytes()
            })
            .collect();
        assert!(verdicts.iter().all(|&verdict| verdict == verdicts[0]), "{verdicts:?} for {text}");
        verdicts[0]
    }

    #[test]
    fn a_head_with_two_lengths_is_spoilt_wherever_it_comes() {
        let both = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
        let other = "POST / HTTP/1.1\ntransfer-ENCODING:chunked\nHost: a\ncontent-length:\t5\n\n0\n\n";
        for before in [
            "",
            "\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\nhello\r\n\r\nyou",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nA: b\r\n\r\n",
            &format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "content-length: 5 ".repeat(20)),
        ] {
            assert!(passes(before), "{before}");
            assert!(!passes(&format!("{before}{both}")), "{before}");
            assert!(!passes(&format!("{before}{other}")), "{before}");
        }
    }

    #[test]
    fn what_comes_after_trailers_is_where_hyper_finds_it() {
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
        let long = "x".repeat(2 * KEPT);
        for (trailers, expected) in [
            ("\r\n".to_owned(), true),
            (format!("A: b\r\nC: {long}\r\n\r\n"), true),
            ("\n".to_owned(), false),
            ("A: b\n\n".to_owned(), false),
            ("A: b\r\n\n".to_owned(), false),
            (format!("A: {long}\n\r\n"), false),
        ] {
            assert_eq!(passes(&format!("{chunked}{trailers}")), expected, "{trailers:?}");
        }
    }

    #[test]
    fn bodies_may_say_what_they_like() {
        let evil = "\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
        let length = evil.len();
        assert!(passes(&format!(
            "POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{evil}GET / HTTP/1.1\r\n\r\n"
        )));
        assert!(passes(&format!(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{evil}\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        )));
        for wrong in ["+5", "0x5", "5, 5", "-1", "", "99999999999999999999"] {
            assert!(!passes(&format!("POST / HTTP/1.1\r\nContent-Length: {wrong}\r\n\r\n")), "{wrong}");
        }
    }
}
