//! A Dockerfile that would make the like of a saved image.
//!
//! Names and versions come from files that a user wrote. envd lets only plain letters through; here they are looked at
//! once more before they become words of a shell.

use std::{collections::BTreeMap, fmt::Write as _};

use gateway_api::{
    error::Reason,
    packages::{Package, Packages, Recipe},
};

use super::App;
use crate::{auth::Caller, error::Error, store::ImageRow};

impl App {
    /// How an image like this one could be made from its parent.
    pub(crate) async fn recipe(&self, caller: &Caller, name: &str) -> Result<Recipe, Error> {
        let row = self.find_image(caller, name).await?;
        let packages = self.store.packages_of(&row.id).await?;
        let packages = packages.ok_or_else(|| Error::unfit("image", Reason::PackagesUnknown))?;
        Ok(recipe(&row, &packages))
    }
}

fn recipe(row: &ImageRow, packages: &Packages) -> Recipe {
    let mut dockerfile = format!("# The like of {}:{}.\n", row.repository, row.tag);
    write_all(&mut dockerfile, &row.parent, packages);
    Recipe { dockerfile, lock: lock(packages) }
}

fn write_all(text: &mut String, parent: &str, packages: &Packages) {
    let _ = writeln!(text, "FROM {parent}");
    if !packages.apt.is_empty() {
        let words = packages.apt.iter().filter_map(|one| word(one, "="));
        run(text, "apt-get update && apt-get install -y --no-install-recommends --allow-downgrades", words);
        text.truncate(text.trim_end().len());
        text.push_str(" && \\\n    rm -rf /var/lib/apt/lists/*\n");
    }
    let removed: Vec<_> = packages.removed.iter().filter(|name| is_plain(name)).cloned().collect();
    if !removed.is_empty() {
        run(text, "apt-get remove -y", removed.into_iter());
    }
    for (at, words) in by_place(&packages.conda, "=") {
        run(text, &format!("conda install -y --prefix {at}"), words.into_iter());
    }
    for (at, words) in by_place(&packages.pip, "==") {
        run(text, &pip(&at), words.into_iter());
    }
}

/// The command that installs into an environment.
fn pip(at: &str) -> String {
    const INSTALL: &str = "-m pip install --no-cache-dir";
    match at {
        "" => format!("PIP_BREAK_SYSTEM_PACKAGES=1 python3 {INSTALL}"),
        at if at.ends_with("/.local") => format!("PIP_BREAK_SYSTEM_PACKAGES=1 python3 {INSTALL} --user"),
        at => {
            format!("if [ ! -x {at}/bin/python ]; then python3 -m venv {at}; fi && {at}/bin/python {INSTALL}")
        }
    }
}

fn run(text: &mut String, command: &str, words: impl Iterator<Item = String>) {
    let words: Vec<_> = words.collect();
    if !words.is_empty() {
        let _ = writeln!(text, "RUN {command} \\\n      {}", words.join(" \\\n      "));
    }
}

fn by_place(packages: &[Package], equals: &str) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in packages {
        let at = one.at.clone().unwrap_or_default();
        if let Some(word) = word(one, equals).filter(|_| at.split('/').skip(1).all(is_plain)) {
            places.entry(at).or_default().push(word);
        }
    }
    places
}

fn lock(packages: &Packages) -> Vec<String> {
    let lines = |who: &'static str, equals: &'static str, packages: &[Package]| -> Vec<String> {
        packages.iter().filter_map(|one| Some(format!("{who} {}", word(one, equals)?))).collect()
    };
    [
        lines("apt", "=", &packages.apt),
        lines("conda", "=", &packages.conda),
        lines("pip", "==", &packages.pip),
    ]
    .concat()
}

fn word(one: &Package, equals: &str) -> Option<String> {
    let is_right = is_plain(&one.name) && one.version.split('=').all(is_plain);
    is_right.then(|| format!("{}{equals}{}", one.name, one.version))
}

fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+:~-!".contains(&byte);
    !text.is_empty() && text.bytes().all(plain) && !text.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_manager_gets_its_line_and_nothing_odd_becomes_a_word() {
        let one = |name: &str, version: &str, at: Option<&str>| Package {
            name: name.to_owned(),
            version: version.to_owned(),
            at: at.map(str::to_owned),
        };
        let packages = Packages {
            apt: vec![one("git", "1:2.39", None), one("x; reboot", "1", None)],
            pip: vec![one("numpy", "2.1", None), one("six", "1", Some("/root/venv"))],
            conda: vec![one("zlib", "1.3=h4ab", Some("/opt/conda")), one("a", "1=b", Some("/x y"))],
            removed: vec!["vim".to_owned()],
        };
        let mut text = String::new();
        write_all(&mut text, "python:3.12", &packages);
        insta::assert_snapshot!(text);
        assert_eq!(
            lock(&packages),
            ["apt git=1:2.39", "conda zlib=1.3=h4ab", "conda a=1=b", "pip numpy==2.1", "pip six==1"]
        );
    }
}
