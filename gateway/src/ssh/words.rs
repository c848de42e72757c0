//! What the door itself says to people, in the language that they have chosen in the console, else in the one that their
//! client names (`LANG`).
//!
//! Only what is written into a channel is: a client shows the words of a disconnect, and those with which a channel is
//! refused, as escapes where they are not ASCII.

use std::collections::BTreeMap;

use envd_api::agent::Refusal;
use gateway_api::{
    Instance, Status,
    instance::WaitReason,
    job::{Job, QueuePlace},
    words::Language,
};

use crate::{
    agents::AgentError,
    error::{Error, chain},
};

use Language::{Chinese, English};

/// The sentences in one language.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words(Language);

impl Words {
    /// For what clients show as escapes where it is not ASCII: why a forward is refused.
    pub(super) const PLAIN: Self = Self(English);

    /// Else by the variables that a client sent, the strongest first.
    pub(super) fn of(chosen: Option<Language>, env: &BTreeMap<String, String>) -> Self {
        if let Some(chosen) = chosen {
            return Self(chosen);
        }
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
        self.state(instance.name.as_str(), &instance.status, instance.queue.as_ref())
    }

    /// What goes on with a job whose tasks are not there yet.
    pub(super) fn describe_job(self, job: &Job) -> String {
        self.state(&job.name, &job.status, job.queue.as_ref())
    }

    fn state(self, name: &str, status: &Status, place: Option<&QueuePlace>) -> String {
        match (status, self.0) {
            (Status::Waiting { .. }, language) if let Some(place) = place => match language {
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
            (Status::Stopping { held_up: Some(why) }, English) => {
                format!("`{name}` is stopping: {}", English.held_up(why))
            }
            (Status::Stopping { held_up: Some(why) }, Chinese) => {
                format!("`{name}` 正在停止：{}", Chinese.held_up(why))
            }
            (Status::Stopping { held_up: None }, English) => format!("`{name}` is stopping"),
            (Status::Stopping { held_up: None }, Chinese) => format!("`{name}` 正在停止"),
            (Status::Stopped { .. }, English) => format!("`{name}` is stopped"),
            (Status::Stopped { .. }, Chinese) => format!("`{name}` 已停止"),
            (Status::Succeeded, English) => format!("the command of `{name}` has ended"),
            (Status::Succeeded, Chinese) => format!("`{name}` 的命令已结束"),
            (Status::Failed { reason, .. }, English) => format!("`{name}` failed: {reason}"),
            (Status::Failed { reason, exit_code, cause }, Chinese) => {
                format!("`{name}` 失败：{}", Chinese.failure(reason, *exit_code, *cause))
            }
            (Status::Deleting { .. }, English) => format!("`{name}` is being deleted"),
            (Status::Deleting { .. }, Chinese) => format!("`{name}` 正在删除"),
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

    /// Why somebody who sits at no terminal does not get into a task that is not there yet.
    pub(super) fn not_there_yet(self, job: &Job) -> String {
        let now = self.describe_job(job);
        match self.0 {
            English => format!("{now}; try again in a moment"),
            Chinese => format!("{now}，请稍后再试"),
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
        let problem = error.problem();
        let (what, hint) = (self.0.problem(&problem), self.0.hint(&problem));
        match (hint, self.0) {
            (Some(hint), English) => format!("{what} ({hint})"),
            (Some(hint), Chinese) => format!("{what}（{hint}）"),
            (None, _) => what,
        }
    }

    /// Why an instance did not do what was asked.
    pub(super) fn no_session(self, error: &AgentError) -> String {
        match (self.0, error) {
            (English, _) => error.to_string(),
            (Chinese, AgentError::NotLinked) => "实例没有响应，请稍后再试".to_owned(),
            (Chinese, AgentError::TimedOut) => "实例没有及时响应".to_owned(),
            (Chinese, AgentError::Protocol(_)) => "与实例的连接中断".to_owned(),
            (Chinese, AgentError::Refused { refusal, message }) => match refusal {
                Refusal::NothingListens => "没有程序在监听".to_owned(),
                Refusal::CannotRun => format!("镜像中没有该程序，或无法运行（{message}）"),
                Refusal::UnknownCall => "实例是由旧版本启动的，请重启实例后再试".to_owned(),
                Refusal::Busy => "实例中同时打开的会话过多，请关闭一些再试".to_owned(),
                Refusal::NotForUsers => "该地址不对用户开放".to_owned(),
                Refusal::Other => format!("实例拒绝了请求（{message}）"),
            },
        }
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
            Words::of(
                None,
                &pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            )
            .0
        };
        assert_eq!(of(&[]), English);
        assert_eq!(of(&[("LANG", "zh_CN.UTF-8")]), Chinese);
        assert_eq!(of(&[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "en_US.UTF-8")]), English);
        assert_eq!(of(&[("LANG", "C.UTF-8"), ("LC_MESSAGES", "zh_TW"), ("LC_ALL", "")]), Chinese);
    }

    #[test]
    fn what_was_chosen_in_the_console_is_stronger() {
        let english = BTreeMap::from([("LANG".to_owned(), "en_US.UTF-8".to_owned())]);
        assert_eq!(Words::of(Some(Chinese), &english).0, Chinese);
        assert_eq!(Words::of(Some(English), &BTreeMap::new()).0, English);
    }

    /// No refusal is in English only: each has a Chinese letter before anything that it repeats.
    #[test]
    fn every_refusal_has_chinese_words() {
        let is_chinese = |text: &str| text.chars().any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter));
        for error in crate::error::samples::all() {
            let said = Words(Chinese).refusal(&error);
            assert!(is_chinese(&said), "{said}");
            assert_eq!(
                Words(English).refusal(&error).split(" (").next(),
                error.to_string().split(" (").next()
            );
        }
        let refusals = [
            Refusal::NothingListens,
            Refusal::CannotRun,
            Refusal::UnknownCall,
            Refusal::Busy,
            Refusal::NotForUsers,
            Refusal::Other,
        ];
        let refused =
            refusals.map(|refusal| AgentError::Refused { refusal, message: "no such file".to_owned() });
        for error in refused.into_iter().chain([AgentError::NotLinked, AgentError::TimedOut]) {
            assert!(is_chinese(&Words(Chinese).no_session(&error)), "{error}");
            assert_eq!(Words(English).no_session(&error), error.to_string());
        }
    }
}
