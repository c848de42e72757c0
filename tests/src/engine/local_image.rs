//! Images that a test makes for itself out of a few files.

use std::{
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

use super::{command, output_of};
use crate::OrFail as _;

/// All of Unix in one static file; Debian's package `busybox-static` has it.
const BUSYBOX: &str = "/bin/busybox";

/// An image of this machine that goes with the test.
#[derive(Debug)]
pub struct LocalImage {
    reference: String,
}

impl LocalImage {
    /// Makes an image of the files below `root`. `changes` are lines of a Dockerfile, such as `USER 1000`.
    #[track_caller]
    pub fn of_directory(name: &str, root: &Path, changes: &[&str]) -> Self {
        let image = Self::named(name);
        import(command(), root, changes, &image.reference);
        image
    }

    /// Makes an image of a tar archive.
    #[track_caller]
    pub fn of_archive(name: &str, archive: &Path, changes: &[&str]) -> Self {
        let image = Self::named(name);
        output_of(command().arg("import").args(flags(changes)).arg(archive).arg(&image.reference));
        image
    }

    /// Makes a small image with a shell and some commands, that says how it wants to be run.
    #[track_caller]
    pub fn busybox() -> Self {
        const APPLETS: [&str; 13] =
            ["sh", "cat", "date", "dd", "echo", "ls", "mkdir", "mv", "rm", "sleep", "stat", "touch", "wc"];
        let root = tempfile::tempdir().or_fail("make a directory");
        put_busybox(root.path(), "bin/busybox", &APPLETS);
        std::fs::create_dir(root.path().join("tmp")).or_fail("make a directory");
        let changes = [
            "ENV COLOUR=blue",
            "WORKDIR /srv",
            "ENTRYPOINT [\"/bin/sh\"]",
            "CMD [\"-c\", \"echo hello\"]",
            "LABEL org.example.kind=small",
            "EXPOSE 8080",
        ];
        Self::of_directory("busybox", root.path(), &changes)
    }

    pub fn reference(&self) -> &str {
        &self.reference
    }

    fn named(name: &str) -> Self {
        // Another run of the same test may be under way.
        Self { reference: format!("localhost/berth/test-{name}-{}:latest", std::process::id()) }
    }
}

impl Drop for LocalImage {
    fn drop(&mut self) {
        // Its instances are gone by now, or the test has failed and said why.
        let _ = command().args(["rmi", "--force", &self.reference]).output();
    }
}

/// Puts busybox below `root` at `place`, and beside it the names of some of its commands.
#[track_caller]
pub fn put_busybox(root: &Path, place: &str, applets: &[&str]) {
    let place = root.join(place);
    let directory = place.parent().or_fail("find the directory of busybox");
    std::fs::create_dir_all(directory).or_fail("make a directory");
    std::fs::copy(BUSYBOX, &place).or_fail("copy busybox, which the package `busybox-static` has");
    for applet in applets {
        let name = place.file_name().or_fail("name busybox");
        symlink(name, directory.join(applet)).or_fail("make a link");
    }
}

/// Imports the files below `root`, which all belong to root in the image.
#[track_caller]
pub(super) fn import(mut docker: Command, root: &Path, changes: &[&str], reference: &str) {
    let mut tar = Command::new("tar")
        .arg("-C")
        .arg(root)
        .args(["--numeric-owner", "--owner=0", "--group=0", "-c", "."])
        .stdout(Stdio::piped())
        .spawn()
        .or_fail("run tar");
    let archive = tar.stdout.take().or_fail("read from tar");
    output_of(docker.arg("import").args(flags(changes)).args(["-", reference]).stdin(archive));
    assert!(tar.wait().or_fail("wait for tar").success(), "tar failed");
}

fn flags(changes: &[&str]) -> Vec<String> {
    changes.iter().flat_map(|change| ["--change".to_owned(), (*change).to_owned()]).collect()
}
