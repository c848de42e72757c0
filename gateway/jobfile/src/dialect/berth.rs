//! Our own job file: YAML (or JSON) that begins with `berth: 1`.
//!
//! ```yaml
//! berth: 1
//! name: train
//! image: pytorch/pytorch:2.4
//! gpus: 4
//! memory: 64G
//! command: python train.py
//! ```
//!
//! With one role its fields may stand at the top, as above; with several they are a list, `roles`. [`write`] writes
//! every spec in this language, and reading that gives the same spec again.
//!
//! [`write`]: crate::write

use std::time::Duration;

use super::{
    MOST_CPUS, MOST_GPUS, MOST_RETRIES, MOST_TASKS, add_mount, add_port, add_role, check_shm, complete,
    duration, image, job_name, one_of, share, size, target, variables,
};
use crate::{
    fields::{Field, Fields, NameRule},
    note::{Code, Kind},
    spec::{Command, Dialect, Framework, JobSpec, Mount, Port, Purpose, Retries, Role},
};

const MEMORY_DEFAULT_MIB: u64 = 2 << 10;

pub(crate) fn read(fields: Fields<'_>) -> JobSpec {
    let mut spec = JobSpec::empty(Dialect::Berth);
    if let Some(field) = fields.take("berth")
        && let Some(version) = field.text()
        && version != "1"
    {
        field.error(Code::UnknownValue, [("value", version.to_owned()), ("known", "1".to_owned())]);
    }
    if let Some(field) = fields.take("dialect") {
        spec.dialect = chosen(&field, &Dialect::ALL, Dialect::word).unwrap_or(Dialect::Berth);
    }
    let word = |key| fields.take(key).and_then(|field| field.optional());
    spec.name = job_name(fields.take("name"));
    if let Some(text) = fields.take("description").and_then(|field| field.text()) {
        text.clone_into(&mut spec.description);
    }
    if fields.take("interactive").and_then(|field| field.boolean()) == Some(true) {
        spec.purpose = Purpose::Interactive;
    }
    spec.share = fields.take("share").and_then(|field| share(&field, &fields));
    spec.workspace = word("workspace");
    let clusters = fields.context().site.clusters.as_deref();
    spec.cluster = fields.take("cluster").and_then(|field| one_of(&field, clusters));
    spec.pool = word("pool");
    spec.gpu_model = word("gpu_model");
    spec.priority = fields.take("priority").and_then(|f| f.count(1, 9, 5)).and_then(|p| p.try_into().ok());
    spec.retries = fields.take("retries").and_then(|field| retries(&field)).unwrap_or(Retries::UpTo(0));
    let time = |key| fields.take(key).and_then(|field| duration(&field, Duration::from_mins(1)));
    spec.time_limit = time("time_limit");
    spec.idle_timeout = time("idle_timeout");
    spec.keep_on_failure = fields.take("keep_on_failure").and_then(|field| field.boolean()).unwrap_or(false);
    if let Some(field) = fields.take("framework") {
        spec.framework = chosen(&field, &[Framework::Pytorch, Framework::Tensorflow], Framework::word);
    }
    if let Some(field) = fields.take("env") {
        variables(&field, &mut spec.env);
    }
    let folder = |key| fields.take(key).and_then(|field| field.source());
    spec.data_dir = folder("data_dir");
    spec.code_dir = folder("code_dir");
    spec.output_dir = folder("output_dir");
    for item in fields.take("mounts").and_then(|field| field.list()).unwrap_or_default() {
        if let Some(mount) = item.fields().and_then(|fields| mount(fields)) {
            add_mount(&mut spec.mounts, mount, &item);
        }
    }
    if let Some(kept) = fields.take("kept").and_then(|field| field.fields()) {
        spec.kept = kept.all().map(|(key, value)| (key.text.clone(), value.node.to_json())).collect();
    }
    read_roles(&fields, &mut spec);
    complete(spec, fields)
}

fn read_roles(fields: &Fields<'_>, spec: &mut JobSpec) {
    let interactive = spec.purpose == Purpose::Interactive;
    // A machine to work in, and what came from Determined, may be in the site's own image; another job's must be said.
    let needs_image = !interactive && spec.dialect != Dialect::Determined;
    let Some(field) = fields.take("roles") else {
        let mut only = role_fields(fields, interactive, needs_image);
        only.name.push_str("main");
        spec.roles.push(only);
        return;
    };
    let items = field.list().unwrap_or_default();
    if items.is_empty() && field.kind() == Kind::List {
        field.error(Code::Blank, [("example", "roles: [{name: main, …}]".to_owned())]);
    }
    for item in items {
        let Some(role) = item.fields() else { continue };
        let name = role.required("name", "\"main\"").and_then(|field| field.name(&NameRule::ROLE));
        let mut read = role_fields(&role, interactive, needs_image);
        read.name = name.unwrap_or_default();
        role.finish();
        add_role(&mut spec.roles, read, &item);
    }
}

fn role_fields(fields: &Fields<'_>, interactive: bool, needs_image: bool) -> Role {
    let mut role = Role::named(String::new());
    if let Some(tasks) = fields.take("tasks").and_then(|field| field.count(1, MOST_TASKS, 1)) {
        role.tasks = tasks;
    }
    let image_field =
        if needs_image { fields.required("image", "\"ubuntu:22.04\"") } else { fields.take("image") };
    role.image = image_field.and_then(|field| image(&field, fields));
    role.command = command(fields, interactive);
    role.work_dir = fields.take("work_dir").and_then(|field| field.optional());
    if let Some(cpus) = fields.take("cpus").and_then(|field| field.number(0.01, MOST_CPUS.into(), 4.0)) {
        role.resources.cpus = cpus;
    }
    if let Some(gpus) = fields.take("gpus").and_then(|field| field.count(0, MOST_GPUS, 1)) {
        role.resources.gpus = gpus;
    }
    let mib = |field: &Field<'_>| size(field, 1).map(|bytes| bytes >> 20);
    role.resources.memory_mib = match fields.take("memory") {
        Some(field) => mib(&field).map_or(MEMORY_DEFAULT_MIB, |memory| {
            if memory < 64 {
                field.error(
                    Code::OutOfRange,
                    [
                        ("value", format!("{memory}M")),
                        ("least", "64M".to_owned()),
                        ("example", field.example("\"2G\"")),
                    ],
                );
            }
            memory
        }),
        None => MEMORY_DEFAULT_MIB,
    };
    let shm = fields.take("shm");
    role.resources.shm_mib = shm.as_ref().and_then(mib);
    check_shm(&role, shm.as_ref());
    for item in fields.take("ports").and_then(|field| field.list()).unwrap_or_default() {
        if let Some(port) = item.fields().and_then(|fields| port(fields)) {
            add_port(&mut role.ports, port, &item);
        }
    }
    if let Some(field) = fields.take("fail_after") {
        role.completion.min_failed = threshold(&field);
    }
    if let Some(field) = fields.take("succeed_after") {
        role.completion.min_succeeded = threshold(&field);
    }
    if let Some(retries) = fields.take("task_retries").and_then(|field| retries(&field)) {
        role.task_retries = retries;
    }
    role
}

fn command(fields: &Fields<'_>, interactive: bool) -> Command {
    let (command, program) = (fields.take("command"), fields.take("program"));
    match (command, program) {
        (Some(field), Some(_)) => {
            field.error(Code::Both, [("other", "program".to_owned())]);
            Command::None
        }
        (Some(field), None) => {
            let text = field.filled("\"python train.py\"");
            text.map_or(Command::None, |text| Command::Shell(text.to_owned()))
        }
        (None, Some(field)) => {
            let words = field.list().unwrap_or_default();
            let words: Vec<_> = words.iter().filter_map(Field::text).map(str::to_owned).collect();
            if words.first().is_none_or(|first| first.trim().is_empty()) {
                field.error(Code::Blank, [("example", "program: [python, train.py]".to_owned())]);
            }
            Command::Program(words)
        }
        (None, None) if interactive => Command::None,
        (None, None) => {
            fields.missing("command", "\"python train.py\"");
            Command::None
        }
    }
}

fn mount(fields: Fields<'_>) -> Option<Mount> {
    let from = fields.required("from", "\"/userhome/data\"").and_then(|field| field.source());
    let to = fields.required("to", "\"/data\"").and_then(|field| target(&field));
    let read_only = fields.take("read_only").and_then(|field| field.boolean()).unwrap_or(false);
    fields.finish();
    Some(Mount { from: from?, to: to?, read_only })
}

fn port(fields: Fields<'_>) -> Option<Port> {
    let label = fields.required("label", "\"http\"").and_then(|field| field.name(&NameRule::LABEL));
    let begin_at = fields.take("begin_at").map_or(Some(0), |field| field.count(0, 65535, 0));
    let count = fields.take("count").map_or(Some(1), |field| field.count(1, 100, 1));
    fields.finish();
    let small = |number: u32| u16::try_from(number).ok();
    Some(Port { label: label?, begin_at: small(begin_at?)?, count: small(count?)? })
}

/// A count of tasks, or `never`.
fn threshold(field: &Field<'_>) -> Option<u32> {
    if field.text() == Some("never") { None } else { field.count(1, MOST_TASKS, 1) }
}

fn retries(field: &Field<'_>) -> Option<Retries> {
    match field.text()? {
        "after-failure" => Some(Retries::AfterFailure),
        "always" => Some(Retries::Always),
        _ => {
            field.integer(0, MOST_RETRIES, 2).and_then(|number| u32::try_from(number).ok()).map(Retries::UpTo)
        }
    }
}

fn chosen<T: Copy>(field: &Field<'_>, all: &[T], word: fn(T) -> &'static str) -> Option<T> {
    let text = field.text()?;
    let found = all.iter().copied().find(|&one| word(one) == text);
    if found.is_none() {
        let known = all.iter().map(|&one| word(one)).collect::<Vec<_>>().join(", ");
        field.error(Code::UnknownValue, [("value", text.to_owned()), ("known", known)]);
    }
    found
}
