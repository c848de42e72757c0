//! `berth create`.

use std::{collections::BTreeMap, env};

use clap::Args;
use gateway_api::{CreateInstance, job::DryRun, secret::UseSecret};

use super::{Session, lifecycle};
use crate::{
    amount::{self, Amount},
    failure::{Said, Status},
    output,
    words::Words,
};

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Its name: letters, digits and underscores, at most 27
    name: String,
    /// The image to start from, such as `python:3.12` [default: the site's own]
    #[arg(long, value_name = "REF")]
    image: Option<String>,
    /// Processors
    #[arg(long, value_name = "N", default_value = "1", value_parser = amount::cpus, allow_hyphen_values = true)]
    cpus: Amount<f64>,
    /// Memory, such as `512M`, `8G` or `1.5G`
    #[arg(short, long, value_name = "SIZE", default_value = "2G", value_parser = amount::size, allow_hyphen_values = true)]
    memory: Amount<u64>,
    /// Shared memory (/dev/shm) [default: the site's own]
    #[arg(long, alias = "shm-size", value_name = "SIZE", value_parser = amount::size, allow_hyphen_values = true)]
    shm: Option<Amount<u64>>,
    /// Graphics processors
    #[arg(long, value_name = "N", default_value = "0", value_parser = amount::count::<u32>, allow_hyphen_values = true)]
    gpus: Amount<u32>,
    /// The model of graphics processor, such as `3090`
    #[arg(long, value_name = "MODEL")]
    gpu_type: Option<String>,
    /// The cluster to make it on [default: the site's first]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The pool to take room from; `berth nodes` shows them
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Set a variable in its environment; without `=VALUE` it is taken from this shell
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Use a secret: as the variable of its name or of another, or as the file /.berth/secrets/NAME
    #[arg(long, value_name = "NAME[=VARIABLE|:file]")]
    secret: Vec<String>,
    /// SSH starts it when it is stopped, without asking
    #[arg(long)]
    auto_start: bool,
    /// Say what would become of it, and make nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    wait: lifecycle::Wait,
    /// What to run; the instance ends when this ends [default: nothing, it stays until stopped]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) async fn create(arguments: Create, session: &Session) -> anyhow::Result<Status> {
    let body = CreateInstance {
        name: arguments.name,
        image: arguments.image,
        cpus: arguments.cpus.of("cpus")?,
        memory_bytes: arguments.memory.of("memory_bytes")?,
        shm_bytes: amount::given(arguments.shm, "shm_bytes")?,
        gpus: arguments.gpus.of("gpus")?,
        gpu_model: arguments.gpu_type,
        cluster: arguments.cluster,
        pool: arguments.pool,
        env: environment(&arguments.env, session.words, |name| env::var(name).ok())?,
        command: arguments.command,
        auto_start: arguments.auto_start,
        secrets: arguments.secret.iter().map(|text| used_secret(text)).collect(),
    };
    if arguments.dry_run {
        return say_dry_run(&session.client.dry_run_instance(&body).await?, arguments.json, session);
    }
    let mut instance = session.client.create_instance(&body).await?;
    if arguments.wait.wait {
        instance = arguments.wait.until_at_rest(session, instance).await?;
    } else {
        output::say(&session.words.being_made(instance.name.as_str()));
    }
    if arguments.json {
        output::json(&instance)?;
    } else {
        output::data(instance.name.as_str())?;
    }
    Ok(Status::DONE)
}

/// `NAME`, `NAME=VARIABLE` or `NAME:file`.
fn used_secret(text: &str) -> UseSecret {
    let (name, env, file) = match (text.split_once('='), text.strip_suffix(":file")) {
        (Some((name, variable)), _) => (name, Some(variable.to_owned()), false),
        (None, Some(name)) => (name, None, true),
        (None, None) => (text, None, false),
    };
    UseSecret { name: name.to_owned(), env, file }
}

/// What would become of a request.
pub(super) fn say_dry_run(answer: &DryRun, json: bool, session: &Session) -> anyhow::Result<Status> {
    if json {
        output::json(answer)?;
    } else {
        output::data(&session.words.dry_run(answer))?;
    }
    Ok(Status::DONE)
}

/// The variables of `--env`. `NAME` alone asks `shell`.
pub(crate) fn environment(
    given: &[String],
    words: Words,
    shell: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<BTreeMap<String, String>> {
    given
        .iter()
        .map(|variable| {
            if let Some((name, value)) = variable.split_once('=') {
                return Ok((name.to_owned(), value.to_owned()));
            }
            let value = shell(variable).ok_or_else(|| Said {
                what: words.no_variable(variable),
                hint: Some(words.hint_variable()),
            })?;
            Ok((variable.clone(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn a_secret_is_a_variable_or_a_file() {
        let used = |name: &str, env: Option<&str>, file| UseSecret {
            name: name.to_owned(),
            env: env.map(str::to_owned),
            file,
        };
        assert_eq!(used_secret("HF_TOKEN"), used("HF_TOKEN", None, false));
        assert_eq!(used_secret("hf=HF_TOKEN"), used("hf", Some("HF_TOKEN"), false));
        assert_eq!(used_secret("key.pem:file"), used("key.pem", None, true));
    }

    #[test]
    fn variables_come_from_the_line_or_the_shell() {
        let read = |given: &[&str]| {
            let given: Vec<_> = given.iter().map(|&text| text.to_owned()).collect();
            environment(&given, Words::new(Language::English), |name| {
                (name == "HOME").then(|| "/root".to_owned())
            })
        };
        let expected = [("A", "1=2"), ("B", ""), ("HOME", "/root")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read(&["A=1=2", "B=", "HOME"]).unwrap(), expected.into());
        assert!(read(&["NOWHERE"]).is_err());
    }
}
