//! The host's own key: ed25519, made once, readable by nobody else, and the same for ever.

use std::{
    io::Write as _,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use anyhow::Context as _;
use russh::keys::{Algorithm, PrivateKey, ssh_key::LineEnding};

const FILE: &str = "ssh_host_ed25519";

/// Reads the key in `folder`, or makes it there.
pub(super) fn load_or_make(folder: &Path) -> anyhow::Result<PrivateKey> {
    let path = folder.join(FILE);
    match std::fs::read(&path) {
        Ok(text) => {
            close_to_others(&path)
                .with_context(|| format!("the SSH host key {} cannot be made private", path.display()))?;
            let key = PrivateKey::from_openssh(&text)
                .with_context(|| format!("the SSH host key {} cannot be read", path.display()))?;
            anyhow::ensure!(
                key.algorithm() == Algorithm::Ed25519,
                "the SSH host key {} is not an ed25519 key",
                path.display()
            );
            Ok(key)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            make(folder, &path).with_context(|| format!("the SSH host key {} cannot be made", path.display()))
        }
        Err(error) => {
            Err(error).with_context(|| format!("the SSH host key {} cannot be read", path.display()))
        }
    }
}

/// A key that was copied here may have come with rights for others.
fn close_to_others(path: &Path) -> std::io::Result<()> {
    let mut rights = std::fs::metadata(path)?.permissions();
    if rights.mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "others could read the SSH host key; now they cannot");
        rights.set_mode(0o600);
        std::fs::set_permissions(path, rights)?;
    }
    Ok(())
}

/// Written beside its place and moved there whole, so that a crash leaves none or all of it.
fn make(folder: &Path, path: &Path) -> anyhow::Result<PrivateKey> {
    std::fs::create_dir_all(folder)?;
    let seed = russh::keys::ssh_key::private::Ed25519Keypair::from_seed(&rand::random());
    let key = PrivateKey::new(seed.into(), "berth")?;
    let text = key.to_openssh(LineEnding::LF)?;
    let new = path.with_extension("new");
    let mut file = std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    std::fs::File::open(folder)?.sync_all()?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let mode = || std::fs::metadata(keys.join(FILE)).unwrap().permissions().mode() & 0o777;
        let first = load_or_make(&keys).unwrap();
        assert_eq!(mode(), 0o600);
        // Also when it was opened to others meanwhile.
        std::fs::set_permissions(keys.join(FILE), std::fs::Permissions::from_mode(0o644)).unwrap();
        let again = load_or_make(&keys).unwrap();
        assert_eq!(first.public_key().key_data(), again.public_key().key_data());
        assert_eq!(mode(), 0o600);

        std::fs::write(keys.join(FILE), "nonsense").unwrap();
        assert!(load_or_make(&keys).unwrap_err().to_string().contains("cannot be read"));
    }
}
