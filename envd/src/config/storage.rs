//! The table of storages, one section `[envd.storage.<id>]` each.

use std::path::Path;

use serde::Deserialize;

use super::typed;
use crate::storage::{HOME, HOME_AT, Key, Owner, Storage, check_key};

/// Where nothing is ever mounted.
const NOT_AT: [&str; 4] = [".berth", "dev", "proc", "sys"];

/// The keys of one section.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    root: Option<String>,
    at: Option<String>,
    key: Option<KeyWord>,
    #[serde(default)]
    read_only: bool,
    owner: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeyWord {
    User,
    Group,
    Shared,
}

/// The storages that the file names, and `home` if it does not.
pub(super) fn table(data: &Path, mut sections: toml::Table, mistakes: &mut Vec<String>) -> Vec<Storage> {
    let home = sections.remove(HOME).unwrap_or_else(|| toml::Value::Table(toml::Table::new()));
    let all = std::iter::once((HOME.to_owned(), home)).chain(sections);
    let mut storages: Vec<Storage> = Vec::new();
    for (id, section) in all {
        let name = format!("envd.storage.{id}");
        let Some(section) = typed::<Section>(&name, section, mistakes) else { continue };
        let mut wrong = |what: String| mistakes.push(format!("`{name}`: {what}"));
        let Some(storage) = storage(data, id, section, &mut wrong) else { continue };
        if let Some(what) = storage.unsafe_root() {
            wrong(what);
        }
        if let Some(other) = storages.iter().find(|other| other.at == storage.at) {
            wrong(format!("`{}` is also where `{}` appears", storage.at, other.id));
        }
        storages.push(storage);
    }
    storages
}

fn storage(data: &Path, id: String, section: Section, wrong: &mut impl FnMut(String)) -> Option<Storage> {
    let is_home = id == HOME;
    let key = match section.key {
        Some(KeyWord::User) => Key::User,
        Some(KeyWord::Group) => Key::Group,
        Some(KeyWord::Shared) => Key::Shared,
        None if is_home => Key::User,
        None => {
            wrong("`key` is missing: `user`, `group` or `shared`".to_owned());
            return None;
        }
    };
    let root = section.root.or_else(|| is_home.then(|| data.join("home").display().to_string()));
    let at = section.at.or_else(|| is_home.then(|| HOME_AT.to_owned()));
    let (Some(root), Some(at)) = (root, at) else {
        wrong("it needs a `root` and an `at`".to_owned());
        return None;
    };
    if !root.starts_with('/') {
        wrong(format!("`root` is `{root}`; it must be an absolute path"));
    }
    if !is_a_place(&at) {
        wrong(format!("`at` is `{at}`; it must be a path such as `/mnt/user/{{user}}`"));
    }
    let owner = owner(section.owner.as_deref());
    if owner.is_none() {
        wrong("`owner` must be `root`, `keep` or numbers such as `1000:1000`".to_owned());
    }
    if let Err(error) = check_key(&id) {
        wrong(error.to_string());
    }
    for group in &section.groups {
        if let Err(error) = check_key(group) {
            wrong(error.to_string());
        }
    }
    let (read_only, groups, owner) = (section.read_only, section.groups, owner.unwrap_or(Owner::Root));
    Some(Storage { id, root: root.into(), at, key, read_only, owner, groups })
}

fn owner(text: Option<&str>) -> Option<Owner> {
    match text {
        None | Some("root") => Some(Owner::Root),
        Some("keep") => Some(Owner::Keep),
        Some(text) => {
            let (uid, gid) = text.split_once(':')?;
            Some(Owner::Fixed { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
        }
    }
}

/// Whether it is a path of its own in every instance, whatever the names of user and group are.
fn is_a_place(at: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = |part: &str| {
        let plain = part.replace("{user}", "u").replace("{group}", "g");
        !plain.is_empty() && !matches!(plain.as_str(), "." | "..") && plain.bytes().all(allowed)
    };
    let Some(path) = at.strip_prefix('/') else { return false };
    let first = path.split('/').next().unwrap_or_default();
    path.split('/').all(is_name) && !NOT_AT.contains(&first) && !first.contains('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str) -> (Vec<Storage>, Vec<String>) {
        let mut mistakes = Vec::new();
        let storages = table(Path::new("/data"), file.parse().unwrap(), &mut mistakes);
        (storages, mistakes)
    }

    #[test]
    fn a_site_with_several_roots() {
        let (storages, mistakes) = read(
            "[home]\nroot = '/nas/home'\nowner = '1000:1000'\n\
             [gdata]\nroot = '/nas/gdata'\nat = '/gdata'\nkey = 'shared'\nread_only = true\n\
             [user2]\nroot = '/nas2/user'\nat = '/mnt2/user/{user}'\nkey = 'user'\ngroups = ['vision']\nowner = 'keep'",
        );
        assert_eq!(mistakes, [""; 0]);
        let shown: Vec<_> = storages
            .iter()
            .map(|one| format!("{} {} {} {:?} {:?}", one.id, one.root.display(), one.at, one.key, one.owner))
            .collect();
        assert_eq!(
            shown,
            [
                "home /nas/home /userhome User Fixed { uid: 1000, gid: 1000 }",
                "gdata /nas/gdata /gdata Shared Root",
                "user2 /nas2/user /mnt2/user/{user} User Keep",
            ]
        );
        assert!(storages[1].read_only && storages[2].groups == ["vision"]);
    }

    #[test]
    fn mistakes_name_the_storage() {
        let check = |file: &str, words: &str| {
            let (_, mistakes) = read(file);
            assert!(mistakes.len() == 1 && mistakes[0].contains(words), "{file}: {mistakes:?}");
        };
        let rest = "root = '/nas'\nkey = 'user'\n";
        check(&format!("[x]\n{rest}"), "needs a `root` and an `at`");
        check("[x]\nroot = '/nas'\nat = '/x'", "`key` is missing");
        check("[x]\nroot = '/nas'\nat = '/x'\nkey = 'mine'", "mine");
        check(&format!("[x]\n{rest}at = '/x'\ncolour = 1"), "colour");
        check(&format!("[x]\n{rest}at = '/x'\nowner = 'me'"), "`owner` must be");
        check(&format!("[x]\n{rest}at = '/userhome'"), "also where `home` appears");
        check(&format!("[X]\n{rest}at = '/x'"), "not a key");
        check("[home]\nroot = 'nas'", "absolute");
        for at in ["x", "/", "/x/", "/x/../y", "/proc/x", "/.berth/door", "/{user}", "/x/{name}", "/x y"] {
            check(&format!("[x]\n{rest}at = '{at}'"), "such as");
        }
    }
}
