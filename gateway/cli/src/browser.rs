//! Opening an address in the user's browser, where there is one.

mod doorway;

use std::{ffi::OsString, path::Path, process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

use self::doorway::Doorway;
use crate::config::variable;

/// How long a browser may take to come for the address.
const BROWSER_LIMIT: Duration = Duration::from_secs(30);
/// How long an opener may take to say that it cannot. One that is still at it by then is the browser itself.
const OPENER_LIMIT: Duration = Duration::from_secs(3);

/// Whether a browser took the address, which nobody else learns.
pub(crate) async fn open(url: &str) -> bool {
    let is_wsl = is_wsl();
    let openers = openers(&variable, is_wsl);
    if openers.is_empty() {
        return false;
    }
    let doorway = Doorway::to(url).await.and_then(|doorway| Ok((doorway.address()?, doorway)));
    // The browser of the other system does not come as this user; there are no others on such a machine.
    let Some((address, doorway)) = doorway.ok().filter(|_| !is_wsl) else {
        return run_one(&openers, url).await;
    };
    let mut passed = std::pin::pin!(doorway.passed());
    tokio::select! {
        // Some openers are the browser itself, and stay.
        () = &mut passed => true,
        ran = run_one(&openers, &address) => ran && timeout(BROWSER_LIMIT, passed).await.is_ok(),
    }
}

/// Whether one of the openers took the address.
async fn run_one(openers: &[Vec<String>], url: &str) -> bool {
    for opener in openers {
        if run(opener, url).await {
            return true;
        }
    }
    false
}

/// What may open an address here, the user's own choice first.
fn openers(variable: &dyn Fn(&str) -> Option<String>, wsl: bool) -> Vec<Vec<String>> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let chosen = variable("BROWSER").unwrap_or_default();
    let mut openers: Vec<_> = chosen.split(':').map(words).filter(|words| !words.is_empty()).collect();
    if cfg!(target_os = "macos") {
        openers.push(words("open"));
    }
    if wsl {
        openers.push(words("wslview"));
    }
    // Without a screen it would start a browser for terminals, or none at all.
    if variable("DISPLAY").is_some() || variable("WAYLAND_DISPLAY").is_some() {
        openers.push(words("xdg-open"));
    }
    openers
}

fn is_wsl() -> bool {
    Path::new("/proc/sys/fs/binfmt_misc/WSLInterop").exists()
}

async fn run(opener: &[String], url: &str) -> bool {
    let Some((program, given)) = opener.split_first() else { return false };
    let mut arguments: Vec<OsString> = given.iter().map(|word| word.replace("%s", url).into()).collect();
    if !given.iter().any(|word| word.contains("%s")) {
        arguments.push(url.into());
    }
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    match timeout(OPENER_LIMIT, child.wait()).await {
        Ok(ended) => ended.is_ok_and(|status| status.success()),
        Err(_still_running) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_choice_comes_first() {
        let check = |browser: Option<&str>, display: bool, wsl: bool, expected: &[&str]| {
            let variable = |name: &str| match name {
                "BROWSER" => browser.map(str::to_owned),
                "DISPLAY" => display.then(|| ":0".to_owned()),
                _ => None,
            };
            let found: Vec<_> = openers(&variable, wsl).iter().map(|words| words.join(" ")).collect();
            let found: Vec<_> = found.iter().map(String::as_str).filter(|opener| *opener != "open").collect();
            assert_eq!(found, expected);
        };
        check(None, false, false, &[]);
        check(None, true, false, &["xdg-open"]);
        check(None, false, true, &["wslview"]);
        check(Some("firefox --new-tab %s:w3m"), true, false, &["firefox --new-tab %s", "w3m", "xdg-open"]);
        check(Some(""), false, false, &[]);
    }

    #[tokio::test]
    async fn an_opener_that_is_not_there_or_fails_is_no_browser() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(run(&words("true"), "http://localhost/").await);
        assert!(!run(&words("false"), "http://localhost/").await);
        assert!(!run(&words("berth-no-such-browser"), "http://localhost/").await);
        assert!(run(&words("test %s = http://localhost/"), "http://localhost/").await);
    }
}
