//! Where a job's mounts appear: links inside the instance to what it has of the storages.
//!
//! Whatever a link leads to is looked up inside the instance, with the rights of whoever follows it. So no path of a
//! user's is ever resolved on the host, and a mount opens nothing that its owner does not have anyway.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{MetadataExt as _, symlink},
    path::Path,
};

/// Makes links that are not there yet.
pub(crate) fn make(links: &BTreeMap<String, String>) -> io::Result<()> {
    links.iter().try_for_each(|(at, to)| {
        let wrong = |error: io::Error| io::Error::other(format!("`{to}` cannot appear at `{at}`: {error}"));
        make_one(Path::new(at), Path::new(to), Path::new("/")).map_err(wrong)
    })
}

/// Makes links that nobody asked for, wherever nothing is in their way.
pub(crate) fn offer(links: &BTreeMap<String, String>) {
    for (at, to) in links {
        let _in_the_way = make_one(Path::new(at), Path::new(to), Path::new("/"));
    }
}

/// `root` is where the instance's own files are; in a storage, or in what the kernel makes up, nothing is put.
pub(crate) fn make_one(at: &Path, to: &Path, root: &Path) -> io::Result<()> {
    let parent = at.parent().ok_or_else(|| io::Error::other("it is not a path of something"))?;
    let nearest = parent.ancestors().find_map(|path| fs::metadata(path).ok());
    if nearest.map(|found| found.dev()) != Some(fs::metadata(root)?.dev()) {
        return Err(io::Error::other("that is in a storage itself, or is the system's own"));
    }
    fs::create_dir_all(parent)?;
    match symlink(to, at) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::read_link(at).is_ok_and(|there| there == to) {
                return Ok(());
            }
            // A directory that the image keeps free for this.
            fs::remove_dir(at).map_err(|_| io::Error::other("the image has something there already"))?;
            symlink(to, at)
        }
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_made_once_and_replaces_nothing_but_an_empty_directory() {
        let root = tempfile::tempdir().unwrap();
        let (at, to) = (root.path().join("a/b/data"), Path::new("/userhome/data"));
        let make = || make_one(&at, to, root.path());
        make().unwrap();
        make().unwrap();
        assert_eq!(fs::read_link(&at).unwrap(), to);
        fs::remove_file(&at).unwrap();
        fs::create_dir(&at).unwrap();
        make().unwrap();
        fs::remove_file(&at).unwrap();
        fs::create_dir_all(at.join("precious")).unwrap();
        assert!(make().unwrap_err().to_string().contains("already"));
        assert!(at.join("precious").exists());
        assert!(make_one(Path::new("/proc/data"), to, root.path()).is_err());
    }
}
