//! What `open`, `port-forward` and `tensorboard` say.

use super::{
    Language::{Chinese, English},
    Words,
};

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
}
