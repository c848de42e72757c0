//! The nearest name to one that does not exist.

/// The candidate that `wrong` was most probably meant to be, if any is near enough.
pub(crate) fn nearest<'a>(wrong: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (wrong.chars().count() / 3).clamp(1, 3);
    candidates
        .map(|candidate| (distance(&wrong.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be put in, taken out, changed or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (i, letter) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in right.iter().enumerate() {
            let mut least = (above[j + 1] + 1).min(row[j] + 1).min(above[j] + usize::from(letter != other));
            let swapped = i > 0 && j > 0 && *letter == right[j - 1] && left[i - 1] == *other;
            if swapped {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        let names = ["train_1", "train_2", "notebook", "a1"];
        for (wrong, meant) in [
            ("trian_2", Some("train_2")),
            ("train2", Some("train_2")),
            ("Train_1", Some("train_1")),
            ("notebok", Some("notebook")),
            ("a2", Some("a1")),
            ("b7", None),
            ("experiment", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names.into_iter()), meant, "{wrong}");
        }
        assert_eq!(nearest("a", std::iter::empty()), None);
    }
}
