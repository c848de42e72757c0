//! Pseudo-terminals: the agent's end is asynchronous, the other end is for the child.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    time::Duration,
};

use envd_api::agent::when_room;
use process_api::Size;
use rustix::{
    process::Uid,
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{InputModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize},
};
use tokio::net::unix::pipe;

use crate::modes;

/// How soon to read again after an error: nobody has the other end open, but whoever lives may open it again.
pub(crate) const CLOSED_PAUSE: Duration = Duration::from_millis(200);

/// How often others get the processor, within a flood, before a terminal that is empty is waited for.
const YIELDS: usize = 6;

/// The agent's end. Reading and writing take `&self`, so that several can share it.
#[derive(Debug)]
pub(crate) struct Pty {
    screen: pipe::Receiver,
}

/// A new terminal that belongs to `owner`, and the end of it that is the child's.
pub(crate) fn open(size: Size, owner: u32) -> io::Result<(Pty, OwnedFd)> {
    let (pty, theirs, _) = open_with(size, owner, &[])?;
    Ok((pty, theirs))
}

/// As [`open`], with the modes that an SSH client asks for; also the terminal's name.
pub(crate) fn open_with(size: Size, owner: u32, wanted: &[(u8, u32)]) -> io::Result<(Pty, OwnedFd, String)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    // Programs such as tmux open it again by name. Who may not change owners runs as nobody else either.
    let _stays_ours = rustix::fs::fchown(&theirs, Some(Uid::from_raw(owner)), None);
    let mut modes = tcgetattr(&theirs)?;
    modes.input_modes |= InputModes::IUTF8;
    modes::apply(&mut modes, wanted);
    tcsetattr(&theirs, OptionalActions::Now, &modes)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?.to_string_lossy().into_owned();
    let pty = Pty { screen: pipe::Receiver::from_owned_fd_unchecked(ours)? };
    pty.resize(size);
    Ok((pty, theirs, name))
}

impl Pty {
    /// Reads what the terminal shows. Cancel-safe. An error when nobody has the other end open.
    pub(crate) async fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        // Not by `AsyncRead`: that takes a short read for an empty source, which a terminal's is not.
        loop {
            self.screen.readable().await?;
            match self.screen.try_read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }

    /// As [`Self::read`], within a flood: where the terminal is empty for the moment, its writer gets the time to fill it,
    /// since waking up for every line costs more than all the rest. It gets no more than what others would take anyway:
    /// whoever sleeps here, however shortly, wakes up later than the terminal takes to fill.
    pub(crate) async fn read_flood(&self, into: &mut [u8]) -> io::Result<usize> {
        for _ in 0..YIELDS {
            match self.read_now(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                result => return result,
            }
        }
        self.read(into).await
    }

    /// Reads what is there now, whatever has been noticed of it so far.
    pub(crate) fn read_now(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.screen.as_fd(), into)?)
    }

    /// Types. Waits while the program does not read.
    pub(crate) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let keyboard = self.screen.as_fd();
            let written = when_room(keyboard, || Ok(rustix::io::write(keyboard, bytes)?)).await?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// The program is told by `SIGWINCH`.
    pub(crate) fn resize(&self, size: Size) {
        // A client that has no terminal itself says 0 and 0, which programs take for an unknown size.
        if size.cols == 0 && size.rows == 0 {
            return;
        }
        let size = Winsize { ws_col: size.cols.max(1), ws_row: size.rows.max(1), ws_xpixel: 0, ws_ypixel: 0 };
        let _ended = tcsetwinsize(self.screen.as_fd(), size);
    }
}
