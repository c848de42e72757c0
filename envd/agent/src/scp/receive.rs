//! `scp -t`: takes files from the client.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps};

use super::{Options, PIECE, Wire};

/// What the other side says of the file or directory that comes next.
#[derive(Debug, PartialEq, Eq)]
struct Announced {
    is_directory: bool,
    mode: u32,
    size: u64,
    name: PathBuf,
}

/// When something was changed and read last, in seconds.
type Times = (i64, i64);

pub(super) fn all(wire: &mut Wire, options: &Options, target: &Path) -> io::Result<()> {
    let target = if target.as_os_str().is_empty() { Path::new(".") } else { target };
    if options.directory && !target.is_dir() {
        return wire.give_up(&format!("{}: not a directory", target.display()));
    }
    into(wire, options, target)
}

/// Takes what comes, until the end of this directory or of everything.
fn into(wire: &mut Wire, options: &Options, target: &Path) -> io::Result<()> {
    let mut times = None;
    wire.agree()?;
    while let Some(line) = wire.line()? {
        match line.split_first() {
            Some((1, _)) => wire.failed = true,
            Some((2, _)) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Some((b'E', _)) => return wire.agree(),
            Some((b'T', rest)) => {
                times = read_times(rest);
                wire.agree()?;
            }
            Some((b'C' | b'D', _)) => match announced(&line) {
                Some(next) if next.is_directory && !options.recursive => {
                    return wire.give_up("a directory came, and nobody asked for directories");
                }
                Some(next) => {
                    let path = if target.is_dir() { target.join(&next.name) } else { target.to_owned() };
                    let times = times.take().filter(|_| options.preserve);
                    if next.is_directory {
                        directory(wire, options, &next, &path, times)?;
                    } else {
                        file(wire, options, &next, &path, times)?;
                    }
                }
                None => return wire.give_up("this is not the name of a file"),
            },
            Some(_) | None => return wire.give_up("this is not how `scp` speaks"),
        }
    }
    Ok(())
}

fn directory(
    wire: &mut Wire,
    options: &Options,
    next: &Announced,
    path: &Path,
    times: Option<Times>,
) -> io::Result<()> {
    let made = if path.is_dir() {
        Ok(())
    } else {
        // Open to its owner until all is in it.
        fs::DirBuilder::new().mode(next.mode | 0o700).create(path)
    };
    if let Err(error) = made {
        return wire.complain(path, &error);
    }
    into(wire, options, path)?;
    if options.preserve
        && let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(next.mode))
            .and_then(|()| set_times(path, times))
    {
        return wire.complain(path, &error);
    }
    Ok(())
}

fn file(
    wire: &mut Wire,
    options: &Options,
    next: &Announced,
    path: &Path,
    times: Option<Times>,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::fs::open(path, flags, Mode::from_raw_mode(next.mode | 0o200));
    let mut file = match opened {
        Ok(file) => File::from(file),
        Err(error) => return wire.complain(path, &io::Error::from(error)),
    };
    wire.agree()?;
    let written = content(wire, &mut file, next.size)?;
    // They may say that they could not read it all; there is nothing to add to that.
    let _is_whole = wire.is_agreed()?;
    let whole = written.and_then(|()| {
        if file.metadata()?.is_file() {
            file.set_len(next.size)?;
        }
        if options.preserve {
            file.set_permissions(fs::Permissions::from_mode(next.mode))?;
        }
        set_times(path, times)
    });
    match whole {
        Ok(()) => wire.agree(),
        Err(error) => wire.complain(path, &error),
    }
}

/// Takes exactly as many bytes as were announced; what cannot be written is told in the end.
fn content(wire: &mut Wire, file: &mut File, size: u64) -> io::Result<io::Result<()>> {
    let mut piece = vec![0; PIECE];
    let (mut left, mut went) = (size, Ok(()));
    while left > 0 {
        let at_once = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let got = wire.input.read(&mut piece[..at_once])?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if went.is_ok() {
            went = file.write_all(&piece[..got]);
        }
        left -= u64::try_from(got).unwrap_or(left);
    }
    Ok(went)
}

/// `C0644 1234 name`, or `D0755 0 name`. Never a name that leads elsewhere.
fn announced(line: &[u8]) -> Option<Announced> {
    let (kind, rest) = line.split_first()?;
    let mut parts = rest.splitn(3, |byte| *byte == b' ');
    let (mode, size, name) = (parts.next()?, parts.next()?, parts.next()?);
    let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok().filter(|mode| *mode <= 0o7777)?;
    let size = number(size)?;
    let leads_elsewhere = matches!(name, b"" | b"." | b"..") || name.contains(&b'/') || name.contains(&0);
    let name = PathBuf::from(OsStr::from_bytes(name));
    (!leads_elsewhere).then_some(Announced { is_directory: *kind == b'D', mode, size, name })
}

/// `1700000000 0 1700000000 0`: changed and read, each with its millionths.
fn read_times(text: &[u8]) -> Option<Times> {
    let mut parts = text.split(|byte| *byte == b' ');
    let (changed, _, read) = (parts.next()?, parts.next()?, parts.next()?);
    Some((number(changed)?, number(read)?))
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn set_times(path: &Path, times: Option<Times>) -> io::Result<()> {
    let Some((changed, read)) = times else { return Ok(()) };
    let at = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
    let times = Timestamps { last_access: at(read), last_modification: at(changed) };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_where_they_are_put() {
        let name = PathBuf::from("a b");
        let expected = Announced { is_directory: false, mode: 0o644, size: 12, name };
        assert_eq!(announced(b"C0644 12 a b"), Some(expected));
        for bad in [
            &b"C0644 12 ../x"[..],
            b"C0644 12 ..",
            b"D0755 0 .",
            b"C0644 12 /etc/passwd",
            b"C0644 12 ",
            b"C0644 -1 x",
            b"C77777 1 x",
            b"C0644 99999999999999999999 x",
            b"C0644",
            b"C0644 1 a\0b",
        ] {
            assert_eq!(announced(bad), None, "{}", bad.escape_ascii());
        }
        assert_eq!(read_times(b"1700000000 0 1600000000 0"), Some((1_700_000_000, 1_600_000_000)));
        assert_eq!(read_times(b"now"), None);
    }
}
