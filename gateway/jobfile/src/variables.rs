//! What a task sees in its environment.
//!
//! A pure function of the job and of where its tasks are, so ports must be fixed before any task starts. Jobs of
//! OpenPAI and our own get the union of what all its releases set; DLC's get their framework's, with its meaning of
//! `WORLD_SIZE` (machines, not processes); Determined's get `DET_*`.
//!
//! `$PAI_*` may also stand in a file's fields; [`expand`] puts the values in. It goes over a text once, so values that
//! name variables cannot run in circles.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::json;

use crate::spec::{Dialect, Framework, JobSpec, Role, Source};

/// Variables by name.
pub type Variables = BTreeMap<String, String>;

/// The port of rank 0 in jobs of PyTorch, and of every task in jobs of TensorFlow.
const PYTORCH_PORT: u16 = 23456;
const TENSORFLOW_PORT: u16 = 2222;
const HOME: &str = "/userhome";
/// How OpenPAI's own files name the job in a path.
const JOB_NAME: &str = "jobName";
/// How Determined's name their user in a path.
const DETERMINED_USER: [&str; 2] = ["DET_USER", "AGENT_USER"];
const DETERMINED_WORK_DIR: &str = "/run/determined/workdir";

/// Where a job's tasks are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub user: String,
    /// The job's own name.
    pub job: String,
    pub job_id: String,
    /// The address at which tasks reach the gateway.
    pub gateway: String,
    /// By role and task, as in the spec.
    pub roles: Vec<Vec<TaskPlace>>,
    pub folders: Folders,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlace {
    /// The name that other tasks find it by.
    pub host: String,
    /// `None` while it is not known.
    pub ip: Option<String>,
    pub container_id: String,
    /// The ports by their label, also `ssh` and `http` where the task has them.
    pub ports: BTreeMap<String, Vec<u16>>,
}

/// Where the job's folders are in its containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folders {
    pub data: Option<String>,
    pub code: Option<String>,
    pub output: Option<String>,
    /// Where commands start.
    pub work: String,
}

/// Which task asks, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Me {
    pub role: usize,
    pub task: usize,
}

/// All that a task sees: the file's own variables, and the platform's, which win. `None` if there is no such task.
pub fn environment(spec: &JobSpec, placement: &Placement, me: Me) -> Option<Variables> {
    let platform = variables(spec, placement, me)?;
    let own = spec.env.iter().map(|(name, value)| (name.clone(), expand(value, &platform)));
    let mut all: Variables = own.collect();
    all.extend(platform);
    Some(all)
}

/// What the platform sets for a task. `None` if there is no such task.
pub fn variables(spec: &JobSpec, placement: &Placement, me: Me) -> Option<Variables> {
    let job = Job { spec, placement, me };
    job.role()?;
    job.place()?;
    Some(match spec.dialect {
        Dialect::Berth | Dialect::OpenpaiV1 | Dialect::OpenpaiV2 => {
            let mut all = job.openpai();
            if spec.framework.is_some() {
                all.extend(job.dlc());
            }
            all
        }
        Dialect::Dlc => job.dlc(),
        Dialect::Determined => job.determined(),
    })
}

/// What the fields of a file may name: what is known when it is submitted, before any task has a place.
pub fn known_before(spec: &JobSpec, user: &str, job: &str) -> Variables {
    const KNOWN: [&str; 7] = [
        "PAI_JOB_NAME",
        "PAI_FRAMEWORK_NAME",
        "PAI_USER_NAME",
        "PAI_USERNAME",
        "PAI_DEFAULT_FS_URI",
        "PAI_VIRTUAL_CLUSTER",
        "PAI_WORK_DIR",
    ];
    let placement = Placement {
        user: user.to_owned(),
        job: job.to_owned(),
        job_id: String::new(),
        gateway: String::new(),
        roles: Vec::new(),
        folders: Folders { work: HOME.to_owned(), ..Folders::default() },
    };
    let mut all = Set::default();
    Job { spec, placement: &placement, me: Me { role: 0, task: 0 } }.about_the_job(&mut all);
    all.0.retain(|name, _| KNOWN.contains(&name.as_str()));
    all.0.insert(JOB_NAME.to_owned(), job.to_owned());
    if spec.dialect == Dialect::Determined {
        all.0.extend(DETERMINED_USER.map(|name| (name.to_owned(), user.to_owned())));
    }
    all.0
}

/// `text` with `$PAI_X` and `${PAI_X}` replaced. What is not known stays.
pub fn expand(text: &str, values: &Variables) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        done.push_str(before);
        let after = &from[1..];
        let braced = after.strip_prefix('{').and_then(|braced| braced.split_once('}'));
        let (name, length) = if let Some((name, _)) = braced {
            (name, name.len() + 3)
        } else {
            let letters = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = &after[..letters.unwrap_or(after.len())];
            (name, name.len() + 1)
        };
        let is_ours = name.starts_with("PAI_") || name == JOB_NAME || DETERMINED_USER.contains(&name);
        if let Some(value) = values.get(name).filter(|_| is_ours) {
            done.push_str(value);
            rest = &from[length..];
        } else {
            done.push('$');
            rest = after;
        }
    }
    done.push_str(rest);
    done
}

/// The spec with `$PAI_*` put into every field but the commands, whose shell has the variables anyway.
#[must_use]
pub fn expand_spec(spec: &JobSpec, values: &Variables) -> JobSpec {
    let text = |text: &str| expand(text, values);
    let source = |source: &Source| match source {
        Source::Home(path) => Source::Home(text(path)),
        Source::Storage { name, path } => Source::Storage { name: name.clone(), path: text(path) },
        Source::Path(path) => Source::Path(text(path)),
    };
    let mut expanded = spec.clone();
    for value in expanded.env.values_mut() {
        *value = text(value);
    }
    for folder in [&mut expanded.data_dir, &mut expanded.code_dir, &mut expanded.output_dir] {
        *folder = folder.as_ref().map(source);
    }
    for mount in &mut expanded.mounts {
        mount.from = source(&mount.from);
        mount.to = text(&mount.to);
    }
    for role in &mut expanded.roles {
        role.image = role.image.as_deref().map(text);
        role.work_dir = role.work_dir.as_deref().map(text);
    }
    expanded
}

/// A name with what shells cannot spell replaced.
pub(crate) fn spellable(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

struct Job<'a> {
    spec: &'a JobSpec,
    placement: &'a Placement,
    me: Me,
}

/// `p1,p2`.
fn ports(ports: &[u16]) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

fn first(place: &TaskPlace, label: &str) -> Option<u16> {
    place.ports.get(label).and_then(|ports| ports.first()).copied()
}

impl Job<'_> {
    fn role(&self) -> Option<&Role> {
        self.spec.roles.get(self.me.role)
    }

    fn place(&self) -> Option<&TaskPlace> {
        self.placement.roles.get(self.me.role)?.get(self.me.task)
    }

    /// Every task with its role and index.
    fn tasks(&self) -> impl Iterator<Item = (&Role, usize, &TaskPlace)> {
        let roles = self.spec.roles.iter().zip(&self.placement.roles);
        roles.flat_map(|(role, places)| places.iter().enumerate().map(move |(at, place)| (role, at, place)))
    }

    fn openpai(&self) -> Variables {
        let mut all = Set::default();
        self.about_the_job(&mut all);
        self.about_roles(&mut all);
        self.about_tasks(&mut all);
        self.about_me(&mut all);
        // Folders may be a task's own: `…/$PAI_TASK_INDEX`.
        for name in ["PAI_OUTPUT_DIR", "PAI_DATA_DIR"] {
            let folder = all.0.get(name).map(|folder| expand(folder, &all.0));
            all.set(name, &folder.unwrap_or_default());
        }
        all.0
    }

    fn about_the_job(&self, all: &mut Set) {
        let (spec, placement) = (self.spec, self.placement);
        let framework = format!("{}~{}", placement.user, placement.job);
        // The second release calls the job by its owner's name too.
        let job = if spec.dialect == Dialect::OpenpaiV2 { &framework } else { &placement.job };
        all.set("PAI_JOB_NAME", job);
        all.set("PAI_FRAMEWORK_NAME", &framework);
        all.set_each(["PAI_USER_NAME", "PAI_USERNAME"], &placement.user);
        all.set("PAI_DEFAULT_FS_URI", HOME);
        all.set("PAI_VIRTUAL_CLUSTER", spec.share.as_deref().unwrap_or("default"));
        let names: Vec<_> = spec.roles.iter().map(|role| role.name.as_str()).collect();
        let counts =
            ["PAI_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM", "PAI_JOB_TASK_ROLE_COUNT", "PAI_TASK_ROLE_NUM"];
        all.set_each(counts, &names.len().to_string());
        all.set_each(["PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"], &names.join(","));
        all.set_each(["PAI_TASKS_NUM", "PAI_JOB_TASK_COUNT"], &spec.task_count().to_string());
        let instances = self.tasks().map(|(role, at, _)| format!("{}:{at}", role.name));
        all.set("PAI_TASK_ROLE_INSTANCES", &instances.collect::<Vec<_>>().join(","));
        let folders = &placement.folders;
        let output = folders.output.clone().unwrap_or_else(|| format!("{HOME}/Output/{}", placement.job));
        all.set("PAI_OUTPUT_DIR", &output);
        all.set("PAI_DATA_DIR", folders.data.as_deref().unwrap_or_default());
        all.set("PAI_CODE_DIR", folders.code.as_deref().unwrap_or_default());
        all.set("PAI_WORK_DIR", &folders.work);
    }

    fn about_roles(&self, all: &mut Set) {
        for (role, places) in self.spec.roles.iter().zip(&self.placement.roles) {
            let name = &role.name;
            all.set(&format!("PAI_TASK_ROLE_TASK_COUNT_{name}"), &role.tasks.to_string());
            all.set(&format!("PAI_RESOURCE_{name}"), &resources(role));
            all.set(&format!("PAI_MIN_FAILED_TASK_COUNT_{name}"), &count(role.completion.min_failed));
            all.set(&format!("PAI_MIN_SUCCEEDED_TASK_COUNT_{name}"), &count(role.completion.min_succeeded));
            let hosts = places
                .iter()
                .filter_map(|place| Some(format!("{}:{}", place.ip.as_ref()?, first(place, "http")?)));
            all.set(&format!("PAI_TASK_ROLE_{name}_HOST_LIST"), &hosts.collect::<Vec<_>>().join(","));
        }
    }

    fn about_tasks(&self, all: &mut Set) {
        for (role, at, place) in self.tasks() {
            let name = &role.name;
            if let Some(ip) = &place.ip {
                all.set(&format!("PAI_HOST_IP_{name}_{at}"), ip);
            }
            for (label, numbers) in &place.ports {
                all.set(&format!("PAI_PORT_LIST_{name}_{at}_{label}"), &ports(numbers));
                all.set(&format!("PAI_{name}_{at}_{label}_PORT"), &ports(numbers));
            }
        }
    }

    fn about_me(&self, all: &mut Set) {
        let (Some(role), Some(place)) = (self.role(), self.place()) else { return };
        let index = self.me.task.to_string();
        all.set_each(["PAI_CURRENT_TASK_ROLE_NAME", "PAI_TASK_ROLE_NAME"], &role.name);
        all.set_each(["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX"], &index);
        all.set("PAI_TASK_ROLE_INDEX", &self.me.role.to_string());
        all.set("PAI_CONTAINER_ID", &place.container_id);
        if let Some(ip) = &place.ip {
            all.set_each(["PAI_CURRENT_CONTAINER_IP", "PAI_CONTAINER_HOST_IP"], ip);
        }
        if let Some(port) = first(place, "http") {
            all.set_each(["PAI_CURRENT_CONTAINER_PORT", "PAI_CONTAINER_HOST_PORT"], &port.to_string());
        }
        if let Some(port) = first(place, "ssh") {
            all.set("PAI_CONTAINER_SSH_PORT", &port.to_string());
        }
        let mut list = String::new();
        for (label, numbers) in &place.ports {
            all.set(&format!("PAI_CONTAINER_HOST_{label}_PORT_LIST"), &ports(numbers));
            let _ = write!(list, "{label}:{};", ports(numbers));
        }
        all.set("PAI_CONTAINER_HOST_PORT_LIST", &list);
        all.set("PAI_RESOURCE", &resources(role));
        let mine = &role.resources;
        let (cpus, memory, gpus) =
            (mine.cpus.to_string(), mine.memory_mib.to_string(), mine.gpus.to_string());
        all.set_each(["PAI_CURRENT_TASK_ROLE_CPU_COUNT", "PAI_TASK_CPU_NUM"], &cpus);
        all.set_each(["PAI_CURRENT_TASK_ROLE_MEM_MB", "PAI_TASK_MEM_MB"], &memory);
        all.set_each(["PAI_CURRENT_TASK_ROLE_GPU_COUNT", "PAI_TASK_GPU_NUM"], &gpus);
        all.set("PAI_CURRENT_TASK_ROLE_SHM_MB", &mine.shm_or_zero().to_string());
        all.set("PAI_CURRENT_TASK_ROLE_TASK_COUNT", &role.tasks.to_string());
        let (failed, succeeded) = (count(role.completion.min_failed), count(role.completion.min_succeeded));
        all.set("PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT", &failed);
        all.set("PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT", &succeeded);
    }

    fn dlc(&self) -> Variables {
        let mut all = Set::default();
        let (Some(mine), Some(my_place)) = (self.role(), self.place()) else { return all.0 };
        let rank = self.tasks().position(|(_, _, place)| std::ptr::eq(place, my_place)).unwrap_or(0);
        let leader = self.tasks().next().map_or("", |(_, _, place)| &place.host);
        all.set("MASTER_ADDR", leader);
        all.set("MASTER_PORT", &PYTORCH_PORT.to_string());
        all.set("RANK", &rank.to_string());
        all.set("WORLD_SIZE", &self.tasks().count().to_string());
        all.set("NPROC_PER_NODE", &mine.resources.gpus.max(1).to_string());
        if self.spec.framework == Some(Framework::Tensorflow) {
            let mut cluster: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for (role, _, place) in self.tasks().filter(|(role, _, _)| role.name != "evaluator") {
                let address = format!("{}:{TENSORFLOW_PORT}", place.host);
                cluster.entry(&role.name).or_default().push(address);
            }
            let task = json!({"type": mine.name, "index": self.me.task});
            let config = json!({"cluster": cluster, "task": task, "environment": "cloud"});
            all.set("TF_CONFIG", &config.to_string());
        }
        all.0
    }

    fn determined(&self) -> Variables {
        let mut all = Set::default();
        let (Some(role), Some(place)) = (self.role(), self.place()) else { return all.0 };
        all.set("DET_MASTER", &self.placement.gateway);
        all.set("DET_USER", &self.placement.user);
        all.set("DET_TASK_ID", &self.placement.job_id);
        all.set("DET_ALLOCATION_ID", &format!("{}.1", self.placement.job_id));
        all.set("DET_CONTAINER_ID", &place.container_id);
        all.set("DET_WORKDIR", role.work_dir.as_deref().unwrap_or(DETERMINED_WORK_DIR));
        all.0
    }
}

/// `gpu,cpu,memMB,shmMB`.
fn resources(role: &Role) -> String {
    let r = &role.resources;
    format!("{},{},{},{}", r.gpus, r.cpus, r.memory_mib, r.shm_or_zero())
}

fn count(number: Option<u32>) -> String {
    number.map_or_else(|| "null".to_owned(), |number| number.to_string())
}

/// Variables, each also under a name that shells can spell.
#[derive(Debug, Default)]
struct Set(Variables);

impl Set {
    fn set(&mut self, name: &str, value: &str) {
        let spelt = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
        self.0.entry(spelt.collect()).or_insert_with(|| value.to_owned());
        self.0.insert(name.to_owned(), value.to_owned());
    }

    fn set_each<const N: usize>(&mut self, names: [&str; N], value: &str) {
        for name in names {
            self.set(name, value);
        }
    }
}
