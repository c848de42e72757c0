//! Every sentence of the command's own, in English and Chinese.
//!
//! One function per sentence and one arm per language: a sentence that lacks a language does not compile. The words
//! for things are those of the console's glossary. What the gateway says is translated by its code ([`problem`]).

pub(crate) mod doctor;
pub(crate) mod help;
mod help_table;
mod images;
mod jobfile;
mod jobs;
mod open;
mod people;
mod problem;
mod ssh;
mod states;

use std::env;

pub(crate) use states::Title;

pub(crate) use gateway_api::words::Language;

/// All sentences, in one language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words(Language);

use Language::{Chinese, English};

impl Words {
    pub(crate) fn new(language: Language) -> Self {
        Self(language)
    }

    pub(crate) fn from_environment() -> Self {
        let first = ["BERTH_LANG", "LC_ALL", "LC_MESSAGES", "LANG"]
            .into_iter()
            .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
        Self::new(language(first.as_deref()))
    }

    pub(crate) fn is_english(self) -> bool {
        self.0 == English
    }

    fn pick(self, english: &'static str, chinese: &'static str) -> &'static str {
        match self.0 {
            English => english,
            Chinese => chinese,
        }
    }
}

fn language(locale: Option<&str>) -> Language {
    match locale {
        Some(locale) if locale.to_ascii_lowercase().starts_with("zh") => Chinese,
        Some(_) | None => English,
    }
}

// === errors ===

impl Words {
    pub(crate) fn error(self) -> &'static str {
        self.pick("error: ", "错误：")
    }

    pub(crate) fn hint(self) -> &'static str {
        self.pick("hint: ", "提示：")
    }

    pub(crate) fn request_id(self) -> &'static str {
        self.pick("request id: ", "请求编号：")
    }

    pub(crate) fn no_gateway(self) -> String {
        self.pick("not signed in to any gateway", "尚未登录任何网关").to_owned()
    }

    pub(crate) fn hint_login(self) -> String {
        self.pick(
            "`berth login URL -u NAME`, such as `berth login http://localhost:8080 -u alice`",
            "请运行 `berth login URL -u NAME`，例如 `berth login http://localhost:8080 -u alice`",
        )
        .to_owned()
    }

    pub(crate) fn unreachable(self, url: &str, cause: &str) -> String {
        match self.0 {
            English => format!("no answer from `{url}`: {cause}"),
            Chinese => format!("`{url}` 没有响应：{cause}"),
        }
    }

    pub(crate) fn hint_unreachable(self) -> String {
        self.pick(
            "check that the gateway runs and that the address is right",
            "请检查网关是否在运行、地址是否正确",
        )
        .to_owned()
    }

    pub(crate) fn bad_address(self, address: &str, reason: &str) -> String {
        match self.0 {
            English => format!("`{address}` is not the address of a gateway: {reason}"),
            Chinese => format!("`{address}` 不是网关地址：{reason}"),
        }
    }

    pub(crate) fn not_a_gateway(self, url: &str, what: &str) -> String {
        match self.0 {
            English => format!("what `{url}` answers is not from a gateway: {what}"),
            Chinese => format!("`{url}` 的答复不像来自网关：{what}"),
        }
    }

    pub(crate) fn hint_not_a_gateway(self) -> String {
        self.pick(
            "check the address, and what stands between here and the gateway",
            "请检查地址，以及您与网关之间的代理设备",
        )
        .to_owned()
    }

    pub(crate) fn too_late(self, seconds: u64) -> String {
        match self.0 {
            English => format!("not done after {seconds} s"),
            Chinese => format!("等了 {seconds} 秒仍未完成"),
        }
    }

    pub(crate) fn hint_too_late(self) -> String {
        self.pick(
            "it goes on without you: `berth show NAME` tells how far it is; `--timeout` waits longer",
            "操作仍在继续：`berth show NAME` 可查看进展，`--timeout` 可延长等待",
        )
        .to_owned()
    }

    pub(crate) fn no_instance(self, name: &str) -> String {
        match self.0 {
            English => format!("no instance named `{name}`"),
            Chinese => format!("没有名为 `{name}` 的实例"),
        }
    }

    pub(crate) fn hint_nearest(self, name: &str) -> String {
        match self.0 {
            English => format!("did you mean `{name}`?"),
            Chinese => format!("您是不是要找 `{name}`？"),
        }
    }

    pub(crate) fn hint_list(self) -> String {
        self.pick("`berth ls` lists your instances", "`berth ls` 可列出您的实例").to_owned()
    }

    pub(crate) fn no_variable(self, name: &str) -> String {
        match self.0 {
            English => format!("`--env {name}` has no value, and there is no `{name}` in this shell"),
            Chinese => format!("`--env {name}` 没有值，当前 shell 中也没有 `{name}`"),
        }
    }

    pub(crate) fn hint_variable(self) -> String {
        self.pick("write it like `--env NAME=value`", "请写成 `--env NAME=value`").to_owned()
    }

    pub(crate) fn no_password(self) -> String {
        self.pick("there is no terminal to ask for the password", "没有终端，无法询问密码").to_owned()
    }

    pub(crate) fn hint_password(self) -> String {
        self.pick(
            "`--password-stdin` reads it from standard input",
            "用 `--password-stdin` 可从标准输入读取密码",
        )
        .to_owned()
    }

    pub(crate) fn no_user(self) -> String {
        self.pick("there is no user name", "缺少用户名").to_owned()
    }

    pub(crate) fn hint_user(self) -> String {
        self.pick("give it with `-u NAME`", "请用 `-u NAME` 给出").to_owned()
    }

    pub(crate) fn hint_sign_in(self) -> String {
        self.pick("`berth login` signs in", "请运行 `berth login` 登录").to_owned()
    }

    pub(crate) fn instance_failed(self, name: &str, reason: &str) -> String {
        match self.0 {
            English => format!("instance `{name}` failed: {reason}"),
            Chinese => format!("实例 `{name}` 失败：{reason}"),
        }
    }

    pub(crate) fn hint_logs(self, name: &str) -> String {
        match self.0 {
            English => format!("`berth logs {name}` shows what it wrote"),
            Chinese => format!("`berth logs {name}` 可查看其输出"),
        }
    }

    pub(crate) fn instance_gone(self, name: &str) -> String {
        match self.0 {
            English => format!("instance `{name}` was deleted meanwhile"),
            Chinese => format!("实例 `{name}` 在等待期间被删除"),
        }
    }
}

// === what is said along the way ===

impl Words {
    pub(crate) fn ask_user(self) -> &'static str {
        self.pick("User: ", "用户名：")
    }

    pub(crate) fn ask_password(self) -> &'static str {
        self.pick("Password: ", "密码：")
    }

    pub(crate) fn signed_in(self, url: &str, user: &str) -> String {
        match self.0 {
            English => format!("signed in to {url} as `{user}`"),
            Chinese => format!("已以 `{user}` 登录 {url}"),
        }
    }

    pub(crate) fn change_password(self, url: &str) -> String {
        match self.0 {
            English => {
                format!(
                    "somebody else has seen this password; until it is changed, with `berth passwd` or at {url}, nothing else works"
                )
            }
            Chinese => format!("该密码曾被他人看到；用 `berth passwd` 或在 {url} 修改之前，不能进行其他操作"),
        }
    }

    pub(crate) fn signed_out(self) -> &'static str {
        self.pick("signed out", "已退出登录")
    }

    pub(crate) fn token_lives_on(self, cause: &str) -> String {
        match self.0 {
            English => format!("the token is forgotten here, but the gateway did not hear of it: {cause}"),
            Chinese => format!("本机已删除访问令牌，但未能通知网关：{cause}"),
        }
    }

    pub(crate) fn being_made(self, name: &str) -> String {
        match self.0 {
            English => format!("`{name}` is being made; `berth show {name}` tells how far it is"),
            Chinese => format!("正在创建 `{name}`；`berth show {name}` 可查看进展"),
        }
    }

    pub(crate) fn deleted(self, name: &str, already: bool) -> String {
        match (self.0, already) {
            (English, true) => format!("`{name}` is deleted; the files in /userhome are kept"),
            (English, false) => format!("`{name}` is being deleted; the files in /userhome are kept"),
            (Chinese, true) => format!("`{name}` 已删除；/userhome 中的文件会保留"),
            (Chinese, false) => format!("正在删除 `{name}`；/userhome 中的文件会保留"),
        }
    }

    pub(crate) fn how_to_detach(self) -> &'static str {
        self.pick("Ctrl-] detaches; the terminal goes on", "按 Ctrl-] 离开；终端会继续运行")
    }

    pub(crate) fn detached(self, name: &str, terminal: &str) -> String {
        match self.0 {
            English => format!("detached; `berth terminal {name} {terminal}` comes back"),
            Chinese => format!("已离开；`berth terminal {name} {terminal}` 可重新进入"),
        }
    }

    pub(crate) fn no_terminals(self, name: &str) -> String {
        match self.0 {
            English => format!("`{name}` has no terminals; `berth terminal {name}` makes one"),
            Chinese => format!("`{name}` 没有终端；`berth terminal {name}` 可新建"),
        }
    }

    pub(crate) fn terminal_closed(self, terminal: &str) -> String {
        match self.0 {
            English => format!("terminal `{terminal}` is closed"),
            Chinese => format!("终端 `{terminal}` 已关闭"),
        }
    }

    pub(crate) fn no_instances(self) -> &'static str {
        self.pick(
            "you have no instances; `berth create NAME` makes one",
            "还没有实例；`berth create NAME` 可创建",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_chooses_the_language() {
        for locale in ["zh", "zh_CN.UTF-8", "zh-Hans", "ZH_TW"] {
            assert_eq!(language(Some(locale)), Chinese, "{locale}");
        }
        for locale in ["en_US.UTF-8", "C", "C.UTF-8", "de", "x_zh"] {
            assert_eq!(language(Some(locale)), English, "{locale}");
        }
        assert_eq!(language(None), English);
    }
}
