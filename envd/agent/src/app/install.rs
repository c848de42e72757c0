//! JupyterLab, put into an instance whose image has a Python but no JupyterLab. `install.py` does it.

use std::{collections::BTreeMap, path::Path};

use envd_api::agent::AppProblem;

use super::{problem, process::Process, recipe::INSTALLED, surroundings};
use crate::{
    Agent,
    children::Ended,
    environment::{StartError, Surroundings},
};

const SCRIPT: &str = include_str!("install.py");
const TOO_OLD: i32 = 71;
const NO_PIP: i32 = 72;

/// Starts the installation.
pub(crate) fn start(agent: &Agent, python: &Path) -> Result<Process, StartError> {
    let extra: BTreeMap<_, _> = [
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_NO_CACHE_DIR", "1"),
        ("PIP_NO_INPUT", "1"),
        ("PIP_PROGRESS_BAR", "off"),
        ("PIP_ROOT_USER_ACTION", "ignore"),
        // Into the environment, whatever the image says.
        ("PIP_USER", "0"),
        ("PYTHONUNBUFFERED", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let around = surroundings(agent, extra)?;
    prepare(&around);
    let argv = [&python.to_string_lossy(), "-c", SCRIPT, INSTALLED].map(str::to_owned);
    Process::start(agent, &around, python, &argv, &around.home_directory())
}

/// A user who is not root cannot make the folder. What fails here is told by the installation.
fn prepare(around: &Surroundings) {
    let account = &around.account;
    if account.uid != 0 && std::fs::create_dir_all(INSTALLED).is_ok() {
        let _as_it_is = std::os::unix::fs::chown(INSTALLED, Some(account.uid), Some(account.gid));
    }
}

/// Why it failed, if it did.
pub(crate) fn verdict(ended: Ended) -> Result<(), AppProblem> {
    match ended {
        Ended::Code(0) => Ok(()),
        Ended::Code(TOO_OLD) => Err(problem(
            "old_python",
            "this image's Python is too old for JupyterLab, which needs 3.8 or newer",
            "use an image with a newer Python, or open the IDE or a terminal instead",
        )),
        Ended::Code(NO_PIP) => Err(problem(
            "no_pip",
            "this image's Python has no pip to install JupyterLab with",
            "install pip first, such as with `apt-get install python3-pip`",
        )),
        Ended::Code(_) | Ended::Signal(_) => Err(problem(
            "install_failed",
            &format!("the installation ended {ended}"),
            "the last lines say why; often the network or the disk is at fault",
        )),
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::Signal;

    use super::*;

    #[test]
    fn each_end_of_the_installation_has_its_reason() {
        for (ended, expected) in [
            (Ended::Code(0), None),
            (Ended::Code(1), Some(("install_failed", "the installation ended with exit code 1"))),
            (
                Ended::Code(TOO_OLD),
                Some((
                    "old_python",
                    "this image's Python is too old for JupyterLab, which needs 3.8 or newer",
                )),
            ),
            (
                Ended::Code(NO_PIP),
                Some(("no_pip", "this image's Python has no pip to install JupyterLab with")),
            ),
            (
                Ended::Signal(Signal::KILL.as_raw()),
                Some(("install_failed", "the installation ended by signal KILL")),
            ),
        ] {
            let problem = verdict(ended).err();
            let told = problem.as_ref().map(|problem| (problem.code.as_str(), problem.message.as_str()));
            assert_eq!(told, expected, "{ended:?}");
        }
    }

    /// What the script exits with is what is understood here.
    #[test]
    fn the_script_ends_with_the_codes_that_are_known() {
        for code in [TOO_OLD, NO_PIP] {
            assert!(SCRIPT.contains(&format!("sys.exit({code})")), "{code}");
        }
    }
}
