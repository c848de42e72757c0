//! Where a program is, before it is run: so that a missing one is an answer in words and not an exit code.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Why a program cannot be run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("`{0}` is not in this image")]
    Missing(String),
    #[error("`{0}` is in this image but is not a program")]
    NotAProgram(String),
    #[error("`{0}` is not a directory in this instance")]
    NoDirectory(String),
    #[error("this image has no shell: neither bash nor sh is in it")]
    NoShell,
    #[error("no command was given")]
    Nothing,
}

/// Finds a program as a shell does: by `path` when the name has no slash, else from `directory`.
pub(crate) fn find(name: &str, path: &str, directory: &Path) -> Result<PathBuf, ProgramError> {
    if name.is_empty() {
        return Err(ProgramError::Nothing);
    }
    let mut found_something = false;
    let mut runs = |candidate: &Path| match std::fs::metadata(candidate) {
        Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => true,
        Ok(_) => {
            found_something = true;
            false
        }
        Err(_) => false,
    };
    let found = if name.contains('/') {
        Some(directory.join(name)).filter(|candidate| runs(candidate))
    } else {
        let folders = path.split(':').map(|folder| if folder.is_empty() { "." } else { folder });
        folders.map(|folder| directory.join(folder).join(name)).find(|candidate| runs(candidate))
    };
    match found {
        Some(program) => Ok(program),
        None if found_something => Err(ProgramError::NotAProgram(name.to_owned())),
        None => Err(ProgramError::Missing(name.to_owned())),
    }
}

/// The shell of a terminal: the account's own, else bash, else sh.
pub(crate) fn shell(own: Option<&str>, path: &str) -> Result<PathBuf, ProgramError> {
    let refuses = |shell: &str| shell.ends_with("/nologin") || shell.ends_with("/false");
    let candidates =
        own.into_iter().filter(|shell| !refuses(shell)).chain(["bash", "/bin/bash", "sh", "/bin/sh"]);
    let mut found = candidates.filter_map(|name| find(name, path, Path::new("/")).ok());
    found.next().ok_or(ProgramError::NoShell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_path_or_by_place() {
        let here = tempfile::tempdir().unwrap();
        let program = here.path().join("tool");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::write(here.path().join("notes"), "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("/nowhere:{}", here.path().display());

        let find = |name: &str| find(name, &path, here.path());
        assert_eq!(find("tool"), Ok(program.clone()));
        assert_eq!(find("./tool"), Ok(here.path().join("./tool")));
        assert_eq!(find(program.to_str().unwrap()), Ok(program));
        assert_eq!(find("nope"), Err(ProgramError::Missing("nope".to_owned())));
        assert_eq!(find("notes"), Err(ProgramError::NotAProgram("notes".to_owned())));
        assert_eq!(find("/"), Err(ProgramError::NotAProgram("/".to_owned())));
        assert_eq!(find(""), Err(ProgramError::Nothing));
        assert_eq!(shell(Some("/sbin/nologin"), "/nowhere").unwrap(), Path::new("/bin/bash"));
    }
}
