//! What an address below `/v2/` names. Whatever is not exactly one of these is nothing: the registry behind the gateway
//! never sees an address that a client wrote, only one made from what was understood.

/// Something in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) repository: &'a str,
    pub(crate) what: What<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What<'a> {
    Tags,
    Manifest(Reference<'a>),
    Blob(&'a str),
    /// Where uploads begin.
    Uploads,
    Upload(&'a str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reference<'a> {
    Tag(&'a str),
    Digest(&'a str),
}

impl<'a> Place<'a> {
    /// Reads what follows `/v2/`.
    pub(crate) fn read(path: &'a str) -> Option<Self> {
        let (repository, what) = if let Some(repository) = path.strip_suffix("/tags/list") {
            (repository, What::Tags)
        } else if let Some((repository, id)) = path.rsplit_once("/blobs/uploads/") {
            (repository, if id.is_empty() { What::Uploads } else { What::Upload(plain(id)?) })
        } else if let Some(repository) = path.strip_suffix("/blobs/uploads") {
            (repository, What::Uploads)
        } else if let Some((repository, digest)) = path.rsplit_once("/blobs/") {
            (repository, What::Blob(is_digest(digest).then_some(digest)?))
        } else {
            let (repository, reference) = path.rsplit_once("/manifests/")?;
            let reference = if is_digest(reference) {
                Reference::Digest(reference)
            } else {
                Reference::Tag(is_tag(reference).then_some(reference)?)
            };
            (repository, What::Manifest(reference))
        };
        is_repository(repository).then_some(Self { repository, what })
    }
}

pub(crate) fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:");
    hex.is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

pub(crate) fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&text.len()) && !text.starts_with(['.', '-']) && text.bytes().all(word)
}

/// Parts with slashes between, none of them odd enough to lead anywhere else.
pub(crate) fn is_repository(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let is_part = |part: &str| {
        let ends = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
        ends(part.chars().next()) && ends(part.chars().next_back()) && part.bytes().all(plain)
    };
    text.len() <= 255 && text.split('/').all(is_part)
}

/// An upload's name is the registry's own choice.
fn plain(text: &str) -> Option<&str> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"_=-".contains(&byte);
    (text.len() <= 256 && text.bytes().all(word)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_a_registry() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let check = |path: &str, repository: &str, what: What<'_>| {
            assert_eq!(Place::read(path), Some(Place { repository, what }), "{path}");
        };
        check("alice/train/tags/list", "alice/train", What::Tags);
        check("alice/train/manifests/1.0", "alice/train", What::Manifest(Reference::Tag("1.0")));
        check(
            &format!("alice/train/manifests/{digest}"),
            "alice/train",
            What::Manifest(Reference::Digest(&digest)),
        );
        check(&format!("a/b/c/blobs/{digest}"), "a/b/c", What::Blob(&digest));
        check("alice/train/blobs/uploads/", "alice/train", What::Uploads);
        check("alice/train/blobs/uploads", "alice/train", What::Uploads);
        check("alice/train/blobs/uploads/1b2-3c", "alice/train", What::Upload("1b2-3c"));
        check("a/manifests/manifests/x", "a/manifests", What::Manifest(Reference::Tag("x")));
    }

    #[test]
    fn nothing_else_is_one() {
        for wrong in [
            "",
            "_catalog",
            "/tags/list",
            "alice//tags/list",
            "alice/../bob/train/tags/list",
            "alice/./train/tags/list",
            "alice/train%2f..%2f/tags/list",
            "Alice/train/tags/list",
            "alice/train/manifests/",
            "alice/train/manifests/a b",
            "alice/train/manifests/../x",
            "alice/train/manifests/.x",
            "alice/train/blobs/latest",
            "alice/train/blobs/sha256:abc",
            "alice/train/blobs/uploads/../x",
            "alice/train/blobs/uploads/a%2e",
            "alice/train",
        ] {
            assert_eq!(Place::read(wrong), None, "{wrong}");
        }
    }
}
