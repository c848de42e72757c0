//! What a site adds to every instance: its tools, and the certificates that it trusts. Both are read-only, and neither
//! has to be there.

use std::path::PathBuf;

use envd_api::agent::{CERTIFICATES, TOOLS};

use crate::runtime::Bind;

#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    pub(crate) tools: PathBuf,
    pub(crate) certificates: Option<PathBuf>,
}

impl Extras {
    /// What is there now. A link is followed here and not by the engine: a container keeps the tools that it was made
    /// with, whatever the link says later.
    pub(crate) fn binds(&self) -> Vec<Bind> {
        let tools = self.tools.canonicalize().ok().filter(|tools| tools.is_dir());
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
    fn what_is_there_is_mounted_where_the_link_points() {
        let here = tempfile::tempdir().unwrap();
        let (link, one) = (here.path().join("current"), here.path().join("one"));
        let extras = Extras { tools: link.clone(), certificates: Some(here.path().join("ca.pem")) };
        assert_eq!(extras.binds(), []);
        std::fs::create_dir(&one).unwrap();
        std::os::unix::fs::symlink("one", link).unwrap();
        std::fs::write(here.path().join("ca.pem"), "").unwrap();
        let sources: Vec<_> = extras.binds().into_iter().map(|bind| bind.source).collect();
        assert_eq!(sources, [one.canonicalize().unwrap(), here.path().join("ca.pem")]);
    }
}
