//! Apps: the tools of an instance that are opened in a browser, and any port of it by number.
//!
//! Lab, IDE, TensorBoard and ports are pages of the instance, each on a host of its own; the terminal and the desktop
//! are pages of the console. Opening one gives an address that signs the browser in, once and for less than a minute.

use std::{fmt, num::NonZeroU16, str::FromStr};

use jiff::Timestamp;
pub use process_api::PROBLEMS;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::preparing::PreparingStep;

/// Something of an instance that is opened in a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AppName {
    /// JupyterLab.
    Lab,
    /// VS Code.
    Ide,
    Tensorboard,
    Desktop,
    Terminal,
    /// Whatever listens there.
    Port(NonZeroU16),
}

/// What is not the name of an app.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no app `{0}`")]
pub struct NotAnApp(String);

impl AppName {
    /// Those with a name.
    pub const NAMED: [Self; 5] = [Self::Lab, Self::Ide, Self::Tensorboard, Self::Desktop, Self::Terminal];

    /// Whether the instance serves its pages; the others are pages of the console.
    pub fn is_page_of_instance(self) -> bool {
        match self {
            Self::Lab | Self::Ide | Self::Tensorboard | Self::Port(_) => true,
            Self::Desktop | Self::Terminal => false,
        }
    }

    /// Whether the instance's agent starts it on first use.
    pub fn is_started(self) -> bool {
        match self {
            Self::Lab | Self::Ide | Self::Tensorboard | Self::Desktop => true,
            Self::Terminal | Self::Port(_) => false,
        }
    }
}

impl fmt::Display for AppName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lab => out.write_str("lab"),
            Self::Ide => out.write_str("ide"),
            Self::Tensorboard => out.write_str("tensorboard"),
            Self::Desktop => out.write_str("desktop"),
            Self::Terminal => out.write_str("terminal"),
            Self::Port(port) => port.fmt(out),
        }
    }
}

impl FromStr for AppName {
    type Err = NotAnApp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || NotAnApp(text.chars().filter(|letter| !letter.is_control()).take(32).collect());
        match text {
            "lab" => Ok(Self::Lab),
            "ide" => Ok(Self::Ide),
            "tensorboard" => Ok(Self::Tensorboard),
            "desktop" => Ok(Self::Desktop),
            "terminal" => Ok(Self::Terminal),
            // One way to write each number: two addresses of one port would be two origins.
            number if number.starts_with(|first: char| ('1'..='9').contains(&first)) => {
                number.parse().map(Self::Port).map_err(|_| wrong())
            }
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for AppName {
    type Error = NotAnApp;

    fn try_from(text: String) -> Result<Self, NotAnApp> {
        text.parse()
    }
}

impl From<AppName> for String {
    fn from(app: AppName) -> Self {
        app.to_string()
    }
}

/// An app of an instance as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct App {
    #[schema(value_type = String, example = "lab")]
    pub app: AppName,
    pub state: AppState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<AppSource>,
    /// What has been done and what is under way, in order.
    pub steps: Vec<AppStep>,
    /// Why it cannot be had, or has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<AppProblem>,
    /// The step that prepares the tools volume, while the app lacks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparing: Option<PreparingStep>,
    /// The last that it, or its installation, wrote.
    pub log: String,
    /// Where it listens on the instance's own loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Its address for those who are signed in to it. `open` gives one that signs in.
    pub url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppState {
    /// It could be started.
    Stopped,
    /// It is not there, but can be put in.
    Installable,
    /// It is not there and cannot be had.
    Absent,
    Installing,
    Starting,
    Ready,
    /// It ended, or never answered.
    Failed,
}

/// Where an app comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppSource {
    Image,
    /// What the site gives to every instance.
    Tools,
    /// Put in by its user.
    Installed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AppStep {
    /// `find`, `install`, `start` or `answer`.
    pub step: String,
    /// How long it took, or has taken so far.
    pub seconds: f64,
    pub done: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppProblem {
    /// For translations, such as `no_python`.
    pub code: String,
    pub message: String,
    pub hint: String,
}

/// Something to do with an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppAct {
    Start,
    /// Puts it into the instance, then starts it.
    Install,
    Stop,
}

/// The body of an act on an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActOnApp {
    pub act: AppAct,
    /// What TensorBoard shows, or where the others begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// The body of an `open`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenApp {
    /// Where in the app: a path with its query, such as `/lab/tree/a.ipynb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What TensorBoard shows, or where the others begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// An address that signs one browser in, once.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Opened {
    pub url: String,
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
}

impl fmt::Debug for Opened {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Opened").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// The body of a request for a TensorBoard of its own, which needs nothing of any other instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTensorboard {
    /// Where the event files are, as an instance sees it, such as `/userhome/runs`.
    #[schema(example = "/userhome/runs")]
    pub folder: String,
    /// The instance's name; made up if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is to be, which is where the folder is; the site's first cluster when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ports_read_back() {
        for app in AppName::NAMED {
            assert_eq!(app.to_string().parse(), Ok(app));
        }
        assert_eq!("65535".parse::<AppName>().unwrap().to_string(), "65535");
        for wrong in ["", "0", "65536", "080", "+80", "-1", "8 0", "Lab", "lab ", "notebook", "８０"] {
            assert!(wrong.parse::<AppName>().is_err(), "{wrong}");
        }
    }
}
