//! What is said about jobs and the line that they wait in.

use gateway_api::{
    Job, Status,
    job::{DryRun, EndCause, JobEnd, JobEvent, JobNote, QueuePlace, QueueReason},
};

use super::{
    Language::{Chinese, English},
    Words,
};

impl Words {
    pub(crate) fn submitted(self, job: &Job) -> String {
        match self.0 {
            English => format!("job `{}` is in the line", job.name),
            Chinese => format!("任务 `{}` 已提交，正在排队", job.name),
        }
    }

    pub(crate) fn no_jobs(self) -> &'static str {
        self.pick("you have no jobs; `berth submit` makes one", "您还没有任务，可用 `berth submit` 提交")
    }

    /// What the gateway says about a file, in its own words.
    pub(crate) fn job_note(note: &JobNote) -> String {
        let line = note.line.map(|line| format!("{line}: ")).unwrap_or_default();
        let hint = note.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{line}{}{hint}", note.message)
    }

    pub(crate) fn no_limit(self) -> &'static str {
        self.pick("no limit", "不限")
    }

    /// One line about where a job is.
    pub(crate) fn job_progress(self, job: &Job) -> String {
        match self.0 {
            English => format!("{}: {}", job.name, self.job_state(job)),
            Chinese => format!("{}：{}", job.name, self.job_state(job)),
        }
    }

    /// Its state with all that is known about it.
    pub(crate) fn job_state(self, job: &Job) -> String {
        let state = self.state(&job.status);
        let more = match (&job.status, &job.queue, &job.ended) {
            (Status::Waiting { .. }, Some(place), _) => self.place(place),
            (_, _, Some(end)) if job.ended_at.is_some() => self.job_end(end),
            _ => return self.state_in_full(&job.status),
        };
        match (self.0, more.is_empty()) {
            (_, true) => state.to_owned(),
            (English, _) => format!("{state}: {more}"),
            (Chinese, _) => format!("{state}：{more}"),
        }
    }

    pub(crate) fn place(self, place: &QueuePlace) -> String {
        let why = self.queue_reason(place.reason, &|name| {
            place.params.get(name).map(String::as_str).unwrap_or_default().to_owned()
        });
        let at = match self.0 {
            English => format!("number {} in the line, {why}", place.position),
            Chinese => format!("排在第 {} 位，{why}", place.position),
        };
        let by = place.starts_by.map(|by| match self.0 {
            English => format!("; it starts by {by:.0}"),
            Chinese => format!("；最迟 {by:.0} 开始"),
        });
        let less = place.starts_now_with_gpus.map(|gpus| match self.0 {
            English => format!("; with {gpus} GPUs it would start now"),
            Chinese => format!("；若只要 {gpus} 块 GPU 可立即开始"),
        });
        [Some(at), by, less].into_iter().flatten().collect()
    }

    pub(crate) fn dry_run(self, answer: &DryRun) -> String {
        match answer {
            DryRun::StartsNow => self.pick("it would start now", "可立即开始").to_owned(),
            DryRun::Waits { queue } => match self.0 {
                English => format!("it would wait: {}", self.place(queue)),
                Chinese => format!("需要等待：{}", self.place(queue)),
            },
            DryRun::Never { reason, params } => {
                let why = self.queue_reason(*reason, &|name| params.get(name).cloned().unwrap_or_default());
                match self.0 {
                    English => format!("it could never start: {why}"),
                    Chinese => format!("永远无法开始：{why}"),
                }
            }
        }
    }

    fn queue_reason(self, reason: QueueReason, param: &dyn Fn(&str) -> String) -> String {
        let resource = || self.resource(&param("resource"));
        let owner = || self.owner(&param("owner"), &param("name"));
        match (self.0, reason) {
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

    pub(super) fn resource(self, word: &str) -> String {
        match word {
            "cpus" => self.pick("CPUs", "CPU").to_owned(),
            "memory" => self.pick("memory", "内存").to_owned(),
            "gpus" => self.pick("GPUs", "GPU").to_owned(),
            "instances" => self.pick("instances", "实例").to_owned(),
            "jobs" => self.pick("jobs", "任务").to_owned(),
            other => match (self.0, other.strip_prefix("gpus of ")) {
                (English, Some(model)) => format!("{model} GPUs"),
                (Chinese, Some(model)) => format!("{model} GPU"),
                (_, None) => other.to_owned(),
            },
        }
    }

    fn owner(self, kind: &str, name: &str) -> String {
        match (self.0, kind) {
            (English, kind) => format!("{kind} `{name}`"),
            (Chinese, "user") => format!("用户 `{name}` "),
            (Chinese, "group") => format!("用户组 `{name}` "),
            (Chinese, _) => format!("份额 `{name}` "),
        }
    }

    pub(crate) fn job_end(self, end: &JobEnd) -> String {
        let what = self.cause(end.cause, end.exit_code, &end.message);
        let by = end.by.as_ref().map(|by| match self.0 {
            English => format!("by {by}"),
            Chinese => format!("由 {by} 停止"),
        });
        let task = end.task.as_ref().map(|task| match self.0 {
            English => format!("task {task}"),
            Chinese => format!("子任务 {task}"),
        });
        let parts: Vec<_> = [task, (!what.is_empty()).then_some(what), by].into_iter().flatten().collect();
        parts.join(self.pick(", ", "，"))
    }

    fn cause(self, cause: EndCause, exit_code: Option<i32>, message: &str) -> String {
        let code = exit_code.unwrap_or_default();
        match (self.0, cause) {
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

    /// Something that happened to a job.
    pub(crate) fn job_event(self, event: &JobEvent) -> String {
        match (self.0, event) {
            (_, JobEvent::Submitted {}) => self.pick("submitted", "已提交").to_owned(),
            (English, JobEvent::Started { attempt }) => format!("got its room (try {attempt})"),
            (Chinese, JobEvent::Started { attempt }) => format!("已分配资源（第 {attempt} 次尝试）"),
            (_, JobEvent::Begun {}) => self.pick("all tasks began", "所有子任务已开始运行").to_owned(),
            (English, JobEvent::Retried { end }) => format!("tried again after: {}", self.job_end(end)),
            (Chinese, JobEvent::Retried { end }) => format!("将重试，上次结果：{}", self.job_end(end)),
            (English, JobEvent::Changed { by }) => format!("changed by {by}"),
            (Chinese, JobEvent::Changed { by }) => format!("由 {by} 修改"),
            (English, JobEvent::StopAsked { by }) => format!("told to stop by {by}"),
            (Chinese, JobEvent::StopAsked { by }) => format!("{by} 请求停止"),
            (English, JobEvent::Ended { end }) => format!("ended: {}", self.ended_how(end)),
            (Chinese, JobEvent::Ended { end }) => format!("已结束：{}", self.ended_how(end)),
        }
    }

    fn ended_how(self, end: &JobEnd) -> String {
        if end.cause == EndCause::Succeeded {
            self.pick("succeeded", "成功").to_owned()
        } else if end.cause == EndCause::Stopped && end.by.is_none() {
            self.pick("stopped", "已停止").to_owned()
        } else {
            self.job_end(end)
        }
    }
}
