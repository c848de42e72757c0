//! `berth shell`: an instance to work in, as a file describes it, and a shell in it.

use std::path::PathBuf;

use clap::Args;
use gateway_api::{Code, CreateInstance, Instance};
use jobfile::spec::{Command, JobSpec};

use super::{Session, convert, lifecycle::Wait, ssh};
use crate::{
    amount::{self, Amount},
    failure::{Said, Status},
    output,
};

/// Names that are tried when none is given.
const NAMES_TRIED: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct Shell {
    /// What the instance is to be: a Determined configuration, or a job file without a command; `-` is standard input
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
    /// The cluster to make it on [default: the file's own, or the site's first]
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
    let Some(spec) = convert::read(&arguments.config_file, session.words).await?.spec else {
        return Ok(Status::FAILED);
    };
    let wanted = instance_of(&spec, &arguments, session)?;
    let instance = create(wanted, arguments.name.is_some(), session).await?;
    output::say(&session.words.shell_made(instance.name.as_str()));
    Wait::for_long().until_at_rest(session, instance.clone()).await?;
    ssh::enter(instance.slug.as_str(), &arguments.command, session).await
}

/// The file's one task as an instance without a command.
fn instance_of(spec: &JobSpec, arguments: &Shell, session: &Session) -> anyhow::Result<CreateInstance> {
    let words = session.words;
    let refused = |what: String| Said { what, hint: Some(words.hint_shell_file()) };
    let [role] = &spec.roles[..] else { return Err(refused(words.shell_of_many()).into()) };
    if role.tasks != 1 {
        return Err(refused(words.shell_of_many()).into());
    }
    if role.command != Command::None {
        return Err(refused(words.shell_with_command()).into());
    }
    for mount in &spec.mounts {
        output::say(&words.shell_without_mount(&mount.to));
    }
    Ok(CreateInstance {
        name: arguments.name.clone().or_else(|| spec.name.clone()).unwrap_or_else(|| "shell".to_owned()),
        image: role.image.clone(),
        cpus: amount::given(arguments.cpus, "cpus")?.unwrap_or(role.resources.cpus),
        memory_bytes: amount::given(arguments.memory, "memory_bytes")?
            .unwrap_or(role.resources.memory_mib << 20),
        shm_bytes: role.resources.shm_mib.map(|mib| mib << 20),
        gpus: amount::given(arguments.gpus, "gpus")?.unwrap_or(role.resources.gpus),
        gpu_model: spec.gpu_model.clone(),
        cluster: arguments.cluster.clone().or_else(|| spec.cluster.clone()),
        pool: arguments.pool.clone().or_else(|| spec.pool.clone()),
        env: spec.env.clone(),
        command: Vec::new(),
        auto_start: false,
        secrets: Vec::new(),
    })
}

/// Makes it; a name that nobody chose is counted up until one is free.
async fn create(wanted: CreateInstance, chosen: bool, session: &Session) -> anyhow::Result<Instance> {
    let first = wanted.name.clone();
    let mut wanted = wanted;
    let mut tried = 1;
    loop {
        match session.client.create_instance(&wanted).await {
            Err(error) if error.code() == Some(Code::NameTaken) && !chosen && tried < NAMES_TRIED => {
                tried += 1;
                wanted.name = format!("{first}_{tried}");
            }
            result => return Ok(result?),
        }
    }
}
