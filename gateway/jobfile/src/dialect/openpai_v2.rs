//! OpenPAI's second job file: YAML with `protocolVersion: 2`, prerequisites, and templates in its commands.
//!
//! Completion differs from the first file's: by default a role whose tasks have all succeeded ends the whole job.
//! A single task is retried only where the file gives up the common start (`gangAllocation: false`).
//! Commands are trimmed, joined and put between those of the default deployment, then templates are rendered.

use std::collections::BTreeMap;

use super::{
    MOST_CPUS, MOST_GPUS, MOST_MIB, MOST_RETRIES, MOST_TASKS, add_port, add_role, check_shm, complete, image,
    job_name, share, template,
};
use crate::{
    fields::{Field, Fields, NameRule},
    note::Code,
    spec::{Command, Completion, Dialect, JobSpec, Port, RegistryLogin, Retries, Role, Secret},
    tree::{Node, Value},
};

/// Things that a job needs, by kind and name.
#[derive(Debug, Default)]
struct Prerequisites<'a> {
    images: BTreeMap<String, (String, Option<RegistryLogin>)>,
    /// Scripts, data and outputs: for templates.
    others: BTreeMap<(String, String), &'a Node>,
    requires: BTreeMap<String, Vec<String>>,
}

/// Commands around those of the roles.
#[derive(Debug, Default, Clone)]
struct Around {
    before: Vec<String>,
    after: Vec<String>,
    /// What follows only if all that is in a task has succeeded.
    on_success: Vec<String>,
}

/// A task ends with its own exit code, whatever follows its success.
const ONLY_ON_SUCCESS: &str = r#"berth_code=$?; [ "$berth_code" = 0 ] || exit "$berth_code""#;

pub(crate) fn read(fields: Fields<'_>) -> JobSpec {
    let mut spec = JobSpec::empty(Dialect::OpenpaiV2);
    one_of(fields.required("protocolVersion", "2"), &["2"]);
    one_of(fields.required("type", "\"job\""), &["job"]);
    spec.name = job_name(fields.required("name", "\"train-1\""));
    spec.description = text(fields.take("description")).unwrap_or_default();
    fields.keep(&["version", "contributor"]);
    if let Some(retries) = fields.take("jobRetryCount").and_then(|field| retries(&field)) {
        spec.retries = retries;
    }
    if let Some(secrets) = fields.take("secrets").and_then(|field| field.fields()) {
        for (key, value) in secrets.all() {
            value.warn(Code::SecretInFile, [("value", key.text.clone())]);
            if let Some(text) = value.text() {
                spec.secrets.insert(key.text.clone(), Secret::new(text));
            }
        }
    }
    let parameters = fields.take("parameters");
    let prerequisites = prerequisites(&fields, &spec.secrets);
    check_cycles(&prerequisites, &fields);
    extras(&fields, &mut spec);
    let mut around = plugin_commands(&fields);
    deployment(&fields, &mut spec, &mut around);

    if let Some(field) = fields.required("taskRoles", "{main: …}")
        && let Some(map) = field.fields()
    {
        let mut none = true;
        let together = starts_together(&fields);
        for (key, item) in map.all() {
            none = false;
            let name = key.text.clone();
            if !NameRule::ROLE_V2.accepts(&name) {
                item.at(key).bad_name(&name, &NameRule::ROLE_V2);
                continue;
            }
            let Some(role_fields) = item.fields() else { continue };
            let around = around.get(&name).or_else(|| around.get("")).cloned().unwrap_or_default();
            let scope = Scope { parameters: parameters.as_ref(), prerequisites: &prerequisites, together };
            let (role, login) = role(name, role_fields, &scope, around);
            spec.registry_login = spec.registry_login.or(login);
            add_role(&mut spec.roles, role, &item.at(key));
        }
        if none {
            field.error(Code::Blank, [("example", "taskRoles: {main: …}".to_owned())]);
        }
    }
    complete(spec, fields)
}

/// A count; −1 is any failure and −2 even success, both without end.
pub(super) fn retries(field: &Field<'_>) -> Option<Retries> {
    field.integer(-2, MOST_RETRIES, 0).map(|number| match number {
        -2 => Retries::Always,
        -1 => Retries::AfterFailure,
        number => Retries::UpTo(u32::try_from(number).unwrap_or(0)),
    })
}

fn text(field: Option<Field<'_>>) -> Option<String> {
    field.and_then(|field| field.optional())
}

fn one_of(field: Option<Field<'_>>, known: &[&str]) {
    let Some(field) = field else { return };
    if let Some(value) = field.text()
        && !known.contains(&value)
    {
        field.error(Code::UnknownValue, [("value", value.to_owned()), ("known", known.join(", "))]);
    }
}

// === prerequisites ===

fn prerequisites<'a>(fields: &Fields<'a>, secrets: &BTreeMap<String, Secret>) -> Prerequisites<'a> {
    let mut all = Prerequisites::default();
    let example = "[{type: dockerimage, name: image, uri: \"ubuntu:22.04\"}]";
    let Some(field) = fields.required("prerequisites", example) else { return all };
    for item in field.list().unwrap_or_default() {
        let Some(fields) = item.fields() else { continue };
        let name = text(fields.required("name", "\"image\"")).unwrap_or_default();
        let kinds = ["dockerimage", "script", "data", "output"];
        let kind = fields.required("type", "\"dockerimage\"");
        let word = text(kind.clone()).unwrap_or_default();
        one_of(kind, &kinds);
        fields.keep(&["protocolVersion", "version", "contributor", "description", "plugin"]);
        if let Some(list) = fields.take("require").and_then(|field| field.list()) {
            let names = list.iter().filter_map(Field::text).map(str::to_owned);
            all.requires.insert(name.clone(), names.collect());
        }
        let login = login(&fields, secrets);
        let uri = fields.required("uri", "\"ubuntu:22.04\"");
        if word == "dockerimage" {
            let reference = uri.and_then(|uri| image(&uri, &fields)).unwrap_or_default();
            if all.images.insert(name.clone(), (reference, login)).is_some() {
                item.error(Code::Twice, [("value", name.clone()), ("of", "image".to_owned())]);
            }
        } else if all.others.insert((word.clone(), name.clone()), item.node).is_some() {
            item.error(Code::Twice, [("value", name.clone()), ("of", word)]);
        }
        fields.finish();
    }
    all
}

fn login(fields: &Fields<'_>, secrets: &BTreeMap<String, Secret>) -> Option<RegistryLogin> {
    let auth = fields.take("auth")?.fields()?;
    let password = auth.take("password");
    let user = text(auth.take("username"));
    let server = text(auth.take("registryuri"));
    if let Some(password) = &password {
        password.warn(Code::SecretInFile, [("value", "password".to_owned())]);
    }
    auth.finish();
    let password = template::render(password?.text()?, |name| {
        name.strip_prefix("secrets.").and_then(|name| secrets.get(name)).map(|s| s.reveal().to_owned())
    });
    Some(RegistryLogin { server, user: user?, password: Secret::new(password) })
}

/// Prerequisites may require each other, but not in a circle.
fn check_cycles(all: &Prerequisites<'_>, fields: &Fields<'_>) {
    for start in all.requires.keys() {
        let mut seen = vec![start.as_str()];
        let mut next = vec![start.as_str()];
        while let Some(name) = next.pop() {
            for required in all.requires.get(name).into_iter().flatten() {
                if required == start {
                    if let Some(field) = fields.take("prerequisites") {
                        field.error(Code::Cycle, [("value", start.clone())]);
                    }
                    return;
                }
                if !seen.contains(&required.as_str()) {
                    seen.push(required);
                    next.push(required);
                }
            }
        }
    }
}

// === what surrounds the roles ===

fn deployment(fields: &Fields<'_>, spec: &mut JobSpec, around: &mut BTreeMap<String, Around>) {
    let defaults = fields.take("defaults").and_then(|field| field.fields());
    let mut chosen = None;
    if let Some(defaults) = defaults {
        spec.share = defaults.take("virtualCluster").and_then(|field| share(&field, &defaults));
        chosen = defaults.take("deployment");
        defaults.finish();
    }
    let deployments = fields.take("deployments").and_then(|field| field.list()).unwrap_or_default();
    let wanted = chosen.as_ref().and_then(Field::optional);
    let (mut names, mut found) = (Vec::new(), false);
    for item in deployments {
        let Some(deployment) = item.fields() else { continue };
        let name = text(deployment.required("name", "\"prod\"")).unwrap_or_default();
        let roles = deployment.take("taskRoles").and_then(|field| field.fields());
        if wanted.as_deref() == Some(name.as_str()) {
            found = true;
            for (key, role) in roles.iter().flat_map(Fields::all) {
                let Some(commands) = role.fields() else { continue };
                let base = around.get("").cloned().unwrap_or_default();
                let entry = around.entry(key.text.clone()).or_insert(base);
                entry.before.splice(0..0, lines(commands.take("preCommands")));
                entry.after.extend(lines(commands.take("postCommands")));
                commands.finish();
            }
        }
        names.push(name);
        deployment.finish();
    }
    if let (Some(wanted), false, Some(field)) = (wanted, found, chosen) {
        field.error(Code::UnknownValue, [("value", wanted), ("known", names.join(", "))]);
    }
}

/// A list of commands, each trimmed.
fn lines(field: Option<Field<'_>>) -> Vec<String> {
    let items = field.and_then(|field| field.list()).unwrap_or_default();
    items.iter().filter_map(Field::text).map(|line| line.trim().to_owned()).collect()
}

fn extras(fields: &Fields<'_>, spec: &mut JobSpec) {
    let Some(field) = fields.take("extras") else { return };
    field.keep();
    let Some(extras) = field.fields() else { return };
    let Some(hived) = extras.take("hivedScheduler").and_then(|field| field.fields()) else { return };
    if let Some(field) = hived.take("jobPriorityClass") {
        spec.priority = match field.text() {
            Some("crit") => Some(9),
            Some("prod") => Some(7),
            Some("test") => Some(4),
            Some("oppo") => Some(1),
            other => {
                let value = ("value", other.unwrap_or_default().to_owned());
                field.error(Code::UnknownValue, [value, ("known", "crit, prod, test, oppo".to_owned())]);
                None
            }
        };
    }
    let roles = hived.take("taskRoles").and_then(|field| field.fields());
    let models = roles.iter().flat_map(Fields::all);
    for model in models.filter_map(|(_, role)| role.fields()?.take("skuType")) {
        let named = model.optional();
        if spec.gpu_model.is_none() {
            spec.gpu_model = named;
        } else if named != spec.gpu_model {
            model.warn(Code::Ignored, [("why", "one_gpu_model".to_owned())]);
        }
    }
}

/// Without a common start a task can be tried again alone.
fn starts_together(fields: &Fields<'_>) -> bool {
    let extras = fields.take("extras").and_then(|field| field.fields());
    let gang = extras.and_then(|extras| extras.take("gangAllocation")).and_then(|field| field.boolean());
    gang.unwrap_or(true)
}

/// What runtime plugins do, as far as there is something to do.
fn plugin_commands(fields: &Fields<'_>) -> BTreeMap<String, Around> {
    let mut around = Around::default();
    let plugins = fields
        .take("extras")
        .and_then(|field| field.fields())
        .and_then(|extras| extras.take("com.microsoft.pai.runtimeplugin"))
        .and_then(|field| field.list());
    for item in plugins.unwrap_or_default() {
        let Some(plugin) = item.fields() else { continue };
        let Some(name) = plugin.required("plugin", "\"ssh\"") else { continue };
        match name.text() {
            // It is always there.
            Some("ssh") => {}
            Some("teamwise_storage") => name.warn(Code::Ignored, [("why", "storages".to_owned())]),
            Some("tensorboard") => name.warn(Code::Ignored, [("why", "tensorboard".to_owned())]),
            Some("cmd") => commands_of(&plugin, &mut around),
            other => {
                let instead = ("instead", "take it out and run its commands in the role".to_owned());
                name.error(Code::Unsupported, [("value", other.unwrap_or_default().to_owned()), instead]);
            }
        }
    }
    BTreeMap::from([(String::new(), around)])
}

fn commands_of(plugin: &Fields<'_>, around: &mut Around) {
    let parameters = plugin.take("parameters").and_then(|field| field.fields());
    let callbacks = parameters.and_then(|fields| fields.take("callbacks")).and_then(|field| field.list());
    for callback in callbacks.unwrap_or_default() {
        let Some(fields) = callback.fields() else { continue };
        let commands = lines(fields.take("commands"));
        match text(fields.required("event", "\"taskStarts\"")).as_deref() {
            Some("taskStarts") => around.before.extend(commands),
            Some("taskSucceeds") => around.on_success.extend(commands),
            other => {
                let value = ("value", other.unwrap_or_default().to_owned());
                let known = ("known", "taskStarts, taskSucceeds".to_owned());
                callback.error(Code::UnknownValue, [value, known]);
            }
        }
    }
}

// === roles ===

struct Scope<'a> {
    parameters: Option<&'a Field<'a>>,
    prerequisites: &'a Prerequisites<'a>,
    /// The tasks are one whole, and none is tried again alone.
    together: bool,
}

fn role(
    name: String,
    fields: Fields<'_>,
    scope: &Scope<'_>,
    around: Around,
) -> (Role, Option<RegistryLogin>) {
    let mut role = Role::named(name);
    if let Some(tasks) = fields.take("instances").and_then(|field| field.count(1, MOST_TASKS, 1)) {
        role.tasks = tasks;
    }
    role.completion = completion(&fields, role.tasks);
    if let Some(field) = fields.take("taskRetryCount")
        && let Some(retries) = retries(&field)
    {
        if !scope.together {
            role.task_retries = retries;
        } else if retries != Retries::UpTo(0) {
            field.warn(Code::Ignored, [("why", "not_here".to_owned())]);
        }
    }
    let images = &scope.prerequisites.images;
    let mut login = None;
    if let Some(field) = fields.required("dockerImage", "\"image\"")
        && let Some(wanted) = field.text()
    {
        if let Some((reference, its_login)) = images.get(wanted) {
            role.image = Some(reference.clone());
            login.clone_from(its_login);
        } else {
            let known = images.keys().cloned().collect::<Vec<_>>().join(", ");
            field.error(Code::UnknownValue, [("value", wanted.to_owned()), ("known", known)]);
        }
    }
    resources(&fields, &mut role);
    let references: BTreeMap<&str, String> = ["script", "data", "output"]
        .into_iter()
        .filter_map(|kind| text(fields.take(kind)).map(|name| (kind, name)))
        .collect();
    fields.keep(&["prerequisites"]);
    if let Some(field) = fields.required("commands", "[python train.py]") {
        let mut all = around.before;
        let own = lines(Some(field.clone()));
        if own.iter().all(String::is_empty) {
            field.error(Code::Blank, [("example", "commands: [python train.py]".to_owned())]);
        }
        all.extend(own);
        all.extend(around.after);
        if !around.on_success.is_empty() {
            all.push(ONLY_ON_SUCCESS.to_owned());
            all.extend(around.on_success);
        }
        let text = template::render(&all.join("\n"), |name| look_up(name, scope, &references));
        role.command = Command::Shell(text);
    }
    fields.finish();
    (role, login)
}

fn resources(fields: &Fields<'_>, role: &mut Role) {
    let Some(field) = fields.required("resourcePerInstance", "{cpu: 4, memoryMB: 8192, gpu: 1}") else {
        return;
    };
    let Some(per) = field.fields() else { return };
    if let Some(cpus) = per.required("cpu", "4").and_then(|field| field.count(1, MOST_CPUS, 4)) {
        role.resources.cpus = cpus.into();
    }
    if let Some(memory) = per.required("memoryMB", "8192").and_then(|f| f.amount(100, MOST_MIB, 8192)) {
        role.resources.memory_mib = memory;
    }
    if let Some(gpus) = per.take("gpu").and_then(|field| field.count(0, MOST_GPUS, 1)) {
        role.resources.gpus = gpus;
    }
    for (key, port) in per.take("ports").and_then(|field| field.fields()).iter().flat_map(Fields::all) {
        let Some(count) = port.count(1, 100, 1).and_then(|count| u16::try_from(count).ok()) else { continue };
        if NameRule::LABEL.accepts(&key.text) {
            add_port(&mut role.ports, Port { label: key.text.clone(), begin_at: 0, count }, &port);
        } else {
            port.at(key).bad_name(&key.text, &NameRule::LABEL);
        }
    }
    per.finish();
    if let Some(options) = fields.take("extraContainerOptions").and_then(|field| field.fields()) {
        let shm = options.take("shmMB");
        role.resources.shm_mib = shm.as_ref().and_then(|field| field.amount(0, MOST_MIB, 64));
        check_shm(role, shm.as_ref());
        options.ignore(&["infiniband"], "not_here");
        options.finish();
    }
}

/// −1 is never; 0 and nothing are the default.
fn completion(fields: &Fields<'_>, tasks: u32) -> Completion {
    let mut completion = Completion { min_failed: Some(1), min_succeeded: Some(tasks) };
    let Some(given) = fields.take("completion").and_then(|field| field.fields()) else { return completion };
    let read = |key, default| match given.take(key).map(|field| field.integer(-1, MOST_TASKS.into(), 1)) {
        Some(Some(-1)) => None,
        Some(Some(number)) if number > 0 => u32::try_from(number).ok(),
        _ => default,
    };
    completion.min_failed = read("minFailedInstances", completion.min_failed);
    completion.min_succeeded = read("minSucceededInstances", completion.min_succeeded);
    given.finish();
    completion
}

/// What a template's name stands for: `parameters.a.b`, `script.uri`, `data.uri[0]`.
fn look_up(name: &str, scope: &Scope<'_>, references: &BTreeMap<&str, String>) -> Option<String> {
    let (kind, path) = name.split_once('.')?;
    let mut node = match kind {
        "parameters" => scope.parameters?.node,
        kind => {
            let name = references.get(kind)?.clone();
            scope.prerequisites.others.get(&(kind.to_owned(), name)).copied()?
        }
    };
    for part in path.split('.') {
        let (key, index) = match part.strip_suffix(']').and_then(|part| part.split_once('[')) {
            Some((key, index)) => (key, Some(index.parse::<usize>().ok()?)),
            None => (part, None),
        };
        node = node.get(key)?;
        if let Some(index) = index {
            let Value::List(items) = &node.value else { return None };
            node = items.get(index)?;
        }
    }
    match &node.value {
        Value::Scalar { text, .. } => Some(text.clone()),
        Value::List(_) | Value::Map(_) => None,
    }
}
