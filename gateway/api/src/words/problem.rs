//! The gateway's errors in the user's language, found by their code and never by their text.
//!
//! In English the gateway's own sentence is the best there is. In Chinese everything is said here, and values come from
//! `params`.

use super::Language::{self, Chinese, English};
use crate::{Code, Problem, error::Reason};

impl Language {
    /// What happened.
    pub fn problem(self, problem: &Problem) -> String {
        match self {
            English => problem.message.clone(),
            Chinese => chinese(problem),
        }
    }

    /// What to do.
    pub fn hint(self, problem: &Problem) -> Option<String> {
        match self {
            English => problem.hint.clone(),
            Chinese => chinese_hint(problem).map(str::to_owned),
        }
    }
}

fn chinese(problem: &Problem) -> String {
    let param = |key: &str| problem.params.get(key).map_or("", String::as_str);
    let field = || self::field(param("field"));
    let why = || reason(param("reason")).unwrap_or(param("why"));
    match problem.code {
        Code::Unauthenticated => "尚未登录，或登录已过期".to_owned(),
        Code::BadCredentials => "用户名或密码不正确".to_owned(),
        Code::TooManyAttempts => "登录尝试次数过多".to_owned(),
        Code::TooManyOpen => match param("limit") {
            "" => "同时打开的连接过多".to_owned(),
            limit => format!("您同时打开的{}已达上限（{limit} 个）", connections(param("what"))),
        },
        Code::PasswordChangeRequired => "当前密码曾被他人看到，请先换成自己的密码".to_owned(),
        Code::Forbidden => "您的账号没有这项权限".to_owned(),
        Code::NotFound => match (param("kind"), param("name")) {
            (_, "") => "找不到所请求的内容".to_owned(),
            (kind, name) => format!("没有名为 `{name}` 的{}", self::kind(kind)),
        },
        Code::BadName => with_value("名称不符合要求", param("name")),
        Code::NameTaken => with_value("您已有同名的实例", param("name")),
        Code::AlreadyExists => match (param("kind"), param("name")) {
            (_, "") => "名称已被使用".to_owned(),
            (kind, name) => format!("已有名为 `{name}` 的{}", self::kind(kind)),
        },
        Code::UserRemoved => with_value("该名称属于一个已移除、仍可恢复的用户", param("name")),
        Code::LastAdmin => with_value("这是最后一位管理员，不能移除、停用或降级", param("name")),
        Code::InUse => match (param("kind"), param("name")) {
            (_, "") => "仍在使用中，不能删除".to_owned(),
            (kind, name) if param("by").is_empty() => {
                format!("{} `{name}` 仍在使用中，不能删除", self::kind(kind))
            }
            (kind, name) => {
                format!("{} `{name}` 正被 {} 使用，不能删除", self::kind(kind), param("by"))
            }
        },
        Code::BadImage => because(with_value("镜像地址不符合格式", param("reference")), why()),
        Code::ImageNotFound => because(with_value("找不到镜像", param("reference")), why()),
        Code::RegistryDenied | Code::RegistryUnreachable | Code::RegistryNotAllowed => of_registry(problem),
        Code::BadValue => match why() {
            "" => format!("“{}”的值不符合要求", field()),
            why => format!("“{}”的值不符合要求：{why}", field()),
        },
        Code::TooLarge => {
            format!(
                "“{}”超过了所有节点的上限：申请了 {}，最多 {}",
                field(),
                param("wanted"),
                param("largest")
            )
        }
        Code::BadJobFile => format!("任务文件有 {} 处错误", param("count")),
        Code::NeedsMoreMachines => {
            format!("{} 个子任务需要多台节点，而目前只有一台，放得下 {} 个", param("tasks"), param("fit"))
        }
        Code::OverQuota => format!(
            "超出您的{}配额：上限 {}，已用 {}，又申请了 {}",
            Chinese.resource(param("resource")),
            param("limit"),
            param("used"),
            param("wanted")
        ),
        Code::PriorityTooHigh => {
            format!("优先级 {} 超过了本站允许用户使用的最高值 {}", param("wanted"), param("most"))
        }
        Code::PoolTakesOthers => match param("pool") {
            "" => "该资源池不接受此类工作".to_owned(),
            pool => format!("资源池 `{pool}` 只接受{}", Chinese.kinds(param("kinds"))),
        },
        Code::NotHere => not_here(param),
        Code::WeakPassword => because("密码过于简单".to_owned(), why()),
        Code::WrongState => {
            let state = if param("kind") == "job" { state_of_job } else { state };
            format!("当前状态为“{}”，不能执行“{}”", state(param("state")), action(param("action")))
        }
        Code::BadBody => match why() {
            "" => format!("网关无法读取请求：{}", problem.message),
            why => format!("网关无法读取请求：{why}"),
        },
        Code::UnknownField => with_value("请求中有网关不认识的字段", param("field")),
        Code::BodyTooLarge => match param("limit") {
            "" => "请求过大".to_owned(),
            limit => format!("请求超过了 {limit} 字节"),
        },
        Code::CrossSite => "请求来自其他站点".to_owned(),
        Code::ClusterUnreachable => "集群没有响应".to_owned(),
        Code::EngineUnreachable => "容器引擎没有响应".to_owned(),
        Code::AgentUnreachable => because(with_value("实例没有响应", param("name")), param("why")),
        Code::AppsUnavailable => "本站尚未设置应用的访问地址".to_owned(),
        Code::DiskFull => "磁盘已满".to_owned(),
        Code::NoRegistry => "本站没有可供保存镜像的仓库".to_owned(),
        Code::BeingSaved => with_value("实例正在保存中", param("name")),
        Code::CannotSave => format!("无法查看实例的改动：{}", param("why")),
        Code::ImageQuota => image_quota(param),
        Code::Internal => "平台内部出错".to_owned(),
        // From a newer gateway: its own words are better than none.
        Code::Unknown => problem.message.clone(),
    }
}

fn not_here<'a>(param: impl Fn(&str) -> &'a str) -> String {
    let known = match param("known") {
        "" => String::new(),
        known => format!("，现有：{known}"),
    };
    match param("name") {
        "" => "本站没有所要求的内容".to_owned(),
        name => format!("本站没有{} `{name}`{known}", kind(param("kind"))),
    }
}

fn image_quota<'a>(param: impl Fn(&str) -> &'a str) -> String {
    let whose = match param("group") {
        "" => "您的镜像".to_owned(),
        group => format!("组 {group} 的镜像"),
    };
    let largest = match param("images") {
        "" => String::new(),
        images => format!("；您最大的镜像：{images}"),
    };
    let (wanted, used, limit) = (param("wanted"), param("used"), param("limit"));
    format!("最多需要 {wanted}，而{whose}已占用 {used} / {limit}{largest}")
}

fn chinese_hint(problem: &Problem) -> Option<&'static str> {
    Some(match problem.code {
        Code::Unauthenticated => "请运行 `berth login` 登录",
        Code::BadCredentials => "请检查两者，并留意大写锁定和输入法",
        Code::TooManyAttempts => "请等一分钟再试",
        Code::TooManyOpen => "请关闭一些再试",
        Code::PasswordChangeRequired => "请用 `berth passwd` 修改",
        Code::Forbidden => "请联系管理员开通",
        Code::NotFound => "请对照列表检查名称",
        Code::BadName => match problem.params.get("kind").map(String::as_str) {
            Some("user" | "group" | "workspace") => {
                "请使用 2 至 32 个小写字母、数字、`.`、`_` 或 `-`，以字母或数字开头"
            }
            Some("job") => "请使用字母、数字、`-`、`.`、`_` 和 `~`，最多 255 个字符",
            Some("token" | "key") => "请使用一行文字，1 至 64 个字节",
            Some(_) | None => "请使用字母、数字和下划线，最多 27 个字符",
        },
        Code::NameTaken => "请换一个名称，或先删除另一个实例",
        Code::AlreadyExists | Code::UserRemoved => "请换一个名称",
        Code::LastAdmin => "请先让另一位用户成为管理员",
        Code::InUse if problem.params.contains_key("by") => {
            "请先删除用它创建的实例，或等待、停止使用它的任务"
        }
        Code::InUse => "请先移出其中的成员",
        Code::BadImage => "请写成 `registry.example.org/team/image:tag` 的形式",
        Code::ImageNotFound | Code::RegistryDenied => "请检查拼写和标签",
        Code::RegistryUnreachable => "请稍后重试，或使用本站的镜像；已创建的实例启动时不需要它",
        Code::RegistryNotAllowed => "请换一个镜像，或请管理员将该仓库加入 `registries`",
        Code::BadValue => "请修改后重试",
        Code::TooLarge => "请减少申请量",
        Code::BadJobFile => "请按所列的行号逐一修改",
        Code::NeedsMoreMachines => "请减少子任务数，或减少每个子任务的申请量",
        Code::OverQuota => "请停止一些任务或实例，减少申请量，或请管理员提高配额",
        Code::NotHere => "请去掉它，或换成现有的",
        Code::PriorityTooHigh => "请降低优先级，或提交后请管理员提高",
        Code::PoolTakesOthers => "请换一个资源池或 GPU 型号，`berth nodes` 会列出资源池",
        Code::WeakPassword => "至少 8 个字符，几个互不相关的词最好",
        Code::WrongState => "请等状态变化后再试",
        Code::BadBody | Code::UnknownField => "berth 与网关的版本可能不一致，请更新 berth",
        Code::BodyTooLarge => "请减少一次发送的内容",
        Code::CrossSite => "请检查您与网关之间的代理设备",
        Code::ClusterUnreachable | Code::EngineUnreachable => "请稍后重试；如果一直如此，请联系管理员",
        Code::AgentUnreachable => "请稍后重试；如果一直如此，请重启实例",
        Code::AppsUnavailable => "请管理员在 berth.toml 的 `[gateway.apps]` 中设置 `domain`",
        Code::DiskFull => "请联系管理员；未作任何更改",
        Code::NoRegistry => "请管理员在 berth.toml 中设置 `registry`",
        Code::BeingSaved => "请等待其完成，或删除该镜像以放弃保存",
        Code::CannotSave => "请稍后重试",
        Code::ImageQuota => "请删除不再需要的镜像，或排除更多路径",
        Code::Internal => "请重试；如果再次出现，请把请求编号告诉管理员",
        Code::Unknown => return None,
    })
}

fn with_value(what: &str, value: &str) -> String {
    if value.is_empty() { what.to_owned() } else { format!("{what}：`{value}`") }
}

/// What another registry said, or why it is not asked.
fn of_registry(problem: &Problem) -> String {
    let param = |key: &str| problem.params.get(key).map_or("", String::as_str);
    if problem.code == Code::RegistryNotAllowed {
        return with_value("本站不使用该镜像仓库的镜像", param("registry"));
    }
    let is_denied = problem.code == Code::RegistryDenied;
    let what =
        if is_denied { "镜像仓库没有向您提供镜像" } else { "无法向镜像仓库查询镜像" };
    because(with_value(what, param("reference")), param("why"))
}

fn because(what: String, why: &str) -> String {
    if why.is_empty() { what } else { format!("{what}（{why}）") }
}

fn connections(what: &str) -> &'static str {
    match what {
        "logs" => "日志",
        "streams of events" => "事件流",
        _ => "终端、进程和端口",
    }
}

/// Why a value cannot be used.
fn reason(word: &str) -> Option<&'static str> {
    let reason: Reason = serde_json::from_value(word.into()).ok()?;
    Some(match reason {
        Reason::NotANumber => "必须是数字",
        Reason::NotAWholeNumber => "必须是整数",
        Reason::NotText => "必须是文本",
        Reason::NotYesOrNo => "必须是 `true` 或 `false`",
        Reason::NotAList => "必须是列表",
        Reason::NotAnObject => "必须是由字段组成的对象",
        Reason::Negative => "不能为负数",
        Reason::CpusTooFew => "至少为 0.01",
        Reason::MemoryTooSmall => "至少为 64 MiB",
        Reason::Zero => "必须大于 0",
        Reason::MoreThanMemory => "不能超过实例的内存",
        Reason::TooManyVariables => "变量不能超过 256 个",
        Reason::VariablesTooLong => "所有变量合计不能超过 64 KiB",
        Reason::VariableNameEmpty => "有变量名为空",
        Reason::VariableNameHasEquals => "有变量名含有 `=`",
        Reason::VariableNameHasNewline => "有变量名含有换行",
        Reason::VariableNameHasNul => "有变量名含有空字符（NUL）",
        Reason::VariableNameHasControl => "有变量名含有控制字符",
        Reason::VariableValueHasNul => "有变量值含有空字符（NUL）",
        Reason::CommandFirstWordEmpty => "第一个词为空",
        Reason::CommandHasNul => "其中含有空字符（NUL）",
        Reason::CommandTooLong => "不能超过 128 KiB",
        Reason::DaysOutOfRange => "须在 1 至 366 之间",
        Reason::TimeLimitTooLong => "不得超过 366 天（31622400 秒）",
        Reason::LimitOutOfRange => "须在 1 至 1000 之间",
        Reason::NothingToChange => "没有任何要修改的内容",
        Reason::NoSuchGroup => "没有这个用户组",
        Reason::TextMissing => "至少要有中文或英文的内容",
        Reason::TextTooLong => "不能超过 16 KiB",
        Reason::EndsBeforeItStarts => "结束时间早于开始时间",
        Reason::PriorityOutOfRange => "须在 1 至 9 之间",
        Reason::OnlyForTasks => "仅用于失败任务保留下来的环境",
        Reason::SiteNameTooLong => "须为一行，最多 60 个字符",
        Reason::ImageEmpty | Reason::SecretEmpty => "不能为空",
        Reason::ImageIsAnId => "这是镜像的 ID，请使用名称",
        Reason::ImageTooLong => "过长",
        Reason::ImageNotLowerCase => "名称必须全部小写",
        Reason::ImageTagUnfit => "`:` 之后不是有效的标签",
        Reason::ImageDigestUnfit => "`@` 之后不是有效的摘要",
        Reason::ImageUnreadable => "含有不允许的字符，如空格，或格式有误",
        Reason::ImageNameUnfit => "名称须由小写字母、数字、`.`、`_` 和 `-` 组成，最多 64 个字符",
        Reason::ImageTagNotAllowed => "标签须由字母、数字、`.`、`_` 和 `-` 组成，最多 128 个字符",
        Reason::ImageNotOnThisMachine => "本机没有它，而 `localhost/` 下的镜像不会被拉取",
        Reason::ImageBeingPrepared => "`make up` 仍在准备它，请在就绪后重试",
        Reason::ImageNotSavedForYou => "没有人为您保存过这样的镜像",
        Reason::ImageBeingSaved => "它仍在保存中",
        Reason::ImageNotFailed => "只有保存失败的镜像才能重试",
        Reason::ImageNotWhole => "只有完整的镜像才能改名",
        Reason::ImageNotSaved => "它未能保存，或正在删除",
        Reason::PasswordTooShort => "少于 8 个字符",
        Reason::PasswordTooLong => "超过 1024 个字节",
        Reason::PasswordUnchanged => "与旧密码相同",
        Reason::SecretTooLong => "不能超过 12 KiB",
        Reason::SecretHasControl => "含有控制字符；非文本内容请先用 base64 编码，使用时再解码",
        Reason::SecretsTooMany => "密钥已达 100 个，请先删除一个",
        Reason::NotARegistry => "不是镜像仓库的地址，应形如 `registry.example.org:5000`",
        Reason::NotARegistryUser => "须为一行，1 到 256 字节，不含冒号",
        Reason::SiteSecretNeedsRegistry => "站点的密钥必须是某个镜像仓库的密码，请指明仓库",
        Reason::TooManySecretsUsed => "一个实例最多使用 8 个密钥",
        Reason::NotAVariable => "不能用作变量名；变量名由字母、数字和 `_` 组成，也可把密钥用作文件",
        Reason::SecretIsLogin => "该密钥是镜像仓库的密码，只会发给该仓库",
        Reason::AppNotStarted => "它不由 Berth 启动，直接打开即可",
        Reason::PortOutOfRange => "端口须为 1 至 65535 的数字",
        Reason::NothingListens => "没有程序在监听",
        Reason::PathTooLong => "不能超过 4096 字节",
        Reason::PathNeedsOneSlash => "必须以一个 `/` 开头",
        Reason::PathNeedsEscapes => "含有需要转义的字符，如空格、`\\` 或 `#`",
        Reason::NotAPath => "不是有效的路径",
        Reason::FolderNotAbsolute => "必须以 `/` 开头",
        Reason::FolderTooLong => "不能超过 1024 字节",
        Reason::FolderHasControl => "含有控制字符",
        Reason::PackagesUnknown => "无法得知其中安装了什么：它是推送来的，或尚未保存",
        Reason::MessageTooLong => "不能超过 4096 字节，也不能含有空字符（NUL）",
        Reason::ExcludeTooMany => "不能超过 64 个路径",
        Reason::ExcludeNotAbsolute => "其中有的不是绝对路径",
        Reason::TerminalNameUnfit => "须由小写字母、数字和连字符组成，最多 32 个字符",
        Reason::ExecTooLong => "参数和变量合计不能超过 256 KiB",
        Reason::KeyIsPrivate => "这是私钥，不应交给任何人；请发送公钥",
        Reason::KeyNotOneLine => "请发送 .pub 文件中的那一行",
        Reason::KeyUnreadable => "这不是 .pub 文件中那样的公钥",
        Reason::KeyIsDsa => "DSA 密钥已不安全，请生成 ed25519 密钥",
        Reason::KeyRsaTooShort => "RSA 密钥至少需要 2048 位，建议生成 ed25519 密钥",
        Reason::KeyKindUnknown => "不支持这种密钥，请生成 ed25519 密钥",
        Reason::KeyAlreadyYours => "您已添加过此公钥",
        Reason::KeyOfAnother => "此公钥属于其他用户",
        Reason::SignatureUnreadable => "这不是 `ssh-keygen -Y sign -n berth` 生成的签名",
        Reason::SignatureOfAnother => "签名与此公钥或验证内容不符",
        Reason::ChallengeOver => "请重新获取验证内容",
        Reason::KeysTooMany => "公钥已达 100 个，请先删除一个",
        Reason::Unknown => return None,
    })
}

fn kind(kind: &str) -> &str {
    match kind {
        "instance" => "实例",
        "image" => "镜像",
        "user" => "用户",
        "group" => "用户组",
        "workspace" => "工作空间",
        "token" => "访问令牌",
        "key" => "SSH 公钥",
        "secret" => "密钥",
        "login" => "镜像仓库登录",
        "node" => "节点",
        "terminal" => "终端",
        "app" => "应用",
        "job" => "任务",
        "task" => "子任务",
        "gpu" => "GPU 型号",
        "pool" => "资源池",
        "cluster" => "集群",
        "" => "内容",
        other => other,
    }
}

fn field(field: &str) -> &str {
    match field {
        "name" => "名称",
        "image" => "镜像",
        "cpus" => "CPU",
        "memory_bytes" => "内存",
        "shm_bytes" => "共享内存",
        "gpus" => "GPU",
        "env" => "环境变量",
        "command" => "启动命令",
        "argv" => "命令",
        "terminal" => "终端",
        "user" => "用户名",
        "group" => "用户组",
        "days" => "有效天数",
        "limit" => "每页条数",
        "port" => "端口",
        "app" => "应用",
        "path" => "路径",
        "folder" => "文件夹",
        "exclude" => "排除路径",
        "message" => "说明",
        "password" => "密码",
        "new" => "新密码",
        "instances" => "实例数",
        "jobs" => "任务数",
        "value" => "值",
        "secrets" => "密钥",
        "registry" | "registry/host" => "镜像仓库",
        "registry/user" => "镜像仓库用户名",
        other => other,
    }
}

fn state(state: &str) -> &str {
    match state {
        "waiting" => "等待中",
        "pulling" => "拉取镜像",
        "starting" => "启动中",
        "running" => "运行中",
        "stopping" => "停止中",
        "stopped" => "已停止",
        "succeeded" => "已成功",
        "failed" => "失败",
        "deleting" => "删除中",
        other => other,
    }
}

/// Jobs have words of their own for theirs.
fn state_of_job(word: &str) -> &str {
    match word {
        "waiting" => "等待",
        "starting" => "启动",
        "running" => "运行",
        "stopped" => "终止",
        "succeeded" => "完成",
        "failed" => "错误",
        other => state(other),
    }
}

fn action(action: &str) -> &str {
    match action {
        "start" => "启动",
        "stop" => "停止",
        "restart" => "重启",
        "delete" => "删除",
        "terminal" => "打开终端",
        "exec" => "执行命令",
        "logs" => "查看日志",
        "open" => "打开应用",
        "save" => "保存",
        "rerun" => "重新运行",
        "change" => "修改",
        other => other,
    }
}
