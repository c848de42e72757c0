//! From a decision of the queue to tasks that run: the instances of a try, their ports and variables, and the word to
//! begin once all of them are there.
//!
//! A task's container waits in its agent until every task of the job has one and all addresses are known. So no task
//! sees half of the others, and the variables of a job are those of its whole.

use std::collections::{BTreeMap, HashSet};

use envd_api::{
    agent::{Again, Begin, CODE, DOOR, READ_ONLY},
    control::InstanceSpec,
};
use futures_util::future::try_join_all;
use gateway_api::{
    InstanceId, Slug, Status,
    instance::SHM_DEFAULT_BYTES,
    job::{EndCause, TaskEnd},
};
use jobfile::{
    Dialect, JobSpec,
    outcome::{self, Next},
    spec::{Command, Mount, Port, Retries, Role, Secret, Source},
    variables::{self, Folders, Me, Placement, TaskPlace},
};
use queue::Placed;

use super::{App, JobRow, StoreError};
use crate::{
    agents::AgentError,
    reconcile::queue::{held, told},
    store::{JobStart, NewTask, TaskRow},
};

/// Ports that a file asks for without saying which. Each task has an address of its own, so all may have the same.
const PORTS_FROM: u16 = 20_000;
/// Labels that every task of OpenPAI has.
const USUAL_LABELS: [&str; 2] = ["http", "ssh"];
const HOME: &str = "/userhome";
/// The exit code of what the kernel killed.
const KILLED: u8 = 137;

impl App {
    /// Starts a try with what the queue has given each task.
    pub(crate) async fn start_job(
        &self,
        job: &JobRow,
        placed: &[Placed],
        sequence: u64,
    ) -> Result<JobStart, StoreError> {
        let Some(user) = self.store.user_by_name(&job.user).await? else { return Ok(JobStart::Overtaken) };
        let cluster = self.clusters.of(&job.cluster);
        let site = self.site(cluster, job.user.as_str(), &user.home, user.group.as_str()).await;
        let mut tasks = Vec::with_capacity(placed.len());
        let mut placed = placed.iter();
        for (number, role) in job.spec.roles.iter().enumerate() {
            for task in 0..role.tasks {
                let Some(place) = placed.next() else { return Ok(JobStart::Overtaken) };
                let slug = Slug::of_task(&job.slug, &role.name, task);
                let mut spec = self.task_spec(&job.spec, role, &slug, &site);
                spec.user.clone_from(&user.home);
                spec.group = user.group.to_string();
                spec.cards.clone_from(&place.cards);
                tasks.push(NewTask {
                    role: number,
                    task: task as usize,
                    instance: InstanceId::new(),
                    slug,
                    spec,
                    ports: ports(&job.spec, role),
                    held: held(self, place, sequence),
                });
            }
        }
        // The same as that of its tasks: it does not start before them.
        let status = told();
        let started = JobRow { status: status.clone(), begun_at: None, verdict: None, ..job.clone() };
        let done = self.store.start_job(&started, &tasks, &status).await?;
        if done == JobStart::Done {
            tracing::info!(job = %job.id, attempt = job.attempt, tasks = tasks.len(), "started");
            self.announce_job(&JobRow { version: job.version + 1, ..started }).await?;
        }
        Ok(done)
    }

    fn task_spec(&self, spec: &JobSpec, role: &Role, slug: &Slug, site: &jobfile::Site) -> InstanceSpec {
        InstanceSpec {
            user: String::new(),
            group: String::new(),
            hostname: slug.to_string(),
            image: role.image.clone().unwrap_or_else(|| self.config.default_image.clone()),
            cpus: role.resources.cpus,
            memory_bytes: role.resources.memory_mib << 20,
            shm_bytes: shm_bytes(role),
            disk_bytes: None,
            gpus: role.resources.gpus,
            gpu_model: spec.gpu_model.clone(),
            cards: Vec::new(),
            env: spec.env.clone(),
            command: argv(&role.command, None, str::to_owned),
            links: spec.mounts.iter().map(|mount| (mount.to.clone(), leads_to(mount, site))).collect(),
            aliases: aliases(site),
            code_dir: spec.code_dir.as_ref().map(|folder| path(folder, site)),
            work_dir: role.work_dir.clone(),
            task: true,
            secrets: Vec::new(),
        }
    }

    /// Tells all tasks of a try to begin. Telling one that has begun changes nothing.
    pub(crate) async fn begin(&self, job: &JobRow, tasks: &[TaskRow]) -> Result<(), BeginError> {
        let file = self.store.job_file(&job.id).await?;
        let Some(user) = self.store.user_by_name(&job.user).await? else { return Err(BeginError::NoUser) };
        let cluster = self.clusters.of(&job.cluster);
        let site = self.site(cluster, job.user.as_str(), &user.home, user.group.as_str()).await;
        // The store keeps the spec without its secrets.
        let secrets = jobfile::read(&file, &site).spec.map(|spec| spec.secrets).unwrap_or_default();
        let account = self.values_of(user.id).await?;
        let placement = self.placement(job, tasks, &site);
        let reveal = |text: &str| {
            let of_account = |name: &str| account.get(name).map(String::as_str);
            jobfile::reveal(text, |name| secrets.get(name).map(Secret::reveal).or_else(|| of_account(name)))
        };
        let told = tasks.iter().filter(|task| task.ended.is_none()).map(|task| {
            let me = Me { role: task.role, task: task.task };
            let mut env = variables::environment(&job.spec, &placement, me).unwrap_or_default();
            for value in env.values_mut() {
                *value = reveal(value);
            }
            let output = env.get("PAI_OUTPUT_DIR").filter(|_| makes_output(&job.spec)).map(String::as_str);
            let role = job.spec.roles.get(task.role);
            let command = role.map(|role| argv(&role.command, output, reveal)).unwrap_or_default();
            let again = role.and_then(|role| again(&job.spec, role));
            let begin = Begin { env, command, files: BTreeMap::new(), again };
            self.agents.begin(&task.instance, begin)
        });
        try_join_all(told).await?;
        Ok(())
    }

    fn placement(&self, job: &JobRow, tasks: &[TaskRow], site: &jobfile::Site) -> Placement {
        let mut roles: Vec<Vec<TaskPlace>> = vec![Vec::new(); job.spec.roles.len()];
        for task in tasks {
            if let Some(places) = roles.get_mut(task.role) {
                places.push(TaskPlace {
                    host: task.slug.to_string(),
                    ip: task.address.clone(),
                    container_id: task.instance.to_string(),
                    ports: task.ports.clone(),
                });
            }
        }
        let folder = |source: &Option<Source>| source.as_ref().map(|source| path(source, site));
        let gateway = self.addresses.get().map(|addresses| addresses.console.clone());
        Placement {
            user: job.user.to_string(),
            job: job.name.clone(),
            job_id: job.id.to_string(),
            gateway: gateway.unwrap_or_default(),
            roles,
            folders: Folders {
                data: folder(&job.spec.data_dir),
                code: job.spec.code_dir.is_some().then(|| format!("{DOOR}/{CODE}")),
                output: folder(&job.spec.output_dir),
                work: HOME.to_owned(),
            },
        }
    }
}

/// Why a job could not be told to begin; the next round tries again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BeginError {
    #[error("a task does not answer")]
    Agent(#[from] AgentError),
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    #[error("its user is gone")]
    NoUser,
}

pub(super) fn shm_bytes(role: &Role) -> u64 {
    role.resources.shm_mib.map_or(SHM_DEFAULT_BYTES, |mib| mib << 20).min(role.resources.memory_mib << 20)
}

/// What a task is doing, also when there is no instance of it any more.
pub(crate) fn task_status(task: &TaskRow) -> Status {
    match (&task.machine, &task.ended) {
        (Some((_, status)), _) if !matches!(status, Status::Deleting { .. }) => status.clone(),
        (_, Some(TaskEnd { cause: EndCause::Succeeded, .. })) => Status::Succeeded,
        (_, Some(TaskEnd { cause: EndCause::Stopped, exit_code, .. })) => {
            Status::Stopped { exit_code: *exit_code }
        }
        (_, Some(TaskEnd { exit_code, message, cause })) => {
            Status::Failed { reason: message.clone(), exit_code: *exit_code, cause: Some(*cause) }
        }
        (_, None) => Status::DELETING,
    }
}

/// The program and its arguments. Lines for a shell go to bash where there is one, as their writers expect, and find
/// the folder for their output made.
fn argv(command: &Command, output: Option<&str>, text: impl Fn(&str) -> String) -> Vec<String> {
    const WHICHEVER: &str = r#"if [ -n "$1" ]; then mkdir -p -- "$1"; fi
if [ -n "$PAI_WORK_DIR" ]; then PAI_WORK_DIR=$PWD; export PAI_WORK_DIR; fi
if command -v bash >/dev/null 2>&1; then exec bash -c "$0"; fi; exec sh -c "$0""#;
    match command {
        Command::None => Vec::new(),
        Command::Shell(lines) => {
            let made = output.unwrap_or_default().to_owned();
            vec!["sh".to_owned(), "-c".to_owned(), WHICHEVER.to_owned(), text(lines), made]
        }
        Command::Program(words) => words.iter().map(|word| text(word)).collect(),
    }
}

/// Whether a task finds the folder for its output made: the one that its file names, or OpenPAI's usual one.
fn makes_output(spec: &JobSpec) -> bool {
    spec.output_dir.is_some() || spec.dialect == Dialect::OpenpaiV1
}

/// After which exit codes a task of this role is run again by its own agent; `None` if never.
fn again(spec: &JobSpec, role: &Role) -> Option<Again> {
    let next = |code: u8, out_of_memory| {
        outcome::task_retry(spec.dialect, spec.purpose, role.task_retries, code.into(), out_of_memory)
    };
    let after = |wanted| (0..=u8::MAX).filter(|&code| next(code, false) == wanted).collect();
    (role.task_retries != Retries::UpTo(0)).then(|| Again {
        counted: after(Next::Again { counted: true }),
        most: match role.task_retries {
            Retries::UpTo(most) => Some(most),
            Retries::AfterFailure | Retries::Always => None,
        },
        free: after(Next::Again { counted: false }),
        free_most: outcome::MOST_FREE_RETRIES,
        after_out_of_memory: next(KILLED, true) != Next::Over,
    })
}

/// The ports of each task of a role, fixed before any of them starts.
fn ports(spec: &JobSpec, role: &Role) -> BTreeMap<String, Vec<u16>> {
    let fixed: HashSet<u16> = role.ports.iter().flat_map(Port::numbers).collect();
    let mut free = (PORTS_FROM..=u16::MAX).filter(|number| !fixed.contains(number));
    let mut any = |count: u16| free.by_ref().take(count.into()).collect::<Vec<_>>();
    let mut ports: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for port in &role.ports {
        let numbers = if port.begin_at == 0 { any(port.count) } else { port.numbers().collect() };
        ports.insert(port.label.clone(), numbers);
    }
    if matches!(spec.dialect, Dialect::OpenpaiV1 | Dialect::OpenpaiV2) {
        for label in USUAL_LABELS {
            ports.entry(label.to_owned()).or_insert_with(|| any(1));
        }
    }
    ports
}

/// Where a mount's link leads: to the folder, or to where the same folder cannot be written to.
fn leads_to(mount: &Mount, site: &jobfile::Site) -> String {
    let path = path(&mount.from, site);
    if mount.read_only { format!("{READ_ONLY}{path}") } else { path }
}

/// The paths that only old files and their scripts know, and where each leads.
fn aliases(site: &jobfile::Site) -> BTreeMap<String, String> {
    let lead = site
        .storages
        .iter()
        .flatten()
        .map(|one| (one.path.clone(), below(root(&one.name, site), &one.below)));
    // A storage leads to itself.
    lead.filter(|(at, to)| at != to).collect()
}

/// Where a folder is in a container.
fn path(source: &Source, site: &jobfile::Site) -> String {
    match source {
        Source::Home(path) => below(HOME, path),
        Source::Storage { name, path } => below(root(name, site), path),
        Source::Path(path) => path.clone(),
    }
}

/// Where a storage is; its aliases come after it.
fn root<'a>(name: &str, site: &'a jobfile::Site) -> &'a str {
    let root = site.storages.iter().flatten().find(|known| known.name == name);
    root.map_or(HOME, |known| &known.path)
}

fn below(root: &str, path: &str) -> String {
    if path.is_empty() { root.to_owned() } else { format!("{}/{path}", root.trim_end_matches('/')) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_run_again_after_what_another_try_may_change() {
        let rule = |count: &str| {
            let file = format!(
                "{{\"jobName\": \"a\", \"image\": \"b\", \"taskRoles\": [
                   {{\"name\": \"w\", \"command\": \"c\", \"taskRetryCount\": {count}}}]}}"
            );
            let spec = jobfile::read(file.as_bytes(), &jobfile::Site::default()).spec.unwrap();
            again(&spec, &spec.roles[0])
        };
        assert_eq!(rule("0"), None);
        let some = rule("2").unwrap();
        assert_eq!((some.most, some.after_out_of_memory), (Some(2), false));
        assert!(some.counted.contains(&1) && some.free.contains(&137));
        assert!([0, 141, 254].iter().all(|code| !some.counted.contains(code) && !some.free.contains(code)));
        let failures = rule("-1").unwrap();
        assert_eq!((failures.most, failures.counted.len(), failures.after_out_of_memory), (None, 255, true));
        assert!(!failures.counted.contains(&0));
        assert!(rule("-2").unwrap().counted.contains(&0), "a service goes on after success too");
    }

    #[test]
    fn ports_are_those_asked_for_or_any_that_differ() {
        let file = br#"{"jobName": "a", "image": "b", "taskRoles": [{"name": "w", "command": "c", "portList": [
            {"label": "web", "beginAt": 0, "portNumber": 2}, {"label": "rpc", "beginAt": 7000, "portNumber": 2},
            {"label": "own", "beginAt": 20001, "portNumber": 1}]}]}"#;
        let spec = jobfile::read(file, &jobfile::Site::default()).spec.unwrap();
        let ports = ports(&spec, &spec.roles[0]);
        assert_eq!(ports["rpc"], [7000, 7001]);
        assert_eq!(ports["web"], [20_000, 20_002], "any but those that are asked for by number");
        assert_eq!((ports["http"].len(), ports["ssh"].len()), (1, 1));
        assert_ne!(ports["http"], ports["ssh"]);
    }
}
