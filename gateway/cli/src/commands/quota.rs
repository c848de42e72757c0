//! `berth quota`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use gateway_api::{
    client::ClientError,
    quota::{OwnQuota, Quota, QuotaLimits, QuotaRaise, QuotaStanding, QuotaUse},
};
use jiff::Timestamp;

use super::{Session, jobs::parse_time, list::Json};
use crate::{
    amount::{self, Limit},
    failure::{Said, Status},
    output, size,
    words::{Title, Words},
};

#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    /// Show what a user or a group may hold at a time
    Show(Whose),
    /// Show what you, your group and the shares of the site hold, images included, and what they may
    Mine(Json),
    /// Set what a user or a group may hold at a time; what is left out stays as it is
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
    #[command(flatten)]
    limits: Limits,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Limits {
    /// Processors, or `none` for no limit
    #[arg(long, value_name = "N", value_parser = amount::limit(amount::cpus), allow_hyphen_values = true)]
    cpus: Option<Limit<f64>>,
    /// Memory, such as `512M`, `8G` or `1.5G`, or `none`
    #[arg(short, long, value_name = "SIZE", value_parser = amount::limit(amount::size), allow_hyphen_values = true)]
    memory: Option<Limit<u64>>,
    /// Graphics processors, or `none`
    #[arg(long, value_name = "N", value_parser = amount::limit(amount::count::<u64>), allow_hyphen_values = true)]
    gpus: Option<Limit<u64>>,
    /// Graphics processors of a model, or `none`
    #[arg(long, value_name = "MODEL=N", value_parser = parse_model)]
    gpus_of: Vec<(String, Limit<u64>)>,
    /// Instances that run at a time, or `none`
    #[arg(long, value_name = "N", value_parser = amount::limit(amount::count::<u64>), allow_hyphen_values = true)]
    instances: Option<Limit<u64>>,
    /// Jobs that run at a time, or `none`
    #[arg(long, value_name = "N", value_parser = amount::limit(amount::count::<u64>), allow_hyphen_values = true)]
    jobs: Option<Limit<u64>>,
    /// What images take in the registry, such as `50G`, or `none`
    #[arg(long, value_name = "SIZE", value_parser = amount::limit(amount::size), allow_hyphen_values = true)]
    images: Option<Limit<u64>>,
    /// Only for so long, such as `12h` or `3d`; then the quota is what it was. `0` ends what was raised
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
            let quota =
                changed(get(&set.whose, session).await?, &set.limits, Timestamp::now(), session.words)?;
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

/// A quota with what is asked for; the rest of it is as it was.
fn changed(mut quota: Quota, asked: &Limits, now: Timestamp, words: Words) -> anyhow::Result<Quota> {
    let running = quota.raise.take().filter(|raise| now < raise.until);
    let Some(lasts) = asked.lasts else {
        asked.put_into(&mut quota.limits)?;
        return Ok(Quota { raise: running, ..quota });
    };
    if lasts.is_zero() {
        return Ok(quota);
    }
    if asked.names_none() {
        return Err(Said { what: words.raised_to_none(), hint: Some(words.hint_raised_to_none()) }.into());
    }
    let mut limits = running.map(|raise| raise.limits).unwrap_or_default();
    asked.put_into(&mut limits)?;
    Ok(Quota { raise: Some(QuotaRaise { until: now.checked_add(lasts)?, limits }), ..quota })
}

impl Limits {
    fn put_into(&self, limits: &mut QuotaLimits) -> Result<(), ClientError> {
        put(self.cpus, &mut limits.cpus, "cpus")?;
        put(self.memory, &mut limits.memory_bytes, "memory_bytes")?;
        put(self.gpus, &mut limits.gpus, "gpus")?;
        put(self.instances, &mut limits.instances, "instances")?;
        put(self.jobs, &mut limits.jobs, "jobs")?;
        put(self.images, &mut limits.image_bytes, "image_bytes")?;
        for (model, limit) in &self.gpus_of {
            let mut most = limits.gpus_by_model.remove(model);
            put(Some(*limit), &mut most, "gpus")?;
            limits.gpus_by_model.extend(most.map(|most| (model.clone(), most)));
        }
        Ok(())
    }

    fn names_none(&self) -> bool {
        let counts = [self.memory, self.gpus, self.instances, self.jobs, self.images];
        let models = self.gpus_of.iter().map(|(_, limit)| *limit);
        self.cpus == Some(Limit::None)
            || counts.into_iter().flatten().chain(models).any(|one| one == Limit::None)
    }
}

/// What was asked for, where anything was.
fn put<T>(asked: Option<Limit<T>>, limit: &mut Option<T>, field: &str) -> Result<(), ClientError> {
    match asked {
        Some(Limit::Most(amount)) => *limit = Some(amount.of(field)?),
        Some(Limit::None) => *limit = None,
        None => {}
    }
    Ok(())
}

fn parse_model(text: &str) -> Result<(String, Limit<u64>), String> {
    let (model, limit) = text.rsplit_once('=').ok_or("write it like `a100=2`")?;
    Ok((model.to_owned(), amount::limit(amount::count)(limit)?))
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
        rows.push((Title::RaisedUntil, format!("{:.0}", raise.until)));
    }
    output::details(words, rows)
}

fn standings(own: &OwnQuota, words: Words) -> String {
    let one = |title, standing: &QuotaStanding| {
        let QuotaStanding { name, limits, raised_until, used, waiting } = standing;
        let row = |title, used: String, limit: Option<String>, waits: Option<String>| {
            let limit = limit.unwrap_or_else(|| words.no_limit().to_owned());
            (title, words.used_of(&used, &limit, waits.as_deref()))
        };
        let count = |title, used: u64, limit: Option<u64>, waits: u64| {
            let waits = (waits > 0).then(|| waits.to_string());
            row(title, used.to_string(), limit.map(|limit| limit.to_string()), waits)
        };
        let bytes = |title, used, limit: Option<u64>, waits: u64| {
            row(
                title,
                size::display(used),
                limit.map(size::display),
                (waits > 0).then(|| size::display(waits)),
            )
        };
        let cpus_wait = (waiting.cpus > 0.0).then(|| waiting.cpus.to_string());
        let mut rows = vec![
            (title, name.clone()),
            row(Title::Cpus, used.cpus.to_string(), limits.cpus.map(|cpus| cpus.to_string()), cpus_wait),
            bytes(Title::Memory, used.memory_bytes, limits.memory_bytes, waiting.memory_bytes),
            count(Title::Gpus, used.gpus, limits.gpus, waiting.gpus),
        ];
        for (model, limit) in &limits.gpus_by_model {
            let of = |uses: &QuotaUse| uses.gpus_by_model.get(model).copied().unwrap_or(0);
            let (title, text) = count(Title::Gpus, of(used), Some(*limit), of(waiting));
            rows.push((title, format!("{model}: {text}")));
        }
        rows.extend([
            count(Title::Instances, used.instances, limits.instances, waiting.instances),
            count(Title::Jobs, used.jobs, limits.jobs, waiting.jobs),
            bytes(Title::Images, used.image_bytes, limits.image_bytes, 0),
        ]);
        rows.extend(raised_until.map(|until| (Title::RaisedUntil, format!("{until:.0}"))));
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
    use clap::Parser;

    use super::*;
    use crate::words::Language;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        set: Set,
    }

    #[test]
    fn only_what_is_named_is_changed() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let change = |quota: &Quota, more: &[&str]| {
            let line = ["quota", "user", "alice"].iter().chain(more);
            let set = Line::try_parse_from(line).unwrap().set;
            changed(quota.clone(), &set.limits, now, Words::new(Language::English))
        };
        let quota = change(&Quota::default(), &["--gpus", "4", "-m", "8G", "--gpus-of", "a100=2"]).unwrap();
        let quota = change(&quota, &["--gpus", "8", "--for", "12h"]).unwrap();
        let quota = change(&quota, &["--jobs", "3", "--gpus-of", "v100=1"]).unwrap();
        let models =
            |all: &[(&str, u64)]| all.iter().map(|(name, most)| ((*name).to_owned(), *most)).collect();
        let limits = QuotaLimits {
            gpus: Some(4),
            memory_bytes: Some(8 << 30),
            jobs: Some(3),
            gpus_by_model: models(&[("a100", 2), ("v100", 1)]),
            ..QuotaLimits::default()
        };
        assert_eq!(quota.limits, limits);
        assert_eq!(quota.raise.as_ref().unwrap().limits.gpus, Some(8), "what is raised stays so");

        let fewer = change(&quota, &["-m", "none", "--gpus-of", "a100=none"]).unwrap();
        let models = models(&[("v100", 1)]);
        assert_eq!(fewer.limits, QuotaLimits { memory_bytes: None, gpus_by_model: models, ..limits });
        let longer = change(&quota, &["--jobs", "9", "--for", "2d"]).unwrap().raise.unwrap();
        assert_eq!((longer.limits.gpus, longer.limits.jobs), (Some(8), Some(9)));
        assert_eq!(change(&quota, &["--for", "0"]).unwrap().raise, None);
        assert!(change(&quota, &["--gpus", "none", "--for", "2d"]).is_err());
        assert!(change(&quota, &["--gpus", "-1"]).is_err());
    }

    #[test]
    fn what_is_held_in_both_languages() {
        let standing = |name: &str, limits| QuotaStanding {
            name: name.to_owned(),
            limits,
            used: QuotaUse { cpus: 1.5, image_bytes: 3 << 30, ..Default::default() },
            ..QuotaStanding::default()
        };
        let limits = QuotaLimits {
            image_bytes: Some(10 << 30),
            gpus: Some(2),
            gpus_by_model: [("V100".to_owned(), 1)].into(),
            ..QuotaLimits::default()
        };
        let waiting = QuotaUse {
            memory_bytes: 4 << 30,
            gpus: 3,
            gpus_by_model: [("V100".to_owned(), 1)].into(),
            jobs: 2,
            ..QuotaUse::default()
        };
        let raised_until = Some("2026-01-31T12:00:00Z".parse().unwrap());
        let own = OwnQuota {
            user: QuotaStanding { waiting, raised_until, ..standing("alice", limits) },
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
