//! Seals what must be read again: secrets of users, logins of registries.
//!
//! AES-256-GCM with a key that lies beside the store and not in it, so a copy of the store alone tells nothing. What a
//! value is for (whose it is, its name, its registry) is sealed with it: a row that somebody has changed by hand does
//! not open.

use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};

const FILE: &str = "secrets.key";
const KEY_BYTES: usize = 32;
/// The first byte of all that is sealed: how it is sealed, and with which key.
const VERSION: u8 = 1;

/// The key that seals and opens.
pub(crate) struct Vault(RandomizedNonceKey);

/// Why something could not be sealed or opened. `Display` is for the operator.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VaultError {
    #[error("the key of the secrets, {path}, cannot be read or made")]
    Key {
        path: String,
        #[source]
        cause: std::io::Error,
    },
    #[error("a secret does not open: it was sealed with another key than keys/{FILE}, or was changed")]
    Closed,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Vault")
    }
}

impl Vault {
    /// Reads the key in `folder`, or makes it there.
    pub(crate) fn open(folder: &Path) -> Result<Self, VaultError> {
        let path = folder.join(FILE);
        let key = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => make(folder, &path),
            read => read,
        };
        let key = key.and_then(|key| {
            RandomizedNonceKey::new(&AES_256_GCM, &key)
                .map_err(|_| std::io::Error::other(format!("it has {} bytes and not {KEY_BYTES}", key.len())))
        });
        key.map(Self).map_err(|cause| VaultError::Key { path: path.display().to_string(), cause })
    }

    /// `purpose` must be the same when it is opened.
    pub(crate) fn seal(&self, purpose: &str, value: &str) -> Result<Vec<u8>, VaultError> {
        let mut inside = value.as_bytes().to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::from(purpose.as_bytes()), &mut inside);
        let nonce = nonce.map_err(|_| VaultError::Closed)?;
        let mut sealed = vec![VERSION];
        sealed.extend_from_slice(nonce.as_ref());
        sealed.append(&mut inside);
        Ok(sealed)
    }

    pub(crate) fn unseal(&self, purpose: &str, sealed: &[u8]) -> Result<String, VaultError> {
        let rest = sealed.strip_prefix(&[VERSION]).ok_or(VaultError::Closed)?;
        let (nonce, inside) = rest.split_at_checked(NONCE_LEN).ok_or(VaultError::Closed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::Closed)?;
        let mut inside = inside.to_vec();
        let value = self.0.open_in_place(nonce, Aad::from(purpose.as_bytes()), &mut inside);
        let value = value.map_err(|_| VaultError::Closed)?;
        String::from_utf8(value.to_vec()).map_err(|_| VaultError::Closed)
    }
}

/// Written beside its place and moved there whole, so that a crash leaves none or all of it.
fn make(folder: &Path, path: &Path) -> std::io::Result<Vec<u8>> {
    std::fs::create_dir_all(folder)?;
    let key: [u8; KEY_BYTES] = rand::random();
    let new = path.with_extension("new");
    let mut file = std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&key)?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    std::fs::File::open(folder)?.sync_all()?;
    Ok(key.to_vec())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_sealed_opens_for_its_purpose_and_with_its_key_alone() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let sealed = Vault::open(&keys).unwrap().seal("alice/HF_TOKEN", "hush").unwrap();
        assert!(!sealed.windows(4).any(|bytes| bytes == b"hush"));
        let again = Vault::open(&keys).unwrap();
        assert_ne!(again.seal("alice/HF_TOKEN", "hush").unwrap(), sealed);
        assert_eq!(again.unseal("alice/HF_TOKEN", &sealed).unwrap(), "hush");
        assert!(again.unseal("bob/HF_TOKEN", &sealed).is_err());
        for cut in [0, 1, 12, sealed.len() - 1] {
            assert!(again.unseal("alice/HF_TOKEN", &sealed[..cut]).is_err());
        }
        let mode = std::fs::metadata(keys.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let other = Vault::open(&folder.path().join("other")).unwrap();
        assert!(other.unseal("alice/HF_TOKEN", &sealed).is_err());
        std::fs::write(keys.join(FILE), "nonsense").unwrap();
        assert!(Vault::open(&keys).is_err());
    }
}
