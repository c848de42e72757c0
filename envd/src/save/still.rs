//! Holding an instance still for a moment, so that what is listed of its files was so at one moment.
//!
//! The kernel's freezer does it. A program of our own, and not this process, freezes and thaws: it thaws when it is told
//! so, when this process ends in whatever way, and in any case after [`MOST`]. Should that program itself be killed, this
//! process thaws; and what is frozen stands in the save's journal meanwhile, for the next envd where neither lives to. So
//! no instance stays frozen.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The longest that an instance stands still, what starting and ending it takes included.
const MOST: Duration = Duration::from_millis(60);
/// How long the last of its processes may take to stand still. One that waits for a disk does not before that answers.
const FREEZING_MOST: Duration = Duration::from_millis(20);
const FREEZING_LOOK: Duration = Duration::from_millis(1);
/// The command of envd that does it.
pub(crate) const COMMAND: &str = "hold-still";
/// Where the kernel's control groups are.
const GROUPS: &str = "/sys/fs/cgroup";
/// Where engines put those of containers, if they are not told otherwise.
const PARENTS: [&str; 2] = ["system.slice", "docker"];

/// An instance that is held still.
#[derive(Debug)]
pub(super) struct Still {
    freezer: Freezer,
    /// Says what is frozen, as long as it is.
    mark: PathBuf,
    begun: Instant,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Still {
    /// Freezes a container by one of its processes; `None` where its control group is not to be seen. `mark` is a file
    /// that says so meanwhile.
    pub(super) fn hold(pid: u32, container: &str, mark: PathBuf) -> io::Result<Option<Self>> {
        let Some(freezer) = Freezer::of(pid, container)? else { return Ok(None) };
        fs::write(&mark, format!("{}\n{}", freezer.thaw, freezer.file.display()))?;
        let begun = Instant::now();
        let mut child = Command::new("/proc/self/exe")
            .arg(COMMAND)
            .arg(&freezer.file)
            .args([freezer.freeze, freezer.thaw])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a program without input and output"));
        };
        let mut still = Self { freezer, mark, begun, child, stdin, stdout: BufReader::new(stdout) };
        // A line says that the instance stands still. Without one the program has ended.
        if still.stdout.read_line(&mut String::new())? == 0 {
            let mut why = String::new();
            if let Some(mut stderr) = still.child.stderr.take() {
                stderr.read_to_string(&mut why)?;
            }
            still.release()?;
            return Err(io::Error::other(why.trim().to_owned()));
        }
        Ok(Some(still))
    }

    /// Lets it go on, and says how long it stood still.
    pub(super) fn release(self) -> io::Result<Duration> {
        let Self { freezer, mark, begun, mut child, stdin, mut stdout } = self;
        drop(stdin);
        let mut said = String::new();
        stdout.read_to_string(&mut said)?;
        let ended = child.wait()?;
        let told = said.trim().parse().ok().filter(|_| ended.success());
        let frozen = if let Some(millis) = told {
            Duration::from_millis(millis)
        } else {
            tracing::warn!(%ended, "what holds an instance still has failed");
            thaw(&freezer.file, freezer.thaw)?;
            begun.elapsed()
        };
        fs::remove_file(mark)?;
        Ok(frozen)
    }
}

/// Lets a container go on that was left frozen, by the mark of whoever froze it.
pub(super) fn thaw_marked(mark: &Path) -> io::Result<()> {
    if let Some((value, file)) = fs::read_to_string(mark)?.split_once('\n') {
        thaw(Path::new(file), value)?;
    }
    fs::remove_file(mark)
}

/// Where there is no such file the container is gone, and nothing stands still.
fn thaw(file: &Path, value: &str) -> io::Result<()> {
    if file.exists() { fs::write(file, value) } else { Ok(()) }
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
        Ok(Self::among(&groups).into_iter().find(|freezer| is_its(freezer) && freezer.file.exists()))
    }

    /// What may be it, from the lines of `/proc/PID/cgroup`. The root group is everybody's.
    fn among(groups: &str) -> Vec<Self> {
        let group = |line: &'_ str, controllers: &str| -> Option<String> {
            let (_, rest) = line.split_once(':')?;
            let (names, path) = rest.split_once(':')?;
            let is_it = names.split(',').any(|name| name == controllers);
            (is_it && path.len() > 1).then(|| path.trim_start_matches('/').to_owned())
        };
        if let Some(path) = groups.lines().find_map(|line| group(line, "freezer")) {
            let file = Path::new(GROUPS).join("freezer").join(path).join("freezer.state");
            return vec![Self { file, freeze: "FROZEN", thaw: "THAWED" }];
        }
        let Some(path) = groups.lines().find_map(|line| group(line, "")) else { return Vec::new() };
        let places = match path.rsplit_once("../") {
            // envd is in a container itself, and is told where the other is from there.
            Some((_, name)) => PARENTS.map(|parent| Path::new(parent).join(name)).to_vec(),
            None => vec![path.into()],
        };
        let freezer = |place| Path::new(GROUPS).join(place).join("cgroup.freeze");
        places.into_iter().map(|place| Self { file: freezer(place), freeze: "1", thaw: "0" }).collect()
    }
}

/// Whether all of a group stands still: the kernel only begins with it when it is told to.
fn is_frozen(file: &Path, freeze: &str) -> io::Result<bool> {
    let events = file.with_file_name("cgroup.events");
    if events.exists() {
        return Ok(fs::read_to_string(events)?.lines().any(|line| line == "frozen 1"));
    }
    Ok(fs::read_to_string(file)?.trim() == freeze)
}

/// The command itself: freezes, says so, waits to be told or for the limit, thaws, and says how long it was.
pub(crate) fn hold_still(file: &str, freeze: &str, thaw: &str) -> io::Result<()> {
    let begun = Instant::now();
    let hold = || -> io::Result<()> {
        fs::write(file, freeze)?;
        while !is_frozen(Path::new(file), freeze)? && begun.elapsed() < FREEZING_MOST {
            thread::sleep(FREEZING_LOOK);
        }
        let mut out = io::stdout();
        out.write_all(b"\n")?;
        out.flush()?;
        let left = MOST.saturating_sub(begun.elapsed());
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        poll(&mut [PollFd::new(&io::stdin(), PollFlags::IN)], Some(&timeout))?;
        Ok(())
    };
    let result = hold();
    // Whatever came of the rest.
    fs::write(file, thaw)?;
    result?;
    writeln!(io::stdout(), "{}", begun.elapsed().as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_freezer_of_either_kind_and_never_the_root() {
        let files = |groups: &str| -> Vec<String> {
            Freezer::among(groups).iter().map(|freezer| freezer.file.display().to_string()).collect()
        };
        let first = "12:cpu,cpuacct:/docker/ab\n7:freezer:/docker/ab\n0::/\n";
        assert_eq!(files(first), ["/sys/fs/cgroup/freezer/docker/ab/freezer.state"]);
        let second = "0::/system.slice/docker-ab.scope\n";
        assert_eq!(files(second), ["/sys/fs/cgroup/system.slice/docker-ab.scope/cgroup.freeze"]);
        let from_a_container = "0::/../docker-ab.scope\n";
        assert_eq!(
            files(from_a_container),
            [
                "/sys/fs/cgroup/system.slice/docker-ab.scope/cgroup.freeze",
                "/sys/fs/cgroup/docker/docker-ab.scope/cgroup.freeze"
            ]
        );
        assert!(files("0::/\n").is_empty());
        assert!(files("").is_empty());
    }

    #[test]
    fn what_was_left_frozen_goes_on_and_what_is_gone_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (freezer, mark) = (folder.path().join("freezer.state"), folder.path().join("still"));
        for there in [true, false] {
            if there {
                fs::write(&freezer, "FROZEN").unwrap();
            } else {
                fs::remove_file(&freezer).unwrap();
            }
            fs::write(&mark, format!("THAWED\n{}", freezer.display())).unwrap();
            thaw_marked(&mark).unwrap();
            assert_eq!(fs::read_to_string(&freezer).ok(), there.then(|| "THAWED".to_owned()));
            assert!(!mark.exists());
        }
    }

    #[test]
    fn a_group_stands_still_when_the_kernel_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("freezer.state");
        fs::write(&file, "FREEZING\n").unwrap();
        assert!(!is_frozen(&file, "FROZEN").unwrap());
        fs::write(&file, "FROZEN\n").unwrap();
        assert!(is_frozen(&file, "FROZEN").unwrap());
        let events = folder.path().join("cgroup.events");
        fs::write(&events, "populated 1\nfrozen 0\n").unwrap();
        assert!(!is_frozen(&file, "1").unwrap());
        fs::write(&events, "populated 1\nfrozen 1\n").unwrap();
        assert!(is_frozen(&file, "1").unwrap());
    }
}
