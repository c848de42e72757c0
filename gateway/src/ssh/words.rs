//! What the door itself says to people, in the language that their client names (`LANG`).

use std::collections::BTreeMap;

use gateway_api::{Instance, Status, instance::WaitReason, words::Language};

use crate::error::{Error, chain};

use Language::{Chinese, English};

/// The sentences in one language.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words(Language);

impl Words {
    /// By the variables that a client sent, the strongest first.
    pub(super) fn of(env: &BTreeMap<String, String>) -> Self {
        let names = ["LC_ALL", "LC_MESSAGES", "LANG"];
        let locale = names.iter().find_map(|name| env.get(*name).filter(|value| !value.is_empty()));
        Self(if locale.is_some_and(|locale| locale.starts_with("zh")) { Chinese } else { English })
    }

    fn pick(self, english: &'static str, chinese: &'static str) -> &'static str {
        match self.0 {
            English => english,
            Chinese => chinese,
        }
    }

    // === states ===

    /// What goes on with an instance, in one line.
    pub(super) fn describe(self, instance: &Instance) -> String {
        let name = &instance.name;
        match (&instance.status, self.0) {
            (Status::Waiting { .. }, language) if let Some(place) = &instance.queue => match language {
                English => format!("`{name}` waits: {}", language.place(place)),
                Chinese => format!("`{name}` 正在等待：{}", language.place(place)),
            },
            (Status::Waiting { message, .. }, English) => format!("`{name}` waits: {message}"),
            (Status::Waiting { reason, message }, Chinese) => {
                format!("`{name}` 正在等待：{}", waits_for(*reason, message))
            }
            (Status::Pulling { done_bytes, total_bytes }, language) => {
                let part = part(*done_bytes, *total_bytes);
                match language {
                    English => format!("`{name}` gets its image: {part}"),
                    Chinese => format!("`{name}` 正在拉取镜像：{part}"),
                }
            }
            (Status::Starting, English) => format!("`{name}` starts"),
            (Status::Starting, Chinese) => format!("`{name}` 正在启动"),
            (Status::Running { .. }, English) => format!("`{name}` runs"),
            (Status::Running { .. }, Chinese) => format!("`{name}` 运行中"),
            (Status::Stopping, English) => format!("`{name}` is stopping"),
            (Status::Stopping, Chinese) => format!("`{name}` 正在停止"),
            (Status::Stopped { .. }, English) => format!("`{name}` is stopped"),
            (Status::Stopped { .. }, Chinese) => format!("`{name}` 已停止"),
            (Status::Succeeded, English) => format!("the command of `{name}` has ended"),
            (Status::Succeeded, Chinese) => format!("`{name}` 的命令已结束"),
            (Status::Failed { reason, .. }, English) => format!("`{name}` failed: {reason}"),
            (Status::Failed { reason, .. }, Chinese) => format!("`{name}` 失败：{reason}"),
            (Status::Deleting, English) => format!("`{name}` is being deleted"),
            (Status::Deleting, Chinese) => format!("`{name}` 正在删除"),
        }
    }

    pub(super) fn start_it(self, instance: &Instance) -> String {
        let now = self.describe(instance);
        match self.0 {
            English => format!("berth: {now}. Start it? [Y/n] "),
            Chinese => format!("berth：{now}。要启动它吗？[Y/n] "),
        }
    }

    pub(super) fn yes(self) -> &'static str {
        self.pick("yes", "是")
    }

    pub(super) fn no(self) -> &'static str {
        self.pick("no", "否")
    }

    /// Why somebody who sits at no terminal does not get in.
    pub(super) fn not_running(self, instance: &Instance) -> String {
        let now = self.describe(instance);
        let passes = instance.status.is_passing();
        match (self.0, passes) {
            (English, true) => format!("{now}; try again in a moment"),
            (Chinese, true) => format!("{now}，请稍后再试"),
            (English, false) => format!("{now}; start it with: berth start {}", instance.name),
            (Chinese, false) => format!("{now}，请先启动：berth start {}", instance.name),
        }
    }

    /// Why nobody gets into a task any more.
    pub(super) fn is_over(self, instance: &Instance) -> String {
        let now = self.describe(instance);
        match self.0 {
            English => format!("{now}, and the files of this task were not kept"),
            Chinese => format!("{now}，且该任务的文件未保留"),
        }
    }

    pub(super) fn took_too_long(self, instance: &Instance) -> String {
        let now = self.describe(instance);
        match self.0 {
            English => format!("this takes too long to wait for: {now}"),
            Chinese => format!("等待超时：{now}"),
        }
    }

    // === the menu ===

    pub(super) fn no_instances(self) -> &'static str {
        self.pick(
            "You have no instances. Make one in the console, or with: berth create NAME\r\n",
            "您还没有实例。请在控制台创建，或运行：berth create 名称\r\n",
        )
    }

    pub(super) fn your_instances(self) -> &'static str {
        self.pick("Your instances:\r\n", "您的实例：\r\n")
    }

    pub(super) fn which(self) -> &'static str {
        self.pick("Number or name (q to leave): ", "请输入编号或名称（q 退出）：")
    }

    pub(super) fn no_such(self) -> &'static str {
        self.pick("There is none of that name or number.\r\n", "没有这个名称或编号。\r\n")
    }

    // === refusals ===

    pub(super) fn name_one(self, user: &str) -> String {
        match self.0 {
            English => format!("name an instance: {user}+INSTANCE@…"),
            Chinese => format!("请指明实例：{user}+实例名@…"),
        }
    }

    pub(super) fn storage_refused(self, why: &str) -> String {
        match self.0 {
            English => why.to_owned(),
            Chinese => format!("无法打开您的存储：{why}"),
        }
    }

    pub(super) fn command_too_long(self) -> &'static str {
        self.pick("the command is longer than 128 KiB", "命令超过 128 KiB")
    }

    pub(super) fn gone(self) -> &'static str {
        self.pick("the instance does not answer any more", "实例已无响应")
    }

    /// What a user reads of an error: the sentence, and what to do.
    pub(super) fn refusal(self, error: &Error) -> String {
        if error.status().is_server_error() {
            tracing::warn!(error = chain(error), "a session failed");
        }
        if self.0 == Chinese
            && let Some(sentence) = in_chinese(error)
        {
            return sentence;
        }
        let problem = error.problem();
        match problem.hint {
            Some(hint) => format!("{} ({hint})", problem.message),
            None => problem.message,
        }
    }
}

/// The refusals that somebody who knows what they want may meet; all others are told in English.
fn in_chinese(error: &Error) -> Option<String> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "what is not listed has no sentence here")]
    match error {
        Error::NotFound { name, .. } | Error::Hidden { name, .. } => {
            Some(format!("没有名为 `{name}` 的实例（请检查拼写，或用 berth ls 查看）"))
        }
        Error::PasswordChangeRequired => {
            Some("请先在控制台或用 `berth passwd` 修改密码：当前密码他人见过".to_owned())
        }
        Error::AgentUnreachable { name, .. } => Some(format!("实例 `{name}` 没有响应")),
        Error::ClusterUnreachable(_) => Some("集群没有响应，请稍后再试".to_owned()),
        Error::WrongState { name, .. } => Some(format!("实例 `{name}` 当前状态不允许此操作")),
        _ => None,
    }
}

fn waits_for(reason: WaitReason, message: &str) -> String {
    match reason {
        WaitReason::Queued => "排队等待资源".to_owned(),
        WaitReason::StartingUp => "已通知集群".to_owned(),
        WaitReason::ClusterUnreachable => "集群没有响应".to_owned(),
        WaitReason::EngineUnreachable => "容器引擎没有响应".to_owned(),
        WaitReason::Retrying => format!("启动失败，正在自动重试（{message}）"),
    }
}

fn part(done: u64, total: Option<u64>) -> String {
    let mib = |bytes: u64| bytes >> 20;
    match total {
        Some(total) => format!("{} / {} MiB", mib(done), mib(total)),
        None => format!("{} MiB", mib(done)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_clients() {
        let of = |pairs: &[(&str, &str)]| {
            Words::of(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
                .0
        };
        assert_eq!(of(&[]), English);
        assert_eq!(of(&[("LANG", "zh_CN.UTF-8")]), Chinese);
        assert_eq!(of(&[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "en_US.UTF-8")]), English);
        assert_eq!(of(&[("LANG", "C.UTF-8"), ("LC_MESSAGES", "zh_TW"), ("LC_ALL", "")]), Chinese);
    }
}
