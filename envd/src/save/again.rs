//! A second walk that relies on the first one, as quick as can be: the instance stands still meanwhile.
//!
//! A directory whose time of change is what it was has the names that it had: it is not read again, and each name is asked
//! for once (`stat`). Only what changed in between is looked at as if for the first time. Several threads share the work;
//! what can wait until the instance goes on does: putting the list together, and asking files whether they refer to others.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    io,
    os::fd::OwnedFd,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Instant, SystemTime},
};

use super::{
    rules::Rules,
    snapshot::sure_before,
    walk::{
        About, Check, DIRECTORY, Found, Kind, Listing, WalkError, is_gone, kind, list_directory, open_below,
        refers, split, stat, walk_all,
    },
};

/// Names that one thread asks for before it takes the next ones.
const PIECE: usize = 256;
/// Fewer names than this are not worth a thread more.
const ALONE: usize = 1024;

/// What is known from the first walk, in the order in which it is asked for again.
pub(super) struct Plan<'a> {
    rules: &'a Rules,
    before: &'a Listing,
    /// What changed since this moment may have changed once more without a trace.
    sure: (i64, u32),
    /// The directories that were looked into.
    paths: HashSet<&'a [u8]>,
    pieces: Vec<Piece>,
}

/// Some of the names in a directory, by their places in the listing.
struct Piece {
    directory: usize,
    is_first: bool,
    names: Vec<usize>,
}

/// What one thread has found.
#[derive(Default)]
struct Seen {
    /// What was there before, by the place of the directory that it was found in and by its own.
    known: Vec<(usize, usize, Kind, About)>,
    /// Directories whose names are not what they were.
    changed: Vec<usize>,
    /// What is in them, and below what is new.
    new: Listing,
}

/// What was there when the instance stood still, not yet put together.
pub(super) struct Sight<'a> {
    plan: &'a Plan<'a>,
    seen: Vec<Seen>,
    /// The same of the directories whose names are not what they were.
    anew: Vec<Seen>,
}

impl<'a> Plan<'a> {
    /// `begun` is when the walk began that `before` comes from.
    pub(super) fn new(rules: &'a Rules, before: &'a Listing, begun: SystemTime) -> Self {
        let mut directories = Vec::new();
        let mut numbers = HashMap::new();
        for (at, found) in before.found.iter().enumerate() {
            if matches!(found.kind, Kind::Directory { .. }) && !rules.is_emptied(&found.path) {
                numbers.insert(found.path.as_slice(), directories.len());
                directories.push(at);
            }
        }
        let mut below = vec![Vec::new(); directories.len()];
        for (at, found) in before.found.iter().enumerate().filter(|(_, found)| !found.path.is_empty()) {
            if let Some(&number) = numbers.get(split(&found.path).0) {
                below[number].push(at);
            }
        }
        let mut pieces = Vec::new();
        for (&directory, names) in directories.iter().zip(below) {
            // One without names is asked for too: it may have some now.
            let several = names.chunks(PIECE).map(<[usize]>::to_vec);
            let all: Vec<_> = if names.is_empty() { vec![Vec::new()] } else { several.collect() };
            let piece = |(number, names)| Piece { directory, is_first: number == 0, names };
            pieces.extend(all.into_iter().enumerate().map(piece));
        }
        let paths = numbers.into_keys().collect();
        Self { rules, before, sure: sure_before(begun), paths, pieces }
    }

    /// Looks at all of it again; `None` if it cannot be done by `until`.
    pub(super) fn look(
        &'a self,
        root: &OwnedFd,
        until: Option<Instant>,
    ) -> Result<Option<Sight<'a>>, WalkError> {
        let is_late = || until.is_some_and(|until| Instant::now() >= until);
        let Some(seen) = self.share(&self.pieces, &is_late, |piece, seen| self.piece(root, piece, seen))?
        else {
            return Ok(None);
        };
        let changed: BTreeSet<_> = seen.iter().flat_map(|one| one.changed.iter().copied()).collect();
        let changed: Vec<_> = changed.into_iter().collect();
        let anew = self.share(&changed, &is_late, |&at, seen| self.anew(root, at, seen))?;
        Ok(anew.map(|anew| Sight { plan: self, seen, anew }))
    }

    /// Shares `items` among threads; `None` if it takes too long.
    fn share<T: Sync>(
        &self,
        items: &[T],
        is_late: &(impl Fn() -> bool + Sync),
        work: impl Fn(&T, &mut Seen) -> Result<(), WalkError> + Sync,
    ) -> Result<Option<Vec<Seen>>, WalkError> {
        let next = AtomicUsize::new(0);
        let one = || {
            let mut seen = Seen::default();
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                if is_late() {
                    return Ok(None);
                }
                work(item, &mut seen)?;
            }
            Ok(Some(seen))
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let more = (self.before.found.len() / ALONE).min(cores - 1).min(items.len().saturating_sub(1));
        thread::scope(|scope| {
            let others: Vec<_> = (0..more).map(|_| scope.spawn(one)).collect();
            let own = one();
            let ended = |other: thread::ScopedJoinHandle<'_, _>| {
                other.join().unwrap_or_else(|_| Err(io::Error::other("a thread that looks panicked").into()))
            };
            let all: Vec<_> = std::iter::once(own).chain(others.into_iter().map(ended)).collect();
            all.into_iter().collect()
        })
    }

    fn is_same(&self, before: &Found, now: &About) -> bool {
        before.about.inode == now.inode
            && before.about.changed == now.changed
            && before.about.changed < self.sure
    }

    fn piece(&self, root: &OwnedFd, piece: &Piece, seen: &mut Seen) -> Result<(), WalkError> {
        let before = &self.before.found[piece.directory];
        let directory = match open_below(root, &before.path, DIRECTORY) {
            Ok(directory) => directory,
            Err(error) if is_gone(&error) => {
                seen.changed.push(piece.directory);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let about = About::of(&rustix::fs::fstat(&directory).map_err(io::Error::from)?);
        if !self.is_same(before, &about) {
            seen.changed.push(piece.directory);
            return Ok(());
        }
        if piece.is_first && before.path.is_empty() {
            seen.known.push((piece.directory, piece.directory, before.kind, about));
        }
        for &at in &piece.names {
            let found = &self.before.found[at];
            let name = split(&found.path).1;
            let Some(stat) = stat(&directory, name)? else {
                seen.changed.push(piece.directory);
                return Ok(());
            };
            let about = About::of(&stat);
            let is_directory = matches!(found.kind, Kind::Directory { .. });
            let kind = if !is_directory || self.is_same(found, &about) {
                Some(found.kind)
            } else {
                kind(&directory, name, &stat, Check::Later)?
            };
            // With the directory as it was, only where nothing stands still.
            let (Some(kind), true) = (kind, about.inode == found.about.inode) else {
                seen.changed.push(piece.directory);
                return Ok(());
            };
            seen.known.push((piece.directory, at, kind, about));
        }
        Ok(())
    }

    /// Reads a directory as if for the first time, and all that is new in it.
    fn anew(&self, root: &OwnedFd, at: usize, seen: &mut Seen) -> Result<(), WalkError> {
        let path = &self.before.found[at].path;
        let directory = match open_below(root, path, DIRECTORY) {
            Ok(directory) => directory,
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if path.is_empty() {
            let about = About::of(&rustix::fs::fstat(&directory).map_err(io::Error::from)?);
            seen.known.push((at, at, Kind::Directory { opaque: false }, about));
        }
        let mut open = Vec::new();
        list_directory(&directory, path, self.rules, false, Check::Later, &mut seen.new, &mut open)?;
        // The others have a turn of their own.
        open.retain(|(path, _)| !self.paths.contains(path.as_slice()));
        walk_all(root, self.rules, false, Check::Later, &mut seen.new, open)
    }
}

impl Sight<'_> {
    /// The listing, once the instance goes on.
    pub(super) fn listing(self, root: &OwnedFd) -> Result<Listing, WalkError> {
        let Self { plan, seen, anew } = self;
        let mut listing = Listing::default();
        let changed: HashSet<_> = seen.iter().flat_map(|one| one.changed.iter().copied()).collect();
        let mut add = |one: Seen, counts: &dyn Fn(usize) -> bool| {
            let known = one.known.into_iter().filter(|(directory, ..)| counts(*directory));
            let found = |(_, at, kind, about): (usize, usize, Kind, About)| {
                let path = plan.before.found[at].path.clone();
                Found { path, kind, about, root: 0 }
            };
            listing.found.extend(known.map(found));
            listing.found.extend(one.new.found);
        };
        // What a thread saw of a directory before another one saw that it had changed does not count.
        for one in seen {
            add(one, &|directory| !changed.contains(&directory));
        }
        for one in anew {
            add(one, &|_| true);
        }
        listing.sort();
        // Where nothing stood still the same may have been seen at two places, or without what it is in.
        listing.found.dedup_by(|one, other| one.path == other.path);
        let mut directories = HashSet::new();
        let mut kept = Vec::with_capacity(listing.found.len());
        for found in listing.found {
            if !found.path.is_empty() && !directories.contains(split(&found.path).0) {
                continue;
            }
            if let Kind::Directory { .. } = found.kind {
                directories.insert(found.path.clone());
            }
            kept.push(found);
        }
        listing.found = kept;
        plan.check(root, &listing)?;
        Ok(listing)
    }
}

impl Plan<'_> {
    /// Asks the files that are not what they were whether they refer to others.
    fn check(&self, root: &OwnedFd, listing: &Listing) -> Result<(), WalkError> {
        let known: HashMap<_, _> =
            self.before.found.iter().map(|found| (found.path.as_slice(), found)).collect();
        let mut open: Option<(&[u8], OwnedFd)> = None;
        for found in listing.found.iter().filter(|found| found.kind == Kind::File) {
            if known.get(found.path.as_slice()).is_some_and(|before| self.is_same(before, &found.about)) {
                continue;
            }
            let (parent, name) = split(&found.path);
            if open.as_ref().is_none_or(|(path, _)| *path != parent) {
                match open_below(root, parent, DIRECTORY) {
                    Ok(directory) => open = Some((parent, directory)),
                    // It is not read either.
                    Err(error) if is_gone(&error) => continue,
                    Err(error) => return Err(error.into()),
                }
            }
            if let Some((_, directory)) = &open
                && refers(directory, name)?
            {
                return Err(WalkError::Refers);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::symlink,
        path::Path,
        time::{Duration, SystemTime},
    };

    use super::*;
    use crate::save::walk::{open_root, walk};

    /// Enough for several threads.
    const MANY: usize = 3 * ALONE;

    fn fill(root: &Path) {
        for directory in ["many", "a/b/c", "moved/deep", "replaced", "emptied", "cache/x"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        (0..MANY).for_each(|number| fs::write(root.join(format!("many/{number}")), b"").unwrap());
        for file in ["a/one", "a/b/two", "a/b/c/three", "moved/deep/four", "replaced/five", "emptied/six"] {
            fs::write(root.join(file), file).unwrap();
        }
        symlink("one", root.join("a/link")).unwrap();
    }

    fn change(root: &Path) {
        fs::write(root.join("many/7"), "longer").unwrap();
        fs::remove_file(root.join("many/8")).unwrap();
        fs::write(root.join("many/new"), "new").unwrap();
        fs::write(root.join("a/b/two"), "other").unwrap();
        fs::rename(root.join("moved"), root.join("a/moved")).unwrap();
        fs::remove_dir_all(root.join("replaced")).unwrap();
        fs::write(root.join("replaced"), "a file").unwrap();
        fs::remove_file(root.join("emptied/six")).unwrap();
        fs::create_dir_all(root.join("a/b/c/d/e")).unwrap();
        fs::write(root.join("a/b/c/d/e/seven"), "seven").unwrap();
        fs::write(root.join("cache/x/eight"), "left out").unwrap();
        fs::remove_file(root.join("a/link")).unwrap();
        symlink("two", root.join("a/link")).unwrap();
    }

    /// Waits until a new file gets another timestamp than one written now.
    fn wait_for_another_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = || {
            let file = folder.path().join("file");
            fs::write(&file, "").unwrap();
            fs::metadata(file).unwrap().modified().unwrap()
        };
        let first = stamp();
        while stamp() == first {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_second_walk_finds_what_a_first_one_would() {
        let rules = Rules::new(&[], &["/cache".to_owned()]).unwrap();
        // As long before as if nothing were new, and as if everything were.
        for later in [Duration::from_mins(1), Duration::ZERO] {
            let folder = tempfile::tempdir().unwrap();
            fill(folder.path());
            let root = open_root(folder.path()).unwrap();
            let before = walk(&root, &rules, false).unwrap();
            let plan = Plan::new(&rules, &before, SystemTime::now() + later);
            let again = |plan: &Plan<'_>| plan.look(&root, None).unwrap().unwrap().listing(&root).unwrap();
            assert!(again(&plan).found == before.found, "{later:?}");
            wait_for_another_stamp();
            change(folder.path());
            let (found, wanted) = (again(&plan).found, walk(&root, &rules, false).unwrap().found);
            let paths = |all: &[Found]| -> Vec<_> {
                let small = all.iter().filter(|found| !found.path.starts_with(b"many/"));
                small.map(|found| String::from_utf8_lossy(&found.path).into_owned()).collect()
            };
            assert_eq!(paths(&found), paths(&wanted), "{later:?}");
            assert!(found == wanted, "{later:?}");
        }
    }

    #[test]
    fn a_second_walk_that_takes_too_long_ends() {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let root = open_root(folder.path()).unwrap();
        let (rules, before) = (Rules::none(), walk(&root, &Rules::none(), false).unwrap());
        let plan = Plan::new(&rules, &before, SystemTime::now());
        assert!(plan.look(&root, Some(Instant::now())).unwrap().is_none());
    }
}
