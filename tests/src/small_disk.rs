//! A disk that is soon full.

use std::{fs::File, io::Write as _, path::PathBuf, process::Command};

use crate::OrFail as _;

/// The files that there can be on it.
const FILES_MAX: usize = 16 << 10;

/// A file system of its own, in memory.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    #[track_caller]
    pub fn mount(path: PathBuf, bytes: u64) -> Self {
        std::fs::create_dir(&path).or_fail("make a mount point");
        let options = format!("size={bytes},nr_inodes={FILES_MAX},mode=0755");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "berth-test"]).arg(&path);
        let mounted = mount.status().or_fail("run mount");
        assert!(mounted.success(), "cannot mount a file system at {}", path.display());
        Self { path }
    }

    /// Leaves not one byte free, nor room for one more file.
    #[track_caller]
    pub fn fill(&self) {
        std::fs::create_dir(self.filler()).or_fail("make a directory for large files");
        let mut file = File::create(self.filler().join("bytes")).or_fail("make a large file");
        // In ever smaller pieces, so that the last page goes as well.
        for piece in [1 << 20, 4 << 10, 1] {
            let bytes = vec![0x5a; piece];
            while file.write_all(&bytes).is_ok() {}
        }
        let mut names = (0..FILES_MAX).map(|number| self.filler().join(number.to_string()));
        while names.next().is_some_and(|name| File::create(name).is_ok()) {}
    }

    /// Takes back what [`Self::fill`] took.
    #[track_caller]
    pub fn free(&self) {
        std::fs::remove_dir_all(self.filler()).or_fail("remove large files");
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: somebody may still look at it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}
