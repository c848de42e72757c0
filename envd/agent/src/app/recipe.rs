//! Which program is which app in this image, and with which arguments it serves behind the gateway.
//!
//! The image's own comes first, then what was installed into the instance, then the site's tools. Every app listens
//! on loopback only and asks nobody who they are: the gateway has done that, and nothing else gets there from
//! outside. What it checks of a request's origin stays on; the gateway hands `Host` and `Origin` on as they are.

use std::path::{Path, PathBuf};

use envd_api::agent::{AppProblem, AppSource, TOOLS};

use super::{Kind, probe::Speaks, problem};
use crate::{environment::Surroundings, program};

/// Where `install` puts JupyterLab: in the instance's own files, not in a home that instances of other images share.
pub(crate) const INSTALLED: &str = "/opt/berth/lab";
/// The latest of the site's tools.
const CURRENT: &str = "current";
/// Written last by the installation.
const COMPLETE: &str = ".complete";
/// Where programs are that are not on `PATH`.
const USUAL_PLACES: [&str; 6] =
    ["/usr/local/bin", "/opt/conda/bin", "/opt/miniconda3/bin", "/opt/venv/bin", "/usr/bin", "/bin"];
/// The same, below the user's home.
const USUAL_PLACES_AT_HOME: [&str; 3] = [".local/bin", "miniconda3/bin", "anaconda3/bin"];
/// What is on a screen, the most complete first.
const SESSIONS: [&str; 9] = [
    "startxfce4",
    "mate-session",
    "startlxqt",
    "startlxde",
    "openbox-session",
    "icewm-session",
    "x-session-manager",
    "x-window-manager",
    "xterm",
];
const SCREENS: [&str; 2] = ["Xtigervnc", "Xvnc"];
const DESKTOP: &str = include_str!("desktop.sh");
/// Among the tools: the settings of a user who has none yet.
const FIRST_SETTINGS: &str = "code-server/first-settings.cjs";

/// How an app can be had.
#[derive(Debug)]
pub(crate) enum Found {
    Here(Recipe),
    /// With this Python it could be installed.
    Installable(PathBuf),
    Absent(AppProblem),
}

/// A program that is an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recipe {
    pub(crate) program: PathBuf,
    pub(crate) source: AppSource,
    way: Way,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    Lab,
    Ide,
    /// A script, run by the tools' own node, perhaps after another.
    IdeOfTools {
        first: Option<String>,
        script: String,
    },
    TensorBoard,
    Desktop {
        screen: String,
        session: String,
    },
}

/// Where an app is to serve, and what.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) port: u16,
    pub(crate) prefix: &'a str,
    pub(crate) folder: &'a str,
    /// The folder was asked for, not chosen for want of one.
    pub(crate) is_folder_named: bool,
    pub(crate) is_root: bool,
    /// The number of the screen.
    pub(crate) display: u32,
}

pub(crate) fn find(kind: Kind, around: &Surroundings) -> Found {
    let look = |name: &str| program::find(name, &places(around), Path::new("/")).ok();
    find_with(kind, look, &Path::new(TOOLS).join(CURRENT), Path::new(INSTALLED))
}

/// `look` finds a program of the image's own.
fn find_with(kind: Kind, look: impl Fn(&str) -> Option<PathBuf>, tools: &Path, installed: &Path) -> Found {
    let of_image = |program, way| Found::Here(Recipe { program, source: AppSource::Image, way });
    match kind {
        Kind::Lab => {
            if let Some(program) = look("jupyter-lab") {
                return of_image(program, Way::Lab);
            }
            let program = installed.join("bin/jupyter-lab");
            if program.is_file() && installed.join(COMPLETE).is_file() {
                return Found::Here(Recipe { program, source: AppSource::Installed, way: Way::Lab });
            }
            look("python3").or_else(|| look("python")).map_or_else(no_python, Found::Installable)
        }
        Kind::Ide => {
            if let Some(program) = look("code-server") {
                return of_image(program, Way::Ide);
            }
            let (program, script) = (tools.join("bin/node"), tools.join("code-server/out/node/entry.js"));
            if program.is_file() && script.is_file() {
                let text = |path: PathBuf| path.to_string_lossy().into_owned();
                let first = Some(tools.join(FIRST_SETTINGS)).filter(|first| first.is_file()).map(text);
                let way = Way::IdeOfTools { first, script: text(script) };
                return Found::Here(Recipe { program, source: AppSource::Tools, way });
            }
            no_ide()
        }
        Kind::TensorBoard => {
            look("tensorboard").map_or_else(no_tensorboard, |program| of_image(program, Way::TensorBoard))
        }
        Kind::Desktop => {
            let text = |path: PathBuf| path.to_string_lossy().into_owned();
            let found = (
                look("sh"),
                SCREENS.iter().find_map(|name| look(name)),
                SESSIONS.iter().find_map(|name| look(name)),
            );
            let (Some(shell), Some(screen), Some(session)) = found else { return no_desktop() };
            of_image(shell, Way::Desktop { screen: text(screen), session: text(session) })
        }
    }
}

/// `PATH`, and where programs usually are if it does not say.
fn places(around: &Surroundings) -> String {
    let home = Path::new(around.home());
    let at_home = USUAL_PLACES_AT_HOME.iter().map(|place| home.join(place).to_string_lossy().into_owned());
    let usual = USUAL_PLACES.iter().map(|place| (*place).to_owned());
    let all: Vec<_> = [around.path().to_owned()].into_iter().chain(usual).chain(at_home).collect();
    all.join(":")
}

// --- what is not there ---

fn no_python() -> Found {
    Found::Absent(problem(
        "no_python",
        "this image has neither JupyterLab nor a Python to install it with",
        "use an image with Python, or open the IDE or a terminal instead",
    ))
}

fn no_ide() -> Found {
    Found::Absent(problem(
        "no_tools",
        "this image has no code-server and this site brings none",
        "ask the operator for the tools: `images/build.sh tools`, then `deploy/up/tools.sh`",
    ))
}

fn no_tensorboard() -> Found {
    Found::Absent(problem(
        "not_in_image",
        "TensorBoard is not in this image",
        "use TensorBoard from a folder, which needs nothing in the image, or `pip install tensorboard`",
    ))
}

fn no_desktop() -> Found {
    Found::Absent(problem(
        "not_in_image",
        "this image has no desktop: it needs `Xtigervnc` and a session such as `startxfce4`",
        "make an instance from an image with a desktop",
    ))
}

// === impl Recipe ===

impl Recipe {
    /// What is run, beginning with the program's own name.
    pub(crate) fn argv(&self, place: &Place<'_>) -> Vec<String> {
        let Place { port, prefix, folder, is_folder_named, is_root, display } = place;
        let mut argv = vec![self.program.to_string_lossy().into_owned()];
        match &self.way {
            Way::Lab => {
                argv.extend([
                    "--no-browser".to_owned(),
                    "--ServerApp.ip=127.0.0.1".to_owned(),
                    format!("--ServerApp.port={port}"),
                    "--ServerApp.port_retries=0".to_owned(),
                    format!("--ServerApp.base_url={prefix}"),
                    // All storages are below it; the folder is where the file browser begins.
                    "--ServerApp.root_dir=/".to_owned(),
                    format!("--ServerApp.preferred_dir={folder}"),
                    "--IdentityProvider.token=".to_owned(),
                    "--ServerApp.token=".to_owned(),
                    "--ServerApp.password=".to_owned(),
                    // It takes a name that is not its own; the gateway has checked it.
                    "--ServerApp.allow_remote_access=True".to_owned(),
                ]);
                argv.extend(is_root.then(|| "--ServerApp.allow_root=True".to_owned()));
            }
            Way::Ide | Way::IdeOfTools { .. } => {
                if let Way::IdeOfTools { first, script } = &self.way {
                    argv.extend(first.iter().map(|first| format!("--require={first}")));
                    argv.extend([
                        script.clone(),
                        "--disable-workspace-trust".to_owned(),
                        "--disable-getting-started-override".to_owned(),
                        // Not in a home that instances share.
                        format!("--session-socket=/tmp/berth-ide-{port}.sock"),
                    ]);
                    argv.extend(is_folder_named.then(|| "--ignore-last-opened".to_owned()));
                }
                argv.extend([
                    format!("--bind-addr=127.0.0.1:{port}"),
                    "--auth=none".to_owned(),
                    "--disable-telemetry".to_owned(),
                    "--disable-update-check".to_owned(),
                    (*folder).to_owned(),
                ]);
            }
            Way::TensorBoard => {
                argv.extend([
                    "--host=127.0.0.1".to_owned(),
                    format!("--port={port}"),
                    format!("--logdir={folder}"),
                ]);
                argv.extend(
                    (*prefix != "/").then(|| format!("--path_prefix={}", prefix.trim_end_matches('/'))),
                );
            }
            Way::Desktop { screen, session } => argv.extend([
                "-c".to_owned(),
                DESKTOP.to_owned(),
                "desktop".to_owned(),
                display.to_string(),
                port.to_string(),
                screen.clone(),
                session.clone(),
            ]),
        }
        argv
    }

    /// What it says when it is ready.
    pub(crate) fn speaks(&self, prefix: &str) -> Speaks {
        match self.way {
            Way::Lab => Speaks::Http(format!("{prefix}api")),
            // The gateway takes the prefix off.
            Way::Ide | Way::IdeOfTools { .. } => Speaks::Http("/".to_owned()),
            Way::TensorBoard => Speaks::Http(prefix.to_owned()),
            Way::Desktop { .. } => Speaks::Vnc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which one is taken, in an image with these programs: `image`, `installed`, `tools`, `installable`, or why none.
    fn taken(kind: Kind, of_image: &[&str], installed: &Path, tools: &Path) -> String {
        let look = |name: &str| of_image.contains(&name).then(|| Path::new("/usr/bin").join(name));
        match find_with(kind, look, tools, installed) {
            Found::Here(Recipe { program, source, .. }) => {
                let place = match source {
                    AppSource::Image => Path::new("/usr/bin"),
                    AppSource::Installed => installed,
                    AppSource::Tools => tools,
                };
                assert!(program.starts_with(place), "{source:?}: {}", program.display());
                format!("{source:?}").to_lowercase()
            }
            Found::Installable(_) => "installable".to_owned(),
            Found::Absent(problem) => problem.code,
        }
    }

    fn put(folder: &Path, files: &[&str]) {
        for file in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
    }

    #[test]
    fn an_image_that_ships_a_tool_uses_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (none, half) = (folder.path().join("none"), folder.path().join("half"));
        let (installed, tools) = (folder.path().join("installed"), folder.path().join("tools"));
        put(&installed, &["bin/jupyter-lab", COMPLETE]);
        put(&half, &["bin/jupyter-lab", "bin/node"]);
        put(&tools, &["bin/node", "code-server/out/node/entry.js"]);
        for (kind, of_image, installed, tools, expected) in [
            (Kind::Lab, &["jupyter-lab", "python3"][..], &installed, &tools, "image"),
            (Kind::Lab, &["python3"], &installed, &tools, "installed"),
            (Kind::Lab, &["python"], &half, &tools, "installable"),
            (Kind::Lab, &[], &none, &tools, "no_python"),
            (Kind::Ide, &["code-server"], &installed, &tools, "image"),
            (Kind::Ide, &[], &installed, &tools, "tools"),
            (Kind::Ide, &[], &installed, &half, "no_tools"),
            (Kind::TensorBoard, &["tensorboard"], &none, &tools, "image"),
            (Kind::TensorBoard, &["python3"], &installed, &tools, "not_in_image"),
            (Kind::Desktop, &["sh", "Xvnc", "openbox-session"], &none, &none, "image"),
            (Kind::Desktop, &["sh", "Xvnc"], &none, &none, "not_in_image"),
        ] {
            assert_eq!(taken(kind, of_image, installed, tools), expected, "{kind} with {of_image:?}");
        }
    }
}
