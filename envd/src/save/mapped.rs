//! The files that an instance's processes can write to without a trace.
//!
//! Whoever has mapped a file to write to it (`mmap`) changes it by writing to memory. The kernel notes the time of the
//! first such write, and of no other until it has brought the page to the disk: a file can change after a save and look
//! as it did. So the next save does not rely on any file that was mapped when this one began. A mapping that is made
//! later is no danger: its first write is noted.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

/// What is mapped, by inode and by path: which of the two is that of the file below the overlay depends on the kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    inodes: HashSet<u64>,
    paths: HashSet<Vec<u8>>,
}

impl Mapped {
    /// What all processes of a control group, and of those below it, have mapped.
    pub(super) fn by(group: &Path) -> io::Result<Self> {
        let mut all = Self::default();
        let mut groups: Vec<PathBuf> = vec![group.to_owned()];
        while let Some(group) = groups.pop() {
            for entry in fs::read_dir(&group)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    groups.push(entry.path());
                }
            }
            for process in fs::read_to_string(group.join("cgroup.procs"))?.lines() {
                match fs::read(format!("/proc/{process}/maps")) {
                    Ok(maps) => all.add(&maps),
                    // One that has ended has nothing mapped.
                    Err(error) if is_over(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(all)
    }

    /// From the lines of `/proc/PID/maps`: `START-END PERMISSIONS OFFSET DEVICE INODE PATH`.
    fn add(&mut self, maps: &[u8]) {
        for line in maps.split(|&byte| byte == b'\n') {
            let mut fields = line.splitn(6, |&byte| byte == b' ');
            let (Some(permissions), Some(inode), Some(path)) = (fields.nth(1), fields.nth(2), fields.next())
            else {
                continue;
            };
            let inode = str::from_utf8(inode).ok().and_then(|inode| inode.parse().ok()).unwrap_or(0);
            if inode == 0 || permissions.get(1) != Some(&b'w') || permissions.get(3) != Some(&b's') {
                continue;
            }
            self.inodes.insert(inode);
            let path = path.trim_ascii_start();
            self.paths.insert(path.strip_prefix(b"/").unwrap_or(path).to_vec());
        }
    }

    pub(super) fn has(&self, inode: u64, path: &[u8]) -> bool {
        self.inodes.contains(&inode) || self.paths.contains(path)
    }
}

fn is_over(error: &io::Error) -> bool {
    const NO_SUCH_PROCESS: i32 = 3;
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_shared_and_written_to() {
        let mut mapped = Mapped::default();
        mapped.add(
            b"7f1-7f2 rw-s 00000000 fe:00 42                         /data/a file\n\
              7f1-7f2 rw-p 00000000 fe:00 43                         /data/private\n\
              7f1-7f2 r--s 00000000 fe:00 44                         /data/read\n\
              7f1-7f2 rw-s 00000000 00:00 0 \n",
        );
        assert!(mapped.has(42, b"x") && mapped.has(1, b"data/a file"));
        assert!(!mapped.has(43, b"data/private") && !mapped.has(44, b"data/read") && !mapped.has(0, b""));
    }
}
