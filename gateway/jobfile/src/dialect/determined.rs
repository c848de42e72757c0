//! Determined's configuration of a command, shell or notebook.
//!
//! Such a file has no name and asks for cards only; processors and memory come with them by the site's rule. It does
//! not say what it is for either: with an `entrypoint` it runs to its end, without one it is there to be worked in.
//! Its priorities are the other way round: the smaller runs first.

use std::time::Duration;

use super::{MOST_GPUS, add_mount, complete, duration, image, size, variable};
use crate::{
    fields::{Field, Fields},
    note::{Code, Kind},
    spec::{Command, Completion, Dialect, JobSpec, Mount, Purpose, RegistryLogin, Role, Secret},
};

/// Where a task starts, and what relative paths of mounts are relative to.
const WORK_DIR: &str = "/run/determined/workdir";
const SHM_DEFAULT_MIB: u64 = 4 << 10;

pub(crate) fn read(fields: Fields<'_>) -> JobSpec {
    let mut spec = JobSpec::empty(Dialect::Determined);
    let mut role = Role::named("main".to_owned());
    role.resources.gpus = 1;
    role.completion = Completion { min_failed: Some(1), min_succeeded: Some(1) };
    spec.description = fields.take("description").and_then(|field| field.optional()).unwrap_or_default();
    let work_dir = fields.take("work_dir").and_then(|field| field.optional());
    role.work_dir = Some(work_dir.unwrap_or_else(|| WORK_DIR.to_owned()));
    if let Some(field) = fields.take("resources")
        && let Some(resources) = field.fields()
    {
        read_resources(resources, &mut spec, &mut role);
    } else {
        accompany(&fields, &mut role);
        role.resources.shm_mib = Some(SHM_DEFAULT_MIB.min(role.resources.memory_mib));
    }
    if let Some(environment) = fields.take("environment").and_then(|field| field.fields()) {
        read_environment(environment, &mut spec, &mut role);
    }
    let work_dir = role.work_dir.clone();
    for item in fields.take("bind_mounts").and_then(|field| field.list()).unwrap_or_default() {
        let Some(mount) = item.fields() else { continue };
        if let Some(mount) = bind_mount(mount, work_dir.as_deref()) {
            add_mount(&mut spec.mounts, mount, &item);
        }
    }
    if let Some(field) = fields.take("entrypoint") {
        role.command = entrypoint(&field);
    } else {
        spec.purpose = Purpose::Interactive;
    }
    if let Some(field) = fields.take("idle_timeout") {
        spec.idle_timeout = duration(&field, Duration::from_secs(1));
    }
    fields.keep(&["notebook_idle_type", "tensorboard_args"]);
    fields.ignore(&["debug", "slurm", "pbs"], "not_here");
    spec.roles.push(role);
    complete(spec, fields)
}

/// What comes with the cards.
fn accompany(fields: &Fields<'_>, role: &mut Role) {
    let with = fields.context().site.with_gpus(role.resources.gpus);
    (role.resources.cpus, role.resources.memory_mib) = (with.cpus, with.memory_mib);
}

fn read_resources(fields: Fields<'_>, spec: &mut JobSpec, role: &mut Role) {
    if let Some(slots) = fields.take("slots").and_then(|field| field.count(0, MOST_GPUS, 1)) {
        role.resources.gpus = slots;
    }
    accompany(&fields, role);
    spec.pool = fields.take("resource_pool").and_then(|field| field.optional());
    spec.gpu_model = fields.take("agent_label").and_then(|field| field.optional());
    let shm = fields.take("shm_size").map(|field| size(&field, 1));
    role.resources.shm_mib = match shm {
        Some(bytes) => bytes.map(|bytes| bytes >> 20),
        None => Some(SHM_DEFAULT_MIB),
    };
    // The memory is ours to choose here, so it grows with what is shared of it.
    role.resources.memory_mib = role.resources.memory_mib.max(role.resources.shm_or_zero());
    if let Some(priority) = fields.take("priority").and_then(|field| field.integer(1, 99, 42)) {
        spec.priority = u8::try_from(9 - (priority - 1) * 9 / 99).ok();
    }
    fields.keep(&["weight", "max_slots", "native_parallel"]);
    for key in ["devices", "is_single_node"] {
        refuse(fields.take(key), "take it out: a task has what its site gives it, on one machine");
    }
    fields.finish();
}

fn refuse(field: Option<Field<'_>>, instead: &str) {
    if let Some(field) = field {
        field.error(Code::Unsupported, [("instead", instead.to_owned())]);
    }
}

fn read_environment(fields: Fields<'_>, spec: &mut JobSpec, role: &mut Role) {
    let gpus = role.resources.gpus;
    if let Some(given) = fields.take("image") {
        match of_device(&given, gpus) {
            Some(field) => role.image = image(&field, &fields),
            None => no_image(&given, gpus),
        }
    }
    let given = fields.take("environment_variables").and_then(|field| of_device(&field, gpus));
    for item in given.and_then(|field| field.list()).unwrap_or_default() {
        match item.text().map(|text| (text, text.split_once('='))) {
            Some((_, Some((name, value)))) => variable(&mut spec.env, name, value, &item),
            Some((text, None)) => item.error(Code::BadVariable, [("value", text.to_owned())]),
            None => {}
        }
    }
    if let Some(auth) = fields.take("registry_auth").and_then(|field| field.fields()) {
        spec.registry_login = login(auth);
    }
    fields.ignore(&["force_pull_image", "proxy_ports", "ports"], "always_so");
    for key in ["add_capabilities", "drop_capabilities", "pod_spec"] {
        refuse(fields.take(key), "take it out: no task gets more rights than another");
    }
    fields.finish();
}

/// A value may be given for each kind of device.
fn of_device<'a>(field: &Field<'a>, gpus: u32) -> Option<Field<'a>> {
    if field.kind() != Kind::Map {
        return Some(field.clone());
    }
    let map = field.fields()?;
    // `gpu` is the old name of `cuda`.
    let [cuda, gpu, rocm, cpu] = ["cuda", "gpu", "rocm", "cpu"].map(|key| map.take(key));
    map.finish();
    if gpus > 0 { cuda.or(gpu).or(rocm) } else { cpu }
}

/// The image of the other kind of device is no use, and the site's own is not what the file means.
fn no_image(given: &Field<'_>, gpus: u32) {
    if let Some(map) = given.fields() {
        map.missing(if gpus > 0 { "cuda" } else { "cpu" }, "\"ubuntu:22.04\"");
    }
}

fn login(auth: Fields<'_>) -> Option<RegistryLogin> {
    let user = auth.take("username").and_then(|field| field.optional());
    let password = auth.take("password");
    let server = ["server", "serveraddress"].into_iter().find_map(|key| auth.take(key));
    auth.keep(&["email"]);
    auth.finish();
    let password = password?;
    password.warn(Code::SecretInFile, [("value", "password".to_owned())]);
    let server = server.and_then(|field| field.optional());
    Some(RegistryLogin { server, user: user?, password: Secret::new(password.text()?) })
}

fn bind_mount(fields: Fields<'_>, work_dir: Option<&str>) -> Option<Mount> {
    let from = fields.required("host_path", "\"/userhome/data\"").and_then(|field| {
        let path = field.text()?;
        if path.starts_with('/') {
            return field.source();
        }
        let example = ("example", field.example("\"/userhome/data\""));
        field.error(Code::BadPath, [("value", path.to_owned()), example]);
        None
    });
    let to = fields.required("container_path", "\"/data\"").and_then(|field| {
        let path = field.filled("\"/data\"")?.trim();
        let plain = path.split('/').all(|part| part != ".." && part != ".");
        if !plain || path.chars().any(char::is_control) || path == "/" {
            let example = ("example", field.example("\"/data\""));
            field.error(Code::BadPath, [("value", path.to_owned()), example]);
            return None;
        }
        let absolute = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("{}/{path}", work_dir.unwrap_or(WORK_DIR).trim_end_matches('/'))
        };
        Some(absolute.trim_end_matches('/').to_owned())
    });
    let read_only = fields.take("read_only").and_then(|field| field.boolean()).unwrap_or(false);
    fields.keep(&["propagation"]);
    fields.finish();
    Some(Mount { from: from?, to: to?, read_only })
}

fn entrypoint(field: &Field<'_>) -> Command {
    if field.kind() == Kind::List {
        let words = field.list().unwrap_or_default();
        let words: Vec<String> = words.iter().filter_map(Field::text).map(str::to_owned).collect();
        if words.first().is_none_or(|first| first.trim().is_empty()) {
            field.error(Code::Blank, [("example", "entrypoint: [python, train.py]".to_owned())]);
        }
        Command::Program(words)
    } else {
        field.filled("\"python train.py\"").map_or(Command::None, |text| Command::Shell(text.to_owned()))
    }
}
