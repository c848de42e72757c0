//! The five languages of job files, one module each, and what they share.
//!
//! A dialect reads [`Fields`] into a [`JobSpec`] and says what is wrong on the way. It always answers with a spec;
//! whether that can be used is for the caller to see from the notes.

pub(crate) mod berth;
pub(crate) mod determined;
pub(crate) mod dlc;
pub(crate) mod openpai_v1;
pub(crate) mod openpai_v2;
pub(crate) mod template;

use std::{collections::BTreeMap, time::Duration};

use crate::{
    fields::{Field, Fields, NameRule},
    note::{Code, Kind},
    spec::{Command, Completion, Dialect, JobSpec, Mount, Port, Purpose, Resources, Retries, Role},
    tree::{Node, Value},
};

/// The most roles of a job.
pub(crate) const MOST_ROLES: usize = 50;
/// The most tasks of a job, all roles together.
pub(crate) const MOST_TASKS: u32 = 1000;
/// The most processors, MiB and cards of a task that a file may ask for; more is a slip of the finger.
const MOST_CPUS: u32 = 10_000;
const MOST_MIB: u64 = 1 << 30;
const MOST_GPUS: u32 = 1000;
/// The most retries that are counted.
const MOST_RETRIES: i64 = 1000;
/// The most variables, and the longest of them.
const MOST_VARIABLES: usize = 256;
/// The longest time that can be asked for.
const LONGEST_MINUTES: u64 = 366 * 24 * 60;

/// Which dialect a file is in, by the keys that only one of them has.
pub(crate) fn recognise(root: &Node) -> Option<Dialect> {
    let has = |key: &str| root.get(key).is_some();
    let any = |keys: &[&str]| keys.iter().any(|key| has(key));
    let roles_are = |kind: Kind| root.get("taskRoles").is_some_and(|roles| roles.kind() == kind);
    if !matches!(root.value, Value::Map(_)) {
        None
    } else if has("berth") {
        Some(Dialect::Berth)
    } else if has("protocolVersion") || has("prerequisites") || roles_are(Kind::Map) {
        Some(Dialect::OpenpaiV2)
    } else if any(&["jobName", "taskRoles"]) {
        Some(Dialect::OpenpaiV1)
    } else if has("roles") || any(&["image", "command"]) {
        Some(Dialect::Berth)
    } else if any(&["resources", "environment", "bind_mounts", "entrypoint", "idle_timeout", "work_dir"]) {
        Some(Dialect::Determined)
    } else if any(&["worker_count", "worker_image", "kind"]) {
        Some(Dialect::Dlc)
    } else {
        None
    }
}

impl JobSpec {
    fn empty(dialect: Dialect) -> Self {
        Self {
            dialect,
            name: None,
            description: String::new(),
            purpose: Purpose::Batch,
            share: None,
            workspace: None,
            cluster: None,
            pool: None,
            gpu_model: None,
            priority: None,
            retries: Retries::UpTo(0),
            time_limit: None,
            idle_timeout: None,
            keep_on_failure: false,
            framework: None,
            env: BTreeMap::new(),
            data_dir: None,
            code_dir: None,
            output_dir: None,
            mounts: Vec::new(),
            roles: Vec::new(),
            kept: BTreeMap::new(),
            secrets: BTreeMap::new(),
            registry_login: None,
        }
    }
}

impl Role {
    fn named(name: String) -> Self {
        Self {
            name,
            tasks: 1,
            image: None,
            command: Command::None,
            work_dir: None,
            resources: Resources { cpus: 1.0, memory_mib: 100, shm_mib: None, gpus: 0 },
            ports: Vec::new(),
            completion: Completion { min_failed: Some(1), min_succeeded: None },
            task_retries: Retries::UpTo(0),
        }
    }
}

// === what dialects share ===

/// The image, with the registry that has it now.
fn image(field: &Field<'_>, fields: &Fields<'_>) -> Option<String> {
    let text = field.filled("\"ubuntu:22.04\"")?.trim();
    if text.contains(char::is_whitespace) {
        let example = ("example", field.example("\"ubuntu:22.04\""));
        let [value, of] = [("value", text.to_owned()), ("of", "image".to_owned())];
        let rule = ("rule", "the reference of an image".to_owned());
        field.error(Code::BadName, [value, of, rule, example]);
        return None;
    }
    Some(fields.context().site.image(text))
}

/// A share of the cluster; one that the site does not have is refused.
fn share(field: &Field<'_>, fields: &Fields<'_>) -> Option<String> {
    one_of(field, fields.context().site.shares.as_deref())
}

/// The name of something that the site has; another one is refused, where it is known what there is.
fn one_of(field: &Field<'_>, known: Option<&[String]>) -> Option<String> {
    let name = field.optional()?;
    match known {
        Some(known) if !known.contains(&name) => {
            field.error(Code::UnknownValue, [("value", name), ("known", known.join(", "))]);
            None
        }
        Some(_) | None => Some(name),
    }
}

/// One variable, if it can be one.
fn variable(env: &mut BTreeMap<String, String>, name: &str, value: &str, field: &Field<'_>) {
    let unfit = name.is_empty() || name.contains('=') || name.chars().any(char::is_control);
    if unfit || value.contains('\0') {
        field.error(Code::BadVariable, [("value", name.to_owned())]);
        return;
    }
    if env.len() >= MOST_VARIABLES {
        let of = ("of", "variable".to_owned());
        field.error(Code::TooMany, [("limit", MOST_VARIABLES.to_string()), of]);
        return;
    }
    if name.starts_with("PAI_") {
        field.warn(Code::Reserved, [("value", name.to_owned())]);
    }
    env.insert(name.to_owned(), value.to_owned());
}

/// A map of variables.
fn variables(field: &Field<'_>, env: &mut BTreeMap<String, String>) {
    let Some(map) = field.fields() else { return };
    for (key, value) in map.all() {
        if value.node.is_nothing() {
            variable(env, &key.text, "", &value);
        } else if let Some(text) = value.text() {
            variable(env, &key.text, text, &value);
        }
    }
}

/// Where in the container; relative paths are below the work directory, so only absolute ones are unmistakable.
fn target(field: &Field<'_>) -> Option<String> {
    let text = field.filled("\"/data\"")?.trim();
    let unfit = text.split('/').any(|part| part == "..") || text.chars().any(char::is_control);
    if !text.starts_with('/') || text.trim_matches('/').is_empty() || unfit {
        let example = ("example", field.example("\"/data\""));
        field.error(Code::BadPath, [("value", text.to_owned()), example]);
        return None;
    }
    Some(text.trim_end_matches('/').to_owned())
}

/// Adds a mount; two at one place are refused.
fn add_mount(mounts: &mut Vec<Mount>, mount: Mount, at: &Field<'_>) {
    if mounts.iter().any(|there| there.to == mount.to) {
        at.error(Code::Twice, [("value", mount.to), ("of", "mount".to_owned())]);
    } else {
        mounts.push(mount);
    }
}

/// Adds a port; labels that shells cannot spell are warned about.
fn add_port(ports: &mut Vec<Port>, port: Port, at: &Field<'_>) {
    if ports.iter().any(|there| there.label == port.label) {
        at.error(Code::Twice, [("value", port.label), ("of", "port".to_owned())]);
        return;
    }
    if let Some(other) =
        ports.iter().find(|there| there.numbers().any(|number| port.numbers().any(|mine| mine == number)))
    {
        at.error(Code::SamePorts, [("value", port.label), ("other", other.label.clone())]);
        return;
    }
    let most = u16::MAX - port.count + 1;
    if port.begin_at > most {
        let [value, example] = [port.begin_at, 0].map(|number| number.to_string());
        let range = [("least", "0".to_owned()), ("most", most.to_string())];
        at.error(
            Code::OutOfRange,
            [("value", value), range[0].clone(), range[1].clone(), ("example", example)],
        );
        return;
    }
    let also = crate::variables::spellable(&port.label);
    if also != port.label {
        at.warn(Code::AlsoNamed, [("value", port.label.clone()), ("also", also)]);
    }
    ports.push(port);
}

/// Adds a role; its name must be its own.
fn add_role(roles: &mut Vec<Role>, role: Role, at: &Field<'_>) {
    if roles.iter().any(|there| there.name == role.name) {
        at.error(Code::Twice, [("value", role.name), ("of", "role".to_owned())]);
        return;
    }
    if let Some(other) = roles.iter().find(|there| in_task_names(&there.name) == in_task_names(&role.name)) {
        at.error(Code::Alike, [("value", other.name.clone()), ("other", role.name)]);
        return;
    }
    roles.push(role);
    let tasks: u64 = roles.iter().map(|role| u64::from(role.tasks)).sum();
    if roles.len() == MOST_ROLES + 1 {
        at.error(Code::TooMany, [("limit", MOST_ROLES.to_string()), ("of", "role".to_owned())]);
    } else if tasks > u64::from(MOST_TASKS) {
        at.error(Code::TooMany, [("limit", MOST_TASKS.to_string()), ("of", "task".to_owned())]);
    }
}

/// A role's name as it stands in those of its tasks, which are names of hosts.
fn in_task_names(role: &str) -> String {
    let words: Vec<_> = role.split('_').filter(|word| !word.is_empty()).collect();
    words.join("-").to_ascii_lowercase()
}

/// Shared memory is part of the memory.
fn check_shm(role: &Role, at: Option<&Field<'_>>) {
    if let (Some(shm), Some(at)) = (role.resources.shm_mib, at)
        && shm > role.resources.memory_mib
    {
        let memory = ("memory", role.resources.memory_mib.to_string());
        at.error(Code::ShmAboveMemory, [("value", shm.to_string()), memory]);
    }
}

/// A size with a unit; without one it counts in `unit` bytes.
fn size(field: &Field<'_>, unit: u64) -> Option<u64> {
    let text = field.text()?.trim();
    let bytes = parse_size(text, unit).filter(|bytes| *bytes <= MOST_MIB << 20);
    if bytes.is_none() {
        field.error(Code::BadSize, [("value", text.to_owned())]);
    }
    bytes
}

fn parse_size(text: &str, bare: u64) -> Option<u64> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit: u64 = match unit.to_ascii_lowercase().as_str() {
        "" => bare,
        "b" => 1,
        "k" | "kb" | "ki" | "kib" => 1 << 10,
        "m" | "mb" | "mi" | "mib" => 1 << 20,
        "g" | "gb" | "gi" | "gib" => 1 << 30,
        "t" | "tb" | "ti" | "tib" => 1 << 40,
        _ => return None,
    };
    let (whole, fraction) = number.trim().split_once('.').unwrap_or((number.trim(), "0"));
    let digits = |text: &str| (1..=15).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let parts = whole.parse::<u128>().ok()? * scale + fraction.parse::<u128>().ok()?;
    u64::try_from(parts * u128::from(unit) / scale).ok()
}

/// `1h30m`, `90s`; a bare number counts in `unit`.
fn duration(field: &Field<'_>, unit: Duration) -> Option<Duration> {
    let text = field.text()?.trim();
    let longest = Duration::from_secs(LONGEST_MINUTES * 60);
    let found = parse_duration(text, unit).filter(|time| !time.is_zero() && *time <= longest);
    if found.is_none() {
        field.error(Code::BadDuration, [("value", text.to_owned())]);
    }
    found
}

/// A time as people write it: `1h30m`, `90s`; a bare number counts in `bare`.
pub fn parse_duration(text: &str, bare: Duration) -> Option<Duration> {
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let split = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(split);
        let letters = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit = match unit.trim() {
            "" => bare,
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" | "min" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            "d" => Duration::from_hours(24),
            _ => return None,
        };
        let number = number.parse::<f64>().ok().filter(|n| n.is_finite() && (0.0..=1e9).contains(n))?;
        sum += Duration::try_from_secs_f64(unit.as_secs_f64() * number).ok()?;
        rest = after;
    }
    (!text.is_empty()).then_some(sum)
}

/// What follows from the whole job.
fn complete(mut spec: JobSpec, fields: Fields<'_>) -> JobSpec {
    let waits = !spec.roles.is_empty() && spec.roles.iter().all(|role| role.command.only_waits());
    if waits {
        spec.purpose = Purpose::Interactive;
    }
    let context = fields.context();
    fields.finish();
    spec.kept.append(&mut context.kept.borrow_mut());
    spec
}

/// The name of a job.
fn job_name(field: Option<Field<'_>>) -> Option<String> {
    field.and_then(|field| field.name(&NameRule::JOB))
}
