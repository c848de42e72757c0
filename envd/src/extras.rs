//! What a site adds to every instance: its tools, and the certificates that it trusts. Both are read-only.

use std::path::PathBuf;

use envd_api::agent::{CERTIFICATES, TOOLS};

use crate::runtime::Bind;

#[derive(Debug, Clone)]
pub(crate) struct Extras {
    /// Mounted also while it is empty, so that tools that come later are found by the instances that are there.
    pub(crate) tools: PathBuf,
    pub(crate) certificates: Option<PathBuf>,
}

impl Extras {
    /// Makes what is missing, since a container whose mounts are not there cannot start, and says what to mount.
    pub(crate) fn binds(&self) -> Vec<Bind> {
        let has_tools = self.tools.is_dir() || std::fs::create_dir_all(&self.tools).is_ok();
        let tools = has_tools.then(|| self.tools.clone());
        let certificates = self.certificates.clone().filter(|file| file.is_file());
        [(tools, TOOLS), (certificates, CERTIFICATES)]
            .into_iter()
            .filter_map(|(source, target)| Some((source?, target.to_owned())))
            .map(|(source, target)| Bind { source, target, read_only: true })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_can_come_later_and_certificates_must_be_there() {
        let here = tempfile::tempdir().unwrap();
        let (tools, ca) = (here.path().join("a/tools"), here.path().join("ca.pem"));
        let extras = Extras { tools: tools.clone(), certificates: Some(ca.clone()) };
        let sources = || extras.binds().into_iter().map(|bind| bind.source).collect::<Vec<_>>();
        assert_eq!(sources(), std::slice::from_ref(&tools));
        std::fs::write(&ca, "").unwrap();
        assert_eq!(sources(), [tools, ca]);
    }
}
