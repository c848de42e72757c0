//! `berth quota`.

use std::{collections::BTreeMap, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use gateway_api::quota::{OwnQuota, Quota, QuotaLimits, QuotaRaise, QuotaStanding, QuotaUse};
use jiff::Timestamp;

use super::{Session, jobs::parse_time, list::Json};
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
    /// Show what you, your group and the shares of the site hold, images included, and what they may
    Mine(Json),
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
    /// What images take in the registry, such as `50G`
    #[arg(long, value_name = "SIZE", value_parser = amount::size, allow_hyphen_values = true)]
    images: Option<Amount<u64>>,
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
        QuotaCommand::Mine(Json { json }) => {
            let own = session.client.own_quota().await?;
            if json {
                output::json(&own)?;
            } else {
                output::data(&standings(&own, session.words))?;
            }
            return Ok(Status::DONE);
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
        image_bytes: amount::given(set.images, "image_bytes")?,
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
        row(Title::Images, limits.image_bytes.map(size::display));
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

fn standings(own: &OwnQuota, words: Words) -> String {
    let one = |title, standing: &QuotaStanding| {
        let QuotaStanding { name, limits, used, .. } = standing;
        let row = |title, used: String, limit: Option<String>| {
            (title, format!("{used} / {}", limit.unwrap_or_else(|| words.no_limit().to_owned())))
        };
        let count = |title, used: u64, limit: Option<u64>| {
            row(title, used.to_string(), limit.map(|limit| limit.to_string()))
        };
        let bytes =
            |title, used, limit: Option<u64>| row(title, size::display(used), limit.map(size::display));
        let rows = vec![
            (title, name.clone()),
            row(Title::Cpus, used.cpus.to_string(), limits.cpus.map(|cpus| cpus.to_string())),
            bytes(Title::Memory, used.memory_bytes, limits.memory_bytes),
            count(Title::Gpus, used.gpus, limits.gpus),
            count(Title::Instances, used.instances, limits.instances),
            count(Title::Jobs, used.jobs, limits.jobs),
            bytes(Title::Images, used.image_bytes, limits.image_bytes),
        ];
        output::details(words, rows)
    };
    let mut parts = vec![one(Title::User, &own.user), one(Title::Group, &own.group)];
    parts.extend(shares(&own.shares, words));
    parts.join("\n\n")
}

/// What is held of each share that has limits, and the limit; `None` where there is none.
pub(super) fn shares(shares: &[QuotaStanding], words: Words) -> Option<String> {
    let of = |used: String, limit: Option<String>| match limit {
        Some(limit) => format!("{used} / {limit}"),
        None => used,
    };
    let cards = |limits: &QuotaLimits, used: &QuotaUse| {
        let all = of(used.gpus.to_string(), limits.gpus.map(|gpus| gpus.to_string()));
        let model = |(model, limit): (&String, &u64)| {
            let used = used.gpus_by_model.get(model).copied().unwrap_or(0);
            format!("{model}: {used} / {limit}")
        };
        std::iter::once(all).chain(limits.gpus_by_model.iter().map(model)).collect::<Vec<_>>().join(", ")
    };
    let row = |QuotaStanding { name, limits, used, waiting, .. }: &QuotaStanding| {
        [
            name.clone(),
            of(used.cpus.to_string(), limits.cpus.map(|cpus| cpus.to_string())),
            of(size::display(used.memory_bytes), limits.memory_bytes.map(size::display)),
            cards(limits, used),
            used.jobs.to_string(),
            waiting.jobs.to_string(),
        ]
    };
    let titles = [Title::JobShare, Title::Cpus, Title::Memory, Title::Gpus, Title::Jobs, Title::Waiting];
    (!shares.is_empty()).then(|| output::table(words, titles, shares.iter().map(row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn what_is_held_in_both_languages() {
        let standing = |name: &str, limits| QuotaStanding {
            name: name.to_owned(),
            limits,
            used: QuotaUse { cpus: 1.5, image_bytes: 3 << 30, ..Default::default() },
            ..QuotaStanding::default()
        };
        let limits = QuotaLimits { image_bytes: Some(10 << 30), gpus: Some(2), ..QuotaLimits::default() };
        let own = OwnQuota {
            user: standing("alice", limits),
            group: standing("vision", QuotaLimits::default()),
            shares: vec![standing(
                "speech",
                QuotaLimits {
                    cpus: Some(8.0),
                    gpus: Some(4),
                    gpus_by_model: [("V100".to_owned(), 2)].into(),
                    ..QuotaLimits::default()
                },
            )],
        };
        let text =
            [Language::English, Language::Chinese].map(|language| standings(&own, Words::new(language)));
        insta::assert_snapshot!(text.join("\n\n"));
    }
}
