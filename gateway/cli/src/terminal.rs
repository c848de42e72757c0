//! The person's own terminal: its size, passwords without echo, and raw mode that always ends.
//!
//! [`Changed`] restores the terminal when it is dropped: on return, on an error and on a panic. Signals that would
//! kill the process are waited for by whoever holds one, so that they too end in a return.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    os::fd::AsFd as _,
};

use gateway_api::stream::Size;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// A terminal that is not as it was.
#[derive(Debug)]
pub(crate) struct Changed {
    before: Termios,
}

impl Changed {
    /// Keys go through as they are pressed, none of them means anything here.
    pub(crate) fn raw() -> io::Result<Self> {
        Self::change(Termios::make_raw)
    }

    fn without_echo() -> io::Result<Self> {
        Self::change(|mode| mode.local_modes.remove(LocalModes::ECHO))
    }

    fn change(change: impl FnOnce(&mut Termios)) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut mode = before.clone();
        change(&mut mode);
        tcsetattr(io::stdin(), OptionalActions::Flush, &mode)?;
        Ok(Self { before })
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Whether a person sits at standard input.
pub(crate) fn is_attended() -> bool {
    io::stdin().is_terminal()
}

/// The size of the terminal, if any of the three streams is one.
pub(crate) fn size() -> Option<Size> {
    let size = |stream: &dyn std::os::fd::AsFd| tcgetwinsize(stream.as_fd()).ok();
    let found = size(&io::stdin().as_fd()).or_else(|| size(&io::stdout())).or_else(|| size(&io::stderr()))?;
    (found.ws_col > 0 && found.ws_row > 0).then_some(Size { cols: found.ws_col, rows: found.ws_row })
}

/// Asks for a line.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    // Not locked while waiting: whoever interrupts has something to write too.
    write!(io::stderr(), "{question}")?;
    line()
}

/// Asks for a line that nobody is to see. Ctrl-C ends the program, and the terminal then is as it was.
pub(crate) async fn ask_secret(question: &str) -> io::Result<Option<String>> {
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let changed = Changed::without_echo()?;
    let question = question.to_owned();
    let asked = tokio::select! {
        asked = tokio::task::spawn_blocking(move || ask(&question)) => Some(asked.map_err(io::Error::other)?),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    };
    drop(changed);
    let _ = writeln!(io::stderr().lock());
    asked.transpose()
}

/// The longest line that is read: the longest password there is, and then some.
const LINE_LIMIT: u64 = 4096;

/// One line of standard input, without its end.
pub(crate) fn line() -> io::Result<String> {
    let mut text = String::new();
    io::Read::take(io::stdin().lock(), LINE_LIMIT).read_line(&mut text)?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}
