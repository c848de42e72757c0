//! OpenPAI's first job file: JSON with `jobName` and a list of `taskRoles`, and what the forks added.
//!
//! Defaults are those of the release that most files were written for; rules are the stricter of the upstream's and
//! the manuals', except that a job's name may also hold `~`. Completion: a role that fails once fails the job, and
//! success waits for all tasks unless the file says otherwise.

use super::{
    MOST_CPUS, MOST_GPUS, MOST_MIB, MOST_RETRIES, MOST_TASKS, add_port, add_role, check_shm, complete, image,
    job_name, openpai_v2::retries, share, variable,
};
use crate::{
    fields::{Field, Fields, NameRule},
    note::Code,
    spec::{Command, Dialect, JobSpec, Port, Retries, Role},
};

/// The shared memory of a task that asks for none in particular.
const SHM_DEFAULT_MIB: u64 = 64;

pub(crate) fn read(fields: Fields<'_>) -> JobSpec {
    let mut spec = JobSpec::empty(Dialect::OpenpaiV1);
    spec.name = job_name(fields.required("jobName", "\"hello-world\""));
    let image = fields.required("image", "\"ubuntu:22.04\"").and_then(|field| image(&field, &fields));
    if let Some(field) = fields.take("authFile")
        && field.source().is_some()
    {
        field.warn(Code::Ignored, [("why", "registry_login".to_owned())]);
        field.keep();
    }
    let folder = |key| fields.take(key).and_then(|field| field.source());
    spec.data_dir = folder("dataDir");
    spec.output_dir = folder("outputDir");
    spec.code_dir = folder("codeDir");
    spec.share = fields.take("virtualCluster").and_then(|field| share(&field, &fields));
    match fields.take("gpuType").and_then(|field| field.optional()) {
        // A kind of machine in the field for kinds of cards.
        Some(pool) if pool == "debug" => spec.pool = Some(pool),
        model => spec.gpu_model = model,
    }
    let retries = fields.take("retryCount").and_then(|field| field.integer(0, MOST_RETRIES, 0));
    spec.retries = Retries::UpTo(retries.and_then(|number| number.try_into().ok()).unwrap_or(0));
    environment(&fields, &mut spec);
    if let Some(field) = fields.take("extras")
        && field.fields().is_some()
    {
        field.keep();
    }
    fields.ignore(&["killAllOnCompletedTaskNumber"], "not_here");

    if let Some(field) = fields.required("taskRoles", "[{\"name\": \"main\", …}]") {
        let roles = field.list().unwrap_or_default();
        if roles.is_empty() && field.node.kind() == crate::note::Kind::List {
            field.error(Code::Blank, [("example", field.example("[{\"name\": \"main\", …}]"))]);
        }
        for item in roles {
            let Some(mut role) = item.fields().map(|fields| role(fields)) else { continue };
            role.image.clone_from(&image);
            add_role(&mut spec.roles, role, &item);
        }
    }
    complete(spec, fields)
}

/// The job's variables; `isDebug` among them is a switch.
fn environment(fields: &Fields<'_>, spec: &mut JobSpec) {
    let Some(map) = fields.take("jobEnvs").and_then(|field| field.fields()) else { return };
    for (key, value) in map.all() {
        if key.text == "isDebug" {
            spec.keep_on_failure = value.boolean().unwrap_or(false);
        }
        let text = if value.node.is_nothing() { Some("") } else { value.text() };
        if let Some(text) = text {
            variable(&mut spec.env, &key.text, text, &value);
        }
    }
}

fn role(fields: Fields<'_>) -> Role {
    let name = fields.required("name", "\"main\"").and_then(|field| field.name(&NameRule::ROLE));
    let mut role = Role::named(name.unwrap_or_default());
    if let Some(tasks) = fields.take("taskNumber").and_then(|field| field.count(1, MOST_TASKS, 1)) {
        role.tasks = tasks;
    }
    if let Some(cpus) = fields.take("cpuNumber").and_then(|field| field.count(1, MOST_CPUS, 4)) {
        role.resources.cpus = cpus.into();
    }
    let memory = fields.take("memoryMB").map(|field| field.amount(100, MOST_MIB, 8192));
    if let Some(Some(memory)) = memory {
        role.resources.memory_mib = memory;
    }
    if let Some(gpus) = fields.take("gpuNumber").and_then(|field| field.count(0, MOST_GPUS, 1)) {
        role.resources.gpus = gpus;
    }
    let shm = fields.take("shmMB");
    role.resources.shm_mib = match &shm {
        Some(field) => field.amount(0, MOST_MIB, SHM_DEFAULT_MIB),
        None => Some(SHM_DEFAULT_MIB.min(role.resources.memory_mib)),
    };
    // A wrong memory is told once.
    if memory != Some(None) {
        check_shm(&role, shm.as_ref());
    }
    if let Some(items) = fields.take("portList").and_then(|field| field.list()) {
        for item in items {
            if let Some(port) = item.fields().and_then(|fields| port(fields)) {
                add_port(&mut role.ports, port, &item);
            }
        }
    }
    let command = fields.required("command", "\"python train.py\"");
    if let Some(text) = command.and_then(|field| field.filled("\"python train.py\"")) {
        role.command = Command::Shell(text.to_owned());
    }
    // `null` means never; a key that is not there has its default.
    if let Some(field) = fields.take_even_null("minFailedTaskCount") {
        role.completion.min_failed = threshold(&field);
    }
    if let Some(field) = fields.take_even_null("minSucceededTaskCount") {
        role.completion.min_succeeded = threshold(&field);
    }
    // Not of the first release, but of the forks that took it over from the second format.
    if let Some(retries) = fields.take("taskRetryCount").and_then(|field| retries(&field)) {
        role.task_retries = retries;
    }
    fields.finish();
    role
}

fn threshold(field: &Field<'_>) -> Option<u32> {
    if field.node.is_nothing() { None } else { field.count(1, MOST_TASKS, 1) }
}

fn port(fields: Fields<'_>) -> Option<Port> {
    let label = fields.required("label", "\"http\"").and_then(|field| field.name(&NameRule::LABEL));
    let begin_at = fields.take("beginAt").map_or(Some(0), |field| field.count(0, 65535, 0));
    let count = fields.take("portNumber").map_or(Some(1), |field| field.count(1, 100, 1));
    fields.finish();
    let small = |number: u32| u16::try_from(number).ok();
    Some(Port { label: label?, begin_at: small(begin_at?)?, count: small(count?)? })
}
