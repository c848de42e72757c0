//! PAI DLC's parameters: `key=value` lines, a set of keys per role.
//!
//! Memory without a unit is in GB, as the platform's form has it; `16Gi` says it itself. One command runs in every
//! role. Of the kinds of job those of PyTorch and TensorFlow are known; each sets its own variables.

use std::time::Duration;

use super::{
    MOST_CPUS, MOST_GPUS, MOST_TASKS, add_role, check_shm, complete, duration, image, job_name, size,
    variable,
};
use crate::{
    fields::Fields,
    note::Code,
    spec::{Command, Completion, Dialect, Framework, JobSpec, Purpose, Role},
};

/// What a file means that names no priority: the last in the line.
const PRIORITY_DEFAULT: u32 = 1;

/// The roles, in the order of their ranks, with their keys.
const ROLES: [RoleKeys; 5] = [
    RoleKeys::new([
        "master",
        "master_count",
        "master_image",
        "master_cpu",
        "master_gpu",
        "master_memory",
        "master_shared_memory",
    ]),
    RoleKeys::new([
        "chief",
        "chief_count",
        "chief_image",
        "chief_cpu",
        "chief_gpu",
        "chief_memory",
        "chief_shared_memory",
    ]),
    RoleKeys::new([
        "worker",
        "worker_count",
        "worker_image",
        "worker_cpu",
        "worker_gpu",
        "worker_memory",
        "worker_shared_memory",
    ]),
    RoleKeys::new(["ps", "ps_count", "ps_image", "ps_cpu", "ps_gpu", "ps_memory", "ps_shared_memory"]),
    RoleKeys::new([
        "evaluator",
        "evaluator_count",
        "evaluator_image",
        "evaluator_cpu",
        "evaluator_gpu",
        "evaluator_memory",
        "evaluator_shared_memory",
    ]),
];

#[derive(Debug)]
struct RoleKeys {
    name: &'static str,
    count: &'static str,
    image: &'static str,
    cpu: &'static str,
    gpu: &'static str,
    memory: &'static str,
    shm: &'static str,
}

impl RoleKeys {
    const fn new([name, count, image, cpu, gpu, memory, shm]: [&'static str; 7]) -> Self {
        Self { name, count, image, cpu, gpu, memory, shm }
    }
}

pub(crate) fn read(fields: Fields<'_>) -> JobSpec {
    let mut spec = JobSpec::empty(Dialect::Dlc);
    spec.name = job_name(fields.required("name", "\"train-1\""));
    if let Some(field) = fields.required("kind", "\"PyTorchJob\"")
        && let Some(kind) = field.filled("\"PyTorchJob\"")
    {
        spec.framework = match kind {
            "PyTorchJob" | "pytorchjob" => Some(Framework::Pytorch),
            "TFJob" | "tfjob" => Some(Framework::Tensorflow),
            other => {
                let known = ("known", "PyTorchJob, TFJob".to_owned());
                field.error(Code::UnknownValue, [("value", other.to_owned()), known]);
                None
            }
        };
    }
    let command = fields.required("command", "\"python train.py\"");
    let command = command.and_then(|field| field.filled("\"python train.py\"")).map(str::to_owned);
    let command = command.map_or(Command::None, Command::Shell);
    let priority = fields.take("priority").map_or(Some(PRIORITY_DEFAULT), |field| field.count(1, 9, 1));
    spec.priority = priority.and_then(|priority| u8::try_from(priority).ok());
    spec.workspace = fields.take("workspace_id").and_then(|field| field.optional());
    if fields.take("interactive").and_then(|field| field.boolean()) == Some(true) {
        spec.purpose = Purpose::Interactive;
    }
    if let Some(field) = fields.take("job_max_running_time_minutes") {
        spec.time_limit = duration(&field, Duration::from_mins(1));
    }
    if let Some(field) = fields.take("envs")
        && let Some(text) = field.text()
    {
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            match pair.split_once('=') {
                Some((name, value)) => variable(&mut spec.env, name.trim(), value, &field),
                None => field.error(Code::BadVariable, [("value", pair.to_owned())]),
            }
        }
    }
    fields.ignore(&["vpc_id", "switch_id", "security_group_id", "resource_id", "worker_spec"], "not_here");
    fields.ignore(&["data_sources"], "storages");
    fields.ignore(&["code_source", "code_branch", "code_commit"], "code");
    fields.ignore(&["thirdparty_libs", "thirdparty_lib_dir", "job_file", "success_policy"], "not_here");

    for keys in &ROLES {
        role(keys, &fields, &command, &mut spec);
    }
    for (at, role) in spec.roles.iter_mut().enumerate() {
        // The first one leads; the others serve it, and some of them never end by themselves.
        let min_succeeded = (at == 0).then_some(role.tasks);
        role.completion = Completion { min_failed: Some(1), min_succeeded };
    }
    if spec.roles.is_empty() && fields.take("worker_count").is_none() {
        fields.missing("worker_count", "1");
    }
    complete(spec, fields)
}

fn role(keys: &RoleKeys, fields: &Fields<'_>, command: &Command, spec: &mut JobSpec) {
    let all = [keys.count, keys.image, keys.cpu, keys.gpu, keys.memory, keys.shm];
    if all.iter().all(|key| fields.take(key).is_none()) {
        return;
    }
    let mut role = Role::named(keys.name.to_owned());
    role.command.clone_from(command);
    let Some(count) = fields.required(keys.count, "1") else { return };
    if let Some(tasks) = count.count(1, MOST_TASKS, 1) {
        role.tasks = tasks;
    }
    role.image = fields.required(keys.image, "\"ubuntu:22.04\"").and_then(|field| image(&field, fields));
    if let Some(field) = fields.take(keys.cpu)
        && let Some(cpus) = field.number(0.01, MOST_CPUS.into(), 4.0)
    {
        role.resources.cpus = cpus;
    }
    if let Some(gpus) = fields.take(keys.gpu).and_then(|field| field.count(0, MOST_GPUS, 1)) {
        role.resources.gpus = gpus;
    }
    let gib = |key| fields.take(key).and_then(|field| size(&field, 1 << 30)).map(|bytes| bytes >> 20);
    role.resources.memory_mib = gib(keys.memory).unwrap_or(4 << 10);
    role.resources.shm_mib = gib(keys.shm);
    check_shm(&role, fields.take(keys.shm).as_ref());
    add_role(&mut spec.roles, role, &count);
}
