//! Who commands run as: the image's `USER`, looked up in the image's own `/etc/passwd` and `/etc/group`.
//!
//! Read by hand, as container engines do: a static program has no name services, and the image decides.

use std::io::Read as _;

use rustix::fs::{FileType, Mode, OFlags};

/// The longest account file that is read.
const FILE_MAX: u64 = 4 << 20;

/// A user of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// All groups, the primary one first.
    pub(crate) groups: Vec<u32>,
    pub(crate) name: Option<String>,
    pub(crate) home: String,
    /// The login shell, when the image names one.
    pub(crate) shell: Option<String>,
}

/// Why there is no such account.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AccountError {
    #[error("this image runs as user `{0}`, which is not in its /etc/passwd")]
    NoUser(String),
    #[error("this image runs as group `{0}`, which is not in its /etc/group")]
    NoGroup(String),
}

struct Passwd<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
    shell: &'a str,
}

struct Group<'a> {
    name: &'a str,
    gid: u32,
    members: &'a str,
}

/// Looks up `name`, `uid`, `name:group`, `uid:gid` or nothing, which is root.
pub(crate) fn look_up(user: &str) -> Result<Account, AccountError> {
    resolve(user, &read("/etc/passwd"), &read("/etc/group"))
}

/// Reads a regular file; what is missing or strange is empty.
fn read(path: &str) -> String {
    let open = || {
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())
            .ok()?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).ok()?.st_mode);
        (kind == FileType::RegularFile).then(|| std::fs::File::from(file))
    };
    let mut bytes = Vec::new();
    if let Some(file) = open() {
        let _what_was_read_counts = file.take(FILE_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn resolve(user: &str, passwd: &str, group: &str) -> Result<Account, AccountError> {
    let (user, wanted_group) = user.split_once(':').map_or((user, ""), |(user, group)| (user, group));
    let user = if user.is_empty() { "0" } else { user };
    let number = user.parse::<u32>().ok();
    let known = passwd
        .lines()
        .filter_map(Passwd::parse)
        .find(|entry| entry.name == user || Some(entry.uid) == number);
    let mut account = match (known, number) {
        (Some(entry), _) => entry.account(),
        (None, Some(uid)) => {
            Account { uid, gid: 0, groups: Vec::new(), name: None, home: "/".to_owned(), shell: None }
        }
        (None, None) => return Err(AccountError::NoUser(user.to_owned())),
    };
    let groups = || group.lines().filter_map(Group::parse);
    if wanted_group.is_empty() {
        let name = account.name.clone();
        let member =
            |entry: &Group<'_>| entry.members.split(',').any(|member| Some(member) == name.as_deref());
        account.groups = groups().filter(member).map(|entry| entry.gid).collect();
    } else {
        let number = wanted_group.parse::<u32>().ok();
        let known = groups().find(|entry| entry.name == wanted_group || Some(entry.gid) == number);
        account.gid = known
            .map(|entry| entry.gid)
            .or(number)
            .ok_or_else(|| AccountError::NoGroup(wanted_group.to_owned()))?;
    }
    account.groups.retain(|gid| *gid != account.gid);
    account.groups.insert(0, account.gid);
    Ok(account)
}

impl<'a> Passwd<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let _password = fields.next()?;
        let uid = fields.next()?.trim().parse().ok()?;
        let gid = fields.next()?.trim().parse().ok()?;
        let _comment = fields.next();
        let home = fields.next().unwrap_or_default();
        let shell = fields.next().unwrap_or_default().trim_end();
        Some(Self { name, uid, gid, home, shell })
    }

    fn account(&self) -> Account {
        Account {
            uid: self.uid,
            gid: self.gid,
            groups: Vec::new(),
            name: Some(self.name.to_owned()),
            home: if self.home.is_empty() { "/".to_owned() } else { self.home.to_owned() },
            shell: (!self.shell.is_empty()).then(|| self.shell.to_owned()),
        }
    }
}

impl<'a> Group<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let _password = fields.next()?;
        let gid = fields.next()?.trim().parse().ok()?;
        Some(Self { name, gid, members: fields.next().unwrap_or_default().trim_end() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        # a comment\n\
        broken:x:one\n\
        alice:x:1000:1000:Alice,,,:/home/alice:/usr/bin/zsh\n\
        bare:x:7:8\n";
    const GROUP: &str = "root:x:0:\nalice:x:1000:\nvideo:x:44:bob,alice\naudio:x:29:alice\nusers:x:100:bob\n";

    #[test]
    fn users_are_found_as_engines_find_them() {
        let check = |user: &str, uid, gid, groups: &[u32], home: &str, shell: Option<&str>| {
            let account = resolve(user, PASSWD, GROUP).unwrap();
            assert_eq!((account.uid, account.gid, &account.groups[..]), (uid, gid, groups), "{user}");
            assert_eq!((account.home.as_str(), account.shell.as_deref()), (home, shell), "{user}");
        };
        check("", 0, 0, &[0], "/root", Some("/bin/bash"));
        check("alice", 1000, 1000, &[1000, 44, 29], "/home/alice", Some("/usr/bin/zsh"));
        check("1000", 1000, 1000, &[1000, 44, 29], "/home/alice", Some("/usr/bin/zsh"));
        check("alice:users", 1000, 100, &[100], "/home/alice", Some("/usr/bin/zsh"));
        check("alice:555", 1000, 555, &[555], "/home/alice", Some("/usr/bin/zsh"));
        check("4242", 4242, 0, &[0], "/", None);
        check("4242:44", 4242, 44, &[44], "/", None);
        check("bare", 7, 8, &[8], "/", None);
    }

    #[test]
    fn an_image_without_account_files_has_root_and_numbers() {
        assert_eq!(resolve("", "", "").unwrap().uid, 0);
        assert_eq!(resolve("12:34", "", "").unwrap().gid, 34);
        assert_eq!(resolve("alice", "", ""), Err(AccountError::NoUser("alice".to_owned())));
        assert_eq!(resolve("0:staff", "", ""), Err(AccountError::NoGroup("staff".to_owned())));
    }
}
