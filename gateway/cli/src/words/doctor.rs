//! The words of `berth doctor`.

use std::{path::Path, time::Duration};

use gateway_api::preparing::PreparingStep;
use serde::Serialize;

use super::{
    Language::{Chinese, English},
    Words,
};
use crate::commands::doctor::Verdict;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Check {
    Settings,
    Address,
    Tls,
    Gateway,
    Health,
    Version,
    Clock,
    Token,
    Preparing,
    News,
    WebSocket,
    Data,
    Envd,
    Engine,
    Image,
    Tools,
    Registry,
    Disk,
    Iptables,
}

impl Words {
    pub(crate) fn verdict(self, verdict: Verdict) -> &'static str {
        match verdict {
            Verdict::Ok => self.pick("ok  ", "正常"),
            Verdict::Warn => self.pick("warn", "注意"),
            Verdict::Fail => self.pick("FAIL", "失败"),
            Verdict::Skip => self.pick("skip", "跳过"),
        }
    }

    /// Between what was looked at and what was found.
    pub(crate) fn colon(self) -> &'static str {
        self.pick(": ", "：")
    }

    pub(crate) fn check(self, check: Check) -> &'static str {
        match check {
            Check::Settings => self.pick("settings", "配置"),
            Check::Address => self.pick("address", "地址"),
            Check::Tls => self.pick("encryption", "加密"),
            Check::Gateway => self.pick("gateway", "网关"),
            Check::Health => self.pick("health", "健康状况"),
            Check::Version => self.pick("version", "版本"),
            Check::Clock => self.pick("clock", "时钟"),
            Check::Token => self.pick("sign-in", "登录"),
            Check::Preparing => self.pick("preparation", "准备工作"),
            Check::News => self.pick("news", "实时消息"),
            Check::WebSocket => "WebSocket",
            Check::Data => self.pick("data directory", "数据目录"),
            Check::Envd => "envd",
            Check::Engine => self.pick("engine", "容器引擎"),
            Check::Image => self.pick("image", "镜像"),
            Check::Tools => self.pick("tools", "工具"),
            Check::Registry => self.pick("registry", "镜像仓库"),
            Check::Disk => self.pick("disk", "磁盘"),
            Check::Iptables => "iptables",
        }
    }
}

// === from the user's side ===

impl Words {
    pub(crate) fn gateway_is(self, url: &str) -> String {
        match self.0 {
            English => format!("the gateway is {url}"),
            Chinese => format!("网关地址为 {url}"),
        }
    }

    pub(crate) fn name_leads_to(self, host: &str, addresses: &str) -> String {
        match self.0 {
            English => format!("`{host}` is {addresses}"),
            Chinese => format!("`{host}` 解析为 {addresses}"),
        }
    }

    pub(crate) fn name_leads_nowhere(self, host: &str, cause: &str) -> String {
        match self.0 {
            English => format!("`{host}` has no address: {cause}"),
            Chinese => format!("`{host}` 无法解析：{cause}"),
        }
    }

    pub(crate) fn hint_name(self) -> &'static str {
        self.pick("check the spelling, and this machine's name server", "请检查拼写以及本机的 DNS 设置")
    }

    pub(crate) fn encrypted(self) -> &'static str {
        self.pick("the connection is encrypted and the certificate trusted", "连接已加密，证书受信任")
    }

    pub(crate) fn plain_but_local(self) -> &'static str {
        self.pick("plain HTTP, but within this machine", "未加密，但仅在本机之内")
    }

    pub(crate) fn not_encrypted(self) -> &'static str {
        self.pick("plain HTTP: anyone on the way can take the session", "未加密：途中任何人都可窃取会话")
    }

    pub(crate) fn hint_not_encrypted(self) -> &'static str {
        self.pick(
            "set up `[gateway.tls]`, and sign in to the `https` address",
            "请配置 `[gateway.tls]`，并登录 `https` 地址",
        )
    }

    pub(crate) fn hint_certificate(self) -> String {
        self.pick(
            "check this machine's clock; a certificate of the site's own must be among this machine's authorities",
            "请检查本机时钟；若为站点自签证书，须先加入本机受信任的根证书",
        )
        .to_owned()
    }

    pub(crate) fn answers_in(self, took: Duration) -> String {
        match self.0 {
            English => format!("answers in {} ms", took.as_millis()),
            Chinese => format!("{} 毫秒内响应", took.as_millis()),
        }
    }

    pub(crate) fn all_well(self) -> &'static str {
        self.pick("all parts are well", "各部分均正常")
    }

    pub(crate) fn hint_unwell(self) -> &'static str {
        self.pick(
            "`berth doctor --server DATA_DIR` on the server says more",
            "在服务器上运行 `berth doctor --server DATA_DIR` 可了解详情",
        )
    }

    pub(crate) fn versions_differ(self, theirs: &str, ours: &str) -> String {
        match self.0 {
            English => format!("the gateway is {theirs}, this command {ours}"),
            Chinese => format!("网关版本为 {theirs}，本命令版本为 {ours}"),
        }
    }

    pub(crate) fn hint_version(self) -> &'static str {
        self.pick("use the command that came with the gateway", "请使用与网关配套的命令")
    }

    pub(crate) fn clocks_agree(self) -> &'static str {
        self.pick("agrees with the gateway's", "与网关一致")
    }

    pub(crate) fn clocks_apart(self, seconds: u64) -> String {
        match self.0 {
            English => format!("{seconds} s apart from the gateway's"),
            Chinese => format!("与网关相差 {seconds} 秒"),
        }
    }

    pub(crate) fn hint_clock(self) -> &'static str {
        self.pick("let both machines follow a time server", "请让两台机器与时间服务器同步")
    }

    pub(crate) fn no_time(self) -> &'static str {
        self.pick("the gateway does not say its time", "网关未给出时间")
    }

    pub(crate) fn you_are(self, user: &str) -> String {
        match self.0 {
            English => format!("you are `{user}`"),
            Chinese => format!("当前用户为 `{user}`"),
        }
    }

    /// The steps that are not done, in one line.
    pub(crate) fn preparing(self, steps: &[PreparingStep]) -> String {
        let steps: Vec<_> = steps.iter().map(|step| self.0.preparing(step)).collect();
        steps.join(self.pick("; ", "；"))
    }

    pub(crate) fn hint_preparing(self) -> &'static str {
        self.pick(
            "restart `make up` to try again; `logs/` is in the data directory",
            "重启 `make up` 即可重试；`logs/` 在数据目录中",
        )
    }

    pub(crate) fn news_arrives(self) -> &'static str {
        self.pick("arrives at once", "可即时到达")
    }

    pub(crate) fn no_news(self, seconds: u64) -> String {
        match self.0 {
            English => format!("nothing arrived within {seconds} s"),
            Chinese => format!("{seconds} 秒内未收到任何消息"),
        }
    }

    pub(crate) fn hint_news(self) -> &'static str {
        self.pick(
            "a proxy holds answers back: switch off its buffering for `/api/v1/events`",
            "中间代理缓冲了响应：请对 `/api/v1/events` 关闭缓冲",
        )
    }

    pub(crate) fn websocket_works(self) -> &'static str {
        self.pick("passes", "可用")
    }

    pub(crate) fn websocket_needs_instance(self) -> &'static str {
        self.pick("needs a running instance to try", "需要一个运行中的实例才能检查")
    }

    pub(crate) fn hint_websocket(self) -> &'static str {
        self.pick(
            "a proxy must pass `Upgrade` and `Connection` on",
            "中间代理须转发 `Upgrade` 与 `Connection`",
        )
    }
}

// === on the server ===

impl Words {
    pub(crate) fn answers(self) -> &'static str {
        self.pick("answers", "有响应")
    }

    pub(crate) fn answers_status(self, status: u16) -> String {
        match self.0 {
            English => format!("answers with status {status}"),
            Chinese => format!("响应状态为 {status}"),
        }
    }

    pub(crate) fn no_answer(self, cause: &str) -> String {
        match self.0 {
            English => format!("does not answer: {cause}"),
            Chinese => format!("没有响应：{cause}"),
        }
    }

    pub(crate) fn hint_start(self, program: &str) -> String {
        match self.0 {
            English => format!("`systemctl restart berth-{program}`, or `make up`; run this as root"),
            Chinese => {
                format!("请运行 `systemctl restart berth-{program}` 或 `make up`；并以 root 运行本命令")
            }
        }
    }

    pub(crate) fn hint_engine(self) -> &'static str {
        self.pick(
            "`systemctl start docker`; run this as root",
            "请运行 `systemctl start docker`；并以 root 运行本命令",
        )
    }

    pub(crate) fn no_image(self, image: &str) -> String {
        match self.0 {
            English => format!("`{image}` is not on this machine"),
            Chinese => format!("本机没有 `{image}`"),
        }
    }

    pub(crate) fn hint_image(self) -> &'static str {
        self.pick("`make images` makes it", "请运行 `make images` 构建")
    }

    pub(crate) fn no_tools(self, tools: &Path) -> String {
        let tools = tools.display();
        match self.0 {
            English => format!("`{tools}` holds no tools: VS Code opens only in images that ship it"),
            Chinese => format!("`{tools}` 中没有工具：只有自带 VS Code 的镜像才能打开 VS Code"),
        }
    }

    pub(crate) fn hint_tools(self, tools: &Path) -> String {
        let make = format!("`images/build.sh tools && deploy/up/tools.sh {}`", tools.display());
        match self.0 {
            English => format!("make them with {make}; instances that run find them at once"),
            Chinese => format!("请运行 {make}；正在运行的实例会立即找到它们"),
        }
    }

    pub(crate) fn registry_is_well(self) -> &'static str {
        self.pick("answers and lets the gateway in", "有响应，网关可以登录")
    }

    pub(crate) fn no_registry(self) -> &'static str {
        self.pick("none: instances cannot be saved as images", "未设置：实例无法保存为镜像")
    }

    pub(crate) fn hint_no_registry(self) -> &'static str {
        self.pick(
            "`deploy/install.sh` says what to add to `berth.toml` for the one that Berth runs; or set `registry` in `[gateway]` and `[envd]` to one of your own",
            "运行 `deploy/install.sh`，它会说明使用 Berth 自带仓库需在 `berth.toml` 中添加什么；也可在 `[gateway]` 和 `[envd]` 中将 `registry` 设为自有仓库",
        )
    }

    pub(crate) fn hint_registry(self) -> &'static str {
        self.pick(
            "`systemctl restart berth-registry`, or `make up`; check `registry` in `berth.toml`",
            "请运行 `systemctl restart berth-registry` 或 `make up`，并检查 `berth.toml` 中的 `registry`",
        )
    }

    pub(crate) fn hint_registry_login(self) -> &'static str {
        self.pick(
            "the file `registry_password_file` of `berth.toml` has to hold the password of `registry_user` there; for the registry that Berth runs, `systemctl restart berth-registry` brings the two together",
            "`berth.toml` 中 `registry_password_file` 所指的文件须为该仓库中 `registry_user` 的密码；若为 Berth 自带仓库，运行 `systemctl restart berth-registry` 即可使两者一致",
        )
    }

    pub(crate) fn other_registry(self) -> &'static str {
        self.pick(
            "`[gateway]` and `[envd]` of `berth.toml` name different ones",
            "`berth.toml` 的 `[gateway]` 与 `[envd]` 所设仓库不同",
        )
    }

    pub(crate) fn hint_other_registry(self) -> &'static str {
        self.pick(
            "set `registry` and its login to the same in both",
            "请在两处设置相同的 `registry` 及其登录",
        )
    }

    pub(crate) fn no_iptables(self) -> &'static str {
        self.pick("not found", "未找到")
    }

    pub(crate) fn hint_iptables(self) -> &'static str {
        self.pick(
            "install the package `iptables`: it keeps instances apart",
            "请安装 `iptables` 软件包：实例之间靠它隔离",
        )
    }

    pub(crate) fn not_a_directory(self, path: &Path) -> String {
        match self.0 {
            English => format!("`{}` is not a directory", path.display()),
            Chinese => format!("`{}` 不是目录", path.display()),
        }
    }

    pub(crate) fn cannot_read(self, path: &Path, cause: &str) -> String {
        match self.0 {
            English => format!("`{}` cannot be read: {cause}", path.display()),
            Chinese => format!("无法读取 `{}`：{cause}", path.display()),
        }
    }

    pub(crate) fn hint_data(self) -> &'static str {
        self.pick(
            "name the directory that BERTH_DATA names, and run this as root",
            "请给出 BERTH_DATA 所指的目录，并以 root 运行",
        )
    }

    pub(crate) fn open_to_others(self, path: &Path) -> String {
        match self.0 {
            English => format!("`{}` is open to other users of this machine", path.display()),
            Chinese => format!("`{}` 对本机其他用户开放", path.display()),
        }
    }

    pub(crate) fn not_sticky(self, path: &Path) -> String {
        match self.0 {
            English => format!("in `{}` the gateway's user can replace envd's files", path.display()),
            Chinese => format!("网关用户可以替换 `{}` 中属于 envd 的文件", path.display()),
        }
    }

    pub(crate) fn owner_and_mode(self, path: &Path, owner: u32, mode: u32) -> String {
        match self.0 {
            English => format!("`{}` is user {owner}'s, mode {mode:o}", path.display()),
            Chinese => format!("`{}` 属于用户 {owner}，权限 {mode:o}", path.display()),
        }
    }

    pub(crate) fn no_program(self, program: &str) -> String {
        match self.0 {
            English => format!("there is no `{program}` here to ask"),
            Chinese => format!("此处没有 `{program}` 可供检查"),
        }
    }

    pub(crate) fn settings_fine(self, program: &str) -> String {
        match self.0 {
            English => format!("{program}'s are fine"),
            Chinese => format!("{program} 的配置无误"),
        }
    }

    pub(crate) fn hint_settings(self, data: &Path) -> String {
        match self.0 {
            English => format!("mend `{}`", data.join("berth.toml").display()),
            Chinese => format!("请修改 `{}`", data.join("berth.toml").display()),
        }
    }

    pub(crate) fn held_by(self, process: i64) -> String {
        match self.0 {
            English => format!("runs as process {process}"),
            Chinese => format!("正在运行，进程号 {process}"),
        }
    }

    pub(crate) fn does_not_run(self, program: &str) -> String {
        match self.0 {
            English => format!("no {program} runs on this directory"),
            Chinese => format!("没有 {program} 在此目录上运行"),
        }
    }

    pub(crate) fn free(self, size: &str, percent: u64) -> String {
        match self.0 {
            English => format!("{size} free ({percent} %)"),
            Chinese => format!("剩余 {size}（{percent} %）"),
        }
    }

    pub(crate) fn hint_disk(self) -> &'static str {
        self.pick(
            "make room: below 1 GiB or 5 % the store may take no more writes",
            "请清理空间：低于 1 GiB 或 5 % 时存储可能无法写入",
        )
    }
}
