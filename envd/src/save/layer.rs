//! A container's changes as a layer: a tar archive with all that an image can hold of a file.
//!
//! Each file is opened again in the directory that it is in, and what is then found open is what is written: a file that
//! was replaced meanwhile is never mistaken for another, and one that shrinks is filled up. Holes are written as zeros,
//! since engines put an archive of theirs together again byte by byte and cannot do so with a sparse one.

use std::{
    collections::HashMap,
    ffi::CString,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{FileType, Mode, OFlags, SeekFrom},
    io::Errno,
};
use tar::{EntryType, Header};

use super::{
    snapshot::Difference,
    walk::{About, Found, GONE, Kind, Listing, by_descriptor, is_gone, join, open_below, split},
};

/// What stands in a directory whose contents in earlier layers do not count.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;
/// The longest value of an extended attribute that the kernel has.
const ATTRIBUTE_MAX: usize = 64 << 10;
const NAME_MAX: usize = 100;
/// The largest numbers that fit the fields of a header.
const ID_MAX: u32 = 0o777_7777;
const SIZE_MAX: u64 = 0o777_7777_7777;
const TIME_MAX: i64 = 0o777_7777_7777;
const BLOCK: u64 = 512;

/// Writes layers to `out`, telling `progress` how many bytes of files are done; it ends the writing with an error.
pub(super) struct Layer<'a, W, P> {
    out: W,
    /// The directories that entries are in, by the numbers that they have there.
    roots: &'a [OwnedFd],
    /// The directory that was used last.
    directory: Option<(usize, Vec<u8>, OwnedFd)>,
    /// Files with several names that were written, by the first of them.
    written: HashMap<u64, Vec<u8>>,
    /// What was there when it was listed, and not any more.
    vanished: Vec<Vec<u8>>,
    progress: P,
    piece: Vec<u8>,
}

impl<'a, W: Write, P: FnMut(u64) -> io::Result<()>> Layer<'a, W, P> {
    pub(super) fn new(out: W, roots: &'a [OwnedFd], progress: P) -> Self {
        Self {
            out,
            roots,
            directory: None,
            written: HashMap::new(),
            vanished: Vec::new(),
            progress,
            piece: vec![0; PIECE],
        }
    }

    /// Writes all that `difference` wants of `listing`, and the end of the archive; tells what has vanished meanwhile.
    pub(super) fn write(
        mut self,
        listing: &Listing,
        difference: &Difference,
    ) -> io::Result<(W, Vec<Vec<u8>>)> {
        for (at, found) in listing.found.iter().enumerate() {
            if !difference.wanted[at] || found.path.is_empty() {
                continue;
            }
            (self.progress)(0)?;
            self.entry(found, difference.hides[at])?;
        }
        for path in &difference.gone {
            self.gone(path)?;
        }
        self.out.write_all(&[0; 1024])?;
        Ok((self.out, self.vanished))
    }

    fn entry(&mut self, found: &Found, hides: bool) -> io::Result<()> {
        match found.kind {
            Kind::Gone => self.gone(&found.path),
            Kind::Directory { .. } => {
                let attributes = self.attributes(found)?;
                let mut path = found.path.clone();
                path.push(b'/');
                self.head(&Head::new(EntryType::Directory, &path, &found.about, &attributes))?;
                if hides {
                    self.empty(&join(&found.path, OPAQUE))?;
                }
                Ok(())
            }
            Kind::File => self.file(found),
            Kind::Symlink => self.symlink(found),
            Kind::Fifo => {
                let attributes = self.attributes(found)?;
                self.head(&Head::new(EntryType::Fifo, &found.path, &found.about, &attributes))
            }
        }
    }

    fn vanished(&mut self, path: &[u8]) -> io::Result<()> {
        self.vanished.push(path.to_vec());
        self.gone(path)
    }

    fn gone(&mut self, path: &[u8]) -> io::Result<()> {
        let (parent, name) = split(path);
        self.empty(&join(parent, &[GONE, name].concat()))
    }

    fn empty(&mut self, path: &[u8]) -> io::Result<()> {
        let about = About { mode: 0o644, ..About::default() };
        self.head(&Head::new(EntryType::Regular, path, &about, &[]))
    }

    fn symlink(&mut self, found: &Found) -> io::Result<()> {
        let (parent, name) = split(&found.path);
        let Some(directory) = self.directory(found.root, parent)? else {
            return self.vanished(&found.path);
        };
        let target = match rustix::fs::readlinkat(directory, name, Vec::new()) {
            Ok(target) => target,
            Err(Errno::NOENT | Errno::INVAL) => return self.vanished(&found.path),
            Err(error) => return Err(error.into()),
        };
        let head = Head::new(EntryType::Symlink, &found.path, &found.about, &[]);
        self.head(&Head { link: target.to_bytes(), ..head })
    }

    fn file(&mut self, found: &Found) -> io::Result<()> {
        let (parent, name) = split(&found.path);
        let Some(directory) = self.directory(found.root, parent)? else {
            return self.vanished(&found.path);
        };
        // Without waiting for the other end of what has become a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOATIME;
        let opened = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(error) if is_gone(&error.into()) || error == Errno::NXIO => {
                return self.vanished(&found.path);
            }
            Err(error) => return Err(error.into()),
        };
        let stat = rustix::fs::fstat(&opened)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return self.vanished(&found.path);
        }
        let about = About::of(&stat);
        if about.links > 1
            && let Some(first) = self.written.get(&about.inode).cloned()
        {
            let about = About { size: 0, ..about };
            let head = Head::new(EntryType::Link, &found.path, &about, &[]);
            return self.head(&Head { link: &first, ..head });
        }
        let attributes = attributes(&opened_path(opened.as_fd()), true)?;
        let head = Head::new(EntryType::Regular, &found.path, &about, &attributes);
        self.head(&head)?;
        self.content(&opened, &about)?;
        if about.links > 1 {
            self.written.insert(about.inode, found.path.clone());
        }
        Ok(())
    }

    /// Exactly `about.size` bytes, whatever becomes of the file meanwhile.
    fn content(&mut self, file: &OwnedFd, about: &About) -> io::Result<()> {
        let sparse = about.blocks.saturating_mul(BLOCK) < about.size;
        let mut at = 0;
        while at < about.size {
            let data = if sparse { next(file, SeekFrom::Data(at))?.unwrap_or(about.size) } else { at };
            let data = data.clamp(at, about.size);
            self.zeros(data - at)?;
            at = data;
            let end = if sparse { next(file, SeekFrom::Hole(at))?.unwrap_or(about.size) } else { about.size };
            let end = end.clamp(at, about.size);
            if sparse && at < end {
                rustix::fs::seek(file, SeekFrom::Start(at))?;
            }
            self.copy(file, end - at)?;
            at = end;
        }
        self.out.write_all(pad(about.size))
    }

    fn copy(&mut self, file: &OwnedFd, mut left: u64) -> io::Result<()> {
        let mut file = std::fs::File::from(file.try_clone()?);
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE);
            let read = file.read(&mut self.piece[..most])?;
            if read == 0 {
                return self.zeros(left);
            }
            self.out.write_all(&self.piece[..read])?;
            left -= read as u64;
            (self.progress)(read as u64)?;
        }
        Ok(())
    }

    fn zeros(&mut self, mut left: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
            self.out.write_all(&ZEROS[..most])?;
            left -= most as u64;
            (self.progress)(most as u64)?;
        }
        Ok(())
    }

    fn head(&mut self, head: &Head<'_>) -> io::Result<()> {
        write_records(&mut self.out, &head.records())?;
        self.out.write_all(head.header().as_bytes())
    }

    /// The extended attributes of something that need not be open.
    fn attributes(&mut self, found: &Found) -> io::Result<Vec<(String, Vec<u8>)>> {
        let (parent, name) = split(&found.path);
        let Some(directory) = self.directory(found.root, parent)? else { return Ok(Vec::new()) };
        attributes(&by_descriptor(directory.as_fd(), name), false)
    }

    /// The directory at `path`; `None` if it is gone.
    fn directory(&mut self, root: usize, path: &[u8]) -> io::Result<Option<&OwnedFd>> {
        if self.directory.as_ref().is_none_or(|(of, open, _)| (*of, open.as_slice()) != (root, path)) {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
            match open_below(&self.roots[root], path, flags) {
                Ok(directory) => self.directory = Some((root, path.to_vec(), directory)),
                Err(error) if is_gone(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(self.directory.as_ref().map(|(.., directory)| directory))
    }
}

/// Where data, or a hole, begins; `None` when there is none any more.
fn next(file: &OwnedFd, what: SeekFrom) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, what) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn opened_path(file: std::os::fd::BorrowedFd<'_>) -> Vec<u8> {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into_bytes()
}

/// The attributes that an image can hold. What the file system keeps for itself is not the user's, and nobody in a
/// container can set a trusted one.
fn attributes(path: &[u8], follow: bool) -> io::Result<Vec<(String, Vec<u8>)>> {
    let path = CString::new(path).map_err(io::Error::other)?;
    let mut list = vec![0; ATTRIBUTE_MAX];
    let length = if follow {
        rustix::fs::listxattr(&path, &mut list[..])
    } else {
        rustix::fs::llistxattr(&path, &mut list[..])
    };
    let length = match length {
        Ok(length) => length,
        Err(Errno::NOTSUP | Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut attributes = Vec::new();
    for name in list[..length].split(|&byte| byte == 0).filter_map(|name| str::from_utf8(name).ok()) {
        let is_kept = name == "security.capability"
            || name.starts_with("system.posix_acl_")
            || (name.starts_with("user.") && !name.starts_with("user.overlay."));
        if !is_kept {
            continue;
        }
        let mut value = vec![0; ATTRIBUTE_MAX];
        let length = if follow {
            rustix::fs::getxattr(&path, name, &mut value[..])
        } else {
            rustix::fs::lgetxattr(&path, name, &mut value[..])
        };
        match length {
            Ok(length) => value.truncate(length),
            Err(Errno::NODATA | Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        }
        attributes.push((name.to_owned(), value));
    }
    attributes.sort();
    Ok(attributes)
}

/// The head of one entry.
struct Head<'a> {
    kind: EntryType,
    path: &'a [u8],
    link: &'a [u8],
    about: &'a About,
    attributes: &'a [(String, Vec<u8>)],
}

impl<'a> Head<'a> {
    fn new(kind: EntryType, path: &'a [u8], about: &'a About, attributes: &'a [(String, Vec<u8>)]) -> Self {
        Self { kind, path, link: &[], about, attributes }
    }

    fn header(&self) -> Header {
        let about = self.about;
        let mut header = Header::new_ustar();
        header.set_entry_type(self.kind);
        let fill = |field: &mut [u8], value: &[u8]| {
            let length = value.len().min(field.len());
            field[..length].copy_from_slice(&value[..length]);
        };
        fill(&mut header.as_old_mut().name, self.path);
        fill(&mut header.as_old_mut().linkname, self.link);
        header.set_mode(about.mode);
        header.set_uid(u64::from(about.uid.min(ID_MAX)));
        header.set_gid(u64::from(about.gid.min(ID_MAX)));
        header.set_size(about.size.min(SIZE_MAX));
        header.set_mtime(about.modified.0.clamp(0, TIME_MAX).cast_unsigned());
        header.set_cksum();
        header
    }

    /// What does not fit the header's fields, as PAX records.
    fn records(&self) -> Vec<u8> {
        let about = self.about;
        let mut records = Vec::new();
        let mut add = |key: &str, value: &[u8]| records.extend(record(key, value));
        if self.path.len() > NAME_MAX {
            add("path", self.path);
        }
        if self.link.len() > NAME_MAX {
            add("linkpath", self.link);
        }
        if about.uid > ID_MAX {
            add("uid", about.uid.to_string().as_bytes());
        }
        if about.gid > ID_MAX {
            add("gid", about.gid.to_string().as_bytes());
        }
        if about.size > SIZE_MAX {
            add("size", about.size.to_string().as_bytes());
        }
        let (seconds, nanoseconds) = about.modified;
        if nanoseconds > 0 || !(0..=TIME_MAX).contains(&seconds) {
            add("mtime", decimal(seconds, nanoseconds).as_bytes());
        }
        for (name, value) in self.attributes {
            add(&format!("SCHILY.xattr.{name}"), value);
        }
        records
    }
}

/// Seconds with a fraction. Before 1970 the fraction counts towards the past.
fn decimal(seconds: i64, nanoseconds: u32) -> String {
    if seconds >= 0 || nanoseconds == 0 {
        return format!("{seconds}.{nanoseconds:09}");
    }
    let (seconds, nanoseconds) = (seconds + 1, 1_000_000_000 - nanoseconds);
    format!("-{}.{nanoseconds:09}", seconds.unsigned_abs())
}

/// Writes the records of the entry that comes next.
pub(super) fn write_records(out: &mut impl Write, records: &[u8]) -> io::Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::XHeader);
    header.as_old_mut().name[..9].copy_from_slice(b"PaxHeader");
    header.set_mode(0o644);
    header.set_size(records.len() as u64);
    header.set_cksum();
    out.write_all(header.as_bytes())?;
    out.write_all(records)?;
    out.write_all(pad(records.len() as u64))
}

/// What follows so many bytes, up to the next entry.
pub(super) fn pad(size: u64) -> &'static [u8] {
    let over = usize::try_from(size % BLOCK).unwrap_or(0);
    if over > 0 { &[0; 512][over..] } else { &[] }
}

/// `LENGTH KEY=VALUE\n`, whose length counts itself.
pub(super) fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    let mut record = format!("{length} {key}=").into_bytes();
    record.extend_from_slice(value);
    record.push(b'\n');
    record
}

/// For those who only want to know what a walk would write.
pub(super) fn content_bytes(listing: &Listing, difference: &Difference) -> u64 {
    let mut linked = std::collections::HashSet::new();
    let wanted = listing.found.iter().enumerate().filter(|(at, _)| difference.wanted[*at]);
    wanted
        .filter(|(_, found)| found.kind == Kind::File)
        .filter(|(_, found)| found.about.links < 2 || linked.insert(found.about.inode))
        .map(|(_, found)| found.about.size)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        assert_eq!(record("path", b"x"), b"9 path=x\n");
        assert_eq!(record("a", b"bc"), b"7 a=bc\n");
        for length in 80..120 {
            let record = record("path", &vec![b'x'; length]);
            let said: usize = String::from_utf8_lossy(&record).split(' ').next().unwrap().parse().unwrap();
            assert_eq!(said, record.len());
        }
    }

    #[test]
    fn times_have_a_fraction_on_both_sides_of_1970() {
        assert_eq!(decimal(12, 5), "12.000000005");
        assert_eq!(decimal(-2, 750_000_000), "-1.250000000");
        assert_eq!(decimal(-2, 0), "-2.000000000");
    }
}
