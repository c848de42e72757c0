//! Several layers as one.
//!
//! Engines take images of so many layers and no more. Before a save would come near that, the uppermost layers of the
//! image below are said once more, together with what has changed, as one layer in their place.

use std::collections::BTreeMap;

use super::walk::{Found, Kind, Listing, split};

/// What `layers`, the lowest first, say together. Each entry knows which of them it is of.
pub(super) fn merge(layers: Vec<Listing>) -> Listing {
    let mut merged: BTreeMap<Vec<u8>, Found> = BTreeMap::new();
    let mut all = Listing::default();
    for (number, listing) in layers.into_iter().enumerate().rev() {
        let (mut added, mut opaque) = (Vec::new(), Vec::new());
        for found in listing.found {
            if is_hidden(&merged, &found.path) {
                continue;
            }
            match merged.get(&found.path) {
                None => added.push(Found { root: number, ..found }),
                // What is below both does not count in either.
                Some(above) if above.kind == (Kind::Directory { opaque: false }) => {
                    if found.kind != (Kind::Directory { opaque: false }) {
                        opaque.push(found.path);
                    }
                }
                Some(_) => {}
            }
        }
        merged.extend(added.into_iter().map(|found| (found.path.clone(), found)));
        for path in opaque {
            merged.entry(path).and_modify(|found| found.kind = Kind::Directory { opaque: true });
        }
        all.odd += listing.odd;
    }
    all.found = merged.into_values().collect();
    all.sort();
    all
}

/// Whether a layer above says that nothing below this path counts.
fn is_hidden(above: &BTreeMap<Vec<u8>, Found>, path: &[u8]) -> bool {
    let mut path = path;
    while !path.is_empty() {
        (path, _) = split(path);
        if above.get(path).is_some_and(|found| found.kind != (Kind::Directory { opaque: false })) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::save::walk::About;

    const FOLDER: Kind = Kind::Directory { opaque: false };
    const OPAQUE: Kind = Kind::Directory { opaque: true };

    fn layer(entries: &[(&str, Kind)]) -> Listing {
        let found = |(path, kind): &(&str, Kind)| Found {
            path: path.as_bytes().to_vec(),
            kind: *kind,
            about: About::default(),
            root: 0,
        };
        Listing { found: entries.iter().map(found).collect(), ..Listing::default() }
    }

    #[test]
    fn what_is_above_counts_and_what_it_hides_does_not() {
        let merged = merge(vec![
            layer(&[
                ("", FOLDER),
                ("a", FOLDER),
                ("a/gone", Kind::File),
                ("a/kept", Kind::File),
                ("b", FOLDER),
                ("b/x", Kind::File),
                ("c", FOLDER),
                ("c/x", Kind::File),
                ("d", Kind::File),
            ]),
            layer(&[("", FOLDER), ("a", FOLDER), ("a/gone", Kind::Gone), ("b", OPAQUE), ("b/y", Kind::File)]),
            layer(&[
                ("", FOLDER),
                ("b", FOLDER),
                ("b/z", Kind::File),
                ("c", Kind::Symlink),
                ("d", FOLDER),
                ("d/x", Kind::File),
            ]),
        ]);
        let seen: Vec<_> = merged
            .found
            .iter()
            .map(|found| (String::from_utf8_lossy(&found.path).into_owned(), found.kind, found.root))
            .collect();
        let wanted = [
            ("", FOLDER, 2),
            ("a", FOLDER, 1),
            ("a/gone", Kind::Gone, 1),
            ("a/kept", Kind::File, 0),
            ("b", OPAQUE, 2),
            ("b/y", Kind::File, 1),
            ("b/z", Kind::File, 2),
            ("c", Kind::Symlink, 2),
            ("d", OPAQUE, 2),
            ("d/x", Kind::File, 2),
        ];
        assert_eq!(seen, wanted.map(|(path, kind, root)| (path.to_owned(), kind, root)));
    }
}
