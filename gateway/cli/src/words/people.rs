//! Sentences about users, groups, tokens and the audit log.

use gateway_api::{
    people::{User, UserState},
    session::Role,
};
use jiff::Timestamp;

use super::{
    Language::{Chinese, English},
    Words,
};

impl Words {
    pub(crate) fn role(self, role: Role) -> &'static str {
        match role {
            Role::Admin => self.pick("admin", "管理员"),
            Role::Leader => self.pick("leader", "组长"),
            Role::User => self.pick("user", "普通用户"),
        }
    }

    pub(crate) fn user_state(self, state: &UserState) -> String {
        match (self.0, state) {
            (English, UserState::Active) => "active".to_owned(),
            (Chinese, UserState::Active) => "正常".to_owned(),
            (English, UserState::Disabled { since }) => format!("disabled since {since:.0}"),
            (Chinese, UserState::Disabled { since }) => format!("自 {since:.0} 停用"),
            (English, UserState::Removed { until, .. }) => {
                format!("removed; can be restored until {until:.0}")
            }
            (Chinese, UserState::Removed { until, .. }) => format!("已移除；{until:.0} 前可恢复"),
        }
    }

    pub(crate) fn user_removed(self, user: &User) -> String {
        let (name, state) = (&user.name, self.user_state(&user.state));
        match self.0 {
            English => format!("`{name}`: {state}; the instances are stopping, the files are kept"),
            Chinese => format!("`{name}`：{state}；其实例正在停止，文件会保留"),
        }
    }

    pub(crate) fn new_password(self, name: &str) -> String {
        match self.0 {
            English => {
                format!("the password of `{name}`, shown this once; it is to be changed after the sign-in")
            }
            Chinese => format!("`{name}` 的密码如下，仅显示这一次；登录后请修改"),
        }
    }

    pub(crate) fn new_token(self, expires: Timestamp) -> String {
        match self.0 {
            English => format!("the token, shown this once; it ends at {expires:.0}"),
            Chinese => format!("访问令牌如下，仅显示这一次；{expires:.0} 失效"),
        }
    }

    pub(crate) fn ask_secret_value(self, name: &str) -> String {
        match self.0 {
            English => format!("Value of {name}: "),
            Chinese => format!("{name} 的值："),
        }
    }

    pub(crate) fn ask_old_password(self) -> &'static str {
        self.pick("Current password: ", "当前密码：")
    }

    pub(crate) fn ask_new_password(self) -> &'static str {
        self.pick("New password: ", "新密码：")
    }

    pub(crate) fn ask_password_again(self) -> &'static str {
        self.pick("New password again: ", "再次输入新密码：")
    }

    pub(crate) fn passwords_differ(self) -> String {
        self.pick("the two new passwords differ", "两次输入的新密码不一致").to_owned()
    }

    pub(crate) fn password_changed(self) -> &'static str {
        self.pick("the password is changed; other sessions have ended", "密码已修改；其他登录已退出")
    }

    pub(crate) fn done_word(self) -> &'static str {
        self.pick("done", "完成")
    }

    pub(crate) fn refused_word(self) -> &'static str {
        self.pick("refused", "拒绝")
    }
}
