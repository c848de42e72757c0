//! An SFTP server (version 3 with OpenSSH's extensions) on the instance's files.
//!
//! It is a process of its own that is the image's user, so the kernel decides what that user may, and it blocks freely.
//! Standard input and output are the gateway's own connection: nothing in between copies. Clients send many requests at
//! once; all that have arrived are answered before the answers are written together.
//!
//! Names are bytes all the way (`packet`), so that files whose names are not UTF-8 travel like any others.

mod attributes;
mod extended;
mod files;
mod packet;

use std::{
    collections::HashMap,
    fs::File,
    io::{self, IoSlice, Read as _, Write as _},
    process::ExitCode,
};

use bytes::{Bytes, BytesMut};
use tokio_util::codec::{Decoder as _, LengthDelimitedCodec};

use self::{
    attributes::{Names, Whose},
    files::Open,
    packet::{Fields, Reply, Status, kind},
};

/// The longest packet, as OpenSSH has it.
const PACKET_MAX: usize = 256 << 10;
/// What is read or written at most by one request: it fits a packet with all that goes around it.
const DATA_MAX: usize = PACKET_MAX - 1024;
/// Files and directories open at once.
const HANDLES_MAX: usize = 1000;
/// Answers that wait to be written.
const BATCH_BYTES: usize = 512 << 10;
const BATCH_MAX: usize = 64;

/// The version that this server speaks.
const VERSION: u32 = 3;
/// What this server offers beyond version 3, each with its version.
const EXTENSIONS: [(&str, &str); 9] = [
    ("posix-rename@openssh.com", "1"),
    ("statvfs@openssh.com", "2"),
    ("fstatvfs@openssh.com", "2"),
    ("hardlink@openssh.com", "1"),
    ("fsync@openssh.com", "1"),
    ("lsetstat@openssh.com", "1"),
    ("limits@openssh.com", "1"),
    ("expand-path@openssh.com", "1"),
    ("copy-data", "1"),
];

/// What is done with files that are none, such as pipes, which may keep their reader waiting for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    /// Waited for, as on any machine.
    Wait,
    /// Never waited for.
    Refuse,
}

/// The state of one conversation.
#[derive(Debug)]
struct Server {
    special: Special,
    open: HashMap<u64, Open>,
    next: u64,
    names: Names,
}

/// Why a request is not answered with what it asked for.
#[derive(Debug)]
enum Refused {
    System(io::Error),
    Status(Status),
    Words(&'static str),
}

type Answer = Result<Reply, Refused>;

/// Serves on standard input and output until the gateway closes them.
pub(crate) fn serve(special: Special) -> ExitCode {
    match run(special) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(special: Special) -> io::Result<()> {
    let mut input = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let mut output = File::from(rustix::stdio::stdout().try_clone_to_owned()?);
    let mut codec = LengthDelimitedCodec::builder().max_frame_length(PACKET_MAX).new_codec();
    let mut received = BytesMut::new();
    let mut piece = vec![0; PACKET_MAX];
    let mut server = Server { special, open: HashMap::new(), next: 0, names: Names::read() };
    let mut answers = Answers::default();
    loop {
        let read = input.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        received.extend_from_slice(&piece[..read]);
        while let Some(packet) = codec.decode(&mut received)? {
            answers.add(server.answer(packet.freeze()).packet());
            if answers.are_many() {
                answers.write(&mut output)?;
            }
        }
        answers.write(&mut output)?;
    }
}

/// Answers that were not written yet.
#[derive(Debug, Default)]
struct Answers {
    waiting: Vec<Bytes>,
    bytes: usize,
}

impl Answers {
    fn add(&mut self, answer: Bytes) {
        self.bytes += answer.len();
        self.waiting.push(answer);
    }

    fn are_many(&self) -> bool {
        self.bytes >= BATCH_BYTES || self.waiting.len() >= BATCH_MAX
    }

    fn write(&mut self, to: &mut File) -> io::Result<()> {
        let mut slices: Vec<_> = self.waiting.iter().map(|answer| IoSlice::new(answer)).collect();
        let mut slices = slices.as_mut_slice();
        while !slices.is_empty() {
            match to.write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut slices, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.waiting.clear();
        self.bytes = 0;
        Ok(())
    }
}

impl Server {
    fn answer(&mut self, packet: Bytes) -> Reply {
        let mut fields = Fields::new(packet);
        let head = fields.byte().and_then(|what| Ok((what, fields.number()?)));
        match head {
            Ok((kind::INIT, _)) => version(),
            Ok((what, id)) => self.handle(what, id, &mut fields).unwrap_or_else(|refused| refused.reply(id)),
            Err(refused) => refused.reply(0),
        }
    }

    fn handle(&mut self, what: u8, id: u32, fields: &mut Fields) -> Answer {
        match what {
            kind::OPEN => self.open_file(id, fields),
            kind::CLOSE => self.close(id, fields),
            kind::READ => self.read(id, fields),
            kind::WRITE => self.write(id, fields),
            kind::STAT => files::stat(id, &fields.path()?, true),
            kind::LSTAT => files::stat(id, &fields.path()?, false),
            kind::FSTAT => self.stat_handle(id, fields),
            kind::SETSTAT => {
                let (path, wanted) = (fields.path()?, fields.attributes()?);
                attributes::set(Whose::Path(&path), &wanted)?;
                Ok(Reply::done(id))
            }
            kind::FSETSTAT => {
                let (file, wanted) = (self.file(fields)?, fields.attributes()?);
                attributes::set(Whose::File(file), &wanted)?;
                Ok(Reply::done(id))
            }
            kind::OPENDIR => self.open_directory(id, fields),
            kind::READDIR => self.read_directory(id, fields),
            kind::REMOVE => {
                std::fs::remove_file(fields.path()?)?;
                Ok(Reply::done(id))
            }
            kind::MKDIR => files::make_directory(id, fields),
            kind::RMDIR => {
                std::fs::remove_dir(fields.path()?)?;
                Ok(Reply::done(id))
            }
            kind::REALPATH => files::real_path(id, &fields.path()?),
            kind::RENAME => files::rename(id, fields),
            kind::READLINK => Ok(files::named(id, &std::fs::read_link(fields.path()?)?)),
            kind::SYMLINK => {
                // OpenSSH sends the two the other way round than the draft says, and so do all others.
                let (target, link) = (fields.path()?, fields.path()?);
                std::os::unix::fs::symlink(target, link)?;
                Ok(Reply::done(id))
            }
            kind::EXTENDED => self.extended(id, fields),
            _ => Err(Refused::Status(Status::Unsupported)),
        }
    }
}

fn version() -> Reply {
    // In the place of an id.
    let reply = Reply::new(kind::VERSION, VERSION);
    EXTENSIONS
        .iter()
        .fold(reply, |reply, (name, number)| reply.bytes(name.as_bytes()).bytes(number.as_bytes()))
}

impl Refused {
    fn reply(self, id: u32) -> Reply {
        let (status, words) = match self {
            Self::System(error) => {
                let status = [
                    (io::ErrorKind::NotFound, Status::NoSuchFile),
                    (io::ErrorKind::PermissionDenied, Status::PermissionDenied),
                    (io::ErrorKind::Unsupported, Status::Unsupported),
                ]
                .into_iter()
                .find_map(|(kind, status)| (error.kind() == kind).then_some(status));
                let words = error.to_string();
                let words = words.split(" (os error").next().unwrap_or_default().to_owned();
                (status.unwrap_or(Status::Failure), words)
            }
            Self::Status(status) => (status, status.words().to_owned()),
            Self::Words(words) => (Status::Failure, words.to_owned()),
        };
        Reply::status(id, status, &words)
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<rustix::io::Errno> for Refused {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}
