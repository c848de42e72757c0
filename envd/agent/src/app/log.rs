//! The last that an app wrote, for whoever asks why it does not answer.

use std::collections::VecDeque;

use envd_api::agent::APP_LOG_MAX;

#[derive(Debug, Default)]
pub(crate) struct Log {
    kept: VecDeque<u8>,
    /// Something before it is lost.
    cut: bool,
}

impl Log {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        // Never more at once than is kept, so that the buffer does not grow with what is written.
        let bytes = &bytes[bytes.len().saturating_sub(APP_LOG_MAX)..];
        let room = APP_LOG_MAX - bytes.len();
        if self.kept.len() > room {
            self.cut = true;
            self.kept.drain(..self.kept.len() - room);
        }
        self.kept.extend(bytes);
    }

    /// As text, from the beginning of a line where that can be, and never longer than what is kept.
    pub(crate) fn text(&self) -> String {
        let lines = if self.cut { self.kept.iter().position(|byte| *byte == b'\n') } else { None };
        let bytes: Vec<u8> = self.kept.iter().copied().skip(lines.map_or(0, |at| at + 1)).collect();
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        // What is no text takes more room in words than it had in bytes.
        let mut from = text.len().saturating_sub(APP_LOG_MAX);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text.drain(..from);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_lines_are_kept() {
        let mut log = Log::default();
        log.push(b"first\n");
        assert_eq!(log.text(), "first\n");
        for line in 0..10_000 {
            log.push(format!("line {line}\n").as_bytes());
        }
        let text = log.text();
        assert!(text.len() <= APP_LOG_MAX && text.len() > APP_LOG_MAX - 100, "{}", text.len());
        assert!(text.starts_with("line ") && text.ends_with("line 9999\n"));
    }

    #[test]
    fn what_is_no_text_takes_no_more_room() {
        let mut log = Log::default();
        log.push(&vec![0xff; 3 * APP_LOG_MAX]);
        assert_eq!(log.kept.len(), APP_LOG_MAX);
        let text = log.text();
        assert!(text.len() <= APP_LOG_MAX && text.chars().all(|sign| sign == '\u{fffd}'), "{}", text.len());
    }
}
