//! The sentences about the preparation that follows a start of the site.

use super::Language::{self, Chinese, English};
use crate::preparing::{PreparingState, PreparingStep, PreparingWhat};

impl Language {
    /// Says how far a step is and how long it still takes.
    pub fn preparing(self, step: &PreparingStep) -> String {
        let what = match step.what {
            PreparingWhat::Base => self.pick("the default image", "默认镜像"),
            PreparingWhat::Tools => self.pick("VS Code", "VS Code "),
            PreparingWhat::Lab => self.pick("the JupyterLab image", "JupyterLab 镜像"),
            PreparingWhat::Desktop => self.pick("the desktop image", "桌面镜像"),
        };
        let then = match step.what {
            PreparingWhat::Base => {
                self.pick("; instances can be created from it when it is ready", "；就绪后可用它创建实例")
            }
            PreparingWhat::Tools | PreparingWhat::Lab | PreparingWhat::Desktop => "",
        };
        match (self, step.state, step.minutes_left()) {
            (English, PreparingState::Done, _) => format!("{what} is ready"),
            (Chinese, PreparingState::Done, _) => format!("{what}已就绪"),
            (English, PreparingState::Failed, _) => {
                format!("{what} could not be prepared; an admin finds the reason in logs/images.log")
            }
            (Chinese, PreparingState::Failed, _) => {
                format!("{what}未能准备好；管理员可在 logs/images.log 中查看原因")
            }
            (English, PreparingState::Waiting | PreparingState::Working, None) => {
                format!("{what} is being prepared{then}")
            }
            (Chinese, PreparingState::Waiting | PreparingState::Working, None) => {
                format!("{what}正在准备中{then}")
            }
            (English, PreparingState::Waiting | PreparingState::Working, Some(minutes)) => {
                let unit = if minutes == 1 { "minute" } else { "minutes" };
                format!("{what} is being prepared{then}, about {minutes} {unit} left")
            }
            (Chinese, PreparingState::Waiting | PreparingState::Working, Some(minutes)) => {
                format!("{what}正在准备中{then}，约剩 {minutes} 分钟")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_the_step_and_the_minutes_left() {
        let check = |what, state, seconds_left, english: &str, chinese: &str| {
            let step = PreparingStep { what, state, seconds_left };
            assert_eq!([English, Chinese].map(|language| language.preparing(&step)), [english, chinese]);
        };
        check(
            PreparingWhat::Tools,
            PreparingState::Waiting,
            Some(350),
            "VS Code is being prepared, about 6 minutes left",
            "VS Code 正在准备中，约剩 6 分钟",
        );
        check(
            PreparingWhat::Base,
            PreparingState::Working,
            Some(70),
            "the default image is being prepared; instances can be created from it when it is ready, about 1 minute left",
            "默认镜像正在准备中；就绪后可用它创建实例，约剩 1 分钟",
        );
        check(
            PreparingWhat::Lab,
            PreparingState::Working,
            Some(1),
            "the JupyterLab image is being prepared, about 1 minute left",
            "JupyterLab 镜像正在准备中，约剩 1 分钟",
        );
        for no_estimate in [None, Some(0)] {
            check(
                PreparingWhat::Desktop,
                PreparingState::Working,
                no_estimate,
                "the desktop image is being prepared",
                "桌面镜像正在准备中",
            );
        }
        check(
            PreparingWhat::Base,
            PreparingState::Done,
            None,
            "the default image is ready",
            "默认镜像已就绪",
        );
        check(
            PreparingWhat::Tools,
            PreparingState::Failed,
            None,
            "VS Code could not be prepared; an admin finds the reason in logs/images.log",
            "VS Code 未能准备好；管理员可在 logs/images.log 中查看原因",
        );
    }
}
