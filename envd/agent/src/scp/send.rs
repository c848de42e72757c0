//! `scp -f`: gives files to the client.

use std::{
    fs::{File, Metadata},
    io::{self, Read as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

use super::{Options, PIECE, Wire};

pub(super) fn all(wire: &mut Wire, options: &Options, paths: &[PathBuf]) -> io::Result<()> {
    if wire.is_agreed()? {
        for path in paths {
            one(wire, options, path)?;
        }
    }
    Ok(())
}

fn one(wire: &mut Wire, options: &Options, path: &Path) -> io::Result<()> {
    // What is no file must not keep anybody waiting.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from);
    let found = opened.map(File::from).and_then(|file| Ok((file.metadata()?, file)));
    let (about, file) = match found {
        Ok(found) => found,
        Err(error) => return wire.complain(path, &error),
    };
    let name = name(path);
    if name.contains(&b'\n') {
        return wire.complain(path, &"its name has two lines");
    }
    if about.is_dir() && options.recursive {
        return directory(wire, options, path, &about, &name);
    }
    if !about.is_file() {
        return wire.complain(path, &"not a regular file");
    }
    if !times(wire, options, &about)? || !announce(wire, 'C', &about, about.len(), &name)? {
        return Ok(());
    }
    match content(wire, file, about.len())? {
        Ok(()) => wire.agree()?,
        Err(error) => wire.complain(path, &error)?,
    }
    wire.is_agreed().map(drop)
}

fn directory(
    wire: &mut Wire,
    options: &Options,
    path: &Path,
    about: &Metadata,
    name: &[u8],
) -> io::Result<()> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return wire.complain(path, &error),
    };
    if !times(wire, options, about)? || !announce(wire, 'D', about, 0, name)? {
        return Ok(());
    }
    for entry in entries {
        match entry {
            Ok(entry) => one(wire, options, &entry.path())?,
            Err(error) => wire.complain(path, &error)?,
        }
    }
    wire.say(b"E\n")?;
    wire.is_agreed().map(drop)
}

fn announce(wire: &mut Wire, kind: char, about: &Metadata, size: u64, name: &[u8]) -> io::Result<bool> {
    let mode = about.permissions().mode() & 0o7777;
    let mut line = format!("{kind}{mode:04o} {size} ").into_bytes();
    line.extend_from_slice(name);
    line.push(b'\n');
    wire.say(&line)?;
    wire.is_agreed()
}

fn times(wire: &mut Wire, options: &Options, about: &Metadata) -> io::Result<bool> {
    if !options.preserve {
        return Ok(true);
    }
    wire.say(format!("T{} 0 {} 0\n", about.mtime().max(0), about.atime().max(0)).as_bytes())?;
    wire.is_agreed()
}

/// Exactly as many bytes as were announced, whatever happens to the file meanwhile.
fn content(wire: &mut Wire, mut file: File, size: u64) -> io::Result<io::Result<()>> {
    let mut piece = vec![0; PIECE];
    let (mut left, mut went) = (size, Ok(()));
    while left > 0 {
        let at_once = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let got = match if went.is_ok() { file.read(&mut piece[..at_once]) } else { Ok(0) } {
            Ok(got @ 1..) => got,
            Ok(_) => {
                went = went.and(Err(io::Error::other("it became shorter meanwhile")));
                piece.fill(0);
                at_once
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                went = Err(error);
                continue;
            }
        };
        wire.say(&piece[..got])?;
        left -= u64::try_from(got).unwrap_or(left);
    }
    Ok(went)
}

/// The last part of a path.
fn name(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let name = bytes[..end].rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if name.is_empty() { b".".to_vec() } else { name.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_is_the_name() {
        for (path, expected) in
            [("a/b", "b"), ("a/b//", "b"), ("b", "b"), ("/", "."), (".", "."), ("a/..", "..")]
        {
            assert_eq!(name(Path::new(path)), expected.as_bytes(), "{path}");
        }
    }
}
