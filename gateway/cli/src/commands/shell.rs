//! `berth shell`: a job to work in, as a file describes it, and a shell in its one task.

use std::path::PathBuf;

use clap::Args;
use gateway_api::{Code, Job, Status as State, convert::ConvertJob, job::SubmitJob};
use jobfile::{
    JobSpec, Site,
    spec::{Command, Role},
};

use super::{Session, convert, jobs, lifecycle::JOB_LIMIT, ssh};
use crate::{
    amount::{self, Amount},
    failure::{Said, Status},
    output,
    words::Words,
};

/// Names that are tried when none is given.
const NAMES_TRIED: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct Shell {
    /// What is to be worked in: a Determined configuration, or a job file without a command; `-` is standard input
    #[arg(long, value_name = "FILE")]
    config_file: PathBuf,
    /// Its name [default: the file's own, or `shell`]
    #[arg(long)]
    name: Option<String>,
    /// Processors, whatever the file says
    #[arg(long, value_name = "N", value_parser = amount::cpus, allow_hyphen_values = true)]
    cpus: Option<Amount<f64>>,
    /// Memory, whatever the file says
    #[arg(short, long, value_name = "SIZE", value_parser = amount::size, allow_hyphen_values = true)]
    memory: Option<Amount<u64>>,
    /// Graphics processors, whatever the file says
    #[arg(long, value_name = "N", value_parser = amount::count::<u32>, allow_hyphen_values = true)]
    gpus: Option<Amount<u32>>,
    /// The cluster to run it on [default: the file's own, or the site's first]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The pool to take room from, instead of the file's own
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// A command to run instead of the shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) async fn shell(arguments: Shell, session: &Session) -> anyhow::Result<Status> {
    let words = session.words;
    let path = arguments.config_file.display().to_string();
    let file = convert::text_of(&path, words).await?;
    let converted = session.client.convert_job(&ConvertJob { file: file.clone() }).await?;
    let read = converted.file.map(|file| jobfile::read(file.as_bytes(), &Site::default()));
    let Some(mut spec) = read.and_then(|reading| reading.spec) else {
        for line in convert::site_notes(&path, &converted.notes, words, output::colours()) {
            output::say(&line);
        }
        return Ok(Status::FAILED);
    };
    let name = arguments.name.clone().or_else(|| spec.name.clone());
    let changed = change(one_task(&mut spec, words)?, &arguments)?;
    let wanted = SubmitJob {
        // As it is, where nothing of it is changed.
        file: if changed { jobfile::write(&spec) } else { file },
        name: Some(name.unwrap_or_else(|| "shell".to_owned())),
        cluster: arguments.cluster.clone(),
        keep_on_failure: None,
        pool: arguments.pool.clone(),
    };
    let job = submit(wanted, arguments.name.is_some(), session).await?;
    for line in convert::site_notes(&path, &job.warnings, words, output::colours()) {
        output::say(&line);
    }
    output::say(&words.shell_made(&job.name));
    let runs = |job: &Job| matches!(job.status, State::Running { .. }) || job.is_over();
    let job = jobs::until(&job, JOB_LIMIT, runs, session).await?;
    match job.tasks.first() {
        Some(task) if !job.is_over() => ssh::enter(&task.name, &arguments.command, session).await,
        Some(_) | None => {
            output::say(&output::printable(&words.job_progress(&job)));
            Ok(Status::FAILED)
        }
    }
}

/// The role of a file that is one task without a command.
fn one_task(spec: &mut JobSpec, words: Words) -> Result<&mut Role, Said> {
    let refused = |what: String| Said { what, hint: Some(words.hint_shell_file()) };
    let [role] = &mut spec.roles[..] else { return Err(refused(words.shell_of_many())) };
    if role.tasks != 1 {
        return Err(refused(words.shell_of_many()));
    }
    if role.command != Command::None {
        return Err(refused(words.shell_with_command()));
    }
    Ok(role)
}

/// Whether the command line asks for something else than the file.
fn change(role: &mut Role, arguments: &Shell) -> anyhow::Result<bool> {
    let before = role.resources;
    if let Some(cpus) = amount::given(arguments.cpus, "cpus")? {
        role.resources.cpus = cpus;
    }
    if let Some(memory) = amount::given(arguments.memory, "memory_bytes")? {
        role.resources.memory_mib = memory.div_ceil(1 << 20);
        // Shared memory is part of it.
        role.resources.shm_mib = role.resources.shm_mib.map(|shm| shm.min(role.resources.memory_mib));
    }
    if let Some(gpus) = amount::given(arguments.gpus, "gpus")? {
        role.resources.gpus = gpus;
    }
    Ok(role.resources != before)
}

/// Submits it; a name that nobody chose is counted up until one is free.
async fn submit(wanted: SubmitJob, chosen: bool, session: &Session) -> anyhow::Result<Job> {
    let first = wanted.name.clone().unwrap_or_default();
    let mut wanted = wanted;
    let mut tried = 1;
    loop {
        match session.client.submit_job(&wanted).await {
            Err(error)
                if matches!(error.code(), Some(Code::AlreadyExists | Code::NameTaken))
                    && !chosen
                    && tried < NAMES_TRIED =>
            {
                tried += 1;
                wanted.name = Some(format!("{first}-{tried}"));
            }
            result => return Ok(result?),
        }
    }
}
