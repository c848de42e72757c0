//! What is left out of an image: what is not the user's own, and what the user does not want in it.

/// What the engine and the agent put into a container. Nothing of it is the user's.
const NEVER: [&str; 8] =
    [".berth", "dev", "proc", "sys", "etc/hosts", "etc/hostname", "etc/resolv.conf", ".dockerenv"];

/// Which paths are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Relative paths; what is at them and below.
    never: Vec<Vec<u8>>,
    /// Patterns by their parts.
    exclude: Vec<Vec<Vec<u8>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Kept,
    /// Nobody has to be told of it.
    Never,
    Excluded,
}

/// Why a path cannot be excluded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an absolute path inside the instance")]
pub(crate) struct NotAPath(String);

impl Rules {
    /// `mounts` are the absolute paths where something else is mounted, `exclude` what the request says.
    pub(super) fn new(mounts: &[String], exclude: &[String]) -> Result<Self, NotAPath> {
        let mut never: Vec<_> = NEVER.iter().map(|path| path.as_bytes().to_vec()).collect();
        never.extend(mounts.iter().map(|path| path.trim_matches('/').as_bytes().to_vec()));
        let exclude = exclude.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?;
        Ok(Self { never, exclude })
    }

    /// Everything is kept.
    pub(super) fn none() -> Self {
        Self::default()
    }

    pub(super) fn verdict(&self, path: &[u8]) -> Verdict {
        if self.never.iter().any(|never| is_at_or_below(path, never)) {
            return Verdict::Never;
        }
        // A directory that is named itself is kept and emptied.
        let is_below = |pattern: &Vec<Vec<u8>>| {
            let parts: Vec<_> = path.split(|&byte| byte == b'/').collect();
            parts.len() > pattern.len() && matches(pattern, &parts[..pattern.len()])
        };
        if self.exclude.iter().any(is_below) { Verdict::Excluded } else { Verdict::Kept }
    }

    /// Whether what is in this directory is left out, though not the directory.
    pub(super) fn is_emptied(&self, path: &[u8]) -> bool {
        self.is_named(path)
    }

    /// Whether a pattern names exactly this path.
    pub(super) fn is_named(&self, path: &[u8]) -> bool {
        let parts: Vec<_> = path.split(|&byte| byte == b'/').collect();
        self.exclude.iter().any(|pattern| parts.len() == pattern.len() && matches(pattern, &parts))
    }
}

fn matches(pattern: &[Vec<u8>], parts: &[&[u8]]) -> bool {
    pattern.iter().zip(parts).all(|(pattern, part)| pattern == b"*" || pattern == part)
}

fn pattern(text: &str) -> Result<Vec<Vec<u8>>, NotAPath> {
    let parts: Vec<_> = text.split('/').filter(|part| !part.is_empty()).collect();
    let odd = |part: &&str| matches!(*part, "." | "..") || part.contains('\0');
    if !text.starts_with('/') || parts.is_empty() || parts.iter().any(odd) {
        return Err(NotAPath(text.chars().filter(|letter| !letter.is_control()).take(128).collect()));
    }
    Ok(parts.into_iter().map(|part| part.as_bytes().to_vec()).collect())
}

fn is_at_or_below(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_and_our_own_are_never_in_it_and_patterns_empty_directories() {
        let exclude = ["/tmp", "/home/*/.cache", "/data/big.bin"].map(str::to_owned);
        let rules = Rules::new(&["/userhome".to_owned(), "/mnt/a".to_owned()], &exclude).unwrap();
        let verdict = |path: &str| rules.verdict(path.as_bytes());
        for never in [".berth", ".berth/agent", "userhome", "userhome/x", "mnt/a/b", "etc/hosts", "dev/null"]
        {
            assert_eq!(verdict(never), Verdict::Never, "{never}");
        }
        for kept in ["tmp", "home/li/.cache", "userhome2", "mnt", "mnt/ab", "etc", "home/.cache", "tmpx/y"] {
            assert_eq!(verdict(kept), Verdict::Kept, "{kept}");
        }
        for excluded in ["tmp/x", "home/li/.cache/pip/x"] {
            assert_eq!(verdict(excluded), Verdict::Excluded, "{excluded}");
        }
        assert!(
            rules.is_emptied(b"tmp") && rules.is_emptied(b"home/li/.cache") && !rules.is_emptied(b"home")
        );
        assert!(rules.is_named(b"data/big.bin"));
    }

    #[test]
    fn what_is_not_a_path_is_refused() {
        for wrong in ["", "/", "tmp", "/a/../b", "/a/./b", "//", "/a\0b"] {
            assert!(Rules::new(&[], &[wrong.to_owned()]).is_err(), "{wrong:?}");
        }
    }
}
