//! Jobs as users see them.

use gateway_api::{
    Job, Status,
    job::{JobAction, JobRole, JobTask},
};
use jobfile::spec::{Command, Purpose, Role};

use super::{App, Caller, Error, JobRow, StoreError, policy};
use crate::store::TaskRow;

impl App {
    /// As one sees it who may be somebody else: only what they may do, and not what may be secret.
    pub(super) async fn job_view(&self, caller: &Caller, row: JobRow) -> Result<Job, Error> {
        let tasks = self.store.tasks_of(&row.id, row.attempt).await?;
        Ok(self.job_view_with(caller, row, tasks))
    }

    pub(super) fn job_view_with(&self, caller: &Caller, row: JobRow, tasks: Vec<TaskRow>) -> Job {
        let may: Vec<_> = JobAction::ALL
            .into_iter()
            .filter(|&action| policy::act_on_job(caller, &row, action).is_ok())
            .collect();
        let owner = row.user_id == caller.user.id;
        let mut job = self.job_with(row, tasks);
        job.actions.retain(|action| may.contains(action));
        if !owner {
            job.roles.iter_mut().for_each(|role| role.command.clear());
            job.ended.iter_mut().for_each(|end| end.last_lines.clear());
        }
        job
    }

    /// As its owner sees it.
    pub(crate) async fn job_as_is(&self, row: JobRow) -> Result<Job, StoreError> {
        let tasks = self.store.tasks_of(&row.id, row.attempt).await?;
        Ok(self.job_with(row, tasks))
    }

    fn job_with(&self, row: JobRow, tasks: Vec<TaskRow>) -> Job {
        let waits = matches!(row.status, Status::Waiting { .. });
        let status = self.clusters.of(&row.cluster).seen(row.status);
        let spec = row.spec;
        Job {
            queue: waits.then(|| self.places.of(row.id.as_str())).flatten(),
            actions: JobAction::ALL.into_iter().filter(|action| action.fits(&status)).collect(),
            tasks: tasks.into_iter().filter_map(|task| task_view(&spec.roles, task)).collect(),
            roles: spec.roles.iter().map(|role| self.role_view(role)).collect(),
            id: row.id,
            name: row.name,
            slug: row.slug,
            user: row.user,
            description: spec.description,
            dialect: spec.dialect.word().to_owned(),
            interactive: spec.purpose == Purpose::Interactive,
            priority: row.priority,
            share: spec.share,
            workspace: spec.workspace,
            cluster: row.cluster,
            pool: spec.pool,
            time_limit_seconds: row.time_limit_seconds,
            keep_on_failure: row.keep,
            goal: row.goal,
            status,
            ended: row.ended,
            attempt: row.attempt,
            warnings: row.warnings,
            created_at: row.created_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
            kept_until: row.kept_until,
        }
    }

    fn role_view(&self, role: &Role) -> JobRole {
        JobRole {
            name: role.name.clone(),
            tasks: role.tasks,
            image: self.shown_image(role.image.as_ref().unwrap_or(&self.config.default_image)),
            command: match &role.command {
                Command::None => String::new(),
                Command::Shell(text) => text.clone(),
                Command::Program(words) => words.join(" "),
            },
            cpus: role.resources.cpus,
            memory_bytes: role.resources.memory_mib << 20,
            shm_bytes: super::begin::shm_bytes(role),
            gpus: role.resources.gpus,
        }
    }
}

fn task_view(roles: &[Role], task: TaskRow) -> Option<JobTask> {
    let status = super::begin::task_status(&task);
    Some(JobTask {
        role: roles.get(task.role)?.name.clone(),
        index: u32::try_from(task.task).ok()?,
        name: task.slug.to_string(),
        instance: task.machine.is_some().then_some(task.instance),
        status,
        end: task.ended,
        address: task.address,
        ports: task.ports,
        cards: task.cards,
    })
}
