//! A disk that is soon full.

use std::{fs::File, io::Write as _, path::PathBuf, process::Command};

use crate::OrFail as _;

/// A file system of its own, in memory.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    #[track_caller]
    pub fn mount(path: PathBuf, bytes: u64) -> Self {
        std::fs::create_dir(&path).or_fail("make a mount point");
        let options = format!("size={bytes},mode=0755");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "berth-test"]).arg(&path);
        let mounted = mount.status().or_fail("run mount");
        assert!(mounted.success(), "cannot mount a file system at {}", path.display());
        Self { path }
    }

    /// Leaves not one byte free.
    #[track_caller]
    pub fn fill(&self) {
        let mut file = File::create(self.filler()).or_fail("make a large file");
        // In ever smaller pieces, so that the last page goes as well.
        for piece in [1 << 20, 4 << 10, 1] {
            let bytes = vec![0x5a; piece];
            while file.write_all(&bytes).is_ok() {}
        }
    }

    /// Takes back what [`Self::fill`] took.
    #[track_caller]
    pub fn free(&self) {
        std::fs::remove_file(self.filler()).or_fail("remove a large file");
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
