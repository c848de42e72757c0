//! Packets of SFTP version 3: fields as they come, answers as they are made. Names are bytes, as they are on the file
//! system: whatever a file is called, it can be listed, fetched and removed.

use std::{ffi::OsString, io, os::unix::ffi::OsStringExt as _, path::PathBuf};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::{Refused, attributes::Attributes};

/// What a client asks.
pub(super) mod kind {
    pub(crate) const INIT: u8 = 1;
    pub(crate) const VERSION: u8 = 2;
    pub(crate) const OPEN: u8 = 3;
    pub(crate) const CLOSE: u8 = 4;
    pub(crate) const READ: u8 = 5;
    pub(crate) const WRITE: u8 = 6;
    pub(crate) const LSTAT: u8 = 7;
    pub(crate) const FSTAT: u8 = 8;
    pub(crate) const SETSTAT: u8 = 9;
    pub(crate) const FSETSTAT: u8 = 10;
    pub(crate) const OPENDIR: u8 = 11;
    pub(crate) const READDIR: u8 = 12;
    pub(crate) const REMOVE: u8 = 13;
    pub(crate) const MKDIR: u8 = 14;
    pub(crate) const RMDIR: u8 = 15;
    pub(crate) const REALPATH: u8 = 16;
    pub(crate) const STAT: u8 = 17;
    pub(crate) const RENAME: u8 = 18;
    pub(crate) const READLINK: u8 = 19;
    pub(crate) const SYMLINK: u8 = 20;
    pub(crate) const STATUS: u8 = 101;
    pub(crate) const HANDLE: u8 = 102;
    pub(crate) const DATA: u8 = 103;
    pub(crate) const NAME: u8 = 104;
    pub(crate) const ATTRS: u8 = 105;
    pub(crate) const EXTENDED: u8 = 200;
    pub(crate) const EXTENDED_REPLY: u8 = 201;
}

/// Bits that say which attributes follow.
const SIZE: u32 = 1;
const OWNER: u32 = 2;
const MODE: u32 = 4;
const TIMES: u32 = 8;
const EXTENDED: u32 = 0x8000_0000;

/// How a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok = 0,
    Eof = 1,
    NoSuchFile = 2,
    PermissionDenied = 3,
    Failure = 4,
    BadMessage = 5,
    Unsupported = 8,
}

impl Status {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Ok => "Success",
            Self::Eof => "End of file",
            Self::NoSuchFile => "No such file",
            Self::PermissionDenied => "Permission denied",
            Self::Failure => "Failure",
            Self::BadMessage => "Bad message",
            Self::Unsupported => "Operation unsupported",
        }
    }
}

/// What is left of a request.
#[derive(Debug)]
pub(super) struct Fields(Bytes);

type Read<T> = Result<T, Refused>;

impl Fields {
    pub(super) fn new(packet: Bytes) -> Self {
        Self(packet)
    }

    pub(super) fn byte(&mut self) -> Read<u8> {
        self.0.try_get_u8().map_err(|_| SHORT)
    }

    pub(super) fn number(&mut self) -> Read<u32> {
        self.0.try_get_u32().map_err(|_| SHORT)
    }

    pub(super) fn long(&mut self) -> Read<u64> {
        self.0.try_get_u64().map_err(|_| SHORT)
    }

    pub(super) fn bytes(&mut self) -> Read<Bytes> {
        let length = usize::try_from(self.number()?).map_err(|_| SHORT)?;
        if length > self.0.len() {
            return Err(SHORT);
        }
        Ok(self.0.split_to(length))
    }

    pub(super) fn path(&mut self) -> Read<PathBuf> {
        Ok(OsString::from_vec(self.bytes()?.to_vec()).into())
    }

    /// A handle as [`Reply::handle`] gave it.
    pub(super) fn handle(&mut self) -> Read<u64> {
        let bytes = self.bytes()?;
        let number = (&bytes[..]).try_into().map_err(|_| Refused::Words("no such handle"))?;
        Ok(u64::from_be_bytes(number))
    }

    pub(super) fn attributes(&mut self) -> Read<Attributes> {
        let which = self.number()?;
        let mut attributes = Attributes::default();
        if which & SIZE != 0 {
            attributes.size = Some(self.long()?);
        }
        if which & OWNER != 0 {
            attributes.owner = Some((self.number()?, self.number()?));
        }
        if which & MODE != 0 {
            attributes.mode = Some(self.number()?);
        }
        if which & TIMES != 0 {
            attributes.times = Some((self.number()?, self.number()?));
        }
        if which & EXTENDED != 0 {
            for _ in 0..self.number()? {
                let (_name, _value) = (self.bytes()?, self.bytes()?);
            }
        }
        Ok(attributes)
    }
}

const SHORT: Refused = Refused::Status(Status::BadMessage);

/// An answer that is being made.
#[derive(Debug)]
pub(super) struct Reply(BytesMut);

impl Reply {
    pub(super) fn new(kind: u8, id: u32) -> Self {
        Self::with_room(kind, id, 64)
    }

    fn with_room(kind: u8, id: u32, room: usize) -> Self {
        let mut packet = BytesMut::with_capacity(room);
        // Where the length goes in the end.
        packet.put_u32(0);
        packet.put_u8(kind);
        packet.put_u32(id);
        Self(packet)
    }

    pub(super) fn status(id: u32, status: Status, words: &str) -> Self {
        Self::new(kind::STATUS, id).number(status as u32).bytes(words.as_bytes()).bytes(b"")
    }

    pub(super) fn done(id: u32) -> Self {
        Self::status(id, Status::Ok, Status::Ok.words())
    }

    pub(super) fn handle(id: u32, handle: u64) -> Self {
        Self::new(kind::HANDLE, id).bytes(&handle.to_be_bytes())
    }

    /// What `read` puts into a buffer of that size, without another copy.
    pub(super) fn data(
        id: u32,
        wanted: usize,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<(Self, usize)> {
        let mut reply = Self::with_room(kind::DATA, id, wanted + 16).number(0);
        let begin = reply.0.len();
        reply.0.resize(begin + wanted, 0);
        let got = read(&mut reply.0[begin..])?;
        reply.0.truncate(begin + got);
        let length = u32::try_from(got).map_err(io::Error::other)?;
        reply.0[begin - 4..begin].copy_from_slice(&length.to_be_bytes());
        Ok((reply, got))
    }

    pub(super) fn number(mut self, number: u32) -> Self {
        self.0.put_u32(number);
        self
    }

    pub(super) fn long(mut self, number: u64) -> Self {
        self.0.put_u64(number);
        self
    }

    /// Names and words, all of them far shorter than a packet.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.0.put_slice(bytes);
        self
    }

    pub(super) fn attributes(mut self, attributes: &Attributes) -> Self {
        let Attributes { size, owner, mode, times } = *attributes;
        let bit = |bit: u32, there: bool| if there { bit } else { 0 };
        self.0.put_u32(
            bit(SIZE, size.is_some())
                | bit(OWNER, owner.is_some())
                | bit(MODE, mode.is_some())
                | bit(TIMES, times.is_some()),
        );
        if let Some(size) = size {
            self.0.put_u64(size);
        }
        if let Some((user, group)) = owner {
            self = self.number(user).number(group);
        }
        if let Some(mode) = mode {
            self = self.number(mode);
        }
        if let Some((accessed, modified)) = times {
            self = self.number(accessed).number(modified);
        }
        self
    }

    /// The whole packet.
    pub(super) fn packet(mut self) -> Bytes {
        let length = u32::try_from(self.0.len() - 4).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        self.0.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_read_back_and_short_ones_are_refused() {
        let wanted =
            Attributes { size: Some(1 << 40), owner: Some((1, 2)), mode: Some(0o644), times: Some((3, 4)) };
        let packet = Reply::new(kind::ATTRS, 7).bytes(b"\xff\xfe").long(9).attributes(&wanted).packet();
        let length = packet.len();
        let read = |packet: Bytes| {
            let mut fields = Fields::new(packet);
            assert_eq!(usize::try_from(fields.number()?).unwrap() + 4, length);
            let (kind, id) = (fields.byte()?, fields.number()?);
            let read = (kind, id, fields.path()?, fields.long()?, fields.attributes()?);
            Ok::<_, Refused>(read)
        };
        let (kind, id, path, long, attributes) = read(packet.clone()).unwrap();
        assert_eq!((kind, id, long, attributes), (kind::ATTRS, 7, 9, wanted));
        assert_eq!(path.into_os_string().into_vec(), b"\xff\xfe");
        for length in 4..packet.len() {
            assert!(read(packet.slice(..length)).is_err(), "{length}");
        }
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let mut fields = Fields::new(Bytes::from_static(b"\xff\xff\xff\xffabc"));
        assert!(fields.bytes().is_err());
        // A billion attributes that are not there.
        let mut fields = Fields::new(Bytes::from_static(b"\x80\0\0\0\x40\0\0\0"));
        assert!(fields.attributes().is_err());
    }
}
