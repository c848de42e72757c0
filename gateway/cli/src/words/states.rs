//! States in words, and the titles of tables.

use std::collections::BTreeSet;

use gateway_api::{
    Instance, Status,
    instance::WaitReason,
    job::QueuePlace,
    node::{DiskLimit, Gpu, NodeWarning},
};

use super::{
    Language::{Chinese, English},
    Words,
};
use crate::size;

impl Words {
    pub(crate) fn state(self, status: &Status) -> &'static str {
        match status {
            Status::Waiting { .. } => self.pick("waiting", "等待中"),
            Status::Pulling { .. } => self.pick("pulling", "拉取镜像"),
            Status::Starting => self.pick("starting", "启动中"),
            Status::Running { .. } => self.pick("running", "运行中"),
            Status::Stopping { .. } => self.pick("stopping", "停止中"),
            Status::Stopped { .. } => self.pick("stopped", "已停止"),
            Status::Succeeded => self.pick("succeeded", "已成功"),
            Status::Failed { .. } => self.pick("failed", "失败"),
            Status::Deleting { .. } => self.pick("deleting", "删除中"),
        }
    }

    /// The state of a job or of one of its tasks: in Chinese they have words of their own.
    pub(crate) fn state_of_job(self, status: &Status) -> &'static str {
        if matches!(self.0, English) {
            return self.state(status);
        }
        match status {
            Status::Waiting { .. } => "等待",
            Status::Starting => "启动",
            Status::Running { .. } => "运行",
            Status::Stopped { .. } => "终止",
            Status::Succeeded => "完成",
            Status::Failed { .. } => "错误",
            Status::Pulling { .. } | Status::Stopping { .. } | Status::Deleting { .. } => self.state(status),
        }
    }

    /// What is known about a state; of what waits in the line also where and why.
    pub(super) fn more_in_line(self, status: &Status, place: Option<&QueuePlace>) -> String {
        match (status, place) {
            (Status::Waiting { .. }, Some(place)) => self.place(place),
            _ => self.more(status),
        }
    }

    pub(crate) fn instance_state(self, instance: &Instance) -> String {
        let more = self.more_in_line(&instance.status, instance.queue.as_ref());
        self.state_and(self.state(&instance.status), &more)
    }

    pub(super) fn state_and(self, state: &str, more: &str) -> String {
        match self.0 {
            _ if more.is_empty() => state.to_owned(),
            English => format!("{state}: {more}"),
            Chinese => format!("{state}：{more}"),
        }
    }

    /// The state with what is known about it.
    fn state_in_full(self, status: &Status) -> String {
        self.state_and(self.state(status), &self.more(status))
    }

    pub(super) fn more(self, status: &Status) -> String {
        match status {
            Status::Waiting { reason, message } => self.waits_for(*reason, message),
            Status::Pulling { done_bytes, total_bytes: None } => size::display(*done_bytes),
            Status::Pulling { done_bytes, total_bytes: Some(total) } => self.part(*done_bytes, *total),
            Status::Stopped { exit_code: Some(code) } => self.exit_code(*code),
            Status::Failed { reason, exit_code, cause } => self.0.failure(reason, *exit_code, *cause),
            Status::Running { since } => match self.0 {
                English => format!("since {since:.0}"),
                Chinese => format!("自 {since:.0}"),
            },
            Status::Stopping { held_up: Some(held_up) } | Status::Deleting { held_up: Some(held_up) } => {
                self.0.held_up(held_up)
            }
            Status::Starting
            | Status::Stopping { held_up: None }
            | Status::Stopped { exit_code: None }
            | Status::Succeeded
            | Status::Deleting { held_up: None } => String::new(),
        }
    }

    /// What to say below a list about those in it that do not move, each reason once.
    pub(crate) fn held_up<'a>(self, statuses: impl Iterator<Item = &'a Status>) -> BTreeSet<String> {
        statuses.filter(|status| status.is_held_up()).map(|status| self.state_in_full(status)).collect()
    }

    /// One line of progress.
    pub(crate) fn progress(self, instance: &Instance) -> String {
        self.named(instance, &self.instance_state(instance))
    }

    /// The same where only a change of state, or of the place in the line, is news.
    pub(crate) fn progress_in_short(self, instance: &Instance) -> String {
        if instance.queue.is_some() {
            return self.progress(instance);
        }
        self.named(instance, self.state(&instance.status))
    }

    fn named(self, instance: &Instance, state: &str) -> String {
        match self.0 {
            English => format!("{}: {state}", instance.name),
            Chinese => format!("{}：{state}", instance.name),
        }
    }

    fn waits_for(self, reason: WaitReason, message: &str) -> String {
        let why = match reason {
            WaitReason::Queued => self.pick("in the line for room", "排队等待资源"),
            WaitReason::StartingUp => self.pick("the cluster has been told", "已通知集群"),
            WaitReason::ClusterUnreachable => self.pick("the cluster does not answer", "集群没有响应"),
            WaitReason::EngineUnreachable => {
                self.pick("the container engine does not answer", "容器引擎没有响应")
            }
            WaitReason::Retrying => {
                let why = self.pick("a try failed; the next one comes by itself", "启动失败，正在自动重试");
                return self.0.with_cause(why, message);
            }
        };
        why.to_owned()
    }

    pub(super) fn part(self, done: u64, total: u64) -> String {
        let percent = u128::from(done) * 100 / u128::from(total.max(1));
        let (done, total) = (size::display(done), size::display(total));
        match self.0 {
            English => format!("{done} of {total} ({percent} %)"),
            Chinese => format!("{done} / {total}（{percent} %）"),
        }
    }

    fn exit_code(self, code: i32) -> String {
        match self.0 {
            English => format!("exit code {code}"),
            Chinese => format!("退出码 {code}"),
        }
    }

    pub(crate) fn ready(self) -> &'static str {
        self.pick("ready", "就绪")
    }

    pub(crate) fn unwell(self, message: &str) -> String {
        match self.0 {
            English => format!("unwell: {message}"),
            Chinese => format!("异常：{message}"),
        }
    }

    pub(crate) fn disk_limit(self, limit: DiskLimit) -> &'static str {
        match limit {
            DiskLimit::Hard => self.pick("writes over it fail", "超限即无法写入"),
            DiskLimit::Polled => self.pick("measured regularly, over it stops", "定期检查，超限即停止"),
        }
    }

    pub(crate) fn without_gpu(self) -> &'static str {
        self.pick("no GPU", "无 GPU")
    }

    pub(crate) fn no_gpus(self) -> &'static str {
        self.pick("there are no GPUs", "没有 GPU")
    }

    pub(crate) fn gpu_state(self, gpu: &Gpu) -> &'static str {
        match (gpu.healthy, gpu.held) {
            (false, _) => self.pick("does not answer", "无响应"),
            (true, true) => self.pick("in use", "使用中"),
            (true, false) => self.pick("free", "空闲"),
        }
    }

    /// What an admin has to mend about a machine.
    pub(crate) fn node_warning(self, node: &str, warning: NodeWarning) -> String {
        let what = match warning {
            NodeWarning::TenantsNotApart => self.pick(
                "users are not kept apart on its network; check that envd may change the firewall (it needs root)",
                "用户之间的网络没有隔离；请检查 envd 是否有权修改防火墙（需要 root）",
            ),
            NodeWarning::SyscallsNotFiltered => self.pick(
                "its engine does not filter system calls (seccomp); take `seccomp-profile` out of Docker's settings, \
                 or use a kernel that has it, and restart Docker",
                "容器引擎没有过滤系统调用（seccomp）；请从 Docker 的设置中去掉 `seccomp-profile`，或换用支持它的内核，\
                 然后重启 Docker",
            ),
        };
        match self.0 {
            English => format!("{node}: {what}"),
            Chinese => format!("{node}：{what}"),
        }
    }

    pub(crate) fn unknown_container(self, instance: &str) -> String {
        match self.0 {
            English => format!(
                "the store does not know instance `{instance}`, whose container is here and left alone; \
                 if nobody needs its files, remove it on that machine: `docker rm -f berth-{instance}`"
            ),
            Chinese => format!(
                "数据库中没有实例 `{instance}` 的记录；其容器仍在，系统不会改动它。\
                 确认其中文件无人需要后，请在该机器上删除：`docker rm -f berth-{instance}`"
            ),
        }
    }

    /// The title of a column or row.
    pub(crate) fn title(self, title: Title) -> &'static str {
        match title {
            Title::Name => self.pick("NAME", "名称"),
            Title::Cluster => self.pick("CLUSTER", "集群"),
            Title::Pools => self.pick("POOLS", "资源池"),
            Title::JobShare => self.pick("SHARE", "份额"),
            Title::State => self.pick("STATE", "状态"),
            Title::Image => self.pick("IMAGE", "镜像"),
            Title::Cpus => "CPUS",
            Title::Memory => self.pick("MEMORY", "内存"),
            Title::SharedMemory => self.pick("SHM", "共享内存"),
            Title::Gpus => "GPUS",
            Title::GpuHours => self.pick("GPU HOURS", "GPU 时"),
            Title::CpuHours => self.pick("CPU HOURS", "CPU 时"),
            Title::Starts => self.pick("STARTS", "启动次数"),
            Title::Number => self.pick("NUMBER", "编号"),
            Title::Model => self.pick("MODEL", "型号"),
            Title::Busy => self.pick("BUSY", "利用率"),
            Title::Temperature => self.pick("TEMPERATURE", "温度"),
            Title::HeldFor => self.pick("FOR", "用途"),
            Title::Since => self.pick("SINCE", "已占用"),
            Title::Age => self.pick("AGE", "已创建"),
            Title::Id => "ID",
            Title::User => self.pick("USER", "用户"),
            Title::Environment => self.pick("ENV", "环境变量"),
            Title::Command => self.pick("COMMAND", "启动命令"),
            Title::Created => self.pick("CREATED", "创建时间"),
            Title::Size => self.pick("SIZE", "大小"),
            Title::Role => self.pick("ROLE", "角色"),
            Title::Group => self.pick("GROUP", "用户组"),
            Title::Workspaces => self.pick("WORKSPACES", "工作空间"),
            Title::Leaders => self.pick("LEADERS", "组长"),
            Title::Members => self.pick("MEMBERS", "成员"),
            Title::Registry => self.pick("REGISTRY", "镜像仓库"),
            Title::Changed => self.pick("CHANGED", "更改于"),
            Title::Scope => self.pick("SCOPE", "范围"),
            Title::Used => self.pick("USED", "上次使用"),
            Title::Expires => self.pick("EXPIRES", "失效时间"),
            Title::Time => self.pick("TIME", "时间"),
            Title::Source => self.pick("SOURCE", "来源"),
            Title::Act => self.pick("ACT", "操作"),
            Title::Object => self.pick("OBJECT", "对象"),
            Title::Terminal => self.pick("TERMINAL", "终端"),
            Title::Viewers => self.pick("VIEWERS", "查看者"),
            Title::Outcome => self.pick("RESULT", "结果"),
            Title::Kind => self.pick("KIND", "类型"),
            Title::Address => self.pick("ADDRESS", "地址"),
            Title::DiskLimit => self.pick("DISK LIMIT", "磁盘上限"),
            Title::Fingerprint => self.pick("FINGERPRINT", "指纹"),
            Title::Host => self.pick("HOST", "主机"),
            Title::Port => self.pick("PORT", "端口"),
            Title::Message => self.pick("MESSAGE", "说明"),
            Title::Share => self.pick("SHARED WITH", "可用范围"),
            Title::PlatformList => self.pick("PLATFORM LIST", "平台列表"),
            Title::Processes => self.pick("PROCESSES", "进程数"),
            Title::FreeCpus => self.pick("FREE CPUS", "空闲 CPU"),
            Title::FreeMemory => self.pick("FREE MEMORY", "空闲内存"),
            Title::FreeGpus => self.pick("FREE GPUS", "空闲 GPU"),
            Title::FreeBlock => self.pick("MOST FREE ON ONE NODE", "单节点最多空闲"),
            Title::Instance => self.pick("INSTANCE", "实例"),
            Title::Parent => self.pick("PARENT", "原镜像"),
            Title::Digest => self.pick("DIGEST", "摘要"),
            Title::UsedBy => self.pick("USED BY", "使用者"),
            Title::Instances => self.pick("INSTANCES", "实例数"),
            Title::Jobs => self.pick("JOBS", "任务数"),
            Title::Images => self.pick("IMAGES", "镜像空间"),
            Title::Priority => self.pick("PRIORITY", "优先级"),
            Title::Tasks => self.pick("TASKS", "子任务数"),
            Title::Task => self.pick("TASK", "子任务"),
            Title::LastLine => self.pick("LAST LINE", "末尾输出"),
            Title::Ran => self.pick("RAN", "运行时长"),
            Title::Attempt => self.pick("TRY", "第几次"),
            Title::TimeLimit => self.pick("TIME LIMIT", "时长上限"),
            Title::Waiting => self.pick("WAITING", "等待中"),
            Title::RaisedUntil => self.pick("RAISED UNTIL", "临时调整至"),
            Title::Description => self.pick("DESCRIPTION", "说明"),
            Title::KeptUntil => self.pick("KEPT UNTIL", "文件保留至"),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Title {
    Name,
    Address,
    Cluster,
    Pools,
    JobShare,
    State,
    Image,
    Cpus,
    Memory,
    SharedMemory,
    Gpus,
    GpuHours,
    CpuHours,
    Starts,
    Number,
    Model,
    Busy,
    Temperature,
    HeldFor,
    Since,
    Age,
    Id,
    User,
    Environment,
    Command,
    Created,
    Size,
    Role,
    Group,
    Workspaces,
    Leaders,
    Members,
    Registry,
    Changed,
    Scope,
    Used,
    Expires,
    Time,
    Source,
    Act,
    Object,
    Terminal,
    Viewers,
    Outcome,
    Kind,
    Fingerprint,
    DiskLimit,
    Host,
    Port,
    Message,
    Share,
    PlatformList,
    Processes,
    FreeCpus,
    FreeMemory,
    FreeGpus,
    FreeBlock,
    Instance,
    Parent,
    Digest,
    UsedBy,
    Instances,
    Jobs,
    Images,
    Priority,
    Tasks,
    Task,
    LastLine,
    Ran,
    Attempt,
    TimeLimit,
    Waiting,
    RaisedUntil,
    Description,
    KeptUntil,
}
