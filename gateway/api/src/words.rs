//! The sentences about places in the line, what holds things up and what went wrong, for every program that tells
//! people why.

mod preparing;
mod problem;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    instance::{HeldUp, HeldUpReason},
    job::{EndCause, QueuePlace, QueueReason},
};

/// The language to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Language {
    #[serde(rename = "en")]
    English,
    #[serde(rename = "zh-CN")]
    Chinese,
}
use Language::{Chinese, English};

impl Language {
    /// Its tag, as the console and browsers have it.
    pub fn tag(self) -> &'static str {
        self.pick("en", "zh-CN")
    }

    /// The language that a tag such as `zh-Hans-CN` or `en-GB` names, if it is one of these.
    pub fn named(tag: &str) -> Option<Self> {
        let is = |language: &str| tag.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(language));
        if is("zh") { Some(Chinese) } else { is("en").then_some(English) }
    }

    /// The one of two texts that is in this language.
    pub fn pick(self, english: &'static str, chinese: &'static str) -> &'static str {
        match self {
            English => english,
            Chinese => chinese,
        }
    }

    /// Why a stop or a deletion does not go on.
    pub fn held_up(self, held_up: &HeldUp) -> String {
        let (why, when) = match held_up.reason {
            HeldUpReason::ClusterUnreachable => {
                (self.pick("the cluster does not answer", "集群没有响应"), self.once_it_does())
            }
            HeldUpReason::EngineUnreachable => {
                (self.pick("the container engine does not answer", "容器引擎没有响应"), self.once_it_does())
            }
            HeldUpReason::Retrying => (
                self.pick("a try failed", "一次尝试失败"),
                self.pick("the next one comes by itself", "将自动重试"),
            ),
        };
        let both = match self {
            English => format!("{why}; {when}"),
            Chinese => format!("{why}，{when}"),
        };
        match held_up.reason {
            HeldUpReason::Retrying => self.with_cause(&both, &held_up.message),
            HeldUpReason::ClusterUnreachable | HeldUpReason::EngineUnreachable => both,
        }
    }

    /// Why something ended; empty where its state says all.
    pub fn cause(self, cause: EndCause, exit_code: Option<i32>, message: &str) -> String {
        let code = exit_code.unwrap_or_default();
        match (self, cause) {
            (_, EndCause::Succeeded | EndCause::Stopped) => String::new(),
            (English, EndCause::ExitCode) => format!("exit code {code}"),
            (Chinese, EndCause::ExitCode) => format!("退出码 {code}"),
            (English, EndCause::Signal) => format!("ended by signal {}", code - 128),
            (Chinese, EndCause::Signal) => format!("被信号 {} 终止", code - 128),
            (_, EndCause::OutOfMemory) => self
                .pick(
                    "it needed more memory than it asked for; ask for more",
                    "内存不足被终止，请申请更多内存",
                )
                .to_owned(),
            (_, EndCause::TimeLimit) => self.pick("its time was over", "已到运行时长上限").to_owned(),
            (_, EndCause::Idle) => {
                self.pick("nobody used it for as long as it allows", "闲置时间已到上限").to_owned()
            }
            (_, EndCause::Lost) => self
                .pick("its container is gone, as after a restart of the machine", "容器已丢失，例如节点重启")
                .to_owned(),
            (_, EndCause::NameTaken) => {
                self.pick("the name of a task was taken meanwhile", "子任务的名称已被占用").to_owned()
            }
            (_, EndCause::OverDiskLimit) => {
                self.pick("its files took more room than they may", "文件超过磁盘上限").to_owned()
            }
            (English, EndCause::Image | EndCause::CannotStart) => message.to_owned(),
            (Chinese, EndCause::Image) => format!("无法获取镜像：{message}"),
            (Chinese, EndCause::CannotStart) => format!("无法启动：{message}"),
        }
    }

    /// Why an instance failed: `reason` is English, and says more than its cause.
    pub fn failure(self, reason: &str, exit_code: Option<i32>, cause: Option<EndCause>) -> String {
        match (self, cause) {
            (Chinese, Some(cause)) => self.cause(cause, exit_code, reason),
            (English, _) | (Chinese, None) => reason.to_owned(),
        }
    }

    /// A sentence, and what the machine said.
    pub fn with_cause(self, sentence: &str, cause: &str) -> String {
        match self {
            _ if cause.is_empty() => sentence.to_owned(),
            English => format!("{sentence} ({cause})"),
            Chinese => format!("{sentence}（{cause}）"),
        }
    }

    fn once_it_does(self) -> &'static str {
        self.pick("it goes on by itself once it does", "恢复后自动继续")
    }

    /// Where in the line something is, why it waits, and what would help.
    pub fn place(self, place: &QueuePlace) -> String {
        let why = self.queue_reason(place.reason, &place.params);
        let at = match self {
            // It is in nobody's way, and never comes.
            English | Chinese if place.position == 0 => why,
            English => format!("number {} in the line, {why}", place.position),
            Chinese => format!("排在第 {} 位，{why}", place.position),
        };
        let by = place.starts_by.map(|by| match self {
            English => format!("; it starts by {by:.0}"),
            Chinese => format!("；最迟 {by:.0} 开始"),
        });
        let less = place.starts_now_with_gpus.map(|gpus| match self {
            English => format!("; with {gpus} GPUs it would start now"),
            Chinese => format!("；若只要 {gpus} 块 GPU 可立即开始"),
        });
        [Some(at), by, less].into_iter().flatten().collect()
    }

    /// Why something waits.
    pub fn queue_reason(self, reason: QueueReason, params: &BTreeMap<String, String>) -> String {
        let param = |name: &str| params.get(name).cloned().unwrap_or_default();
        let resource = || self.resource(&param("resource"));
        let owner = || self.owner(&param("owner"), &param("name"));
        match (self, reason) {
            (English, QueueReason::NoRoom) => {
                format!("{} {} wanted, {} free", param("wanted"), resource(), param("free"))
            }
            (Chinese, QueueReason::NoRoom) => {
                format!("{}不足：需要 {}，空闲 {}", resource(), param("wanted"), param("free"))
            }
            (English, QueueReason::NotTogether) => {
                format!("{} of its {} tasks fit at once", param("fit"), param("tasks"))
            }
            (Chinese, QueueReason::NotTogether) => {
                format!("{} 个子任务中目前只放得下 {} 个", param("tasks"), param("fit"))
            }
            (_, QueueReason::Behind) => {
                self.pick("the room is kept for what is before it", "资源已为排在前面的保留").to_owned()
            }
            (English, QueueReason::Quota) => format!(
                "{} holds {} of at most {} {}, and {} more are wanted",
                owner(),
                param("used"),
                param("limit"),
                resource(),
                param("wanted")
            ),
            (Chinese, QueueReason::Quota) => format!(
                "{}的{}配额不足：上限 {}，已用 {}，还需 {}",
                owner(),
                resource(),
                param("limit"),
                param("used"),
                param("wanted")
            ),
            (English, QueueReason::QuotaKept) => {
                format!("what is left of the quota of {} is kept for what is before it", owner())
            }
            (Chinese, QueueReason::QuotaKept) => format!("{}剩余的配额已为排在前面的保留", owner()),
            (English, QueueReason::QuotaTooSmall) => format!(
                "{} may hold at most {} {}, and {} are wanted",
                owner(),
                param("limit"),
                resource(),
                param("wanted")
            ),
            (Chinese, QueueReason::QuotaTooSmall) => format!(
                "{}的{}配额上限为 {}，申请了 {}",
                owner(),
                resource(),
                param("limit"),
                param("wanted")
            ),
            (_, QueueReason::NotReady) => self.pick("the machine is not ready", "节点尚未就绪").to_owned(),
            (English, QueueReason::Never) if params.contains_key("kinds") => {
                format!("pool `{}` takes only {}", param("pool"), self.kinds(&param("kinds")))
            }
            (Chinese, QueueReason::Never) if params.contains_key("kinds") => {
                format!("资源池 `{}` 只接受{}", param("pool"), self.kinds(&param("kinds")))
            }
            (English, QueueReason::Never) if params.contains_key("known") => {
                let (what, name) = match params.get("pool") {
                    Some(pool) => ("pool", pool.clone()),
                    None => ("GPU type", param("model")),
                };
                format!("there is no {what} `{name}` there; there is {}", param("known"))
            }
            (Chinese, QueueReason::Never) if params.contains_key("known") => {
                let (what, name) = match params.get("pool") {
                    Some(pool) => ("资源池", pool.clone()),
                    None => ("GPU 型号", param("model")),
                };
                format!("没有{what} `{name}`，现有：{}", param("known"))
            }
            (English, QueueReason::Never) => match param("largest").as_str() {
                "" => "no machine can take it".to_owned(),
                largest => {
                    format!("{} {} wanted, the largest machine has {largest}", param("wanted"), resource())
                }
            },
            (Chinese, QueueReason::Never) => match param("largest").as_str() {
                "" => "没有节点能够容纳".to_owned(),
                largest => format!("{}需要 {}，最大的节点只有 {largest}", resource(), param("wanted")),
            },
        }
    }

    /// Kinds of work by the words that the API has for them, `instance,job`.
    pub fn kinds(self, words: &str) -> String {
        let kind = |word: &str| match word {
            "instance" => self.pick("instances", "实例").to_owned(),
            "job" => self.pick("jobs", "任务").to_owned(),
            "debug" => self.pick("failed tasks that are looked at", "失败任务的调试").to_owned(),
            other => other.to_owned(),
        };
        let all: Vec<_> = words.split(',').map(kind).collect();
        all.join(self.pick(" and ", "和"))
    }

    /// A resource by the word that the API has for it.
    pub fn resource(self, word: &str) -> String {
        match word {
            "cpus" => self.pick("CPUs", "CPU").to_owned(),
            "memory" => self.pick("memory", "内存").to_owned(),
            "gpus" => self.pick("GPUs", "GPU").to_owned(),
            "instances" => self.pick("instances", "实例").to_owned(),
            "jobs" => self.pick("jobs", "任务").to_owned(),
            "tasks" => self.pick("tasks at a time", "同时运行的子任务").to_owned(),
            other => match (self, other.strip_prefix("gpus of ")) {
                (English, Some(model)) => format!("{model} GPUs"),
                (Chinese, Some(model)) => format!("{model} GPU"),
                (_, None) => other.to_owned(),
            },
        }
    }

    fn owner(self, kind: &str, name: &str) -> String {
        match (self, kind) {
            (English, kind) => format!("{kind} `{name}`"),
            (Chinese, "user") => format!("用户 `{name}` "),
            (Chinese, "group") => format!("用户组 `{name}` "),
            (Chinese, _) => format!("份额 `{name}` "),
        }
    }
}
