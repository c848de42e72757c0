//! Holding an instance still for a moment, so that what is listed of its files was so at one moment.
//!
//! The kernel's freezer does it. A program of our own, and not this process, freezes and thaws: it thaws when it is told
//! so, when this process ends in whatever way, and in any case after [`MOST`]. So no instance stays frozen.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The longest that an instance stands still, what starting and ending it takes included.
const MOST: Duration = Duration::from_millis(80);
/// The command of envd that does it.
pub(crate) const COMMAND: &str = "hold-still";

/// An instance that is held still.
#[derive(Debug)]
pub(super) struct Still {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Still {
    /// Freezes a container by one of its processes; `None` where the kernel has no freezer for it.
    pub(super) fn hold(pid: u32, container: &str) -> io::Result<Option<Self>> {
        let Some(freezer) = Freezer::of(pid, container)? else { return Ok(None) };
        let mut child = Command::new("/proc/self/exe")
            .arg(COMMAND)
            .arg(&freezer.file)
            .args([freezer.freeze, freezer.thaw])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a program without input and output"));
        };
        let mut still = Self { child, stdin, stdout: BufReader::new(stdout) };
        still.line()?;
        Ok(Some(still))
    }

    /// Lets it go on, and says how long it stood still.
    pub(super) fn release(self) -> io::Result<Duration> {
        let Self { mut child, stdin, mut stdout } = self;
        drop(stdin);
        let mut said = String::new();
        stdout.read_to_string(&mut said)?;
        child.wait()?;
        Ok(Duration::from_millis(said.trim().parse().unwrap_or(0)))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line)
    }
}

/// The control group of a container, by one of its processes; `None` where that cannot be told.
pub(super) fn group(pid: u32, container: &str) -> io::Result<Option<PathBuf>> {
    let freezer = Freezer::of(pid, container)?;
    Ok(freezer.and_then(|freezer| freezer.file.parent().map(Path::to_owned)))
}

/// The file that freezes a container, and what is written to it.
#[derive(Debug, PartialEq, Eq)]
struct Freezer {
    file: PathBuf,
    freeze: &'static str,
    thaw: &'static str,
}

impl Freezer {
    fn of(pid: u32, container: &str) -> io::Result<Option<Self>> {
        let groups = match fs::read_to_string(format!("/proc/{pid}/cgroup")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            groups => groups?,
        };
        // The number may be another's by now, even envd's own.
        let is_its = |freezer: &Self| freezer.file.to_string_lossy().contains(container);
        Ok(Self::among(&groups).filter(|freezer| is_its(freezer) && freezer.file.exists()))
    }

    /// From the lines of `/proc/PID/cgroup`. The root group is everybody's.
    fn among(groups: &str) -> Option<Self> {
        let group = |line: &'_ str, controllers: &str| -> Option<String> {
            let (_, rest) = line.split_once(':')?;
            let (names, path) = rest.split_once(':')?;
            let is_it = names.split(',').any(|name| name == controllers);
            (is_it && path.len() > 1).then(|| path.trim_start_matches('/').to_owned())
        };
        let root = PathBuf::from("/sys/fs/cgroup");
        if let Some(path) = groups.lines().find_map(|line| group(line, "freezer")) {
            let file = root.join("freezer").join(path).join("freezer.state");
            return Some(Self { file, freeze: "FROZEN", thaw: "THAWED" });
        }
        let path = groups.lines().find_map(|line| group(line, ""))?;
        Some(Self { file: root.join(path).join("cgroup.freeze"), freeze: "1", thaw: "0" })
    }
}

/// The command itself: freezes, says so, waits to be told or for the limit, thaws, and says how long it was.
pub(crate) fn hold_still(file: &str, freeze: &str, thaw: &str) -> io::Result<()> {
    let begun = Instant::now();
    let frozen = fs::write(file, freeze).and_then(|()| {
        let mut out = io::stdout();
        out.write_all(b"\n")?;
        out.flush()?;
        let left = MOST.saturating_sub(begun.elapsed());
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        poll(&mut [PollFd::new(&io::stdin(), PollFlags::IN)], Some(&timeout))?;
        Ok(())
    });
    // Whatever came of the rest.
    fs::write(file, thaw)?;
    frozen?;
    writeln!(io::stdout(), "{}", begun.elapsed().as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_freezer_of_either_kind_and_never_the_root() {
        let file = |groups: &str| Freezer::among(groups).map(|freezer| freezer.file.display().to_string());
        let first = "12:cpu,cpuacct:/docker/ab\n7:freezer:/docker/ab\n0::/\n";
        assert_eq!(file(first).as_deref(), Some("/sys/fs/cgroup/freezer/docker/ab/freezer.state"));
        let second = "0::/system.slice/docker-ab.scope\n";
        assert_eq!(
            file(second).as_deref(),
            Some("/sys/fs/cgroup/system.slice/docker-ab.scope/cgroup.freeze")
        );
        assert_eq!(file("0::/\n"), None);
        assert_eq!(file(""), None);
    }
}
