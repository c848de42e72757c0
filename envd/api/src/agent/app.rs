//! Apps of an instance: programs with a page or a screen of their own, started by the agent on first use.
//!
//! The gateway asks with [`AppCall`] as often as it likes and gets one [`AppReport`] each time: what is there now,
//! after what was asked for has begun. Asking twice does nothing twice. An app lives on without the gateway.

use serde::{Deserialize, Serialize};

/// Where envd mounts the site's tools in an instance, read-only: a directory for each version, and the link `current`.
/// Empty where the site has none.
pub const TOOLS: &str = "/.berth/tools";
/// Where envd mounts the site's own certificates in an instance, read-only; absent where the site has none.
pub const CERTIFICATES: &str = "/.berth/ca.pem";
/// The most of an app's log that is in a report.
pub const APP_LOG_MAX: usize = 16 << 10;

/// Looks at an app or changes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppCall {
    /// `lab`, `ide`, `tensorboard` or `desktop`.
    pub app: String,
    pub act: AppAct,
    /// Where the app's pages are to a browser: `/`, or a path that begins and ends with `/`.
    pub prefix: String,
    /// What TensorBoard shows; where the others begin. Without one: the home folder.
    #[serde(default)]
    pub folder: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppAct {
    Look,
    /// Starts it unless it runs or is starting.
    Start,
    /// Puts it into the instance, then starts it.
    Install,
    /// Ends it, or its installation.
    Stop,
}

/// The one message that answers an [`AppCall`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AppReport {
    pub app: String,
    pub state: AppState,
    #[serde(default)]
    pub source: Option<AppSource>,
    /// On the instance's own loopback; there while it is starting or ready.
    #[serde(default)]
    pub port: Option<u16>,
    /// What has been done and what is under way, in order.
    #[serde(default)]
    pub steps: Vec<AppStep>,
    /// Why it is absent or has failed.
    #[serde(default)]
    pub problem: Option<AppProblem>,
    /// The last of what the app or its installation wrote, at most [`APP_LOG_MAX`] bytes.
    #[serde(default)]
    pub log: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppState {
    /// It could be started.
    Stopped,
    /// It is not there, but `install` would put it in.
    Installable,
    /// It is not there and cannot be had.
    Absent,
    Installing,
    Starting,
    /// Its port answers.
    Ready,
    /// It ended or never answered; `start` starts it anew.
    Failed,
}

/// Where an app comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppSource {
    Image,
    /// The site's [`TOOLS`].
    Tools,
    /// Put in by `install`.
    Installed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AppStep {
    /// `find`, `install`, `start` or `answer`.
    pub step: String,
    /// How long it took, or has taken so far.
    pub seconds: f64,
    pub done: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppProblem {
    /// For programs: `no_python`, `no_tools`, `ended` and the like.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}
