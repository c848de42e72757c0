//! What is said about job files, in the user's language, found by its code and never by its text.
//!
//! In English the reader's own sentences are the best there are. In Chinese everything is said here.

use gateway_api::job::JobNote;
use jobfile::{Code, Level, Note, Place};

use super::{
    Language::{Chinese, English},
    Words,
};

impl Words {
    pub(crate) fn warning(self) -> &'static str {
        self.pick("warning: ", "警告：")
    }

    /// What is so, with its place in `file`, and what to write instead.
    pub(crate) fn note(self, file: &str, note: &Note) -> (String, Option<String>) {
        let (what, hint) = match self.0 {
            English => (note.message(), note.hint()),
            Chinese => (chinese(note), chinese_hint(note)),
        };
        (self.placed(file, note.place, &what), hint)
    }

    /// The same about what the gateway says. What only a newer one can say is in its own words.
    pub(crate) fn job_note(self, file: &str, note: &JobNote) -> (Level, (String, Option<String>)) {
        let level = if note.level == "error" { Level::Error } else { Level::Warning };
        let place = note.line.map(|line| Place { line, column: note.column.unwrap_or(0) });
        let Ok(code) = serde_json::from_value(note.code.clone().into()) else {
            return (level, (self.placed(file, place, &note.message), note.hint.clone()));
        };
        let (pointer, params) = (note.pointer.clone(), note.params.clone());
        (level, self.note(file, &Note { level, code, place, pointer, params }))
    }

    /// Also of a file that has no name.
    fn placed(self, file: &str, place: Option<Place>, what: &str) -> String {
        let [line, column] = [place.map(|place| place.line), place.map(|place| place.column)];
        let numbers =
            [line, column.filter(|column| *column > 0)].map(|number| number.map(|one| one.to_string()));
        let parts = std::iter::once(file.to_owned()).filter(|file| !file.is_empty());
        let place: Vec<_> = parts.chain(numbers.into_iter().flatten()).collect();
        match self.0 {
            _ if place.is_empty() => what.to_owned(),
            English => format!("{}: {what}", place.join(":")),
            Chinese => format!("{}：{what}", place.join(":")),
        }
    }

    pub(crate) fn site_not_asked(self, cause: &str) -> String {
        match self.0 {
            English => format!("the site's aliases, storages and shares are not looked at: {cause}"),
            Chinese => format!("未考虑站点的别名、存储和份额：{cause}"),
        }
    }

    pub(crate) fn no_job(self, file: &str, errors: usize) -> String {
        match (self.0, errors) {
            (English, 1) => format!("`{file}` cannot be submitted: 1 mistake"),
            (English, errors) => format!("`{file}` cannot be submitted: {errors} mistakes"),
            (Chinese, errors) => format!("`{file}` 无法提交：有 {errors} 处错误"),
        }
    }

    pub(crate) fn unreadable(self, file: &str, cause: &str) -> String {
        match self.0 {
            English => format!("`{file}` cannot be read: {cause}"),
            Chinese => format!("无法读取 `{file}`：{cause}"),
        }
    }

    pub(crate) fn level(self, level: Level) -> &'static str {
        match level {
            Level::Error => self.error(),
            Level::Warning => self.warning(),
        }
    }
}

/// What a value is.
fn kind(word: &str) -> &str {
    match word {
        "nothing" => "空值",
        "boolean" => "`true` 或 `false`",
        "whole_number" => "整数",
        "number" => "数字",
        "text" => "文本",
        "list" => "列表",
        "map" => "键值表",
        other => other,
    }
}

/// What a name is of.
fn thing(word: &str) -> &str {
    match word {
        "job" => "任务",
        "role" => "任务角色",
        "port" => "端口",
        "image" => "镜像",
        "mount" => "挂载点",
        "variable" => "环境变量",
        "task" => "子任务",
        "key" => "键",
        "storage" => "存储",
        "script" => "脚本",
        "data" => "数据",
        "output" => "输出",
        other => other,
    }
}

fn chinese(note: &Note) -> String {
    let (field, value, of, limit) =
        (note.field(), note.param("value"), thing(note.param("of")), note.param("limit"));
    match note.code {
        Code::FileTooLarge => format!("文件超过 {limit}"),
        Code::NotUtf8 => "文件不是 UTF-8 文本".to_owned(),
        Code::NothingInIt => "文件是空的".to_owned(),
        Code::Syntax => format!("语法错误：{}", note.param("what")),
        Code::TooDeep => format!("嵌套超过 {limit} 层"),
        Code::TooManyValues => format!("展开别名后超过 {limit} 个值"),
        Code::Cycle => format!("`{value}` 引用了自身"),
        Code::UnknownFormat => "无法识别这是哪种任务文件".to_owned(),
        Code::Missing => format!("缺少 `{field}`"),
        Code::Blank => format!("`{field}` 为空"),
        Code::WrongType => {
            let (expected, found) = (kind(note.param("expected")), kind(note.param("found")));
            format!("`{field}` 应为{expected}，而不是{found}")
        }
        Code::OutOfRange => match (note.param("least"), note.param("most")) {
            (least, "") => format!("`{field}` 为 `{value}`，不得小于 {least}"),
            (least, most) => format!("`{field}` 为 `{value}`，应在 {least} 到 {most} 之间"),
        },
        Code::BadName => format!("`{value}` 不能作为{of}的名称"),
        Code::Twice => format!("有两个{of}都叫 `{value}`"),
        Code::Alike => format!("任务角色 `{value}` 与 `{}` 的子任务会重名", note.param("other")),
        Code::Hdfs => format!("`{value}` 位于 HDFS，而这里没有 HDFS"),
        Code::BadPath => format!("`{value}` 不是可用的路径"),
        Code::OutsideStorage => format!("`{value}` 不在本站点的任何存储中"),
        Code::UnknownValue => format!("`{field}` 的值 `{value}` 不存在"),
        Code::Unsupported if value.is_empty() => format!("不支持 `{field}`"),
        Code::Unsupported => format!("`{field}`：不支持 `{value}`"),
        Code::BadVariable => format!("`{value}` 不能作为环境变量"),
        Code::ShmAboveMemory => {
            format!("`{field}` 为 {value} MiB，超过了内存的 {} MiB", note.param("memory"))
        }
        Code::SamePorts => format!("端口 `{value}` 与 `{}` 要的号码重复", note.param("other")),
        Code::BadSize => format!("`{field}`：`{value}` 不是大小"),
        Code::BadDuration => format!("`{field}`：`{value}` 不是时长"),
        Code::BadText => format!("`{field}` 含有 NUL 字符"),
        Code::TooMany => format!("{of}超过 {limit} 个"),
        Code::Both => format!("`{field}` 与 `{}` 不能同时出现", note.param("other")),
        Code::UnknownKey => format!("未知的 `{field}`，已保留但不起作用"),
        Code::Ignored => format!("`{field}` 在这里不起作用"),
        Code::Repeated => format!("`{value}` 出现了两次，以最后一次为准"),
        Code::Reserved => format!("环境变量 `{value}` 由平台设置，以平台的值为准"),
        Code::AlsoNamed => format!("shell 无法书写名称中含 `{value}` 的变量"),
        Code::SecretInFile => format!("`{field}` 是机密信息，而文件会随任务保存"),
        Code::PathUnchecked => format!("`{value}` 是否在站点的存储中，提交时才会检查"),
    }
}

fn chinese_hint(note: &Note) -> Option<String> {
    let (value, example, known) = (note.param("value"), note.param("example"), note.param("known"));
    Some(match note.code {
        Code::FileTooLarge => "任务文件只说明运行什么；请把数据和代码放到目录中".to_owned(),
        Code::NotUtf8 => "请另存为 UTF-8".to_owned(),
        Code::NothingInIt => "至少要写名称、镜像和命令".to_owned(),
        Code::Syntax => "请检查这一行和上一行".to_owned(),
        Code::TooDeep => "请减少嵌套".to_owned(),
        Code::TooManyValues => "请直接写出所需内容，不用别名".to_owned(),
        Code::Cycle => "请去掉其中一处引用".to_owned(),
        Code::UnknownFormat => {
            "请以 `berth: 1` 开头；也可识别 OpenPAI v1 和 v2、DLC 参数文件与 Determined 配置".to_owned()
        }
        Code::Missing => format!("请添加 `{example}`"),
        Code::Blank | Code::WrongType | Code::OutOfRange => format!("请写成 `{example}`"),
        Code::BadName => format!("例如 `{example}`；可用的写法：{}", chinese_rule(note.param("of"))),
        Code::Twice => "请取不同的名称".to_owned(),
        Code::Alike => "请取不只是大小写或下划线不同的名称".to_owned(),
        Code::Hdfs => format!("请把文件复制到 `/userhome` 下并写该路径，例如 `{example}`"),
        Code::BadPath => format!("请写不含 `..` 的绝对路径，例如 `{example}`"),
        Code::OutsideStorage if known.is_empty() => "请使用 `/userhome` 下的路径".to_owned(),
        Code::OutsideStorage => format!("请使用以下路径之下的目录：{known}"),
        Code::UnknownValue if known.is_empty() => "没有可选的值，请先添加".to_owned(),
        Code::UnknownValue => format!("请写以下之一：{known}"),
        Code::Unsupported => "请去掉这一项".to_owned(),
        Code::BadVariable => "请写成 `NAME=value`，名称中不要有 NUL 和换行".to_owned(),
        Code::ShmAboveMemory => format!("最多写 `{}`", note.param("memory")),
        Code::SamePorts => "请为每个端口写不同的号码，或写 0 由平台分配".to_owned(),
        Code::BadSize => "请写成 `512M`、`8G` 或 `1.5G`".to_owned(),
        Code::BadDuration => "请写成 `90s`、`30m` 或 `1h30m`".to_owned(),
        Code::BadText => "请去掉它".to_owned(),
        Code::TooMany => "请拆成几个任务".to_owned(),
        Code::Both => "请去掉其中一个".to_owned(),
        Code::UnknownKey => match note.param("nearest") {
            "" => return None,
            nearest => format!("您是不是要写 `{nearest}`？"),
        },
        Code::Ignored => match note.param("why") {
            "always_so" => "这里一直如此".to_owned(),
            "registry_login" => {
                "请用 `berth secret set 名称 --registry 主机 --user 用户` 保存仓库的登录信息".to_owned()
            }
            "storages" => {
                "您可用的站点存储在每个子任务中都已挂载，请在命令中写其路径，例如 `/userhome`".to_owned()
            }
            "code" => "请在命令中获取代码（如 `git clone`），或把代码放到 `/userhome` 下".to_owned(),
            "tensorboard" => "请运行 `berth tensorboard 目录`".to_owned(),
            "one_gpu_model" => "一个任务的所有子任务使用同一种 GPU，以第一个写明的角色为准".to_owned(),
            _ => return None,
        },
        Code::Reserved => "请换一个名称".to_owned(),
        Code::AlsoNamed => format!("同时也以 `{}` 设置", note.param("also")),
        Code::SecretInFile => format!("请把 `{value}` 存到您的账号中，并从文件里去掉"),
        Code::Repeated | Code::PathUnchecked => return None,
    })
}

fn chinese_rule(of: &str) -> &'static str {
    match of {
        "job" => "字母、数字、`-`、`.`、`_` 和 `~`，最多 255 个",
        "role" => "字母、数字和 `_`，最多 40 个",
        "port" => "字母、数字、`.`、`_`、`-` 和 `~`，最多 40 个",
        _ => "镜像的引用",
    }
}
