//! The archive that an engine gives out of a container's files, entry by entry.

use std::{
    borrow::Cow,
    io::{self, Read, Write},
};

use tar::{EntryType, Header, PaxExtensions};

use crate::save::layer::{pad, record, write_records};

/// The most that may stand before an entry: long names and attributes.
const RECORDS_MAX: u64 = 1 << 20;
const BLOCK: usize = 512;
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

/// An archive that is being read. After each entry its content has to be taken or passed over.
pub(super) struct Archive<R> {
    from: R,
    piece: Vec<u8>,
}

/// One entry, without its content.
pub(super) struct Entry {
    header: Header,
    records: Vec<(String, Vec<u8>)>,
    /// Without `/` at either end; empty for the root itself.
    pub(super) path: Vec<u8>,
    /// Where a link leads. Of hard links, a path as above.
    pub(super) link: Vec<u8>,
    pub(super) size: u64,
}

impl<R: Read> Archive<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, piece: vec![0; PIECE] }
    }

    /// The next entry; `None` at the end of the archive. One that just stops is an error: the rest would be missing unsaid.
    pub(super) fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut records = Vec::new();
        loop {
            let mut block = [0; BLOCK];
            self.from.read_exact(&mut block)?;
            if block == [0; BLOCK] {
                return Ok(None);
            }
            let header = Header::from_byte_slice(&block).clone();
            let Some(before) = Before::of(header.entry_type()) else {
                return Entry::new(header, records).map(Some);
            };
            let text = self.small(header.entry_size()?)?;
            match before {
                Before::Name(key) => {
                    let name = text.split(|&byte| byte == 0).next().unwrap_or_default();
                    records.push((key.to_owned(), name.to_vec()));
                }
                Before::Records => {
                    for one in PaxExtensions::new(&text) {
                        let one = one?;
                        let key = one.key().map_err(io::Error::other)?.to_owned();
                        records.push((key, one.value_bytes().to_vec()));
                    }
                }
            }
        }
    }

    /// Hands the content of an entry to `take`, a piece at a time.
    pub(super) fn content(
        &mut self,
        entry: &Entry,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut left = entry.size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE);
            self.from.read_exact(&mut self.piece[..most])?;
            take(&self.piece[..most])?;
            left -= most as u64;
        }
        self.from.read_exact(&mut self.piece[..pad(entry.size).len()])
    }

    fn small(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size > RECORDS_MAX {
            return Err(io::Error::other("the engine's archive has too long a head"));
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        self.from.read_exact(&mut bytes)?;
        self.from.read_exact(&mut self.piece[..pad(size).len()])?;
        Ok(bytes)
    }
}

/// What stands before an entry and belongs to it.
enum Before {
    Records,
    /// A long name, for this record.
    Name(&'static str),
}

impl Before {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest are entries")]
    fn of(kind: EntryType) -> Option<Self> {
        match kind {
            EntryType::XHeader | EntryType::XGlobalHeader => Some(Self::Records),
            EntryType::GNULongName => Some(Self::Name("path")),
            EntryType::GNULongLink => Some(Self::Name("linkpath")),
            _ => None,
        }
    }
}

impl Entry {
    fn new(header: Header, records: Vec<(String, Vec<u8>)>) -> io::Result<Self> {
        let said =
            |key: &str| records.iter().rev().find(|(one, _)| one == key).map(|(_, value)| value.as_slice());
        let path = said("path").map_or_else(|| header.path_bytes().into_owned(), <[u8]>::to_vec);
        let link = header.link_name_bytes().map(Cow::into_owned).unwrap_or_default();
        let link = said("linkpath").map_or(link, <[u8]>::to_vec);
        let size = said("size").map(|size| String::from_utf8_lossy(size).parse::<u64>());
        let size = size.transpose().map_err(io::Error::other)?;
        let size = size.map_or_else(|| header.entry_size(), Ok)?;
        if header.entry_type() == EntryType::GNUSparse {
            return Err(io::Error::other("the engine's archive has files with holes"));
        }
        let has_content = matches!(header.entry_type(), EntryType::Regular | EntryType::Continuous);
        let is_hard_link = header.entry_type() == EntryType::Link;
        Ok(Self {
            path: trimmed(&path),
            link: if is_hard_link { trimmed(&link) } else { link },
            size: if has_content { size } else { 0 },
            header,
            records,
        })
    }

    pub(super) fn kind(&self) -> EntryType {
        self.header.entry_type()
    }

    /// By another name.
    pub(super) fn named(mut self, path: Vec<u8>) -> Self {
        self.records.retain(|(key, _)| key != "path");
        self.records.push(("path".to_owned(), path.clone()));
        self.path = path;
        self
    }

    /// As a link that leads elsewhere.
    pub(super) fn linked(mut self, link: Vec<u8>) -> Self {
        self.records.retain(|(key, _)| key != "linkpath");
        self.records.push(("linkpath".to_owned(), link.clone()));
        self.link = link;
        self
    }

    /// Its head, with all that the engine says of it.
    pub(super) fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        let records: Vec<_> = self.records.iter().flat_map(|(key, value)| record(key, value)).collect();
        write_records(out, &records)?;
        out.write_all(self.header.as_bytes())
    }
}

fn trimmed(path: &[u8]) -> Vec<u8> {
    let path = path.strip_prefix(b"./").unwrap_or(path);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    if path == b"." { Vec::new() } else { path.to_vec() }
}
