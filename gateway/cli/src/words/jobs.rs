//! What is said about jobs and the line that they wait in.

use gateway_api::{
    Job,
    job::{DryRun, EndCause, JobEnd, JobEvent, JobTask, QueuePlace},
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

    pub(crate) fn no_limit(self) -> &'static str {
        self.pick("no limit", "不限")
    }

    /// What is held of a limit, and what waits for it.
    pub(crate) fn used_of(self, used: &str, limit: &str, waits: Option<&str>) -> String {
        let waits = waits.map(|waits| match self.0 {
            English => format!(", {waits} waiting"),
            Chinese => format!("，等待中 {waits}"),
        });
        format!("{used} / {limit}{}", waits.unwrap_or_default())
    }

    pub(crate) fn raised_to_none(self) -> String {
        self.pick("a limit cannot be lifted for a while, only raised", "临时调整只能提高上限，不能取消上限")
            .to_owned()
    }

    pub(crate) fn hint_raised_to_none(self) -> String {
        self.pick("write a number that is enough, or leave out `--for`", "请写一个足够大的数，或去掉 `--for`")
            .to_owned()
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
        let more = match &job.ended {
            Some(end) if job.ended_at.is_some() => self.job_end(end),
            _ => self.more_in_line(&job.status, job.queue.as_ref()),
        };
        self.state_and(self.state_of_job(&job.status), &more)
    }

    pub(crate) fn task_state(self, task: &JobTask) -> String {
        self.state_and(self.state_of_job(&task.status), &self.more(&task.status))
    }

    pub(crate) fn place(self, place: &QueuePlace) -> String {
        self.0.place(place)
    }

    pub(crate) fn dry_run(self, answer: &DryRun) -> String {
        match answer {
            DryRun::StartsNow => self.pick("it would start now", "可立即开始").to_owned(),
            DryRun::Waits { queue } => match self.0 {
                English => format!("it would wait: {}", self.place(queue)),
                Chinese => format!("需要等待：{}", self.place(queue)),
            },
            DryRun::Never { reason, params } => {
                let why = self.0.queue_reason(*reason, params);
                match self.0 {
                    English => format!("it would be refused: {why}"),
                    Chinese => format!("会被拒绝：{why}"),
                }
            }
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

    pub(super) fn cause(self, cause: EndCause, exit_code: Option<i32>, message: &str) -> String {
        self.0.cause(cause, exit_code, message)
    }

    /// Something that happened to a job.
    pub(crate) fn job_event(self, event: &JobEvent) -> String {
        match (self.0, event) {
            (_, JobEvent::Submitted {}) => self.pick("submitted", "已提交").to_owned(),
            (English, JobEvent::Started { attempt }) => format!("got its room (try {attempt})"),
            (Chinese, JobEvent::Started { attempt }) => format!("已分配资源（第 {attempt} 次尝试）"),
            (_, JobEvent::Pulling {}) => self.pick("fetching its images", "正在拉取镜像").to_owned(),
            (_, JobEvent::Creating {}) => self.pick("making its containers", "正在创建容器").to_owned(),
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
            self.pick("succeeded", "完成").to_owned()
        } else if end.cause == EndCause::Stopped && end.by.is_none() {
            self.pick("stopped", "终止").to_owned()
        } else {
            self.job_end(end)
        }
    }
}
