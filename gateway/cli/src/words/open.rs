//! What `open`, `port-forward` and `tensorboard` say.

use gateway_api::{Action, Instance, app::AppProblem, preparing::PreparingStep};

use super::{
    Language::{Chinese, English},
    Words,
};
use crate::output::printable;

impl Words {
    pub(crate) fn opened(self, name: &str, app: &str) -> String {
        match self.0 {
            English => format!("`{app}` of `{name}` opens in the browser"),
            Chinese => format!("正在浏览器中打开 `{name}` 的 `{app}`"),
        }
    }

    pub(crate) fn no_browser(self, seconds: i64) -> String {
        match self.0 {
            English => format!(
                "there is no browser here; this address signs in one browser, once, within {seconds} s"
            ),
            Chinese => format!("本机没有可用的浏览器；以下地址在 {seconds} 秒内可供一个浏览器登录一次"),
        }
    }

    /// A token does not become a session, so this is merely the address of a page.
    pub(crate) fn signs_in_nobody(self) -> String {
        self.pick(
            "open this address in a browser that is signed in to the console: a token signs in no browser",
            "请在已登录控制台的浏览器中打开以下地址：访问令牌不能让浏览器登录",
        )
        .to_owned()
    }

    pub(crate) fn forwarding(self, name: &str) -> String {
        match self.0 {
            English => format!("forwarding to `{name}`; Ctrl-C ends it"),
            Chinese => format!("正在转发到 `{name}`；按 Ctrl-C 结束"),
        }
    }

    pub(crate) fn cannot_listen(self, port: u16, cause: &str) -> String {
        match self.0 {
            English => format!("cannot listen on port {port} of this machine: {cause}"),
            Chinese => format!("无法监听本机端口 {port}：{cause}"),
        }
    }

    pub(crate) fn hint_cannot_listen(self, remote: u16) -> String {
        match self.0 {
            English => format!("take another one, such as `0:{remote}` for any free port"),
            Chinese => format!("请换一个端口，例如用 `0:{remote}` 自动选择空闲端口"),
        }
    }

    pub(crate) fn nothing_listens(self, name: &str, port: u16) -> String {
        match self.0 {
            English => format!(
                "nothing listens on port {port} of `{name}` yet; connections are refused until something does"
            ),
            Chinese => format!("`{name}` 的端口 {port} 上还没有程序在监听；在此之前连接会被拒绝"),
        }
    }

    pub(crate) fn too_many_connections(self, most: usize) -> String {
        match self.0 {
            English => format!("{most} connections are open; more have to wait"),
            Chinese => format!("已有 {most} 个连接；其余连接需要等待"),
        }
    }

    pub(crate) fn board_being_made(self, name: &str) -> String {
        match self.0 {
            English => format!(
                "TensorBoard is being made as instance `{name}`; `berth open {name} tensorboard` opens it, `berth rm {name}` ends it"
            ),
            Chinese => format!(
                "正在以实例 `{name}` 创建 TensorBoard；`berth open {name} tensorboard` 可打开，`berth rm {name}` 可结束"
            ),
        }
    }

    pub(crate) fn folder_not_absolute(self, folder: &str) -> String {
        match self.0 {
            English => format!("`{folder}` is not the whole path of a folder"),
            Chinese => format!("`{folder}` 不是文件夹的完整路径"),
        }
    }

    pub(crate) fn hint_folder(self) -> String {
        self.pick(
            "write it as an instance sees it, such as `/userhome/runs`",
            "请写成实例中的完整路径，例如 `/userhome/runs`",
        )
        .to_owned()
    }

    // === apps ===

    /// Of an instance that does not run: its pages say so, with a button.
    pub(crate) fn opens_later(self, instance: &Instance) -> String {
        let (name, state) = (&instance.name, self.instance_state(instance));
        let rests = instance.status.allows(Action::Start) && !instance.status.is_passing();
        match (self.0, rests) {
            (English, true) => {
                format!("`{name}` does not run ({state}): start it on the page, or with `berth start {name}`")
            }
            (Chinese, true) => {
                format!("`{name}` 没有运行（{state}）：请在页面中启动，或运行 `berth start {name}`")
            }
            (English, false) => format!("`{name}` does not run yet ({state}): the page waits for it"),
            (Chinese, false) => format!("`{name}` 尚未运行（{state}）：页面会自动等待"),
        }
    }

    pub(crate) fn app_cannot_be_had(self, name: &str, app: &str, what: &str) -> String {
        match self.0 {
            English => format!("`{app}` cannot be opened in `{name}`: {what}"),
            Chinese => format!("无法在 `{name}` 中打开 `{app}`：{what}"),
        }
    }

    pub(crate) fn app_failed(self, name: &str, app: &str, what: &str, hint: &str) -> String {
        match self.0 {
            English => {
                format!("`{app}` of `{name}` did not start: {what} ({hint}); the page starts it again")
            }
            Chinese => format!("`{name}` 的 `{app}` 启动失败：{what}（{hint}）；可在页面中重新启动"),
        }
    }

    pub(crate) fn app_installable(self, name: &str, app: &str) -> String {
        match self.0 {
            English => format!("`{app}` is not in `{name}` yet: one button on the page installs it"),
            Chinese => format!("`{name}` 中还没有 `{app}`：在页面中点一下即可安装"),
        }
    }

    /// Returns the progress of the tools volume that an app lacks, and a hint.
    pub(crate) fn app_preparing(self, step: &PreparingStep) -> (String, String) {
        let hint = if step.is_pending() {
            self.pick("try again when it is ready", "请在就绪后重试")
        } else {
            self.pick("ask an admin, or use an image that has it", "请联系管理员，或使用自带该程序的镜像")
        };
        (self.0.preparing(step), hint.to_owned())
    }

    /// Why an app cannot be had, and what to do.
    pub(crate) fn app_problem(self, problem: &AppProblem) -> (String, String) {
        let told = || (printable(&problem.message), printable(&problem.hint));
        match self.0 {
            English => told(),
            Chinese => {
                in_chinese(&problem.code).map_or_else(told, |(what, hint)| (what.to_owned(), hint.to_owned()))
            }
        }
    }
}

fn in_chinese(code: &str) -> Option<(&'static str, &'static str)> {
    Some(match code {
        "no_python" => {
            ("镜像中没有 Python，而 JupyterLab 需要它", "请用带 Python 的镜像创建实例，或使用终端、VS Code")
        }
        "old_python" => ("镜像中的 Python 版本太旧", "请使用 Python 版本较新的镜像，或使用 VS Code、终端"),
        "no_pip" => ("镜像中的 Python 不能安装软件包", "请在终端中安装 python3-venv 或 pip，然后重试"),
        "install_failed" => ("安装失败", "最后几行输出说明了原因"),
        "no_tools" => ("镜像中没有该程序，站点也未配置工具卷", "请联系管理员配置，或使用自带该程序的镜像"),
        "not_in_image" => ("镜像中没有该程序", "请用带有该程序的镜像创建实例"),
        "no_folder" => ("实例中没有这个文件夹", "请选择一个存在的文件夹"),
        "no_port" => ("实例中没有空闲端口", "请结束实例中的一些程序后重试"),
        "cannot_run" => ("程序无法运行", "镜像中的程序或用户不存在，请换用其他镜像"),
        "ended" => ("程序自行退出了", "最后几行输出说明了原因"),
        "no_answer" => ("程序在运行，但没有响应", "最后几行输出可能说明原因"),
        "nothing_listens" => ("该端口上没有程序在监听", "请先在实例中启动程序"),
        "old_agent" => ("本实例由旧版本的 Berth 启动", "请停止后再启动实例，文件会保留"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_of_an_app_has_words_in_both_languages() {
        for code in gateway_api::app::PROBLEMS {
            let problem = AppProblem {
                code: code.to_owned(),
                message: "why".to_owned(),
                hint: "what to do".to_owned(),
            };
            let told = Words::new(English).app_problem(&problem);
            assert_eq!(told, ("why".to_owned(), "what to do".to_owned()));
            let (what, hint) = Words::new(Chinese).app_problem(&problem);
            assert!(!what.is_ascii() && !hint.is_ascii(), "{code}: {what} {hint}");
        }
    }
}
