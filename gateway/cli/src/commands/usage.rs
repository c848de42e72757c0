//! `berth usage`: what was held over time, and what images take.

use std::{collections::BTreeMap, time::Duration};

use clap::{Args, ValueEnum};
use gateway_api::usage::Usage;
use jiff::Timestamp;

use super::{Session, jobs::parse_time};
use crate::{
    failure::Status,
    output, size,
    words::{Title, Words},
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How far back, such as `12h` or `30d`
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_time)]
    since: Duration,
    /// What to sum up by
    #[arg(long, value_name = "WHAT", default_value = "user")]
    by: By,
    /// Not only yours: the group's for its leader, everyone's for an admin
    #[arg(short, long)]
    all: bool,
    /// Print JSON: each user, group and model on its own
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    User,
    Group,
    Model,
}

pub(crate) async fn usage(arguments: &Arguments, session: &Session) -> anyhow::Result<Status> {
    let since = Timestamp::now().checked_sub(arguments.since)?;
    let usage = session.client.usage(arguments.all, Some(since), None).await?;
    if arguments.json {
        output::json(&usage)?;
    } else {
        output::data(&table(&usage, arguments.by, session.words))?;
    }
    Ok(Status::DONE)
}

fn table(usage: &[Usage], by: By, words: Words) -> String {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for one in usage {
        let key = match by {
            By::User => one.user.to_string(),
            By::Group => one.group.clone(),
            By::Model => one.gpu_model.clone().unwrap_or_else(|| words.without_gpu().to_owned()),
        };
        let sum = sums.entry(key).or_default();
        sum.gpu_hours += one.gpu_hours;
        sum.cpu_hours += one.cpu_hours;
        sum.starts += one.starts;
        sum.image_bytes += one.image_bytes;
    }
    if let By::Model = by {
        // Images are of no model: who has nothing else is not in this table.
        sums.retain(|_, sum| sum.starts > 0);
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by(|(_, one), (_, other)| {
        let hours = other.gpu_hours.total_cmp(&one.gpu_hours).then(other.cpu_hours.total_cmp(&one.cpu_hours));
        hours.then(other.image_bytes.cmp(&one.image_bytes))
    });
    let first = match by {
        By::User => Title::User,
        By::Group => Title::Group,
        By::Model => Title::Model,
    };
    let held = |sum: &Sum| {
        [format!("{:.1}", sum.gpu_hours), format!("{:.1}", sum.cpu_hours), sum.starts.to_string()]
    };
    if let By::Model = by {
        let titles = [first, Title::GpuHours, Title::CpuHours, Title::Starts];
        let row = |(key, sum): (String, Sum)| {
            let [gpu, cpu, starts] = held(&sum);
            [key, gpu, cpu, starts]
        };
        return output::table(words, titles, rows.into_iter().map(row));
    }
    let titles = [first, Title::GpuHours, Title::CpuHours, Title::Starts, Title::Images];
    let row = |(key, sum): (String, Sum)| {
        let [gpu, cpu, starts] = held(&sum);
        [key, gpu, cpu, starts, size::display(sum.image_bytes)]
    };
    output::table(words, titles, rows.into_iter().map(row))
}

/// What several have held together.
#[derive(Debug, Default)]
struct Sum {
    gpu_hours: f64,
    cpu_hours: f64,
    starts: u64,
    image_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn sums_in_both_languages() {
        let one = |user: &str, group: &str, model: Option<&str>, gpu_hours| Usage {
            user: user.parse().unwrap(),
            group: group.to_owned(),
            gpu_model: model.map(str::to_owned),
            gpu_hours,
            cpu_hours: 2.25,
            starts: 3,
            image_bytes: if model.is_none() { 5 << 30 } else { 0 },
        };
        let usage = [
            one("alice", "vision", Some("Tesla P100"), 10.0),
            one("alice", "vision", None, 0.0),
            one("bob", "vision", Some("RTX 3090"), 30.5),
            one("carol", "speech", Some("RTX 3090"), 1.0),
        ];
        let mut text = Vec::new();
        for words in [Language::English, Language::Chinese].map(Words::new) {
            for by in [By::User, By::Group, By::Model] {
                text.push(table(&usage, by, words));
            }
        }
        insta::assert_snapshot!(text.join("\n\n"));
    }
}
