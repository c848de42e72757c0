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
