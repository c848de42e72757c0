//! The data directory: one envd at a time, a cluster's identity, and the agent that instances are given.
//!
//! All files here are written whole or not at all, so that a process killed at any moment leaves nothing half done.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use sha2::{Digest, Sha256};

/// How long another envd may take to let go of the directory.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_AGAIN: Duration = Duration::from_millis(50);
/// Among the agents, the name of the one that starts use.
const CURRENT: &str = "current";

/// The directory below `$BERTH_DATA`, held by this process alone.
#[derive(Debug)]
pub(crate) struct Data {
    /// Released by the kernel when this process ends, however it ends.
    _lock: File,
    path: PathBuf,
}

/// Why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataError {
    #[error("another envd is using `{}`", .0.display())]
    InUse(PathBuf),
    #[error("cannot {what} `{}`", .path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}

impl Data {
    /// Takes the directory, making it if it is not there.
    pub(crate) fn take(path: PathBuf) -> Result<Self, DataError> {
        fs::create_dir_all(&path).map_err(failed("make", &path))?;
        let lock_path = path.join("envd.lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_path)
            .map_err(failed("open", &lock_path))?;
        // A program that an envd was about to run when it was killed holds the lock for a moment longer.
        let until = Instant::now() + LOCK_WAIT;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _lock: lock, path }),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(LOCK_AGAIN),
                Err(Errno::WOULDBLOCK) => return Err(DataError::InUse(path)),
                Err(other) => return Err(failed("lock", &lock_path)(other.into())),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What sets this cluster's containers apart from those of any other on the same engine; made once.
    pub(crate) fn cluster(&self) -> Result<String, DataError> {
        let path = self.path.join("cluster");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let cluster = format!("cls_{}", uuid::Uuid::now_v7().simple());
                write_whole(&path, cluster.as_bytes(), 0o644).map_err(failed("write", &path))?;
                Ok(cluster)
            }
            Err(cause) => Err(failed("read", &path)(cause)),
        }
    }

    /// Keeps a copy of the agent under the name of its content, and answers with a path that leads to it. An upgrade
    /// never pulls it from under a running instance; the next start of that instance follows the path anew.
    pub(crate) fn keep_agent(&self, agent: &Path) -> Result<PathBuf, DataError> {
        let content = fs::read(agent).map_err(failed("read", agent))?;
        let digest =
            Sha256::digest(&content).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let agents = self.path.join("agent");
        let (directory, current) = (agents.join(&digest), agents.join(CURRENT));
        let path = directory.join("envd-agent");
        if !fs::read(&path).is_ok_and(|kept| kept == content) {
            fs::create_dir_all(&directory).map_err(failed("make", &directory))?;
            write_whole(&path, &content, 0o755).map_err(failed("write", &path))?;
        }
        if !fs::read_link(&current).is_ok_and(|target| target == Path::new(&digest)) {
            point(&current, Path::new(&digest)).map_err(failed("write", &current))?;
        }
        Ok(current.join("envd-agent"))
    }
}

/// Makes `link` lead to `target`, from one moment to the next.
fn point(link: &Path, target: &Path) -> io::Result<()> {
    let draft = link.with_extension("new");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    symlink(target, &draft)?;
    fs::rename(&draft, link)?;
    File::open(link.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Makes a directory with `mode`; one that is there already stays as it is.
pub(crate) fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    match fs::DirBuilder::new().mode(mode).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(mode)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(path)?.is_dir() {
                Ok(())
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }
        Err(error) => Err(error),
    }
}

/// Writes a file so that a reader, and a machine that loses power, sees the old content or the new one.
pub(crate) fn write_whole(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut draft_name = path.file_name().unwrap_or_default().to_owned();
    draft_name.push(".new");
    let draft = directory.join(draft_name);
    // One that a killed process left would keep its mode.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&draft, path)?;
    File::open(directory)?.sync_all()
}

fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> DataError + use<> {
    let path = path.to_owned();
    move |cause| DataError::Io { what, path: path.clone(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_the_same_cluster_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let data = Data::take(directory.path().to_owned()).unwrap();
        let cluster = data.cluster().unwrap();
        assert!(matches!(Data::take(directory.path().to_owned()), Err(DataError::InUse(_))));
        drop(data);
        let data = Data::take(directory.path().to_owned()).unwrap();
        assert_eq!(data.cluster().unwrap(), cluster);
    }

    #[test]
    fn a_kept_agent_stays_when_another_comes_and_the_path_leads_to_the_newest() {
        let directory = tempfile::tempdir().unwrap();
        let data = Data::take(directory.path().to_owned()).unwrap();
        let source = directory.path().join("agent-binary");
        fs::write(&source, b"one").unwrap();
        let path = data.keep_agent(&source).unwrap();
        let one = path.canonicalize().unwrap();
        fs::write(&source, b"two").unwrap();
        for _ in 0..2 {
            assert_eq!(data.keep_agent(&source).unwrap(), path);
        }
        assert_eq!((fs::read(&one).unwrap(), fs::read(&path).unwrap()), (b"one".to_vec(), b"two".to_vec()));
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o755);
    }
}
