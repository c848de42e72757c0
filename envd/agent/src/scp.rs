//! The old way of `scp`, for images without that program: clients from before 2022, and `scp -O`, run `scp -t` or
//! `scp -f` on the other side and speak with it over its standard streams.
//!
//! Both sides answer each other with a byte: 0 when all is well, 1 and a line when one file is not, 2 when nothing is.

mod receive;
mod send;

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    process::ExitCode,
};

/// The first argument that makes this program an `scp`.
pub(crate) const ARGUMENT: &str = "--scp";
/// The longest line, with the longest name in it.
const LINE_MAX: u64 = 8192;
/// What is read or written at once.
const PIECE: usize = 128 << 10;

/// What the client asked for.
#[derive(Debug, Default)]
struct Options {
    recursive: bool,
    /// Times and modes stay as they are.
    preserve: bool,
    /// The target has to be a directory.
    directory: bool,
}

/// `-t` takes files, `-f` gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Takes,
    Gives,
}

/// The conversation with the other side.
struct Wire {
    input: BufReader<File>,
    output: File,
    /// Something went wrong with a file; the others travel all the same.
    failed: bool,
}

/// Speaks with the client on standard input and output.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (side, options, paths) = match read_arguments(arguments) {
        Ok(read) => read,
        Err(sentence) => {
            crate::complain(&sentence);
            return ExitCode::FAILURE;
        }
    };
    let converse = || {
        let mut wire = Wire::new()?;
        match (side, &paths[..]) {
            (Side::Takes, [target]) => receive::all(&mut wire, &options, target)?,
            (Side::Takes, _) => wire.give_up("one place to copy to is needed")?,
            (Side::Gives, paths) => send::all(&mut wire, &options, paths)?,
        }
        Ok::<_, io::Error>(wire.failed)
    };
    if matches!(converse(), Ok(false)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read_arguments(
    arguments: impl Iterator<Item = OsString>,
) -> Result<(Side, Options, Vec<PathBuf>), String> {
    let (mut sides, mut options, mut paths, mut ended) = (Vec::new(), Options::default(), Vec::new(), false);
    for argument in arguments {
        let bytes = argument.as_bytes();
        if ended || bytes.len() < 2 || bytes[0] != b'-' {
            ended = true;
            paths.push(PathBuf::from(argument));
            continue;
        }
        if bytes == b"--" {
            ended = true;
            continue;
        }
        for letter in &bytes[1..] {
            match letter {
                b't' => sides.push(Side::Takes),
                b'f' => sides.push(Side::Gives),
                b'r' => options.recursive = true,
                b'p' => options.preserve = true,
                b'd' => options.directory = true,
                b'q' | b'v' => {}
                _ => return Err(format!("scp does not know the option `{}`", argument.display())),
            }
        }
    }
    match sides[..] {
        [side] => Ok((side, options, paths)),
        _ => Err("this `scp` only answers one that runs elsewhere".to_owned()),
    }
}

// === impl Wire ===

impl Wire {
    fn new() -> io::Result<Self> {
        let input = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
        let output = File::from(rustix::stdio::stdout().try_clone_to_owned()?);
        Ok(Self { input: BufReader::with_capacity(PIECE, input), output, failed: false })
    }

    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)
    }

    fn agree(&mut self) -> io::Result<()> {
        self.say(&[0])
    }

    /// One file does not travel.
    fn complain(&mut self, what: &std::path::Path, why: &dyn std::fmt::Display) -> io::Result<()> {
        self.failed = true;
        let why = why.to_string();
        let why = why.split(" (os error").next().unwrap_or_default().replace('\n', " ");
        let mut line = b"\x01scp: ".to_vec();
        line.extend(what.as_os_str().as_bytes().iter().map(|byte| if *byte == b'\n' { b'?' } else { *byte }));
        line.extend(format!(": {why}\n").bytes());
        self.say(&line)
    }

    /// Nothing travels any more.
    fn give_up(&mut self, why: &str) -> io::Result<()> {
        self.say(format!("\x02scp: {why}\n").as_bytes())?;
        Err(io::Error::other(why.to_owned()))
    }

    /// Reads the other side's word on what was said last: whether all is well.
    fn is_agreed(&mut self) -> io::Result<bool> {
        let mut answer = [0];
        self.input.read_exact(&mut answer)?;
        if answer == [0] {
            return Ok(true);
        }
        let _their_sentence = self.line()?;
        self.failed = true;
        if answer == [1] { Ok(false) } else { Err(io::ErrorKind::ConnectionAborted.into()) }
    }

    /// The next line without its end; `None` when the other side has nothing more to say.
    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        (&mut self.input).take(LINE_MAX).read_until(b'\n', &mut line)?;
        match line.pop() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_alone_or_together_and_end_with_the_first_path() {
        let read = |line: &str| read_arguments(line.split(' ').map(OsString::from));
        let (side, options, paths) = read("-v -prt -- -odd").unwrap();
        assert!(options.recursive && options.preserve && !options.directory);
        assert_eq!(side, Side::Takes);
        assert_eq!(paths, [PathBuf::from("-odd")]);
        let (side, options, paths) = read("-f a -r").unwrap();
        assert!(!options.recursive);
        assert_eq!((side, paths.len()), (Side::Gives, 2));
        for bad in ["-x -t a", "a b", "-tf a"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
