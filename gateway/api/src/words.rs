//! The sentences about places in the line, for every program that tells people why something waits.

use std::collections::BTreeMap;

use crate::job::{QueuePlace, QueueReason};

/// The language to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    English,
    Chinese,
}
use Language::{Chinese, English};

impl Language {
    fn pick(self, english: &'static str, chinese: &'static str) -> &'static str {
        match self {
            English => english,
            Chinese => chinese,
        }
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
