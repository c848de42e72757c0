//! The gateway's errors in the user's language, found by their code and never by their text.
//!
//! In English the gateway's own sentence is the best there is; only hints that speak of the console are replaced by
//! ones that name a command. The Chinese sentences are those that all programs share (`gateway_api::words`).

use gateway_api::{Code, Problem};

use super::{
    Language::{Chinese, English},
    Words,
};

impl Words {
    /// What happened, and what to do.
    pub(crate) fn problem(self, problem: &Problem) -> (String, Option<String>) {
        let hint = self.own_hint(problem).or_else(|| self.0.hint(problem));
        (self.0.problem(problem), hint)
    }

    /// Where a command helps more than the gateway's general advice.
    fn own_hint(self, problem: &Problem) -> Option<String> {
        Some(match problem.code {
            Code::Unauthenticated => self.hint_sign_in(),
            Code::ImageNotFound => {
                self.pick("`berth images` lists what there is", "`berth images` 可列出现有镜像").to_owned()
            }
            Code::TooLarge => self
                .pick(
                    "ask for less; `berth nodes` shows the machines",
                    "请减少申请量；`berth nodes` 可查看各节点",
                )
                .to_owned(),
            Code::WrongState => {
                let name = problem.params.get("name").map_or("NAME", String::as_str);
                match self.0 {
                    English => format!("`berth show {name}` tells its state"),
                    Chinese => format!("`berth show {name}` 可查看其状态"),
                }
            }
            Code::PasswordChangeRequired => {
                self.pick("`berth passwd` changes it", "请用 `berth passwd` 修改").to_owned()
            }
            Code::UserRemoved => {
                let name = problem.params.get("name").map_or("NAME", String::as_str);
                match self.0 {
                    English => {
                        format!("`berth user restore {name}` brings the account back; or choose another name")
                    }
                    Chinese => format!("`berth user restore {name}` 可恢复该账号；也可换一个名称"),
                }
            }
            Code::RegistryDenied => {
                let registry = problem.params.get("registry").map_or("HOST", String::as_str);
                match self.0 {
                    English => format!(
                        "check the spelling; for a private image `berth secret set NAME --registry {registry} --user USER` \
                         keeps a login"
                    ),
                    Chinese => format!(
                        "请检查拼写；若是私有镜像，请用 `berth secret set 名称 --registry {registry} --user 用户名` 保存登录信息"
                    ),
                }
            }
            Code::BadCredentials
            | Code::TooManyAttempts
            | Code::TooManyOpen
            | Code::Forbidden
            | Code::NotFound
            | Code::BadName
            | Code::NameTaken
            | Code::AlreadyExists
            | Code::LastAdmin
            | Code::InUse
            | Code::BadImage
            | Code::RegistryUnreachable
            | Code::RegistryNotAllowed
            | Code::BadValue
            | Code::BadJobFile
            | Code::NeedsMoreMachines
            | Code::OverQuota
            | Code::NotHere
            | Code::PoolTakesOthers
            | Code::PriorityTooHigh
            | Code::WeakPassword
            | Code::BadBody
            | Code::UnknownField
            | Code::BodyTooLarge
            | Code::CrossSite
            | Code::ClusterUnreachable
            | Code::EngineUnreachable
            | Code::AgentUnreachable
            | Code::AppsUnavailable
            | Code::DiskFull
            | Code::NoRegistry
            | Code::BeingSaved
            | Code::CannotSave
            | Code::ImageQuota
            | Code::Internal
            | Code::Unknown => return None,
        })
    }
}
