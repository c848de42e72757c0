//! Much input goes from the gateway's connection into a program's pipe without being read here: the kernel hands the
//! pages over.
//!
//! Output is read: how long a chunk will be is said before it, and a program may take back what is in its own pipe.

use std::io;

use envd_api::agent::{ChunkReader, ProtocolError, ReadHalf};
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
    pipe::SpliceFlags,
};
use tokio::net::unix::pipe;

use crate::link::while_present;

/// Less than this is read and written: each piece that is handed over takes one of a pipe's few places, however short.
const WORTH_IT: usize = 8 << 10;

/// Hands input over for as long as much of it comes in a row. Whether it may be tried again: where the kernel cannot, or
/// the program reads no more, what is left is to be read as any other chunk.
pub(crate) async fn input(reader: &mut ChunkReader, into: &pipe::Sender) -> Result<bool, ProtocolError> {
    loop {
        let ahead = reader.input_ahead().await?;
        if ahead < WORTH_IT {
            return Ok(true);
        }
        let mut moved = 0;
        let from = reader.get_ref();
        let handed = while_present(from, hand_over(from, into, ahead, &mut moved)).await;
        reader.took(moved)?;
        match handed {
            Ok(()) => {}
            // Whatever the system has against it: reading and writing will tell whether it is more than this.
            Err(error) if error.raw_os_error().is_some() => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

async fn hand_over(from: &ReadHalf, into: &pipe::Sender, bytes: usize, moved: &mut usize) -> io::Result<()> {
    while *moved < bytes {
        from.readable().await?;
        into.writable().await?;
        match rustix::pipe::splice(from, None, into, None, bytes - *moved, SpliceFlags::NONBLOCK) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => *moved += more,
            // It does not say which of the two is to be waited for.
            Err(Errno::AGAIN) => {
                let _noted = from.try_io(|| look(&PollFd::new(from, PollFlags::IN)));
                let _noted = into.try_io(|| look(&PollFd::new(into, PollFlags::OUT)));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether a descriptor is ready at this moment.
fn look(at: &PollFd<'_>) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match rustix::event::poll(&mut [at.clone()], Some(&now))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}
