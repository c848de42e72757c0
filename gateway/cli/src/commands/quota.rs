//! `berth quota`.

use std::{collections::BTreeMap, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use gateway_api::quota::{Quota, QuotaLimits, QuotaRaise};
use jiff::Timestamp;

use super::{Session, jobs::parse_time};
use crate::{
    amount::{self, Amount},
    failure::Status,
    output, size,
    words::{Title, Words},
};

#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    /// Show what a user or a group may hold at a time
    Show(Whose),
    /// Set what a user or a group may hold at a time; what is left out has no limit
    Set(Set),
}

#[derive(Debug, Args)]
pub(crate) struct Whose {
    kind: Kind,
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    User,
    Group,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    #[command(flatten)]
    whose: Whose,
    /// Processors
    #[arg(long, value_name = "N", value_parser = amount::cpus, allow_hyphen_values = true)]
    cpus: Option<Amount<f64>>,
    /// Memory, such as `512M`, `8G` or `1.5G`
    #[arg(short, long, value_name = "SIZE", value_parser = amount::size, allow_hyphen_values = true)]
    memory: Option<Amount<u64>>,
    /// Graphics processors
    #[arg(long, value_name = "N", value_parser = amount::count::<u64>, allow_hyphen_values = true)]
    gpus: Option<Amount<u64>>,
    /// Graphics processors of a model
    #[arg(long, value_name = "MODEL=N", value_parser = parse_model)]
    gpus_of: Vec<(String, u64)>,
    /// Instances that run at a time
    #[arg(long, value_name = "N", value_parser = amount::count::<u64>, allow_hyphen_values = true)]
    instances: Option<Amount<u64>>,
    /// Jobs that run at a time
    #[arg(long, value_name = "N", value_parser = amount::count::<u64>, allow_hyphen_values = true)]
    jobs: Option<Amount<u64>>,
    /// Only for so long, such as `12h` or `3d`; then the quota is what it was
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    lasts: Option<Duration>,
}

pub(crate) async fn quota(command: QuotaCommand, session: &Session) -> anyhow::Result<Status> {
    let (whose, quota) = match command {
        QuotaCommand::Show(whose) => {
            let quota = get(&whose, session).await?;
            (whose, quota)
        }
        QuotaCommand::Set(set) => {
            let quota = wanted(&set, session).await?;
            let client = &session.client;
            let quota = match set.whose.kind {
                Kind::User => client.set_user_quota(&set.whose.name, &quota).await?,
                Kind::Group => client.set_group_quota(&set.whose.name, &quota).await?,
            };
            (set.whose, quota)
        }
    };
    if whose.json {
        output::json(&quota)?;
    } else {
        output::data(&details(&whose, &quota, session.words))?;
    }
    Ok(Status::DONE)
}

async fn get(whose: &Whose, session: &Session) -> anyhow::Result<Quota> {
    Ok(match whose.kind {
        Kind::User => session.client.user_quota(&whose.name).await?,
        Kind::Group => session.client.group_quota(&whose.name).await?,
    })
}

/// The whole quota that is to be; a raise leaves the rest as it is.
async fn wanted(set: &Set, session: &Session) -> anyhow::Result<Quota> {
    let limits = QuotaLimits {
        cpus: amount::given(set.cpus, "cpus")?,
        memory_bytes: amount::given(set.memory, "memory_bytes")?,
        gpus: amount::given(set.gpus, "gpus")?,
        gpus_by_model: set.gpus_of.iter().cloned().collect::<BTreeMap<_, _>>(),
        instances: amount::given(set.instances, "instances")?,
        jobs: amount::given(set.jobs, "jobs")?,
    };
    Ok(match set.lasts {
        None => Quota { limits, raise: None },
        Some(lasts) => {
            let until = Timestamp::now().checked_add(lasts)?;
            Quota { raise: Some(QuotaRaise { until, limits }), ..get(&set.whose, session).await? }
        }
    })
}

fn parse_model(text: &str) -> Result<(String, u64), String> {
    let (model, number) = text.rsplit_once('=').ok_or("write it like `a100=2`")?;
    Ok((model.to_owned(), number.parse().map_err(|_| "write it like `a100=2`")?))
}

fn details(whose: &Whose, quota: &Quota, words: Words) -> String {
    let limit = |value: Option<String>| value.unwrap_or_else(|| words.no_limit().to_owned());
    let mut rows = vec![(Title::Name, whose.name.clone())];
    let mut add = |limits: &QuotaLimits, always: bool| {
        let mut row = |title, value: Option<String>| {
            if always || value.is_some() {
                rows.push((title, limit(value)));
            }
        };
        row(Title::Cpus, limits.cpus.map(|cpus| cpus.to_string()));
        row(Title::Memory, limits.memory_bytes.map(size::display));
        row(Title::Gpus, limits.gpus.map(|gpus| gpus.to_string()));
        row(Title::Instances, limits.instances.map(|number| number.to_string()));
        row(Title::Jobs, limits.jobs.map(|number| number.to_string()));
        for (model, number) in &limits.gpus_by_model {
            rows.push((Title::Gpus, format!("{model}: {number}")));
        }
    };
    add(&quota.limits, true);
    if let Some(raise) = &quota.raise {
        add(&raise.limits, false);
        rows.push((Title::Expires, format!("{:.0}", raise.until)));
    }
    output::details(words, rows)
}
