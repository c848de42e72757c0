//! `berth submit`.

use std::{env, path::PathBuf, time::Duration};

use clap::Args;
use gateway_api::{Job, Status as State, client::LogPart, job::SubmitJob};
use jobfile::{
    Dialect, JobSpec, Level, Site,
    spec::{Command, Completion, Purpose, Resources, Retries, Role},
};

use super::{Session, convert, create, jobs, lifecycle, logs};
use crate::{
    amount::{self, Amount},
    failure::Status,
    output,
};

#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// A job file, or the address of one (`https://…`); `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "command")]
    file: Option<PathBuf>,
    /// Its name, instead of the file's own: letters, digits, `-`, `.`, `_` and `~`
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The image to start from [default: the site's own]
    #[arg(long, value_name = "REF", conflicts_with = "file")]
    image: Option<String>,
    /// Processors
    #[arg(long, value_name = "N", default_value = "1", value_parser = amount::cpus, allow_hyphen_values = true, conflicts_with = "file")]
    cpus: Amount<f64>,
    /// Memory, such as `512M`, `8G` or `1.5G`
    #[arg(short, long, value_name = "SIZE", default_value = "2G", value_parser = amount::size, allow_hyphen_values = true, conflicts_with = "file")]
    memory: Amount<u64>,
    /// Shared memory (/dev/shm) [default: the site's own]
    #[arg(long, alias = "shm-size", value_name = "SIZE", value_parser = amount::size, allow_hyphen_values = true, conflicts_with = "file")]
    shm: Option<Amount<u64>>,
    /// Graphics processors
    #[arg(long, value_name = "N", default_value = "0", value_parser = amount::count::<u32>, allow_hyphen_values = true, conflicts_with = "file")]
    gpus: Amount<u32>,
    /// The model of graphics processor
    #[arg(long, value_name = "MODEL", conflicts_with = "file")]
    gpu_type: Option<String>,
    /// The cluster to run it on [default: the file's own, or the site's first]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The pool to take room from, instead of the file's own
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Set a variable in its environment; without `=VALUE` it is taken from this shell
    #[arg(short, long, value_name = "NAME[=VALUE]", conflicts_with = "file")]
    env: Vec<String>,
    /// How long it may run, such as `90s`, `30m` or `12h`
    #[arg(long, value_name = "TIME", value_parser = jobs::parse_time, conflicts_with = "file")]
    time_limit: Option<Duration>,
    /// From 1 to 9, 9 first
    #[arg(long, value_name = "N", conflicts_with = "file")]
    priority: Option<u8>,
    /// How often to try again after a failure
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "file")]
    retries: u32,
    /// Keep its files if it fails, to look at them
    #[arg(long)]
    keep_on_failure: bool,
    /// Say what would become of it, and submit nothing
    #[arg(long)]
    dry_run: bool,
    /// Print what its first task writes, until it has ended
    #[arg(short, long)]
    follow: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    wait: lifecycle::Wait,
    /// What to run, instead of a file
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) async fn submit(arguments: Submit, session: &Session) -> anyhow::Result<Status> {
    let (shown, file) = if let Some(path) = &arguments.file {
        let name = path.display().to_string();
        let text = convert::text_of(&name, session.words).await?;
        (name, text)
    } else {
        let image = match &arguments.image {
            Some(image) => Some(image.clone()),
            None => default_image(session).await?,
        };
        (String::new(), jobfile::write(&spec(&arguments, image, session)?))
    };
    if !shown.is_empty() {
        let reading = jobfile::read(file.as_bytes(), &Site::default());
        let is_wrong = reading.notes.iter().any(|note| note.level == Level::Error);
        // What is no mistake the gateway says too, and knows more of it.
        if is_wrong || arguments.dry_run {
            for line in convert::notes(&shown, &reading, session.words, output::colours()) {
                output::say(&line);
            }
        }
        if is_wrong {
            return Ok(Status::FAILED);
        }
    }
    let keep_on_failure = arguments.keep_on_failure.then_some(true);
    let wanted = SubmitJob {
        file,
        name: arguments.name.clone(),
        cluster: arguments.cluster.clone(),
        keep_on_failure,
        pool: arguments.pool.clone(),
    };
    if arguments.dry_run {
        return create::say_dry_run(&session.client.dry_run_job(&wanted).await?, arguments.json, session);
    }
    let job = session.client.submit_job(&wanted).await?;
    for line in convert::site_notes(&shown, &job.warnings, session.words, output::colours()) {
        output::say(&line);
    }
    if !(arguments.wait.wait || arguments.follow) {
        output::say(&session.words.submitted(&job));
        if arguments.json {
            output::json(&job)?;
        } else {
            output::data(&job.name)?;
        }
        return Ok(Status::DONE);
    }
    if arguments.follow {
        logs::follow_tries(&job.id, &LogPart::default(), session).await?;
    } else {
        output::data(&job.name)?;
    }
    let over = jobs::until_over(&job, arguments.wait.job_limit(), arguments.follow, session).await?;
    if arguments.json {
        output::json(&over)?;
    }
    Ok(jobs::exit_status(&over))
}

/// The site's own: a job file says which image it wants.
async fn default_image(session: &Session) -> anyhow::Result<Option<String>> {
    let images = session.client.images().await?;
    Ok(images.into_iter().find(|image| image.default).map(|image| image.reference))
}

/// A job of one task, from the command line.
fn spec(arguments: &Submit, image: Option<String>, session: &Session) -> anyhow::Result<JobSpec> {
    let env = create::environment(&arguments.env, session.words, |name| env::var(name).ok())?;
    let role = Role {
        name: "main".to_owned(),
        tasks: 1,
        image,
        command: Command::Program(arguments.command.clone()),
        work_dir: None,
        resources: Resources {
            cpus: arguments.cpus.of("cpus")?,
            memory_mib: arguments.memory.of("memory_bytes")?.div_ceil(1 << 20),
            shm_mib: amount::given(arguments.shm, "shm_bytes")?.map(|shm| shm.div_ceil(1 << 20)),
            gpus: arguments.gpus.of("gpus")?,
        },
        ports: Vec::new(),
        completion: Completion { min_failed: Some(1), min_succeeded: None },
        task_retries: Retries::UpTo(0),
    };
    Ok(JobSpec {
        dialect: Dialect::Berth,
        name: arguments.name.clone(),
        description: String::new(),
        purpose: if role.command.only_waits() { Purpose::Interactive } else { Purpose::Batch },
        share: None,
        workspace: None,
        cluster: None,
        pool: None,
        gpu_model: arguments.gpu_type.clone(),
        priority: arguments.priority,
        retries: Retries::UpTo(arguments.retries),
        time_limit: arguments.time_limit,
        idle_timeout: None,
        keep_on_failure: arguments.keep_on_failure,
        framework: None,
        env,
        data_dir: None,
        code_dir: None,
        output_dir: None,
        mounts: Vec::new(),
        roles: vec![role],
        kept: std::collections::BTreeMap::new(),
        secrets: std::collections::BTreeMap::new(),
        registry_login: None,
    })
}

/// Whether a job did what it should, in the way of exit codes.
pub(crate) fn succeeded(job: &Job) -> bool {
    job.status == State::Succeeded
}
