//! `berth ls` and `show`: what there is.

use clap::Args;
use gateway_api::{Code, Instance};
use jiff::Timestamp;

use super::Session;
use crate::{
    failure::Status,
    output, size,
    words::{Title, Words},
};

#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// Print JSON
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    /// Print names only; ids with `--all`
    #[arg(short, long)]
    quiet: bool,
    /// Not only yours but all that you may see: the group's for its leader, everyone's for an admin
    #[arg(short, long)]
    all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The instance or the job
    name: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// For a job: print its file as it was submitted
    #[arg(long, conflicts_with = "json")]
    pub(super) file: bool,
    /// For a job: print what its file became, as Berth's own YAML
    #[arg(long, conflicts_with_all = ["json", "file"])]
    pub(super) spec: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Json {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn ls(arguments: &Ls, session: &Session) -> anyhow::Result<Status> {
    let instances = if arguments.all {
        session.client.visible_instances().await?
    } else {
        session.client.instances().await?
    };
    if arguments.json {
        output::json(&instances)?;
    } else if arguments.quiet {
        for instance in &instances {
            // A name says nothing to those who have not given it.
            output::data(if arguments.all { instance.id.as_str() } else { instance.name.as_str() })?;
        }
    } else if arguments.all {
        output::data(&everyones_table(&instances, session.words, Timestamp::now()))?;
        say_held_up(&instances, session.words);
    } else if instances.is_empty() {
        output::say(session.words.no_instances());
    } else {
        output::data(&instance_table(&instances, session.words, Timestamp::now()))?;
        say_held_up(&instances, session.words);
    }
    Ok(Status::DONE)
}

fn say_held_up(instances: &[Instance], words: Words) {
    for why in words.held_up(instances.iter().map(|instance| &instance.status)) {
        output::say(&why);
    }
}

pub(crate) async fn show(arguments: &Show, session: &Session) -> anyhow::Result<Status> {
    let instance = match session.client.instance(&arguments.name).await {
        Ok(instance) if !(arguments.file || arguments.spec) => instance,
        Err(error) if error.code() != Some(Code::NotFound) => {
            return Err(session.explain(&arguments.name, error).await);
        }
        found => {
            if let Ok(job) = session.client.job(&arguments.name).await {
                return super::jobs::show(&job, arguments, session).await;
            }
            match found {
                Ok(instance) => instance,
                Err(error) => return Err(session.explain(&arguments.name, error).await),
            }
        }
    };
    if arguments.json {
        output::json(&instance)?;
    } else {
        output::data(&instance_details(&instance, session.words))?;
    }
    Ok(Status::DONE)
}

fn instance_table(instances: &[Instance], words: Words, now: Timestamp) -> String {
    let titles =
        [Title::Name, Title::State, Title::Image, Title::Cpus, Title::Memory, Title::Gpus, Title::Age];
    let more = output::cluster_column(instances.iter().map(|instance| instance.cluster.as_str()));
    let row = |instance: &Instance| {
        [
            instance.name.to_string(),
            words.state(&instance.status).to_owned(),
            instance.image.clone(),
            instance.cpus.to_string(),
            size::display(instance.memory_bytes),
            instance.gpus.to_string(),
            output::age(instance.created_at, now),
        ]
    };
    let rows = instances.iter().map(|one| (row(one), more.iter().map(|_| one.cluster.clone()).collect()));
    output::table_with(words, titles, rows, more)
}

/// With the owner and the id, by which others reach an instance.
fn everyones_table(instances: &[Instance], words: Words, now: Timestamp) -> String {
    let titles = [
        Title::User,
        Title::Name,
        Title::State,
        Title::Cpus,
        Title::Memory,
        Title::Gpus,
        Title::Age,
        Title::Id,
    ];
    let more = output::cluster_column(instances.iter().map(|instance| instance.cluster.as_str()));
    let row = |instance: &Instance| {
        [
            instance.user.to_string(),
            instance.name.to_string(),
            words.state(&instance.status).to_owned(),
            instance.cpus.to_string(),
            size::display(instance.memory_bytes),
            instance.gpus.to_string(),
            output::age(instance.created_at, now),
            instance.id.to_string(),
        ]
    };
    let rows = instances.iter().map(|one| (row(one), more.iter().map(|_| one.cluster.clone()).collect()));
    output::table_with(words, titles, rows, more)
}

fn instance_details(instance: &Instance, words: Words) -> String {
    let variable = |(name, value): (&String, &String)| format!("{name}={value}");
    let mut rows = vec![
        (Title::Name, instance.name.to_string()),
        (Title::State, words.instance_state(instance)),
        (Title::Image, instance.image.clone()),
        (Title::Cpus, instance.cpus.to_string()),
        (Title::Memory, size::display(instance.memory_bytes)),
        (Title::SharedMemory, size::display(instance.shm_bytes)),
        (Title::Gpus, instance.gpus.to_string()),
        (Title::Cluster, instance.cluster.clone()),
    ];
    rows.extend(instance.pool.clone().map(|pool| (Title::Pools, pool)));
    if !instance.env.is_empty() {
        let all: Vec<_> = instance.env.iter().map(variable).collect();
        rows.push((Title::Environment, all.join("\n")));
    }
    if !instance.command.is_empty() {
        rows.push((Title::Command, command_line(&instance.command)));
    }
    rows.extend([
        (Title::User, instance.user.to_string()),
        (Title::Created, format!("{:.0}", instance.created_at)),
        (Title::Id, instance.id.to_string()),
    ]);
    output::details(words, rows)
}

/// A command as one would type it.
fn command_line(argv: &[String]) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter);
    let quoted = |part: &String| {
        if !part.is_empty() && part.chars().all(plain) {
            part.clone()
        } else {
            format!("'{}'", part.replace('\'', r"'\''"))
        }
    };
    argv.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use gateway_api::{
        CreateInstance, Goal, InstanceId,
        image::Image,
        instance::{HeldUp, HeldUpReason, Status as State, WaitReason},
        job::{QueuePlace, QueueReason},
    };

    use super::*;
    use crate::words::Language;

    fn instance(name: &str, status: State) -> Instance {
        let create: CreateInstance = serde_json::from_value(serde_json::json!({
            "name": name, "cpus": 1.5, "memory_bytes": 8u64 << 30, "gpus": 2,
            "env": {"SEED": "7", "WORDS": "a b"}, "command": ["python", "train.py", "--note", "it's on"],
        }))
        .unwrap();
        let name: gateway_api::InstanceName = name.parse().unwrap();
        Instance {
            id: "ins_0190f2c3a1b27cc09d3e5f60718293a4".parse::<InstanceId>().unwrap(),
            slug: name.slug(),
            name,
            user: "alice".parse().unwrap(),
            image: "localhost/berth/base:12".to_owned(),
            cpus: create.cpus,
            memory_bytes: create.memory_bytes,
            shm_bytes: 64 << 20,
            gpus: create.gpus,
            gpu_model: create.gpu_model,
            cluster: "default".to_owned(),
            pool: None,
            cards: Vec::new(),
            env: create.env,
            command: create.command,
            secrets: create.secrets,
            auto_start: false,
            goal: Goal::Running,
            queue: None,
            job: None,
            actions: status.actions(),
            status,
            start_times: gateway_api::instance::StartTimes::default(),
            created_at: "2026-01-31T10:00:00.5Z".parse().unwrap(),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "as it stands in a status")]
    fn held_up(reason: HeldUpReason) -> Option<HeldUp> {
        Some(HeldUp { reason, message: String::new() })
    }

    fn states() -> Vec<State> {
        let since = "2026-01-31T11:00:00.25Z".parse().unwrap();
        vec![
            State::Waiting { reason: WaitReason::StartingUp, message: String::new() },
            State::Waiting { reason: WaitReason::ClusterUnreachable, message: String::new() },
            State::Waiting { reason: WaitReason::EngineUnreachable, message: String::new() },
            State::Pulling { done_bytes: 3 << 20, total_bytes: None },
            State::Pulling { done_bytes: 1 << 30, total_bytes: Some(3 << 30) },
            State::Starting,
            State::Running { since },
            State::STOPPING,
            State::Stopped { exit_code: None },
            State::Stopped { exit_code: Some(143) },
            State::Succeeded,
            State::Failed {
                reason: "the image is for another machine".to_owned(),
                exit_code: Some(1),
                cause: None,
            },
            State::DELETING,
            State::Stopping { held_up: held_up(HeldUpReason::EngineUnreachable) },
            State::Stopping { held_up: held_up(HeldUpReason::Retrying) },
            State::Deleting { held_up: held_up(HeldUpReason::ClusterUnreachable) },
        ]
    }

    #[test]
    fn tables_in_both_languages() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let mut text = Vec::new();
        for words in [Language::English, Language::Chinese].map(Words::new) {
            let all: Vec<_> =
                (1..).zip(states()).map(|(n, state)| instance(&format!("train_{n}"), state)).collect();
            text.push(instance_table(&all, words, now));
            text.extend(all.iter().map(|instance| words.progress(instance)));
            text.extend(words.held_up(all.iter().map(|instance| &instance.status)));
            text.push(instance_details(&all[6], words));
            let waiting = State::Waiting { reason: WaitReason::Queued, message: String::new() };
            let params = [("resource", "gpus"), ("wanted", "2"), ("free", "1")];
            let place = QueuePlace {
                position: 3,
                reason: QueueReason::NoRoom,
                params: params.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
                starts_by: None,
                starts_now_with_gpus: Some(1),
            };
            let waiting = Instance { queue: Some(place), ..instance("late", waiting) };
            text.push(instance_details(&waiting, words));
            text.push(words.progress_in_short(&waiting));
            let image = |reference: &str, default| Image {
                reference: reference.to_owned(),
                size_bytes: 1_234_567_890,
                created_at: "2026-01-01T00:00:00Z".parse().unwrap(),
                default,
                saved: None,
            };
            let saved = super::super::images::tests::saved();
            let images =
                [image("localhost/berth/base:12", true), image("localhost/berth/lab:12", false), saved];
            text.push(super::super::images::table(&images, words, now));
        }
        insta::assert_snapshot!(text.join("\n\n"));
    }
}
