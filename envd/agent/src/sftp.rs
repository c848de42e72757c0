//! An SFTP server (version 3 with OpenSSH's extensions) on the instance's files.
//!
//! It is a process of its own that is the image's user, so the kernel decides what that user may, and it blocks freely.
//! Standard input and output are the gateway's own connection: nothing in between copies. Clients send many requests at
//! once; all that have arrived are answered before the answers are written together.
//!
//! Packets are read and written by `russh-sftp`. Its names are text: a file whose name is not UTF-8 is listed with
//! replacement characters and cannot be opened by that name.

mod attributes;
mod extended;
mod files;

use std::{
    collections::HashMap,
    fs::File,
    io::{self, IoSlice, Read as _, Write as _},
    process::ExitCode,
};

use bytes::{Bytes, BytesMut};
use russh_sftp::protocol::{Packet, Status, StatusCode, Version};
use tokio_util::codec::{Decoder as _, LengthDelimitedCodec};

use self::{attributes::Names, files::Open};

/// The longest packet, as OpenSSH has it.
const PACKET_MAX: usize = 256 << 10;
/// What is read or written at most by one request: it fits a packet with all that goes around it.
const DATA_MAX: usize = PACKET_MAX - 1024;
/// Files and directories open at once.
const HANDLES_MAX: usize = 1000;
/// Answers that wait to be written.
const BATCH_BYTES: usize = 512 << 10;
const BATCH_MAX: usize = 64;

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

/// The state of one conversation.
#[derive(Debug)]
struct Server {
    open: HashMap<String, Open>,
    next: u64,
    names: Names,
}

/// Why a request is not answered with what it asked for.
#[derive(Debug)]
enum Refused {
    System(io::Error),
    Code(StatusCode),
    Words(&'static str),
}

type Answer = Result<Packet, Refused>;

/// Serves on standard input and output until the gateway closes them.
pub(crate) fn serve() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run() -> io::Result<()> {
    let mut input = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let mut output = File::from(rustix::stdio::stdout().try_clone_to_owned()?);
    let mut codec = LengthDelimitedCodec::builder().max_frame_length(PACKET_MAX).new_codec();
    let mut received = BytesMut::new();
    let mut piece = vec![0; PACKET_MAX];
    let mut server = Server { open: HashMap::new(), next: 0, names: Names::read() };
    let mut answers = Answers::default();
    loop {
        let read = input.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        received.extend_from_slice(&piece[..read]);
        while let Some(packet) = codec.decode(&mut received)? {
            let answer = server.answer(&mut packet.freeze());
            answers.add(Bytes::try_from(answer).map_err(io::Error::other)?);
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
    fn answer(&mut self, bytes: &mut Bytes) -> Packet {
        let Ok(packet) = Packet::try_from(bytes) else {
            return Packet::error(0, StatusCode::BadMessage);
        };
        let id = packet.get_request_id();
        self.handle(packet).unwrap_or_else(|refused| refused.packet(id))
    }

    fn handle(&mut self, packet: Packet) -> Answer {
        match packet {
            Packet::Init(_) => Ok(version().into()),
            Packet::Open(open) => self.open_file(&open),
            Packet::Close(close) => {
                self.open.remove(&close.handle).ok_or(Refused::Words("no such handle"))?;
                Ok(done(close.id))
            }
            Packet::Read(read) => self.read(&read),
            Packet::Write(write) => self.write(&write),
            Packet::Stat(stat) => files::stat(stat.id, &stat.path, true),
            Packet::Lstat(stat) => files::stat(stat.id, &stat.path, false),
            Packet::Fstat(stat) => self.fstat(&stat),
            Packet::SetStat(set) => {
                attributes::set(set.path.as_str().into(), &set.attrs)?;
                Ok(done(set.id))
            }
            Packet::FSetStat(set) => {
                attributes::set(self.file(&set.handle)?.into(), &set.attrs)?;
                Ok(done(set.id))
            }
            Packet::OpenDir(open) => self.open_directory(&open),
            Packet::ReadDir(read) => self.read_directory(&read),
            Packet::Remove(remove) => {
                std::fs::remove_file(&remove.filename)?;
                Ok(done(remove.id))
            }
            Packet::MkDir(make) => files::make_directory(&make),
            Packet::RmDir(remove) => {
                std::fs::remove_dir(&remove.path)?;
                Ok(done(remove.id))
            }
            Packet::RealPath(real) => files::real_path(real.id, &real.path),
            Packet::Rename(rename) => files::rename(&rename),
            Packet::ReadLink(read) => files::read_link(&read),
            Packet::Symlink(link) => {
                // OpenSSH sends the two the other way round than the draft says, and so do all others.
                std::os::unix::fs::symlink(&link.linkpath, &link.targetpath)?;
                Ok(done(link.id))
            }
            Packet::Extended(extended) => self.extended(&extended),
            Packet::Version(_)
            | Packet::Status(_)
            | Packet::Handle(_)
            | Packet::Data(_)
            | Packet::Name(_)
            | Packet::Attrs(_)
            | Packet::ExtendedReply(_) => Err(Refused::Code(StatusCode::BadMessage)),
        }
    }
}

fn version() -> Version {
    let mut version = Version::new();
    version.extensions =
        EXTENSIONS.iter().map(|(name, number)| ((*name).to_owned(), (*number).to_owned())).collect();
    version
}

fn done(id: u32) -> Packet {
    Packet::Status(Status {
        id,
        status_code: StatusCode::Ok,
        error_message: "Success".to_owned(),
        language_tag: String::new(),
    })
}

impl Refused {
    fn packet(self, id: u32) -> Packet {
        let (code, words) = match self {
            Self::System(error) => {
                let code = [
                    (io::ErrorKind::NotFound, StatusCode::NoSuchFile),
                    (io::ErrorKind::PermissionDenied, StatusCode::PermissionDenied),
                    (io::ErrorKind::Unsupported, StatusCode::OpUnsupported),
                ]
                .into_iter()
                .find_map(|(kind, code)| (error.kind() == kind).then_some(code));
                let code = code.unwrap_or(StatusCode::Failure);
                let words = error.to_string();
                let words = words.split(" (os error").next().unwrap_or_default().to_owned();
                (code, words)
            }
            Self::Code(code) => (code, code.to_string()),
            Self::Words(words) => (StatusCode::Failure, words.to_owned()),
        };
        Packet::status(id, code, &words, "")
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
