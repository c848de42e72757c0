//! The server as seen from its own machine: the data directory, who holds it, envd, the engine, room and tools.

use std::{
    env, fs, io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

use super::Report;
use crate::{size, words::doctor::Check};

/// How long envd or the engine may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// The head of an answer is all that is looked at.
const HEAD_MAX: u64 = 4096;
/// Below these the gateway says that it is unwell, too.
const LEAST_BYTES: u64 = 1 << 30;
const LEAST_PERCENT: u64 = 5;
/// The exit codes of `gateway check-registry`; any other but zero is an unwell registry.
const WRONG_SETTINGS: i32 = 64;
const REGISTRY_REFUSES: i32 = 4;
const NO_REGISTRY: i32 = 5;
const DEFAULT_IMAGE: &str = "localhost/berth/base:latest";
const DEFAULT_DOCKER: &str = "/var/run/docker.sock";

pub(super) async fn look(data: &Path, report: &mut Report) {
    if !look_at_data(data, report) {
        return;
    }
    for program in ["gateway", "envd"] {
        look_at_settings(program, data, report);
        look_at_holder(program, data, report);
    }
    let words = report.words;
    match ask(&data.join("envd.sock"), "/v1/node").await {
        Ok(200) => report.ok(Check::Envd, words.answers()),
        Ok(status) => report.fail(Check::Envd, words.answers_status(status), words.hint_start("envd")),
        Err(error) => report.fail(Check::Envd, words.no_answer(&error.to_string()), words.hint_start("envd")),
    }
    let settings = settings(data);
    let text = |table: &str, key: &str| Some(settings.get(table)?.get(key)?.as_str()?.to_owned());
    let docker = text("envd", "docker").or_else(|| crate::config::variable("DOCKER_HOST"));
    let docker =
        docker.as_deref().map_or(DEFAULT_DOCKER, |path| path.strip_prefix("unix://").unwrap_or(path));
    let docker = Path::new(docker);
    match ask(docker, "/_ping").await {
        Ok(200) => {
            report.ok(Check::Engine, words.answers());
            let image = text("gateway", "default_image").unwrap_or_else(|| DEFAULT_IMAGE.to_owned());
            match ask(docker, &format!("/images/{image}/json")).await {
                Ok(200) => report.ok(Check::Image, image),
                Ok(_) | Err(_) => report.warn(Check::Image, words.no_image(&image), words.hint_image()),
            }
        }
        Ok(status) => report.fail(Check::Engine, words.answers_status(status), words.hint_engine()),
        Err(error) => report.fail(Check::Engine, words.no_answer(&error.to_string()), words.hint_engine()),
    }
    let tools = crate::config::variable("BERTH_TOOLS").or_else(|| text("envd", "tools"));
    look_at_tools(&tools.map_or_else(|| data.join("tools"), |named| data.join(named)), report);
    look_at_registry(data, text("gateway", "registry") == text("envd", "registry"), report);
    look_at_disk(data, report);
    match find("iptables") {
        Some(path) => report.ok(Check::Iptables, path.display().to_string()),
        None => report.fail(Check::Iptables, words.no_iptables(), words.hint_iptables()),
    }
}

fn look_at_data(data: &Path, report: &mut Report) -> bool {
    let words = report.words;
    let found = match fs::metadata(data) {
        Ok(found) if found.is_dir() => found,
        Ok(_) => {
            report.fail(Check::Data, words.not_a_directory(data), words.hint_data());
            return false;
        }
        Err(error) => {
            report.fail(Check::Data, words.cannot_read(data, &error.to_string()), words.hint_data());
            return false;
        }
    };
    let open = |mode: u32, found: &fs::Metadata| found.permissions().mode() & mode != 0;
    // Root's and shared with the gateway's user: then the sticky bit keeps the one from the other's files.
    if open(0o007, &found) {
        report.fail(Check::Data, words.open_to_others(data), format!("`chmod o= {}`", data.display()));
    } else if open(0o020, &found) && !open(0o1000, &found) {
        report.fail(Check::Data, words.not_sticky(data), format!("`chmod +t {}`", data.display()));
    } else {
        report.ok(Check::Data, words.owner_and_mode(data, found.uid(), found.permissions().mode() & 0o7777));
    }
    let home = data.join("home");
    if fs::metadata(&home).is_ok_and(|home| open(0o077, &home)) {
        report.fail(Check::Data, words.open_to_others(&home), format!("`chmod 700 {}`", home.display()));
    }
    let keys = data.join("keys");
    if fs::metadata(&keys).is_ok_and(|keys| open(0o077, &keys)) {
        report.fail(Check::Data, words.open_to_others(&keys), format!("`chmod 700 {}`", keys.display()));
    }
    let socket = data.join("envd.sock");
    if let Ok(socket_found) = fs::metadata(&socket)
        && (!socket_found.file_type().is_socket() || open(0o007, &socket_found))
    {
        report.fail(Check::Data, words.open_to_others(&socket), words.hint_start("envd"));
    }
    true
}

/// What the program itself says about its settings.
fn look_at_settings(program: &'static str, data: &Path, report: &mut Report) {
    let words = report.words;
    let Some(path) = beside(program).or_else(|| find(program)) else {
        return report.skip(Check::Settings, words.no_program(program));
    };
    match Command::new(&path).arg("check-config").env("BERTH_DATA", data).output() {
        Ok(done) if done.status.success() => report.ok(Check::Settings, words.settings_fine(program)),
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr).trim().replace('\n', "; ");
            report.fail(Check::Settings, format!("{program}: {said}"), words.hint_settings(data));
        }
        Err(error) => report.skip(Check::Settings, format!("{program}: {error}")),
    }
}

/// As the gateway finds it, with the variables of the one that runs: `make up` names its registry by them.
fn look_at_registry(data: &Path, agreed: bool, report: &mut Report) {
    let words = report.words;
    let Some(path) = beside("gateway").or_else(|| find("gateway")) else {
        return report.skip(Check::Registry, words.no_program("gateway"));
    };
    let running = holder_of("gateway", data).map(variables).unwrap_or_default();
    let asked = Command::new(&path).arg("check-registry").envs(running).env("BERTH_DATA", data).output();
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => return report.skip(Check::Registry, format!("gateway: {error}")),
    };
    let said = || String::from_utf8_lossy(&asked.stderr).trim().replace('\n', "; ");
    match asked.status.code() {
        _ if !agreed => report.fail(Check::Registry, words.other_registry(), words.hint_other_registry()),
        Some(0) => report.ok(Check::Registry, words.registry_is_well()),
        Some(REGISTRY_REFUSES) => report.fail(Check::Registry, said(), words.hint_registry_login()),
        // Said already.
        Some(WRONG_SETTINGS) => report.skip(Check::Registry, said()),
        Some(NO_REGISTRY) => report.warn(Check::Registry, words.no_registry(), words.hint_no_registry()),
        Some(_) | None => report.fail(Check::Registry, said(), words.hint_registry()),
    }
}

/// Those of a process that are ours, if it may be looked at.
fn variables(process: i64) -> Vec<(String, String)> {
    let all = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let all = all.split(|byte| *byte == 0).filter_map(|one| str::from_utf8(one).ok()?.split_once('='));
    let ours = all.filter(|(name, _)| name.starts_with("BERTH_"));
    ours.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Who holds the lock, from the kernel's own list: trying to take it could get in the way of a start.
fn look_at_holder(program: &'static str, data: &Path, report: &mut Report) {
    let words = report.words;
    let check = if program == "gateway" { Check::Gateway } else { Check::Envd };
    match holder_of(program, data) {
        Some(process) => report.ok(check, words.held_by(process)),
        None => report.fail(check, words.does_not_run(program), words.hint_start(program)),
    }
}

fn holder_of(program: &str, data: &Path) -> Option<i64> {
    let lock = data.join(format!("{program}.lock"));
    fs::metadata(&lock).ok().and_then(|lock| holder(lock.ino()))
}

fn holder(inode: u64) -> Option<i64> {
    // `1: FLOCK  ADVISORY  WRITE 4711 fe:00:123456 0 EOF`
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        if fields.next()? != "FLOCK" {
            return None;
        }
        let process = fields.nth(2)?.parse().ok()?;
        let file = fields.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
        (file == inode).then_some(process)
    })
}

fn look_at_disk(data: &Path, report: &mut Report) {
    let words = report.words;
    match rustix::fs::statvfs(data) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let percent = found.f_bavail.saturating_mul(100) / found.f_blocks.max(1);
            let shown = words.free(&size::display(free), percent);
            if free < LEAST_BYTES || percent < LEAST_PERCENT {
                report.fail(Check::Disk, shown, words.hint_disk());
            } else {
                report.ok(Check::Disk, shown);
            }
        }
        Err(error) => {
            report.fail(Check::Disk, words.cannot_read(data, &error.to_string()), words.hint_data());
        }
    }
}

/// What instances mount for apps that their image lacks.
fn look_at_tools(tools: &Path, report: &mut Report) {
    let words = report.words;
    let current = tools.join("current");
    let has = |file: &str| current.join(file).is_file();
    if has("bin/node") && has("code-server/out/node/entry.js") {
        let version = fs::read_link(&current).unwrap_or_default();
        report.ok(Check::Tools, tools.join(version).display().to_string());
    } else {
        report.warn(Check::Tools, words.no_tools(tools), words.hint_tools(tools));
    }
}

/// The status of an answer over a unix socket; nothing else of it is of interest.
async fn ask(socket: &Path, path: &str) -> io::Result<u16> {
    let answer = async {
        let mut stream = UnixStream::connect(socket).await?;
        stream
            .write_all(
                format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes(),
            )
            .await?;
        let mut head = Vec::new();
        stream.take(HEAD_MAX).read_to_end(&mut head).await?;
        let status = head.strip_prefix(b"HTTP/1.1 ").and_then(|rest| str::from_utf8(rest.get(..3)?).ok());
        status.and_then(|status| status.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    };
    timeout(ANSWER_LIMIT, answer).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn settings(data: &Path) -> toml::Table {
    fs::read_to_string(data.join("berth.toml")).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn beside(program: &str) -> Option<PathBuf> {
    Some(env::current_exe().ok()?.with_file_name(program)).filter(|path| path.is_file())
}

/// A program in the search path, or where such programs are for root.
fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(more).map(|folder| folder.join(program)).find(|path| path.is_file())
}
