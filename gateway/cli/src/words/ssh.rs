//! Sentences about SSH.

use super::{
    Language::{Chinese, English},
    Words,
};

impl Words {
    pub(crate) fn program_fails(self, program: &str, why: &str) -> String {
        match self.0 {
            English => format!("`{program}` cannot be run: {why}"),
            Chinese => format!("无法运行 `{program}`：{why}"),
        }
    }

    pub(crate) fn hint_openssh(self) -> String {
        self.pick("install the OpenSSH client", "请安装 OpenSSH 客户端").to_owned()
    }

    pub(crate) fn cannot_sign(self, key: &str, why: &str) -> String {
        match self.0 {
            English => format!("`{key}` did not sign the gateway's challenge: {why}"),
            Chinese => format!("无法用 `{key}` 对网关的质询签名：{why}"),
        }
    }

    pub(crate) fn cannot_make_key(self, path: &str, why: &str) -> String {
        match self.0 {
            English => format!("the key `{path}` cannot be made: {why}"),
            Chinese => format!("无法生成密钥 `{path}`：{why}"),
        }
    }

    pub(crate) fn shell_made(self, name: &str) -> String {
        match self.0 {
            English => {
                format!("`{name}` is submitted; it stays when the shell ends (`berth stop {name}` ends it)")
            }
            Chinese => format!("已提交 `{name}`；退出后它仍在运行（用 `berth stop {name}` 停止）"),
        }
    }

    pub(crate) fn shell_of_many(self) -> String {
        self.pick(
            "this file describes several tasks, and a shell is one",
            "此文件描述了多个任务，而 shell 只能有一个",
        )
        .to_owned()
    }

    pub(crate) fn shell_with_command(self) -> String {
        self.pick(
            "this file has a command of its own, and a shell has none",
            "此文件自带启动命令，而 shell 不应有启动命令",
        )
        .to_owned()
    }

    pub(crate) fn hint_shell_file(self) -> String {
        self.pick(
            "give a file with one task and without an entrypoint",
            "请使用只有一个任务且没有 entrypoint 的文件",
        )
        .to_owned()
    }

    pub(crate) fn key_made(self, path: &str) -> String {
        match self.0 {
            English => format!("the private half is in `{path}` and nowhere else; keep it to yourself"),
            Chinese => format!("私钥只保存在 `{path}` 中，请妥善保管，不要交给他人"),
        }
    }

    pub(crate) fn ssh_configured(self, file: &str, name: &str) -> String {
        match self.0 {
            English => format!("`{file}` is included in ~/.ssh/config; try: ssh {name}.berth"),
            Chinese => format!("已在 ~/.ssh/config 中引用 `{file}`；请试试：ssh {name}.berth"),
        }
    }
}
